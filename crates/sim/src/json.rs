//! Writing JSON straight into a string: a simulated day renders thousands of bodies, and most of each is constant.

use std::fmt::{Display, Write};

use stakeout_core::Time;

/// An object being written. [`end`](Object::end) closes it.
pub(crate) struct Object<'a> {
    out: &'a mut String,
    empty: bool,
}

impl<'a> Object<'a> {
    pub(crate) fn begin(out: &'a mut String) -> Object<'a> {
        out.push('{');
        Object { out, empty: true }
    }

    /// The object whose first fields are already written, its brace still open.
    pub(crate) fn resume(out: &'a mut String) -> Object<'a> {
        Object { out, empty: false }
    }

    pub(crate) fn end(self) {
        self.out.push('}');
    }

    /// Writes the key and hands out the string for the value.
    pub(crate) fn key(&mut self, key: &str) -> &mut String {
        if !self.empty {
            self.out.push(',');
        }
        self.empty = false;
        self.out.push('"');
        self.out.push_str(key);
        self.out.push_str("\":");
        self.out
    }

    pub(crate) fn text(&mut self, key: &str, value: &str) -> &mut Self {
        text(self.key(key), value);
        self
    }

    pub(crate) fn number(&mut self, key: &str, value: u64) -> &mut Self {
        whole(self.key(key), value);
        self
    }

    pub(crate) fn flag(&mut self, key: &str, value: bool) -> &mut Self {
        self.raw(key, if value { "true" } else { "false" })
    }

    /// Anything whose `Display` is JSON. What stands in a body a hundred times is a number or a flag.
    pub(crate) fn bare(&mut self, key: &str, value: impl Display) -> &mut Self {
        put(self.key(key), format_args!("{value}"));
        self
    }

    pub(crate) fn raw(&mut self, key: &str, json: &str) -> &mut Self {
        self.key(key).push_str(json);
        self
    }

    /// Fields that are already JSON, keys and all.
    pub(crate) fn fields(&mut self, json: &str) -> &mut Self {
        if !self.empty {
            self.out.push(',');
        }
        self.empty = false;
        self.out.push_str(json);
        self
    }

    pub(crate) fn hundredths(&mut self, key: &str, value: u64) -> &mut Self {
        hundredths(self.key(key), value);
        self
    }
}

/// A list of what `each` writes.
pub(crate) fn list<I: IntoIterator>(out: &mut String, items: I, mut each: impl FnMut(&mut String, I::Item)) {
    out.push('[');
    for (n, item) in items.into_iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        each(out, item);
    }
    out.push(']');
}

pub(crate) fn put(out: &mut String, what: std::fmt::Arguments<'_>) {
    out.write_fmt(what).expect("writing to a string cannot fail");
}

pub(crate) fn text(out: &mut String, value: &str) {
    out.push('"');
    // Looked at to the end even when one is found: so it is done for many bytes at a time.
    let plain = value.bytes().fold(true, |plain, b| plain & (b >= b' ') & (b != b'"') & (b != b'\\'));
    if plain {
        out.push_str(value);
        return out.push('"');
    }
    for c in value.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => put(out, format_args!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Cents as the upstream writes dollars: the shortest decimal, whole ones without a point.
pub(crate) fn hundredths(out: &mut String, value: u64) {
    whole(out, value / 100);
    match (value / 10 % 10, value % 10) {
        (0, 0) => {}
        (tenths, 0) => out.extend(['.', digit(tenths)]),
        (tenths, rest) => out.extend(['.', digit(tenths), digit(rest)]),
    }
}

/// A whole number. Most of a body's changing bytes are prices: the formatting machinery would take longer than all else.
fn whole(out: &mut String, value: u64) {
    if value >= 10 {
        whole(out, value / 10);
    }
    out.push(digit(value % 10));
}

fn digit(n: u64) -> char {
    char::from(b'0' + n as u8)
}

/// RFC 3339 with nanoseconds, trailing zeros cut as the upstream does; `ns` are those below the microsecond.
pub(crate) fn nano_time(at: Time, ns: u32) -> String {
    let all_ns = i128::from(at.us()) * 1_000 + i128::from(ns % 1_000);
    jiff::Timestamp::from_nanosecond(all_ns).map_or_else(|_| at.to_string(), |ts| ts.to_string())
}

/// RFC 3339 in whole seconds.
pub(crate) fn second_time(at: Time) -> String {
    jiff::Timestamp::from_second(at.us().div_euclid(1_000_000))
        .map_or_else(|_| at.to_string(), |ts| ts.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_look_as_the_upstream_writes_them() {
        let mut out = String::new();
        let mut object = Object::begin(&mut out);
        object.hundredths("a", 500).hundredths("b", 180).hundredths("c", 165).hundredths("d", 705);
        object.text("e", "say \"hi\"\n").bare("f", true).flag("g", false).number("h", 1_070);
        object.end();
        assert_eq!(
            out,
            r#"{"a":5,"b":1.8,"c":1.65,"d":7.05,"e":"say \"hi\"\u000a","f":true,"g":false,"h":1070}"#
        );
    }

    #[test]
    fn times_keep_their_nanoseconds_and_drop_trailing_zeros() {
        let at = Time::parse("2026-01-10T02:00:00.123456Z").expect("valid");
        assert_eq!(nano_time(at, 789), "2026-01-10T02:00:00.123456789Z");
        assert_eq!(nano_time(at, 780), "2026-01-10T02:00:00.12345678Z");
        assert_eq!(second_time(at), "2026-01-10T02:00:00Z");
    }
}
