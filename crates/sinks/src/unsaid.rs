//! What a receiver may have been told and must not be quoted with.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;

/// What stands in place of a secret.
const REDACTED: &str = "[redacted]";

/// The secrets of a conversation, as they may come back in an answer.
#[derive(Default)]
pub(crate) struct Unsaid(Vec<String>);

impl Unsaid {
    /// These: as they are, in Base64 and as JSON writes them.
    pub(crate) fn of<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Unsaid {
        let forms = |secret: &str| {
            let quoted = Json::from(secret).to_string();
            [secret.to_owned(), STANDARD.encode(secret), quoted[1..quoted.len() - 1].to_owned()]
        };
        let mut all: Vec<String> = secrets.into_iter().flat_map(forms).collect();
        all.retain(|secret| !secret.is_empty());
        // The longest first: one of them may be a part of another.
        all.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        all.dedup();
        Unsaid(all)
    }

    /// A user's name and password: also together, as SMTP sends them.
    pub(crate) fn of_login(user: &str, password: &str) -> Unsaid {
        let together = format!("\0{user}\0{password}");
        Unsaid::of([user, password].into_iter().chain((together.len() > 2).then_some(together.as_str())))
    }

    /// The same words without the secrets, however they are capitalised.
    pub(crate) fn in_words(&self, words: &str) -> String {
        let mut words = words.to_owned();
        for secret in &self.0 {
            let mut rest = words.as_str();
            let mut left = String::new();
            while let Some(at) = rest.to_ascii_lowercase().find(&secret.to_ascii_lowercase()) {
                left.push_str(&rest[..at]);
                left.push_str(REDACTED);
                rest = &rest[at + secret.len()..];
            }
            left.push_str(rest);
            words = left;
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_form_of_a_secret_is_repeated() {
        let unsaid = Unsaid::of_login("anna", "anna-horse");
        let together = STANDARD.encode("\0anna\0anna-horse");
        let coded = ["anna", "anna-horse"].map(|secret| STANDARD.encode(secret));
        for said in ["anna", "ANNA-horse", &together, &coded[0], &coded[1]] {
            assert_eq!(unsaid.in_words(&format!("535 {said}: no")), "535 [redacted]: no");
        }
        assert_eq!(unsaid.in_words("anna, ünd anna"), "[redacted], ünd [redacted]");
        assert_eq!(Unsaid::default().in_words("550 no such user"), "550 no such user");
        assert_eq!(Unsaid::of_login("", "").in_words("as it was"), "as it was");
        let token = Unsaid::of([r#"to"k\en"#]);
        for said in [r#"to"k\en"#, r#"to\"k\\en"#, "dG8ia1xlbg=="] {
            assert_eq!(token.in_words(&format!("-ERR {said}")), "-ERR [redacted]");
        }
    }
}
