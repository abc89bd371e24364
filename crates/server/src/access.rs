//! Access: who may ask what.
//!
//! On loopback nobody needs a token unless the configuration says so, and the `Host` header is checked instead, so that
//! no web page can reach us under another name. Anywhere else a token is needed. Tokens are 256 bits of chance; the
//! store has their SHA-256. A browser exchanges one for a session with a strict cookie.

mod guard;
mod limiter;
mod session;
mod token;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use http::HeaderMap;
use http::header::{AUTHORIZATION, COOKIE as COOKIE_HEADER};
use stakeout_store::Store;

use crate::problem::{Problem, Sort};

pub(crate) use guard::{Door, guard, safe_headers, watch_the_door};
pub(crate) use session::{SessionView, SignIn, forget, open, view};
pub use token::{NewToken, Scope, UnknownScope};

use limiter::Limiter;
use session::{SessionId, Sessions};

/// The name of the session's cookie.
pub(crate) const COOKIE: &str = "stakeout_session";

/// When a token is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenPolicy {
    /// Everywhere but on loopback.
    #[default]
    OffLoopback,
    /// Always.
    Always,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) scope: Scope,
    /// The token that vouches for them; `None` where none is needed.
    pub(crate) token: Option<String>,
    /// The session they come with, if they do.
    pub(crate) session: Option<SessionId>,
}

/// Who may ask what.
pub(crate) struct Access {
    store: Arc<dyn Store>,
    needs_token: bool,
    /// Names that the `Host` header may have; `None` when any will do.
    hosts: Option<Vec<String>>,
    sessions: Sessions,
    limiter: Limiter,
}

impl Access {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        address: SocketAddr,
        policy: TokenPolicy,
        more_hosts: &[String],
    ) -> Access {
        let loopback = address.ip().is_loopback();
        let hosts = (loopback || !more_hosts.is_empty()).then(|| {
            let ours = ["localhost".to_owned(), "127.0.0.1".to_owned(), "[::1]".to_owned()];
            let own = match address.ip() {
                IpAddr::V4(ip) => ip.to_string(),
                IpAddr::V6(ip) => format!("[{ip}]"),
            };
            ours.into_iter().chain([own]).chain(more_hosts.iter().map(|host| host.to_lowercase())).collect()
        });
        Access {
            store,
            needs_token: !loopback || policy == TokenPolicy::Always,
            hosts,
            sessions: Sessions::default(),
            limiter: Limiter::default(),
        }
    }

    /// Whether somebody without a token is turned away.
    pub(crate) fn needs_token(&self) -> bool {
        self.needs_token
    }

    /// Whether a `Host` header names us.
    pub(crate) fn is_our_name(&self, host: &str) -> bool {
        let Some(hosts) = &self.hosts else { return true };
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => host,
        };
        let name = name.trim_end_matches('.').to_lowercase();
        hosts.contains(&name)
    }

    /// Who asks, by the headers of the request.
    pub(crate) async fn caller(&self, headers: &HeaderMap, peer: IpAddr) -> Result<Caller, Problem> {
        if let Some(value) = headers.get(AUTHORIZATION) {
            let token = value.to_str().ok().and_then(|text| {
                let (scheme, token) = text.split_once(' ')?;
                scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
            });
            return match token {
                Some(token) => self.bearer(token, peer).await,
                None => Err(Problem::new(Sort::NoToken, "expected Authorization: Bearer TOKEN")),
            };
        }
        if let Some(id) = cookie(headers) {
            let session = SessionId::of(&id);
            // Asked of the store each time: a revoked token ends its sessions at once.
            if let Some(caller) = self.in_session(session).await? {
                return Ok(caller);
            }
            self.sessions.forget(&session);
        }
        if self.needs_token {
            let detail = "this address answers only with a token: send Authorization: Bearer TOKEN, made by `stakeout token create`";
            return Err(Problem::new(Sort::NoToken, detail));
        }
        Ok(Caller { scope: Scope::Admin, token: None, session: None })
    }

    /// The caller that a token stands for. Whoever has a right one is let in, whatever others behind the same address
    /// do; the wrong ones are counted and soon answered with patience.
    async fn bearer(&self, token: &str, peer: IpAddr) -> Result<Caller, Problem> {
        match self.known(token).await? {
            Some(caller) => Ok(caller),
            None => Err(self.wait(peer, Instant::now()).err().unwrap_or_else(wrong_token)),
        }
    }

    /// The same for somebody who signs in: tries are limited, those that are under way included.
    pub(crate) async fn sign_in(&self, token: &str, peer: IpAddr) -> Result<Caller, Problem> {
        let began = Instant::now();
        self.wait(peer, began)?;
        let caller = self.known(token).await?.ok_or_else(wrong_token)?;
        self.limiter.forgive(peer, began);
        Ok(caller)
    }

    /// Counts a try, or refuses it.
    fn wait(&self, peer: IpAddr, now: Instant) -> Result<(), Problem> {
        self.limiter.try_once(peer, now).map_err(|wait_s| {
            let detail = format!("too many wrong tokens from this address: try again in {wait_s} s");
            Problem::new(Sort::TooManyTries, detail).retry_after(wait_s)
        })
    }

    /// The caller that a token stands for, if it is one of ours.
    async fn known(&self, token: &str) -> Result<Option<Caller>, Problem> {
        let Some((id, secret)) = token::parse(token) else { return Ok(None) };
        let row = self.store.token(id).await?;
        let row = row.filter(|row| row.revoked.is_none() && token::matches(secret, &row.hash));
        Ok(row.and_then(|row| {
            Some(Caller { scope: row.scope.parse().ok()?, token: Some(row.id), session: None })
        }))
    }

    /// The caller of a session, while it lasts and its token is not revoked.
    async fn in_session(&self, session: SessionId) -> Result<Option<Caller>, Problem> {
        let Some(token) = self.sessions.token_of(&session, Instant::now()) else { return Ok(None) };
        let caller = self.behind(&token).await?;
        Ok(caller.map(|caller| Caller { session: Some(session), ..caller }))
    }

    /// Whether somebody may still do what they were let in for: a revoked token and a session that is over end it.
    pub(crate) async fn is_welcome(&self, caller: &Caller) -> Result<bool, Problem> {
        Ok(match (&caller.session, &caller.token) {
            (Some(session), _) => self.in_session(*session).await?.is_some(),
            (None, Some(token)) => self.behind(token).await?.is_some(),
            (None, None) => true,
        })
    }

    /// The caller behind a token's id, while it is not revoked.
    async fn behind(&self, token: &str) -> Result<Option<Caller>, Problem> {
        let row = self.store.token(token).await?.filter(|row| row.revoked.is_none());
        Ok(row.and_then(|row| {
            Some(Caller { scope: row.scope.parse().ok()?, token: Some(row.id), session: None })
        }))
    }
}

fn wrong_token() -> Problem {
    Problem::new(Sort::NoToken, "this token is unknown or revoked")
}

/// The session's id in the request's cookies.
fn cookie(headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get_all(COOKIE_HEADER).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).map(|(_, value)| value.to_owned())
}

#[cfg(test)]
mod tests {
    use stakeout_store::sqlite::SqliteStore;

    use super::*;

    fn access(address: &str, hosts: &[&str]) -> Access {
        let store = Arc::new(SqliteStore::in_memory().expect("store"));
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        Access::new(store, address.parse().expect("an address"), TokenPolicy::OffLoopback, &hosts)
    }

    #[test]
    fn on_loopback_only_our_own_names_are_answered() {
        let ours = access("127.0.0.1:8484", &["Stakeout.Example.org"]);
        for (host, known) in [
            ("127.0.0.1:8484", true),
            ("localhost:8484", true),
            ("LOCALHOST", true),
            ("localhost.", true),
            ("[::1]:8484", true),
            ("stakeout.example.org", true),
            ("rebound.attacker.example:8484", false),
            ("127.0.0.1.attacker.example", false),
            ("", false),
        ] {
            assert_eq!(ours.is_our_name(host), known, "{host}");
        }
        assert!(access("0.0.0.0:8484", &[]).is_our_name("anything"));
        assert!(!access("0.0.0.0:8484", &["a.example"]).is_our_name("b.example"));
    }

    #[test]
    fn a_token_is_needed_off_loopback() {
        assert!(!access("127.0.0.1:1", &[]).needs_token());
        assert!(!access("[::1]:1", &[]).needs_token());
        assert!(access("0.0.0.0:1", &[]).needs_token());
        assert!(access("192.168.1.2:1", &[]).needs_token());
    }
}
