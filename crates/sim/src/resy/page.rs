//! Pages of a search: which venues are on it at a moment, and its bytes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use stakeout_core::Time;

use super::market::Market;
use super::render::{self, Frame, Head, Hit, Twist};
use super::request::{Area, Search};
use super::view::{Cursor, View, ViewKey};

/// What is kept of rendered pages at most; then all of it goes.
const KEPT_BYTES_MAX: usize = 64 << 20;
/// As many views as the market keeps.
const CURSORS_MAX: usize = 256;

/// Renders pages, and remembers those that nothing has changed since.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    heads: OnceLock<Vec<Head>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    cursors: HashMap<ViewKey, (Arc<View>, Cursor)>,
    /// The venues of the last area and name that were searched for.
    wanted: Option<Wanted>,
    /// The last body of each search, with the version of what it shows.
    kept: HashMap<Search, (usize, Bytes)>,
    kept_bytes: usize,
}

/// The venues in an area that have a text in their names.
#[derive(Debug)]
struct Wanted {
    area: Area,
    query: String,
    venues: Arc<[u32]>,
}

impl Pages {
    /// The page as it is at `now`.
    pub(crate) fn honest(&self, market: &Market, search: &Search, now: Time) -> Bytes {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let version = state.seek(market, search.view, now).2;
        if let Some((of, body)) = state.kept.get(search)
            && *of == version
        {
            return body.clone();
        }
        let body = self.render(&mut state, market, search, now, &Twist::default());
        state.keep(search, version, body.clone());
        body
    }

    /// The page at `now`, but for that.
    pub(crate) fn twisted(&self, market: &Market, search: &Search, now: Time, twist: &Twist) -> Bytes {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.render(&mut state, market, search, now, twist)
    }

    fn render(&self, state: &mut State, market: &Market, search: &Search, now: Time, twist: &Twist) -> Bytes {
        let body = market.config().body;
        let heads =
            self.heads.get_or_init(|| market.venues().iter().map(|venue| Head::new(venue, body)).collect());
        let wanted = state.wanted(market, search);
        let (view, cursor, _) = state.seek(market, search.view, now);
        let listed = listed(market, &wanted, cursor);
        let first = (u64::from(search.page) - 1) * u64::from(search.per_page);
        let first = first.saturating_add_signed(twist.shift) as usize;
        let tables = market.tables(search.view.day);
        let shown = listed.iter().skip(first).take(search.per_page as usize).map(|n| Hit {
            venue: &market.venues()[*n as usize],
            head: &heads[*n as usize],
            tables: tables.get(*n as usize).map_or(&[], Vec::as_slice),
            shown: cursor.shown(view, *n),
        });
        let mut hits: Vec<Hit<'_>> = shown.collect();
        hits.truncate(hits.len().saturating_sub(twist.left_out));
        let total = (listed.len() as u64).saturating_add_signed(twist.more);
        render::page(Frame { search, total, body }, &hits, twist).into()
    }
}

impl State {
    fn seek(&mut self, market: &Market, key: ViewKey, now: Time) -> (&View, &Cursor, usize) {
        if self.cursors.len() >= CURSORS_MAX && !self.cursors.contains_key(&key) {
            self.cursors.clear();
        }
        let (view, cursor) = self.cursors.entry(key).or_insert_with(|| {
            let view = market.view(key);
            let cursor = view.start();
            (view, cursor)
        });
        let version = cursor.seek(view, now);
        (view, cursor, version)
    }

    fn wanted(&mut self, market: &Market, search: &Search) -> Arc<[u32]> {
        if let Some(last) = &self.wanted
            && (last.area, &last.query) == (search.area, &search.query)
        {
            return Arc::clone(&last.venues);
        }
        let all = market.venues().iter().zip(0..).filter(|(venue, _)| search.wants(venue));
        let venues: Arc<[u32]> = all.map(|(_, n)| n).collect();
        let (area, query) = (search.area, search.query.clone());
        self.wanted = Some(Wanted { area, query, venues: Arc::clone(&venues) });
        venues
    }

    fn keep(&mut self, search: &Search, version: usize, body: Bytes) {
        if self.kept_bytes + body.len() > KEPT_BYTES_MAX {
            self.kept.clear();
            self.kept_bytes = 0;
        }
        self.kept_bytes += body.len();
        if let Some((_, old)) = self.kept.insert(search.clone(), (version, body)) {
            self.kept_bytes -= old.len();
        }
    }
}

/// The venues in the order of the pages: those with tables, then those without that stay listed, each from the centre
/// outwards. So whenever a venue gets its first table or loses its last, others move.
fn listed(market: &Market, wanted: &[u32], cursor: &Cursor) -> Vec<u32> {
    let bookable = cursor.bookable();
    let has_some = |n: &u32| bookable[*n as usize];
    let stays = |n: &u32| !has_some(n) && !market.venues()[*n as usize].absent_when_full;
    let mut listed = Vec::with_capacity(wanted.len());
    listed.extend(wanted.iter().copied().filter(has_some));
    listed.extend(wanted.iter().copied().filter(stays));
    listed
}
