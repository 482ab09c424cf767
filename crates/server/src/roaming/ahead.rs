//! Reading before the connection asks, on a thread that answers one client.
//!
//! Between two requests such a thread has nothing to do but wait for its socket. A runtime asks the kernel which
//! sockets are ready, is told, and then reads; here the thread sleeps in the read itself: one call less, and the client
//! that sends wakes the reader and not a list of sockets. The bytes are kept for the connection, which is asked to go on.
//!
//! The socket is told that calls wait, with a limit. Whoever else uses it on this thread says otherwise with each call.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::io::{fcntl_dupfd_cloexec, ioctl_fionbio};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, recv};
use tokio::io::ReadBuf;

/// How long a read waits, before the runtime waits for everything.
const WAIT: Duration = Duration::from_millis(10);

/// A read takes so much, bytes; most questions are smaller.
const READ_BYTES: usize = 4 << 10;

/// What was read and not asked for yet.
#[derive(Debug, Default)]
pub(super) struct Ahead(Mutex<Vec<u8>>);

/// The socket of the one client that this thread answers.
#[derive(Debug)]
struct Waiting {
    /// The same socket by another descriptor.
    socket: OwnedFd,
    ahead: Arc<Ahead>,
    bytes: Box<[u8; READ_BYTES]>,
}

thread_local! {
    static WAITING: RefCell<Option<Waiting>> = const { RefCell::new(None) };
}

impl Ahead {
    /// Moves what there is to `buf`, as much as fits; whether there was anything.
    pub(super) fn take(&self, buf: &mut ReadBuf<'_>) -> bool {
        let mut bytes = self.0.lock();
        let length = bytes.len().min(buf.remaining());
        buf.put_slice(&bytes[..length]);
        bytes.drain(..length);
        length > 0
    }

    /// From now on this thread waits for `socket`, until [`leave`].
    ///
    /// # Errors
    /// There are too many open files.
    pub(super) fn begin(self: &Arc<Self>, socket: &impl AsFd) -> io::Result<()> {
        let bytes = Box::new([0; READ_BYTES]);
        let waiting =
            Waiting { socket: fcntl_dupfd_cloexec(socket, 0)?, ahead: Arc::clone(self), bytes };
        set_socket_timeout(socket, Timeout::Recv, Some(WAIT))?;
        ioctl_fionbio(socket, false)?;
        WAITING.set(Some(waiting));
        Ok(())
    }
}

/// Waits a little for the client of this thread, and reads what it sends; whether it has sent anything. Errors and the
/// end are left to the connection's own reads.
pub(crate) fn read_ahead() -> bool {
    WAITING.with_borrow_mut(|waiting| {
        let Some(Waiting { socket, ahead, bytes }) = waiting else { return false };
        let mut kept = ahead.0.lock();
        if !kept.is_empty() {
            return false;
        }
        let Ok((received, _)) = recv(socket, bytes.as_mut_slice(), RecvFlags::empty()) else {
            return false;
        };
        kept.extend_from_slice(&bytes[..received]);
        received > 0
    })
}

/// This thread waits for its client no longer.
pub(super) fn leave() {
    WAITING.set(None);
}
