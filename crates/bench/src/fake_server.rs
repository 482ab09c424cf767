//! An HTTP server for tests: answers every request with what a closure says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// What a test sees of a request.
pub(crate) struct Received {
    pub(crate) target: String,
    pub(crate) body: Vec<u8>,
}

type Handler = dyn Fn(&Received) -> (u16, String) + Send + Sync;

/// Starts listening; the threads end with the test process.
pub(crate) fn start(
    handler: impl Fn(&Received) -> (u16, String) + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let handler: Arc<Handler> = Arc::new(handler);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let handler = Arc::clone(&handler);
            std::thread::spawn(move || serve(stream.unwrap(), &*handler));
        }
    });
    url
}

fn serve(mut stream: TcpStream, handler: &Handler) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(received) = receive(&mut reader) {
        let (status, body) = handler(&received);
        let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all((head + &body).as_bytes()).unwrap();
    }
}

fn receive(reader: &mut BufReader<TcpStream>) -> Option<Received> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let target = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        if let Some(digits) = line.strip_prefix("Content-Length: ") {
            length = digits.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Received { target, body })
}
