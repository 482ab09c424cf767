//! `nyala import` and `nyala export`: a real InfluxDB, dumps and CSV go in, and come out as they were.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Server, encode, nyala, request, temp_dir};

/// A real `influxd` in a directory of its own. Dropping it kills it.
struct Influxd {
    process: Child,
    address: std::net::SocketAddr,
}

impl Influxd {
    /// Starts it on ports that nobody listens at. Another test may take one of them in between: then
    /// influxd ends at once, and it gets others.
    fn start(dir: &Path) -> Self {
        let log = dir.join("influxd.log");
        let started = (0..5).find_map(|_| Self::start_once(dir, &log));
        started.unwrap_or_else(|| {
            panic!("influxd does not start: {}", std::fs::read_to_string(&log).unwrap())
        })
    }

    /// `None` if it ends before it listens.
    fn start_once(dir: &Path, log: &Path) -> Option<Self> {
        // Both at once, or they could be the same.
        let free = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [address, backup] = free.map(|listener| listener.local_addr().unwrap());
        let root = dir.display();
        // With the other index a policy shows the tags of all policies.
        let config = format!(
            "reporting-disabled = true\nbind-address = \"{backup}\"\n[meta]\ndir = \"{root}/meta\"\n\
             [data]\ndir = \"{root}/data\"\nwal-dir = \"{root}/wal\"\nindex-version = \"tsi1\"\n[monitor]\n\
             store-enabled = false\n[http]\nbind-address = \"{address}\"\nlog-enabled = false\n"
        );
        let file = dir.join("influxd.conf");
        std::fs::write(&file, config).unwrap();
        let process = Command::new("influxd")
            .arg("-config")
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(log).unwrap())
            .spawn()
            .expect("`influxd` is needed: `cargo xtask packages` installs it (package influxdb)");
        let mut server = Self { process, address };
        let start = Instant::now();
        loop {
            let answers = std::net::TcpStream::connect(address).is_ok();
            // If it has ended, that was somebody else.
            if server.process.try_wait().unwrap().is_some() {
                return None;
            }
            if answers {
                return Some(server);
            }
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "influxd does not start in a minute"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn query(&self, db: &str, q: &str) -> serde_json::Value {
        ask(self.address, db, q)
    }

    fn write(&self, db: &str, rp: &str, lines: &str) {
        let target = format!("/write?db={}&rp={}", encode(db), encode(rp));
        let head = format!("POST {target} HTTP/1.1\r\nContent-Length: {}\r\n", lines.len());
        let answer = request(self.address, &head, lines.as_bytes());
        assert_eq!(answer.status, 204, "{}", answer.text());
    }
}

impl Drop for Influxd {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn ask(address: std::net::SocketAddr, db: &str, q: &str) -> serde_json::Value {
    let body = format!("db={}&epoch=ns&q={}", encode(db), encode(q));
    let head = format!(
        "POST /query HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {}\r\n",
        body.len()
    );
    let answer = request(address, &head, body.as_bytes());
    let json: serde_json::Value = answer.json();
    assert_eq!(answer.status, 200, "{q}: {json}");
    assert!(json["results"][0].get("error").is_none(), "{q}: {json}");
    json
}

fn tool(server: &Server, name: &str, args: &[&str]) -> Output {
    let port = server.address.port().to_string();
    let mut command = nyala();
    command.args([name, "--host", "127.0.0.1", "--port", &port]).args(args);
    command.stdin(Stdio::null()).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Everything of a server as lines, sorted.
fn all_lines(server: &Server, more: &[&str]) -> Vec<String> {
    let args = [&["-lponly", "-out", "-"], more].concat();
    let output = tool(server, "export", &args);
    assert!(output.status.success(), "{}", stderr(&output));
    let mut lines: Vec<String> =
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Floats whose digits are easily lost.
const FLOATS: [f64; 9] = [
    0.1,
    -0.0,
    5e-324,
    f64::MAX,
    f64::MIN_POSITIVE,
    1.0 / 3.0,
    9_007_199_254_740_993.0,
    -1e-7,
    123_456_789.125,
];

fn now() -> u128 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos()
}

#[test]
fn everything_of_an_influxdb_arrives() {
    let dirs = (temp_dir(), temp_dir());
    let influx = Influxd::start(dirs.0.path());
    for q in [
        "CREATE DATABASE a",
        "CREATE DATABASE \"b c\" WITH DURATION INF REPLICATION 1 SHARD DURATION 1d NAME \"r p\"",
        "CREATE RETENTION POLICY short ON a DURATION 520w REPLICATION 1 SHARD DURATION 1d",
        "CREATE CONTINUOUS QUERY cq ON a RESAMPLE EVERY 1h BEGIN \
         SELECT mean(f) INTO a.short.mm FROM a.autogen.m GROUP BY time(5m), * END",
        "CREATE USER ann WITH PASSWORD 'x'",
        "CREATE USER root WITH PASSWORD 'y' WITH ALL PRIVILEGES",
        "GRANT READ ON a TO ann",
        "CREATE DATABASE left",
        "GRANT READ ON left TO ann",
    ] {
        influx.query("", q);
    }
    let floats: String = FLOATS
        .iter()
        .enumerate()
        .map(|(i, float)| format!("precise,n={i} f={float:?} {}\n", 1_500_000_000_000_000_000 + i))
        .collect();
    influx.write("a", "autogen", &floats);
    influx.write(
        "a",
        "autogen",
        "m,h=a,same=t f=1.5,i=9223372036854775807i,b=true,s=\"q\\\"\\\\ \u{e9}\nx\",same=\"field\" 1\n\
         m,h=a f=2,i=-9223372036854775808i -5\n\
         we\\ ird\\,\"m,ta\\ g=a\\=b\\,c fi\\ eld=\"v\" 1600000000000000001\n\
         plain v=1i 5\n",
    );
    let many: String = (0..23_000)
        .map(|i| format!("many,h=h{} v={i}i {}\n", i % 7, i * 60_000_000_000_i64))
        .collect();
    influx.write("a", "autogen", &many);
    // One field with three types, in three shards.
    influx.write("b c", "r p", "t v=1.5 0\nt v=2 1\nt v=9007199254740993i 86400000000001\n");
    influx.write("b c", "r p", "t v=7i 86400000000002\nt v=\"text\" 172800000000000\n");
    // A measurement, and a field, that the default policy does not have.
    influx.write("a", "short", &format!("only,h=a v=true {}\nm,h=s x=\"y\" {}\n", now(), now()));
    influx.write("a", "short", &format!("m,h=s f=4 {}\n", now()));

    let server = Server::start(dirs.1.path());
    let (state, passwords) = (dirs.1.path().join("state"), dirs.1.path().join("passwords"));
    let url = influx.url();
    let args = [
        "--from",
        &url,
        "--state",
        state.to_str().unwrap(),
        "--user-passwords",
        passwords.to_str().unwrap(),
        "--database",
        "a",
        "--database",
        "b c",
    ];
    let output = tool(&server, "import", &args);
    let said = stderr(&output);
    assert!(said.contains("not granted: GRANT READ ON \"left\" TO \"ann\""), "{said}");
    // A file with passwords in it is left alone, and nothing is begun.
    let refused = tool(&server, "import", &args);
    assert!(!refused.status.success() && stderr(&refused).contains("name a new one"));
    assert!(!stderr(&refused).contains("imported"), "{}", stderr(&refused));
    assert!(output.status.success(), "{said}");
    assert!(said.contains("imported 23021 points"), "{said}");
    assert!(said.contains("all are here"), "{said}");
    assert!(said.contains("field \"v\" has several types"), "{said}");

    let here = |db: &str, q: &str| ask(server.address, db, q);
    for q in [
        "SELECT * FROM precise GROUP BY *",
        "SELECT *::field FROM m GROUP BY *",
        "SELECT * FROM \"we ird,\\\"m\" GROUP BY *",
        "SELECT * FROM plain",
        "SELECT * FROM a.short.m",
        "SELECT * FROM a.short.only",
        "SELECT sum(v), count(v) FROM many GROUP BY h",
        "SHOW FIELD KEYS",
        "SHOW TAG VALUES WITH KEY =~ /.*/",
        "SHOW RETENTION POLICIES ON a",
        "SHOW CONTINUOUS QUERIES",
    ] {
        let (mut there, mut here) = (influx.query("a", q), here("a", q));
        if q == "SHOW CONTINUOUS QUERIES" {
            // The other database has none.
            for json in [&mut there, &mut here] {
                let series = json["results"][0]["series"].as_array_mut().unwrap();
                series.retain(|series| series.get("values").is_some());
            }
        }
        assert_eq!(here, there, "{q}");
    }
    let rows = here("a", "SELECT f FROM precise");
    let rows = rows["results"][0]["series"][0]["values"].as_array().unwrap();
    let found: Vec<u64> = rows.iter().map(|row| row[1].as_f64().unwrap().to_bits()).collect();
    assert_eq!(found, FLOATS.map(f64::to_bits));
    assert_eq!(
        here("b c", "SHOW RETENTION POLICIES ON \"b c\""),
        influx.query("b c", "SHOW RETENTION POLICIES ON \"b c\"")
    );
    let mixed = here("b c", "SELECT * FROM \"r p\".t");
    assert_eq!(
        mixed["results"][0]["series"][0]["values"].to_string(),
        "[[0,1.5,null,null],[1,2.0,null,null],[86400000000001,null,9007199254740993,null],\
         [86400000000002,7.0,null,null],[172800000000000,null,null,\"text\"]]"
            .replace("2.0", "2")
            .replace("7.0", "7")
    );
    let users = here("", "SHOW USERS")["results"][0]["series"][0]["values"].to_string();
    assert_eq!(users, "[[\"ann\",false],[\"root\",true]]");
    let grants = here("", "SHOW GRANTS FOR ann")["results"][0]["series"][0]["values"].to_string();
    assert_eq!(grants, "[[\"a\",\"READ\"]]");
    let written = std::fs::read_to_string(&passwords).unwrap();
    assert!(written.lines().count() == 2 && written.starts_with("ann "), "{written}");

    // Only what may have got more rows is left to do; what is lost is found.
    influx.write("a", "short", &format!("only,h=late v=false {}\n", now()));
    let again = tool(&server, "import", &args[..4]);
    assert!(!stderr(&again).contains("imported 23"), "{}", stderr(&again));
    assert!(stderr(&again).contains("all are here"), "{}", stderr(&again));
    let late = here("a", "SELECT v FROM a.short.\"only\" WHERE h = 'late'");
    assert!(late["results"][0]["series"][0]["values"][0][1] == false, "{late}");
    server.query("a", "DELETE FROM precise WHERE n = '3'");
    let again = tool(&server, "import", &args[..4]);
    assert!(!again.status.success());
    let differs = "differs: a.autogen.precise, field \"f\": 9 values on the source, 8 here";
    assert!(stderr(&again).contains(differs), "{}", stderr(&again));
    let anew = tool(&server, "import", &["--from", &url, "--database", "a"]);
    assert!(stderr(&anew).contains("all are here"), "{}", stderr(&anew));
}

#[test]
fn everything_of_a_nyala_arrives() {
    let dirs = (temp_dir(), temp_dir());
    let source = Server::start(dirs.0.path());
    for q in [
        "CREATE DATABASE a",
        "CREATE DATABASE \"b c\" WITH DURATION INF REPLICATION 1 SHARD DURATION 1d NAME \"r p\"",
        "CREATE RETENTION POLICY long ON a DURATION INF REPLICATION 1",
        "CREATE CONTINUOUS QUERY cq ON a BEGIN \
         SELECT mean(f) INTO a.long.mm FROM a.autogen.m GROUP BY time(5m), * END",
        "CREATE USER ann WITH PASSWORD 'x'",
        "GRANT READ ON a TO ann",
    ] {
        ask(source.address, "", q);
    }
    let many: String = (0..23_000)
        .map(|i| format!("many,h=h{} v={i}i,w={i}.5 {}\n", i % 7, i * 60_000_000_000_i64))
        .collect();
    assert_eq!(source.write("a", &many).status, 204);
    let odd = "m,h=a f=0.1,i=9223372036854775807i,u=18446744073709551615u,b=t,s=\"q\\\"\nx\" 1\n\
               we\\ ird\\,\"m,ta\\ g=a\\=b fi\\ eld=\"v\" -5\n";
    let written = source.write("a", odd);
    assert_eq!(written.status, 204, "{}", written.text());
    assert_eq!(source.post("/write?db=a&rp=long", "only,h=a v=true 7\n").status, 204);
    assert_eq!(source.write("b%20c", "t v=1.5 0\n").status, 204);

    let server = Server::start(dirs.1.path());
    let (url, passwords) = (source.url(), dirs.1.path().join("passwords"));
    let args = ["--from", &url, "--user-passwords", passwords.to_str().unwrap()];
    let output = tool(&server, "import", &args);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("imported 23004 points") && said.contains("all are here"), "{said}");
    assert_eq!(all_lines(&server, &[]), all_lines(&source, &[]));
    for q in [
        "SHOW RETENTION POLICIES ON a",
        "SHOW RETENTION POLICIES ON \"b c\"",
        "SHOW CONTINUOUS QUERIES",
        "SHOW FIELD KEYS",
        "SHOW GRANTS FOR ann",
        "SHOW USERS",
    ] {
        assert_eq!(ask(server.address, "a", q), ask(source.address, "a", q), "{q}");
    }
    source.stop();
    server.stop();
}

#[test]
fn what_was_rejected_is_imported_again() {
    let dirs = (temp_dir(), temp_dir());
    let influx = Influxd::start(dirs.0.path());
    influx.query("", "CREATE DATABASE d");
    influx.query("", "CREATE USER ann WITH PASSWORD 'x'");
    influx.write("d", "autogen", "m v=1i 1\nn v=1i 1\n");
    let server = Server::start(dirs.1.path());
    server.create_database("d");
    assert_eq!(server.write("d", "m v=\"text\" 5").status, 204);
    let (state, passwords) = (dirs.1.path().join("state"), dirs.1.path().join("passwords"));
    let (state, passwords) = (state.to_str().unwrap(), passwords.to_str().unwrap());
    let url = influx.url();
    // A name that cannot be taken there.
    server.query("", "CREATE USER ann WITH PASSWORD 'y'");
    let args = ["--from", &url, "--state", state, "--user-passwords", passwords];
    let output = tool(&server, "import", &args);
    let said = stderr(&output);
    assert!(!output.status.success() && said.contains("1 were rejected"), "{said}");
    assert!(said.contains("user \"ann\" is here already"), "{said}");
    server.query("d", "DROP MEASUREMENT m");
    let output = tool(&server, "import", &args);
    let said = stderr(&output);
    assert!(output.status.success() && said.contains("imported 1 points"), "{said}");
    assert_eq!(all_lines(&server, &[]), ["m v=1i 1", "n v=1i 1"]);
}

#[test]
fn a_port_that_nobody_listens_on_is_said_at_once() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let dir = temp_dir();
    let file = dir.path().join("lines");
    std::fs::write(&file, "m v=1 1\n").unwrap();
    let server = Server::start(dir.path());
    let (port, file) = (nobody.port().to_string(), file.to_str().unwrap());
    for args in [
        &["import", file, "--database", "d", "--port", &port][..],
        &["import", "--from", &server.url(), "--port", &port],
        &["shell", "-import", "-path", file, "-port", &port],
    ] {
        let output = nyala().args(args).stdin(Stdio::null()).output().unwrap();
        let said = stderr(&output);
        assert!(!output.status.success() && said.contains("cannot connect"), "{said}");
        assert!(!said.contains("again in"), "{said}");
    }
}

#[test]
fn an_export_ends_quietly_when_nobody_reads_on() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    server.create_database("a");
    // More than pipes and buffers hold.
    let rows: String = (0..50_000).map(|i| format!("measurement value={i}i {i}\n")).collect();
    assert_eq!(server.write("a", &rows).status, 204);
    let port = server.address.port().to_string();
    for more in [&[][..], &["-compress"]] {
        let mut command = nyala();
        command.args(["export", "--host", "127.0.0.1", "--port", &port, "--out", "-"]).args(more);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(process.stdout.take());
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(stderr(&output), "");
    }
}

#[test]
fn what_is_exported_is_imported() {
    let dirs = (temp_dir(), temp_dir());
    let server = Server::start(dirs.0.path());
    server.create_database("a");
    server.query("", "CREATE RETENTION POLICY \"r p\" ON a DURATION 5200w REPLICATION 1 DEFAULT");
    let rows = "m,h=a\\ b f=1.5,i=9223372036854775807i,u=18446744073709551615u,b=t,s=\"a\nb\\\"\" 1\n\
                m,h=b f=-0.1 1500000000000000001\n\"q\" s=\"x,y\" 3\n";
    assert_eq!(server.write("a", rows).status, 204);
    assert_eq!(server.post("/write?db=a&rp=autogen", "m,h=c f=3 4\n").status, 204);
    let expected = all_lines(&server, &[]);
    assert_eq!(expected.len(), 5, "four points, one of them with a line break: {expected:?}");

    let import = |file: &Path, compare: &[String]| {
        let dir = temp_dir();
        let other = Server::start(dir.path());
        if file.to_str().unwrap().contains("csv") {
            // CSV makes no databases.
            other.create_database("a");
            other.query("", "CREATE RETENTION POLICY \"r p\" ON a DURATION INF REPLICATION 1");
        }
        let output = tool(&other, "import", &[file.to_str().unwrap()]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(all_lines(&other, &[]), compare);
        other
    };
    for (name, more) in [
        ("dump", &["-database", "a"][..]),
        ("dump.gz", &["-compress"]),
        ("all.csv", &["-format", "csv"]),
        ("all.csv.gz", &["-format", "csv", "-compress=true"]),
    ] {
        let file = dirs.1.path().join(name);
        let args = [&["-out", file.to_str().unwrap()], more].concat();
        let output = tool(&server, "export", &args);
        assert!(output.status.success(), "{}", stderr(&output));
        let other = import(&file, &expected);
        if name == "dump" {
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(text.starts_with("# INFLUXDB EXPORT: "), "{text}");
            assert!(
                text.contains("# CONTEXT-DATABASE:a\n# CONTEXT-RETENTION-POLICY:r p\n"),
                "{text}"
            );
            // The order is that in which they were made.
            let policies = |server: &Server| {
                let json = server.query("", "SHOW RETENTION POLICIES ON a").json();
                let rows = json["results"][0]["series"][0]["values"].as_array().unwrap().clone();
                let mut rows: Vec<String> = rows.iter().map(ToString::to_string).collect();
                rows.sort();
                rows
            };
            assert_eq!(policies(&other), policies(&server));
        }
    }
    assert!(std::fs::read(dirs.1.path().join("dump.gz")).unwrap().starts_with(&[0x1f, 0x8b]));
    let window = ["-start", "1970-01-01T00:00:00.000000003Z", "-end", "2000-01-01T00:00:00Z"];
    assert_eq!(all_lines(&server, &window).len(), 2);
    let policy = ["-database", "a", "-retention", "autogen"];
    assert_eq!(all_lines(&server, &policy), ["m,h=c f=3 4"]);
    // The real client reads the dump, too.
    let dir = temp_dir();
    let other = Server::start(dir.path());
    let port = other.address.port().to_string();
    let dump = dirs.1.path().join("dump.gz");
    let args = ["-port", &port, "-import", "-compressed", "-path", dump.to_str().unwrap()];
    let output = Command::new("influx").args(args).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(all_lines(&other, &["-retention", "autogen", "-database", "a"]), ["m,h=c f=3 4"]);
}

#[test]
fn files_of_strangers() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    server.create_database("d");
    let import = |name: &str, text: &[u8], args: &[&str]| {
        let file = dir.path().join(name);
        std::fs::write(&file, text).unwrap();
        let output = tool(&server, "import", &[&[file.to_str().unwrap()], args].concat());
        (output.status.code(), stderr(&output))
    };
    let csv = "time,city,temp,sky,n::integer\n1970-01-01T00:00:01Z,Oslo,-3.5,clear,7\n\
               2,\"New York\",21,,\n3,Oslo,,cloudy,8\n";
    let to = ["--database", "d", "--measurement", "weather", "--tags", "city", "--precision", "s"];
    let (code, said) = import("w.csv", csv.as_bytes(), &to);
    assert!(code == Some(0) && said.contains("3 points"), "{said}");
    assert_eq!(
        all_lines(&server, &[]),
        [
            "weather,city=New\\ York temp=21 2000000000",
            "weather,city=Oslo n=7i,sky=\"clear\",temp=-3.5 1000000000",
            "weather,city=Oslo n=8i,sky=\"cloudy\" 3000000000",
        ]
    );
    // What InfluxDB itself answers as CSV.
    server.query("", "DROP DATABASE d");
    server.create_database("d");
    let influx = "name,tags,time,v\nm,\"a=1,b=x\\, y\",1,2\n\nname,time,w\nn,5,true\n";
    assert_eq!(import("i.csv", influx.as_bytes(), &["--database", "d"]).0, Some(0));
    assert_eq!(all_lines(&server, &[]), ["m,a=1,b=x\\,\\ y v=2 1", "n w=true 5"]);

    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(b"p v=1 1\np v=2 2\n").unwrap();
    let lines = packed.finish().unwrap();
    assert_eq!(import("lines.gz", &lines, &["--database", "d", "--pps", "1000"]).0, Some(0));
    let (code, said) = import("bad", b"p v=1 1\np v= 2\n", &["--database", "d"]);
    assert!(code == Some(1) && said.contains("2 points, 1 of them rejected"), "{said}");
    let (_, said) = import("none", b"# DML\nm v=1\nm v=2\nm v=3\n", &[]);
    assert!(said.contains("3 points, 3 of them rejected"), "{said}");
    for (name, text, args, expected) in [
        ("a.csv", "x,y\n1,2\n", &["--database", "d"][..], "say --measurement"),
        ("b.csv", "time,v\n1,2\n", &["--measurement", "m"], "which database"),
        ("c.csv", "time,v\n1,2\n2,x\n", &["--database", "d", "--measurement", "m"], "v::string"),
        ("d.csv", "time,v\n1,2,3\n", &["--database", "d", "--measurement", "m"], "3 cells"),
        ("e.csv", "time,v\nx,2\n", &["--database", "d", "--measurement", "m"], "not a time"),
        ("l.csv", "v,w\n1,2\n", &["--database", "d", "--measurement", "m"], "no column `time`"),
        ("m.csv", "time,v\n,2\n", &["--database", "d", "--measurement", "m"], "no time"),
        ("f", "m v=1\n", &[], "failed"),
        ("g", "# DML\nm v=1\n", &[], "database is required"),
        ("h", "m s=\"\n", &["--database", "d"], "does not end"),
        ("i", "m v=1\n", &["--database", "no"], "database not found"),
        (
            "j",
            "m v=1\n",
            &["--start", "2020-01-01T00:00:00Z"],
            "--start is for imports from a server",
        ),
        ("k", "m v=1\n", &["--database", "d", "--precision", "y"], "unknown precision"),
    ] {
        let (code, said) = import(name, text.as_bytes(), args);
        assert!(code == Some(1) && said.contains(expected), "{name}: {said}");
    }
    let mut pipe = nyala()
        .args(["import", "-", "--database", "d", "--port", &server.address.port().to_string()])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    pipe.stdin.take().unwrap().write_all(b"piped v=1 1\n").unwrap();
    let mut said = String::new();
    pipe.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(pipe.wait().unwrap().success(), "{said}");
}
