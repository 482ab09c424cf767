//! Queries that would take for ever or all memory: they fail soon, or stream, and hurt nobody.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use crate::support::{Answer, Server, connect, encode, temp_dir};

const PEAK_BYTES_MAX: u64 = 512 << 20;

fn loaded() -> (tempfile::TempDir, Server) {
    let dir = temp_dir();
    let server = Server::start_with(dir.path(), &["--memory-limit", "256MB"]);
    server.create_database("d");
    // From 1990 to 2020.
    let lines: String = (0..1000)
        .map(|i| format!("m,host=h{} v={i} {}\n", i % 10, 631_152_000 + i * 946_080))
        .collect();
    assert_eq!(server.post("/write?db=d&precision=s", lines).status, 204);
    (dir, server)
}

fn check(server: &Server) {
    server.check_alive();
    let json = server.query("d", "SELECT count(v) FROM m").json();
    assert_eq!(json["results"][0]["series"][0]["values"][0][1], 1000);
    let peak = server.peak_memory_bytes();
    assert!(peak < PEAK_BYTES_MAX, "{} MiB", peak >> 20);
    assert!(server.get("/metrics").text().contains("nyala_http_panics_total 0\n"));
}

/// The statement's own error.
fn error_of(answer: &Answer) -> String {
    answer.json()["results"][0]["error"].as_str().unwrap_or("no error").to_owned()
}

#[test]
fn texts_that_cannot_be_parsed() {
    let (_dir, server) = loaded();
    for text in [
        "SELECT 'unterminated FROM m".to_owned(),
        "SELECT \"unterminated FROM m".to_owned(),
        "SELECT /unterminated FROM m".to_owned(),
        "SELECT v FROM m WHERE time > 99999999999999999999999".to_owned(),
        format!("SELECT v FROM m WHERE {}v > 1{}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("SELECT {}v{} FROM m", "abs(".repeat(10_000), ")".repeat(10_000)),
        format!("SELECT v FROM {}m{}", "(SELECT v FROM ".repeat(5000), ")".repeat(5000)),
        format!("SELECT {}v FROM m", "-".repeat(100_000)),
        "\u{0}\u{1}\u{2}".to_owned(),
        ";;;;DROP".repeat(10_000),
    ] {
        let answer = server.query("d", &text);
        assert_eq!(answer.status, 400, "{:.60}: {:.200}", text, answer.text());
        assert!(answer.body.len() < 200 << 10);
    }
    check(&server);
}

#[test]
fn long_lists() {
    let (_dir, server) = loaded();
    let hosts: Vec<String> = (0..20_000).map(|i| format!("host = 'h{i}'")).collect();
    let answer = server.query("d", &format!("SELECT count(v) FROM m WHERE {}", hosts.join(" OR ")));
    assert_eq!(answer.json()["results"][0]["series"][0]["values"][0][1], 1000);
    let keys: Vec<String> = (0..20_000).map(|i| format!("k{i}")).collect();
    let statement = format!("SHOW TAG VALUES WITH KEY IN ({},host)", keys.join(","));
    let json = server.query("d", &statement).json();
    assert_eq!(json["results"][0]["series"][0]["values"].as_array().unwrap().len(), 10);
    let fields: Vec<String> = (0..5000).map(|_| "max(v)".to_owned()).collect();
    assert_eq!(server.query("d", &format!("SELECT {} FROM m", fields.join(","))).status, 200);
    let many = "SHOW DATABASES;".repeat(10_000);
    assert_eq!(server.query("d", &many).json()["results"].as_array().unwrap().len(), 10_000);
    check(&server);
}

#[test]
fn too_many_windows() {
    let (_dir, server) = loaded();
    let start = Instant::now();
    for statement in [
        "SELECT mean(v) FROM m WHERE time >= '1990-01-01' AND time < '2020-01-01' GROUP BY time(1ns)",
        "SELECT mean(v) FROM m WHERE time < '2020-01-01' GROUP BY time(1ns), host fill(previous)",
    ] {
        match first_bytes(&server, statement) {
            Some(bytes) if bytes.contains("\"error\"") => {}
            Some(bytes) => assert!(bytes.contains("\"values\""), "{bytes}"),
            None => panic!("no answer: {statement}"),
        }
        check(&server);
    }
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn fills_of_a_billion_points() {
    let (_dir, server) = loaded();
    for fill in ["0", "null", "previous", "linear"] {
        let statement = format!(
            "SELECT mean(v) FROM m WHERE time >= '1988-01-01' AND time < '2020-01-01' GROUP BY \
             time(1s) fill({fill})"
        );
        let bytes = first_bytes(&server, &statement).expect("an answer");
        assert!(bytes.contains("\"values\"") || bytes.contains("\"error\""), "{bytes}");
        check(&server);
    }
}

/// What comes first of an answer whose client then goes away.
fn first_bytes(server: &Server, statement: &str) -> Option<String> {
    let mut stream = connect(server.address);
    let head = format!("GET /query?db=d&q={} HTTP/1.1\r\nHost: x\r\n\r\n", encode(statement));
    stream.write_all(head.as_bytes()).unwrap();
    let mut bytes = vec![0; 2000];
    let mut filled = 0;
    while filled < bytes.len() {
        let read = stream.read(&mut bytes[filled..]).ok()?;
        if read == 0 {
            break;
        }
        filled += read;
        let text = String::from_utf8_lossy(&bytes[..filled]);
        if text.contains("\"error\"") || text.contains("\"values\":[[") {
            break;
        }
    }
    Some(String::from_utf8_lossy(&bytes[..filled]).into_owned())
}

#[test]
fn a_client_that_goes_away_ends_its_query() {
    let (_dir, server) = loaded();
    let endless = "SELECT mean(v) FROM m WHERE time >= '1990-01-01' AND time < '2020-01-01' GROUP \
                   BY time(1s), host fill(0)";
    let held: Vec<_> = (0..8)
        .map(|_| {
            let mut stream = connect(server.address);
            let head = format!("GET /query?db=d&q={} HTTP/1.1\r\nHost: x\r\n\r\n", encode(endless));
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    // Eight clients that do not read: others are served all the same.
    check(&server);
    drop(held);
    let ended = (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        server.get("/metrics").text().contains("nyala_queries_active 0\n")
    });
    assert!(ended, "{}", server.get("/metrics").text());
    check(&server);
}

#[test]
fn limits_of_the_configuration() {
    let dir = temp_dir();
    let flags = [
        "--max-select-series",
        "3",
        "--max-select-buckets",
        "100",
        "--max-row-limit",
        "5",
        "--query-timeout",
        "10s",
    ];
    let server = Server::start_with(dir.path(), &flags);
    server.create_database("d");
    let lines: String = (0..100).map(|i| format!("m,host=h{} v={i} {i}\n", i % 10)).collect();
    assert_eq!(server.write("d", lines).status, 204);
    let error = error_of(&server.query("d", "SELECT v FROM m"));
    assert!(error.starts_with("max-select-series limit exceeded: ("), "{error}");
    let buckets =
        "SELECT max(v) FROM m WHERE host = 'h1' AND time >= 0 AND time < 1s GROUP BY time(1ms)";
    let error = error_of(&server.query("d", buckets));
    assert!(error.starts_with("max-select-buckets limit exceeded: ("), "{error}");
    let json = server.query("d", "SELECT v FROM m WHERE host = 'h1'").json();
    let series = &json["results"][0]["series"][0];
    assert_eq!(series["values"].as_array().unwrap().len(), 5);
    assert_eq!(series["partial"], true);
}
