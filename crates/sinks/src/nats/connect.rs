//! From the servers that are named to a connection: a name is resolved once, its addresses are checked, and the
//! connection goes to one of them. The name itself is what the server is asked for (SNI) and what its certificate has to
//! be for. When the connection is lost, the name is looked up anew.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::config::{Access, NatsConfig, Server};
use super::connection::{Connection, introduced};
use crate::address::Guard;
use crate::unsaid::Unsaid;
use crate::words::clip;
use crate::{Found, Refused, trust};

/// How long all addresses of a server together may take, with the look for them.
const SERVER_LIMIT: Duration = Duration::from_secs(10);
/// How long one address may take.
const ADDRESS_LIMIT: Duration = Duration::from_secs(5);

/// The servers of a broker, and how to get in.
pub(super) struct Servers {
    servers: Vec<Server>,
    guard: Guard,
    access: Access,
    tls: Arc<ClientConfig>,
    unsaid: Unsaid,
}

impl Servers {
    pub(super) fn new(config: &NatsConfig, found: &Found, guard: Guard) -> Result<Servers, Refused> {
        let access = Access::of(found)?;
        let authorities = trust::authorities(config.ca.as_ref().map(|_| found.get("ca")))?;
        let tls = trust::client(&authorities)
            .map_err(|error| Refused::new("url", format!("TLS cannot be set up: {error}")))?;
        let servers = config.servers(&guard)?;
        Ok(Servers { servers, guard, unsaid: access.unsaid(), access, tls })
    }

    /// Words of a broker without what it was told in confidence, and not all of them if they are many.
    pub(super) fn quoted(&self, words: &dyn Display) -> String {
        clip(&self.unsaid.in_words(&words.to_string()))
    }

    /// A connection to the first of the servers that lets us in, or why none does.
    pub(super) async fn connect(&self) -> Result<Connection, String> {
        let mut failed = Vec::new();
        for server in &self.servers {
            let limited = timeout(SERVER_LIMIT, self.connect_to(server)).await;
            match limited.unwrap_or_else(|_| Err(too_long(SERVER_LIMIT))) {
                Ok(connection) => return Ok(connection),
                Err(words) => failed.push(format!("{}: {}", server.host, self.quoted(&words))),
            }
        }
        Err(failed.join("; "))
    }

    async fn connect_to(&self, server: &Server) -> Result<Connection, String> {
        let found = self.guard.resolve(&server.host, server.port).await;
        let mut last = String::new();
        for address in found.map_err(|refused| refused.to_string())? {
            let limited = timeout(ADDRESS_LIMIT, self.connect_at(address, server)).await;
            match limited.unwrap_or_else(|_| Err(too_long(ADDRESS_LIMIT))) {
                Ok(connection) => return Ok(connection),
                Err(words) => last = words,
            }
        }
        Err(last)
    }

    async fn connect_at(&self, address: SocketAddr, server: &Server) -> Result<Connection, String> {
        let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
        // What is written is whole messages: there is nothing to gather.
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        let broker = introduced(stream).await?;
        if !server.is_secured && !broker.wants_tls() {
            return Connection::enter(broker, &self.access, false).await;
        }
        let name = trust::server_name(&server.host)?;
        let broker = broker.secured(Arc::clone(&self.tls), name).await?;
        Connection::enter(broker, &self.access, true).await
    }
}

fn too_long(limit: Duration) -> String {
    format!("not connected within {} s", limit.as_secs())
}
