//! `kill -9` at any moment: every acknowledged row is there afterwards.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::{Server, connect, temp_dir};

const WRITERS: u64 = 4;
const BATCH: u64 = 20;

/// Writes batches until the server is gone; returns how many rows were acknowledged.
fn write_until_killed(server: &Server, writer: u64, first: u64, stop: &AtomicBool) -> u64 {
    let mut stream = connect(server.address);
    let mut next = first;
    while !stop.load(Ordering::Relaxed) {
        let lines: String =
            (next..next + BATCH).map(|i| format!("m,writer=w{writer} v={i}i {i}\n")).collect();
        let request = format!(
            "POST /write?db=d HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{lines}",
            lines.len()
        );
        let mut answer = [0; 512];
        let status = stream
            .write_all(request.as_bytes())
            .and_then(|()| stream.read(&mut answer))
            .map(|len| answer[..len].starts_with(b"HTTP/1.1 204"));
        match status {
            Ok(true) => next += BATCH,
            Ok(false) => {
                let text = String::from_utf8_lossy(&answer);
                assert!(text.trim_matches('\0').is_empty(), "{text}");
                break;
            }
            Err(_) => break,
        }
    }
    next
}

/// Every writer's rows up to the last acknowledged one are there, each with its value.
fn check(server: &Server, acknowledged: &[u64]) {
    for (writer, end) in acknowledged.iter().enumerate().filter(|(_, end)| **end > 0) {
        let statement =
            format!("SELECT count(v), sum(v) FROM m WHERE writer = 'w{writer}' AND time < {end}");
        let json = server.query("d", &statement).json();
        let row = &json["results"][0]["series"][0]["values"][0];
        assert_eq!(row[1], *end, "writer {writer}: {json}");
        assert_eq!(row[2], end * (end - 1) / 2, "writer {writer}: {json}");
    }
}

fn run(dir: &Path, rounds: u64) {
    let mut acknowledged = [0; WRITERS as usize];
    let first = Server::start(dir);
    first.create_database("d");
    first.stop();
    for round in 0..rounds {
        let server = Server::start(dir);
        check(&server, &acknowledged);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let server = &server;
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let (first, stop) = (acknowledged[writer as usize], &stop);
                    scope.spawn(move || write_until_killed(server, writer, first, stop))
                })
                .collect();
            // The moment differs from round to round.
            std::thread::sleep(Duration::from_millis(20 + round * 37 % 150));
            server.signal(rustix::process::Signal::KILL);
            stop.store(true, Ordering::Relaxed);
            for (end, writer) in acknowledged.iter_mut().zip(writers) {
                *end = writer.join().unwrap();
            }
        });
        server.kill();
    }
    let server = Server::start(dir);
    check(&server, &acknowledged);
    assert!(acknowledged.iter().all(|end| *end > 0), "{acknowledged:?}");
    server.stop();
}

#[test]
fn acknowledged_rows_survive() {
    let dir = temp_dir();
    run(dir.path(), 4);
}

/// `cargo test -p nyala -- --ignored`, with NYALA_ROUNDS for another number.
#[test]
#[ignore = "takes minutes"]
fn acknowledged_rows_survive_many_rounds() {
    let rounds = std::env::var("NYALA_ROUNDS").map_or(300, |text| text.parse().unwrap());
    let dir = temp_dir();
    run(dir.path(), rounds);
}
