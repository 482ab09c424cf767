//! Starting, stopping, starting again.

use std::io::{Read, Write};
use std::net::TcpStream;

use rustix::process::Signal;

use crate::support::{Server, connect, nyala, read_answer, temp_dir};

#[test]
fn a_restart_keeps_everything() {
    let dir = temp_dir();
    let select = "SELECT * FROM cpu; SHOW RETENTION POLICIES; SHOW SERIES; SHOW FIELD KEYS";
    let server = Server::start(dir.path());
    server.create_database("d");
    server.query("d", "CREATE RETENTION POLICY r ON d DURATION 30d REPLICATION 1 DEFAULT");
    server.query("d", "ALTER RETENTION POLICY autogen ON d DEFAULT");
    let lines = "cpu,host=a v=1,s=\"x\" 1\ncpu,host=b v=2,i=3i 2\nmem,host=a free=7i 3\n";
    assert_eq!(server.write("d", lines).status, 204);
    server.query("d", "DELETE FROM cpu WHERE host = 'b'");
    let before = server.query("d", select);
    assert!(before.text().contains("cpu,host=a"), "{}", before.text());
    server.stop();
    let server = Server::start(dir.path());
    assert_eq!(server.query("d", select).text(), before.text());
    assert_eq!(server.write("d", "cpu,host=c v=5 9\n").status, 204);
    server.kill();
    let server = Server::start(dir.path());
    assert!(server.query("d", "SELECT v FROM cpu").text().contains(",5]"));
    server.stop();
}

#[test]
fn signals() {
    for signal in [Signal::TERM, Signal::INT] {
        let dir = temp_dir();
        let server = Server::start(dir.path());
        server.create_database("d");
        // An idle keep-alive connection does not hold it up.
        let mut idle = connect(server.address);
        idle.write_all(b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        server.signal(signal);
        assert_eq!(server.wait().code(), Some(0), "{signal:?}");
    }
}

/// A write that the server has begun to answer: it has asked for the body, 8 bytes.
fn begin_write(server: &Server) -> TcpStream {
    let mut stream = connect(server.address);
    let head = "POST /write?db=d HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\
                Expect: 100-continue\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let asks = b"HTTP/1.1 100 Continue\r\n\r\n";
    let mut asked = [0; 25];
    stream.read_exact(&mut asked).unwrap();
    assert_eq!(&asked, asks);
    stream
}

#[test]
fn requests_in_flight_are_finished() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    server.create_database("d");
    let mut stream = begin_write(&server);
    server.signal(Signal::TERM);
    // It stops listening, and waits for the rest.
    let refused = (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        TcpStream::connect(server.address).is_err()
    });
    assert!(refused);
    stream.write_all(b"m v=77 1").unwrap();
    assert_eq!(read_answer(&mut stream).status, 204);
    assert_eq!(server.wait().code(), Some(0));
    let server = Server::start(dir.path());
    assert!(server.query("d", "SELECT v FROM m").text().contains(",77]"));
}

#[test]
fn a_second_signal_stops_at_once() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    server.create_database("d");
    let _stream = begin_write(&server);
    server.signal(Signal::TERM);
    let refused = (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        TcpStream::connect(server.address).is_err()
    });
    assert!(refused);
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(130));
}

/// What `nyala serve` says when it does not start.
fn failure(flags: &[&str]) -> String {
    let output = nyala().arg("serve").args(flags).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_second_server_on_the_same_directory_is_refused() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    let text = failure(&["--data-dir", dir.path().to_str().unwrap(), "--http-bind", "127.0.0.1:0"]);
    assert!(text.contains("in use by another process"), "{text}");
    assert!(text.contains(dir.path().to_str().unwrap()), "{text}");
    server.check_alive();
}

#[test]
fn a_port_in_use_is_named() {
    let dirs = (temp_dir(), temp_dir());
    let server = Server::start(dirs.0.path());
    let address = server.address.to_string();
    let text = failure(&["--data-dir", dirs.1.path().to_str().unwrap(), "--http-bind", &address]);
    assert!(text.contains(&address) && text.contains("--http-bind"), "{text}");
}

#[test]
fn a_directory_that_cannot_be_used_is_named() {
    let dir = temp_dir();
    let file = dir.path().join("file");
    std::fs::File::create(&file).unwrap();
    let text = failure(&["--data-dir", file.join("data").to_str().unwrap()]);
    assert!(text.contains("cannot open the data directory"), "{text}");
    assert!(text.contains(file.to_str().unwrap()), "{text}");
    let text = failure(&["--data-dir", "/proc/nyala"]);
    assert!(text.contains("/proc/nyala"), "{text}");
}
