//! A socket with frames on it: plain TCP, or TLS once negotiation has put it in.
//!
//! Neither waits in the middle of a frame nor copies one: plain segments go out with vectored
//! writes, and an answer stays in the buffer it was received into.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, Read, Write};

use bytes::{Buf, Bytes, BytesMut};
use rustls::ClientConnection;
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::connection::CallError;
use super::frame::{self, Frame};

/// Room made in the receive buffer before a read, bytes.
const READ_BYTES: usize = 64 << 10;
/// Segments handed to one vectored write.
const SEGMENTS_MAX: usize = 16;

/// The socket with its buffers.
#[derive(Debug)]
pub(crate) struct Transport {
    stream: TcpStream,
    tls: Option<Box<ClientConnection>>,
    outgoing: VecDeque<Bytes>,
    outgoing_bytes: usize,
    incoming: BytesMut,
}

impl Transport {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            tls: None,
            outgoing: VecDeque::new(),
            outgoing_bytes: 0,
            incoming: BytesMut::new(),
        }
    }

    /// From here on everything on the socket belongs to this session. What has been received but
    /// not taken yet was sent by the peer after the handshake's end and belongs to it, too.
    pub(crate) fn encrypt(&mut self, session: Box<ClientConnection>) -> io::Result<()> {
        let early = self.incoming.split();
        self.tls = Some(session);
        self.decrypt(&early)
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Bytes that wait to be sent.
    pub(crate) fn outgoing_bytes(&self) -> usize {
        self.outgoing_bytes
    }

    /// Puts bytes at the end of what is to be sent.
    pub(crate) fn queue(&mut self, segment: Bytes) -> io::Result<()> {
        if segment.is_empty() {
            return Ok(());
        }
        match &mut self.tls {
            Some(session) => {
                session.writer().write_all(&segment)?;
                self.queue_records()
            }
            None => {
                self.push(segment);
                Ok(())
            }
        }
    }

    fn push(&mut self, segment: Bytes) {
        self.outgoing_bytes += segment.len();
        self.outgoing.push_back(segment);
    }

    fn queue_records(&mut self) -> io::Result<()> {
        let Some(session) = &mut self.tls else { return Ok(()) };
        let mut records = Vec::new();
        while session.wants_write() {
            session.write_tls(&mut records)?;
        }
        if !records.is_empty() {
            self.push(records.into());
        }
        Ok(())
    }

    /// Waits until something can be read, or written if there is something to write.
    pub(crate) async fn ready(&self) -> io::Result<()> {
        let interest = if self.outgoing.is_empty() {
            Interest::READABLE
        } else {
            Interest::READABLE | Interest::WRITABLE
        };
        self.stream.ready(interest).await.map(drop)
    }

    /// Sends as much as the socket takes.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while !self.outgoing.is_empty() {
            let mut slices = [IoSlice::new(&[]); SEGMENTS_MAX];
            let count = self.outgoing.len().min(SEGMENTS_MAX);
            for (slice, segment) in slices.iter_mut().zip(&self.outgoing) {
                *slice = IoSlice::new(segment);
            }
            match self.stream.try_write_vectored(slices.get(..count).unwrap_or_default()) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => self.advance(written),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn advance(&mut self, mut written: usize) {
        self.outgoing_bytes -= written;
        while let Some(first) = self.outgoing.front_mut() {
            if written < first.len() {
                first.advance(written);
                return;
            }
            written -= first.len();
            self.outgoing.pop_front();
        }
    }

    /// Receives what is there; `false`: nothing was. The peer's end is an error.
    pub(crate) fn fill(&mut self) -> io::Result<bool> {
        if self.tls.is_some() {
            let mut records = vec![0; READ_BYTES];
            return match self.stream.try_read(&mut records) {
                Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
                Ok(n) => self.decrypt(records.get(..n).unwrap_or_default()).map(|()| true),
                Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(false),
                Err(e) => Err(e),
            };
        }
        if self.incoming.capacity() - self.incoming.len() < READ_BYTES / 4 {
            self.incoming.reserve(READ_BYTES);
        }
        match self.stream.try_read_buf(&mut self.incoming) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(true),
            Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(e) => Err(e),
        }
    }

    fn decrypt(&mut self, mut records: &[u8]) -> io::Result<()> {
        let Some(session) = &mut self.tls else { return Ok(()) };
        loop {
            if !records.is_empty() {
                session.read_tls(&mut records)?;
            }
            let state = session
                .process_new_packets()
                .map_err(|e| io::Error::new(ErrorKind::InvalidData, e))?;
            let plain = state.plaintext_bytes_to_read();
            let start = self.incoming.len();
            self.incoming.resize(start + plain, 0);
            if let Some(room) = self.incoming.get_mut(start..) {
                session.reader().read_exact(room)?;
            }
            if records.is_empty() {
                return self.queue_records();
            }
        }
    }

    /// The next complete frame among what was received.
    pub(crate) fn take_frame(&mut self) -> Result<Option<Frame>, CallError> {
        frame::take(&mut self.incoming).map_err(CallError::Protocol)
    }

    /// Sends all that waits.
    pub(crate) async fn flush_all(&mut self) -> io::Result<()> {
        loop {
            self.flush()?;
            if self.outgoing.is_empty() {
                return Ok(());
            }
            self.stream.writable().await?;
        }
    }

    /// Waits for the next frame.
    pub(crate) async fn read_frame(&mut self) -> Result<Frame, CallError> {
        loop {
            if let Some(frame) = self.take_frame()? {
                return Ok(frame);
            }
            self.stream.readable().await?;
            self.fill()?;
        }
    }
}
