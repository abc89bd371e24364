//! Tokens: who may ask. Only hashes are here.

use deadpool_postgres::Client;
use stakeout_core::Time;
use tokio_postgres::Row;

use super::fault::{Fault, Work};
use super::{all, read, rows};
use crate::TokenRow;

pub(super) async fn add(client: &Client, token: &TokenRow) -> Work<()> {
    let sql =
        "INSERT INTO tokens (id, name, scope, hash, created_us, revoked_us) VALUES ($1, $2, $3, $4, $5, $6)";
    let (created, revoked) = (token.created.us(), token.revoked.map(Time::us));
    let hash = token.hash.as_slice();
    all(client, sql, &[&token.id, &token.name, &token.scope, &hash, &created, &revoked]).await?;
    Ok(())
}

pub(super) async fn revoke(client: &Client, id: &str, now: Time) -> Work<bool> {
    let sql = "UPDATE tokens SET revoked_us = $2 WHERE id = $1 AND revoked_us IS NULL RETURNING 1";
    Ok(!all(client, sql, &[&id, &now.us()]).await?.is_empty())
}

pub(super) async fn find(client: &Client, id: &str) -> Work<Option<TokenRow>> {
    Ok(read::all(client, "SELECT * FROM tokens WHERE id = $1", &[&id], token).await?.pop())
}

pub(super) async fn list(client: &Client) -> Work<Vec<TokenRow>> {
    read::all(client, "SELECT * FROM tokens ORDER BY created_us, id", &[], token).await
}

fn token(row: &Row) -> Work<TokenRow> {
    let hash: &[u8] = row.try_get("hash")?;
    Ok(TokenRow {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        scope: row.try_get("scope")?,
        hash: hash
            .try_into()
            .map_err(|_| Fault::Damaged(format!("a token's hash of {} bytes", hash.len())))?,
        created: rows::time(row, "created_us")?,
        revoked: rows::opt_time(row, "revoked_us")?,
    })
}
