//! Daemons over a real Kudu cluster.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::io::{Read, Write};
use std::net::TcpStream;

use kudu_test_cluster::{Cluster, Options, kudu_version};

use crate::support::{Server, eventually, nyala, temp_dir};

/// One cluster with three tablet servers, of which each has a copy of everything, and the address of
/// a store on it.
fn cluster(prefix: &str) -> (Cluster, String) {
    let cluster = Cluster::start(&Options::new(3)).unwrap();
    let address =
        format!("kudu://{}/?prefix={prefix}&buckets=2&user=tester", cluster.master_list());
    (cluster, address)
}

fn start(store: &str) -> Server {
    let dir = temp_dir();
    Server::start_with(dir.path(), &["--store", store])
}

/// What everything about `select` looks like from a daemon.
fn answer(server: &Server, statement: &str) -> String {
    server.query("d", statement).text().to_owned()
}

#[test]
fn daemons_share_a_cluster() {
    let (cluster, store) = cluster("shared");
    let (one, two) = (start(&store), start(&store));
    one.create_database("d");
    let lines = "cpu,host=a,dc=x v=1,n=7i,s=\"text\",b=true,u=18446744073709551615u 1000000000\n\
                 cpu,host=b v=2.5 2000000000\n\
                 mem,host=a free=9i 3000000000\n";
    assert_eq!(one.write("d", lines).status, 204);
    // What is acknowledged by one is seen by the other; names of databases follow within a second.
    while two.write("d", "cpu,host=a,dc=x v=3 4000000000\n").status == 404 {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    for statement in [
        "SELECT * FROM cpu",
        "SELECT * FROM cpu ORDER BY time DESC LIMIT 2",
        "SELECT mean(v), count(v) FROM cpu WHERE time >= 0 AND time < 10s GROUP BY time(2s), host",
        "SELECT last(v) FROM cpu GROUP BY host",
        "SELECT v FROM cpu WHERE v > 2 AND host =~ /a|b/",
        "SHOW MEASUREMENTS",
        "SHOW SERIES",
        "SHOW TAG VALUES WITH KEY = host",
        "SHOW FIELD KEYS",
    ] {
        assert_eq!(answer(&one, statement), answer(&two, statement), "{statement}");
    }
    let all = answer(&two, "SELECT * FROM cpu");
    for part in ["18446744073709551615", "\"text\"", "1970-01-01T00:00:04Z", "2.5"] {
        assert!(all.contains(part), "{part}: {all}");
    }
    let conflict = two.write("d", "cpu,host=c v=\"text\" 5\n");
    assert_eq!(conflict.status, 400);
    assert!(conflict.text().contains("field type conflict"), "{}", conflict.text());

    one.query("d", "DELETE FROM cpu WHERE host = 'b'");
    let series = answer(&two, "SHOW SERIES");
    assert!(series.contains("cpu,dc=x,host=a") && !series.contains("host=b"), "{series}");
    two.query("d", "DROP MEASUREMENT mem");
    assert!(!answer(&one, "SHOW MEASUREMENTS").contains("mem"));

    // A daemon keeps nothing of its own.
    one.kill();
    let three = start(&store);
    assert_eq!(answer(&three, "SELECT * FROM cpu"), answer(&two, "SELECT * FROM cpu"));
    let metrics = three.get("/metrics");
    assert!(metrics.text().contains("scans_total"), "{}", metrics.text());
    // The tables are Kudu's own: its tool reads them.
    let tables = cluster.cli(&["table", "list", &cluster.master_list()]).unwrap();
    let table = tables.lines().find(|line| line.ends_with(".cpu")).unwrap();
    let rows = cluster.cli(&["table", "scan", &cluster.master_list(), table]).unwrap();
    assert!(rows.contains("Total count 2"), "{rows}");
    let status = nyala().args(["cluster", "status", "--store", &store]).output().unwrap();
    let text = String::from_utf8(status.stdout).unwrap();
    assert!(status.status.success(), "{text}");
    for part in ["leads", "alive", &format!("{table}: 2 tablets, 3 copies each")] {
        assert!(text.contains(part), "{part}: {text}");
    }
    two.stop();
    three.stop();
}

#[test]
fn what_is_wrong_with_a_cluster_is_said() {
    let refused = |flags: &[&str]| {
        let dir = temp_dir();
        let flags = [
            &["serve", "--http-bind", "127.0.0.1:0", "--data-dir"][..],
            &[dir.path().to_str().unwrap()][..],
            flags,
        ]
        .concat();
        let output = nyala().args(flags).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    for (flags, parts) in [
        (&["--store", "http://x"][..], &["kudu://host:port", "http://x"][..]),
        (&["--store", "kudu://x/?replica=3"], &["replica", "replicas"]),
        (&["--store", "kudu://x/", "--wal-sync", "never"], &["wal-sync", "own log"]),
        (&["--store", "kudu://x/", "--store-password", "p"], &["user=NAME"]),
        (&["--store-password", "p"], &["needs store"]),
        (&["--store", "kudu://127.0.0.1:1/?timeout-s=1"], &["127.0.0.1:1", "check the addresses"]),
    ] {
        let text = refused(flags);
        for part in parts {
            assert!(text.contains(part), "{flags:?}: {part}: {text}");
        }
    }
}

/// A query's own limit ends it, long before the store gives the cluster up.
#[test]
fn queries_end_in_time_while_the_cluster_stands_still() {
    let (cluster, store) = cluster("still");
    let dir = temp_dir();
    let flags = ["--store", &format!("{store}&timeout-s=120"), "--query-timeout", "2s"];
    let server = Server::start_with(dir.path(), &flags);
    server.create_database("d");
    assert_eq!(server.write("d", "m,host=a v=1 1\n").status, 204);
    let servers = || (0..3).map(|at| cluster.tablet_server(at));
    servers().for_each(kudu_test_cluster::Daemon::freeze);
    for statement in ["SELECT v FROM m", "SELECT v FROM n", "SHOW TAG VALUES WITH KEY = host"] {
        let text = answer(&server, statement);
        assert!(text.contains("query-timeout limit exceeded"), "{statement}: {text}");
    }
    servers().for_each(kudu_test_cluster::Daemon::thaw);
    let goes_on = || answer(&server, "SELECT v FROM m").contains("00000001Z\",1]");
    eventually(goes_on, || answer(&server, "SELECT v FROM m"));
    server.stop();
}

#[test]
fn a_cluster_that_goes_away_is_an_error_and_not_the_end() {
    let (cluster, store) = cluster("away");
    let server = start(&format!("{store}&timeout-s=2"));
    server.create_database("d");
    assert_eq!(server.write("d", "m v=1 1\n").status, 204);
    // One of three is no loss, once others lead.
    cluster.tablet_server(0).kill();
    let is_stored = || server.write("d", "m v=4 4\n").status == 204;
    eventually(is_stored, || "two servers of three are enough".to_owned());
    cluster.tablet_server(1).kill();
    let refused = server.write("d", "m v=2 2\n");
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert!(refused.text().contains("Kudu"), "{}", refused.text());
    let failed = server.query("d", "SELECT * FROM m");
    assert!(failed.text().contains("error"), "{}", failed.text());
    server.check_alive();
    for dead in 0..2 {
        cluster.tablet_server(dead).restart(&[]).unwrap();
    }
    cluster.wait_until_complete().unwrap();
    while server.write("d", "m v=3 3\n").status != 204 {
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    let rows = server.query("d", "SELECT v FROM m");
    assert!(rows.text().contains("1]") && rows.text().contains(",3]"), "{}", rows.text());
    // A table that somebody drops behind its back.
    let tables = cluster.cli(&["table", "list", &cluster.master_list()]).unwrap();
    let registry = tables.lines().find(|line| line.ends_with(".registry")).unwrap();
    let masters = cluster.master_list();
    let mut delete = vec!["table", "delete", &masters, registry];
    // Since 1.17 dropped tables are kept for a while; before, they go at once.
    if kudu_version() >= (1, 17) {
        delete.push("-reserve_seconds=0");
    }
    cluster.cli(&delete).unwrap();
    // Tablet servers let go of it a moment after the master has said so.
    let ask = || server.query("d", "SELECT * FROM m").text().to_owned();
    let mut answer = ask();
    for _ in 0..100 {
        if answer.contains("is gone") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
        answer = ask();
    }
    assert!(answer.contains("is gone"), "{answer}");
    server.check_alive();
    // Made anew, it would give ids a second time.
    let output = nyala().args(["serve", "--http-bind", "127.0.0.1:0", "--store", &store]).output();
    let text = String::from_utf8(output.unwrap().stderr).unwrap();
    assert!(text.contains("away.registry") && text.contains("is missing"), "{text}");
}

/// Writes, and says whether the server has acknowledged that.
fn is_stored(address: &str, lines: &str) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(address)?;
    let length = lines.len();
    let head = "POST /write?db=d HTTP/1.1\r\nHost: d\r\nConnection: close\r\nContent-Length:";
    stream.write_all(format!("{head} {length}\r\n\r\n{lines}").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.starts_with("HTTP/1.1 204"))
}

/// A daemon is killed while it loads: what it acknowledged is there once, and another one goes on.
#[test]
fn a_killed_daemon_takes_nothing_with_it() {
    let (_cluster, store) = cluster("killed");
    let (one, two) = (start(&store), start(&store));
    one.create_database("d");
    let lines = |batch: usize| {
        let lines = (0..100).map(|n| format!("m,h={} v={batch}i {}\n", n % 7, batch * 100 + n));
        lines.collect::<String>()
    };
    while two.write("d", lines(0)).status != 204 {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let acknowledged = std::sync::atomic::AtomicUsize::new(1);
    let relaxed = std::sync::atomic::Ordering::Relaxed;
    let address = one.url().trim_start_matches("http://").to_owned();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for batch in 1.. {
                // The connection ends in the middle of a request, or none is made any more.
                match is_stored(&address, &lines(batch)) {
                    Ok(true) => acknowledged.store(batch + 1, relaxed),
                    _ => break,
                }
            }
        });
        while acknowledged.load(relaxed) < 20 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        one.kill();
    });
    let acknowledged = acknowledged.load(relaxed);
    let count = |server: &Server| {
        let answer = server.query("d", "SELECT count(v) FROM m").json();
        answer["results"][0]["series"][0]["values"][0][1].as_u64().unwrap() as usize
    };
    let found = count(&two);
    // Of the batch under way some rows may have got there.
    assert!((acknowledged * 100..=(acknowledged + 1) * 100).contains(&found), "{found}");
    for batch in 0..acknowledged + 10 {
        assert_eq!(two.write("d", lines(batch)).status, 204);
    }
    assert_eq!(count(&two), (acknowledged + 10) * 100);
    two.stop();
}
