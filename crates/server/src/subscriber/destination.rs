//! One destination of a subscription: an HTTP server that takes `/write`, with TLS or without, or a
//! UDP socket.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::SendRequest;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use super::secure::secure;

/// A destination has so long to take one write.
const PATIENCE: Duration = Duration::from_secs(30);
/// Datagrams are filled up to here with whole lines: more would be cut apart on the way.
const DATAGRAM_BYTES: usize = 1400;

/// Where copies of rows go.
#[derive(Debug)]
pub(super) struct Destination {
    /// Host and port.
    address: String,
    way: Way,
}

#[derive(Debug)]
enum Way {
    Http(Box<HttpWay>),
    Udp(Option<UdpSocket>),
}

#[derive(Debug)]
struct HttpWay {
    /// Path and parameters.
    target: String,
    /// Name and password, as they are sent.
    credentials: Option<String>,
    tls: bool,
    connection: Option<SendRequest<Full<Bytes>>>,
}

impl Destination {
    /// The destination of a URL that the catalog has accepted.
    pub(super) fn new(url: &str, database: &str, policy: &str) -> Self {
        let (scheme, rest) = url.split_once("://").unwrap_or(("udp", url));
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (user, address) = match authority.rsplit_once('@') {
            Some((user, address)) => (Some(user), address),
            None => (None, authority),
        };
        // As elsewhere, a port alone is one of this machine.
        let local = if address.starts_with(':') { "127.0.0.1" } else { "" };
        let address = format!("{local}{address}");
        let tls = scheme.eq_ignore_ascii_case("https");
        if !tls && !scheme.eq_ignore_ascii_case("http") {
            return Self { address, way: Way::Udp(None) };
        }
        let path = path.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
        let params: String = form_urlencoded::Serializer::new(String::new())
            .append_pair("consistency", "one")
            .append_pair("db", database)
            .append_pair("precision", "ns")
            .append_pair("rp", policy)
            .finish();
        let credentials = user.map(|user| {
            let plain: Vec<u8> = percent_encoding::percent_decode_str(user).collect();
            format!("Basic {}", BASE64_STANDARD.encode(plain))
        });
        let target = format!("{path}/write?{params}");
        let way = HttpWay { target, credentials, tls, connection: None };
        Self { address, way: Way::Http(Box::new(way)) }
    }

    /// The address, without credentials.
    pub(super) fn shown(&self) -> &str {
        &self.address
    }

    /// Sends lines; fails if they are not taken, or if it takes too long.
    pub(super) async fn send(&mut self, text: &Bytes) -> io::Result<()> {
        let sent = match &mut self.way {
            Way::Http(way) => timeout(PATIENCE, way.send(&self.address, text)).await,
            Way::Udp(socket) => {
                timeout(PATIENCE, send_datagrams(socket, &self.address, text)).await
            }
        };
        sent.unwrap_or_else(|_| {
            if let Way::Http(way) = &mut self.way {
                way.connection = None;
            }
            Err(io::Error::from(io::ErrorKind::TimedOut))
        })
    }
}

impl HttpWay {
    async fn send(&mut self, address: &str, text: &Bytes) -> io::Result<()> {
        // A connection that was kept may have been closed meanwhile: then nothing was taken.
        if let Some(mut kept) = self.connection.take()
            && kept.ready().await.is_ok()
        {
            match kept.try_send_request(self.request(address, text)?).await {
                Ok(answer) => return self.read(answer, kept).await,
                Err(failed) if failed.message().is_some() => {}
                Err(failed) => return Err(io::Error::other(failed.into_error())),
            }
        }
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut sender = match self.tls {
            true => speak(secure(address, stream).await?).await?,
            false => speak(stream).await?,
        };
        let answer = sender.send_request(self.request(address, text)?).await;
        self.read(answer.map_err(io::Error::other)?, sender).await
    }

    fn request(&self, address: &str, text: &Bytes) -> io::Result<Request<Full<Bytes>>> {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(&self.target)
            .header(HOST, address)
            .header(USER_AGENT, concat!("nyala/", env!("CARGO_PKG_VERSION")))
            .header(CONTENT_TYPE, "text/plain; charset=utf-8");
        if let Some(credentials) = &self.credentials {
            request = request.header(AUTHORIZATION, credentials);
        }
        request.body(Full::new(text.clone())).map_err(io::Error::other)
    }

    async fn read(
        &mut self,
        answer: hyper::Response<hyper::body::Incoming>,
        sender: SendRequest<Full<Bytes>>,
    ) -> io::Result<()> {
        let status = answer.status();
        let mut body = answer.into_body();
        // What it says is of no use; with all of it read the connection can be used again.
        while let Some(frame) = body.frame().await {
            frame.map_err(io::Error::other)?;
        }
        self.connection = Some(sender);
        if status.is_success() {
            return Ok(());
        }
        Err(io::Error::other(format!("status {status}")))
    }
}

/// Begins HTTP over a connection.
async fn speak<S>(stream: S) -> io::Result<SendRequest<Full<Bytes>>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (sender, connection) = handshake.map_err(io::Error::other)?;
    // Ends with the sender.
    tokio::spawn(connection);
    Ok(sender)
}

async fn send_datagrams(
    socket: &mut Option<UdpSocket>,
    address: &str,
    text: &[u8],
) -> io::Result<()> {
    let connected = match socket {
        Some(connected) => connected,
        None => socket.insert(connect(address).await?),
    };
    for datagram in datagrams(text) {
        if let Err(error) = connected.send(datagram).await {
            // The next write looks the address up again.
            *socket = None;
            return Err(error);
        }
    }
    Ok(())
}

async fn connect(address: &str) -> io::Result<UdpSocket> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for resolved in tokio::net::lookup_host(address).await? {
        let any: SocketAddr = match resolved {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any).await?;
        match socket.connect(resolved).await {
            Ok(()) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Whole lines, as many as fit; a line that does not fit goes alone.
fn datagrams(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let fitting = &rest[..rest.len().min(DATAGRAM_BYTES)];
        let end = memchr::memrchr(b'\n', fitting).or_else(|| memchr::memchr(b'\n', rest));
        let (datagram, behind) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
        rest = behind;
        Some(datagram)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_hold_whole_lines() {
        let long = format!("{}\n", "x".repeat(2000));
        let short = "m v=1 1\n".repeat(300);
        let text = format!("{short}{long}{short}");
        let all: Vec<&[u8]> = datagrams(text.as_bytes()).collect();
        assert_eq!(all.concat(), text.as_bytes());
        assert!(all.iter().all(|d| d.ends_with(b"\n")));
        assert!(all.iter().all(|d| d.len() <= DATAGRAM_BYTES || *d == long.as_bytes()));
        assert_eq!(datagrams(b"").count(), 0);
    }

    #[test]
    fn addresses_of_urls() {
        let of = |url| {
            let destination = Destination::new(url, "d b", "r");
            let target = match destination.way {
                Way::Http(way) => {
                    assert_eq!(way.tls, url.starts_with("https"));
                    Some((way.target, way.credentials))
                }
                Way::Udp(_) => None,
            };
            (destination.address, target)
        };
        assert_eq!(of("udp://h:1"), ("h:1".to_owned(), None));
        let params = "consistency=one&db=d+b&precision=ns&rp=r";
        let (address, target) = of("http://u:p%40@[::1]:9/base/?x=1");
        assert_eq!(address, "[::1]:9");
        let credentials = Some("Basic dTpwQA==".to_owned());
        assert_eq!(target, Some((format!("/base/write?{params}"), credentials)));
        assert_eq!(of("https://h:1").0, "h:1");
        let (address, target) = of("HTTP://:8");
        assert_eq!((&*address, target), ("127.0.0.1:8", Some((format!("/write?{params}"), None))));
    }
}
