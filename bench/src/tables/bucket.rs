//! One bucket of the city, twice: as it is, and some minutes later when at least one slot in a hundred is another. What
//! is timed is a method each, so that a profiler can be pointed at exactly that.

use bytes::Bytes;
use stakeout_core::compare::{Memory, Verdict};
use stakeout_core::{ContentHash, Exchange, Snapshot, Span};

use super::city::City;
use super::typed::Typed;
use crate::args::Part;

/// The share of slots that the later answers are to differ by.
const CHANGED: f64 = 0.01;

pub(crate) struct Bucket {
    city: City,
    pages: Vec<Exchange>,
    later: Vec<Exchange>,
    snapshot: Snapshot,
    memory: Memory,
    bodies: Vec<Bytes>,
    /// How many slots it shows.
    pub(crate) slots: usize,
    /// How many of them, and of the venues, are others later.
    pub(crate) changed: usize,
}

impl Bucket {
    pub(crate) fn of_a_city() -> anyhow::Result<Bucket> {
        let city = City::new()?;
        let now = city.noon();
        let pages = city.fetch(now);
        let first = city.look(&pages, &Snapshot::default(), &Memory::default())?;
        let (snapshot, memory) = (first.next.unwrap_or_default(), first.memory);
        let slots = snapshot.entries().iter().filter(|entry| entry.ends.is_some()).count();
        let bodies =
            pages.iter().filter_map(|page| page.result.as_ref().ok()).map(|r| r.body.clone()).collect();
        for minutes in (2..600).step_by(4) {
            let later = city.fetch(now + Span::mins(minutes));
            let news = city.look(&later, &snapshot, &memory)?;
            let changed = news.added.len() + news.changed.len() + news.removed.len();
            if changed as f64 >= CHANGED * slots as f64 {
                return Ok(Bucket { city, pages, later, snapshot, memory, bodies, slots, changed });
            }
        }
        anyhow::bail!("the market stands still")
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bodies.iter().map(Bytes::len).sum()
    }

    pub(crate) fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Does that part of the work once. Never inlined: a profiler finds it by its name.
    #[inline(never)]
    pub(crate) fn work(&self, part: Part) {
        match part {
            Part::Same => {
                let again = self.city.look(&self.pages, &self.snapshot, &self.memory);
                assert!(again.is_ok_and(|comparison| comparison.verdict == Verdict::Unchanged));
            }
            Part::Changed => {
                let news = self.city.look(&self.later, &self.snapshot, &self.memory);
                assert!(news.is_ok_and(|comparison| comparison.verdict == Verdict::Changed));
            }
            Part::Typed => {
                assert!(self.bodies.iter().all(|body| serde_json::from_slice::<Typed<'_>>(body).is_ok()));
            }
            Part::Repeat => {
                std::hint::black_box(self.bodies.iter().map(|body| ContentHash::of_bytes(body)).max());
            }
        }
    }
}
