//! `stakeout token`: who may ask the HTTP interface.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;
use stakeout_server::{NewToken, Scope};
use stakeout_store::postgres::LeaseClock;
use stakeout_store::{StoreError, TokenRow};

use super::{ask, now};
use crate::cli::TokenAction;
use crate::control::{Request, TokenHash};
use crate::open::{Door, Place};
use crate::output::Table;
use crate::{UsageError, output, when};

pub(super) async fn token(place: &Place, action: TokenAction) -> Result<ExitCode> {
    match action {
        TokenAction::Create { scope, name } => create(place, &name, scope).await?,
        TokenAction::List { json } => list(place, json).await?,
        TokenAction::Revoke { id } => revoke(place, &id).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn create(place: &Place, name: &str, scope: Scope) -> Result<()> {
    let NewToken { text, row } = NewToken::draw(name, scope, now());
    match door_or_new(place).await? {
        Door::Running { socket, pid } => {
            let hash = TokenHash(row.hash.iter().map(|byte| format!("{byte:02x}")).collect());
            let TokenRow { id, name, scope, .. } = row;
            ask::running(&socket, &pid, &Request::AddToken { id, name, scope, hash }).await?;
        }
        Door::Direct(store) => store.add_token(&row).await?,
    }
    output::line(&text)
}

/// The first token is made before the first start: it may be what the start waits for. A store that is there is opened
/// as it is: whoever opens a shared one to run on it takes over the claims of his name.
async fn door_or_new(place: &Place) -> Result<Door> {
    match place.door().await {
        Err(error) if matches!(error.downcast_ref(), Some(StoreError::Missing { .. })) => {
            Ok(Door::Direct(place.create(LeaseClock::Database).await?.store()))
        }
        door => door,
    }
}

async fn list(place: &Place, json: bool) -> Result<()> {
    let tokens = match place.read().await {
        Ok(store) => store.tokens().await?,
        Err(StoreError::Missing { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let mut table = Table::new(&["ID", "SCOPE", "NAME", "CREATED", "REVOKED"]);
    for TokenRow { id, name, scope, created, revoked, .. } in tokens {
        if json {
            output::json(&json!({
                "id": id, "name": name, "scope": scope, "created": created, "revoked": revoked,
            }))?;
        } else {
            let revoked = revoked.map(|at| when::relative(at, now())).unwrap_or_default();
            table.row([id, scope, name, when::relative(created, now()), revoked]);
        }
    }
    match (json, table.is_empty()) {
        (true, _) => Ok(()),
        (false, true) => output::line("no tokens: on loopback none is needed"),
        (false, false) => output::line(&table.render()),
    }
}

async fn revoke(place: &Place, typed: &str) -> Result<()> {
    // Whoever has found a token somewhere may revoke it as it is.
    let id = typed.strip_prefix("stk_").and_then(|rest| rest.split('_').next()).unwrap_or(typed);
    let revoked = match place.door().await? {
        Door::Running { socket, pid } => {
            let answer = ask::running(&socket, &pid, &Request::RevokeToken { id: id.to_owned() }).await?;
            answer["revoked"] == true
        }
        Door::Direct(store) => store.revoke_token(id, now()).await?,
    };
    if !revoked {
        let message = format!("there is no token {id:?} that is not revoked already: `stakeout token list`");
        return Err(UsageError(message).into());
    }
    output::line(&format!("token {id} is revoked"))
}
