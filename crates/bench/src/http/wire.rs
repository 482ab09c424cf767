//! Framing of HTTP/1.1 answers over any byte stream.
//!
//! Limits: `HEAD_BYTES_MAX` for status line and headers, `BODY_BYTES_MAX` for a body.

use std::io::{self, Read, Write};

const HEAD_BYTES_MAX: usize = 64 << 10;
const BODY_BYTES_MAX: usize = 1 << 30;
const READ_BYTES: usize = 64 << 10;
/// Digits of a chunk size; more would exceed `BODY_BYTES_MAX` anyway.
const CHUNK_DIGITS_MAX: usize = 8;

#[derive(Debug)]
pub(super) enum ReceiveError {
    Io(io::Error),
    Malformed(&'static str),
    TooLarge(usize),
}

impl From<io::Error> for ReceiveError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Status and headers of the last answer.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub(super) status: u16,
    /// The server will close the connection, or the framing demands that we do.
    pub(super) close: bool,
    /// Header lines with their line ends.
    lines: String,
}

impl Head {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.lines.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

enum Framing {
    Length(usize),
    Chunked,
    UntilClose,
}

/// A stream with a read buffer: `buffer[start..end]` has been received and not yet consumed.
#[derive(Debug)]
pub(super) struct Wire<S> {
    stream: S,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl<S: Read + Write> Wire<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, buffer: vec![0; READ_BYTES], start: 0, end: 0 }
    }

    pub(super) fn send(&mut self, head: &[u8], body: &[u8]) -> io::Result<()> {
        self.stream.write_all(head)?;
        self.stream.write_all(body)
    }

    /// Reads one answer. A stream that ends before its first byte is reported as a reset connection.
    pub(super) fn receive(
        &mut self,
        method: &str,
        head: &mut Head,
        body: &mut Vec<u8>,
    ) -> Result<(), ReceiveError> {
        loop {
            self.receive_head(head)?;
            if head.status >= 200 {
                break;
            }
        }
        body.clear();
        match framing(method, head)? {
            Framing::Length(length) => self.receive_exactly(length, body),
            Framing::Chunked => self.receive_chunks(body),
            Framing::UntilClose => {
                head.close = true;
                self.receive_rest(body)
            }
        }
    }

    /// Reads more bytes; false at the end of the stream.
    fn read_more(&mut self) -> Result<bool, ReceiveError> {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        } else if self.end == self.buffer.len() {
            if self.start == 0 {
                return Err(ReceiveError::TooLarge(self.buffer.len()));
            }
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        loop {
            match self.stream.read(&mut self.buffer[self.end..]) {
                Ok(count) => {
                    self.end += count;
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn need_more(&mut self) -> Result<(), ReceiveError> {
        if self.read_more()? {
            Ok(())
        } else {
            Err(ReceiveError::Malformed("the answer is cut off"))
        }
    }

    /// Reads up to and including a line feed and returns the line without its end.
    fn receive_line(&mut self) -> Result<(usize, usize), ReceiveError> {
        let mut searched = 0;
        loop {
            let pending = &self.buffer[self.start..self.end];
            if let Some(found) = pending[searched..].iter().position(|&byte| byte == b'\n') {
                let (start, feed) = (self.start, self.start + searched + found);
                self.start = feed + 1;
                let end =
                    if feed > start && self.buffer[feed - 1] == b'\r' { feed - 1 } else { feed };
                return Ok((start, end));
            }
            searched = pending.len();
            self.need_more()?;
        }
    }

    fn receive_head(&mut self, head: &mut Head) -> Result<(), ReceiveError> {
        if self.start == self.end && !self.read_more()? {
            return Err(io::Error::from(io::ErrorKind::ConnectionReset).into());
        }
        head.lines.clear();
        let (start, end) = self.receive_line()?;
        let (status, keep) = status_line(&self.buffer[start..end])?;
        head.status = status;
        head.close = !keep;
        loop {
            let (start, end) = self.receive_line()?;
            if start == end {
                break;
            }
            head.lines.push_str(&String::from_utf8_lossy(&self.buffer[start..end]));
            head.lines.push('\n');
            if head.lines.len() > HEAD_BYTES_MAX {
                return Err(ReceiveError::TooLarge(HEAD_BYTES_MAX));
            }
        }
        match head.header("Connection") {
            Some(value) if value.eq_ignore_ascii_case("close") => head.close = true,
            Some(value) if value.eq_ignore_ascii_case("keep-alive") => head.close = false,
            _ => {}
        }
        Ok(())
    }

    fn receive_exactly(&mut self, length: usize, body: &mut Vec<u8>) -> Result<(), ReceiveError> {
        let mut left = length;
        loop {
            let count = left.min(self.end - self.start);
            body.extend_from_slice(&self.buffer[self.start..self.start + count]);
            self.start += count;
            left -= count;
            if left == 0 {
                return Ok(());
            }
            self.need_more()?;
        }
    }

    fn receive_chunks(&mut self, body: &mut Vec<u8>) -> Result<(), ReceiveError> {
        loop {
            let (start, end) = self.receive_line()?;
            let length = chunk_length(&self.buffer[start..end])?;
            if body.len() + length > BODY_BYTES_MAX {
                return Err(ReceiveError::TooLarge(BODY_BYTES_MAX));
            }
            if length == 0 {
                break;
            }
            self.receive_exactly(length, body)?;
            let (start, end) = self.receive_line()?;
            if start != end {
                return Err(ReceiveError::Malformed("a chunk is longer than its size says"));
            }
        }
        loop {
            let (start, end) = self.receive_line()?;
            if start == end {
                return Ok(());
            }
        }
    }

    fn receive_rest(&mut self, body: &mut Vec<u8>) -> Result<(), ReceiveError> {
        loop {
            body.extend_from_slice(&self.buffer[self.start..self.end]);
            self.start = self.end;
            if body.len() > BODY_BYTES_MAX {
                return Err(ReceiveError::TooLarge(BODY_BYTES_MAX));
            }
            if !self.read_more()? {
                return Ok(());
            }
        }
    }
}

/// Status code, and whether the protocol version keeps connections open by default.
fn status_line(line: &[u8]) -> Result<(u16, bool), ReceiveError> {
    let malformed = ReceiveError::Malformed("no HTTP/1 status line");
    let Some(rest) = line.strip_prefix(b"HTTP/1.") else { return Err(malformed) };
    let digits = rest.get(2..5).and_then(|digits| std::str::from_utf8(digits).ok());
    match (rest.first(), rest.get(1), digits.map(str::parse::<u16>)) {
        (Some(minor @ (b'0' | b'1')), Some(b' '), Some(Ok(status)))
            if (100..600).contains(&status) =>
        {
            Ok((status, *minor == b'1'))
        }
        _ => Err(malformed),
    }
}

fn framing(method: &str, head: &Head) -> Result<Framing, ReceiveError> {
    if method == "HEAD" || head.status == 204 || head.status == 304 {
        return Ok(Framing::Length(0));
    }
    if head.header("Transfer-Encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        return Ok(Framing::Chunked);
    }
    let Some(length) = head.header("Content-Length") else { return Ok(Framing::UntilClose) };
    match length.parse::<usize>() {
        Ok(length) if length <= BODY_BYTES_MAX => Ok(Framing::Length(length)),
        Ok(_) => Err(ReceiveError::TooLarge(BODY_BYTES_MAX)),
        Err(_) => Err(ReceiveError::Malformed("Content-Length is not a number")),
    }
}

fn chunk_length(line: &[u8]) -> Result<usize, ReceiveError> {
    let malformed = ReceiveError::Malformed("a chunk size is not a number");
    let digits = line.split(|&byte| byte == b';' || byte == b' ').next().unwrap_or_default();
    if digits.is_empty()
        || digits.len() > CHUNK_DIGITS_MAX
        || !digits.iter().all(u8::is_ascii_hexdigit)
    {
        return Err(malformed);
    }
    let text = std::str::from_utf8(digits)
        .map_err(|_| ReceiveError::Malformed("a chunk size is not text"))?;
    usize::from_str_radix(text, 16).map_err(|_| malformed)
}
