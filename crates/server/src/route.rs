//! A route: what it answers, who may ask, and how it is described. The router and the description are made of the
//! same routes, so none can exist without the other.

use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter, on};
use http::{Method, StatusCode};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::access::Scope;
use crate::app::App;
use crate::problem::Sort;

/// One method of one path.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    /// Who may ask; `None` for everybody.
    pub(crate) scope: Option<Scope>,
    pub(crate) tag: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) in_path: Vec<(&'static str, &'static str)>,
    pub(crate) query: Option<Schema>,
    pub(crate) body: Option<Schema>,
    pub(crate) answers: Vec<Answer>,
    pub(crate) problems: Vec<Sort>,
    pub(crate) handler: MethodRouter<App>,
}

/// A successful answer.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) what: &'static str,
    pub(crate) content: Content,
    /// Whether it is a list whose `Link` header leads to the next part.
    pub(crate) in_parts: bool,
}

/// The type of a stream of events.
pub(crate) const EVENT_STREAM: &str = "text/event-stream";

/// What an answer carries.
pub(crate) enum Content {
    Nothing,
    /// JSON of this shape.
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// Text of this type.
    Text(&'static str),
}

impl Route {
    fn new<H, T>(method: Method, path: &'static str, handler: H) -> Route
    where
        H: Handler<T, App>,
        T: 'static,
    {
        let filter = MethodFilter::try_from(method.clone()).expect("only usual methods are used here");
        Route {
            handler: on(filter, handler),
            method,
            path,
            scope: Some(Scope::Read),
            tag: "",
            summary: "",
            in_path: Vec::new(),
            query: None,
            body: None,
            answers: Vec::new(),
            problems: vec![Sort::WrongHost],
        }
    }

    /// A read.
    pub(crate) fn get<H: Handler<T, App>, T: 'static>(path: &'static str, handler: H) -> Route {
        Route::new(Method::GET, path, handler)
    }

    /// Something to be done.
    pub(crate) fn post<H: Handler<T, App>, T: 'static>(path: &'static str, handler: H) -> Route {
        Route::new(Method::POST, path, handler)
    }

    /// Something to be set.
    pub(crate) fn put<H: Handler<T, App>, T: 'static>(path: &'static str, handler: H) -> Route {
        Route::new(Method::PUT, path, handler)
    }

    /// Something to be removed.
    pub(crate) fn delete<H: Handler<T, App>, T: 'static>(path: &'static str, handler: H) -> Route {
        Route::new(Method::DELETE, path, handler)
    }

    /// What it is about, and what it does.
    pub(crate) fn about(mut self, tag: &'static str, summary: &'static str) -> Route {
        (self.tag, self.summary) = (tag, summary);
        self
    }

    /// Only with this scope.
    pub(crate) fn scope(mut self, scope: Scope) -> Route {
        self.scope = Some(scope);
        self
    }

    /// For everybody.
    pub(crate) fn open(mut self) -> Route {
        self.scope = None;
        self
    }

    /// A part of the path.
    pub(crate) fn part(mut self, name: &'static str, what: &'static str) -> Route {
        self.in_path.push((name, what));
        self.problems.push(Sort::BadInput);
        self
    }

    /// A query string of this shape.
    pub(crate) fn query<T: JsonSchema>(mut self) -> Route {
        self.query = Some(inline::<T>());
        self.problems.push(Sort::BadInput);
        self
    }

    /// A body of this shape.
    pub(crate) fn body<T: JsonSchema>(mut self) -> Route {
        self.body = Some(inline::<T>());
        self.problems.extend([Sort::BadInput, Sort::WrongContentType, Sort::TooLarge, Sort::TooSlow]);
        self
    }

    /// Answers JSON of this shape.
    pub(crate) fn answers<T: JsonSchema>(mut self, what: &'static str) -> Route {
        let content = Content::Json(|generator| generator.subschema_for::<T>());
        self.answers.push(Answer { status: StatusCode::OK, what, content, in_parts: false });
        self
    }

    /// Answers a list of this shape, part by part.
    pub(crate) fn answers_parts<T: JsonSchema>(self, what: &'static str) -> Route {
        let mut route = self.answers::<T>(what);
        route.answers.iter_mut().for_each(|answer| answer.in_parts = true);
        route
    }

    /// Answers text of this type.
    pub(crate) fn answers_text(mut self, mime: &'static str, what: &'static str) -> Route {
        let content = Content::Text(mime);
        self.answers.push(Answer { status: StatusCode::OK, what, content, in_parts: false });
        self
    }

    /// Answers that it is done.
    pub(crate) fn answers_nothing(mut self, what: &'static str) -> Route {
        let content = Content::Nothing;
        self.answers.push(Answer { status: StatusCode::NO_CONTENT, what, content, in_parts: false });
        self
    }

    /// What else may be the answer.
    pub(crate) fn or(mut self, problems: &[Sort]) -> Route {
        self.problems.extend(problems);
        self
    }
}

/// The schema of what is sent to us, without references.
fn inline<T: JsonSchema>() -> Schema {
    let settings = schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    settings.into_generator().into_root_schema_for::<T>()
}
