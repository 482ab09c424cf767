//! Connections whose clients ask again and again get threads of their own, and nobody notices.

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::scope;

use rustix::net::sockopt::set_socket_recv_buffer_size;

use crate::support::{Answer, Server, connect, eventually, temp_dir};

/// A connection that stays open.
struct Client<S>(S);

impl<S: Read + Write> Client<S> {
    /// The answer; none if the server has closed the connection.
    fn try_send(&mut self, head: &str, body: &str) -> Option<Answer> {
        let length = body.len();
        let request =
            format!("{head} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}");
        self.0.write_all(request.as_bytes()).ok()?;
        let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
        loop {
            let count = self.0.read(&mut piece).ok().filter(|count| *count > 0)?;
            bytes.extend_from_slice(&piece[..count]);
            if let Some(answer) = Answer::begun(&bytes) {
                let length = answer.header("content-length").map_or(0, |n| n.parse().unwrap());
                if answer.body.len() == length {
                    return Some(answer);
                }
            }
        }
    }

    fn ask(&mut self) {
        let answer = self.try_send("GET /query?db=d&q=SELECT+v+FROM+m", "").unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        let values = r#""values":[["1970-01-01T00:00:00.000000001Z",1]]"#;
        assert!(answer.text().contains(values), "{}", answer.text());
    }
}

/// Connections that have threads of their own.
fn alone(server: &Server) -> u64 {
    let text = server.get("/metrics").text().to_owned();
    let line = text.lines().find(|line| line.starts_with("nyala_http_connections_alone "));
    line.unwrap().split(' ').nth(1).unwrap().parse().unwrap()
}

/// Waits for as many connections with threads of their own.
fn await_alone(server: &Server, count: u64) {
    eventually(|| alone(server) == count, || server.get("/metrics").text().to_owned());
}

fn with_a_row(flags: &[&str], directory: &std::path::Path) -> Server {
    let server = Server::start_with(directory, flags);
    server.create_database("d");
    assert_eq!(server.write("d", "m v=1 1").status, 204);
    server
}

/// Has all clients ask while `meanwhile` runs.
fn all_ask<S: Read + Write + Send>(clients: &mut [Client<S>], meanwhile: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    scope(|scope| {
        for client in clients {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    client.ask();
                }
            });
        }
        // A failure is to end the others as well.
        let stopped = StopOnDrop(&stop);
        meanwhile();
        drop(stopped);
    });
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn threads_come_when_two_ask_and_go_when_they_pause() {
    let dir = temp_dir();
    let socket = dir.path().join("socket");
    let flags = ["--bind-socket", socket.to_str().unwrap()];
    let server = with_a_row(&flags, &dir.path().join("data"));
    let mut clients = [(); 2].map(|()| Client(connect(server.address)));
    let mut local = [(); 2].map(|()| Client(UnixStream::connect(&socket).unwrap()));
    for _ in 0..3 {
        all_ask(&mut clients, || await_alone(&server, 2));
        await_alone(&server, 0);
        clients.iter_mut().for_each(Client::ask);
        all_ask(&mut local, || await_alone(&server, 2));
        await_alone(&server, 0);
        local.iter_mut().for_each(Client::ask);
    }
    server.stop();
}

/// Has a second client ask all the time, so that the first one gets a thread of its own.
fn beside_another(server: &Server, first: impl FnOnce(&mut Client<TcpStream>)) {
    let mut others = [Client(connect(server.address))];
    let mut client = Client(connect(server.address));
    all_ask(&mut others, || {
        while alone(server) < 2 {
            (0..20).for_each(|_| client.ask());
        }
        first(&mut client);
    });
}

#[test]
fn requests_come_in_any_pieces() {
    let dir = temp_dir();
    let server = with_a_row(&[], dir.path());
    let one = "GET /query?db=d&q=SELECT+v+FROM+m HTTP/1.1\r\nHost: x\r\n\r\n";
    let long = format!("{}Cookie: {}\r\n\r\n", &one[..one.len() - 2], "c".repeat(30_000));
    let text = [one, &long, one, one, &long].concat();
    beside_another(&server, |client| {
        // As one; in pieces that come while the thread waits; in some that come later.
        for (piece_bytes, pause_us) in [(text.len(), 0), (3000, 500), (7000, 30_000)] {
            let mut stream = client.0.try_clone().unwrap();
            let sender = text.as_bytes();
            scope(|scope| {
                scope.spawn(move || {
                    for piece in sender.chunks(piece_bytes) {
                        stream.write_all(piece).unwrap();
                        std::thread::sleep(std::time::Duration::from_micros(pause_us));
                    }
                });
                let (mut answers, mut piece) = (String::new(), [0; 4096]);
                while answers.matches(r#"[["1970-01-01T00:00:00.000000001Z",1]]"#).count() < 5
                    || !answers.ends_with("}\n")
                {
                    let count = client.0.read(&mut piece).unwrap();
                    assert!(count > 0, "{answers}");
                    answers.push_str(std::str::from_utf8(&piece[..count]).unwrap());
                }
                assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 5, "{answers}");
            });
            client.ask();
        }
    });
    server.stop();
}

#[test]
fn who_takes_an_answer_slowly_gets_all_of_it() {
    let dir = temp_dir();
    let server = with_a_row(&[], dir.path());
    // More than the system keeps for a socket, at most 4 MB on most, so that the thread has to wait.
    let rows: String = (0..1_000_000).map(|n| format!("long v={n} {n}\n")).collect();
    assert_eq!(server.write("d", &rows).status, 204);
    let target = "/query?db=d&epoch=ns&q=SELECT+v+FROM+long";
    let expected = server.get(target).text().to_owned();
    beside_another(&server, |client| {
        let request = format!("GET {target} HTTP/1.0\r\nHost: x\r\n\r\n");
        set_socket_recv_buffer_size(&client.0, 64 << 10).unwrap();
        client.0.write_all(request.as_bytes()).unwrap();
        let (mut bytes, mut piece) = (Vec::new(), vec![0; 256 << 10]);
        while let count @ 1.. = client.0.read(&mut piece).unwrap() {
            bytes.extend_from_slice(&piece[..count]);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(Answer::begun(&bytes).unwrap().text() == expected, "{} bytes", bytes.len());
    });
    server.stop();
}

#[test]
fn a_crowd_shares_the_threads_for_all() {
    let dir = temp_dir();
    let server = with_a_row(&[], dir.path());
    let processors = std::thread::available_parallelism().unwrap().get();
    let mut clients: Vec<_> =
        (0..4 * processors + 2).map(|_| Client(connect(server.address))).collect();
    all_ask(&mut clients, || {
        let times_none = Cell::new(0);
        let none_for_long = || {
            times_none.set(if alone(&server) == 0 { times_none.get() + 1 } else { 0 });
            times_none.get() == 30
        };
        eventually(none_for_long, || server.get("/metrics").text().to_owned());
    });
    // Those that are left are no crowd.
    all_ask(&mut clients[..2], || await_alone(&server, 2));
    server.stop();
}

#[test]
fn what_a_thread_of_its_own_acknowledged_is_seen_and_stays() {
    let dir = temp_dir();
    let server = with_a_row(&[], dir.path());
    let count = |server: &Server| {
        let answer = server.query("d", "SELECT count(w) FROM n").json();
        answer["results"][0]["series"][0]["values"][0][1].as_u64().unwrap_or(0)
    };
    let (mut writer, mut other) =
        (Client(connect(server.address)), Client(connect(server.address)));
    let write = |client: &mut Client<TcpStream>, number: u64| {
        let line = format!("n,who={} w=1i {number}", number % 10);
        client.try_send("POST /write?db=d", &line).map(|answer| assert_eq!(answer.status, 204))
    };
    let mut rows = 0;
    while alone(&server) == 0 || rows < 100 {
        for _ in 0..20 {
            rows += 1;
            write(&mut writer, rows).unwrap();
        }
        assert_eq!(count(&server), rows);
        assert!(rows < 1_000_000, "no thread");
    }
    // What is wrong is said there as well.
    let wrong = writer.try_send("POST /write?db=d", "n w=").unwrap();
    assert!(wrong.status == 400 && wrong.text().contains("unable to parse"), "{}", wrong.text());
    // The server stops in the midst of it.
    let acknowledged = AtomicU64::new(rows);
    scope(|scope| {
        for client in [&mut writer, &mut other] {
            let (acknowledged, write) = (&acknowledged, &write);
            // Each has times of its own.
            let first = u64::from(client.0.local_addr().unwrap().port()) << 32;
            scope.spawn(move || {
                for number in first.. {
                    if write(client, number).is_none() {
                        return;
                    }
                    acknowledged.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        await_alone(&server, 2);
        server.stop();
    });
    let server = Server::start(dir.path());
    let acknowledged = acknowledged.into_inner();
    // One a client may have been stored without a word of it.
    assert!((acknowledged..=acknowledged + 2).contains(&count(&server)), "{acknowledged}");
    server.stop();
}
