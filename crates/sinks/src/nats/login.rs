//! What a broker is told of us, and with what we prove it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use serde_json::{Value as Json, json};

use super::config::Access;
use super::wire::Info;
use crate::Refused;

/// A pass, and the key it was issued for. The key is never sent: it signs what the broker asks to be signed.
pub(super) struct Credentials {
    pass: String,
    seed: String,
}

impl Credentials {
    /// From a credentials file: two lines of their own between dashes, the pass and the seed of the key, among whatever
    /// else is there.
    pub(super) fn of_file(text: &str) -> Result<Credentials, Refused> {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let is_dashed = |line: &str| line.starts_with("---") && line.ends_with("---");
        let framed = lines.windows(3).filter(|three| is_dashed(three[0]) && is_dashed(three[2]));
        // One pair of dashes may follow the other with nothing but an empty line between them.
        let mut framed = framed.map(|three| three[1].to_owned()).filter(|line| !line.is_empty());
        // What is wrong with a seed is not repeated: it might say the seed.
        let is_good = |seed: &String| KeyPair::from_seed(seed).is_ok();
        match (framed.next(), framed.next().filter(is_good)) {
            (Some(pass), Some(seed)) => Ok(Credentials { pass, seed }),
            _ => Err(Refused::new(
                "credentials",
                "expected what is in a credentials file: a JWT and an NKEY seed, each between two lines of dashes",
            )),
        }
    }

    pub(super) fn secrets(&self) -> [&str; 2] {
        [&self.pass, &self.seed]
    }

    fn signature(&self, nonce: &str) -> Result<String, String> {
        let signed = KeyPair::from_seed(&self.seed).and_then(|key| key.sign(nonce.as_bytes()));
        signed.map(|bytes| URL_SAFE_NO_PAD.encode(bytes)).map_err(|_| "nothing can be signed".to_owned())
    }
}

/// Who we are and what we understand, for a broker that introduced itself.
pub(super) fn about_us(access: &Access, broker: &Info, is_secured: bool) -> Result<Json, String> {
    let mut about = json!({
        "name": "stakeout", "lang": "rust", "version": env!("CARGO_PKG_VERSION"),
        // It may tell us later what it takes, and tells us at once where nobody listens.
        "protocol": 1, "headers": true, "no_responders": true,
        "verbose": false, "pedantic": false, "echo": false, "tls_required": is_secured,
    });
    match access {
        Access::Open => {}
        Access::Password(user, password) => {
            about["user"] = user.as_str().into();
            about["pass"] = password.as_str().into();
        }
        Access::Token(token) => about["auth_token"] = token.as_str().into(),
        Access::Credentials(credentials) => {
            about["jwt"] = credentials.pass.as_str().into();
            about["sig"] = credentials.signature(&broker.nonce)?.into();
        }
    }
    Ok(about)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: &str = "SUANQDPB2RUOE4ETUA26CNX7FUKE5ZZKFCQIIW63OX225F2CO7UEXTM7ZY";

    fn file(pass: &str, seed: &str) -> String {
        format!(
            "-----BEGIN NATS USER JWT-----\r\n{pass}\r\n------END NATS USER JWT------\r\n\r\n\
             ************************* IMPORTANT *************************\r\n\
             NKEYs are sensitive and should be treated as secrets.\r\n\r\n\
             -----BEGIN USER NKEY SEED-----\r\n{seed}\r\n------END USER NKEY SEED------\r\n"
        )
    }

    #[test]
    fn a_credentials_file_signs_what_the_broker_asks_for() {
        let bare = format!("---A---\ne.y.J\n---B---\n\n---C---\n{SEED}\n---D---");
        assert_eq!(Credentials::of_file(&bare).expect("good").secrets(), ["e.y.J", SEED]);
        let credentials = Credentials::of_file(&file("e.y.J", SEED)).expect("good");
        assert_eq!(credentials.secrets(), ["e.y.J", SEED]);
        let broker = Info { nonce: "to be signed".to_owned(), ..Info::default() };
        let about = about_us(&Access::Credentials(credentials), &broker, true).expect("signed");
        assert_eq!(about["jwt"], "e.y.J");
        let signed = URL_SAFE_NO_PAD.decode(about["sig"].as_str().expect("a signature")).expect("Base64");
        let key = KeyPair::from_seed(SEED).expect("a key");
        assert!(key.verify(b"to be signed", &signed).is_ok());
        assert!(!about.to_string().contains(SEED), "the key stays here");
    }

    #[test]
    fn what_is_no_credentials_file_is_refused_without_being_shown() {
        for text in [SEED.to_owned(), file("e.y.J", "SUSECRET"), file("", SEED), String::new()] {
            let refused = Credentials::of_file(&text).err().expect("refused");
            assert_eq!(refused.key, "credentials");
            assert!(!refused.message.contains("SU"), "{refused}");
        }
    }
}
