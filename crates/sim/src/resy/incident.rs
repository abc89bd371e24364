//! Faults by script: from when to when, and to whom.

use stakeout_core::{Span, Time};

use super::bucket::Bucket;
use super::faults::Fault;
use super::request::Search;
use crate::rng::{SplitMix64, mix};

/// A time during which every answer that it concerns goes wrong in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incident {
    /// In which way.
    pub fault: Fault,
    /// From when.
    pub from: Time,
    /// The first moment after it.
    pub until: Time,
    /// Only answers about this bucket; all, unless given.
    pub bucket: Option<Bucket>,
    /// Only this page; all, unless given.
    pub page: Option<u32>,
}

impl Incident {
    /// Everything goes wrong that way from then until then.
    pub fn new(fault: Fault, from: Time, until: Time) -> Incident {
        Incident { fault, from, until, bucket: None, page: None }
    }

    /// Only answers about that bucket.
    #[must_use]
    pub fn of(self, bucket: Bucket) -> Incident {
        Incident { bucket: Some(bucket), ..self }
    }

    /// Only that page, from 1.
    #[must_use]
    pub fn on_page(self, page: u32) -> Incident {
        Incident { page: Some(page), ..self }
    }

    pub(crate) fn concerns(&self, search: Option<&Search>, now: Time) -> bool {
        let bucket = search.and_then(Search::bucket);
        let page = search.map(|search| search.page);
        (self.from..self.until).contains(&now)
            && self.bucket.is_none_or(|own| bucket == Some(own))
            && self.page.is_none_or(|own| page == Some(own))
    }
}

/// Times of one to eight minutes, about so many a day, during which every answer is empty.
pub fn outages(seed: u64, from: Time, until: Time, per_day: f64) -> Vec<Incident> {
    let mut rng = SplitMix64::new(mix(seed) ^ 0x006f_7574_6167_6573);
    let mut all = Vec::new();
    let mut at = from;
    loop {
        // Evenly drawn gaps: their mean is what counts here. Without any a day the first gap never ends.
        at += Span::from_secs_f64(2.0 * (1.0 - rng.unit()) * 86_400.0 / per_day);
        let end = at + Span::secs(rng.between(60, 480) as i64);
        if end >= until {
            return all;
        }
        let fault = if rng.one_in(3) { Fault::NoSlots } else { Fault::Empty };
        all.push(Incident::new(fault, at, end));
        at = end;
    }
}
