//! From a URL to connections: what it may say, and how they are encrypted.
//!
//! `sslmode=disable` never encrypts. `prefer`, the default, encrypts where the server offers it, whoever it may be;
//! that keeps out nobody who can answer in its place. `require` (and `verify-full`, which means the same here) accepts
//! only a server whose certificate is good for its name, by the system's authorities or those in `sslrootcert`.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Timeouts};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres::Socket;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::StoreError;

/// How long a connection may take to be made, and how long to wait for a free one.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a connection may be silent before it is asked whether it is still there, and how often then.
const SILENCE: Duration = Duration::from_secs(5);
const PROBE_EVERY: Duration = Duration::from_secs(2);

/// Where a database is and how to talk to it.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) config: tokio_postgres::Config,
    pub(super) tls: Tls,
    /// For people: without user and password.
    pub(super) shown: String,
    /// Who speaks, in hints: nobody needs to hear his own.
    pub(super) sender: String,
}

/// As people may see it.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

const EXPECTED: &str = "expected postgres://USER:PASSWORD@HOST:PORT/DATABASE, with special characters in the password \
                        percent-encoded, and after a question mark sslmode (disable, prefer, require), sslrootcert, \
                        application_name or connect_timeout";

impl Address {
    /// Reads a URL. The reasons of a refusal never repeat it: it may hold a password.
    pub(super) fn parse(url: &str) -> Result<Address, StoreError> {
        let wrong = |message: String| StoreError::Database { doing: "understand store.url", message };
        let (plain, root) = without_root(url);
        let mut config: tokio_postgres::Config = plain.parse().map_err(|_| wrong(EXPECTED.to_owned()))?;
        if config.get_application_name().is_none() {
            config.application_name("stakeout");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(PATIENCE);
        }
        // A peer that is gone without a word is noticed before its absence costs a lease.
        config.keepalives_idle(SILENCE).keepalives_interval(PROBE_EVERY).keepalives_retries(3);
        #[cfg(target_os = "linux")]
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(PATIENCE);
        }
        let sender = sender();
        // A socket file has no name to check and nobody on the way.
        #[cfg(unix)]
        if config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)))
            && !config.get_hosts().is_empty()
        {
            config.ssl_mode(SslMode::Disable);
        }
        let tls = Tls(MakeRustlsConnect::new(tls_config(config.get_ssl_mode(), root).map_err(wrong)?));
        let shown = show(&config);
        Ok(Address { config, tls, shown, sender })
    }

    /// What holds for every connection of the pool. Our statements are short: compiling them would take longer than
    /// running them. And whoever stops between two reads of one moment holds up nobody for longer than that.
    fn session(&self) -> String {
        format!(
            "SET jit = off; SET idle_in_transaction_session_timeout = '2s'; SET stakeout.sender = '{}'",
            self.sender
        )
    }

    pub(super) fn pool(&self, connections: usize) -> Result<Pool, StoreError> {
        let keep = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(self.config.clone(), self.tls.clone(), keep);
        let timeouts = Timeouts { wait: Some(PATIENCE), create: Some(PATIENCE), recycle: Some(PATIENCE) };
        let session = self.session();
        // Said on the connection and not while it is made: poolers refuse options there.
        let settle = Hook::async_fn(move |client, _| {
            let session = session.clone();
            Box::pin(async move { client.batch_execute(&session).await.map_err(HookError::Backend) })
        });
        Pool::builder(manager)
            .post_create(settle)
            .max_size(connections.max(1))
            .timeouts(timeouts)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|e| StoreError::Database { doing: "make a pool of connections", message: e.to_string() })
    }
}

/// A name that no other store has, in this process or another.
fn sender() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}-{n}", std::process::id(), since.as_nanos())
}

/// Encryption, where it is wanted. The driver asks for it before it knows whether it is, and then a socket file has no
/// name that a certificate could be for.
#[derive(Clone)]
pub(super) struct Tls(MakeRustlsConnect);

impl MakeTlsConnect<Socket> for Tls {
    type Stream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;
    type TlsConnect = <MakeRustlsConnect as MakeTlsConnect<Socket>>::TlsConnect;
    type Error = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Error;

    fn make_tls_connect(&mut self, host: &str) -> Result<Self::TlsConnect, Self::Error> {
        let name = if host.is_empty() || host.starts_with('/') { "localhost" } else { host };
        <MakeRustlsConnect as MakeTlsConnect<Socket>>::make_tls_connect(&mut self.0, name)
    }
}

/// Takes out what the driver does not know: the file of authorities, and libpq's word for "require, and check".
fn without_root(url: &str) -> (String, Option<PathBuf>) {
    let Some((base, query)) = url.split_once('?') else { return (url.to_owned(), None) };
    let mut root = None;
    let mut kept = Vec::new();
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some(("sslrootcert", path)) => root = Some(PathBuf::from(path.replace("%2F", "/"))),
            Some(("sslmode", "verify-full" | "verify-ca")) => kept.push("sslmode=require"),
            _ => kept.push(pair),
        }
    }
    let query = kept.join("&");
    (if query.is_empty() { base.to_owned() } else { format!("{base}?{query}") }, root)
}

fn show(config: &tokio_postgres::Config) -> String {
    let host = match config.get_hosts().first() {
        // An unencoded @ in a password would leave its tail in the host.
        Some(Host::Tcp(host)) => host.rsplit('@').next().unwrap_or_default().to_owned(),
        #[cfg(unix)]
        Some(Host::Unix(path)) => path.display().to_string(),
        None => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    format!("postgres://{host}:{port}/{}", config.get_dbname().unwrap_or_default())
}

fn tls_config(mode: SslMode, root: Option<PathBuf>) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|e| format!("TLS cannot be set up: {e}"))?;
    if mode != SslMode::Require {
        return Ok(builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
            .with_no_client_auth());
    }
    let mut roots = RootCertStore::empty();
    match root {
        Some(path) => {
            let bad = |e: &dyn std::fmt::Display| format!("sslrootcert {}: {e}", path.display());
            for certificate in CertificateDer::pem_file_iter(&path).map_err(|e| bad(&e))? {
                roots.add(certificate.map_err(|e| bad(&e))?).map_err(|e| bad(&e))?;
            }
        }
        // Those that cannot be read are missed only by servers that need them.
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Accepts any certificate: `prefer` would also go without encryption.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_holds_no_password() {
        let of = |url: &str| Address::parse(url).map(|address| address.shown).expect("a URL");
        assert_eq!(of("postgres://u:secret@db.example:5433/stakeout"), "postgres://db.example:5433/stakeout");
        assert_eq!(of("postgres://u:sec%40ret@h/s?sslmode=disable"), "postgres://h:5432/s");
        assert!(!of("postgres://u:sec@ret@h/s").contains("ret"));
        for bad in ["postgres://u:secret@h:port/s", "postgres://u:secret@h/s?nonsense=1"] {
            let error = Address::parse(bad).expect_err("refused").to_string();
            assert!(error.contains("expected postgres://") && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn encryption_is_asked_for_as_elsewhere() {
        let mode = |url: &str| Address::parse(url).expect("a URL").config.get_ssl_mode();
        assert_eq!(mode("postgres://h/s"), SslMode::Prefer);
        assert_eq!(mode("postgres://h/s?sslmode=require"), SslMode::Require);
        assert_eq!(mode("postgres://h/s?application_name=x&sslmode=verify-full"), SslMode::Require);
        let missing = Address::parse("postgres://h/s?sslmode=require&sslrootcert=/no/such/file");
        assert!(missing.expect_err("refused").to_string().contains("/no/such/file"));
    }
}
