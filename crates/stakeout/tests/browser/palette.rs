//! The colours of both themes, as the stylesheet has them: every pair of ink and ground can be read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// WCAG's least contrast for text, and for drawings.
const TEXT: f64 = 4.5;
const DRAWN: f64 = 3.0;
/// What all files may weigh together as they are written: names and comments are for people. What a browser loads is
/// compressed, less than half of it, and has a limit of its own in `pages`.
const BYTES_MAX: u64 = 190_000;

fn web() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web")
}

/// The variables that are colours: in the light theme, in the dark one.
fn colours() -> BTreeMap<String, [[f64; 3]; 2]> {
    let css = std::fs::read_to_string(web().join("style.css")).expect("the stylesheet");
    let mut found = BTreeMap::new();
    for line in css.lines() {
        let Some((name, value)) =
            line.trim().strip_prefix("--").and_then(|line| line.split_once(": light-dark("))
        else {
            continue;
        };
        let mut both = value.trim_end_matches(");").split(", ").map(rgb);
        let pair = [both.next().expect("light"), both.next().expect("dark")];
        found.insert(name.to_owned(), pair);
    }
    found
}

fn rgb(hex: &str) -> [f64; 3] {
    let part = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("a colour of six digits");
    [1, 3, 5].map(|at| f64::from(part(at)) / 255.0)
}

fn luminance(colour: [f64; 3]) -> f64 {
    let [r, g, b] = colour.map(|c| if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) });
    0.2126 * r + 0.7152 * g + 0.0722 * b
}

fn contrast(a: [f64; 3], b: [f64; 3]) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[test]
fn every_ink_can_be_read_on_its_ground_in_both_themes() {
    let colours = colours();
    let grounds = ["ground", "panel", "raised"];
    let inks = ["ink", "soft", "accent", "second", "good", "warn", "bad"];
    let mut pairs: Vec<(String, String, f64)> = Vec::new();
    for ink in inks {
        pairs.extend(grounds.map(|ground| (ink.to_owned(), ground.to_owned(), TEXT)));
    }
    pairs.extend((1..=6).map(|n| ("band-ink".to_owned(), format!("band-{n}"), TEXT)));
    pairs.extend(["ink", "soft"].map(|ink| (ink.to_owned(), "tint".to_owned(), TEXT)));
    pairs.push(("on-accent".to_owned(), "accent".to_owned(), TEXT));
    for mark in ["good", "warn", "bad", "accent"] {
        pairs.extend(["band-a", "band-b"].map(|band| (mark.to_owned(), band.to_owned(), DRAWN)));
    }
    pairs.push(("edge".to_owned(), "panel".to_owned(), DRAWN));
    for (ink, ground, least) in pairs {
        for (theme, n) in [("light", 0), ("dark", 1)] {
            let found = contrast(colours[&ink][n], colours[&ground][n]);
            assert!(found >= least, "{ink} on {ground} in the {theme} theme: {found:.2}, expected {least}");
        }
    }
}

#[test]
fn the_whole_dashboard_is_small() {
    let mut bytes = 0;
    for dir in ["", "pages", "parts"] {
        for entry in std::fs::read_dir(web().join(dir)).expect("the dashboard's files") {
            let entry = entry.expect("a file");
            let is_asset = entry.path().extension().is_some_and(|ending| ending != "md");
            if is_asset {
                bytes += entry.metadata().expect("its size").len();
            }
        }
    }
    assert!(bytes < BYTES_MAX, "{bytes} bytes");
}
