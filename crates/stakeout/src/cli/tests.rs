use clap::CommandFactory;

use super::*;

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn commands_parse() {
    for good in [
        "run",
        "run --speed 10 -v",
        "demo",
        "demo --speed 60 --listen 127.0.0.1:8080 --data there",
        "poll --limit 5s --json",
        "check --offline",
        "targets",
        "targets --source x",
        "targets list --json",
        "targets poll-now a/b/c",
        "why a/b",
        "events -f --type json. --after 3",
        "history s k key --stream h",
        "history one-thing --plot",
        "settings",
        "settings set source.a.every_ms 5",
        "settings set source.a.every_ms -3",
        "settings unset x",
        "try racing --file event.json --json",
        "try fpv --dir capture",
        "try fpv --dir capture --zone Europe/Berlin --json",
        "try fpv --dir capture --overlay",
        "try tables --file now.json --previous before.json --json",
        "plan tables --venues 2722 --budget 120/min --json",
        "plan tables --source nyc --venues 2722 --venues boston=700",
        "tables rebaseline 2026-02-28_20:30",
        "tables rebaseline --all",
        "simulate racing",
        "simulate racing --races 3 --seed 7 --full --faults 0.01 --cadence tight --json",
        "simulate fpv",
        "simulate fpv --races 12 --seed 7 --faults 0.01 --json",
        "simulate tables",
        "simulate tables --days 3 --seed 1 --budget 60/min --venues 20 --faults 0.01 --outages 4 --json",
        "schema",
        "plan racing --start 2026-01-10T02:00:00Z --cadence tight",
        "plan racing --start 2026-01-10T02:00:00Z --retimed 2026-01-10T01:00:00Z=2026-01-10T02:05:00Z --json",
        "-c other.toml --store sqlite:x.db version",
    ] {
        let words = std::iter::once("stakeout").chain(good.split(' '));
        assert!(Cli::try_parse_from(words).is_ok(), "{good}");
    }
    for bad in [
        "",
        "runn",
        "run --speed 0",
        "poll --limit 5",
        "demo --speed 0",
        "demo --listen here",
        "targets enable",
        "why",
        "run -v -q",
        "settings set x",
        "plan racing",
        "history",
        "history a b c d",
        "history a --plot --json",
        "try",
        "try racing",
        "try dogs --file x",
        "try fpv",
        "try fpv --dir capture --json --overlay",
        "simulate racing --races 0",
        "simulate racing --faults 2",
        "simulate fpv --races 0",
        "simulate tables --budget 60",
        "simulate tables --days 0",
        "plan racing --start noon",
        "plan racing --start 2026-01-10T02:00:00Z --retimed 2026-01-10T01:00:00Z",
    ] {
        let words = std::iter::once("stakeout").chain(bad.split(' ').filter(|w| !w.is_empty()));
        assert!(Cli::try_parse_from(words).is_err(), "{bad}");
    }
}
