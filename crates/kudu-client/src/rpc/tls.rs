//! TLS inside negotiation: whom to trust, and the handshake on memory buffers.
//!
//! Names in certificates are not checked: servers are mostly addressed by IP address, and Kudu's
//! own certificates carry the host's name only. What is checked is the chain (or the fingerprint),
//! the dates, and the proof that the peer holds the key.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, IpAddr, ServerName, UnixTime};
use rustls::{
    CertificateError, CipherSuite, ClientConfig, ClientConnection, DigitallySignedStruct,
    RootCertStore, SignatureScheme, SupportedCipherSuite,
};

/// Whose certificates are accepted.
#[derive(Clone, Debug)]
pub(crate) enum Trust {
    /// Any: the peer proves its key, nothing else. All there is before the cluster has told its CA.
    Anyone,
    /// Those signed by one of these certificates (DER).
    Authorities(Vec<Vec<u8>>),
    /// Those with one of these SHA-256 fingerprints.
    Fingerprints(Vec<[u8; 32]>),
}

/// SHA-256 of a certificate (DER).
fn fingerprint(certificate: &[u8]) -> Option<[u8; 32]> {
    let sha256 = provider().cipher_suites.into_iter().find_map(|suite| match suite {
        SupportedCipherSuite::Tls13(s)
            if s.common.suite == CipherSuite::TLS13_AES_128_GCM_SHA256 =>
        {
            Some(s.common.hash_provider)
        }
        _ => None,
    })?;
    sha256.hash(certificate).as_ref().try_into().ok()
}

/// A session that is about to greet `host`.
pub(crate) fn session(host: &str, trust: &Trust) -> Result<Box<ClientConnection>, String> {
    let provider = Arc::new(provider());
    let verifier = Verifier::new(trust, &provider)?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.resumption = rustls::client::Resumption::disabled();
    let name = ServerName::try_from(host.to_owned())
        .unwrap_or(ServerName::IpAddress(IpAddr::V4([127, 0, 0, 1].into())));
    let mut session = ClientConnection::new(Arc::new(config), name).map_err(|e| e.to_string())?;
    session.set_buffer_limit(None);
    Ok(Box::new(session))
}

/// Takes all bytes the session wants to send: one flight.
pub(crate) fn take_flight(session: &mut ClientConnection) -> std::io::Result<Vec<u8>> {
    let mut flight = Vec::new();
    while session.wants_write() {
        session.write_tls(&mut flight)?;
    }
    Ok(flight)
}

/// Gives the session a flight of the peer.
pub(crate) fn put_flight(session: &mut ClientConnection, mut bytes: &[u8]) -> Result<(), String> {
    while !bytes.is_empty() {
        session.read_tls(&mut bytes).map_err(|e| e.to_string())?;
        session.process_new_packets().map_err(|e| e.to_string())?;
    }
    Ok(())
}

fn provider() -> CryptoProvider {
    rustls::crypto::ring::default_provider()
}

#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    fingerprints: Option<Vec<[u8; 32]>>,
    chain: Option<Arc<WebPkiServerVerifier>>,
}

impl Verifier {
    fn new(trust: &Trust, provider: &Arc<CryptoProvider>) -> Result<Self, String> {
        let (fingerprints, chain) = match trust {
            Trust::Anyone => (None, None),
            Trust::Fingerprints(accepted) => (Some(accepted.clone()), None),
            Trust::Authorities(authorities) => {
                let mut roots = RootCertStore::empty();
                for der in authorities {
                    roots
                        .add(CertificateDer::from(der.as_slice()))
                        .map_err(|e| format!("CA certificate cannot be used: {e}"))?;
                }
                let chain = WebPkiServerVerifier::builder_with_provider(
                    Arc::new(roots),
                    Arc::clone(provider),
                )
                .build()
                .map_err(|e| e.to_string())?;
                (None, Some(chain))
            }
        };
        Ok(Self { provider: Arc::clone(provider), fingerprints, chain })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if let Some(accepted) = &self.fingerprints {
            let matches = fingerprint(end_entity).is_some_and(|f| accepted.contains(&f));
            if !matches {
                return Err(rustls::Error::General(
                    "the server's certificate is not one of the pinned ones".to_owned(),
                ));
            }
        }
        if let Some(chain) = &self.chain {
            // The chain is verified before the name, so an error of the name means a good chain.
            match chain.verify_server_cert(
                end_entity,
                intermediates,
                server_name,
                ocsp_response,
                now,
            ) {
                Ok(_)
                | Err(rustls::Error::InvalidCertificate(
                    CertificateError::NotValidForName
                    | CertificateError::NotValidForNameContext { .. },
                )) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn fingerprint_is_sha256() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let got: String =
            super::fingerprint(b"abc").unwrap().iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(got, expected);
    }
}
