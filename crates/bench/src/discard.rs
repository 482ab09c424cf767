//! A server that does nothing: it reads what is written to it and forgets it, and answers every
//! question with the same bytes. What the drivers reach against it is the most that they could
//! measure of any server on the same machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use anyhow::{Context, Result};

use crate::load::note;

/// Length of the answer to a question: that of an InfluxDB to single-groupby-1-1-1.
const ANSWER_BYTES: usize = 1616;
const HEAD_LINE_MAX: u64 = 16 << 10;

/// Serves until the process is stopped, a thread a connection.
///
/// # Errors
/// When the address cannot be bound.
pub fn serve(address: &str) -> Result<()> {
    let listener = TcpListener::bind(address).with_context(|| format!("cannot bind {address}"))?;
    let mut answer =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {ANSWER_BYTES}\r\n\r\n").into_bytes();
    answer.resize(answer.len() + ANSWER_BYTES, b' ');
    std::thread::scope(|scope| {
        for stream in listener.incoming() {
            let answer = &answer;
            scope.spawn(move || {
                if let Err(error) = stream.and_then(|stream| answer_all(&stream, answer)) {
                    note(&format!("a connection ended: {error}"));
                }
            });
        }
    });
    Ok(())
}

fn answer_all(stream: &TcpStream, answer: &[u8]) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::with_capacity(256 << 10, stream);
    let mut writer = stream;
    let mut line = String::new();
    loop {
        let (mut is_write, mut length, mut lines) = (false, 0, 0);
        loop {
            line.clear();
            if (&mut reader).take(HEAD_LINE_MAX).read_line(&mut line)? == 0 {
                return Ok(());
            }
            let text = line.trim_ascii();
            if lines == 0 {
                is_write = text.starts_with("POST /write");
            } else if let Some((name, value)) = text.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim_ascii().parse().map_err(std::io::Error::other)?;
            }
            if text.is_empty() {
                break;
            }
            lines += 1;
        }
        std::io::copy(&mut (&mut reader).take(length), &mut std::io::sink())?;
        writer.write_all(if is_write { b"HTTP/1.1 204 No Content\r\n\r\n" } else { answer })?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Client;

    #[test]
    fn takes_everything_and_says_always_the_same() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        std::thread::spawn(move || serve(&free.to_string()));
        let mut client = Client::new(&format!("http://{free}")).unwrap();
        let mut tries = 0;
        while client.get("/ping").is_err() {
            tries += 1;
            assert!(tries < 200, "it does not listen");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        for _ in 0..3 {
            assert_eq!(client.post("/write?db=x", &[], b"m f=1\n").unwrap().status, 204);
            assert_eq!(client.get("/query?q=x").unwrap().body.len(), ANSWER_BYTES);
        }
    }
}
