use super::*;

fn error(text: &str) -> String {
    let secrets = Secrets::Only(BTreeMap::new());
    match Loaded::from_text("stakeout.toml", text).and_then(|loaded| loaded.sources(&secrets)) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn source(lines: &str) -> String {
    format!("[source.shop]\nkind = \"json\"\nurl = \"https://example.org/\"\n{lines}\n")
}

#[test]
fn an_empty_file_is_a_whole_configuration() {
    let loaded = Loaded::from_text("stakeout.toml", "").expect("valid");
    assert_eq!(loaded.config.store.url, "sqlite:stakeout.db");
    assert_eq!(loaded.config.retention.events, Duration(Span::hours(24 * 90)));
    assert!(loaded.config.source.is_empty());
    let error = loaded.some_sources(&Secrets::Environment).err().expect("nothing to watch");
    assert!(error.to_string().contains("add a [source.NAME] table"), "{error}");
}

#[test]
fn what_is_wrong_is_named_with_its_line_and_a_way_out() {
    for (text, expected) in [
        ("[store\n", "stakeout.toml:1: not valid TOML: unclosed table, expected `]`"),
        ("\n[stroe]\nurl = \"x\"", "stakeout.toml:2: unknown key `stroe` in the file: did you mean `store`?"),
        ("[store]\npath = \"x\"", "stakeout.toml:2: unknown key `path` in [store]: known are `url`"),
        (
            "[engine]\nlease = 30",
            "stakeout.toml:2: [engine] lease: invalid type: integer `30`, expected a duration with its unit in quotes, such as \"250ms\", \"5s\", \"2min\" or \"1h30m\"",
        ),
        ("[engine]\n\nlease = \"1ms\"", "stakeout.toml:3: [engine] lease: expected 1 s to 1 h, found 1 ms"),
        (
            "[log]\nformat = \"xml\"",
            "stakeout.toml:2: [log] format: unknown variant `xml`, expected `text` or `json`",
        ),
        ("source = 3", "stakeout.toml:1: `source` is a table of sources: write [source.NAME]"),
        (
            "[source.Shop]\nkind = \"json\"",
            "stakeout.toml:1: source name \"Shop\": expected a small letter, then up to 31 small letters, digits, `-` or `_`",
        ),
        (
            "[source.shop]\nurl = \"x\"",
            "stakeout.toml:1: [source.shop] has no `kind`: add one of `json`, `racing`, `fpv`, `tables`",
        ),
        (
            "[source.shop]\nkind = \"jsn\"",
            "stakeout.toml:2: unknown kind `jsn` in [source.shop]: did you mean `json`?",
        ),
        ("[source.shop]\nkind = \"json\"", "stakeout.toml:1: [source.shop] missing field `url`"),
        (
            &source("evry = \"5s\""),
            "stakeout.toml:4: unknown key `evry` in [source.shop]: did you mean `every`?",
        ),
        (
            &source("every = \"5\""),
            "stakeout.toml:4: [source.shop] every: invalid value: string \"5\", expected a duration with its unit in quotes, such as \"250ms\", \"5s\", \"2min\" or \"1h30m\"",
        ),
        (
            &source("limits.concurency = 2"),
            "stakeout.toml:4: unknown key `concurency` in [source.shop.limits]: did you mean `concurrency`?",
        ),
        (
            &source("[source.shop.limits]\nburst = 0"),
            "stakeout.toml:5: [source.shop.limits] burst: expected 1 to 100000",
        ),
        (
            &source("fields = { price = { pth = \"x\" } }"),
            "stakeout.toml:4: unknown key `pth` in [source.shop.fields.price]: did you mean `path`?",
        ),
        (
            &source("headers.x-key = { env = \"NO_SUCH_KEY\" }"),
            "stakeout.toml:4: [source.shop.headers] x-key: the environment variable NO_SUCH_KEY is not set: set it, or correct its name",
        ),
        (
            &source("headers.x-key = { file = \"no-such-file\" }"),
            "stakeout.toml:4: [source.shop.headers] x-key: the secret file no-such-file cannot be read: No such file or directory (os error 2)",
        ),
        (
            &source("headers.x-key = { env = \"A\", file = \"b\" }"),
            "stakeout.toml:4: [source.shop.headers] x-key: expected exactly one of `env` and `file`: { env = \"VARIABLE\" } or { file = \"path\" }",
        ),
        (
            "[source.nz]\nkind = \"racing\"",
            "stakeout.toml:1: [source.nz] from: the environment variable NZTAB_FROM is not set: set it, or correct its name",
        ),
        (
            "[source.nz]\nkind = \"racing\"\ncadance = \"tight\"",
            "stakeout.toml:3: unknown key `cadance` in [source.nz]: did you mean `cadence`?",
        ),
        ("[source.track]\nkind = \"fpv\"", "stakeout.toml:1: [source.track] missing field `url`"),
        (
            "[source.track]\nkind = \"fpv\"\nurl = \"trackside.local:8080\"",
            "stakeout.toml:3: [source.track] url: expected an absolute URL without a query, such as \"http://trackside.local:8080\"",
        ),
        (
            "[source.track]\nkind = \"fpv\"\nurl = \"http://trackside.local:8080\"\n[source.track.scheduler]\nburst = 0",
            "stakeout.toml:5: [source.track.scheduler] burst: give a whole number from 1 to 10000, found 0",
        ),
        (
            "[source.track]\nkind = \"fpv\"\nurl = \"http://trackside.local:8080\"\n[source.track.scheduler]\nraceActive = 9",
            "stakeout.toml:5: unknown key `raceActive` in [source.track.scheduler]: did you mean `raceActiveMs`?",
        ),
        (
            "[source.a]\nkind = \"fpv\"\nurl = \"http://a:8080\"\n[source.b]\nkind = \"fpv\"\nurl = \"http://b:8080\"",
            "stakeout.toml:5: [source.b] kind: one Stakeout watches one FPVTrackside, and source `a` is one already: both would publish race/currentOrder. Run a second Stakeout with a configuration and a database of its own",
        ),
        (
            &source(
                "[source.zoo]\nkind = \"json\"\nurl = \"https://example.org/\"\nfields = [\"a\"]\ncollection = \"shop\"",
            ),
            "stakeout.toml:8: [source.zoo] collection: the SQL view `json_shop` would be another than that of source `shop`: give one of them another `collection`",
        ),
    ] {
        assert_eq!(error(text), expected, "{text}");
    }
    let missing = Loaded::from_file(Path::new("no-such.toml")).expect_err("missing").to_string();
    assert!(missing.starts_with("no-such.toml: there is no such file: create it"), "{missing}");
}

#[test]
fn a_sink_that_cannot_be_is_refused_at_its_key() {
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let hook = |lines: &str| {
        format!(
            "[sink.hook]\nkind = \"webhook\"\nurl = \"https://example.org/\"\nsecret = \"{secret}\"\n{lines}\n"
        )
    };
    let chat =
        |lines: &str| format!("[sink.chat]\nkind = \"http\"\nurl = \"https://example.org/\"\n{lines}\n");
    let mut others = Vec::new();
    for (text, expected) in [
        (
            "[sink.x]\nkind = \"webhok\"".to_owned(),
            "stakeout.toml:2: unknown kind `webhok` in [sink.x]: did you mean `webhook`?",
        ),
        (
            "[sink.x]\nkind = \"exec\"".to_owned(),
            "stakeout.toml:2: unknown kind `exec` in [sink.x]: known are `nats`, `webhook`, `http`, `mail`",
        ),
        ("[sink.X]\nkind = \"nats\"".to_owned(), "stakeout.toml:1: sink name \"X\": expected a small letter, then up to 31 small letters, digits, `-` or `_`"),
        (hook("timout = \"3s\""), "stakeout.toml:5: unknown key `timout` in [sink.hook]: did you mean `timeout`?"),
        (hook("timeout = \"1h\""), "stakeout.toml:5: [sink.hook] timeout: expected 100 ms to 1 min, found 1 h"),
        (hook("concurrency = 0"), "stakeout.toml:5: [sink.hook] concurrency: expected 1 to 32, found 0"),
        (
            hook("events = [\"race*\"]"),
            "stakeout.toml:5: [sink.hook] events: expected a type such as alert.raised, racing.* or *, found \"race*\"",
        ),
        (
            hook("previous_secret = { env = \"NO_SUCH_KEY\" }"),
            "stakeout.toml:5: [sink.hook] previous_secret: the environment variable NO_SUCH_KEY is not set: set it, or correct its name",
        ),
        (
            hook("").replace("https://example.org/", "http://hooks.internal/secret-path"),
            "stakeout.toml:3: [sink.hook] url: expected https://…; allow = [\"hooks.internal\"] permits http:// there",
        ),
        (
            hook("").replace("example.org", "169.254.169.254"),
            "stakeout.toml:3: [sink.hook] url: 169.254.169.254 is at 169.254.169.254, which is link-local, where clouds keep their metadata: allow = [\"169.254.169.254\"] permits it",
        ),
        (
            hook("").replace(secret, "hunter2"),
            "stakeout.toml:4: [sink.hook] secret: expected whsec_ and the Base64 of 24 to 64 random bytes, such as `echo whsec_$(head -c 32 /dev/urandom | base64)` prints",
        ),
        (chat(""), "stakeout.toml:1: [sink.chat] missing field `body`"),
        (
            chat("body = '{\"text\": \"{titel}\"}'"),
            "stakeout.toml:4: [sink.chat] body: unknown {titel}: known are {title}, {text}, {severity}, {type}, {id}, {at}, {source}, {subject} and {data.…} with a path into the payload",
        ),
        (
            chat("body = 'x'\ncontent_type = 'text/plain'\nheaders.x-key = \"a\\u0001\""),
            "stakeout.toml:6: [sink.chat] headers.x-key: expected visible ASCII; it is not shown here",
        ),
        (
            "[sink.m]\nkind = \"mail\"\nhost = \"127.0.0.1\"\nfrom = \"a@example.org\"\nto = [\"b@example.org\"]".to_owned(),
            "stakeout.toml:3: [sink.m] host: 127.0.0.1 is at 127.0.0.1, which is loopback: allow = [\"127.0.0.1\"] permits it",
        ),
    ] {
        let loaded = Loaded::from_text("stakeout.toml", &text);
        let sinks = loaded.and_then(|loaded| loaded.sinks(&Secrets::Only(BTreeMap::new())));
        let error = sinks.err().map(|error| error.to_string());
        if error.as_deref() != Some(expected) {
            others.push((text, expected, error));
        }
    }
    assert!(others.is_empty(), "{others:#?}");
}

#[test]
fn secrets_come_from_the_environment_and_from_files() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("key");
    std::fs::write(&file, "from-file\n").expect("written");
    let text = source(&format!(
        "headers = {{ a = \"plain\", b = {{ env = \"TOKEN\" }}, c = {{ file = {:?} }} }}",
        file.display().to_string()
    ));
    let loaded = Loaded::from_text("stakeout.toml", &text).expect("valid");
    let secrets = Secrets::Only(BTreeMap::from([("TOKEN".to_owned(), "from-env".to_owned())]));
    let Wired { sources, .. } = loaded.sources(&secrets).expect("resolved");
    let facts = stakeout_core::Facts::default();
    let now = stakeout_core::Time(0);
    let context = stakeout_core::PollContext { now, facts: &facts };
    let requests = sources[0].requests(&sources[0].roots(now)[0], &[], &context);
    let values: Vec<&str> = requests[0].headers.iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(values, ["plain", "from-env", "from-file", "application/json"]);
    // Nothing that people may see shows them.
    let shown = format!("{:?} {:?}", requests[0], loaded.config);
    assert!(
        !shown.contains("from-env") && !shown.contains("from-file") && !shown.contains("plain"),
        "{shown}"
    );
}

#[test]
fn a_cadence_beyond_the_limit_is_warned_about() {
    let text = source("every = \"100ms\"");
    let loaded = Loaded::from_text("stakeout.toml", &text).expect("valid");
    let Wired { warnings, .. } = loaded.sources(&Secrets::Environment).expect("sources");
    assert!(
        warnings[0].starts_with("source shop asks for 10.0 requests per second, its limit is 5"),
        "{warnings:?}"
    );
}

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[test]
fn the_published_schema_is_the_present_one() {
    let path = format!("{REPOSITORY}/schemas/stakeout.schema.json");
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, schema()).expect("written");
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        published == schema(),
        "run the tests once with UPDATE_SCHEMA=1 to renew schemas/stakeout.schema.json"
    );
}

#[test]
fn the_example_works_and_shows_every_key() {
    let text = std::fs::read_to_string(format!("{REPOSITORY}/stakeout.example.toml")).expect("the example");
    let secrets = Secrets::Only(BTreeMap::new());
    let loaded = Loaded::from_text("stakeout.example.toml", &text).expect("valid as it is");
    assert_eq!(loaded.sources(&secrets).expect("works without any secret").sources.len(), 2);
    // With everything switched on as well: `#name = …` and `#[table]` are settings, `# words` are words.
    let all: Vec<&str> = text
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(setting) if setting.starts_with(|c: char| c.is_ascii_lowercase() || c == '[') => setting,
            _ => line,
        })
        .collect();
    let all = all.join("\n");
    let loaded = Loaded::from_text("stakeout.example.toml", &all).expect("valid with everything");
    assert_eq!(loaded.config.source.len(), 7);
    assert_eq!(loaded.alerts().expect("each can ring").written().len(), 9);
    let example: serde_json::Value = toml::from_str(&all).expect("TOML");
    assert_eq!(example_is_complete(&example), std::collections::BTreeSet::new());
}

#[test]
fn a_rule_about_events_that_nobody_tells_is_pointed_out() {
    let untold = |more: &str| {
        let text = format!(
            "[source.shop]\nkind = \"json\"\nurl = \"https://example.org/\"\n\
             [alert.a]\nwhen = {{ on = \"event\", type = \"json.chnaged\" }}\n\
             [alert.b]\nwhen = {{ on = \"event\", type = \"json.*\" }}\n{more}"
        );
        let loaded = Loaded::from_text("stakeout.toml", &text).expect("valid");
        let made = loaded.sources(&Secrets::Only(BTreeMap::new()));
        loaded.untold(&made.map_or(Vec::new(), |wired| wired.sources))
    };
    assert_eq!(untold(""), ["alert a waits for \"json.chnaged\", which no source tells"]);
    let unknown = "[source.nz]\nkind = \"racing\"\n";
    assert!(untold(unknown).is_empty(), "of a source that cannot be made here nobody knows what it tells");
}

fn racing(variables: &[(&str, &str)], lines: &str) -> Result<Wired, ConfigError> {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let text = format!("[source.nz]\nkind = \"racing\"\n{lines}\n");
    Loaded::from_text("stakeout.toml", &text)?.sources(&Secrets::Only(variables.collect()))
}

const WHO: [(&str, &str); 3] =
    [("NZTAB_FROM", "ops@example.org"), ("NZTAB_PARTNER", "Example"), ("NZTAB_PARTNER_ID", "example-1")];

#[test]
fn a_racing_source_needs_to_know_who_asks_and_nothing_else() {
    let wired = racing(&WHO, "").expect("the kind and the environment are enough");
    assert_eq!((wired.sources[0].name(), wired.sources[0].family()), ("nz", "racing"));
    let refused = |variables: &[(&str, &str)], lines: &str| {
        racing(variables, lines).err().expect("refused").to_string()
    };
    for (missing, (variable, _)) in WHO.iter().enumerate() {
        let others: Vec<(&str, &str)> =
            WHO.iter().enumerate().filter(|(i, _)| *i != missing).map(|(_, pair)| *pair).collect();
        let error = refused(&others, "");
        assert!(error.contains(&format!("the environment variable {variable} is not set")), "{error}");
        for bad in ["hunter2\u{7}", "hunter2 \u{e9}"] {
            let error = refused(&[&others[..], &[(*variable, bad)]].concat(), "");
            assert!(error.contains(&format!("the environment variable {variable} is malformed")), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
    let error = refused(&[&WHO[1..], &[("NZTAB_FROM", "hunter2")]].concat(), "");
    let expected = "stakeout.toml:1: [source.nz] from: the environment variable NZTAB_FROM is malformed: expected an e-mail address such as \"ops@example.org\", found something else";
    assert_eq!(error, expected);
    let error = refused(&WHO, "[source.nz.limits]\nburst = 0");
    assert_eq!(error, "stakeout.toml:4: [source.nz.limits] burst: give a whole number from 1 to 100000");
}

#[test]
fn the_environment_example_names_what_the_sources_demand() {
    let text = std::fs::read_to_string(format!("{REPOSITORY}/.env.example")).expect("the example");
    let mut shown = std::collections::BTreeSet::new();
    let mut explained = false;
    for line in text.lines() {
        match line.split_once('=') {
            Some((name, value)) if !line.starts_with('#') => {
                assert!(explained && value.is_empty(), "{name}: a comment above, no value to ship");
                shown.insert(name.to_owned());
                explained = false;
            }
            _ => explained = line.starts_with('#'),
        }
    }
    // Each kind with nothing but what it must be given.
    let mut demanded = std::collections::BTreeSet::new();
    for kind in read::KINDS {
        let has_address = matches!(*kind, "racing" | "tables");
        let required = if has_address { "" } else { "url = \"https://example.org/\"" };
        let text = format!("[source.x]\nkind = \"{kind}\"\n{required}\n");
        let loaded = Loaded::from_text("stakeout.toml", &text).expect("the defaults");
        for (_, secret) in loaded.config.source["x"].secrets() {
            if let Secret::Env(name) = secret {
                demanded.insert(name.clone());
            }
        }
    }
    assert_eq!(shown, demanded);
}

#[test]
fn slots_that_are_gone_are_not_forgotten_before_they_may_be_new_again() {
    let variables = [("RESY_API_KEY", "key"), ("RESY_AUTH_TOKEN", "token")];
    let secrets = Secrets::Only(variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    let tables = |lines: &str| {
        let text = format!("{lines}[source.nyc]\nkind = \"tables\"\nseen_ttl = \"7d\"\n");
        Loaded::from_text("stakeout.toml", &text)?.sources(&secrets)
    };
    assert!(tables("").is_ok() && tables("[retention]\ngone = \"7d\"\n").is_ok());
    let refused = tables("[retention]\ngone = \"1d\"\n").err().expect("refused").to_string();
    assert!(refused.contains("[source.nyc] seen_ttl: expected at most retention.gone"), "{refused}");
}
