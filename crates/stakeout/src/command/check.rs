//! `stakeout check`: configuration, environment, store, and one real look at each upstream. Writes nothing.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use serde::Serialize;
use stakeout_core::{Exchange, Facts, Failure, FailureClass, PollContext, Source, TargetSpec};
use stakeout_engine::fetch::{Answer, FetchLimits};
use stakeout_engine::http::HttpFetch;
use stakeout_engine::{Clock, Fetch, redact};
use stakeout_store::sqlite::lock_holder;
use stakeout_store::{StoreError, Validators};

use crate::cli::CheckArgs;
use crate::config::{Secrets, Wired};
use crate::open::{Database, Place};
use crate::output;

/// The most requests one look takes: enough to see that it works.
const REQUESTS_MAX: usize = 5;

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    what: String,
    ok: bool,
    says: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    look: Option<Look>,
}

/// What an upstream answered.
#[derive(Debug, Default, Serialize)]
struct Look {
    target: String,
    status: Option<u16>,
    requests: usize,
    bytes: usize,
    records: usize,
    took_ms: i64,
    /// Whether there was more to ask for.
    cut_short: bool,
    warnings: Vec<String>,
}

impl Finding {
    fn new(what: impl Into<String>, ok: bool, says: impl Into<String>) -> Finding {
        Finding { what: what.into(), ok, says: says.into(), look: None }
    }
}

pub(super) async fn check(place: &Place, args: &CheckArgs) -> Result<ExitCode> {
    let Wired { sources, warnings } = place.loaded.some_sources(&Secrets::Environment)?;
    let mut findings = vec![Finding::new(format!("configuration {}", place.loaded.file()), true, {
        place.loaded.alerts()?;
        let (sinks, alerts) =
            (place.loaded.sinks(&Secrets::Environment)?.len(), place.loaded.config.alert.len());
        let counts = [(sources.len(), "source"), (sinks, "sink"), (alerts, "alert")];
        counts.map(|(n, what)| format!("{n} {what}{}", if n == 1 { "" } else { "s" })).join(", ")
    })];
    let warnings = warnings.into_iter().chain(place.loaded.untold(&sources));
    findings.extend(warnings.map(|warning| Finding::new("warning", true, warning)));
    findings.push(store(place).await);
    findings.extend(switched_off(place).await);
    if !args.offline {
        let fetch = HttpFetch::new().context("the HTTP client cannot start")?;
        for source in &sources {
            findings.push(upstream(source, &fetch).await);
        }
    }
    let ok = findings.iter().all(|finding| finding.ok);
    if args.json {
        output::pretty(&serde_json::json!({ "ok": ok, "findings": findings }))?;
    } else {
        for finding in &findings {
            let mark = if finding.ok { "ok    " } else { "FAILED" };
            output::line(&format!("{mark}  {}: {}", finding.what, finding.says))?;
        }
    }
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn store(place: &Place) -> Finding {
    let what = format!("store {}", place.database);
    let file = match &place.database {
        Database::File(path) => Some(path),
        Database::Server { .. } => None,
    };
    let holder = file.and_then(|path| lock_holder(path));
    let running = holder.map(|holder| format!(", in use by process {}", holder.pid));
    let stats = match place.read().await {
        Ok(store) => store.stats().await,
        Err(error) => Err(error),
    };
    match stats {
        Ok(stats) => Finding::new(
            what,
            true,
            format!(
                "{} targets, {} records, {} events, {} bytes{}",
                stats.targets,
                stats.records,
                stats.events,
                stats.bytes,
                running.unwrap_or_default()
            ),
        ),
        Err(StoreError::Missing { .. }) => {
            let directory = file.and_then(|path| path.parent()).filter(|d| !d.as_os_str().is_empty());
            match directory.map(std::fs::metadata) {
                Some(Err(error)) => {
                    Finding::new(what, false, format!("its directory cannot be used: {error}"))
                }
                Some(Ok(found)) if !found.is_dir() => Finding::new(what, false, "its directory is a file"),
                Some(Ok(found)) if found.permissions().readonly() => {
                    Finding::new(what, false, "its directory cannot be written")
                }
                _ => Finding::new(what, true, "not there yet; the first run creates it"),
            }
        }
        Err(error) => Finding::new(what, false, error.to_string()),
    }
}

/// Sinks that nothing is sent to any more, because the receiver said that it is gone or because somebody said so.
async fn switched_off(place: &Place) -> Vec<Finding> {
    let settings = match place.read().await {
        Ok(store) => store.settings().await.unwrap_or_default(),
        // What is wrong with the store was said already.
        Err(_) => Vec::new(),
    };
    let off = |name: &&String| {
        let key = format!("sink.{name}.enabled");
        settings.iter().any(|(known, value)| *known == key && *value == serde_json::Value::Bool(false))
    };
    let warning = |name: &String| {
        let says = format!(
            "sink {name} is switched off, nothing is sent there: `stakeout settings unset sink.{name}.enabled`"
        );
        Finding::new("warning", true, says)
    };
    place.loaded.config.sink.keys().filter(off).map(warning).collect()
}

async fn upstream(source: &Arc<dyn Source>, fetch: &dyn Fetch) -> Finding {
    let clock = Clock::system();
    let what = format!("source {}", source.name());
    let Some(target) = source.roots(clock.now()).into_iter().next() else {
        return Finding::new(what, false, "it has no target to begin with");
    };
    let mut look = Look { target: target.key.clone(), ..Look::default() };
    let mut result = poll(&**source, &target, fetch, &clock, &mut look).await;
    // A calendar asks nobody: what it lists does.
    if let (0, Ok(Some(listed))) = (look.requests, &result) {
        look = Look { target: listed.key.clone(), ..Look::default() };
        result = poll(&**source, listed, fetch, &clock, &mut look).await;
    }
    let seen = format!(
        "target {}: {}{} bytes in {} ms",
        look.target,
        look.status.map(|status| format!("status {status}, ")).unwrap_or_default(),
        look.bytes,
        look.took_ms
    );
    let (ok, says) = match result {
        Ok(_) => {
            let odd: String = look.warnings.iter().map(|warning| format!("; {warning}")).collect();
            let part = if look.cut_short { " in the first of its pages" } else { "" };
            (true, format!("{seen}, {} records{part}{odd}", look.records))
        }
        Err(failure) => (false, format!("{seen}, {failure}")),
    };
    Finding { look: Some(look), ..Finding::new(what, ok, says) }
}

/// A poll that leaves no trace; answers the first target that it lists.
async fn poll(
    source: &dyn Source,
    target: &TargetSpec,
    fetch: &dyn Fetch,
    clock: &Clock,
    look: &mut Look,
) -> Result<Option<TargetSpec>, Failure> {
    let facts = Facts::default();
    let began = clock.now();
    let context = PollContext { now: began, facts: &facts };
    let limits = FetchLimits {
        total: source.limits().timeout.to_std(),
        connect: source.limits().connect_timeout.to_std(),
        read: source.limits().timeout.to_std(),
        max_body_bytes: source.limits().max_body_bytes,
    };
    let mut exchanges: Vec<Exchange> = Vec::new();
    loop {
        let requests = source.requests(target, &exchanges, &context);
        look.cut_short = !requests.is_empty() && exchanges.len() >= REQUESTS_MAX;
        if requests.is_empty() || look.cut_short {
            break;
        }
        for request in requests {
            let sent = clock.now();
            let answer = fetch.fetch(&request, &Validators::default(), &limits, clock).await;
            let result = answer.and_then(|answer| match answer {
                Answer::Full(response, _) => Ok(response),
                Answer::NotModified => {
                    Err(Failure::new(FailureClass::Malformed, "304 to a request that was not conditional"))
                }
            });
            if let Ok(response) = &result {
                look.status = Some(response.status);
                look.bytes += response.body.len();
            }
            look.requests += 1;
            exchanges.push(Exchange { request, result, sent, ended: clock.now() });
        }
    }
    look.took_ms = (clock.now() - began).as_ms();
    let silent = |words: &str| redact(words, &exchanges);
    // Where nothing was answered, there is nothing to understand.
    let unanswered = exchanges.iter().find_map(|exchange| exchange.result.as_ref().err());
    let unanswered = unanswered.filter(|_| exchanges.iter().all(|exchange| exchange.result.is_err()));
    let observation =
        unanswered.map_or_else(|| source.normalize(target, &exchanges, &context), |why| Err(why.clone()));
    let observation =
        observation.map_err(|failure| Failure { message: silent(&failure.message), ..failure })?;
    look.records = observation.records.len();
    // What is missing because it was not asked for is nobody's fault.
    let expected = |code| look.cut_short && source.says_of_a_part().contains(&code);
    let warnings = observation.warnings.iter().filter(|warning| !expected(warning.code));
    look.warnings = warnings.map(|w| format!("{}: {}", w.code, silent(&w.detail))).collect();
    look.warnings.extend(source.outlook(&exchanges));
    Ok(observation.targets.into_iter().flatten().next())
}
