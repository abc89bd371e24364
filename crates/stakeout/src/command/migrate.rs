//! `stakeout migrate`: from a file to a database server.

use std::process::ExitCode;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use stakeout_store::transfer::{Moved, Progress, transfer};

use crate::UsageError;
use crate::cli::MigrateArgs;
use crate::open::{Database, database};
use crate::output::{self, Table};

pub(super) async fn migrate(args: &MigrateArgs) -> Result<ExitCode> {
    let named =
        |flag: &str, url: &str| database(url).map_err(|message| UsageError(format!("{flag}: {message}")));
    let (from, to, shown) = match (named("--from", &args.from)?, named("--to", &args.to)?) {
        (Database::File(from), Database::Server { url, shown }) => (from, url, shown),
        _ => {
            let message = "expected --from sqlite:PATH and --to postgres://…: that is the only way there is";
            return Err(UsageError(message.to_owned()).into());
        }
    };
    // Shown where somebody looks; otherwise it draws nothing.
    let bar = ProgressBar::no_length().with_style(
        ProgressStyle::with_template("{msg:24} {bar:40} {percent:>3} %  {eta} left").context("a template")?,
    );
    let moved = transfer(&from, &to, |progress| show(&bar, &progress)).await;
    bar.finish_and_clear();
    let moved = moved.with_context(|| format!("nothing was moved to {shown}"))?;
    report(&moved, &shown, args.json)?;
    Ok(ExitCode::SUCCESS)
}

fn show(bar: &ProgressBar, progress: &Progress) {
    bar.set_length(progress.total);
    bar.set_position(progress.done);
    let doing = if progress.comparing { "comparing" } else { "moving" };
    bar.set_message(format!("{doing} {}", progress.table));
}

fn report(moved: &[Moved], shown: &str, as_json: bool) -> Result<()> {
    if as_json {
        let of = |m: &Moved| json!({"table": m.table, "rows": m.rows, "hash": format!("{:032x}", m.hash)});
        return output::json(&json!({"to": shown, "tables": moved.iter().map(of).collect::<Vec<_>>()}));
    }
    let mut table = Table::new(&["table", "rows", "hash"]);
    for Moved { table: name, rows, hash } in moved {
        table.row([(*name).to_owned(), rows.to_string(), format!("{hash:032x}")]);
    }
    output::line(table.render().trim_end())?;
    let rows: u64 = moved.iter().map(|moved| moved.rows).sum();
    output::line(&format!("moved {rows} rows to {shown}; counts and hashes are the same on both sides"))?;
    output::line("now set store.url, and keep the file until you are sure")
}
