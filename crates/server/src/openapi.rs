//! The description of the interface: OpenAPI 3.1, made of the routes.
//!
//! Written here instead of taking a crate for it: the schemas come from `schemars`, which describes the configuration
//! file, too, and what is left is this file.

use axum::extract::State;
use http::Method;
use schemars::Schema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value as Json, json};

use crate::app::App;
use crate::problem::{Body as ProblemBody, Sort};
use crate::reply::Reply;
use crate::route::{Answer, Content, EVENT_STREAM, Route};

/// The description.
pub(crate) async fn serve(State(app): State<App>) -> Reply<Json> {
    Reply((*app.description).clone())
}

/// Describes these routes.
pub(crate) fn describe(routes: &[Route]) -> Json {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        })
        .for_serialize()
        .into_generator();
    generator.subschema_for::<ProblemBody>();
    let mut paths = Map::new();
    for route in routes {
        let operation = operation(route, &mut generator);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation;
    }
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Stakeout",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Watches systems that have no webhooks. Times are RFC 3339 in UTC, durations are in \
                the unit their name ends in, fingerprints are 32 hex digits.",
            "license": { "name": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {
                    "type": "http", "scheme": "bearer",
                    "description": "Made by `stakeout token create`. Not needed on loopback unless the \
                        configuration asks for it.",
                },
                "session": { "type": "apiKey", "in": "cookie", "name": crate::access::COOKIE },
            },
        },
    })
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Json {
    let mut operation = json!({
        "operationId": operation_id(route),
        "tags": [route.tag],
        "summary": route.summary,
        "responses": responses(route, generator),
    });
    let parameters = path_parameters(route).chain(query_parameters(route)).chain(header_parameters(route));
    let parameters: Vec<Json> = parameters.collect();
    if !parameters.is_empty() {
        operation["parameters"] = Json::Array(parameters);
    }
    if let Some(body) = &route.body {
        let content = json!({ "application/json": { "schema": body } });
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    if let Some(scope) = route.scope {
        operation["description"] = json!(format!("Needs the scope `{scope}`."));
        operation["security"] = json!([{}, { "token": [] }, { "session": [] }]);
    } else {
        operation["security"] = json!([]);
    }
    operation
}

/// `get_v1_targets_source_key`
fn operation_id(route: &Route) -> String {
    let words = route.path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let method = route.method.as_str().to_ascii_lowercase();
    std::iter::once(method.as_str()).chain(words).collect::<Vec<_>>().join("_")
}

fn path_parameters(route: &Route) -> impl Iterator<Item = Json> {
    route.in_path.iter().map(|(name, what)| {
        let schema = match *name {
            "record" => json!({ "type": "string", "pattern": "^[0-9a-f]{32}$" }),
            "seq" => json!({ "type": "integer", "minimum": 0 }),
            _ => json!({ "type": "string", "minLength": 1 }),
        };
        json!({ "name": name, "in": "path", "required": true, "description": what, "schema": schema })
    })
}

fn query_parameters(route: &Route) -> impl Iterator<Item = Json> {
    let schema = route.query.as_ref().map(Schema::as_value);
    let required: Vec<&Json> = schema
        .and_then(|schema| schema["required"].as_array())
        .map(|names| names.iter().collect())
        .unwrap_or_default();
    let properties = schema.and_then(|schema| schema["properties"].as_object());
    properties.into_iter().flatten().map(move |(name, property)| {
        let mut schema = property.clone();
        let what = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        not_null(&mut schema);
        let mut parameter = json!({ "name": name, "in": "query", "schema": schema });
        parameter["required"] = json!(required.iter().any(|required| required.as_str() == Some(name)));
        if let Some(what) = what {
            parameter["description"] = what;
        }
        parameter
    })
}

/// What may be said in a header: what is known already, or how far a stream was read.
fn header_parameters(route: &Route) -> impl Iterator<Item = Json> {
    let mut told = Vec::new();
    if route.answers.iter().any(|answer| is_tagged(route, answer)) {
        told.push(("If-None-Match", json!({ "type": "string" }), "The `ETag` of the answer that you have."));
    }
    if route.answers.iter().any(|answer| matches!(answer.content, Content::Text(EVENT_STREAM))) {
        let seq = json!({ "type": "integer", "minimum": 0 });
        told.push(("Last-Event-ID", seq, "The last `id` that was read; the stream goes on after it."));
    }
    told.into_iter().map(|(name, schema, what)| {
        json!({ "name": name, "in": "header", "required": false, "description": what, "schema": schema })
    })
}

/// Whether an answer carries an `ETag`: every JSON that is read does.
fn is_tagged(route: &Route, answer: &Answer) -> bool {
    matches!(answer.content, Content::Json(_)) && route.method == Method::GET
}

/// The headers of an answer that somebody relies on.
fn headers(route: &Route, answer: &Answer) -> Map<String, Json> {
    let mut headers = Map::new();
    if is_tagged(route, answer) {
        headers.insert("ETag".to_owned(), header("What `If-None-Match` is compared with.", "string"));
    }
    if answer.in_parts {
        let what =
            "`<URL>; rel=\"next\"`: where the next part is, relative to this server; none on the last one.";
        headers.insert("Link".to_owned(), header(what, "string"));
    }
    headers
}

fn header(what: &str, sort: &str) -> Json {
    json!({ "description": what, "schema": { "type": sort } })
}

/// What may be left out of a query is optional there, never null.
fn not_null(schema: &mut Json) {
    if let Some(types) = schema["type"].as_array_mut() {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            schema["type"] = only.clone();
        }
    } else if schema["type"].is_null()
        && let Some(object) = schema.as_object_mut()
    {
        object.remove("type");
    }
    if let Some(values) = schema.get_mut("enum").and_then(Json::as_array_mut) {
        values.retain(|value| !value.is_null());
    }
    if let Some(branches) = schema.get_mut("anyOf").and_then(Json::as_array_mut) {
        branches.retain(|branch| branch["type"] != "null");
        if let [only] = branches.as_slice() {
            let only = only.clone();
            *schema = only;
        }
    }
    if let Some(object) = schema.as_object_mut()
        && object.get("default") == Some(&Json::Null)
    {
        object.remove("default");
    }
}

fn responses(route: &Route, generator: &mut SchemaGenerator) -> Json {
    let mut responses = Map::new();
    for answer in &route.answers {
        let content = match &answer.content {
            Content::Nothing => None,
            Content::Json(schema) => Some(json!({ "application/json": { "schema": schema(generator) } })),
            Content::Text(mime) => Some(json!({ *mime: { "schema": { "type": "string" } } })),
        };
        let mut response = json!({ "description": answer.what });
        if let Some(content) = content {
            response["content"] = content;
        }
        let headers = headers(route, answer);
        if !headers.is_empty() {
            response["headers"] = Json::Object(headers.clone());
        }
        if is_tagged(route, answer) {
            let unchanged = json!({ "description": "What you have is still true", "headers": headers });
            responses.insert("304".to_owned(), unchanged);
        }
        responses.insert(answer.status.as_str().to_owned(), response);
    }
    let mut problems = route.problems.clone();
    if route.scope.is_some() {
        problems.extend([Sort::NoToken, Sort::NotAllowed, Sort::TooManyTries]);
    }
    for sort in problems {
        let schema = json!({ "$ref": "#/components/schemas/Problem" });
        let content = json!({ "application/problem+json": { "schema": schema } });
        let mut response = json!({ "description": sort.title(), "content": content });
        if sort.says_when() {
            let what = "Seconds after which to try again, where that is known.";
            response["headers"] = json!({ "Retry-After": header(what, "integer") });
        }
        responses.insert(sort.status().as_str().to_owned(), response);
    }
    Json::Object(responses)
}
