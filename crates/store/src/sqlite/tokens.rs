//! Tokens: who may ask. Only hashes are here.

use rusqlite::{Connection, Row, params};
use stakeout_core::Time;

use super::fault::Work;
use super::{read, rows};
use crate::TokenRow;

pub(super) fn add(conn: &Connection, token: &TokenRow) -> Work<()> {
    conn.execute(
        "INSERT INTO tokens (id, name, scope, hash, created_us, revoked_us) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![token.id, token.name, token.scope, token.hash, token.created.us(), rows::us(token.revoked)],
    )?;
    Ok(())
}

pub(super) fn revoke(conn: &Connection, id: &str, now: Time) -> Work<bool> {
    let sql = "UPDATE tokens SET revoked_us = ?2 WHERE id = ?1 AND revoked_us IS NULL";
    Ok(conn.execute(sql, params![id, now.us()])? > 0)
}

pub(super) fn find(conn: &Connection, id: &str) -> Work<Option<TokenRow>> {
    Ok(read::all(conn, "SELECT * FROM tokens WHERE id = ?1", &[&id], token)?.pop())
}

pub(super) fn all(conn: &Connection) -> Work<Vec<TokenRow>> {
    read::all(conn, "SELECT * FROM tokens ORDER BY created_us, id", &[], token)
}

fn token(row: &Row<'_>) -> Work<TokenRow> {
    Ok(TokenRow {
        id: row.get("id")?,
        name: row.get("name")?,
        scope: row.get("scope")?,
        hash: row.get("hash")?,
        created: rows::time(row, "created_us")?,
        revoked: rows::opt_time(row, "revoked_us")?,
    })
}
