//! Where secrets come from: the environment and files, once, at start.

use std::collections::BTreeMap;
use std::path::Path;

use stakeout_sources::written::Secret;

/// The largest secret file: a key, not a document.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// The outside world, as far as secrets are concerned.
#[derive(Clone, Debug)]
pub enum Secrets {
    /// The process's own environment.
    Environment,
    /// Only these variables, for tests.
    Only(BTreeMap<String, String>),
}

impl Secrets {
    /// The value of a variable, if it is set.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        match self {
            Secrets::Environment => std::env::var(name).ok(),
            Secrets::Only(variables) => variables.get(name).cloned(),
        }
    }

    /// The text itself; the error says where it was looked for, never what was found.
    pub(super) fn resolve(&self, secret: &Secret) -> Result<String, String> {
        match secret {
            Secret::Text(text) => Ok(text.clone()),
            Secret::Env(name) => match self.variable(name) {
                Some(value) if !value.is_empty() => Ok(value),
                Some(_) => {
                    Err(format!("the environment variable {name} is empty: set it, or correct its name"))
                }
                None => {
                    Err(format!("the environment variable {name} is not set: set it, or correct its name"))
                }
            },
            Secret::File(path) => from_file(path),
        }
    }
}

fn from_file(path: &str) -> Result<String, String> {
    let cannot = |error: std::io::Error| format!("the secret file {path} cannot be read: {error}");
    let bytes = std::fs::metadata(Path::new(path)).map_err(cannot)?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(format!("the secret file {path} has {bytes} bytes: expected at most {FILE_BYTES_MAX}"));
    }
    let text = std::fs::read_to_string(path).map_err(cannot)?;
    let text = text.trim_end_matches(['\n', '\r']);
    if text.is_empty() { Err(format!("the secret file {path} is empty")) } else { Ok(text.to_owned()) }
}
