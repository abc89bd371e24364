//! The words that the suite's stories are told in.

use std::sync::Arc;

use serde_json::json;
use stakeout_core::adherence::Cause;
use stakeout_core::{ContentHash, Entry, Event, EventId, Fingerprint, Snapshot, Span, TargetSpec, Time};

use crate::{
    Claim, ClaimRequest, CommitOutcome, Done, Effect, EventFilter, EventWrite, HistoryWrite, PollCommit,
    PollLog, PollOutcome, RecordWrite, Release, Schedule, Stamp, Store, StoredRecord, TargetRow, Wanted,
};

/// The source that most stories happen in.
pub const SOURCE: &str = "nyc";

/// The kind of every record here.
pub const KIND: &str = "tables_slots";

/// The stream of every history row here.
pub const STREAM: &str = "price_history";

/// So many seconds after the stories begin.
pub fn at(secs: i64) -> Time {
    Time::from_secs(1_800_000_000 + secs)
}

/// Due at that second.
pub fn due(secs: i64) -> Schedule {
    Schedule {
        due: Some(at(secs)),
        interval: Span::secs(10),
        phase: "idle".into(),
        reason: format!("at {secs}"),
        slack: Span::ms(500),
    }
}

/// A wanted target, due at that second.
pub fn wanted(key: &str, secs: i64) -> Wanted {
    Wanted { spec: TargetSpec::new(key, "bucket"), schedule: due(secs) }
}

/// Who a record of that name is.
pub fn print(name: &str) -> Fingerprint {
    Fingerprint::of(KIND, &[name])
}

/// A store and short ways to use it.
pub struct World {
    /// The store under test.
    pub store: Arc<dyn Store>,
}

impl World {
    /// A world with these root targets, all due at second 0.
    pub async fn with(store: Arc<dyn Store>, keys: &[&str]) -> World {
        let world = World { store };
        world.roots(keys).await;
        world
    }

    /// Makes these the root targets, new ones due at second 0.
    pub async fn roots(&self, keys: &[&str]) -> crate::Reconciled {
        let desired: Vec<Wanted> = keys.iter().map(|key| wanted(key, 0)).collect();
        self.store.reconcile_roots(SOURCE, &desired, at(0)).await.expect("roots")
    }

    /// Claims everything due by then, for a minute.
    pub async fn claim(&self, secs: i64) -> Vec<Claim> {
        self.store.claim(request(secs)).await.expect("claim")
    }

    /// Claims everything due by then and answers the keys.
    pub async fn claim_keys(&self, secs: i64) -> Vec<String> {
        self.claim(secs).await.into_iter().map(|claim| claim.spec.key).collect()
    }

    /// Claims what is due by then, which is exactly one target.
    pub async fn claim_one(&self, secs: i64) -> Claim {
        let mut claims = self.claim(secs).await;
        assert_eq!(claims.len(), 1, "exactly one target is due at {secs}");
        claims.remove(0)
    }

    /// Commits one poll.
    pub async fn commit(&self, poll: Poll) -> CommitOutcome {
        self.store.commit(vec![poll.0.into()]).await.expect("commit").remove(0)
    }

    /// Commits one poll that must get in.
    pub async fn done(&self, poll: Poll) -> Done {
        match self.commit(poll).await {
            CommitOutcome::Done(done) => done,
            other => panic!("expected the poll to be in, got {other:?}"),
        }
    }

    /// A target's row.
    pub async fn row(&self, key: &str) -> TargetRow {
        self.store.target(SOURCE, key).await.expect("target").expect("it exists")
    }

    /// A stored record.
    pub async fn record(&self, name: &str) -> Option<StoredRecord> {
        self.store.records(SOURCE, &[print(name)]).await.expect("records").pop()
    }

    /// All events after this number.
    pub async fn events(&self, after: u64) -> Vec<Event> {
        self.store.events(after, &EventFilter::default(), 1_000).await.expect("events")
    }

    /// How many history rows a record has.
    pub async fn history_rows(&self, name: &str) -> usize {
        self.store.history(SOURCE, print(name), None, 1_000).await.expect("history").len()
    }
}

/// A request for everything of [`SOURCE`] due by then, for a minute.
pub fn request(secs: i64) -> ClaimRequest {
    ClaimRequest {
        node: "node-1".into(),
        sources: vec![SOURCE.into()],
        now: at(secs),
        ahead: Span::ZERO,
        lease: Span::secs(60),
        limit: 1_000,
    }
}

/// What the log says of a poll that was late and failed.
pub fn late_line(poll_no: u64, n: i64) -> PollLog {
    PollLog {
        poll_no,
        due: at(n),
        sent: at(n + 1),
        ended: at(n + 2),
        phase: "T-5m".into(),
        outcome: PollOutcome::Failed,
        late: Some(Cause::RateLimit),
        missed: 2,
        missed_cause: Some(Cause::Downtime),
        requests: 4,
        bytes: 1 << 40,
        changes: 5,
        events: 6,
        error_class: Some("malformed".into()),
        detail: Some("not JSON".into()),
    }
}

/// A poll's commit in the making.
#[derive(Clone, Debug)]
pub struct Poll(pub PollCommit);

impl Poll {
    /// An unchanged poll of a claimed target at that second: due again ten seconds later, the claim given back.
    pub fn of(claim: &Claim, secs: i64) -> Poll {
        Poll(PollCommit {
            target: claim.target,
            source: claim.source.clone(),
            fence: claim.fence,
            poll_no: claim.poll_no + 1,
            plan_version: claim.plan_version,
            now: at(secs),
            schedule: due(secs + 10),
            hold_until: None,
            outcome: PollOutcome::Unchanged,
            error: None,
            state: claim.state.clone(),
            snapshot: None,
            records: vec![],
            releases: vec![],
            lapsed: vec![],
            history: vec![],
            events: vec![],
            sinks: vec![],
            reconcile: None,
            kv: vec![],
            log: None,
            finished_run: None,
            sample: None,
        })
    }

    /// Keeps the claim as it is.
    pub fn holding(mut self, claim: &Claim) -> Poll {
        self.0.hold_until = Some(claim.lease_until);
        self
    }

    /// The poll saw exactly these records with these prices; each change writes history.
    pub fn sees(mut self, claim: &Claim, prices: &[(&str, i64)]) -> Poll {
        let mut entries = Vec::new();
        for (name, price) in prices {
            let record = self.record(claim, name, *price);
            entries.push(Entry {
                fingerprint: record.fingerprint,
                group: record.group,
                content: record.content,
                ends: None,
            });
            let before = claim.snapshot.get(record.fingerprint).map(|entry| entry.content);
            if before != Some(record.content) {
                self = self.remembers(name, *price, Stamp::Observed);
                self.0.records.push(record);
            }
        }
        let next = Snapshot::new(entries);
        let gone = claim.snapshot.entries().iter().filter(|entry| next.get(entry.fingerprint).is_none());
        self.0.releases =
            gone.map(|entry| Release { fingerprint: entry.fingerprint, natural: false }).collect();
        self.0.records.sort_by_key(|record| record.fingerprint);
        if next != claim.snapshot {
            self.0.snapshot = Some(next);
            self.0.outcome = PollOutcome::Changed;
            self.0.state.memory.version += 1;
        }
        self
    }

    fn record(&self, claim: &Claim, name: &str, price: i64) -> RecordWrite {
        RecordWrite {
            kind: KIND.into(),
            fingerprint: print(name),
            key: name.into(),
            parent: None,
            group: Fingerprint::default(),
            content: ContentHash(price as u128),
            ends: None,
            body: json!({ "price": price }).to_string(),
            seen: self.0.now,
            added: claim.snapshot.get(print(name)).is_none(),
            base: crate::Base::Anything,
        }
    }

    /// With a row of history, stamped at the poll's time.
    pub fn remembers(mut self, name: &str, price: i64, stamp: Stamp) -> Poll {
        self.0.history.push(HistoryWrite {
            fingerprint: print(name),
            stream: STREAM.into(),
            at: self.0.now,
            values: json!({ "price": price }).to_string(),
            said: json!({ "price": price }).to_string(),
            stamp,
            oldest_known: false,
        });
        self
    }

    /// Proposes an event of this rule about this record.
    pub fn tells(self, claim: &Claim, rule: &str, name: &str, requires: Effect) -> Poll {
        self.tells_with(claim, rule, name, requires, |_| {})
    }

    /// Proposes an event with more conditions.
    pub fn tells_with(
        mut self,
        claim: &Claim,
        rule: &str,
        name: &str,
        requires: Effect,
        more: impl FnOnce(&mut EventWrite),
    ) -> Poll {
        let version = self.0.state.memory.version;
        let ordinal = self.0.events.len() as u32;
        let mut event = EventWrite {
            id: EventId::of_poll(&claim.source, claim.incarnation, rule, print(name), version, ordinal),
            event_type: format!("tables.{rule}"),
            rule: rule.into(),
            subject: print(name),
            subject_key: name.into(),
            at: self.0.now,
            dedupe_key: None,
            data: json!({ "record": name }),
            requires,
            quiet: None,
            unseen_for: None,
            follows: None,
            sinks: vec![],
        };
        more(&mut event);
        self.0.events.push(event);
        self
    }

    /// Its events go to these sinks.
    pub fn to_sinks(mut self, sinks: &[&str]) -> Poll {
        self.0.sinks = sinks.iter().map(|sink| (*sink).to_owned()).collect();
        self
    }

    /// Changes anything else.
    pub fn with(mut self, change: impl FnOnce(&mut PollCommit)) -> Poll {
        change(&mut self.0);
        self
    }
}

/// The claim as its holder knows it after a committed poll.
pub fn after(claim: &Claim, poll: &Poll) -> Claim {
    Claim {
        poll_no: poll.0.poll_no,
        state: poll.0.state.clone(),
        snapshot: poll.0.snapshot.clone().unwrap_or_else(|| claim.snapshot.clone()),
        schedule: poll.0.schedule.clone(),
        ..claim.clone()
    }
}
