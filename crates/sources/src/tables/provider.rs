//! The seam between tables and whoever books them: what to ask, and what an answer says in our words.
//!
//! A second provider is one more file with one more implementation of [`Provider`], and its word in the configuration.

use std::borrow::Cow;
use std::collections::BTreeSet;

use jiff::civil::DateTime;
use stakeout_core::{Failure, Request};

use super::market::Area;

/// One page of one question.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ask<'a> {
    pub(super) area: Area,
    /// `YYYY-MM-DD`
    pub(super) day: &'a str,
    /// `HH:MM`
    pub(super) time: &'a str,
    pub(super) party_size: u32,
    /// From 1.
    pub(super) page: u32,
    pub(super) per_page: u32,
}

/// Which question a request was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Asked {
    pub(super) party_size: u32,
    pub(super) page: u32,
}

/// What one page says, in the words of its bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Page<'a> {
    /// How many venues all pages have together.
    pub(super) total: Option<u64>,
    /// How many pages there are.
    pub(super) pages: Option<u32>,
    pub(super) hits: Vec<Hit<'a>>,
}

/// A venue on a page.
#[derive(Clone, Debug, Default)]
pub(super) struct Hit<'a> {
    /// `None` when it cannot be told who it is.
    pub(super) venue_id: Option<String>,
    pub(super) name: Option<Cow<'a, str>>,
    pub(super) neighborhood: Option<Cow<'a, str>>,
    pub(super) price_range: Option<i64>,
    pub(super) rating: Option<f64>,
    pub(super) rating_count: Option<i64>,
    pub(super) url_slug: Option<Cow<'a, str>>,
    pub(super) image: Option<Cow<'a, str>>,
    /// How many slots were shown, understood or not: a list may be cut off.
    pub(super) shown: usize,
    pub(super) slots: Vec<Offer<'a>>,
}

impl Hit<'_> {
    /// How many of the slots shown were not understood.
    pub(super) fn unread(&self) -> usize {
        self.shown - self.slots.len()
    }
}

/// One way to sit at one time.
#[derive(Clone, Debug)]
pub(super) struct Offer<'a> {
    /// On the venue's clock.
    pub(super) start: DateTime,
    pub(super) end: Option<DateTime>,
    /// `Dining Room`, `Patio`, …
    pub(super) seating: Option<Cow<'a, str>>,
    pub(super) config_id: Option<i64>,
}

/// Somebody who shows which tables are free.
pub(super) trait Provider: Send + Sync {
    /// The word that is part of every identity.
    fn name(&self) -> &'static str;

    /// The request for one page.
    fn request(&self, ask: &Ask<'_>) -> Request;

    /// The page that a request was for.
    fn asked(&self, request: &Request) -> Option<Asked>;

    /// How many pages there are, by any one of them; it need not be read to its end for that.
    fn pages(&self, body: &[u8]) -> Result<Option<u32>, Failure>;

    /// The whole page.
    fn read<'a>(&self, body: &'a [u8]) -> Result<Page<'a>, Failure>;
}

/// Party sizes, each once, in order.
pub(super) type PartySizes = BTreeSet<u32>;
