//! What is answered: JSON with an `ETag`, pages with the way to the next one.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Method, StatusCode, Uri, header};
use schemars::JsonSchema;
use serde::Serialize;
use stakeout_core::ContentHash;

/// JSON with an `ETag` over its bytes.
pub(crate) struct Reply<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Reply<T> {
    fn into_response(self) -> Response {
        let json = match serde_json::to_vec(&self.0) {
            Ok(json) => json,
            Err(error) => {
                tracing::error!(%error, "an answer is no JSON");
                return StatusCode::INTERNAL_SERVER_ERROR.into_response();
            }
        };
        // Weak, because compression changes the bytes and not what they say.
        let tag = format!("W/\"{}\"", ContentHash::of_bytes(&json));
        let headers = [
            (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (header::ETAG, HeaderValue::try_from(tag).expect("hex digits are a valid header")),
            // Kept only by whoever asked, and asked again before it is used.
            (header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
        ];
        (headers, json).into_response()
    }
}

/// A page of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Page<T> {
    /// What is on it.
    pub(crate) items: Vec<T>,
    /// Where the next page is, relative to this server; null on the last one.
    pub(crate) next: Option<String>,
}

impl<T> Page<T> {
    /// A page; the next one is the same question with `parameter` set to `cursor`.
    pub(crate) fn new(items: Vec<T>, uri: &Uri, parameter: &str, cursor: Option<String>) -> Page<T> {
        Page { items, next: cursor.map(|cursor| with_parameter(uri, parameter, &cursor)) }
    }
}

/// A list as it is, with the way to the next part in the `Link` header.
pub(crate) struct Listed<T> {
    items: Vec<T>,
    next: Option<String>,
}

impl<T> Listed<T> {
    /// A part of a list; the next one is the same question with `parameter` set to `cursor`.
    pub(crate) fn new(items: Vec<T>, uri: &Uri, parameter: &str, cursor: Option<String>) -> Listed<T> {
        Listed { items, next: cursor.map(|cursor| with_parameter(uri, parameter, &cursor)) }
    }
}

impl<T: Serialize> IntoResponse for Listed<T> {
    fn into_response(self) -> Response {
        linked(Reply(self.items).into_response(), self.next.as_deref())
    }
}

/// A value as it is written in a query string.
pub(crate) fn percent(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// The same URL with one parameter of its query set to something else.
pub(crate) fn with_parameter(uri: &Uri, parameter: &str, value: &str) -> String {
    let query = uri.query().unwrap_or_default();
    let others = query
        .split('&')
        .filter(|pair| !pair.is_empty() && pair.split('=').next().is_some_and(|name| name != parameter));
    let pairs: Vec<&str> = others.collect();
    let mut text = format!("{}?", uri.path());
    for pair in pairs {
        text.push_str(pair);
        text.push('&');
    }
    text.push_str(&format!("{parameter}={value}"));
    text
}

impl<T: Serialize> IntoResponse for Page<T> {
    fn into_response(self) -> Response {
        linked(Reply(&self).into_response(), self.next.as_deref())
    }
}

/// With the way to the next part, where there is one.
pub(crate) fn linked(mut response: Response, next: Option<&str>) -> Response {
    let link = next.and_then(|next| HeaderValue::try_from(format!("<{next}>; rel=\"next\"")).ok());
    if let Some(link) = link {
        response.headers_mut().insert(header::LINK, link);
    }
    response
}

/// Answers 304 to whoever has it already.
pub(crate) async fn not_modified(request: Request, next: Next) -> Response {
    let asks = matches!(*request.method(), Method::GET | Method::HEAD);
    let known = request.headers().get(header::IF_NONE_MATCH).cloned();
    let response = next.run(request).await;
    let Some(known) = known.filter(|_| asks && response.status() == StatusCode::OK) else { return response };
    let Some(tag) = response.headers().get(header::ETAG) else { return response };
    if !matches(&known, tag) {
        return response;
    }
    let mut headers = response.headers().clone();
    headers.remove(header::CONTENT_TYPE);
    headers.remove(header::CONTENT_LENGTH);
    (StatusCode::NOT_MODIFIED, headers).into_response()
}

/// Weak comparison, as RFC 9110 has it for `If-None-Match`.
fn matches(known: &HeaderValue, tag: &HeaderValue) -> bool {
    let (Ok(known), Ok(tag)) = (known.to_str(), tag.to_str()) else { return false };
    let bare = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    known.split(',').any(|one| one.trim() == "*" || bare(one) == bare(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_the_same_question_with_another_cursor() {
        for (uri, next) in [
            ("/v1/events", "/v1/events?after=7"),
            ("/v1/events?after=3", "/v1/events?after=7"),
            ("/v1/events?source=a%2Fb&after=3&limit=2", "/v1/events?source=a%2Fb&limit=2&after=7"),
        ] {
            assert_eq!(with_parameter(&Uri::from_static(uri), "after", "7"), next);
        }
    }

    #[test]
    fn tags_are_compared_weakly() {
        let tag = HeaderValue::from_static("W/\"a\"");
        for (known, same) in
            [("W/\"a\"", true), ("\"a\"", true), ("\"b\", W/\"a\"", true), ("*", true), ("\"b\"", false)]
        {
            assert_eq!(matches(&HeaderValue::from_static(known), &tag), same, "{known}");
        }
    }
}
