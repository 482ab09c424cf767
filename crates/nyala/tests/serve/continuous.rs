//! Continuous queries: run when they are due, run over the past, and how that went.

use crate::support::{Server, eventually, temp_dir};

fn value(server: &Server, statement: &str, column: usize) -> serde_json::Value {
    let answer = server.query("d", statement).json();
    answer["results"][0]["series"][0]["values"][0][column].clone()
}

/// A column of SHOW CONTINUOUS QUERY STATUS for a query.
fn status(server: &Server, name: &str, column: &str) -> serde_json::Value {
    let answer = server.query("d", "SHOW CONTINUOUS QUERY STATUS").json();
    let series = &answer["results"][0]["series"][0];
    let columns = series["columns"].as_array().unwrap();
    let at = columns.iter().position(|found| found == column).unwrap();
    let rows = series["values"].as_array().unwrap();
    rows.iter().find(|row| row[0] == name).unwrap()[at].clone()
}

fn create(server: &Server, name: &str, target: &str) {
    let text = format!(
        "CREATE CONTINUOUS QUERY {name} ON d RESAMPLE EVERY 1s FOR 1h BEGIN SELECT count(v) \
         INTO {target} FROM m GROUP BY time(1s), host END"
    );
    let answer = server.query("d", &text);
    assert!(!answer.text().contains("error"), "{}", answer.text());
}

#[test]
fn they_run_and_say_how_that_went() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    server.create_database("d");
    assert_eq!(
        server.query("d", "CREATE RETENTION POLICY short ON d DURATION 1h REPLICATION 1").status,
        200
    );
    create(&server, "good", "counts");
    create(&server, "bad", "d.short.counts");
    assert_eq!(server.query("d", "DROP RETENTION POLICY short ON d").status, 200);
    // Times are the server's own.
    assert_eq!(server.write("d", "m,host=a v=1\nm,host=b v=2\n").status, 204);
    let count = || value(&server, "SELECT sum(count) FROM counts", 1);
    eventually(|| count() == 2, || count().to_string());
    eventually(|| status(&server, "good", "last_written") == 2, String::new);
    assert_eq!(status(&server, "good", "failures"), 0);
    assert_eq!(status(&server, "good", "last_error"), "");
    assert_eq!(status(&server, "good", "for"), "1h0m0s");
    assert!(status(&server, "good", "next_run").as_str().unwrap().starts_with("20"));
    assert!(status(&server, "bad", "failures").as_u64().unwrap() > 0);
    let why = status(&server, "bad", "last_error");
    assert!(why.as_str().unwrap().contains("retention policy not found: short"), "{why}");
    assert_eq!(server.query("d", "DROP CONTINUOUS QUERY bad ON d").status, 200);
    let left = server.query("d", "SHOW CONTINUOUS QUERY STATUS").json();
    assert_eq!(left["results"][0]["series"][0]["values"].as_array().unwrap().len(), 1);
    server.stop();
}

#[test]
fn they_run_over_the_past_when_asked_to() {
    let dir = temp_dir();
    let server = Server::start_with(dir.path(), &["--continuous-query-interval", "0s"]);
    server.create_database("d");
    create(&server, "q", "counts");
    let line = |n: i64| format!("m,host=h{} v={n} {}\n", n % 10, n * 100_000_000);
    assert_eq!(server.write("d", (0..10_000).map(line).collect::<String>()).status, 204);
    assert_eq!(status(&server, "q", "runs"), 0);
    let run = "RUN CONTINUOUS QUERY q ON d WHERE time >= 100s AND time < 200s";
    assert_eq!(value(&server, run, 2), 1000, "a hundred windows of ten hosts");
    assert_eq!(value(&server, "SELECT sum(count) FROM counts", 1), 1000);
    assert_eq!(value(&server, "RUN CONTINUOUS QUERY q ON d", 2), 10_000);
    assert_eq!(value(&server, "SELECT sum(count) FROM counts", 1), 10_000);
    // Kept, as every acknowledged write is.
    server.kill();
    let server = Server::start(dir.path());
    assert_eq!(value(&server, "SELECT sum(count) FROM counts", 1), 10_000);
    server.stop();
}
