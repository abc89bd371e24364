//! The dashboard's files, carried in the binary; in debug builds they are read from `web/`, so that an edit shows at
//! once.

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Method, header};
use rust_embed::RustEmbed;
use stakeout_core::ContentHash;

use crate::problem::{Problem, Sort};

#[derive(RustEmbed)]
#[folder = "../../web/"]
struct Files;

/// A file of the dashboard; its pages are all made by the first one, so a path that is no file is answered with it.
pub(crate) async fn serve(request: Request) -> Response {
    let path = request.uri().path();
    if path.starts_with("/v1/") || !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Problem::not_found(format!("there is nothing at {path}: /v1/openapi.json lists what is"))
            .into_response();
    }
    let name = path.trim_start_matches('/');
    let is_page = !name.rsplit('/').next().unwrap_or_default().contains('.');
    let name = if is_page { "index.html" } else { name };
    // What is said to whoever works on them is not part of the pages.
    match Files::get(name).filter(|_| !name.ends_with(".md")) {
        Some(file) => answer(name, &file.data),
        None => Problem::not_found(format!("there is no file {path}")).into_response(),
    }
}

fn answer(name: &str, data: &[u8]) -> Response {
    let kind = match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "json" | "webmanifest" => "application/json",
        _ => "application/octet-stream",
    };
    let tag = HeaderValue::try_from(format!("W/\"{}\"", ContentHash::of_bytes(data)));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::ETAG, tag.expect("hex digits are a valid header")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, data.to_vec()).into_response()
}

/// A method that is not meant for a path.
pub(crate) async fn wrong_method(request: Request) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path());
    Problem::new(
        Sort::WrongMethod,
        format!("{method} cannot be done at {path}: /v1/openapi.json says what can"),
    )
    .into_response()
}
