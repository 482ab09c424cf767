//! Requests that are wrong, hostile or absurd: each has its answer, and the server stays as it was.

use std::io::Write;

use crate::support::{Server, connect, read_answer, temp_dir};

/// Memory for the server, and what it may take at its worst with all of its code and buffers.
const LIMIT: &[&str] = &["--memory-limit", "256MB", "--max-body-size", "25MB"];
const PEAK_BYTES_MAX: u64 = 512 << 20;

struct Tested {
    server: Server,
    _dir: tempfile::TempDir,
}

impl Tested {
    fn start() -> Self {
        let dir = temp_dir();
        let server = Server::start_with(dir.path(), LIMIT);
        server.create_database("d");
        Self { server, _dir: dir }
    }

    /// The status, and the error cut to what a person would read.
    fn write(&self, body: impl AsRef<[u8]>) -> (u16, String) {
        let answer = self.server.write("d", body);
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(text.len() < 200 << 10, "a refusal of {} bytes", text.len());
        (answer.status, text)
    }

    fn check(&self) {
        self.server.check_alive();
        let peak = self.server.peak_memory_bytes();
        assert!(peak < PEAK_BYTES_MAX, "{} MiB", peak >> 20);
        let metrics = self.server.get("/metrics");
        assert!(metrics.text().contains("nyala_http_panics_total 0\n"), "a request panicked");
    }
}

/// Pseudo-random bytes.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 7_u64;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .collect()
}

#[test]
fn broken_gzip() {
    let tested = Tested::start();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all("m v=1 1\n".repeat(1000).as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    let send = |body: &[u8]| {
        let head = format!(
            "POST /write?db=d HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n",
            body.len()
        );
        let answer = tested.server.request(&head, body);
        (answer.status, answer.text().to_owned())
    };
    let broken = |text: &str| (400, format!("{{\"error\":\"{text}\"}}\n"));
    assert_eq!(send(&packed[..packed.len() / 2]), broken("unexpected EOF"));
    assert_eq!(send(b"cpu,host=a value=1 1"), broken("gzip: invalid header"));
    assert_eq!(send(&noise(1000)), broken("gzip: invalid header"));
    assert_eq!(send(&packed).0, 204);
    // 400 MB of spaces in 400 KB.
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..400 {
        encoder.write_all(&[b' '; 1 << 20]).unwrap();
    }
    assert_eq!(send(&encoder.finish().unwrap()).0, 413);
    tested.check();
}

#[test]
fn garbage() {
    let tested = Tested::start();
    assert_eq!(tested.write(noise(100_000)).0, 400);
    let (status, text) = tested.write(b"m,host=\xff\xfe v=1 1\n");
    assert_eq!(status, 400);
    assert!(text.contains("invalid UTF-8"), "{text}");
    assert_eq!(tested.write(b"m s=\"\xff\" 1\n").0, 400);
    assert_eq!(tested.write("bad\n".repeat(1_000_000)).0, 400);
    assert_eq!(tested.write([0; 10_000]).0, 204, "leading NULs are white space");
    tested.check();
}

#[test]
fn long_lines() {
    let tested = Tested::start();
    let long = "x".repeat(10 << 20);
    let (status, text) = tested.write(format!("m,host={long} v=1 1\nm,host=a v=1 1\n"));
    assert_eq!(status, 400);
    assert!(text.contains("max key length exceeded"), "{}", &text[..200]);
    assert_eq!(tested.write(format!("{long} v=1 1")).0, 400);
    let (status, text) = tested.write(format!("m s=\"{long}\" 1"));
    assert!(status == 204 || (status == 400 && text.contains("s")), "{status}");
    assert_eq!(tested.write(format!("m s=\"{long} 1")).0, 400, "an unterminated string");
    assert_eq!(tested.write(&long).0, 400);
    tested.check();
}

#[test]
fn many_tags_and_fields() {
    let tested = Tested::start();
    let tags: String = (0..10_000).map(|i| format!(",tag{i:05}=v")).collect();
    assert_eq!(tested.write(format!("m{tags} v=1 1")).0, 400);
    let fields: Vec<String> = (0..10_000).map(|i| format!("f{i}=1")).collect();
    let (status, text) = tested.write(format!("m {} 1", fields.join(",")));
    assert!(status == 204 || (status == 400 && text.contains("partial write")), "{text}");
    let same: Vec<String> = (0..100_000).map(|_| "f=1".to_owned()).collect();
    assert_eq!(tested.write(format!("same {} 1", same.join(","))).0, 204);
    tested.check();
}

#[test]
fn absurd_numbers_and_times() {
    let tested = Tested::start();
    for line in [
        "m v=99999999999999999999i 1",
        "m v=-9223372036854775809i 1",
        "m v=1e999999999 1",
        "m v=NaN 1",
        "m v=Inf 1",
        "m v=0x10 1",
        "m v=1..2 1",
        "m v=--1 1",
        "m v=1 99999999999999999999",
        "m v=1 -9223372036854775808",
        "m v=1 1.5",
        "m v=1 1 1",
        "m v=\"x 1",
        "m v= 1",
        "m =1 1",
        ",t=1 v=1 1",
        "m,t=1,t=2 v=1 1",
        "m,time=1 v=1 1",
    ] {
        let (status, text) = tested.write(line);
        assert_eq!(status, 400, "{line}: {text}");
    }
    for line in [
        "m i=-9223372036854775808i 1",
        "m i=9223372036854775807i 2",
        "m f=0.000000000000000000000000000000000000000000000000000000000000000000000000001 3",
        "m f=179769313486231570000000000000000000000000 4",
        "m f=1 -9223372036854775806",
        "m f=1 9223372036854775806",
    ] {
        let (status, text) = tested.write(line);
        assert_eq!(status, 204, "{line}: {text}");
    }
    tested.check();
}

#[test]
fn bodies_over_the_limit() {
    let tested = Tested::start();
    let head = "POST /write?db=d HTTP/1.1\r\n";
    let answer = tested.server.request(&format!("{head}Content-Length: 9000000000\r\n"), b"m v=1");
    assert_eq!((answer.status, answer.text()), (413, "{\"error\":\"Request Entity Too Large\"}\n"));
    let body = "m v=1 1\n".repeat(4 << 20);
    let answer = tested.server.write("d", &body);
    assert_eq!(answer.status, 413);
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let head = format!("{head}Transfer-Encoding: chunked\r\n");
    assert_eq!(tested.server.request(&head, chunked.as_bytes()).status, 413);
    let form = format!("q={body}");
    let head = format!(
        "POST /query HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {}\r\n",
        form.len()
    );
    assert_eq!(tested.server.request(&head, form.as_bytes()).status, 413);
    tested.check();
}

#[test]
fn no_http() {
    let tested = Tested::start();
    for bytes in
        [&b"GARBAGE\r\n\r\n"[..], b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\r\n\r\n"]
    {
        let mut stream = connect(tested.server.address);
        stream.write_all(bytes).unwrap();
        assert_eq!(read_answer(&mut stream).status, 400, "{bytes:?}");
    }
    let long = "x".repeat(300_000);
    let mut stream = connect(tested.server.address);
    // The server may stop reading.
    let _ = stream.write_all(format!("GET /ping HTTP/1.1\r\nX-Long: {long}\r\n\r\n").as_bytes());
    assert_eq!(read_answer(&mut stream).status, 431);
    let mut stream = connect(tested.server.address);
    let _ =
        stream.write_all(format!("GET /query?q={} HTTP/1.1\r\n\r\n", &long[..70_000]).as_bytes());
    assert_eq!(read_answer(&mut stream).status, 414);
    let many: String = (0..1000).map(|i| format!("H{i}: x\r\n")).collect();
    let mut stream = connect(tested.server.address);
    let _ = stream.write_all(format!("GET /ping HTTP/1.1\r\n{many}\r\n").as_bytes());
    assert_eq!(read_answer(&mut stream).status, 431);
    tested.check();
}

#[test]
fn slow_clients_keep_nobody_out() {
    let tested = Tested::start();
    let mut held = Vec::new();
    for number in 0..300 {
        let mut stream = connect(tested.server.address);
        let text = match number % 3 {
            0 => "GET /que",
            1 => "POST /write?db=d HTTP/1.1\r\nHost: x\r\nContent-Length: 25000000\r\n\r\n",
            _ => {
                "POST /write?db=d HTTP/1.1\r\nHost: x\r\nContent-Length: 25000000\r\n\r\nm v=1 1\n"
            }
        };
        stream.write_all(text.as_bytes()).unwrap();
        held.push(stream);
    }
    tested.check();
    let body: String = (0..200_000).map(|i| format!("m,host=h{} v={i} {i}\n", i % 10)).collect();
    assert_eq!(tested.write(body), (204, String::new()));
    let json = tested.server.query("d", "SELECT count(v) FROM m").json();
    assert_eq!(json["results"][0]["series"][0]["values"][0][1], 200_000);
    drop(held);
    tested.check();
}

#[test]
fn connections_over_the_limit_are_closed() {
    let dir = temp_dir();
    let server = Server::start_with(dir.path(), &["--max-connections", "3"]);
    let mut held: Vec<_> = (0..3).map(|_| connect(server.address)).collect();
    for stream in &mut held {
        stream.write_all(b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut byte = [0];
        std::io::Read::read_exact(stream, &mut byte).unwrap();
    }
    let mut surplus = connect(server.address);
    let mut byte = [0];
    let got = std::io::Read::read(&mut surplus, &mut byte);
    assert!(matches!(got, Ok(0) | Err(_)), "closed without a word");
    drop(held);
    let again = (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        let mut stream = connect(server.address);
        let sent = stream.write_all(b"GET /ping HTTP/1.1\r\nConnection: close\r\n\r\n");
        sent.is_ok() && matches!(std::io::Read::read(&mut stream, &mut byte), Ok(1))
    });
    assert!(again);
}
