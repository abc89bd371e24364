//! What is asked: query strings and bodies, strictly read. What is not understood is refused, with a word about it.

use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use http::header::CONTENT_TYPE;
use http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use stakeout_core::{Fingerprint, Time};

use crate::app::App;
use crate::problem::{Problem, Sort};

/// The largest body of a request.
pub(crate) const BODY_BYTES_MAX: usize = 64 << 10;

/// The most things on a page, and how many there are unless asked.
pub(crate) const PAGE_MAX: u32 = 1_000;
pub(crate) const PAGE_DEFAULT: u32 = 100;

/// The query string.
pub(crate) struct Asked<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<App> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Asked<T>, Problem> {
        let Query(query) = Query::<T>::try_from_uri(&parts.uri).map_err(|rejected| {
            let said = rejected.body_text();
            let said = said.strip_prefix("Failed to deserialize query string: ").unwrap_or(&said).to_owned();
            Problem::bad_input(format!("the query is not understood: {said}"))
        })?;
        Ok(Asked(query))
    }
}

/// A JSON body.
pub(crate) struct Told<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for Told<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Told<T>, Problem> {
        let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let mime = content_type.map(|text| text.split(';').next().unwrap_or_default().trim());
        // Also what keeps other sites' forms out: they cannot send JSON without asking first.
        if !mime.is_some_and(|mime| mime.eq_ignore_ascii_case("application/json")) {
            let found = content_type.unwrap_or("none");
            let detail = format!("expected Content-Type: application/json, found {found}");
            return Err(Problem::new(Sort::WrongContentType, detail));
        }
        let body = axum::body::to_bytes(request.into_body(), BODY_BYTES_MAX);
        let body = tokio::time::timeout(app.body_wait, body).await.map_err(|_| {
            let detail =
                format!("expected the whole body within {} ms: send it at once", app.body_wait.as_millis());
            Problem::new(Sort::TooSlow, detail)
        })?;
        let body = body.map_err(|_| {
            Problem::new(
                Sort::TooLarge,
                format!("the body is longer than {BODY_BYTES_MAX} bytes, or broke off"),
            )
        })?;
        let mut json = serde_json::Deserializer::from_slice(&body);
        let told = serde_path_to_error::deserialize(&mut json)
            .map_err(|error| Problem::bad_input(format!("the body is not understood: {error}")))?;
        json.end().map_err(|error| Problem::bad_input(format!("the body is not understood: {error}")))?;
        Ok(Told(told))
    }
}

/// A path's parts, decoded.
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &App) -> Result<Path<T>, Problem> {
        let path = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        path.map(|axum::extract::Path(path)| Path(path)).map_err(|rejected| {
            Problem::bad_input(format!("the path is not understood: {}", rejected.body_text()))
        })
    }
}

/// A moment in a query string.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct When(pub(crate) Time);

/// A fingerprint as people write it.
pub(crate) fn print(text: &str) -> Result<Fingerprint, Problem> {
    Fingerprint::parse(text)
        .ok_or_else(|| Problem::bad_input(format!("expected a fingerprint of 32 hex digits, found {text:?}")))
}

/// How many things are wanted on a page.
pub(crate) fn page_size(limit: Option<u32>) -> Result<u32, Problem> {
    match limit {
        None => Ok(PAGE_DEFAULT),
        Some(n) if (1..=PAGE_MAX).contains(&n) => Ok(n),
        Some(n) => Err(Problem::bad_input(format!("limit: expected 1 to {PAGE_MAX}, found {n}"))),
    }
}
