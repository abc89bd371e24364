//! Tokens: `stk_ID_SECRET`. The id may be shown; of the secret only a hash is kept.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use stakeout_core::Time;
use stakeout_store::TokenRow;
use subtle::ConstantTimeEq;

/// What a token begins with, so that it is recognised where it should not be.
const PREFIX: &str = "stk_";
const ID_BYTES: usize = 6;
const SECRET_BYTES: usize = 32;

/// What a token allows; each allows what the ones before it do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// To read everything.
    Read,
    /// To switch, poll and re-plan targets.
    Operate,
    /// To change settings.
    Admin,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scope::Read => "read",
            Scope::Operate => "operate",
            Scope::Admin => "admin",
        })
    }
}

/// A scope that does not exist.
#[derive(Debug, thiserror::Error)]
#[error("expected read, operate or admin, found {0:?}")]
pub struct UnknownScope(String);

impl FromStr for Scope {
    type Err = UnknownScope;
    fn from_str(text: &str) -> Result<Scope, UnknownScope> {
        let all = [Scope::Read, Scope::Operate, Scope::Admin];
        all.into_iter().find(|scope| scope.to_string() == text).ok_or_else(|| UnknownScope(text.to_owned()))
    }
}

/// A token that was just made.
pub struct NewToken {
    /// The token itself: shown once, kept nowhere.
    pub text: String,
    /// What is kept.
    pub row: TokenRow,
}

impl NewToken {
    /// Draws a token.
    pub fn draw(name: &str, scope: Scope, now: Time) -> NewToken {
        let (id, secret) = (chance::<ID_BYTES>(), chance::<SECRET_BYTES>());
        // Hex, because base64 has underscores of its own.
        let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let secret = URL_SAFE_NO_PAD.encode(secret);
        let row = TokenRow {
            id: id.clone(),
            name: name.to_owned(),
            scope: scope.to_string(),
            hash: hash(&secret),
            created: now,
            revoked: None,
        };
        NewToken { text: format!("{PREFIX}{id}_{secret}"), row }
    }
}

/// The id and the secret of a token's text.
pub(super) fn parse(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix(PREFIX)?.split_once('_')
}

/// Whether a secret is the one that was hashed; takes the same time wherever they differ.
pub(super) fn matches(secret: &str, known: &[u8; 32]) -> bool {
    hash(secret).ct_eq(known).into()
}

/// Plain SHA-256: a secret of 256 random bits cannot be guessed, however fast the hash is.
pub(super) fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// Random bytes from the system.
pub(super) fn chance<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system always has random bytes, or nothing can be trusted");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_recognised_by_its_hash_alone() {
        let token = NewToken::draw("grafana", Scope::Read, Time(0));
        let (id, secret) = parse(&token.text).expect("well-formed");
        assert_eq!(id, token.row.id);
        assert!(matches(secret, &token.row.hash));
        assert!(!matches(&secret[1..], &token.row.hash));
        assert!(!matches("", &token.row.hash));
        let other = NewToken::draw("grafana", Scope::Read, Time(0));
        assert_ne!((&token.text, token.row.hash), (&other.text, other.row.hash));
    }

    #[test]
    fn scopes_contain_each_other() {
        assert!(Scope::Admin > Scope::Operate && Scope::Operate > Scope::Read);
        assert_eq!("operate".parse::<Scope>().expect("known"), Scope::Operate);
        assert!("root".parse::<Scope>().is_err());
    }
}
