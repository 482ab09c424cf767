//! TLS: a certificate and its key from files, read again when the files change.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// How often the files are looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The protocols on top, the preferred one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Where certificate and key are, as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and those that lead to one that clients know.
    pub certificate: PathBuf,
    /// The private key; may be the same file.
    pub private_key: PathBuf,
}

/// What a file was like when it was read: length and time of change.
type Stamp = [Option<(u64, SystemTime)>; 2];

/// The certificate in use.
pub(crate) struct Tls {
    files: TlsFiles,
    current: Mutex<Arc<rustls::ServerConfig>>,
    stamp: Mutex<Stamp>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// They cannot be read, or do not fit together; the text names them.
    pub(crate) fn load(files: TlsFiles) -> io::Result<Self> {
        let stamp = Mutex::new(stamp(&files));
        let current = Mutex::new(read(&files)?);
        Ok(Self { files, current, stamp })
    }

    /// For the next connection.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&*self.current.lock()))
    }

    /// Reads the files again whenever they change, for ever. What cannot be used leaves everything
    /// as it is.
    pub(crate) async fn follow(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(LOOK_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let tls = Arc::clone(&self);
            if let Err(failed) = tokio::task::spawn_blocking(move || tls.look()).await {
                tracing::error!("looking at the certificate failed by a bug: {failed}");
            }
        }
    }

    /// Reads the files if they are not what they were.
    fn look(&self) {
        let now = stamp(&self.files);
        if *self.stamp.lock() == now {
            return;
        }
        *self.stamp.lock() = now;
        match read(&self.files) {
            Ok(config) => {
                *self.current.lock() = config;
                tracing::info!("the certificate has changed; new connections use it");
            }
            Err(error) => tracing::error!("the old certificate stays in use: {error}"),
        }
    }
}

fn stamp(files: &TlsFiles) -> Stamp {
    [&files.certificate, &files.private_key].map(|path| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.len(), metadata.modified().ok()?))
    })
}

fn read(files: &TlsFiles) -> io::Result<Arc<rustls::ServerConfig>> {
    let wrong = |path: &Path, why: &dyn fmt::Display| {
        io::Error::other(format!("{}: {why}", path.display()))
    };
    let bytes = |path: &Path| std::fs::read(path).map_err(|error| wrong(path, &error));
    let (certificate, key) = (&files.certificate, &files.private_key);
    let chain: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_slice_iter(&bytes(certificate)?).collect();
    let chain = chain.map_err(|error| wrong(certificate, &error))?;
    if chain.is_empty() {
        return Err(wrong(certificate, &"there is no certificate in it"));
    }
    let private = PrivateKeyDer::from_pem_slice(&bytes(key)?);
    let private = private.map_err(|error| wrong(key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(chain, private);
    let mut config = config.map_err(|error| wrong(key, &error))?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(Arc::new(config))
}
