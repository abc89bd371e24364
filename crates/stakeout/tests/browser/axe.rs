//! axe-core, which knows the rules of accessibility better than we do. `scripts/test` fetches it into `target/`.

use std::path::Path;

use serde_json::Value as Json;

use crate::driver::Browser;
use crate::skipped;

/// Where it is, below the workspace.
const FILE: &str = "target/axe-core/node_modules/axe-core/axe.min.js";

/// What it is asked: the rules of WCAG 2.0 to 2.2 at levels A and AA, and its authors' best practices. Of each
/// violation what is needed to find it.
const RUN: &str = r#"axe.run(document, {
    runOnly: { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] },
    resultTypes: ["violations"],
}).then(({ violations }) => violations.map(({ id, help, nodes }) =>
    ({ id, help, count: nodes.length, where: nodes.slice(0, 5).map((node) => `${node.html.slice(0, 160)}: ${node.failureSummary}`) })))"#;

/// The script.
pub(crate) struct Axe(String);

impl Axe {
    /// `None` where it could not be had.
    pub(crate) fn find() -> Option<Axe> {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(FILE);
        let script = std::fs::read_to_string(&file).ok();
        if script.is_none() {
            skipped(&format!("axe-core is not at {FILE}: scripts/test fetches it with npm"));
        }
        script.map(Axe)
    }

    /// What is wrong with the page as it is shown.
    pub(crate) async fn violations(&self, browser: &Browser) -> Json {
        // It looks for a module system first; there is none, so it is a property of the window.
        browser.inject(&self.0).await;
        browser.value(RUN).await
    }
}
