//! From a checked address to a mail server that listens: secured as the configuration says, and measured.

use std::net::SocketAddr;
use std::sync::Arc;

use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::measured::Measured;
use super::{MailConfig, MailTls};
use crate::address::{Guard, plain};
use crate::{Found, Refused, trust};

/// How a connection is secured, with what that takes. The certificate has to be for the host in the configuration,
/// whatever address is connected to.
pub(super) enum Security {
    /// From the start.
    Tls(Arc<ClientConfig>, ServerName<'static>),
    /// After STARTTLS.
    Starttls(TlsParameters),
    /// Not at all.
    None,
}

/// Why there is nobody to hand a mail to.
pub(super) enum NotConnected {
    /// The server said that it does not want us.
    Refused(String),
    /// There is no server, or none that can be spoken with.
    Lost(String),
}

impl From<SmtpError> for NotConnected {
    fn from(error: SmtpError) -> NotConnected {
        match error.is_permanent() || error.is_transient() {
            true => NotConnected::Refused(said(&error)),
            false => NotConnected::Lost(said(&error)),
        }
    }
}

impl Security {
    pub(super) fn of(config: &MailConfig, guard: &Guard, found: &Found) -> Result<Security, Refused> {
        let host = |words: String| Refused::new("host", words);
        let authorities = trust::authorities(config.ca.as_ref().map(|_| found.get("ca")))?;
        match config.tls {
            MailTls::None if guard.allows(&config.host) => Ok(Security::None),
            MailTls::None => {
                let message = format!("expected tls or starttls; allow = [{:?}] permits none", config.host);
                Err(Refused::new("tls", message))
            }
            MailTls::Tls => {
                let tls = trust::client(&authorities).map_err(|error| host(error.to_string()))?;
                Ok(Security::Tls(tls, trust::server_name(&config.host).map_err(host)?))
            }
            // In the middle of a conversation it is up to those who have it, and they take their own parameters.
            MailTls::Starttls => {
                let mut parameters = TlsParameters::builder(plain(&config.host));
                for authority in authorities {
                    let certificate = Certificate::from_der(authority.to_vec());
                    parameters =
                        parameters.add_root_certificate(certificate.map_err(|error| host(said(&error)))?);
                }
                Ok(Security::Starttls(parameters.build().map_err(|error| host(said(&error)))?))
            }
        }
    }

    /// A server that has greeted us, and let us in where there is something to let us in with.
    pub(super) async fn connect(
        &self,
        address: SocketAddr,
        access: Option<&Credentials>,
    ) -> Result<AsyncSmtpConnection, NotConnected> {
        let lost = |error: std::io::Error| NotConnected::Lost(error.to_string());
        let hello = ClientId::default();
        let stream = Measured::new(TcpStream::connect(address).await.map_err(lost)?, address);
        let mut server = match self {
            Security::Tls(config, name) => {
                let connector = TlsConnector::from(Arc::clone(config));
                let stream = connector.connect(name.clone(), stream).await.map_err(lost)?;
                // What is encrypted is measured; around it is only what lettre wants to be given.
                let stream = Box::new(Measured::new(stream, address));
                AsyncSmtpConnection::connect_with_transport(stream, &hello).await?
            }
            _ => AsyncSmtpConnection::connect_with_transport(Box::new(stream), &hello).await?,
        };
        if let Security::Starttls(parameters) = self {
            server.starttls(parameters.clone(), &hello).await?;
        }
        if let Some(access) = access {
            server.auth(&[Mechanism::Plain, Mechanism::Login], access).await?;
        }
        Ok(server)
    }
}

/// What went wrong, with its cause.
pub(super) fn said(error: &SmtpError) -> String {
    let mut said = error.to_string();
    if let Some(cause) = std::error::Error::source(error).map(ToString::to_string)
        && !said.contains(&cause)
    {
        said = format!("{said}: {cause}");
    }
    said
}
