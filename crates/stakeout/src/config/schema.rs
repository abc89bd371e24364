//! The configuration as a JSON schema, for editors; and whether the example shows all of it.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::Config;

/// The JSON schema of the configuration file, with a line end.
pub fn schema() -> String {
    let mut schema = schemars::schema_for!(Config);
    schema.insert("title".to_owned(), Json::from("Stakeout configuration"));
    let mut text =
        serde_json::to_string_pretty(&schema).expect("a schema is plain JSON, because schemars made it");
    text.push('\n');
    text
}

/// The keys of the schema that `example` (a parsed configuration) does not show, as dotted paths.
pub fn example_is_complete(example: &Json) -> BTreeSet<String> {
    let schema: Json = serde_json::from_str(&schema()).expect("it was JSON a moment ago");
    let mut missing = BTreeSet::new();
    walk(&schema, &schema, &[example], "", &mut missing);
    missing
}

/// Compares the properties of `node` with what any of the `shown` objects has.
fn walk(root: &Json, node: &Json, shown: &[&Json], path: &str, missing: &mut BTreeSet<String>) {
    if let Some(reference) = node["$ref"].as_str()
        && let Some(target) = root.pointer(reference.trim_start_matches('#'))
    {
        walk(root, target, shown, path, missing);
    }
    for (name, inner) in node["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let below: Vec<&Json> = shown.iter().filter_map(|json| json.get(name)).collect();
        if below.is_empty() {
            missing.insert(path);
        } else {
            walk(root, inner, &below, &path, missing);
        }
    }
    if node["additionalProperties"].is_object() {
        let below: Vec<&Json> =
            shown.iter().filter_map(|json| json.as_object()).flat_map(|m| m.values()).collect();
        walk(root, &node["additionalProperties"], &below, &format!("{path}.*"), missing);
    }
    for branches in ["anyOf", "oneOf", "allOf"] {
        for branch in node[branches].as_array().into_iter().flatten() {
            // A choice between plain values has no keys of its own; a choice between tables has.
            // A choice by `kind` or `on` is compared with what has that one.
            let tag = ["kind", "on"].into_iter().find(|tag| !branch["properties"][tag]["const"].is_null());
            let fits = |json: &Json| tag.is_none_or(|tag| json[tag] == branch["properties"][tag]["const"]);
            let chosen = |json: &Json| json.is_object() && fits(json);
            let objects: Vec<&Json> = shown.iter().copied().filter(|json| chosen(json)).collect();
            if !objects.is_empty() {
                walk(root, branch, &objects, path, missing);
            }
        }
    }
}
