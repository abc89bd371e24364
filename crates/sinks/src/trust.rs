//! Whose word is taken for who a receiver is: the system's certificate authorities, and those that a configuration adds.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use crate::Refused;
use crate::address::plain;

/// The authorities of a configuration's `ca`, from its PEM; none where there is none.
pub(crate) fn authorities(pem: Option<&str>) -> Result<Vec<CertificateDer<'static>>, Refused> {
    let Some(pem) = pem else { return Ok(Vec::new()) };
    let refused = || Refused::new("ca", "expected a certificate in PEM");
    let read: Vec<_> =
        CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().map_err(|_| refused())?;
    let mut roots = RootCertStore::empty();
    let good = read.iter().all(|one| roots.add(one.clone()).is_ok());
    if good && !read.is_empty() { Ok(read) } else { Err(refused()) }
}

/// TLS with whoever one of these authorities, or of the system's, vouches for.
pub(crate) fn client(authorities: &[CertificateDer<'static>]) -> Result<Arc<ClientConfig>, rustls::Error> {
    let mut roots = RootCertStore::empty();
    // Those that cannot be read are missed only by servers that need them.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots.add_parsable_certificates(authorities.iter().cloned());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

/// The name that a certificate has to be for; it is sent along with the handshake (SNI), unless it is an address.
pub(crate) fn server_name(host: &str) -> Result<ServerName<'static>, String> {
    ServerName::try_from(plain(host))
        .map_err(|_| format!("{host:?} is no name that a certificate could be for"))
}
