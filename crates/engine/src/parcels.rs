//! Parcels: what is handed over together stays together.
//!
//! A receiver tells repeats by the id of what it got, and a digest's id is made of its events. So who belongs to a digest
//! is written down before it is sent, and holds until each of them is through: if it was sent and the process died before
//! that was marked, if it was refused, or if it was given up and somebody has it tried again, it is sent with just these
//! events, however many more have come about since. Only what a person drops, or leaves among what was given up, is left
//! out. Kept as a value of its own, not in the rows: those that wait for nobody need none of it.

use serde_json::{Value as Json, json};
use stakeout_core::{Span, Time};
use stakeout_store::{Delivery, StoreError};

use crate::deliver::{Drained, Sink, deliver_some};
use crate::shared::Shared;

/// Where the open parcels of a sink are kept, under its name.
const NAMESPACE: &str = "outbox";
/// So many deliveries are looked for at once.
const AT_ONCE: usize = 500;

/// Delivers what is due to a sink that is handed several events as one: first what belongs together already, then, when
/// they have waited long enough for others, those that are new. `full` when more may be due than is here.
pub(crate) async fn drain(
    shared: &Shared,
    sink: &dyn Sink,
    due: &[Delivery],
    full: bool,
    gathers: Span,
    now: Time,
) -> Result<Drained, StoreError> {
    if due.is_empty() {
        return Ok(Drained::Dry);
    }
    let mut parcels = Parcels::of(shared, sink).await?;
    let (known, fresh) = parcels.sort(due);
    for parcel in &known {
        let mut whole = shared.store.deliveries_of(sink.name(), parcel).await?;
        // One of them may have been marked as tried just before a crash, and the others not: they are given up together.
        let tries = whole.iter().map(|delivery| delivery.attempts).max().unwrap_or(0);
        whole.iter_mut().for_each(|delivery| delivery.attempts = tries);
        match parcels.hand_over(parcel, &whole.iter().collect::<Vec<_>>()).await? {
            Drained::More => {}
            over => return Ok(over),
        }
    }
    // What was in the way of others is not any more.
    if full && !known.is_empty() {
        return Ok(Drained::More);
    }
    let Some(first) = fresh.first() else { return Ok(Drained::Dry) };
    let until = first.event.at + gathers;
    if until > now && !full {
        return Ok(Drained::Gathering(until));
    }
    let parcel = parcels.open(&fresh, now).await?;
    match parcels.hand_over(&parcel, &fresh).await? {
        Drained::More if !full => Ok(Drained::Dry),
        drained => Ok(drained),
    }
}

/// The events of a parcel, by their numbers.
type Parcel = Vec<u64>;

/// The parcels of a sink that may have been sent, and of which something is not through.
struct Parcels<'a> {
    shared: &'a Shared,
    sink: &'a dyn Sink,
    open: Vec<Parcel>,
}

impl<'a> Parcels<'a> {
    async fn of(shared: &'a Shared, sink: &'a dyn Sink) -> Result<Parcels<'a>, StoreError> {
        let stored = shared.store.kv(NAMESPACE, sink.name()).await?;
        let numbers =
            |parcel: &Json| parcel.as_array().into_iter().flatten().filter_map(Json::as_u64).collect();
        let open = stored.map_or(Vec::new(), |row| {
            row.value["open"].as_array().into_iter().flatten().map(numbers).collect()
        });
        Ok(Parcels { shared, sink, open })
    }

    /// The open parcels of which something is due, and what is due of none. What is handed over together is due together,
    /// but for what somebody wants tried at once: then it is time for the others, too.
    fn sort<'d>(&self, due: &'d [Delivery]) -> (Vec<Parcel>, Vec<&'d Delivery>) {
        let is_of = |parcel: &Parcel, delivery: &Delivery| parcel.contains(&delivery.event.seq);
        let is_due = |parcel: &&Parcel| due.iter().any(|delivery| is_of(parcel, delivery));
        let fresh = due.iter().filter(|delivery| !self.open.iter().any(|parcel| is_of(parcel, delivery)));
        (self.open.iter().filter(is_due).cloned().collect(), fresh.collect())
    }

    /// From now on these are one parcel.
    async fn open(&mut self, deliveries: &[&Delivery], now: Time) -> Result<Parcel, StoreError> {
        self.forget_dropped().await?;
        let parcel: Parcel = deliveries.iter().map(|delivery| delivery.event.seq).collect();
        self.open.push(parcel.clone());
        self.keep(now).await?;
        Ok(parcel)
    }

    /// Hands over what waits of a parcel; when all of it is through, it is forgotten.
    async fn hand_over(&mut self, parcel: &Parcel, waiting: &[&Delivery]) -> Result<Drained, StoreError> {
        let drained = match waiting {
            // Somebody has just dropped them.
            [] => Drained::More,
            some => deliver_some(self.shared, self.sink, some).await,
        };
        if self.shared.store.undelivered(self.sink.name(), parcel).await?.is_empty() {
            self.open.retain(|known| known != parcel);
            self.keep(self.shared.clock.now()).await?;
        }
        Ok(drained)
    }

    /// Forgets the parcels of which a person has dropped all that was left.
    async fn forget_dropped(&mut self) -> Result<(), StoreError> {
        let all: Vec<u64> = self.open.iter().flatten().copied().collect();
        let mut left = Vec::new();
        for some in all.chunks(AT_ONCE) {
            left.extend(self.shared.store.undelivered(self.sink.name(), some).await?);
        }
        self.open.retain(|parcel| parcel.iter().any(|seq| left.contains(seq)));
        Ok(())
    }

    async fn keep(&self, now: Time) -> Result<(), StoreError> {
        let value = (!self.open.is_empty()).then(|| json!({ "open": self.open }));
        self.shared.store.set_kv(NAMESPACE, self.sink.name(), value, now).await
    }
}
