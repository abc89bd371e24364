//! What was odd about an answer, counted: a thousand bad rows make one warning.

use stakeout_core::Warning;

/// How much of something odd is shown.
const SHOWN_CHARS: usize = 80;

#[derive(Debug, Default)]
pub(crate) struct Odd(Vec<(&'static str, usize, String)>);

impl Odd {
    /// Counts one more of this code; the first one's detail is kept.
    pub(crate) fn add(&mut self, code: &'static str, detail: impl FnOnce() -> String) {
        match self.0.iter_mut().find(|(known, ..)| *known == code) {
            Some((_, count, _)) => *count += 1,
            None => self.0.push((code, 1, detail().chars().take(SHOWN_CHARS).collect())),
        }
    }

    pub(crate) fn warnings(self) -> Vec<Warning> {
        let words = |(code, count, first): (&'static str, usize, String)| match count {
            1 => Warning { code, detail: first },
            _ => Warning { code, detail: format!("{count} times, first: {first}") },
        };
        self.0.into_iter().map(words).collect()
    }
}
