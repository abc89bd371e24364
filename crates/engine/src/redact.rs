//! Redact: whatever secret went out with a request must not come back into logs, rows, samples or messages.
//!
//! Upstreams like to repeat what they were sent: a whole header, only the key inside it, or either of them as a text in
//! a JSON document. Whoever quotes an answer may have cut it off in the middle of a secret.

use std::collections::BTreeSet;

use stakeout_core::{Exchange, Request};

/// Shorter values are words like `json` or `gzip`, not secrets.
const SHORTEST_SECRET: usize = 6;
/// So much of a secret's beginning is taken for the secret itself, cut off…
const CUT_LEAST: usize = 8;
/// …and so much of it where a quotation ends with it.
const QUOTED_LEAST: usize = 3;
/// What stands in its place.
const MARK: &str = "[redacted]";
/// Headers that say nothing secret; the beginnings of their values are the beginnings of many other words.
const PLAIN: [&str; 7] =
    ["accept", "accept-encoding", "accept-language", "content-type", "origin", "referer", "user-agent"];

/// The words without any secret that the requests carried, in whichever form.
pub fn redact(words: &str, exchanges: &[Exchange]) -> String {
    let mut secrets: BTreeSet<Secret> = BTreeSet::new();
    // The pages of one poll carry the same headers.
    let mut before: Option<&Request> = None;
    for Exchange { request, .. } in exchanges {
        if before.is_none_or(|before| before.headers != request.headers || before.url != request.url) {
            carried(request, &mut secrets);
        }
        before = Some(request);
    }
    let mut words = words.to_owned();
    // The longest first: what is whole should go whole.
    for secret in secrets.iter().rev() {
        for form in forms(&secret.text) {
            words = hidden(words, &form, secret.may_be_cut);
            for cut in (QUOTED_LEAST..CUT_LEAST).filter(|_| secret.may_be_cut) {
                words = match form.get(..cut) {
                    Some(beginning) => words.replace(&format!("{beginning}\""), &format!("{MARK}\"")),
                    None => words,
                };
            }
        }
    }
    words
}

/// Something that a request carried. In order of length.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Secret {
    bytes: usize,
    text: String,
    /// Whether its beginning alone gives it away.
    may_be_cut: bool,
}

fn carried(request: &Request, secrets: &mut BTreeSet<Secret>) {
    let mut add = |text: &str, may_be_cut: bool| {
        if text.len() >= SHORTEST_SECRET {
            secrets.insert(Secret { bytes: text.len(), text: text.to_owned(), may_be_cut });
        }
    };
    for (name, value) in &request.headers {
        let plain = PLAIN.iter().any(|plain| name.eq_ignore_ascii_case(plain));
        let parts = if plain { Vec::new() } else { parts(value) };
        // Where a scheme or a name stands in front, that beginning is no secret.
        add(value, !plain && parts.is_empty());
        parts.iter().for_each(|part| add(part, true));
    }
    let query = request.url.split_once('?').map_or("", |(_, query)| query);
    for (_, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        add(value, true);
        add(&percent_decoded(value), true);
    }
}

/// What is secret inside a header's value: `Bearer TOKEN`, `Scheme key="KEY"`, `session=ID; other=ID`.
fn parts(value: &str) -> Vec<&str> {
    let after_scheme = value.split_once(' ').map(|(_, rest)| rest.trim());
    let quoted = value.split('"').skip(1).step_by(2);
    let named = value.split([' ', ',', ';']).filter_map(|part| part.split_once('=')).map(|(_, part)| part);
    let named = named.map(|part| part.trim_matches('"'));
    let mut parts: Vec<&str> = quoted.chain(named).filter(|part| part.len() >= SHORTEST_SECRET).collect();
    if parts.is_empty() {
        parts.extend(after_scheme);
    }
    parts
}

/// How a text is written where it is quoted: bare, in a JSON document, in a JSON document that is quoted itself, in a URL.
fn forms(text: &str) -> BTreeSet<String> {
    let slashed = escaped(text).replace('/', "\\/");
    let once = escaped(text);
    let quoted = [escaped(&once), escaped(&slashed)];
    [text.to_owned(), once, slashed, percent_encoded(text)].into_iter().chain(quoted).collect()
}

/// As it stands between the quotes of a JSON text.
fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}

fn percent_encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    let written = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(written).collect()
}

fn percent_decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let code = part.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(code.unwrap_or(b'%'));
        bytes.extend(part.get(2..).filter(|_| code.is_some()).unwrap_or(part).bytes());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hidden(words: String, secret: &str, may_be_cut: bool) -> String {
    let head = secret.get(..CUT_LEAST).filter(|_| may_be_cut).unwrap_or(secret);
    if !words.contains(head) {
        return words;
    }
    let mut hidden = String::with_capacity(words.len());
    let mut rest = words.as_str();
    while let Some(at) = rest.find(head) {
        hidden.push_str(&rest[..at]);
        hidden.push_str(MARK);
        let found = &rest[at..];
        let same = found.chars().zip(secret.chars()).take_while(|(one, other)| one == other);
        rest = &found[same.map(|(c, _)| c.len_utf8()).sum::<usize>()..];
    }
    hidden.push_str(rest);
    hidden
}

#[cfg(test)]
mod tests {
    use super::*;
    use stakeout_core::{Failure, FailureClass, Time};

    fn sent(headers: &[(&str, &str)], url: &str) -> Vec<Exchange> {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let request = Request { headers, ..Request::get(url) };
        let result = Err(Failure::new(FailureClass::Timeout, "late"));
        vec![Exchange { request, result, sent: Time(0), ended: Time(1) }]
    }

    fn check(header: &str, words: &str, expected: &str) {
        let sent = sent(&[("Authorization", header)], "http://a/");
        assert_eq!(redact(words, &sent), expected, "{header}");
    }

    #[test]
    fn a_secret_is_hidden_whole_in_part_and_in_every_form() {
        let resy = "ResyAPI api_key=\"k3y/s3cret\"";
        check(resy, "bad ResyAPI api_key=\"k3y/s3cret\".", "bad [redacted].");
        check(resy, "no such key k3y/s3cret", "no such key [redacted]");
        check(resy, r#"{"got":"ResyAPI api_key=\"k3y/s3cret\""}"#, r#"{"got":"[redacted]"}"#);
        check(resy, r#"{"got":"k3y\/s3cret"}"#, r#"{"got":"[redacted]"}"#);
        check(resy, &format!("{:?}", r#"{"got":"k3y\/s3cret"}"#), r#""{\"got\":\"[redacted]\"}""#);
        check(resy, "/login?key=k3y%2Fs3cret", "/login?key=[redacted]");
        check("Bearer tok-7f3a9c55d1", "token tok-7f3a9c55d1 expired", "token [redacted] expired");
        check("session=abcdef123; user=somebody", "abcdef123 of somebody", "[redacted] of [redacted]");
        check("ResyAPI api_key=\"one, two; three\"", "key one, two; three", "key [redacted]");
    }

    #[test]
    fn a_secret_that_was_cut_off_is_hidden_too() {
        check("Bearer tok-7f3a9c55d1", "found \"Bearer tok-7f3a9c", "found \"Bearer [redacted]");
        check("Bearer tok-7f3a9c55d1", "found \"Bearer tok-7\": EOF", "found \"Bearer [redacted]\": EOF");
        check("Bearer tok-7f3a9c55d1", "a Bearer token is expected", "a Bearer token is expected");
        check("ResyAPI api_key=\"k3y-s3cret\"", "expected ResyAPI api_key", "expected ResyAPI api_key");
    }

    #[test]
    fn queries_are_hidden_and_plain_words_are_not() {
        let sent = sent(
            &[("Accept", "application/json"), ("Origin", "https://resy.com")],
            "http://a/?key=a%2Fsecret&n=1",
        );
        let shown = redact("https://login.example says a/secret or a%2Fsecret, application/xml, 1", &sent);
        assert_eq!(shown, "https://login.example says [redacted] or [redacted], application/xml, 1");
    }
}
