//! Where connections come from: TCP, with or without TLS, and a Unix socket.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Listens on `host:port`; without a host on every address of the machine.
pub(crate) fn tcp(address: &str) -> io::Result<TcpListener> {
    let listener = match address.strip_prefix(':') {
        None => TcpListener::bind(address)?,
        Some(port) => {
            let port = port.parse().map_err(|_| io::ErrorKind::InvalidInput)?;
            // An IPv6 socket takes both kinds of connections; some machines have no IPv6.
            let addresses = [
                SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)),
                SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
            ];
            TcpListener::bind(&addresses[..])?
        }
    };
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// A Unix socket; dropping it removes its file.
#[derive(Debug)]
pub(crate) struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl UnixSocket {
    /// Listens on the file `path`. One that a server left behind that is gone is removed first.
    pub(crate) fn listen(path: &Path) -> io::Result<Self> {
        let named = |error: io::Error| io::Error::other(format!("{}: {error}", path.display()));
        let listener = match UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                // Somebody who listens would answer; what is no socket is not ours to remove.
                let is_socket = std::fs::symlink_metadata(path)
                    .is_ok_and(|metadata| metadata.file_type().is_socket());
                match UnixStream::connect(path) {
                    Err(refused)
                        if is_socket && refused.kind() == io::ErrorKind::ConnectionRefused =>
                    {
                        remove(path).map_err(named)?;
                        UnixListener::bind(path)
                    }
                    _ => Err(error),
                }
            }
            other => other,
        };
        let listener = listener.map_err(named)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, path: path.to_owned() })
    }

    /// The same for use within a runtime.
    pub(crate) fn to_async(&self) -> io::Result<tokio::net::UnixListener> {
        tokio::net::UnixListener::from_std(self.listener.try_clone()?)
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.path) {
            tracing::warn!("cannot remove {}: {error}", self.path.display());
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a socket is no file of the database")]
fn remove(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)
}
