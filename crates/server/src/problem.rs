//! Problems: every answer that is no success, as `application/problem+json` (RFC 9457).

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;
use stakeout_engine::EngineError;
use stakeout_store::StoreError;

/// The sorts of problems. Their names are stable: programs may rely on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    BadInput,
    NoToken,
    NotAllowed,
    NotFound,
    WrongMethod,
    WrongHost,
    TooLarge,
    TooSlow,
    WrongContentType,
    Refused,
    TooManyTries,
    Unavailable,
    Internal,
}

impl Sort {
    fn facts(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Sort::BadInput => (StatusCode::BAD_REQUEST, "bad-input", "The request is not understood"),
            Sort::NoToken => (StatusCode::UNAUTHORIZED, "no-token", "A valid token is needed"),
            Sort::NotAllowed => (StatusCode::FORBIDDEN, "not-allowed", "The token does not allow this"),
            Sort::NotFound => (StatusCode::NOT_FOUND, "not-found", "There is no such thing"),
            Sort::WrongMethod => (StatusCode::METHOD_NOT_ALLOWED, "wrong-method", "This cannot be done here"),
            Sort::WrongHost => {
                (StatusCode::MISDIRECTED_REQUEST, "wrong-host", "This server goes by another name")
            }
            Sort::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "too-large", "The request is too large"),
            Sort::TooSlow => (StatusCode::REQUEST_TIMEOUT, "too-slow", "The request takes too long"),
            Sort::WrongContentType => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "wrong-content-type", "Expected JSON")
            }
            Sort::Refused => (StatusCode::UNPROCESSABLE_ENTITY, "refused", "The value is refused"),
            Sort::TooManyTries => (StatusCode::TOO_MANY_REQUESTS, "too-many-tries", "Too many tries"),
            Sort::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "unavailable", "Not at the moment"),
            Sort::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "Something is wrong here"),
        }
    }

    pub(crate) fn status(self) -> StatusCode {
        self.facts().0
    }

    /// Whether a `Retry-After` may say when to try again.
    pub(crate) fn says_when(self) -> bool {
        matches!(self, Sort::TooManyTries | Sort::Unavailable)
    }

    pub(crate) fn title(self) -> &'static str {
        self.facts().2
    }
}

/// Why there is no answer.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    sort: Sort,
    detail: String,
    retry_after_s: Option<u64>,
}

/// What is wrong, in words and as a stable name.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(crate) struct Body {
    /// A stable name of this sort of problem: `urn:stakeout:problem:not-found`.
    #[serde(rename = "type")]
    kind: String,
    /// The sort of problem, in words.
    title: String,
    /// The HTTP status.
    status: u16,
    /// What was expected, what was found, what to do.
    detail: String,
}

impl Problem {
    pub(crate) fn new(sort: Sort, detail: impl Into<String>) -> Problem {
        Problem { sort, detail: detail.into(), retry_after_s: None }
    }

    pub(crate) fn bad_input(detail: impl Into<String>) -> Problem {
        Problem::new(Sort::BadInput, detail)
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Problem {
        Problem::new(Sort::NotFound, detail)
    }

    pub(crate) fn retry_after(mut self, seconds: u64) -> Problem {
        self.retry_after_s = Some(seconds);
        self
    }

    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, name, title) = self.sort.facts();
        let body = Body {
            kind: format!("urn:stakeout:problem:{name}"),
            title: title.to_owned(),
            status: status.as_u16(),
            detail: self.detail,
        };
        let json = serde_json::to_vec(&body).expect("plain text fields are always JSON");
        let kind = HeaderValue::from_static("application/problem+json");
        let mut response = (status, [(header::CONTENT_TYPE, kind)], json).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.sort == Sort::NoToken {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"stakeout\""));
        }
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        match error {
            StoreError::NotFound(message) => Problem::not_found(message),
            error @ StoreError::SwitchedOff(_) => Problem::new(Sort::Refused, error.to_string()),
            StoreError::Closed => {
                Problem::new(Sort::Unavailable, "the store is closed: the process is stopping")
            }
            error => {
                // What the database says may name files: that is for the log, not for whoever asks.
                tracing::error!(%error, "a request failed");
                Problem::new(Sort::Internal, "the store failed: the log says why")
            }
        }
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Problem {
        match error {
            EngineError::Store(error) => error.into(),
            EngineError::UnknownTarget(_) | EngineError::UnknownSetting { .. } => {
                Problem::not_found(error.to_string())
            }
            EngineError::Setting(refused) => Problem::new(Sort::Refused, refused.to_string()),
            EngineError::DuplicateSource(_) => Problem::new(Sort::Internal, error.to_string()),
            EngineError::Stopped => Problem::new(Sort::Unavailable, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Sort; 13] = [
        Sort::BadInput,
        Sort::NoToken,
        Sort::NotAllowed,
        Sort::NotFound,
        Sort::WrongMethod,
        Sort::WrongHost,
        Sort::TooLarge,
        Sort::TooSlow,
        Sort::WrongContentType,
        Sort::Refused,
        Sort::TooManyTries,
        Sort::Unavailable,
        Sort::Internal,
    ];

    #[test]
    fn the_guide_lists_every_type_with_its_status() {
        let guide = include_str!("../../../docs/api.md");
        for sort in ALL {
            let (status, name, _) = sort.facts();
            let line = format!("| `urn:stakeout:problem:{name}` | {} |", status.as_u16());
            assert!(guide.contains(&line), "docs/api.md: {line}");
        }
        assert_eq!(guide.matches("| `urn:stakeout:problem:").count(), ALL.len(), "and no other");
    }
}
