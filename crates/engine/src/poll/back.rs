//! Back: what went with a mass removal, this target's or another's, and is there again. Most likely it was an outage,
//! so it is not told.

use std::collections::BTreeSet;

use stakeout_core::compare::{DoubtPolicy, Memory, Return};
use stakeout_core::{Fingerprint, Record, Time};

use super::recall::Recalled;

pub(super) struct Back {
    records: BTreeSet<Fingerprint>,
    /// Their groups: what else has appeared in them did not appear where nothing was.
    groups: BTreeSet<Fingerprint>,
}

/// Since when something that appears has been away, next to the mass removals that are awaited.
#[derive(Clone, Copy, PartialEq)]
enum Away {
    /// It went with one of them; whether it is still awaited alone.
    SinceThen { alone: bool },
    /// Others let go of it after the first of them.
    SinceLater,
    /// Somebody who has not looked for too long still holds it: nobody can say whether it was here when the mass went.
    Unknown,
}

impl Back {
    /// Of what was added at `at`; `before` and `now` are what the comparison remembers, by `policy`.
    pub(super) fn of<'a>(
        added: impl Iterator<Item = &'a Record> + Clone,
        policy: &DoubtPolicy,
        at: Time,
        (before, now): (&Memory, &Memory),
        recalled: &Recalled<'_>,
    ) -> Back {
        let removals = &now.removals;
        let away = |record: &'a Record| {
            let (first, stored) = (removals.first()?, recalled.records.get(&record.fingerprint)?);
            let away = match stored.gone {
                None if !recalled.others.hold(stored) => Away::Unknown,
                None => return None,
                Some(gone) => match removals.iter().find(|removal| removal.at == gone) {
                    Some(removal) => Away::SinceThen { alone: removal.awaits_singly(policy, at) },
                    None if gone > first.at => Away::SinceLater,
                    None => return None,
                },
            };
            Some((record, away))
        };
        let went = added.clone().filter_map(away).filter(|(_, away)| *away != Away::SinceLater).count();
        // When everything returns, so does what other targets held on to for a while longer; and what is new in a group
        // that went with the rest may have come while nobody could see.
        let in_part = before.removals.iter().any(|removal| removal.back == Return::InPart);
        let mass = !removals.is_empty() && (went >= policy.at_least.max(1) || in_part);
        let back =
            added.filter_map(away).filter(|(_, away)| mass || *away == Away::SinceThen { alone: true });
        let (mut records, mut groups): (BTreeSet<_>, BTreeSet<_>) =
            back.map(|(record, _)| (record.fingerprint, record.group)).unzip();
        if mass {
            groups.extend(recalled.others.gone_since());
        }
        records.extend(&recalled.others.lost().records);
        groups.extend(&recalled.others.lost().groups);
        Back { records, groups }
    }

    pub(super) fn has(&self, record: &Record) -> bool {
        let grouped = record.group != Fingerprint::default();
        self.records.contains(&record.fingerprint) || (grouped && self.groups.contains(&record.group))
    }
}
