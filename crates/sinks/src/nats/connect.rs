//! From the servers that are named to a connection: a name is resolved once, its addresses are checked, and the client
//! is given one of these addresses and nothing else.
//!
//! The client would resolve a name by itself, after us and unchecked. With an address it has nothing to resolve; but it
//! takes what it is given for the name that a certificate has to be for. So the certificate is checked here, for the name
//! in the configuration ([`ForName`]). There is one client for one address of one server: no certificate can be taken for
//! another server's. When the connection is lost, the client tries the same address once more and ends; then the name is
//! looked up anew.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, ClientError, ConnectOptions, Event, ServerAddr};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tracing::info;

use super::config::{Access, NatsConfig};
use crate::address::Guard;
use crate::unsaid::Unsaid;
use crate::{Found, Refused};

/// How long all addresses of a server together may take, with the look for them.
const SERVER_LIMIT: Duration = Duration::from_secs(10);
/// How long one address may take.
const ADDRESS_LIMIT: Duration = Duration::from_secs(5);

/// The servers of a broker, and how to get in.
pub(super) struct Servers {
    sink: String,
    servers: Vec<ServerAddr>,
    guard: Guard,
    access: Access,
    /// Trusted besides the system's.
    authorities: Vec<CertificateDer<'static>>,
    unsaid: Arc<Unsaid>,
}

impl Servers {
    pub(super) fn new(
        sink: &str,
        config: &NatsConfig,
        found: &Found,
        guard: Guard,
    ) -> Result<Servers, Refused> {
        let access = Access::of(found)?;
        Ok(Servers {
            sink: sink.to_owned(),
            servers: config.servers(&guard)?,
            guard,
            unsaid: Arc::new(access.unsaid()),
            access,
            authorities: if config.ca.is_some() { authorities(found.get("ca"))? } else { Vec::new() },
        })
    }

    /// Words of a broker without what it was told in confidence.
    pub(super) fn quoted(&self, words: &dyn std::fmt::Display) -> String {
        self.unsaid.in_words(&words.to_string())
    }

    /// A connection to the first of the servers that lets us in, or why none does.
    pub(super) async fn connect(&self) -> Result<Client, String> {
        let mut failed = Vec::new();
        for server in &self.servers {
            let limited = tokio::time::timeout(SERVER_LIMIT, self.connect_to(server)).await;
            match limited.unwrap_or_else(|_| Err("it takes too long".to_owned())) {
                Ok(client) => return Ok(client),
                Err(words) => failed.push(format!("{}: {}", server.host(), self.unsaid.in_words(&words))),
            }
        }
        Err(failed.join("; "))
    }

    async fn connect_to(&self, server: &ServerAddr) -> Result<Client, String> {
        let found = self.guard.resolve(server.host(), server.port()).await;
        let mut last = String::new();
        for address in found.map_err(|refused| refused.to_string())? {
            match self.options(server)?.connect(at(server, address)?).await {
                Ok(client) => return Ok(client),
                Err(error) => last = error.to_string(),
            }
        }
        Err(last)
    }

    fn options(&self, server: &ServerAddr) -> Result<ConnectOptions, String> {
        let options = match &self.access {
            Access::Open => ConnectOptions::new(),
            Access::Password(user, password) => {
                ConnectOptions::with_user_and_password(user.clone(), password.clone())
            }
            Access::Token(token) => ConnectOptions::with_token(token.clone()),
            Access::Credentials(text) => {
                ConnectOptions::with_credentials(text).map_err(|error| error.to_string())?
            }
        };
        let options = match self.tls(server.host()) {
            Ok(tls) => options.tls_client_config(tls),
            Err(words) if server.tls_required() => return Err(words),
            // Without TLS it is not missed; a server that demands it all the same finds that nobody is trusted.
            Err(_) => options,
        };
        let (sink, unsaid) = (self.sink.clone(), Arc::clone(&self.unsaid));
        let options = options.event_callback(move |event| {
            let (sink, unsaid) = (sink.clone(), Arc::clone(&unsaid));
            async move {
                // That the client ends is how a new look begins.
                if event != Event::ClientError(ClientError::MaxReconnects) {
                    info!(sink, "the broker: {}", unsaid.in_words(&event.to_string()));
                }
            }
        });
        // What a broker says of others is not followed: nobody has named or checked those.
        let options = options.name("stakeout").ignore_discovered_servers();
        Ok(options.connection_timeout(ADDRESS_LIMIT).max_reconnects(1))
    }

    /// TLS with whoever has a good certificate for this host.
    fn tls(&self, host: &str) -> Result<ClientConfig, String> {
        let unusable = |error: &dyn std::fmt::Display| format!("TLS cannot be set up: {error}");
        let mut roots = RootCertStore::empty();
        // Those that cannot be read are missed only by servers that need them.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        roots.add_parsable_certificates(self.authorities.iter().cloned());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let checks = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let checks = checks.build().map_err(|error| unusable(&error))?;
        let name = ServerName::try_from(host.to_owned()).map_err(|error| unusable(&error))?;
        let config = ClientConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().map_err(|error| unusable(&error))?;
        let config = config.dangerous().with_custom_certificate_verifier(Arc::new(ForName { name, checks }));
        Ok(config.with_no_client_auth())
    }
}

/// A server at one of its addresses.
fn at(server: &ServerAddr, address: SocketAddr) -> Result<ServerAddr, String> {
    let url = format!("{}://{address}", server.scheme());
    url.parse().map_err(|_| format!("{address} cannot be connected to"))
}

fn authorities(pem: &str) -> Result<Vec<CertificateDer<'static>>, Refused> {
    let refused = || Refused::new("ca", "expected a certificate in PEM");
    let read: Vec<_> =
        CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().map_err(|_| refused())?;
    let mut roots = RootCertStore::empty();
    let good = read.iter().all(|one| roots.add(one.clone()).is_ok());
    if good && !read.is_empty() { Ok(read) } else { Err(refused()) }
}

/// Accepts a certificate that is good for this name, whatever the client was told to connect to.
#[derive(Debug)]
struct ForName {
    name: ServerName<'static>,
    checks: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for ForName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _address: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.checks.verify_server_cert(end_entity, intermediates, &self.name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.checks.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.checks.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.checks.supported_verify_schemes()
    }
}
