//! `stakeout deliveries`: what sinks did not take, and what becomes of it.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;
use stakeout_store::{Chosen, DeadDelivery, StoreError};

use super::{ask, now};
use crate::cli::{DeliveriesAction, DeliveriesArgs, DeliveriesListArgs};
use crate::control::Request;
use crate::open::{Door, Place};
use crate::output::Table;
use crate::{UsageError, output, when};

pub(super) async fn deliveries(place: &Place, action: DeliveriesAction) -> Result<ExitCode> {
    match action {
        DeliveriesAction::List(args) => list(place, &args).await?,
        DeliveriesAction::Retry(args) => {
            let DeliveriesArgs { sink, event, waiting } = args;
            let count = match place.door().await? {
                Door::Running { socket, pid } => {
                    let request = Request::RetryDeliveries { sink: sink.clone(), event, waiting };
                    counted(&ask::running(&socket, &pid, &request).await?)
                }
                Door::Direct(store) => store.retry_deliveries(&sink, chosen(event, waiting)).await?,
            };
            said(&sink, event, count, "to be made again")?;
        }
        DeliveriesAction::Drop(args) => {
            let DeliveriesArgs { sink, event, waiting } = args;
            let count = match place.door().await? {
                Door::Running { socket, pid } => {
                    let request = Request::DropDeliveries { sink: sink.clone(), event, waiting };
                    counted(&ask::running(&socket, &pid, &request).await?)
                }
                Door::Direct(store) => store.drop_deliveries(&sink, chosen(event, waiting)).await?,
            };
            said(&sink, event, count, "dropped")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Which deliveries are meant.
pub(super) fn chosen(event: Option<u64>, waiting: bool) -> Chosen {
    match (event, waiting) {
        (Some(seq), _) => Chosen::One(seq),
        (None, true) => Chosen::Every,
        (None, false) => Chosen::Dead,
    }
}

fn counted(answer: &serde_json::Value) -> u64 {
    answer["count"].as_u64().unwrap_or(0)
}

fn said(sink: &str, event: Option<u64>, count: u64, what: &str) -> Result<()> {
    if let (Some(event), 0) = (event, count) {
        let message = format!("sink {sink:?} has no delivery of event {event}: `stakeout deliveries list`");
        return Err(UsageError(message).into());
    }
    let noun = if count == 1 { "delivery" } else { "deliveries" };
    output::line(&format!("{count} {noun} of {sink} {what}"))
}

async fn list(place: &Place, args: &DeliveriesListArgs) -> Result<()> {
    let dead = match place.read().await {
        Ok(store) => store.dead_deliveries(args.sink.as_deref(), args.limit).await?,
        Err(StoreError::Missing { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let mut table = Table::new(&["SINK", "EVENT", "TYPE", "SUBJECT", "AT", "TRIES", "ERROR"]);
    for DeadDelivery { sink, event, attempts, error } in dead {
        if args.json {
            output::json(&json!({
                "sink": sink, "event": event.seq, "id": event.id.to_string(), "type": event.event_type,
                "subject": event.subject_key, "at": event.at, "tries": attempts, "error": error,
            }))?;
            continue;
        }
        table.row([
            sink,
            event.seq.to_string(),
            event.event_type,
            event.subject_key,
            when::relative(event.at, now()),
            attempts.to_string(),
            error.unwrap_or_default(),
        ]);
    }
    match (args.json, table.is_empty()) {
        (true, _) => Ok(()),
        (false, true) => output::line("no delivery was given up"),
        (false, false) => output::line(&table.render()),
    }
}
