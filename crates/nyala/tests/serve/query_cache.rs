//! Answers that are given again are the answers that would be given afresh.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use crate::support::{Answer, Server, encode, temp_dir};

const QUERIES: [&str; 12] = [
    "SELECT * FROM m",
    "SELECT last(*) FROM m GROUP BY *",
    "SELECT v FROM m WHERE time < 500",
    "SELECT mean(v), count(s) FROM m WHERE time >= 100 AND time < 1000 GROUP BY time(100ns), h",
    "SELECT max(mean) FROM (SELECT mean(v) FROM m WHERE time < 700 GROUP BY time(50ns)) WHERE time > 0",
    "SELECT v FROM m, n ORDER BY time DESC LIMIT 3",
    "SELECT * FROM e..m",
    "SELECT * FROM p.m",
    "SELECT v FROM d.p.m",
    "SELECT sum(v) FROM n",
    "SELECT count(*) FROM /./",
    "SELECT v FROM m WHERE h = 'h1' AND time > now() - 1000000d",
];

/// Of one figure of `/metrics`.
fn figure(server: &Server, name: &str) -> f64 {
    let answer = server.get("/metrics");
    let line = answer.text().lines().find(|l| l.split(' ').next() == Some(name)).map(str::to_owned);
    line.unwrap().rsplit_once(' ').unwrap().1.parse().unwrap()
}

fn hits(server: &Server) -> f64 {
    figure(server, "nyala_query_cache_hits_total")
}

/// An answer that was never asked for before: the space behind the statement is a new one.
fn afresh(server: &Server, query: &str, step: usize) -> Answer {
    server.query("d", &format!("{query}{}", " ".repeat(step + 1)))
}

fn change(server: &Server, next: &mut impl FnMut(u64) -> u64) {
    let statement = match next(24) {
        0 => format!("DELETE FROM m WHERE time < {}", next(300)),
        1 => format!("DELETE FROM m WHERE h = 'h{}'", next(3)),
        2 => format!("DELETE FROM m WHERE v > {}", 50 + next(50)),
        3 => "DROP MEASUREMENT n".to_owned(),
        4 => "DROP DATABASE e".to_owned(),
        5 => "CREATE DATABASE e".to_owned(),
        6 => "CREATE RETENTION POLICY p ON d DURATION INF REPLICATION 1".to_owned(),
        7 => "DROP RETENTION POLICY p ON d".to_owned(),
        8 => "SELECT v INTO n FROM m".to_owned(),
        _ => String::new(),
    };
    if !statement.is_empty() {
        assert_eq!(server.query("d", &statement).status, 200, "{statement}");
        return;
    }
    let (db, rp) =
        [("d", "autogen"), ("d", "autogen"), ("d", "p"), ("e", "autogen")][next(4) as usize];
    let name = ["m", "m", "n"][next(3) as usize];
    let tag = ["", ",r=x"][usize::from(next(5) == 0)];
    let field = match next(4) {
        0 => "s=\"text\"".to_owned(),
        1 if next(4) == 0 => format!("w{}=1", next(3)),
        _ => format!("v={}", next(100)),
    };
    // Some of it in other partitions.
    let time = next(1000) + if next(6) == 0 { 604_800_000_000_000 } else { 0 };
    let line = format!("{name},h=h{}{tag} {field} {time}", next(3));
    // Policies and databases may be gone.
    server.post(&format!("/write?db={db}&rp={rp}"), line);
}

#[test]
fn answers_follow_every_change() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    server.create_database("d");
    let mut state = 7u64;
    let mut next = |bound: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    for step in 0..250 {
        for _ in 0..=next(2) {
            change(&server, &mut next);
        }
        for query in QUERIES {
            let expected = afresh(&server, query, step);
            // Some are asked more often than others, so that there are answers of any age.
            for _ in 0..next(4) {
                let answer = server.query("d", query);
                assert_eq!(answer.text(), expected.text(), "step {step}: {query}");
            }
        }
    }
    assert!(hits(&server) > 500.0, "{}", hits(&server));
    server.stop();
}

#[test]
fn whoever_asks_sees_what_was_acknowledged() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    server.create_database("d");
    let (acknowledged, ended) = (AtomicI64::new(0), AtomicBool::new(false));
    let value = || {
        let json = server.query("d", "SELECT last(v) FROM m").json();
        json["results"][0]["series"][0]["values"][0][1].as_i64().unwrap_or(0)
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for v in 1..400 {
                assert_eq!(server.write("d", format!("m v={v}i 1")).status, 204);
                acknowledged.store(v, Ordering::SeqCst);
                // Now and then there is time for an answer to be kept and used.
                std::thread::sleep(std::time::Duration::from_millis(if v % 10 == 0 {
                    8
                } else {
                    0
                }));
            }
            ended.store(true, Ordering::SeqCst);
        });
        for _ in 0..2 {
            scope.spawn(|| {
                let mut seen = 0;
                while !ended.load(Ordering::SeqCst) {
                    let least = acknowledged.load(Ordering::SeqCst).max(seen);
                    seen = value();
                    assert!(seen >= least, "{seen} after {least}");
                }
            });
        }
    });
    assert_eq!(value(), 399);
    assert!(hits(&server) > 10.0, "{}", hits(&server));
    server.stop();
}

#[test]
fn the_third_asking_finds_it_in_the_same_form_only() {
    let dir = temp_dir();
    let server = Server::start_with(dir.path(), &["--query-cache-size", "8MB"]);
    server.create_database("d");
    let lines: String = (0..40_000).map(|t| format!("m v={t}i {t}\n")).collect();
    assert_eq!(server.write("d", lines).status, 204);
    let get = |target: &str| {
        let answer = server.request(&format!("GET {target} HTTP/1.1\r\n"), b"");
        assert_eq!(answer.status, 200);
        answer.text().to_owned()
    };
    // Of a few rows; of several pieces from a worker thread; longer than may be kept.
    for (limit, is_kept) in [(2, true), (8_000, true), (40_000, false)] {
        let target = format!("/query?db=d&q={}", encode(&format!("SELECT v FROM m LIMIT {limit}")));
        let before = hits(&server);
        let answers = [(); 4].map(|()| get(&target));
        assert!(answers.iter().all(|answer| *answer == answers[0]));
        assert_eq!(hits(&server) - before, if is_kept { 2.0 } else { 0.0 }, "{limit}");
        let in_seconds = get(&format!("{target}&epoch=s"));
        assert!(in_seconds != answers[0] && get(&target) == answers[0]);
        assert!(get(&format!("{target}&pretty=true")).contains("\n    "));
        assert!(get(&format!("{target}&chunked=true")).starts_with("{\"results\""));
    }
    assert_eq!(figure(&server, "nyala_query_cache_answers"), 2.0);
    assert!(figure(&server, "nyala_query_cache_bytes") > 200_000.0);
    let before = hits(&server);
    for query in
        ["SELECT v FROM m WHERE time > now() - 1h", "SELECT sample(v, 3) FROM m", "SHOW DATABASES"]
    {
        (0..5).for_each(|_| assert_eq!(server.query("d", query).status, 200));
    }
    assert_eq!(hits(&server), before);
    server.stop();
}

#[test]
fn nothing_is_kept_in_no_memory() {
    let dir = temp_dir();
    let server =
        Server::start_with(dir.path(), &["--query-cache-size", "0", "--memory-limit", "64MB"]);
    server.create_database("d");
    assert_eq!(server.write("d", "m v=1 1").status, 204);
    (0..5).for_each(|_| assert!(server.query("d", "SELECT v FROM m").text().contains(",1]")));
    assert_eq!((hits(&server), figure(&server, "nyala_query_cache_answers")), (0.0, 0.0));
    server.stop();
}
