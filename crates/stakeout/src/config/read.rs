//! From text to [`Config`], with errors that name the line, the key and a way out.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::{Config, SinkConfig, SourceConfig};
use crate::suggest::{instead, quoted};

/// A configuration that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", self.place())]
pub struct ConfigError {
    /// The file.
    pub file: String,
    /// The line, where one is to blame.
    pub line: Option<usize>,
    /// What was expected, what was found, what to do.
    pub message: String,
}

impl ConfigError {
    fn new(file: &str, line: Option<usize>, message: impl Into<String>) -> ConfigError {
        ConfigError { file: file.to_owned(), line, message: message.into() }
    }

    pub(super) fn unreadable(file: &str, kind: std::io::ErrorKind, said: &str) -> ConfigError {
        let message = match kind {
            std::io::ErrorKind::NotFound => {
                "there is no such file: create it (stakeout.example.toml shows every setting), or name another with --config"
                    .to_owned()
            }
            _ => format!("cannot be read: {said}"),
        };
        ConfigError::new(file, None, message)
    }

    fn place(&self) -> String {
        match self.line {
            Some(line) => format!("{}:{line}: ", self.file),
            None => format!("{}: ", self.file),
        }
    }
}

/// The kinds of sources, as the configuration names them.
pub(super) const KINDS: &[&str] = &["json", "racing", "fpv", "tables"];
/// The kinds of sinks, as the configuration names them.
const SINK_KINDS: &[&str] = &["nats", "webhook", "http", "mail"];

/// Reads a configuration. Sources and sinks are read one by one: an enum read by its tag would lose the lines.
pub(super) fn read(file: &str, text: &str) -> Result<Config, ConfigError> {
    let document = DeTable::parse(text).map_err(|error| {
        let message = format!("not valid TOML: {}", error.message());
        ConfigError::new(file, error.span().map(|span| line_at(text, &span)), message)
    })?;
    let reader = Reader { file, text };
    let span = document.span();
    let mut table = document.into_inner();
    let (sources, sinks) = (table.remove("source"), table.remove("sink"));
    let mut config: Config = reader.typed(Spanned::new(span, DeValue::Table(table)), &[])?;
    for (name, kind, rest) in reader.by_kind("source", KINDS, sources)? {
        let source = reader.source(&name, kind, rest)?;
        config.source.insert(name, source);
    }
    for (name, kind, rest) in reader.by_kind("sink", SINK_KINDS, sinks)? {
        let sink = reader.sink(&name, kind, rest)?;
        config.sink.insert(name, sink);
    }
    Ok(config)
}

/// A table of its kind: its name, its kind, and what else it says.
type OfKind<'a> = (String, &'static str, Spanned<DeValue<'a>>);

/// An error at a key of the file, on its line if it is there, else on that of the nearest table around it.
pub(super) fn at_key(file: &str, text: &str, path: &[&str], message: &str) -> ConfigError {
    let line = line_of(text, path);
    let (tables, key) = path.split_at(path.len().saturating_sub(1));
    ConfigError::new(file, line, format!("{}{}: {message}", section(tables), key.join("")))
}

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
}

impl Reader<'_> {
    fn at(&self, span: &Range<usize>, message: &str) -> ConfigError {
        ConfigError::new(self.file, Some(line_at(self.text, span)), message)
    }

    /// The tables `[source.NAME]` or `[sink.NAME]`, each with one of these kinds.
    fn by_kind<'a>(
        &self,
        what: &str,
        kinds: &[&'static str],
        tables: Option<Spanned<DeValue<'a>>>,
    ) -> Result<Vec<OfKind<'a>>, ConfigError> {
        let Some(tables) = tables else { return Ok(Vec::new()) };
        let span = tables.span();
        let DeValue::Table(tables) = tables.into_inner() else {
            return Err(self.at(&span, &format!("`{what}` is a table of {what}s: write [{what}.NAME]")));
        };
        let named = tables.into_iter().map(|(name, table)| {
            let name = name.into_inner().into_owned();
            let (kind, rest) = self.of_kind(what, kinds, &name, table)?;
            Ok((name, kind, rest))
        });
        named.collect()
    }

    fn of_kind<'a>(
        &self,
        what: &str,
        kinds: &[&'static str],
        name: &str,
        table: Spanned<DeValue<'a>>,
    ) -> Result<(&'static str, Spanned<DeValue<'a>>), ConfigError> {
        let span = table.span();
        if !is_name(name) {
            let message = format!(
                "{what} name {name:?}: expected a small letter, then up to 31 small letters, digits, `-` or `_`"
            );
            return Err(self.at(&span, &message));
        }
        let DeValue::Table(mut table) = table.into_inner() else {
            return Err(self.at(&span, &format!("`{what}.{name}` is a table: write [{what}.{name}]")));
        };
        let Some(kind) = table.remove("kind") else {
            let message = format!("[{what}.{name}] has no `kind`: add one of {}", quoted(kinds));
            return Err(self.at(&span, &message));
        };
        let Some(found) = kind.get_ref().as_str() else {
            let message = format!("[{what}.{name}] kind: expected one of {}", quoted(kinds));
            return Err(self.at(&kind.span(), &message));
        };
        match kinds.iter().find(|known| **known == found) {
            Some(known) => Ok((known, Spanned::new(span, DeValue::Table(table)))),
            None => {
                let hint = instead(found, kinds);
                let message = format!("unknown kind `{found}` in [{what}.{name}]: {hint}");
                Err(self.at(&kind.span(), &message))
            }
        }
    }

    fn source(
        &self,
        name: &str,
        kind: &str,
        rest: Spanned<DeValue<'_>>,
    ) -> Result<SourceConfig, ConfigError> {
        let place = ["source", name];
        match kind {
            "json" => self.typed(rest, &place).map(Box::new).map(SourceConfig::Json),
            "racing" => self.typed(rest, &place).map(Box::new).map(SourceConfig::Racing),
            "fpv" => self.typed(rest, &place).map(Box::new).map(SourceConfig::Fpv),
            _ => self.typed(rest, &place).map(Box::new).map(SourceConfig::Tables),
        }
    }

    fn sink(&self, name: &str, kind: &str, rest: Spanned<DeValue<'_>>) -> Result<SinkConfig, ConfigError> {
        let place = ["sink", name];
        match kind {
            "nats" => self.typed(rest, &place).map(Box::new).map(SinkConfig::Nats),
            "webhook" => self.typed(rest, &place).map(Box::new).map(SinkConfig::Webhook),
            "http" => self.typed(rest, &place).map(Box::new).map(SinkConfig::Http),
            _ => self.typed(rest, &place).map(Box::new).map(SinkConfig::Mail),
        }
    }

    fn typed<T: DeserializeOwned>(
        &self,
        value: Spanned<DeValue<'_>>,
        base: &[&str],
    ) -> Result<T, ConfigError> {
        let whole = value.span();
        serde_path_to_error::deserialize(ValueDeserializer::from(value)).map_err(|error| {
            let keys: Vec<String> =
                error.path().iter().map(ToString::to_string).filter(|s| s != "?").collect();
            let inner = error.into_inner();
            let mut path: Vec<&str> = base.to_vec();
            path.extend(keys.iter().map(String::as_str));
            let unknown = unknown_key(inner.message());
            if let Some((key, _)) = &unknown
                && path.last() == Some(&key.as_str())
            {
                path.pop();
            }
            let message = match &unknown {
                Some((key, known)) => {
                    let known: Vec<&str> = known.iter().map(String::as_str).collect();
                    let place =
                        if path.is_empty() { "the file".to_owned() } else { format!("[{}]", path.join(".")) };
                    format!("unknown key `{key}` in {place}: {}", instead(key, &known))
                }
                None => {
                    let said = inner.message().trim_end_matches('\n');
                    let (tables, key) =
                        path.split_at(path.len().saturating_sub(1).max(base.len().min(path.len())));
                    let key = if key.is_empty() { String::new() } else { format!("{}: ", key.join(".")) };
                    format!("{}{key}{said}", section(tables))
                }
            };
            self.at(&inner.span().unwrap_or(whole), &message)
        })
    }
}

/// The unknown key and the known ones, if that is what serde complains about.
fn unknown_key(message: &str) -> Option<(String, Vec<String>)> {
    let rest = message.strip_prefix("unknown field ")?;
    let mut names = rest.split('`').skip(1).step_by(2).map(str::to_owned);
    Some((names.next()?, names.collect()))
}

fn section(tables: &[&str]) -> String {
    if tables.is_empty() { String::new() } else { format!("[{}] ", tables.join(".")) }
}

fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_lowercase())
        && name.len() <= 32
        && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_')
}

fn line_at(text: &str, span: &Range<usize>) -> usize {
    1 + text.bytes().take(span.start).filter(|byte| *byte == b'\n').count()
}

fn line_of(text: &str, path: &[&str]) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let mut line = None;
    let mut table = document.get_ref();
    for segment in path.iter().flat_map(|part| part.split('.')) {
        let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref() == segment) else { break };
        line = Some(line_at(text, &key.span()));
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => break,
        }
    }
    line
}
