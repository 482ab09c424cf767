//! A blocking HTTP/1.1 client of one server: one kept-alive connection, TLS, Unix sockets, answers
//! that are read as they come.
//!
//! Invariants
//! - An answer is never held whole here: its reader decides how much of it is in memory.
//! - A request that may have been executed is sent again only if its sender said that it may be.
//!
//! Not here: what is asked (`query`, `write`), redirects, proxies.

mod connect;
mod endpoint;

use std::fmt;
use std::io::{self, BufRead, Read};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request, StatusCode};
use tokio::runtime::Runtime;

pub(crate) use endpoint::{Endpoint, Place, Security};

/// Longest text of an error that is read.
const ERROR_BYTES_MAX: usize = 64 << 10;
/// What ends an answer that Ctrl-C interrupts.
pub(crate) const INTERRUPTED: &str = "interrupted";

/// A connection to a server, made when it is needed.
pub(crate) struct Client {
    runtime: Runtime,
    endpoint: Endpoint,
    connection: Option<SendRequest<Full<Bytes>>>,
    /// Whether Ctrl-C ends the request rather than the program.
    pub(crate) interruptible: bool,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// What is asked of the server.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) content_type: &'static str,
    pub(crate) body: Bytes,
    /// Whether asking twice does no harm.
    pub(crate) repeatable: bool,
}

impl Ask {
    pub(crate) fn get(target: &str) -> Self {
        Self {
            method: Method::GET,
            target: target.to_owned(),
            content_type: "text/plain",
            body: Bytes::new(),
            repeatable: true,
        }
    }
}

impl Client {
    /// # Errors
    /// The system has no room for it.
    pub(crate) fn new(endpoint: Endpoint) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, endpoint, connection: None, interruptible: false })
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Uses other credentials from now on.
    pub(crate) fn set_user(&mut self, user: Option<(String, String)>) {
        self.endpoint.user = user;
    }

    /// Asks, and gives the answer whatever its status.
    ///
    /// # Errors
    /// There is no answer.
    pub(crate) fn ask(&mut self, ask: &Ask) -> Result<Answer<'_>> {
        let mut fresh = self.connection.is_none();
        let answer = loop {
            let error = match self.try_ask(ask) {
                Ok(answer) => break answer,
                Err(error) => error,
            };
            // A server may close an idle connection at any time.
            let unsent = error.downcast_ref::<hyper::Error>();
            let unsent = unsent.is_some_and(|error| error.is_canceled() || error.is_closed());
            self.connection = None;
            if fresh || !(unsent || ask.repeatable) || error.to_string() == INTERRUPTED {
                return Err(error);
            }
            fresh = true;
        };
        let (parts, body) = answer.into_parts();
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            runtime: &self.runtime,
            interruptible: self.interruptible,
            body,
            rest: Bytes::new(),
        })
    }

    /// The same, where every status but 2xx is an error.
    ///
    /// # Errors
    /// There is no answer, or a refusal.
    pub(crate) fn ask_ok(&mut self, ask: &Ask) -> Result<Answer<'_>> {
        let answer = self.ask(ask)?;
        if answer.status.is_success() {
            return Ok(answer);
        }
        Err(anyhow!(answer.into_refusal()?))
    }

    fn try_ask(&mut self, ask: &Ask) -> Result<hyper::Response<Incoming>> {
        if self.connection.as_ref().is_none_or(SendRequest::is_closed) {
            let connected = self.runtime.block_on(connect::connect(&self.endpoint));
            let connected =
                connected.with_context(|| format!("cannot connect to {}", self.endpoint));
            self.connection = Some(connected?);
        }
        let Some(connection) = self.connection.as_mut() else {
            bail!("not connected to {}", self.endpoint)
        };
        let mut request = Request::builder()
            .method(ask.method.clone())
            .uri(&ask.target)
            .header(HOST, self.endpoint.authority())
            .header(USER_AGENT, concat!("nyala/", env!("CARGO_PKG_VERSION")))
            .header(CONTENT_TYPE, ask.content_type);
        if let Some((name, password)) = &self.endpoint.user {
            let both = STANDARD.encode(format!("{name}:{password}"));
            request = request.header(AUTHORIZATION, format!("Basic {both}"));
        }
        let request = request.body(Full::new(ask.body.clone()))?;
        let interruptible = self.interruptible;
        self.runtime.block_on(async {
            // Lets the connection notice that the server has closed it.
            tokio::task::yield_now().await;
            connection.ready().await?;
            tokio::select! {
                answer = connection.send_request(request) => Ok(answer?),
                () = interrupt(interruptible) => bail!(INTERRUPTED),
            }
        })
    }
}

/// Ctrl-C, if it is listened to.
async fn interrupt(listen: bool) {
    if !listen || tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// An answer, read as it comes.
pub(crate) struct Answer<'c> {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    runtime: &'c Runtime,
    interruptible: bool,
    body: Incoming,
    /// What has come and is not read yet.
    rest: Bytes,
}

impl fmt::Debug for Answer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("status", &self.status).finish_non_exhaustive()
    }
}

/// A status that is not 2xx.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// The body as it came.
    pub(crate) body: String,
    /// When the server says to try again.
    pub(crate) retry_after: Option<Duration>,
}

impl Refusal {
    /// The reason alone.
    pub(crate) fn reason(&self) -> String {
        #[derive(serde::Deserialize)]
        struct Document {
            error: String,
        }
        match serde_json::from_str::<Document>(&self.body) {
            Ok(document) => document.error,
            Err(_) if self.body.trim().is_empty() => self.status.to_string(),
            Err(_) => self.body.trim().to_owned(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason())
    }
}

impl std::error::Error for Refusal {}

impl Answer<'_> {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Reads the reason of a refusal.
    ///
    /// # Errors
    /// The connection broke.
    pub(crate) fn into_refusal(mut self) -> io::Result<Refusal> {
        let seconds = self.header(RETRY_AFTER.as_str()).and_then(|text| text.parse().ok());
        let mut body = Vec::new();
        (&mut self).take(ERROR_BYTES_MAX as u64).read_to_end(&mut body)?;
        let body = String::from_utf8_lossy(&body).into_owned();
        let retry_after = seconds.map(Duration::from_secs);
        Ok(Refusal { status: self.status, body, retry_after })
    }

    /// Reads to the end, so that the connection can be used again.
    ///
    /// # Errors
    /// The connection broke.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        io::copy(&mut self, &mut io::sink()).map(drop)
    }
}

impl BufRead for Answer<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.rest.is_empty() {
            let interruptible = self.interruptible;
            let body = &mut self.body;
            let frame = self.runtime.block_on(async {
                tokio::select! {
                    frame = body.frame() => Ok(frame),
                    () = interrupt(interruptible) => Err(io::Error::other(INTERRUPTED)),
                }
            })?;
            match frame {
                None => break,
                Some(frame) => {
                    let frame = frame.map_err(io::Error::other)?;
                    self.rest = frame.into_data().unwrap_or_default();
                }
            }
        }
        Ok(&self.rest)
    }

    fn consume(&mut self, amount: usize) {
        drop(self.rest.split_to(amount));
    }
}

impl Read for Answer<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let ready = self.fill_buf()?;
        let count = ready.len().min(into.len());
        into[..count].copy_from_slice(&ready[..count]);
        self.consume(count);
        Ok(count)
    }
}
