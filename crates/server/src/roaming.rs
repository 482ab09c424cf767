//! A socket that goes where its connection goes: to the runtime that looks after it from then on.

#[cfg(target_os = "linux")]
mod follow;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime;

use crate::threads::{answers_one, own_runtime};

/// Of so many reads of a thread that serves one connection, one is followed by a look at where its client runs: a
/// few nanoseconds a request.
const READS_A_LOOK: u32 = 64;

/// What can be taken from one runtime to another.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Unpin + Sized {
    /// The same, looked after by the runtime of this moment.
    ///
    /// # Errors
    /// There are too many open files.
    fn settled(self) -> io::Result<Self>;

    /// Has this thread run where the client does, if that is on this machine and known.
    fn follow(&self);
}

impl Socket for TcpStream {
    fn settled(self) -> io::Result<Self> {
        Self::from_std(self.into_std()?)
    }

    fn follow(&self) {
        #[cfg(target_os = "linux")]
        if self.peer_addr().is_ok_and(|peer| peer.ip().to_canonical().is_loopback()) {
            follow::follow(self);
        }
    }
}

impl Socket for UnixStream {
    fn settled(self) -> io::Result<Self> {
        Self::from_std(self.into_std()?)
    }

    /// Nothing tells where the client runs.
    fn follow(&self) {}
}

/// A socket, and the runtime that looks after it.
#[derive(Debug)]
pub(crate) struct Roaming<S> {
    /// `None` once it could not be taken along.
    socket: Option<S>,
    /// `None`: the runtime that all connections share.
    home: Option<runtime::Id>,
    /// Reads since it came here.
    reads: u32,
}

impl<S: Socket> Roaming<S> {
    /// A socket of the runtime that all connections share.
    pub(crate) fn new(socket: S) -> Self {
        Self { socket: Some(socket), home: None, reads: 0 }
    }

    /// The socket, looked after by the runtime that asks for it.
    fn here(&mut self) -> io::Result<Pin<&mut S>> {
        let here = own_runtime();
        if self.home != here {
            self.socket = self.socket.take().map(Socket::settled).transpose()?;
            (self.home, self.reads) = (here, 0);
        }
        self.socket.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// To be called after a read, on the client's heels.
    fn follow(&mut self) {
        if self.home.is_some() && answers_one() {
            if self.reads.is_multiple_of(READS_A_LOOK)
                && let Some(socket) = &self.socket
            {
                socket.follow();
            }
            self.reads = self.reads.wrapping_add(1);
        }
    }
}

impl<S: Socket> AsyncRead for Roaming<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let outcome = self.here()?.poll_read(cx, buf);
        if outcome.is_ready() {
            self.follow();
        }
        outcome
    }
}

impl<S: Socket> AsyncWrite for Roaming<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.here()?.poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.here()?.poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.here()?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.here()?.poll_shutdown(cx)
    }
}
