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

/// Since when something that appears has been away, next to the mass removal.
#[derive(Clone, Copy, PartialEq)]
enum Away {
    /// It went with the mass.
    SinceThen,
    /// Others let go of it afterwards.
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
        recalled: &Recalled,
    ) -> Back {
        let cleared = now.cleared;
        let away = |record: &'a Record| {
            let stored = recalled.records.get(&record.fingerprint)?;
            let away = match (stored.gone, cleared?) {
                (None, _) if !recalled.others.hold(stored) => Away::Unknown,
                (Some(gone), cleared) if gone == cleared => Away::SinceThen,
                (Some(gone), cleared) if gone > cleared => Away::SinceLater,
                _ => return None,
            };
            Some((record, away))
        };
        let went = added.clone().filter_map(away).filter(|(_, away)| *away != Away::SinceLater).count();
        // When everything returns, so does what other targets held on to for a while longer; and what is new in a group
        // that went with the rest may have come while nobody could see.
        let mass = cleared.is_some() && (went >= policy.at_least.max(1) || before.back == Return::InPart);
        let alone = now.awaits_singly(policy, at);
        let back = added.filter_map(away).filter(|(_, away)| mass || (alone && *away == Away::SinceThen));
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
