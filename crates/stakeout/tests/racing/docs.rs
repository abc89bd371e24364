use rusqlite::{Connection, OpenFlags};

use crate::support::World;

const PAGES: [&str; 1] = [concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/racing.md")];

/// The SQL blocks of the guide: where each is, and its text.
fn blocks() -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    for page in PAGES {
        let text = std::fs::read_to_string(page).expect("a page");
        let mut inside: Option<String> = None;
        for (line_no, line) in text.lines().enumerate() {
            match (&mut inside, line.trim()) {
                (None, "```sql") => inside = Some(String::new()),
                (Some(_), "```") => {
                    let place = format!("{page}:{}", line_no + 1);
                    blocks.push((place, inside.take().expect("inside, because it matched")));
                }
                (Some(block), _) => *block += &format!("{line}\n"),
                (None, _) => {}
            }
        }
    }
    blocks
}

#[test]
fn every_query_in_the_documentation_runs_and_finds_something() {
    let world = World::polled();
    let conn = Connection::open_with_flags(world.database(), OpenFlags::SQLITE_OPEN_READ_ONLY).expect("open");
    let blocks = blocks();
    assert!(blocks.len() >= 4, "only {} queries", blocks.len());
    for (place, sql) in blocks {
        let mut statement =
            conn.prepare(sql.trim().trim_end_matches(';')).unwrap_or_else(|e| panic!("{place}: {e}"));
        assert_eq!(statement.parameter_count(), 0, "{place}: it should run as it is");
        let rows = statement.query([]).and_then(|mut rows| {
            let mut n = 0;
            while rows.next()?.is_some() {
                n += 1;
            }
            Ok(n)
        });
        let rows: u32 = rows.unwrap_or_else(|e| panic!("{place}: {e}"));
        assert!(rows > 0, "{place} finds nothing in a day's data");
    }
}
