//! DELETE by conditions on fields, over HTTP: visible at once, and for good.

use crate::support::{Server, eventually, temp_dir};

/// Rows of each of the hosts `a` and `b`.
const ROWS: i64 = 3000;

fn rows(host: &str) -> String {
    let line = |n: i64| format!("m,host={host} v={}i,f={n}.5 {}\n", n % 10, n * 1_000_000_000);
    (0..ROWS).map(line).collect()
}

/// What the deletes of the test leave.
fn check(server: &Server) {
    let statement = "SELECT count(v), sum(v), min(f), max(f) FROM m GROUP BY host; \
                     SELECT last(f) FROM m WHERE host = 'a'; \
                     SELECT count(v) FROM m WHERE v >= 5 AND host = 'a'; SHOW SERIES FROM m";
    let answer = server.query("d", statement);
    let json = answer.json();
    let results = |at: usize| &json["results"][at]["series"];
    let all = ROWS as u64;
    // Of host a what is below 5, of host b all but the last half.
    let a =
        serde_json::json!(["1970-01-01T00:00:00Z", all / 2 + 1, all / 10 * 10 + 7, 0.5, 2999.5]);
    assert_eq!(results(0)[0]["values"][0], a, "{json}");
    let b = serde_json::json!(["1970-01-01T00:00:00Z", all / 2, all / 20 * 45, 0.5, 1499.5]);
    assert_eq!(results(0)[1]["values"][0], b, "{json}");
    assert_eq!(results(1)[0]["values"][0][1], 2999.5, "{json}");
    assert_eq!(results(2)[0]["values"][0][1], 1, "{json}");
    assert_eq!(results(3)[0]["values"], serde_json::json!([["m,host=a"], ["m,host=b"]]), "{json}");
}

/// Writes to another measurement until the first one's rows have been merged.
fn merge(server: &Server) {
    let compactions = || {
        let text = server.get("/metrics").text().to_owned();
        let line =
            text.lines().find(|l| l.starts_with("nyala_compactions_total ")).unwrap_or_default();
        line.rsplit(' ').next().and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0)
    };
    for part in 0..400_i64 {
        let line = |n: i64| format!("other,id={} x={n}i,y={}i {n}\n", n % 7, n * n);
        let lines: String = (part * 10_000..(part + 1) * 10_000).map(line).collect();
        assert_eq!(server.write("d", lines).status, 204);
        if compactions() > 0.0 {
            return;
        }
    }
    eventually(|| compactions() > 0.0, || server.get("/metrics").text().to_owned());
}

#[test]
fn rows_go_by_their_values_and_stay_away() {
    let dir = temp_dir();
    let flags = ["--memory-limit", "64MB"];
    let server = Server::start_with(dir.path(), &flags);
    server.create_database("d");
    for host in ["a", "b", "c"] {
        assert_eq!(server.write("d", rows(host)).status, 204);
    }
    let ok = |statement: &str| {
        let answer = server.query("d", statement);
        assert_eq!(answer.text().trim_end(), r#"{"results":[{"statement_id":0}]}"#, "{statement}");
    };
    ok("DELETE FROM m WHERE v >= 5 AND host = 'a'");
    ok("DELETE FROM m WHERE f > 1500 AND host = 'b' OR host = 'c' AND v >= 0");
    // What is written afterwards stays.
    assert_eq!(server.write("d", "m,host=a v=7i,f=2999.5 2999000000000\n").status, 204);
    check(&server);
    server.kill();
    let server = Server::start_with(dir.path(), &flags);
    check(&server);
    merge(&server);
    check(&server);
    server.kill();
    let server = Server::start_with(dir.path(), &flags);
    check(&server);
    server.stop();
}
