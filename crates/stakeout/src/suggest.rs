//! What was probably meant.

/// How alike two words must be, from 0 to 1, to be taken for each other.
const ALIKE: f64 = 0.8;

/// How much less alike than the best a word may be to be named beside it.
const NOISE: f64 = 0.1;

/// `did you mean …?`, or what there is.
pub(crate) fn instead(wrong: &str, known: &[&str]) -> String {
    match near(wrong, known.iter().copied(), 1).first() {
        Some(name) => format!("did you mean `{name}`?"),
        None if known.is_empty() => "nothing is known there".to_owned(),
        None => format!("known are {}", quoted(known)),
    }
}

/// The known words nearest to a wrong one, the nearest first.
pub(crate) fn near<'a>(wrong: &str, known: impl Iterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let mut scored: Vec<(f64, &str)> = known
        .map(|name| (strsim::jaro_winkler(wrong, name), name))
        .filter(|(score, _)| *score >= ALIKE)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    // Beside a very near word, the merely similar ones are noise.
    let best = scored.first().map_or(0.0, |(score, _)| *score);
    scored.retain(|(score, _)| *score >= best - NOISE);
    scored.into_iter().take(most).map(|(_, name)| name).collect()
}

/// Words in backticks, with commas.
pub(crate) fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
