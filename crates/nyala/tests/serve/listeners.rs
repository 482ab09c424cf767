//! Graphite, OpenTSDB, collectd and several listeners for line protocol over real sockets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;

use crate::support::{
    Server, connect, eventually, free_udp_address, read_answer, request, temp_dir,
};

/// An address that nobody listens on.
fn free_tcp_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn start(dir: &Path, config: &str) -> Server {
    let file = dir.join("nyala.toml");
    std::fs::write(&file, config).unwrap();
    let data = dir.join("data");
    Server::start_with(&data, &["--config", file.to_str().unwrap()])
}

/// The rows of everything in a database, as soon as there are `count` of them.
fn rows(server: &Server, database: &str, count: usize) -> String {
    let select = || server.query_with(database, "SELECT * FROM /.*/", "&epoch=ns", "");
    let arrived = |json: &serde_json::Value| {
        let series = json["results"][0]["series"].as_array().cloned().unwrap_or_default();
        let rows = series.iter().map(|s| s["values"].as_array().map_or(0, Vec::len));
        rows.sum::<usize>() >= count
    };
    eventually(|| arrived(&select().json()), || select().text().to_owned());
    select().text().to_owned()
}

#[test]
fn several_listeners_for_datagrams() {
    let dir = temp_dir();
    let addresses = [free_udp_address(), free_udp_address()];
    let section = |at: usize, rest: &str| {
        let bind = &addresses[at];
        format!("[[udp]]\nenabled = true\nbind-address = \"{bind}\"\nbatch-size = 1\n{rest}")
    };
    let config = section(0, "") + &section(1, "database = \"second\"\nprecision = \"s\"\n");
    let server = start(dir.path(), &config);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for (address, datagram) in [(&addresses[0], "m v=1 7"), (&addresses[1], "m v=2 7")] {
        socket.send_to(datagram.as_bytes(), address).unwrap();
    }
    socket.send_to(b"bad", &addresses[1]).unwrap();
    assert!(rows(&server, "udp", 1).contains(r#""values":[[7,1]]"#));
    assert!(rows(&server, "second", 1).contains(r#""values":[[7000000000,2]]"#));
    let counted = |at: usize, column: &str| {
        let shown = server.query("", "SHOW STATS FOR 'udp'").json();
        let series = shown["results"][0]["series"].as_array().unwrap().clone();
        let one = series.iter().find(|one| one["tags"]["bind"] == *addresses[at]).unwrap().clone();
        let columns = one["columns"].as_array().unwrap();
        let place = columns.iter().position(|found| found == column).unwrap();
        one["values"][0][place].as_u64().unwrap()
    };
    for (at, column) in [(0, "pointsTx"), (1, "pointsRx"), (1, "pointsParseFail")] {
        eventually(|| counted(at, column) == 1, || format!("{at} {column}"));
    }
    assert_eq!(counted(0, "pointsParseFail"), 0);
    server.stop();
}

#[test]
fn graphite_over_tcp_and_udp() {
    let dir = temp_dir();
    let (tcp, udp) = (free_tcp_address(), free_udp_address());
    let config = format!(
        "[[graphite]]\nenabled = true\nbind-address = \"{tcp}\"\nbatch-timeout = \"50ms\"\n\
         separator = \"_\"\ntags = [\"region=us\"]\n\
         templates = [\"*.app env.service.measurement\", \"measurement.measurement*\"]\n\
         [[graphite]]\nenabled = true\nprotocol = \"udp\"\nbind-address = \"{udp}\"\n\
         database = \"gu\"\nbatch-size = 1\n"
    );
    let server = start(dir.path(), &config);
    let mut stream = connect(tcp);
    stream
        .write_all(b"prod.app.cpu 1 0\nbad\ndisk.free 2.5 1.5\nnan NaN 1\nunterminated 1 5")
        .unwrap();
    drop(stream);
    let got = rows(&server, "graphite", 2);
    for part in [
        r#"{"name":"cpu","columns":["time","env","region","service","value"],"#,
        r#""values":[[0,"prod","us","app",1]]}"#,
        r#"{"name":"disk_free","columns":["time","env","region","service","value"],"#,
        r#""values":[[1500000000,null,"us",null,2.5]]}"#,
    ] {
        assert!(got.contains(part), "{part}: {got}");
    }
    // Rows that come together have times of their own.
    let mut stream = connect(tcp);
    stream.write_all(b"untimed 1\nuntimed 2\nuntimed 4 -1\n").unwrap();
    let select = || server.query("graphite", "SELECT count(value) FROM untimed").text().to_owned();
    eventually(|| select().contains(",3]"), select);
    drop(stream);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(b"a.b 1 7\nc.d 2 8", &udp).unwrap();
    let got = rows(&server, "gu", 2);
    assert!(got.contains(r#""name":"a.b""#) && got.contains("[8000000000,2]"), "{got}");
    let stats = || server.query("", "SHOW STATS FOR 'graphite'").json();
    let figures = || {
        let series = stats()["results"][0]["series"][0].clone();
        assert_eq!(series["tags"]["proto"], "tcp");
        let columns = series["columns"].as_array().unwrap().clone();
        let at = |name: &str| columns.iter().position(|column| column == name).unwrap();
        let of = |name: &str| series["values"][0][at(name)].as_u64().unwrap();
        (of("pointsParseFail"), of("pointsTx"))
    };
    eventually(|| figures() == (2, 5), || format!("{:?}", figures()));
    server.stop();
}

#[test]
fn opentsdb_lines_and_http() {
    let dir = temp_dir();
    let address = free_tcp_address();
    let config = format!(
        "[[opentsdb]]\nenabled = true\nbind-address = \"{address}\"\nbatch-timeout = \"50ms\"\n"
    );
    let server = start(dir.path(), &config);
    let mut stream = connect(address);
    stream
        .write_all(b"put m 1479496100 1.5 a=1\nput bad\nput m 1479496101000 2\nversion\n")
        .unwrap();
    let mut version = [0; 19];
    stream.read_exact(&mut version).unwrap();
    assert_eq!(&version, b"InfluxDB TSDB proxy");
    let got = rows(&server, "opentsdb", 2);
    assert!(
        got.contains(r#"[[1479496100000000000,"1",1.5],[1479496101000000000,null,2]]"#),
        "{got}"
    );
    let post = |path: &str, headers: &str, body: &[u8]| {
        let len = body.len();
        let head = format!("POST {path} HTTP/1.1\r\nContent-Length: {len}\r\n{headers}");
        request(address, &head, body)
    };
    let one = br#"{"metric":"h","timestamp":1479496100,"value":1,"tags":{"b":"x y"}}"#;
    assert_eq!(post("/api/put", "", one).status, 204);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let two = br#"[{"metric":"h","timestamp":1479496101,"value":2},{"metric":"h","timestamp":1479496102000,"value":3}]"#;
    packed.write_all(two).unwrap();
    let packed = packed.finish().unwrap();
    assert_eq!(post("/api/put", "Content-Encoding: gzip\r\n", &packed).status, 204);
    // What is acknowledged is there.
    let got = server.query_with("opentsdb", "SELECT * FROM h", "&epoch=s", "");
    let want = r#"[[1479496100,"x y",1],[1479496101,null,2],[1479496102,null,3]]"#;
    assert!(got.text().contains(want), "{}", got.text());
    for (path, body, status, text) in [
        ("/api/put", "[1]", 400, "json array decode error\n"),
        ("/api/put", "x", 400, "expected JSON array or hash\n"),
        ("/api/metadata/put", "{}", 204, ""),
        ("/api/query", "{}", 404, "404 page not found\n"),
    ] {
        let answer = post(path, "", body.as_bytes());
        assert_eq!((answer.status, answer.text()), (status, text), "{path} {body}");
    }
    let bad = post("/api/put", "Content-Encoding: gzip\r\n", b"no gzip");
    assert_eq!(bad.status, 400);
    server.check_alive();
    server.stop();
}

#[test]
fn requests_of_opentsdb_are_finished() {
    let dir = temp_dir();
    let address = free_tcp_address();
    let config = format!("[[opentsdb]]\nenabled = true\nbind-address = \"{address}\"\n");
    let server = start(dir.path(), &config);
    let body = r#"{"metric":"m","timestamp":1479496100,"value":7}"#;
    let head = format!(
        "POST /api/put HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = connect(address);
    stream.write_all(head.as_bytes()).unwrap();
    let mut going_on = [0; 25];
    stream.read_exact(&mut going_on).unwrap();
    assert_eq!(&going_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    server.signal(rustix::process::Signal::TERM);
    // It stops listening, and waits for the rest.
    let stopped = || std::net::TcpStream::connect(address).is_err();
    eventually(stopped, || "it still listens".to_owned());
    stream.write_all(body.as_bytes()).unwrap();
    assert_eq!(read_answer(&mut stream).status, 204);
    assert_eq!(server.wait().code(), Some(0));
}

fn part(kind: u16, body: &[u8]) -> Vec<u8> {
    let len = u16::try_from(body.len() + 4).unwrap();
    [&kind.to_be_bytes()[..], &len.to_be_bytes(), body].concat()
}

fn text(kind: u16, text: &str) -> Vec<u8> {
    part(kind, &[text.as_bytes(), b"\0"].concat())
}

#[test]
fn collectd_split_and_joined() {
    let dir = temp_dir();
    let (split, join) = (free_udp_address(), free_udp_address());
    let types = dir.path().join("types.db");
    std::fs::write(&types, "load short:GAUGE:0:5000, mid:GAUGE:0:5000\n").unwrap();
    let section = |address: &str, more: &str| {
        format!(
            "[[collectd]]\nenabled = true\nbind-address = \"{address}\"\nbatch-size = 1\n\
             typesdb = \"{}\"\n{more}",
            types.display()
        )
    };
    let config = section(&split, "")
        + &section(&join, "database = \"joined\"\nparse-multivalue-plugin = \"join\"\n");
    let server = start(dir.path(), &config);
    let values = [&[0, 2, 1, 1][..], &0.5f64.to_le_bytes(), &1.5f64.to_le_bytes()].concat();
    let packet = [
        text(0, "h"),
        part(1, &7u64.to_be_bytes()),
        text(2, "load"),
        text(4, "load"),
        part(6, &values),
    ]
    .concat();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for address in [&split, &join] {
        socket.send_to(b"no packet", address).unwrap();
        socket.send_to(&packet, address).unwrap();
    }
    let got = rows(&server, "collectd", 2);
    assert!(got.contains(r#"{"name":"load_short","columns":["time","host","type","value"],"values":[[7000000000,"h","load",0.5]]}"#), "{got}");
    let got = rows(&server, "joined", 1);
    assert!(got.contains(r#"{"name":"load","columns":["time","host","mid","short","type"],"values":[[7000000000,"h",1.5,0.5,"load"]]}"#), "{got}");
    server.stop();
}

#[test]
fn a_section_that_is_wrong_is_named() {
    let dir = temp_dir();
    let file = dir.path().join("nyala.toml");
    let section = "[[collectd]]\nenabled = true\ntypesdb = \"/dev/null\"\n\
                   security-level = \"encrypt\"\nauth-file = \"/no/such/file\"\n";
    std::fs::write(&file, section).unwrap();
    let output = crate::support::nyala().arg("config").arg("--config").arg(&file).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("[[collectd]]"), "{said}");
    assert!(said.contains("auth-file: /no/such/file"), "{said}");
    let shown = "[[opentsdb]]\nenabled = false\n[monitor]\nstore-enabled = true\n";
    std::fs::write(&file, shown).unwrap();
    let output = crate::support::nyala().arg("config").arg("--config").arg(&file).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("[monitor]\nstore-enabled = true\n"), "{said}");
}
