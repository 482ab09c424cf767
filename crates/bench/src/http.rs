//! A blocking HTTP/1.1 client that costs as little as it can: one kept-alive connection, reused buffers, no
//! parsing beyond status, framing and the headers that are asked for.
//!
//! Not here: TLS, redirects, compression, pipelining.

use std::io;
use std::net::TcpStream;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use thiserror::Error;

mod wire;

#[cfg(test)]
mod tests;

use wire::{Head, Wire};

/// Everything but the characters that never need an escape in a query string.
const QUERY_ESCAPES: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Bodies up to this size travel in one write with the head.
const JOINED_BODY_BYTES_MAX: usize = 64 << 10;
const TIMEOUT: Duration = Duration::from_secs(600);

/// Why a request has no answer.
#[derive(Debug, Error)]
pub enum HttpError {
    /// The address is not one this client can use.
    #[error("{0:?} is not of the form http://HOST:PORT")]
    Url(String),
    /// The connection failed.
    #[error("{doing} {authority}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// With whom.
        authority: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The server sent something that is not HTTP/1.1.
    #[error("{authority} sent a malformed answer: {reason}")]
    Malformed {
        /// By whom.
        authority: String,
        /// What was wrong.
        reason: &'static str,
    },
    /// The server sent more than this client is willing to hold.
    #[error("{authority} sent more than {limit_bytes} bytes")]
    TooLarge {
        /// By whom.
        authority: String,
        /// The limit.
        limit_bytes: usize,
    },
}

/// An answer; its body lives in the client's buffer.
#[derive(Debug)]
pub struct Response<'a> {
    /// Status code.
    pub status: u16,
    /// The body, with any transfer coding removed.
    pub body: &'a [u8],
    head: &'a Head,
}

impl Response<'_> {
    /// The first header of this name, in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }

    /// Whether the status is 2xx.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// A connection to one server, opened when first needed and again after it broke.
#[derive(Debug)]
pub struct Client {
    authority: String,
    request: Vec<u8>,
    body: Vec<u8>,
    head: Head,
    wire: Option<Wire<TcpStream>>,
}

impl Client {
    /// A client of the server at `http://HOST:PORT`; connects with the first request.
    ///
    /// # Errors
    /// When the address is of another form.
    pub fn new(url: &str) -> Result<Self, HttpError> {
        let rest = url.strip_prefix("http://").map(|rest| rest.strip_suffix('/').unwrap_or(rest));
        let authority = rest
            .filter(|rest| {
                rest.rsplit_once(':')
                    .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
            })
            .ok_or_else(|| HttpError::Url(url.to_owned()))?;
        Ok(Self {
            authority: authority.to_owned(),
            request: Vec::new(),
            body: Vec::new(),
            head: Head::default(),
            wire: None,
        })
    }

    /// Sends a GET.
    ///
    /// # Errors
    /// When there is no answer; any status is an answer.
    pub fn get(&mut self, target: &str) -> Result<Response<'_>, HttpError> {
        self.request("GET", target, &[], &[])
    }

    /// Sends a POST.
    ///
    /// # Errors
    /// When there is no answer; any status is an answer.
    pub fn post(
        &mut self,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Response<'_>, HttpError> {
        self.request("POST", target, headers, body)
    }

    /// Sends a request and reads the whole answer.
    ///
    /// A request that finds its kept-alive connection closed is sent once more on a new one; every request
    /// made here may be repeated without harm.
    ///
    /// # Errors
    /// When there is no answer; any status is an answer.
    pub fn request(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Response<'_>, HttpError> {
        self.render(method, target, headers, body);
        let reused = self.wire.is_some();
        let mut outcome = self.exchange(method, body);
        if reused && matches!(&outcome, Err(HttpError::Io { source, .. }) if is_stale(source)) {
            outcome = self.exchange(method, body);
        }
        outcome?;
        Ok(Response { status: self.head.status, body: &self.body, head: &self.head })
    }

    fn render(&mut self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) {
        let out = &mut self.request;
        out.clear();
        for piece in [method, " ", target, " HTTP/1.1\r\nHost: ", &self.authority, "\r\n"] {
            out.extend_from_slice(piece.as_bytes());
        }
        for (name, value) in headers {
            for piece in [name, ": ", value, "\r\n"] {
                out.extend_from_slice(piece.as_bytes());
            }
        }
        if method != "GET" && method != "HEAD" {
            out.extend_from_slice(b"Content-Length: ");
            crate::text::push_int(out, body.len() as i64);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
        if body.len() <= JOINED_BODY_BYTES_MAX {
            out.extend_from_slice(body);
        }
    }

    fn exchange(&mut self, method: &str, body: &[u8]) -> Result<(), HttpError> {
        let mut wire = match self.wire.take() {
            Some(wire) => wire,
            None => self.connect()?,
        };
        let rest = if body.len() <= JOINED_BODY_BYTES_MAX { &[][..] } else { body };
        wire.send(&self.request, rest).map_err(|source| self.io("send to", source))?;
        wire.receive(method, &mut self.head, &mut self.body)
            .map_err(|error| self.explain(error))?;
        if !self.head.close {
            self.wire = Some(wire);
        }
        Ok(())
    }

    fn connect(&self) -> Result<Wire<TcpStream>, HttpError> {
        let open = || {
            let stream = TcpStream::connect(&self.authority)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            stream.set_write_timeout(Some(TIMEOUT))?;
            Ok(Wire::new(stream))
        };
        open().map_err(|source| self.io("connect to", source))
    }

    fn io(&self, doing: &'static str, source: io::Error) -> HttpError {
        HttpError::Io { doing, authority: self.authority.clone(), source }
    }

    fn explain(&self, error: wire::ReceiveError) -> HttpError {
        let authority = self.authority.clone();
        match error {
            wire::ReceiveError::Io(source) => self.io("receive from", source),
            wire::ReceiveError::Malformed(reason) => HttpError::Malformed { authority, reason },
            wire::ReceiveError::TooLarge(limit_bytes) => {
                HttpError::TooLarge { authority, limit_bytes }
            }
        }
    }
}

/// Whether the error is that of a connection which the server closed while it was idle.
fn is_stale(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected)
}

/// Escapes a value for a query string.
#[must_use]
pub fn escape(value: &str) -> String {
    utf8_percent_encode(value, QUERY_ESCAPES).to_string()
}

/// `path?key=value&...` with escaped values.
#[must_use]
pub fn target(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut target = String::from(path);
    for (index, (key, value)) in parameters.iter().enumerate() {
        target.push(if index == 0 { '?' } else { '&' });
        target.push_str(&escape(key));
        target.push('=');
        target.push_str(&escape(value));
    }
    target
}
