//! TLS to a destination of a subscription: its certificate must lead to one that this system trusts
//! (or that the file named by SSL_CERT_FILE holds).

use std::io;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The same connection, with TLS to the host of `address`.
pub(super) async fn secure(address: &str, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
    // Each connection looks at the certificates anew: they are few, and trust may change.
    let config = tokio::task::spawn_blocking(config).await.map_err(io::Error::other)??;
    let name = ServerName::try_from(host(address).to_owned()).map_err(io::Error::other)?;
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// The host of `host:port` or `[host]:port`.
fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

fn config() -> io::Result<ClientConfig> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let reasons: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
        return Err(io::Error::other(format!(
            "this system trusts no certificate at all: {}",
            reasons.join("; ")
        )));
    }
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_addresses() {
        for (address, expected) in
            [("h:1", "h"), ("[::1]:9", "::1"), ("127.0.0.1:8086", "127.0.0.1")]
        {
            assert_eq!(host(address), expected);
            assert!(ServerName::try_from(expected).is_ok());
        }
    }
}
