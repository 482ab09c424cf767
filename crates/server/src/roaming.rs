//! A socket that goes where its connection goes: to the runtime that looks after it from then on.
//!
//! A runtime asks the kernel which sockets are ready, and then reads. A thread that answers one client has nothing
//! else to wait for between two requests, so it waits and reads with one call: see `ahead`.

mod ahead;
#[cfg(target_os = "linux")]
mod follow;

use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime;

use crate::threads::{answers_one, own_runtime};
use ahead::Ahead;
pub(crate) use ahead::read_ahead;

/// Of so many reads of a thread that answers one client, one is followed by a look at where that runs: four calls of
/// the kernel, about a tenth of a microsecond a request (by calculation).
const READS_A_LOOK: u32 = 16;

/// Where calls wait, a read that shall not takes so much at most, bytes: its buffer is cleared before.
const READ_BYTES_MAX: usize = 64 << 10;

/// What can be taken from one runtime to another.
pub(crate) trait Socket: AsyncRead + AsyncWrite + AsFd + Unpin + Sized {
    /// The same, looked after by the runtime of this moment.
    ///
    /// # Errors
    /// There are too many open files.
    fn settled(self) -> io::Result<Self>;

    /// `call`, which says that it would have to wait rather than do it, as soon as it need not.
    fn poll_call<R>(
        &self,
        interest: Interest,
        cx: &mut Context<'_>,
        call: impl FnMut() -> io::Result<R>,
    ) -> Poll<io::Result<R>>;

    /// Has this thread run where the client does, if that is on this machine and known.
    fn follow(&self);
}

/// What both kinds of socket do in the same way, by methods of the same names.
macro_rules! as_a_stream {
    () => {
        fn settled(self) -> io::Result<Self> {
            let socket = self.into_std()?;
            // Calls that wait may have been good where it comes from.
            socket.set_nonblocking(true)?;
            Self::from_std(socket)
        }

        fn poll_call<R>(
            &self,
            interest: Interest,
            cx: &mut Context<'_>,
            mut call: impl FnMut() -> io::Result<R>,
        ) -> Poll<io::Result<R>> {
            loop {
                if interest.is_readable() {
                    ready!(self.poll_read_ready(cx))?;
                } else {
                    ready!(self.poll_write_ready(cx))?;
                }
                match self.try_io(interest, &mut call) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    outcome => return Poll::Ready(outcome),
                }
            }
        }
    };
}

impl Socket for TcpStream {
    as_a_stream!();

    fn follow(&self) {
        #[cfg(target_os = "linux")]
        if self.peer_addr().is_ok_and(|peer| peer.ip().to_canonical().is_loopback()) {
            follow::follow(self);
        }
    }
}

impl Socket for UnixStream {
    as_a_stream!();

    /// Nothing tells where the client runs.
    fn follow(&self) {}
}

/// This thread answers its client no longer.
pub(crate) fn leave() {
    ahead::leave();
    #[cfg(target_os = "linux")]
    follow::leave();
}

/// A socket, and the runtime that looks after it.
#[derive(Debug)]
pub(crate) struct Roaming<S> {
    /// `None` once it could not be taken along.
    socket: Option<S>,
    /// `None`: the runtime that all connections share.
    home: Option<runtime::Id>,
    /// It is on a thread that answers one client: calls wait that are not told otherwise.
    waits: bool,
    /// What such a thread has read.
    ahead: Arc<Ahead>,
    /// Reads since it came here.
    reads: u32,
}

impl<S: Socket> Roaming<S> {
    /// A socket of the runtime that all connections share.
    pub(crate) fn new(socket: S) -> Self {
        Self { socket: Some(socket), home: None, waits: false, ahead: Arc::default(), reads: 0 }
    }

    /// The socket, looked after by the runtime that asks for it, and whether calls wait.
    fn here(&mut self) -> io::Result<(Pin<&mut S>, bool)> {
        let here = own_runtime();
        if self.home != here {
            let settled = self.socket.take().map(Socket::settled).transpose()?;
            // Without one more file it is read as elsewhere.
            self.waits = answers_one()
                && settled.as_ref().is_some_and(|socket| self.ahead.begin(socket).is_ok());
            (self.home, self.reads) = (here, 0);
            self.socket = settled;
        }
        let socket = self.socket.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        Ok((Pin::new(socket), self.waits))
    }

    /// To be called after a read, on the client's heels.
    fn follow(&mut self) {
        if self.reads.is_multiple_of(READS_A_LOOK)
            && let Some(socket) = &self.socket
        {
            socket.follow();
        }
        self.reads = self.reads.wrapping_add(1);
    }
}

impl<S: Socket> AsyncRead for Roaming<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let is_ahead = self.ahead.take(buf);
        let (socket, waits) = self.here()?;
        let outcome = if is_ahead {
            Poll::Ready(Ok(()))
        } else if waits {
            let (socket, length) = (&*socket, buf.remaining().min(READ_BYTES_MAX));
            socket.poll_call(Interest::READABLE, cx, || {
                let bytes = buf.initialize_unfilled_to(length);
                let (received, _) = recv(socket, bytes, RecvFlags::DONTWAIT)?;
                buf.advance(received);
                Ok(())
            })
        } else {
            socket.poll_read(cx, buf)
        };
        if waits && outcome.is_ready() {
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
        let (socket, waits) = self.here()?;
        if !waits {
            return socket.poll_write(cx, bytes);
        }
        let socket = &*socket;
        let flags = SendFlags::DONTWAIT;
        socket.poll_call(Interest::WRITABLE, cx, || Ok(send(socket, bytes, flags)?))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let (socket, waits) = self.here()?;
        if !waits {
            return socket.poll_write_vectored(cx, slices);
        }
        let socket = &*socket;
        socket.poll_call(Interest::WRITABLE, cx, || {
            let nothing_else = &mut SendAncillaryBuffer::default();
            Ok(sendmsg(socket, slices, nothing_else, SendFlags::DONTWAIT)?)
        })
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.here()?.0.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.here()?.0.poll_shutdown(cx)
    }
}
