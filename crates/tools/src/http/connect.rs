//! Makes connections.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

use super::{Endpoint, Place, Security};

const CONNECT_MAX: Duration = Duration::from_secs(30);

/// Connects, and leaves a task that moves bytes whenever the runtime runs.
pub(super) async fn connect(endpoint: &Endpoint) -> Result<SendRequest<Full<Bytes>>> {
    match &endpoint.place {
        Place::Socket(path) => {
            let stream = in_time(UnixStream::connect(path)).await?;
            secure(endpoint, "localhost", stream).await
        }
        Place::Tcp(host, port) => {
            let stream = in_time(TcpStream::connect((host.as_str(), *port))).await?;
            stream.set_nodelay(true)?;
            secure(endpoint, host, stream).await
        }
    }
}

async fn in_time<T>(connecting: impl Future<Output = io::Result<T>>) -> Result<T> {
    match tokio::time::timeout(CONNECT_MAX, connecting).await {
        Ok(connected) => Ok(connected?),
        Err(_) => Err(anyhow!("no answer in {CONNECT_MAX:?}")),
    }
}

async fn secure<S>(endpoint: &Endpoint, host: &str, stream: S) -> Result<SendRequest<Full<Bytes>>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    if endpoint.security == Security::Plain {
        return speak(stream).await;
    }
    let config = tls_config(endpoint.security)?;
    let name = ServerName::try_from(host.to_owned()).context("not a name a certificate has")?;
    let connector = TlsConnector::from(Arc::new(config));
    speak(in_time(connector.connect(name, stream)).await.context("TLS")?).await
}

async fn speak<S>(stream: S) -> Result<SendRequest<Full<Bytes>>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    // Its failures are those of the requests on it.
    tokio::spawn(async { drop(connection.await) });
    Ok(sender)
}

fn tls_config(security: Security) -> Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?;
    if security == Security::TlsAnyCertificate {
        let any = Arc::new(AnyCertificate(provider));
        return Ok(builder.dangerous().with_custom_certificate_verifier(any).with_no_client_auth());
    }
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let reasons: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
        return Err(anyhow!("this system trusts no certificate at all: {}", reasons.join("; ")));
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Believes every certificate; signatures are still checked.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
