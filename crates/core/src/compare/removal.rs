//! Mass removals that were confirmed, and may yet turn out to have been outages: what went with one of them is awaited.
//!
//! An upstream that is half out of order and then wholly makes two of them, and gets well in any number of steps.
//! Each is therefore remembered by itself, and is over only when its own mass is back. Which records return is not known
//! here, only how many: what is new counts for the latest removal first, as what failed last is mended first.

use serde::{Deserialize, Serialize};

use super::DoubtPolicy;
use crate::{Span, Time};

/// A confirmed mass removal whose records are awaited.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Removal {
    /// When it was answered; the records that went with it are gone since then.
    pub at: Time,
    /// How many went. None once its mass was back and went again with a later removal.
    pub went: u32,
    /// Whole answers since, counted to [`SINGLY_AFTER`].
    pub since: u8,
    /// How far the mass is back.
    pub back: Return,
}

/// How far what went with a mass removal is back. What two whole answers after its return do not have was really taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Return {
    /// Not yet.
    Awaited,
    /// An answer that was not whole had much of it.
    InPart,
    /// One whole answer has come since, or brought it.
    Once,
    /// Two have.
    Twice,
}

/// After so many whole answers without a mass removal's records…
pub const SINGLY_AFTER: u8 = 6;
/// …and this long after it, whatever returns alone is news again. Upstreams that answer with nothing do so for minutes.
const SINGLY: Span = Span::hours(1);
/// A handful is taken for real more often than it is lost in an outage, so it is not waited for as long.
const SINGLY_OF_FEW: Span = Span::mins(15);
/// More are not remembered of one target: the one that took the fewest is forgotten first.
const MOST: usize = 8;

/// What a believed answer says about removals.
pub(super) struct Answer {
    /// Whether it was a whole one.
    pub(super) whole: bool,
    /// How many records are new in it.
    pub(super) added: usize,
    /// When it was answered and how many records went, if it confirmed a mass removal.
    pub(super) confirmed: Option<(Time, usize)>,
}

impl Removal {
    /// Whether a record that went with it, and returns at `at` without the mass, is still taken for what it lost.
    pub fn awaits_singly(&self, policy: &DoubtPolicy, at: Time) -> bool {
        match (self.went as usize) < policy.at_least {
            true => at - self.at < SINGLY_OF_FEW,
            false => self.since < SINGLY_AFTER || at - self.at < SINGLY,
        }
    }

    /// As many as go with an outage: as make a mass, or half of what went if that was little.
    fn mass(&self, policy: &DoubtPolicy) -> usize {
        policy.at_least.min(self.went.div_ceil(2) as usize)
    }

    /// The same after a later removal: what of it was not back yet comes or stays with that one.
    fn overtaken(self) -> Removal {
        match self.back {
            Return::Awaited => self,
            _ => Removal { went: 0, back: Return::Awaited, ..self },
        }
    }

    fn after(self, whole: bool, returns: bool) -> Removal {
        let back = match (self.back, whole) {
            (Return::Awaited, false) if returns => Return::InPart,
            (Return::Awaited, true) if returns => Return::Once,
            (Return::InPart, true) => Return::Once,
            (Return::Once, true) => Return::Twice,
            (before, _) => before,
        };
        let since = self.since.saturating_add(u8::from(whole)).min(SINGLY_AFTER);
        Removal { back, since, ..self }
    }
}

/// What is awaited after this answer.
pub(super) fn after(answer: &Answer, before: &[Removal], policy: &DoubtPolicy) -> Vec<Removal> {
    let over = |removal: &&Removal| answer.whole && removal.back == Return::Twice;
    let still = before.iter().filter(|removal| !over(removal)).copied();
    if let Some((at, went)) = answer.confirmed {
        let earlier = still.map(|removal| removal.overtaken().after(answer.whole, false));
        let latest = Removal { at, went: went as u32, since: 0, back: Return::Awaited };
        let mut all: Vec<Removal> = earlier.chain([latest]).collect();
        if all.len() > MOST {
            let fewest =
                (0..MOST).min_by_key(|n| all[*n].went).expect("one of several, because there are MOST");
            all.remove(fewest);
        }
        return all;
    }
    let mut added = answer.added;
    let mut all: Vec<Removal> = still.collect();
    for removal in all.iter_mut().rev() {
        let returns = answer.added > 0 && added >= removal.mass(policy);
        added = added.saturating_sub(removal.went as usize);
        *removal = removal.after(answer.whole, returns);
    }
    all
}
