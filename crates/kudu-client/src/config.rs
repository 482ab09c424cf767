//! How a client is set up.

use std::collections::HashMap;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::error::Error;
use crate::rpc::Endpoint;

/// Port of a master when none is given.
const MASTER_PORT: u16 = 7051;

/// Whether connections are encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encryption {
    /// Never. Authentication tokens cannot be used then, a password is sent in the clear, and with
    /// pinned certificates every server is refused, since none can show its own.
    Disabled,
    /// If the server offers it; on one machine only the handshake is done. With a password or with
    /// pinned certificates it is [`Encryption::Required`]: neither is of use in the clear.
    #[default]
    Optional,
    /// Always; a server that does not offer it is refused.
    Required,
}

/// Settings of a [`Client`](crate::Client).
#[derive(Clone, Debug)]
pub struct ClientConfig {
    pub(crate) masters: Vec<Endpoint>,
    pub(crate) security: Security,
    pub(crate) overrides: HashMap<String, Endpoint>,
    pub(crate) operation_timeout: Duration,
    pub(crate) attempt_timeout: Duration,
    pub(crate) write_bytes_in_flight_max: usize,
}

#[derive(Clone)]
pub(crate) struct Security {
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) encryption: Encryption,
    pub(crate) pinned_authorities: Vec<Vec<u8>>,
    pub(crate) pinned_fingerprints: Vec<[u8; 32]>,
}

impl Security {
    /// Whether a peer without TLS is refused: pins say who it has to be, which only TLS shows, and a
    /// password is sent in the clear only where that was asked for.
    pub(crate) fn must_encrypt(&self) -> bool {
        let pinned = !(self.pinned_authorities.is_empty() && self.pinned_fingerprints.is_empty());
        let has_secret = !self.password.is_empty() && self.encryption != Encryption::Disabled;
        pinned || has_secret || self.encryption == Encryption::Required
    }
}

impl std::fmt::Debug for Security {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Security")
            .field("user", &self.user)
            .field("encryption", &self.encryption)
            .field("pinned_authorities", &self.pinned_authorities.len())
            .field("pinned_fingerprints", &self.pinned_fingerprints.len())
            .finish_non_exhaustive()
    }
}

impl ClientConfig {
    /// A client of the cluster with these masters, `host` or `host:port`. All masters should be
    /// named, so that the client finds the leader whichever that is.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`]: no address, or one that cannot be understood.
    pub fn new<S: AsRef<str>>(masters: impl IntoIterator<Item = S>) -> Result<Self, Error> {
        let masters = masters
            .into_iter()
            .map(|address| parse_address(address.as_ref(), MASTER_PORT))
            .collect::<Result<Vec<_>, _>>()?;
        if masters.is_empty() {
            return Err(Error::invalid("no master address given"));
        }
        Ok(Self {
            masters,
            security: Security {
                user: default_user(),
                password: String::new(),
                encryption: Encryption::default(),
                pinned_authorities: Vec::new(),
                pinned_fingerprints: Vec::new(),
            },
            overrides: HashMap::new(),
            operation_timeout: Duration::from_secs(30),
            attempt_timeout: Duration::from_secs(10),
            write_bytes_in_flight_max: 64 << 20,
        })
    }

    /// User name and password for SASL PLAIN. The name is what the cluster's access rules see;
    /// without this call it is what the environment says (`USER`, `LOGNAME`), or `kudu-client`.
    #[must_use]
    pub fn user(mut self, name: &str, password: &str) -> Self {
        name.clone_into(&mut self.security.user);
        password.clone_into(&mut self.security.password);
        self
    }

    /// Whether connections are encrypted.
    #[must_use]
    pub fn encryption(mut self, encryption: Encryption) -> Self {
        self.security.encryption = encryption;
        self
    }

    /// Accepts only servers whose certificate is signed by one of these (PEM). Without this, the
    /// first master is believed and the certificates it names hold for the tablet servers.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`]: no certificate in it.
    pub fn pin_authorities(mut self, pem: &[u8]) -> Result<Self, Error> {
        let read = CertificateDer::pem_slice_iter(pem)
            .map(|certificate| certificate.map(|der| der.to_vec()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|e| Error::invalid(format!("CA certificates: {e}")))?;
        if read.is_empty() {
            return Err(Error::invalid("CA certificates: the text has none (PEM is expected)"));
        }
        self.security.pinned_authorities = read;
        Ok(self)
    }

    /// Like [`ClientConfig::pin_authorities`], with certificates in DER, such as
    /// [`Client::authorities`](crate::Client::authorities) has told before.
    #[must_use]
    pub fn pin_authorities_der(mut self, certificates: Vec<Vec<u8>>) -> Self {
        self.security.pinned_authorities = certificates;
        self
    }

    /// Accepts only servers whose certificate has one of these SHA-256 fingerprints.
    #[must_use]
    pub fn pin_certificates(mut self, fingerprints: &[[u8; 32]]) -> Self {
        self.security.pinned_fingerprints = fingerprints.to_vec();
        self
    }

    /// Reaches the server that the cluster calls `advertised` under another address, both
    /// `host:port`: for clusters in containers that do not know their addresses outside.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`]: an address cannot be understood.
    pub fn override_address(mut self, advertised: &str, reachable: &str) -> Result<Self, Error> {
        let advertised = parse_address(advertised, MASTER_PORT)?.to_string();
        self.overrides.insert(advertised, parse_address(reachable, MASTER_PORT)?);
        Ok(self)
    }

    /// Longest time a call takes with all its attempts, unless the call says otherwise (30 s).
    #[must_use]
    pub fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.operation_timeout = timeout;
        self
    }

    /// Longest time one attempt waits for its answer (10 s): a server that hangs does not use up
    /// the time of the whole call.
    #[must_use]
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = timeout;
        self
    }

    /// Bytes of rows that may be under way to the servers at a time (64 MiB); writes beyond wait.
    #[must_use]
    pub fn write_bytes_in_flight_max(mut self, bytes: usize) -> Self {
        self.write_bytes_in_flight_max = bytes;
        self
    }
}

fn default_user() -> String {
    ["USER", "LOGNAME"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|name| !name.trim().is_empty())
        .unwrap_or_else(|| "kudu-client".to_owned())
}

pub(crate) fn parse_address(text: &str, default_port: u16) -> Result<Endpoint, Error> {
    let text = text.trim();
    let bad = || Error::invalid(format!("address {text:?}: expected host or host:port"));
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or_else(bad)?;
            (host, port.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        Some(port) => port.parse().map_err(|_| bad())?,
        None => default_port,
    };
    if host.is_empty() || port == 0 || host.contains('/') {
        return Err(bad());
    }
    Ok(Endpoint { host: host.to_owned(), port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_and_without_port() {
        let show = |text: &str| parse_address(text, 7051).map(|e| e.to_string()).ok();
        assert_eq!(show("h").as_deref(), Some("h:7051"));
        assert_eq!(show(" h:1 ").as_deref(), Some("h:1"));
        assert_eq!(show("[::1]:70").as_deref(), Some("[::1]:70"));
        assert_eq!(show("[::1]").as_deref(), Some("[::1]:7051"));
        for bad in ["", ":1", "h:x", "h:70000", "http://h:7051", "[::1", "h:0", "a:b:1"] {
            assert_eq!(show(bad), None, "{bad}");
        }
        assert!(ClientConfig::new(Vec::<String>::new()).is_err());
    }

    #[test]
    fn pinned_certificates_must_be_certificates() {
        let config = ClientConfig::new(["h"]).unwrap();
        assert!(config.pin_authorities(b"nothing").is_err());
    }
}
