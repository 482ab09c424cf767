use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use proptest::prelude::*;

use super::wire::{Head, ReceiveError, Wire};
use super::*;

/// A stream that hands out its bytes in pieces of the given sizes and swallows what is written.
struct Pieces {
    bytes: Vec<u8>,
    sizes: Vec<usize>,
    offset: usize,
    turn: usize,
}

impl Pieces {
    fn new(bytes: Vec<u8>, sizes: Vec<usize>) -> Self {
        Self { bytes, sizes, offset: 0, turn: 0 }
    }
}

impl Read for Pieces {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let size =
            self.sizes.get(self.turn % self.sizes.len().max(1)).copied().unwrap_or(usize::MAX);
        self.turn += 1;
        let count = size.max(1).min(out.len()).min(self.bytes.len() - self.offset);
        out[..count].copy_from_slice(&self.bytes[self.offset..self.offset + count]);
        self.offset += count;
        Ok(count)
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn receive(bytes: &[u8]) -> Result<(u16, Vec<u8>), ReceiveError> {
    let mut wire = Wire::new(Pieces::new(bytes.to_vec(), Vec::new()));
    let (mut head, mut body) = (Head::default(), Vec::new());
    wire.receive("GET", &mut head, &mut body)?;
    Ok((head.status, body))
}

#[test]
fn malformed_answers_are_refused() {
    for bytes in [
        "HTTP/2 200\r\n\r\n",
        "HTTP/1.1 20\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
    ] {
        assert!(matches!(receive(bytes.as_bytes()), Err(ReceiveError::Malformed(_))), "{bytes:?}");
    }
    let huge = "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n";
    assert!(matches!(receive(huge.as_bytes()), Err(ReceiveError::TooLarge(_))));
    assert!(matches!(receive(b""), Err(ReceiveError::Io(_))));
    assert!(matches!(receive(&vec![b'a'; 1 << 20]), Err(ReceiveError::TooLarge(_))));
}

#[test]
fn interim_answers_are_skipped_and_bodies_may_end_with_the_stream() {
    let bytes = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200 OK\r\n\r\nthe rest";
    assert_eq!(receive(bytes).unwrap(), (200, b"the rest".to_vec()));
}

#[test]
fn addresses_are_checked() {
    for url in ["https://a:1", "a:1", "http://a", "http://:1", "http://a:b", "http://a:1/x"] {
        assert!(matches!(Client::new(url), Err(HttpError::Url(_))), "{url}");
    }
    assert_eq!(target("/query", &[("q", "a b&c"), ("db", "x")]), "/query?q=a%20b%26c&db=x");
}

/// Answers `requests` requests per connection with the number of body bytes it got, then hangs up.
fn serve(listener: &TcpListener, requests: usize, connections: usize) {
    for stream in listener.incoming().take(connections) {
        let mut stream = stream.unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        for _ in 0..requests {
            let (mut line, mut length) = (String::new(), 0);
            while reader.read_line(&mut line).unwrap() > 2 {
                if let Some(digits) = line.strip_prefix("Content-Length: ") {
                    length = digits.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let text = length.to_string();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nX-Test:  yes \r\nContent-Length: {}\r\n\r\n{text}",
                text.len()
            );
            stream.write_all(answer.as_bytes()).unwrap();
        }
    }
}

#[test]
fn a_closed_connection_is_opened_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || serve(&listener, 2, 3));
    let mut client = Client::new(&url).unwrap();
    for round in 0..6usize {
        let body = vec![b'x'; round * 40_000];
        let response = client.post("/write", &[("X-Other", "1")], &body).unwrap();
        assert!(response.is_success());
        assert_eq!(response.header("x-test"), Some("yes"));
        assert_eq!(response.body, (round * 40_000).to_string().as_bytes());
    }
    drop(client);
    server.join().unwrap();
}

proptest! {
    /// Two answers in a row are read alike however the network cuts them.
    #[test]
    fn framing_survives_any_cut(
        first in prop::collection::vec(any::<u8>(), 0..300),
        second in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..200), 0..5),
        sizes in prop::collection::vec(1usize..100, 1..8),
    ) {
        let mut bytes = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", first.len()).into_bytes();
        bytes.extend_from_slice(&first);
        bytes.extend_from_slice(b"HTTP/1.1 400 Bad\r\ntransfer-encoding: Chunked\r\n\r\n");
        for chunk in &second {
            bytes.extend_from_slice(format!("{:x};x=y\r\n", chunk.len()).as_bytes());
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\nTrailer: a\r\n\r\n");
        let mut wire = Wire::new(Pieces::new(bytes, sizes));
        let (mut head, mut body) = (Head::default(), Vec::new());
        wire.receive("GET", &mut head, &mut body).unwrap();
        prop_assert_eq!((head.status, &body), (200, &first));
        wire.receive("GET", &mut head, &mut body).unwrap();
        prop_assert_eq!((head.status, &body), (400, &second.concat()));
        prop_assert!(!head.close);
    }

    #[test]
    fn no_answer_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "(HTTP/1.1 200\r\n)?[a-zA-Z:\r\n 0-9]{0,80}") {
        let _ = receive(&bytes);
        let _ = receive(text.as_bytes());
    }
}
