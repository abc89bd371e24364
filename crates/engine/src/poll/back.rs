//! Back: what went with a mass removal and is there again. Most likely it was an outage, so it is not told.

use std::collections::BTreeSet;

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
    /// Of what was added, after a removal of at least so many records that was answered then.
    pub(super) fn of<'a>(
        added: impl Iterator<Item = &'a Record> + Clone,
        at_least: usize,
        cleared: Option<Time>,
        recalled: &Recalled,
    ) -> Back {
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
        // When everything returns, so does what other targets held on to for a while longer.
        let mass = went >= at_least.max(1);
        let back = added.filter_map(away).filter(|(_, away)| *away == Away::SinceThen || mass);
        let (records, groups) = back.map(|(record, _)| (record.fingerprint, record.group)).unzip();
        Back { records, groups }
    }

    pub(super) fn has(&self, record: &Record) -> bool {
        let grouped = record.group != Fingerprint::default();
        self.records.contains(&record.fingerprint) || (grouped && self.groups.contains(&record.group))
    }
}
