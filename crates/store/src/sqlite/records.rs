//! Records and who holds them. What really happened to a record is decided here, where all of its holders meet.

use std::collections::HashMap;

use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, Statement, named_params, params};
use stakeout_core::{ContentHash, Fingerprint, Span, Time};

use super::fault::Work;
use super::rows;
use super::writer::Tx;
use crate::{Base, PollCommit, RecordWrite};

/// What a commit did to one record.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Happened {
    /// The record's row, where the commit wrote it.
    pub(super) row: Option<i64>,
    /// Nobody who counts held it before, now somebody does, or may.
    pub(super) appeared: bool,
    /// Its content is another than before.
    pub(super) changed: bool,
    /// The last holder let go of it.
    pub(super) vanished: bool,
    /// When it had last been let go of, before this commit.
    pub(super) gone_before: Option<Time>,
}

/// What a commit did to the records it wrote.
pub(super) type Effects = HashMap<Fingerprint, Happened>;

/// In which rows records were found before, so that most of them are found again without the index. A row that is another
/// record's by now is noticed.
#[derive(Debug, Default)]
pub(super) struct Numbers(HashMap<(i64, Fingerprint), i64>);

/// Beyond this they are forgotten: some megabytes.
const MAX_NUMBERS: usize = 100_000;

impl Numbers {
    fn remember(&mut self, source_id: i64, fingerprint: Fingerprint, id: i64) {
        if self.0.len() >= MAX_NUMBERS {
            self.0.clear();
        }
        self.0.insert((source_id, fingerprint), id);
    }
}

struct Stored {
    id: i64,
    holders: i64,
    content: ContentHash,
    seen: Time,
    gone: Option<Time>,
    parent: Option<Fingerprint>,
}

/// Writes the records of a poll and lets go of those it no longer holds.
/// Answers false, having written nothing, when a record is another than the poll thinks.
pub(super) fn write(tx: &mut Tx<'_>, source_id: i64, poll: &PollCommit, effects: &mut Effects) -> Work<bool> {
    if poll.records.is_empty() && poll.releases.is_empty() && poll.lapsed.is_empty() {
        return Ok(true);
    }
    let Tx { conn, numbers, .. } = tx;
    let mut find =
        Find { again: conn.prepare_cached(FIND_AGAIN)?, by_index: conn.prepare_cached(FIND)?, numbers };
    let mut rewrite = conn.prepare_cached(REWRITE)?;
    let mut found = Vec::with_capacity(poll.records.len());
    for record in &poll.records {
        let stored = find.find(source_id, record.fingerprint)?;
        let now = stored.as_ref().map(|stored| stored.content);
        if matches!(record.base, Base::Recalled(before) if before != now) {
            return Ok(false);
        }
        found.push(stored);
    }
    for (record, stored) in poll.records.iter().zip(found) {
        let happened = match stored {
            None => insert(conn, source_id, record)?,
            Some(stored) => update(conn, &mut rewrite, &stored, record, poll.now)?,
        };
        effects.insert(record.fingerprint, happened);
    }
    for release in &poll.releases {
        let Some(stored) = find.find(source_id, release.fingerprint)? else { continue };
        if one_holder_less(conn, &stored, release.natural, poll.now)? {
            effects.entry(release.fingerprint).or_default().vanished = true;
        }
    }
    for lapsed in &poll.lapsed {
        // Our own hold, where this poll added one, came after theirs.
        let written = poll.records.binary_search_by_key(&lapsed.fingerprint, |record| record.fingerprint);
        let own = written.is_ok_and(|n| poll.records[n].added);
        let stored = find.find(source_id, lapsed.fingerprint)?;
        if stored.is_some_and(|stored| stored.holders - i64::from(own) <= i64::from(lapsed.holders)) {
            effects.entry(lapsed.fingerprint).or_default().appeared = true;
        }
    }
    Ok(true)
}

const FIND: &str = "
    SELECT id, holders, content, seen_us, gone_us, parent FROM records WHERE source_id = ?1 AND fingerprint = ?2";

const FIND_AGAIN: &str = "
    SELECT id, holders, content, seen_us, gone_us, parent FROM records
    WHERE id = ?3 AND +source_id = ?1 AND +fingerprint = ?2";

/// Finds records.
struct Find<'a> {
    again: CachedStatement<'a>,
    by_index: CachedStatement<'a>,
    numbers: &'a mut Numbers,
}

impl Find<'_> {
    fn find(&mut self, source_id: i64, fingerprint: Fingerprint) -> Work<Option<Stored>> {
        let print = fingerprint.to_bytes();
        if let Some(id) = self.numbers.0.get(&(source_id, fingerprint)) {
            let again = self.again.query_row(params![source_id, print, id], stored).optional()?;
            if again.is_some() {
                return Ok(again);
            }
        }
        let found = self.by_index.query_row(params![source_id, print], stored).optional()?;
        if let Some(found) = &found {
            self.numbers.remember(source_id, fingerprint, found.id);
        }
        Ok(found)
    }
}

fn stored(row: &Row<'_>) -> rusqlite::Result<Stored> {
    Ok(Stored {
        id: row.get(0)?,
        holders: row.get(1)?,
        content: rows::content(row, 2)?,
        seen: rows::time(row, 3)?,
        gone: rows::opt_time(row, 4)?,
        parent: rows::opt_print(row, 5)?,
    })
}

fn insert(conn: &Connection, source_id: i64, record: &RecordWrite) -> Work<Happened> {
    let mut statement = conn.prepare_cached(
        "INSERT INTO records (source_id, fingerprint, kind, key, parent, group_print, content, ends_us, holders,
             first_seen_us, changed_us, seen_us, body)
         VALUES (:source, :print, :kind, :key, :parent, :group, :content, :ends, 1, :seen, :seen, :seen, :body)",
    )?;
    let id = statement.insert(named_params! {
        ":source": source_id,
        ":print": record.fingerprint.to_bytes(),
        ":kind": record.kind,
        ":key": record.key,
        ":parent": record.parent.map(Fingerprint::to_bytes),
        ":group": record.group.to_bytes(),
        ":content": record.content.to_bytes(),
        ":ends": rows::us(record.ends),
        ":seen": record.seen.us(),
        ":body": record.body,
    })?;
    Ok(Happened { row: Some(id), appeared: true, ..Happened::default() })
}

/// The newest observation wins; an older one may still make its target a holder.
fn update(
    conn: &Connection,
    rewrite: &mut Statement<'_>,
    stored: &Stored,
    record: &RecordWrite,
    now: Time,
) -> Work<Happened> {
    let appeared = record.added && stored.holders == 0;
    // Something seen far in the future was seen before the clock was set back: it is not newer. Polls that overtake
    // each other on the way to their commit differ by much less.
    let newest = record.seen >= stored.seen || stored.seen > now + Span::mins(1);
    let changed = newest && record.content != stored.content;
    let gone_before = stored.gone;
    if newest {
        write_over(conn, rewrite, stored, record, appeared || changed)?;
    } else if record.added {
        conn.prepare_cached("UPDATE records SET holders = holders + 1 WHERE id = ?1")?
            .execute([stored.id])?;
    }
    if record.added && stored.gone.is_some() {
        conn.prepare_cached("UPDATE records SET gone_us = NULL, gone_natural = 0 WHERE id = ?1")?
            .execute([stored.id])?;
    }
    Ok(Happened { row: Some(stored.id), appeared, changed, vanished: false, gone_before })
}

const REWRITE: &str = "
    UPDATE records SET key = ?2, group_print = ?3, content = ?4, ends_us = ?5, seen_us = ?6, body = ?7,
        holders = holders + ?8, changed_us = CASE WHEN ?9 THEN ?6 ELSE changed_us END
    WHERE id = ?1";

/// The commonest write of all: nothing that an index knows of changes, so none is touched.
fn write_over(
    conn: &Connection,
    rewrite: &mut Statement<'_>,
    stored: &Stored,
    record: &RecordWrite,
    changed: bool,
) -> Work<()> {
    rewrite.execute(params![
        stored.id,
        record.key,
        record.group.to_bytes(),
        record.content.to_bytes(),
        rows::us(record.ends),
        record.seen.us(),
        record.body,
        record.added,
        changed,
    ])?;
    if record.parent != stored.parent {
        conn.prepare_cached("UPDATE records SET parent = ?2 WHERE id = ?1")?
            .execute(params![stored.id, record.parent.map(Fingerprint::to_bytes)])?;
    }
    Ok(())
}

/// One holder less; answers whether it was the last one.
pub(super) fn let_go(
    conn: &Connection,
    source_id: i64,
    fingerprint: Fingerprint,
    natural: bool,
    now: Time,
) -> Work<bool> {
    let mut find = conn.prepare_cached(FIND)?;
    let found = find.query_row(params![source_id, fingerprint.to_bytes()], stored).optional()?;
    found.map_or(Ok(false), |stored| one_holder_less(conn, &stored, natural, now))
}

fn one_holder_less(conn: &Connection, stored: &Stored, natural: bool, now: Time) -> Work<bool> {
    if stored.holders > 1 {
        conn.prepare_cached("UPDATE records SET holders = holders - 1 WHERE id = ?1")?
            .execute([stored.id])?;
    } else if stored.holders == 1 {
        conn.prepare_cached("UPDATE records SET holders = 0, gone_us = ?2, gone_natural = ?3 WHERE id = ?1")?
            .execute(params![stored.id, now.us(), natural])?;
    }
    Ok(stored.holders == 1)
}

#[cfg(test)]
mod tests {
    use super::super::connect;
    use super::*;

    #[test]
    fn a_record_that_changes_in_place_writes_no_index() {
        let conn = connect::memory().expect("opens");
        assert_eq!(connect::writes_of(&conn, REWRITE), ["Insert"], "one row of the table, nothing else");
    }

    #[test]
    fn a_record_that_was_found_before_is_found_without_the_index() {
        let plan = connect::plan(FIND_AGAIN);
        assert!(plan.contains("USING INTEGER PRIMARY KEY (rowid=?)"), "{plan}");
    }
}
