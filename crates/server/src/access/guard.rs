//! At the door: whose name was asked for, who asks, and what every answer tells the browser.

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};

use super::Scope;
use crate::app::App;
use crate::problem::{Problem, Sort};

/// No script or style but our own files, nothing from anywhere else, in nobody's frame.
const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
    connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

const SAFE_HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, CSP),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Adds what keeps browsers safe to every answer.
pub(crate) async fn safe_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in SAFE_HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// Turns away requests that are meant for somebody else, and changes that another site's page wants.
pub(crate) async fn watch_the_door(State(app): State<App>, request: Request, next: Next) -> Response {
    let host = host_of(&request);
    if !app.access.is_our_name(host.unwrap_or_default()) {
        let found = host.map_or_else(|| "none".to_owned(), |host| format!("{host:?}"));
        let detail = format!(
            "expected a Host of localhost or one that server.hosts names, found {found}; behind a proxy, name its host in server.hosts and set server.token = \"always\""
        );
        return Problem::new(Sort::WrongHost, detail).into_response();
    }
    let safe = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if !safe && is_cross_site(request.headers(), host.unwrap_or_default()) {
        let detail = "another site's page must not change anything here: the Origin is not this server's";
        return Problem::new(Sort::NotAllowed, detail).into_response();
    }
    next.run(request).await
}

fn host_of(request: &Request) -> Option<&str> {
    // Of an absolute request target the authority counts, as RFC 9112 has it.
    let authority = request.uri().authority().map(|authority| authority.as_str());
    authority.or_else(|| request.headers().get(header::HOST)?.to_str().ok())
}

/// Browsers say where a change comes from; programs do not.
fn is_cross_site(headers: &HeaderMap, host: &str) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    if let Some(origin) = text("origin") {
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        return authority.is_none_or(|authority| !authority.eq_ignore_ascii_case(host));
    }
    text("sec-fetch-site").is_some_and(|site| !matches!(site, "same-origin" | "none"))
}

/// What a route's guard has to know.
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) app: App,
    pub(crate) scope: Scope,
}

/// Lets those pass who may; handlers find the [`super::Caller`] among the request's extensions.
pub(crate) async fn guard(State(door): State<Door>, mut request: Request, next: Next) -> Response {
    let Some(ConnectInfo(peer)) = request.extensions().get::<ConnectInfo<SocketAddr>>().copied() else {
        return Problem::new(Sort::Internal, "the connection has no address").into_response();
    };
    match door.app.access.caller(request.headers(), peer.ip()).await {
        Ok(caller) if caller.scope >= door.scope => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Ok(caller) => {
            let detail = format!("this needs the scope {}, the token has {}", door.scope, caller.scope);
            Problem::new(Sort::NotAllowed, detail).into_response()
        }
        Err(problem) => problem.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_come_from_our_own_pages_or_from_programs() {
        for (name, value, cross) in [
            ("x-nothing", "", false),
            ("origin", "http://localhost:8484", false),
            ("origin", "http://attacker.example", true),
            ("origin", "http://localhost:9999", true),
            ("origin", "null", true),
            ("sec-fetch-site", "same-origin", false),
            ("sec-fetch-site", "none", false),
            ("sec-fetch-site", "same-site", true),
            ("sec-fetch-site", "cross-site", true),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            assert_eq!(is_cross_site(&headers, "localhost:8484"), cross, "{name}: {value}");
        }
    }
}
