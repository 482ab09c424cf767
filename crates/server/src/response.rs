//! Answers: their bodies, and the few shapes most of them have.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{
    ALLOW, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use hyper::{HeaderMap, StatusCode};
use model::Interrupt;
use tokio::sync::mpsc;

use crate::error::HttpError;
use crate::gzip;
use crate::record::RequestRecord;

pub(crate) type Response = hyper::Response<ResponseBody>;

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const REALM: HeaderValue = HeaderValue::from_static("Basic realm=\"InfluxDB\"");
const ERROR: HeaderName = HeaderName::from_static("x-influxdb-error");

/// Longest `X-Influxdb-Error`, bytes.
const ERROR_HEADER_BYTES_MAX: usize = 1024;

/// The body of an answer. Lives as long as the request is being answered.
#[derive(Debug)]
pub(crate) struct ResponseBody {
    content: Content,
    /// Written down when the body is dropped.
    record: Option<RequestRecord>,
    /// The connection could have more of it, and has not asked since.
    is_untaken: bool,
}

#[derive(Debug)]
enum Content {
    Empty,
    Whole(Bytes),
    Stream(Stream),
}

/// Pieces that are still being made.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) pieces: mpsc::Receiver<io::Result<Bytes>>,
    /// Whoever makes the pieces stops when nobody takes them.
    pub(crate) _cancel: CancelOnDrop,
}

/// Cancels work when dropped: its client has gone, or has everything.
#[derive(Debug)]
pub(crate) struct CancelOnDrop(pub(crate) Interrupt);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl ResponseBody {
    fn new(content: Content) -> Self {
        Self { content, record: None, is_untaken: false }
    }

    pub(crate) fn empty() -> Self {
        Self::new(Content::Empty)
    }

    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::new(Content::Whole(bytes.into()))
    }

    pub(crate) fn stream(stream: Stream) -> Self {
        Self::new(Content::Stream(stream))
    }

    pub(crate) fn keep(&mut self, record: RequestRecord) {
        self.record = Some(record);
        self.note_untaken(!self.is_end_stream());
    }

    /// Notes whether the client is waited for.
    fn note_untaken(&mut self, is_untaken: bool) {
        let Some(record) = &self.record else { return };
        match (self.is_untaken, is_untaken) {
            (false, true) => record.activity().begin_untaken(),
            (true, false) => record.activity().end_untaken(),
            _ => return,
        }
        self.is_untaken = is_untaken;
    }

    fn sent(&mut self, bytes: Bytes) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Some(record) = &mut self.record {
            record.bytes_out += bytes.len() as u64;
        }
        self.note_untaken(!self.is_end_stream());
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.note_untaken(false);
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.note_untaken(false);
        match std::mem::replace(&mut self.content, Content::Empty) {
            Content::Empty => Poll::Ready(None),
            Content::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Content::Whole(bytes) => self.sent(bytes),
            Content::Stream(mut stream) => match stream.pieces.poll_recv(cx) {
                Poll::Pending => {
                    self.content = Content::Stream(stream);
                    Poll::Pending
                }
                Poll::Ready(None) => Poll::Ready(None),
                Poll::Ready(Some(Err(error))) => {
                    if let Some(record) = &mut self.record {
                        record.aborted = true;
                    }
                    Poll::Ready(Some(Err(error)))
                }
                Poll::Ready(Some(Ok(bytes))) => {
                    self.content = Content::Stream(stream);
                    self.sent(bytes)
                }
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Empty => true,
            Content::Whole(bytes) => bytes.is_empty(),
            Content::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Empty => SizeHint::with_exact(0),
            Content::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(_) => SizeHint::default(),
        }
    }
}

/// An answer without a body. Its content type is what InfluxDB says all the same.
pub(crate) fn empty(status: StatusCode) -> Response {
    with_body(status, JSON, ResponseBody::empty())
}

pub(crate) fn with_body(
    status: StatusCode,
    content_type: HeaderValue,
    body: ResponseBody,
) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// The same answer packed with gzip, if it is there as a whole.
pub(crate) fn packed(response: Response) -> Response {
    let (mut head, mut body) = response.into_parts();
    if let Content::Whole(bytes) = &body.content {
        body.content = Content::Whole(gzip::pack(bytes).into());
        head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Response::from_parts(head, body)
}

/// What Go's HTTP server says by itself.
pub(crate) fn plain(status: StatusCode, text: &'static str) -> Response {
    let mut response = with_body(status, PLAIN, ResponseBody::whole(text));
    let name = HeaderName::from_static("x-content-type-options");
    response.headers_mut().insert(name, HeaderValue::from_static("nosniff"));
    response
}

pub(crate) fn not_found() -> Response {
    plain(StatusCode::NOT_FOUND, "404 page not found\n")
}

pub(crate) fn method_not_allowed(allow: &'static str) -> Response {
    let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed\n");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    response
}

/// A refusal as JSON.
pub(crate) fn refusal(error: &HttpError) -> Response {
    refusal_as(error, render::Format::default(), JSON)
}

/// A refusal in the notation that the client asked for.
pub(crate) fn refusal_as(
    error: &HttpError,
    format: render::Format,
    content_type: HeaderValue,
) -> Response {
    let body = ResponseBody::whole(format.error(&error.text));
    let mut response = with_body(error.status, content_type, body);
    let headers = response.headers_mut();
    if error.status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, REALM);
    } else {
        insert_error(headers, &error.text);
    }
    insert_consequences(headers, error);
    response
}

/// A refusal as text alone.
pub(crate) fn refusal_as_text(error: &HttpError) -> Response {
    let body = ResponseBody::whole(format!("{}\n", error.text));
    let mut response = with_body(error.status, PLAIN, body);
    insert_consequences(response.headers_mut(), error);
    response
}

/// What a client is to do now.
fn insert_consequences(headers: &mut HeaderMap, error: &HttpError) {
    if let Some(wait) = error.retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(wait.as_secs().max(1)));
    }
    if error.close {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
}

fn insert_error(headers: &mut HeaderMap, text: &str) {
    let mut end = text.len().min(ERROR_HEADER_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut bytes = text.as_bytes()[..end].to_vec();
    for byte in &mut bytes {
        if byte.is_ascii_control() && *byte != b'\t' {
            *byte = b' ';
        }
    }
    if let Ok(value) = HeaderValue::from_bytes(&bytes) {
        headers.insert(ERROR, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_fit_into_a_header() {
        let mut headers = HeaderMap::new();
        insert_error(&mut headers, &format!("a\nb\u{7f}\u{0}{}", "\u{e4}".repeat(1000)));
        let value = headers.get(ERROR).expect("any text becomes a header");
        assert_eq!(value.len(), ERROR_HEADER_BYTES_MAX - 1, "no half character");
        assert!(value.as_bytes().starts_with(b"a b  "));
    }

    #[test]
    fn refusals() {
        let error = HttpError::overloaded("full", std::time::Duration::from_millis(10)).and_close();
        for (response, len) in [(refusal(&error), 17), (refusal_as_text(&error), 5)] {
            assert_eq!(response.status().as_u16(), 503);
            assert_eq!(response.headers()[RETRY_AFTER], "1");
            assert_eq!(response.headers()[CONNECTION], "close");
            assert_eq!(response.body().size_hint().exact(), Some(len));
        }
    }
}
