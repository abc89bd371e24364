//! Every route there is: who is let in, and who is not.

use serde_json::{Value as Json, json};
use stakeout_server::{Scope, TokenPolicy};

use crate::support::{Scene, within};

/// One method of one path, as the description has it.
struct Operation {
    method: reqwest::Method,
    path: String,
    /// `None` where everybody is let in.
    scope: Option<Scope>,
}

/// Everything that is described, with something for each part of a path.
fn operations(description: &Json) -> Vec<Operation> {
    let mut found = Vec::new();
    for (path, methods) in description["paths"].as_object().expect("paths") {
        let path = path
            .split('/')
            .map(|part| match part {
                "{source}" => "s",
                "{key}" => "main",
                "{record}" => "00000000000000000000000000000000",
                "{seq}" => "0",
                part if part.starts_with('{') => "x",
                part => part,
            })
            .collect::<Vec<_>>()
            .join("/");
        for (method, operation) in methods.as_object().expect("methods") {
            let says = operation["description"].as_str().unwrap_or_default();
            let scope = says.strip_prefix("Needs the scope `").and_then(|rest| rest.split('`').next());
            found.push(Operation {
                method: method.to_uppercase().parse().expect("a method"),
                path: path.clone(),
                scope: scope.map(|scope| scope.parse().expect("a scope")),
            });
        }
    }
    found
}

/// The scope before a scope, where there is one.
fn lower(scope: Scope) -> Option<Scope> {
    match scope {
        Scope::Read => None,
        Scope::Operate => Some(Scope::Read),
        Scope::Admin => Some(Scope::Operate),
    }
}

#[tokio::test]
async fn every_route_asks_for_a_token_and_for_its_scope() {
    let scene = Scene::with(json!({}), |server| server.token = TokenPolicy::Always).await;
    scene.polled(1).await;
    let tokens =
        [scene.token(Scope::Read).await, scene.token(Scope::Operate).await, scene.token(Scope::Admin).await];
    let token_of = |scope: Scope| &tokens[scope as usize];
    let read = scene.http.get(scene.url("/v1/openapi.json")).bearer_auth(token_of(Scope::Read));
    let description = scene.ask(read).await.1;
    let operations = operations(&description);
    assert!(operations.len() > 50, "all of them: {}", operations.len());
    for scope in [Scope::Read, Scope::Operate, Scope::Admin] {
        assert!(operations.iter().any(|operation| operation.scope == Some(scope)), "{scope}");
    }
    for Operation { method, path, scope } in operations {
        // Only the status is of interest: a stream has no end.
        let status = async |token: Option<&String>| {
            let request = scene.http.request(method.clone(), scene.url(&path));
            let request = match token {
                Some(token) => request.bearer_auth(token),
                None => request,
            };
            within(request.send()).await.expect("an answer").status().as_u16()
        };
        let Some(scope) = scope else {
            assert!(![401, 403].contains(&status(None).await), "{method} {path} is for everybody");
            continue;
        };
        assert_eq!(status(None).await, 401, "{method} {path} without a token");
        if let Some(lower) = lower(scope) {
            assert_eq!(status(Some(token_of(lower))).await, 403, "{method} {path} with the scope {lower}");
        }
        let let_in = status(Some(token_of(scope))).await;
        assert!(![401, 403, 429, 500].contains(&let_in), "{method} {path} with the scope {scope}: {let_in}");
    }
    scene.stop().await;
}
