//! Parcels: what is handed over together stays together.
//!
//! A receiver tells repeats by the id of what it got, and a digest's id is made of its events. So who belongs to a digest
//! is written down before it is sent: if it was sent and the process died before that was marked, it is sent again with
//! just these events, however many more have come about since. Kept as a value of its own, not in the rows: those that
//! wait for nobody need none of it.

use serde_json::{Value as Json, json};
use stakeout_core::Time;
use stakeout_store::{Delivery, StoreError};

use crate::shared::Shared;

/// Where the open parcels of a sink are kept, under its name.
const NAMESPACE: &str = "outbox";

/// The parcels of a sink that may have been sent, by the numbers of their events.
pub(crate) struct Parcels<'a> {
    shared: &'a Shared,
    sink: &'a str,
    open: Vec<Vec<u64>>,
}

impl<'a> Parcels<'a> {
    pub(crate) async fn of(shared: &'a Shared, sink: &'a str) -> Result<Parcels<'a>, StoreError> {
        let stored = shared.store.kv(NAMESPACE, sink).await?;
        let numbers =
            |parcel: &Json| parcel.as_array().into_iter().flatten().filter_map(Json::as_u64).collect();
        let open = stored.map_or(Vec::new(), |row| {
            row.value["open"].as_array().into_iter().flatten().map(numbers).collect()
        });
        Ok(Parcels { shared, sink, open })
    }

    /// Those of `due` that belong to open parcels, parcel by parcel, and those that belong to none. A parcel of which a
    /// part still waits for its next try waits as a whole; what is not `live` any more, because a person dropped it,
    /// holds up nobody.
    pub(crate) fn sort<'d>(
        &self,
        due: &'d [Delivery],
        live: &[u64],
    ) -> (Vec<Vec<&'d Delivery>>, Vec<&'d Delivery>) {
        let seqs: Vec<u64> = due.iter().map(|delivery| delivery.event.seq).collect();
        let whole = |parcel: &&Vec<u64>| parcel.iter().all(|seq| seqs.contains(seq) || !live.contains(seq));
        let of = |parcel: &Vec<u64>| due.iter().filter(|d| parcel.contains(&d.event.seq)).collect::<Vec<_>>();
        let known = self.open.iter().filter(whole).map(of).filter(|parcel| !parcel.is_empty()).collect();
        let fresh = due.iter().filter(|d| !self.open.iter().any(|parcel| parcel.contains(&d.event.seq)));
        (known, fresh.collect())
    }

    /// From now on these are one parcel; those of which nothing is `live` are forgotten.
    pub(crate) async fn open(
        &mut self,
        parcel: &[&Delivery],
        live: &[u64],
        now: Time,
    ) -> Result<(), StoreError> {
        self.open.retain(|known| known.iter().any(|seq| live.contains(seq)));
        self.open.push(parcel.iter().map(|delivery| delivery.event.seq).collect());
        self.keep(now).await
    }

    /// Nothing of this parcel is waiting any more.
    pub(crate) async fn close(&mut self, parcel: &[&Delivery], now: Time) -> Result<(), StoreError> {
        self.open.retain(|known| !parcel.iter().any(|delivery| known.contains(&delivery.event.seq)));
        self.keep(now).await
    }

    async fn keep(&self, now: Time) -> Result<(), StoreError> {
        let value = (!self.open.is_empty()).then(|| json!({ "open": self.open }));
        self.shared.store.set_kv(NAMESPACE, self.sink, value, now).await
    }
}
