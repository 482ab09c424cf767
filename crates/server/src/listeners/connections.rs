//! Connections that send lines.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::BufMut;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::ListenerStats;

/// Connections of one listener at a time; more are closed at once.
const CONNECTIONS_MAX: usize = 1024;
/// Longest line, bytes. Whoever sends a longer one is cut off.
pub(super) const LINE_BYTES_MAX: usize = 64 << 10;
/// Bytes read at a time, from who sends little and from who just sent as many.
const READ_BYTES: usize = 16 << 10;
const READ_BYTES_MAX: usize = LINE_BYTES_MAX;
/// After a failure to accept (too many open files) so long passes before the next try.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections and has `serve` see to each, for ever.
pub(super) async fn accept<F>(
    listener: TcpListener,
    stats: Arc<ListenerStats>,
    serve: impl Fn(TcpStream) -> F,
) where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    accept_up_to(CONNECTIONS_MAX, listener, stats, serve).await;
}

async fn accept_up_to<F>(
    connections_max: usize,
    listener: TcpListener,
    stats: Arc<ListenerStats>,
    serve: impl Fn(TcpStream) -> F,
) where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(connections_max));
    // They end with this task.
    let mut connections = JoinSet::new();
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            if stats.connections_refused.get() == 0 {
                let (name, bind) = (stats.name, &stats.bind);
                tracing::warn!(%peer, name, bind, "all {connections_max} connections are taken");
            }
            stats.connections_refused.add(1);
            continue;
        };
        stats.connections.add(1);
        let (serving, stats) = (serve(stream), Arc::clone(&stats));
        connections.spawn(async move {
            let _place = place;
            let _active = Active::new(&stats);
            if let Err(error) = serving.await {
                tracing::debug!(%peer, "a connection failed: {error}");
            }
        });
    }
}

/// Counts a connection as long as it lives.
struct Active<'a>(&'a ListenerStats);

impl<'a> Active<'a> {
    fn new(stats: &'a ListenerStats) -> Self {
        stats.connections_active.fetch_add(1, Ordering::Relaxed);
        Self(stats)
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.connections_active.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a connection sends, cut at line ends.
#[derive(Debug)]
pub(super) struct LineReader<S> {
    stream: S,
    buffer: Vec<u8>,
    /// How many bytes are read next, [`READ_BYTES`] or [`READ_BYTES_MAX`].
    read_bytes: usize,
    /// How long is waited for more.
    patience: Duration,
}

impl<S: AsyncRead + Unpin> LineReader<S> {
    pub(super) fn new(stream: S, patience: Duration) -> Self {
        Self { stream, buffer: Vec::new(), read_bytes: READ_BYTES, patience }
    }

    /// The first line, which stays to be read; `None`: there is none.
    pub(super) async fn peek_line(&mut self) -> io::Result<Option<&[u8]>> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.buffer) {
                return Ok(Some(&self.buffer[..end]));
            }
            if !self.fill().await? {
                return Ok(None);
            }
        }
    }

    /// Some whole lines; `None` at the end. A last line without its end is left out: it may have
    /// been cut off.
    pub(super) async fn lines(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(end) = memchr::memrchr(b'\n', &self.buffer) {
                let rest = self.buffer.split_off(end + 1);
                return Ok(Some(std::mem::replace(&mut self.buffer, rest)));
            }
            if !self.fill().await? {
                return Ok(None);
            }
        }
    }

    /// Reads more; says whether there was any.
    async fn fill(&mut self) -> io::Result<bool> {
        let line_room = LINE_BYTES_MAX.saturating_sub(self.buffer.len());
        if line_room == 0 {
            return Err(io::Error::other("a line is too long"));
        }
        let room = line_room.min(self.read_bytes);
        self.buffer.reserve(room);
        let mut part = (&mut self.buffer).limit(room);
        let read = timeout(self.patience, self.stream.read_buf(&mut part)).await;
        let read = read.map_err(|_| io::Error::other("it sent nothing for a long time"))??;
        self.read_bytes = if read < room { READ_BYTES } else { READ_BYTES_MAX };
        Ok(read > 0)
    }

    pub(super) fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    /// The stream, and what was read of it already.
    pub(super) fn into_parts(self) -> (Vec<u8>, S) {
        (self.buffer, self.stream)
    }
}

/// The lines of some text that are text at all, and the number of the others.
pub(super) fn texts(text: &[u8]) -> (Vec<&str>, u64) {
    // Usually all of it is, which is told at once.
    if let Ok(text) = std::str::from_utf8(text) {
        return (text.split('\n').filter(|line| !line.trim().is_empty()).collect(), 0);
    }
    let mut bad = 0;
    let mut lines = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        match std::str::from_utf8(line) {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => lines.push(line),
            Err(_) => bad += 1,
        }
    }
    (lines, bad)
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(3600);

    /// Time passes when there is nothing else to do.
    fn run(test: impl Future<Output = ()>) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().start_paused(true).build().unwrap().block_on(test);
    }

    #[test]
    fn whoever_is_silent_is_given_up() {
        run(async {
            let (mut sender, receiver) = tokio::io::duplex(100);
            let mut reader = LineReader::new(receiver, PATIENCE);
            sender.write_all(b"one\nhalf").await.unwrap();
            assert_eq!(reader.lines().await.unwrap(), Some(b"one\n".to_vec()));
            assert!(reader.lines().await.is_err());
            assert!(reader.peek_line().await.is_err());
        });
    }

    #[test]
    fn those_without_a_place_are_counted() {
        run(async {
            let stats = Arc::new(ListenerStats::default());
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let serve = |_: TcpStream| std::future::pending();
            let accepting = tokio::spawn(accept_up_to(1, listener, Arc::clone(&stats), serve));
            let _first = TcpStream::connect(address).await.unwrap();
            for refused in 1..3 {
                let mut next = TcpStream::connect(address).await.unwrap();
                let _ = next.read(&mut [0]).await;
                assert_eq!(
                    (stats.connections.get(), stats.connections_refused.get()),
                    (1, refused)
                );
            }
            accepting.abort();
        });
    }

    #[test]
    fn lines_are_read_whole() {
        run(async {
            let sent = format!("one\ntwo\n{}\nlast", "x".repeat(40_000));
            let mut reader = LineReader::new(sent.as_bytes(), PATIENCE);
            assert_eq!(reader.peek_line().await.unwrap(), Some(&b"one"[..]));
            let mut got = Vec::new();
            while let Some(lines) = reader.lines().await.unwrap() {
                assert!(lines.ends_with(b"\n"));
                got.extend(lines);
            }
            assert_eq!(got, sent.strip_suffix("last").unwrap().as_bytes());
            // With its end as well as without, after short lines as well as first.
            for (before, len, fits) in [
                ("", LINE_BYTES_MAX - 1, true),
                ("a\n", LINE_BYTES_MAX - 1, true),
                ("", LINE_BYTES_MAX, false),
                ("a\n", LINE_BYTES_MAX, false),
            ] {
                let sent = format!("{before}{}\n", "x".repeat(len));
                let mut reader = LineReader::new(sent.as_bytes(), PATIENCE);
                let mut got = Vec::new();
                let read = loop {
                    match reader.lines().await {
                        Ok(Some(lines)) => got.extend(lines),
                        Ok(None) => break true,
                        Err(_) => break false,
                    }
                };
                assert_eq!((read, got == sent.as_bytes()), (fits, fits), "{before:?} {len}");
            }
        });
        assert_eq!(texts(b"\na b\n \nc\r\n"), (vec!["a b", "c\r"], 0));
        assert_eq!(texts(b"a b\n\n \xff\nc\r\n"), (vec!["a b", "c\r"], 1));
    }
}
