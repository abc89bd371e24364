//! The picture: redrawn in place on a terminal, a line per event elsewhere.

use std::collections::VecDeque;
use std::io::{self, Write};

use stakeout_core::{Event, Span, Time};

use super::feed::{Picture, Race};
use crate::output::Table;

/// Races shown.
pub(super) const ROWS: usize = 10;
/// Events shown.
const NEWS: usize = 10;
/// Without a terminal, a summary every so many pictures.
const SUMMARY_EVERY: u64 = 20;

pub(super) struct Screen {
    terminal: bool,
    head: Vec<String>,
    news: VecDeque<String>,
    pictures: u64,
}

impl Screen {
    pub(super) fn new(terminal: bool) -> Screen {
        Screen { terminal, head: Vec::new(), news: VecDeque::new(), pictures: 0 }
    }

    /// A line that stays.
    pub(super) fn say(&mut self, line: &str) {
        self.head.push(line.to_owned());
        if !self.terminal {
            let _ = write(&format!("{line}\n"));
        }
    }

    pub(super) fn show(&mut self, picture: &Picture) -> io::Result<()> {
        self.pictures += 1;
        for event in &picture.news {
            let line = told(event, picture);
            if !self.terminal {
                write(&format!("{line}\n"))?;
            }
            self.news.push_front(line);
        }
        self.news.truncate(NEWS);
        if self.terminal {
            // Home, then every line cleared to its end, then everything below: no flicker.
            let frame = self.frame(picture).replace('\n', "\x1b[K\n");
            return write(&format!("\x1b[H{frame}\x1b[K\x1b[J"));
        }
        if self.pictures % SUMMARY_EVERY == 1 {
            write(&format!("{}\n", summary(picture)))?;
            if let Some(drones) = &picture.drones {
                write(&format!("{}\n", drones.line()))?;
            }
            write(&format!("{}\n", picture.tables.line(picture.now)))?;
        }
        Ok(())
    }

    /// Leaves the last picture where it is.
    pub(super) fn close(&self) {
        if self.terminal {
            let _ = write("\n");
        }
    }

    fn frame(&self, picture: &Picture) -> String {
        let mut lines = self.head.clone();
        lines.push(String::new());
        lines.push(summary(picture));
        lines.push(String::new());
        lines.push(board(picture));
        if let Some(drones) = &picture.drones {
            lines.extend([String::new(), drones.line(), drones.board()]);
        }
        lines.extend([String::new(), picture.tables.line(picture.now)]);
        lines.push(String::new());
        lines.push("Just told:".to_owned());
        lines.extend(self.news.iter().cloned());
        lines.join("\n")
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn summary(picture: &Picture) -> String {
    let Picture { now, waiting, over, polls, late, missed, events, history, .. } = picture;
    format!(
        "{now}  {polls} polls ({late} late, {missed} missed), {events} events, {history} history rows; \
         {waiting} races more than an hour away, {over} over"
    )
}

fn board(picture: &Picture) -> String {
    let mut table = Table::new(&["RACE", "STATUS", "START", "PHASE", "NEXT POLL", "POLLS"]);
    for race in &picture.races {
        let Race { name, status, phase, polls, .. } = race;
        let due = race.due.map_or_else(|| "never again".to_owned(), |due| countdown(due, picture.now));
        let running = phase == "after" || phase == "over";
        let start = race.start.map_or_else(String::new, |start| to_start(start, picture.now, running));
        table.row([name.clone(), status.clone(), start, phase.clone(), due, polls.to_string()]);
    }
    table.render()
}

/// `in 4:05`, `Delayed +1:08` while the start is overdue, the clock time once it is history.
fn to_start(start: Time, now: Time, running: bool) -> String {
    let away = start - now;
    if running {
        start.to_string().get(11..16).unwrap_or_default().to_owned()
    } else if away >= Span::ZERO {
        format!("in {}", clock(away))
    } else {
        format!("Delayed +{}", clock(-away))
    }
}

fn countdown(due: Time, now: Time) -> String {
    if due <= now { "now".to_owned() } else { format!("in {}", clock(due - now)) }
}

/// `m:ss`, or `h:mm:ss`.
fn clock(span: Span) -> String {
    let seconds = span.as_us() / 1_000_000;
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

fn told(event: &Event, picture: &Picture) -> String {
    if event.event_type.starts_with("fpv.") {
        let words = picture.drones.as_ref().map(|drones| drones.told(event)).unwrap_or_default();
        return line(event, &words);
    }
    if event.event_type.starts_with("tables.") {
        return line(event, &super::tables::told(event));
    }
    let record = &event.data["record"];
    let name = record["name"].as_str().or(event.data["now"]["name"].as_str()).unwrap_or(&event.subject_key);
    let changes = event.data["changes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let interesting = |field: &str| {
        matches!(
            field,
            "status" | "start_time" | "win_odds" | "hold_percentage" | "is_scratched" | "actual_start"
        )
    };
    let moved: Vec<String> = changes
        .iter()
        .filter(|change| change["field"].as_str().is_some_and(interesting))
        .map(|change| {
            format!(
                "{} {} → {}",
                change["field"].as_str().unwrap_or(""),
                plain(&change["old"]),
                plain(&change["new"])
            )
        })
        .collect();
    line(event, &format!("{name}  {}", moved.join(", ")))
}

fn line(event: &Event, words: &str) -> String {
    format!("{}  {:<25} {words}", &event.at.to_string()[11..19], event.event_type).trim_end().to_owned()
}

fn plain(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Null => "–".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_read_like_a_departure_board() {
        let start = Time::from_secs(10_000);
        for (seconds, running, text) in [
            (-245, false, "in 4:05"),
            (-3_725, false, "in 1:02:05"),
            (68, false, "Delayed +1:08"),
            (68, true, "02:46"),
        ] {
            assert_eq!(to_start(start, start + Span::secs(seconds), running), text);
        }
    }
}
