//! What a JSON answer says: records with their keys, or why it cannot be understood.

use serde_json::Value as Json;
use stakeout_core::{Coverage, Failure, Fingerprint, Observation, Record, Scope, Time, Value, Warning};

use super::config::Holds;
use super::reading::{KeyPart, Reading};

/// How much of a body that is not understood is shown.
const SHOWN_CHARS: usize = 40;

/// Beyond this, a number is milliseconds since 1970 and not seconds: as seconds it would be the year 5138.
const SECONDS_MAX: f64 = 1e11;

impl Reading {
    /// The observation that `body` amounts to, for the target with this key.
    pub(super) fn normalize(&self, target: &str, body: &[u8]) -> Result<Observation, Failure> {
        let mut odd = Odd::default();
        let mut document = parse(body)?;
        without_nul(&mut document, &mut odd);
        let as_of = self.as_of(&document, &mut odd);
        let found = self.records(document)?;
        let total = found.len();
        let records: Vec<Record> =
            found.into_iter().filter_map(|json| self.record(target, json, &mut odd)).collect();
        let coverage = match records.len() == total {
            true => Coverage::Complete,
            // A record that cannot be told from others may be any of them: what is missing proves nothing.
            false => Coverage::Partial(Scope::default()),
        };
        let warnings = odd.warnings(total);
        Ok(Observation { coverage, as_of, warnings, ..Observation::complete(records) })
    }

    /// The raw records, where the configuration says they are.
    fn records(&self, mut document: Json) -> Result<Vec<Json>, Failure> {
        let found = match &self.records {
            None => document,
            Some(path) => match path.get_mut(&mut document) {
                Some(found) => found.take(),
                None => {
                    return Err(Failure::malformed(format!(
                        "expected records at `{path}`, found nothing there in {}",
                        outline(&document)
                    )));
                }
            },
        };
        match found {
            Json::Array(_) if self.key.is_empty() => Err(Failure::malformed(
                "expected one record, because no `key` is configured; found an array: set `key` to what identifies a record",
            )),
            Json::Array(items) => Ok(items),
            Json::Object(_) => Ok(vec![found]),
            other if self.key.is_empty() => Ok(vec![other]),
            other => {
                let place = self.records.as_ref().map_or("the top", |path| path.as_str());
                Err(Failure::malformed(format!(
                    "expected an array or an object at {place}, found {}",
                    outline(&other)
                )))
            }
        }
    }

    fn record(&self, target: &str, mut json: Json, odd: &mut Odd) -> Option<Record> {
        let key = self.key(target, &json, odd)?;
        let group = self.group.as_ref().and_then(|path| identity(path.get(&json)?));
        for path in &self.ignore {
            path.remove(&mut json);
        }
        let values = self.fields.iter().zip(&self.kind.fields).map(|(config, field)| {
            let raw = config.path.get(&json).map_or(Value::Null, Value::from_json);
            match config.holds {
                Some(holds) => coerce(holds, raw).unwrap_or_else(|| {
                    odd.bad_field(&field.name);
                    Value::Null
                }),
                None => raw,
            }
        });
        let values = values.collect();
        let parts: Vec<&str> = key.iter().map(String::as_str).collect();
        let record = Record::new(&self.kind, &parts, values);
        Some(match group {
            Some(group) => record.in_group(Fingerprint::of(&self.group_space, &[&group])),
            None => record,
        })
    }

    fn key(&self, target: &str, json: &Json, odd: &mut Odd) -> Option<Vec<String>> {
        if self.key.is_empty() {
            return Some(vec![target.to_owned()]);
        }
        let mut key = Vec::with_capacity(self.key.len());
        for part in &self.key {
            match part {
                KeyPart::TargetId => key.push(target.to_owned()),
                KeyPart::At(path) => match path.get(json).and_then(identity) {
                    Some(text) => key.push(text),
                    None => {
                        odd.no_key(path.as_str());
                        return None;
                    }
                },
            }
        }
        Some(key)
    }

    fn as_of(&self, document: &Json, odd: &mut Odd) -> Option<Time> {
        let path = self.as_of.as_ref()?;
        let found = path.get(document).and_then(|json| instant(&Value::from_json(json)));
        if found.is_none() {
            odd.no_as_of = Some(path.to_string());
        }
        found
    }
}

/// What was odd, counted, so that a thousand bad records make one warning.
#[derive(Default)]
struct Odd {
    no_key: Option<(String, usize)>,
    bad_field: Option<(String, usize)>,
    no_as_of: Option<String>,
    nul: usize,
}

impl Odd {
    fn no_key(&mut self, path: &str) {
        self.no_key.get_or_insert_with(|| (path.to_owned(), 0)).1 += 1;
    }

    fn bad_field(&mut self, name: &str) {
        self.bad_field.get_or_insert_with(|| (name.to_owned(), 0)).1 += 1;
    }

    fn warnings(self, total: usize) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if let Some((path, count)) = self.no_key {
            let detail =
                format!("{count} of {total} records have no text or number at `{path}` and were left out");
            warnings.push(Warning { code: "no_key", detail });
        }
        if let Some((name, count)) = self.bad_field {
            let detail =
                format!("{count} values are not of their field's type, the first in `{name}`: unknown");
            warnings.push(Warning { code: "bad_field", detail });
        }
        if let Some(path) = self.no_as_of {
            warnings.push(Warning { code: "no_as_of", detail: format!("found no time at `{path}`") });
        }
        if self.nul > 0 {
            let detail = format!("{} texts have a NUL character, replaced by U+FFFD", self.nul);
            warnings.push(Warning { code: "nul", detail });
        }
        warnings
    }
}

fn parse(body: &[u8]) -> Result<Json, Failure> {
    // RFC 8259 lets a parser ignore a byte order mark, and some servers send one.
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    serde_json::from_slice(body).map_err(|error| {
        let found = match body.is_empty() {
            true => "an empty body".to_owned(),
            false => format!("{} bytes beginning {:?}", body.len(), beginning(body)),
        };
        Failure::malformed(format!("expected JSON, found {found}: {error}"))
    })
}

/// The first characters of a body, fit for a log.
fn beginning(body: &[u8]) -> String {
    let head = String::from_utf8_lossy(&body[..body.len().min(SHOWN_CHARS * 4)]);
    head.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN_CHARS).collect()
}

/// What a document looks like from afar, for messages.
fn outline(json: &Json) -> String {
    match json {
        Json::Null => "null".to_owned(),
        Json::Bool(b) => b.to_string(),
        Json::Number(n) => format!("the number {n}"),
        Json::String(s) => format!("the text {:?}", beginning(s.as_bytes())),
        Json::Array(items) => format!("an array of {}", items.len()),
        Json::Object(map) => {
            let names: Vec<String> = map.keys().take(8).map(|name| beginning(name.as_bytes())).collect();
            let more = if map.len() > names.len() { ", …" } else { "" };
            format!("an object with {}{more}", names.join(", "))
        }
    }
}

/// PostgreSQL stores no NUL, and stores must not differ.
fn without_nul(json: &mut Json, odd: &mut Odd) {
    match json {
        Json::String(text) if text.contains('\0') => {
            odd.nul += 1;
            *text = text.replace('\0', "\u{fffd}");
        }
        Json::Array(items) => items.iter_mut().for_each(|item| without_nul(item, odd)),
        Json::Object(map) => {
            if map.keys().any(|name| name.contains('\0')) {
                odd.nul += 1;
                *map =
                    std::mem::take(map).into_iter().map(|(k, v)| (k.replace('\0', "\u{fffd}"), v)).collect();
            }
            map.values_mut().for_each(|value| without_nul(value, odd));
        }
        _ => {}
    }
}

/// The text that identifies something: text that is not empty, a number, yes or no.
fn identity(json: &Json) -> Option<String> {
    match json {
        Json::String(text) if !text.is_empty() => Some(text.clone()),
        Json::Bool(b) => Some(b.to_string()),
        // Beyond 63 bits a number stays exact as long as JSON's own parser keeps it so.
        Json::Number(n) => Some(match n.as_u64() {
            Some(whole) => whole.to_string(),
            None => Value::from_json(json).to_json().to_string(),
        }),
        _ => None,
    }
}

/// The value as what its field holds; `None` when it is something else. Unknown stays unknown.
fn coerce(holds: Holds, value: Value) -> Option<Value> {
    if value.is_null() {
        return Some(value);
    }
    let number =
        || value.as_f64().or_else(|| value.as_text()?.trim().parse().ok().filter(|n: &f64| n.is_finite()));
    match (holds, &value) {
        (Holds::Bool, Value::Bool(_))
        | (Holds::Text, Value::Text(_))
        | (Holds::Int, Value::Int(_))
        | (Holds::Json, _) => Some(value),
        (Holds::Text, Value::Bool(_) | Value::Int(_) | Value::Float(_)) => {
            Some(Value::text(value.to_json().to_string()))
        }
        (Holds::Int, _) => number().map(Value::number).filter(|n| matches!(n, Value::Int(_))),
        (Holds::Float, _) => number().map(Value::number),
        (Holds::Time, _) => instant(&value).map(Value::from),
        _ => None,
    }
}

/// RFC 3339, or seconds or milliseconds since 1970.
fn instant(value: &Value) -> Option<Time> {
    match value {
        Value::Text(text) => Time::parse(text.trim()),
        _ => {
            let number = value.as_f64()?;
            let seconds = if number.abs() > SECONDS_MAX { number / 1e3 } else { number };
            // The product is exact to the microsecond for any plausible time.
            (seconds.abs() <= SECONDS_MAX).then(|| Time((seconds * 1e6).round() as i64))
        }
    }
}
