//! Sessions: a browser shows its token once and is known by a cookie from then on.
//!
//! Kept in memory: after a restart people sign in again. The cookie is `HttpOnly` and `SameSite=Strict`, so no script
//! reads it and no other site sends it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{ConnectInfo, State};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::token::{chance, hash};
use super::{COOKIE, Caller, Scope, cookie};
use crate::app::App;
use crate::ask::Told;
use crate::problem::Problem;
use crate::reply::Reply;

/// How long a session lasts.
const LIFE: Duration = Duration::from_secs(12 * 3_600);
/// Sessions at once; beyond it the one that ends first is forgotten.
const SESSIONS_MAX: usize = 1_000;

/// The sessions, by the hash of their id: what is in memory is of no use to whoever reads it.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<SessionId, Session>>);

/// A session as it is known here: the hash of what its cookie says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SessionId([u8; 32]);

impl SessionId {
    pub(super) fn of(cookie: &str) -> SessionId {
        SessionId(hash(cookie))
    }
}

struct Session {
    token: String,
    ends: Instant,
}

impl Sessions {
    fn open(&self, token: String, now: Instant) -> String {
        let id = URL_SAFE_NO_PAD.encode(chance::<32>());
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, session| session.ends > now);
        if sessions.len() >= SESSIONS_MAX {
            let first = sessions.iter().min_by_key(|(_, session)| session.ends).map(|(id, _)| *id);
            first.map(|id| sessions.remove(&id));
        }
        sessions.insert(SessionId::of(&id), Session { token, ends: now + LIFE });
        id
    }

    pub(super) fn token_of(&self, id: &SessionId, now: Instant) -> Option<String> {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.get(id).filter(|session| session.ends > now).map(|session| session.token.clone())
    }

    pub(super) fn forget(&self, id: &SessionId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

/// Who asks, as the server knows them.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Session")]
pub(crate) struct SessionView {
    /// Whether this address needs a token at all.
    needs_token: bool,
    /// What the caller may do.
    scope: Option<Scope>,
}

/// A token to sign in with.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignIn {
    /// Made by `stakeout token create`.
    token: String,
}

/// Who am I? Answered to everybody, so that a page knows whether to ask for a token.
pub(crate) async fn view(
    State(app): State<App>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> Reply<SessionView> {
    let caller = app.access.caller(&headers, peer.ip()).await.ok();
    let scope = caller.map(|caller| caller.scope);
    Reply(SessionView { needs_token: app.access.needs_token(), scope })
}

/// Exchanges a token for a cookie.
pub(crate) async fn open(
    State(app): State<App>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    Told(SignIn { token }): Told<SignIn>,
) -> Result<Response, Problem> {
    let Caller { scope, token, .. } = app.access.sign_in(&token, peer.ip()).await?;
    let id = app.access.sessions.open(token.unwrap_or_default(), Instant::now());
    let view = SessionView { needs_token: app.access.needs_token(), scope: Some(scope) };
    let mut response = Reply(view).into_response();
    set_cookie(&mut response, &headers, &id, LIFE);
    Ok(response)
}

/// Signs out.
pub(crate) async fn forget(State(app): State<App>, headers: HeaderMap) -> Response {
    if let Some(id) = cookie(&headers) {
        app.access.sessions.forget(&SessionId::of(&id));
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    set_cookie(&mut response, &headers, "", Duration::ZERO);
    response
}

fn set_cookie(response: &mut Response, request: &HeaderMap, id: &str, life: Duration) {
    // Only a proxy in front of us knows whether the browser's end is encrypted; a lie makes the cookie stricter.
    let https = request.get("x-forwarded-proto").is_some_and(|proto| proto == "https");
    let secure = if https { "; Secure" } else { "" };
    let seconds = life.as_secs();
    let text = format!("{COOKIE}={id}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    let value = HeaderValue::try_from(text).expect("base64 is a valid header");
    response.headers_mut().insert(header::SET_COOKIE, value);
}
