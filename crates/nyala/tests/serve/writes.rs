//! What writers are told.

use crate::support::{Server, temp_dir};

fn started() -> (tempfile::TempDir, Server) {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    server.create_database("d");
    (dir, server)
}

/// The refusal of `lines` sent to `target`.
fn refused(server: &Server, target: &str, lines: &str) -> (u16, String) {
    let answer = server.post(target, lines);
    let json = answer.json();
    let text = json["error"].as_str().unwrap().to_owned();
    let header = answer.header("x-influxdb-error").unwrap();
    assert_eq!(header, &text.replace('\n', " ")[..text.len().min(1024)]);
    (answer.status, text)
}

#[test]
fn checks_come_in_order() {
    let (_dir, server) = started();
    let precision = "invalid precision \"zz\" (use n, u, ms, s, m or h)";
    assert_eq!(refused(&server, "/write?precision=zz", "bad"), (400, precision.to_owned()));
    assert_eq!(refused(&server, "/write", "bad"), (400, "database is required".to_owned()));
    let missing = (404, "database not found: \"x\"".to_owned());
    assert_eq!(refused(&server, "/write?db=x&consistency=no", "bad"), missing);
    let bad = (400, "unable to parse 'bad': missing fields".to_owned());
    assert_eq!(refused(&server, "/write?db=d&consistency=no", "bad"), bad);
    let level = (400, "invalid consistency level".to_owned());
    assert_eq!(refused(&server, "/write?db=d&consistency=no&rp=no", "m v=1"), level);
    let policy = (500, "retention policy not found: no".to_owned());
    assert_eq!(refused(&server, "/write?db=d&consistency=ALL&rp=no", "m v=1"), policy);
    for nothing in ["", "\n\n", "# a comment\n"] {
        assert_eq!(server.write("d", nothing).status, 204, "{nothing:?}");
    }
}

#[test]
fn some_rows_are_refused_and_the_others_stored() {
    let (_dir, server) = started();
    assert_eq!(
        refused(&server, "/write?db=d", "m v=1 1\nbad\nm,t= v=2 2\nm v=3 3"),
        (
            400,
            "partial write: unable to parse 'bad': missing fields\nunable to parse 'm,t= v=2 2': \
             missing tag value dropped=0"
                .to_owned()
        )
    );
    assert_eq!(
        refused(&server, "/write?db=d", "m v=1i 4\nm v=5 5"),
        (
            400,
            "partial write: field type conflict: input field \"v\" on measurement \"m\" is type \
             integer, already exists as type float dropped=1"
                .to_owned()
        )
    );
    let json = server.query("d", "SELECT count(v) FROM m").json();
    assert_eq!(json["results"][0]["series"][0]["values"][0][1], 3);
    server.query("d", "CREATE RETENTION POLICY short ON d DURATION 1h REPLICATION 1");
    assert_eq!(
        refused(&server, "/write?db=d&rp=short", "m v=1 1\nm v=2 2"),
        (400, "partial write: points beyond retention policy dropped=2".to_owned())
    );
}

#[test]
fn precisions() {
    let (_dir, server) = started();
    for (precision, ns) in [
        ("", 5_i64),
        ("n", 5),
        ("ns", 5),
        ("u", 5_000),
        ("ms", 5_000_000),
        ("s", 5_000_000_000),
        ("m", 300_000_000_000),
        ("h", 18_000_000_000_000),
    ] {
        let target = format!("/write?db=d&precision={precision}");
        assert_eq!(server.post(&target, format!("p{precision} v=1 5")).status, 204);
        let answer =
            server.query_with("d", &format!("SELECT v FROM p{precision}"), "&epoch=ns", "");
        assert_eq!(answer.json()["results"][0]["series"][0]["values"][0][0], ns, "{precision}");
    }
    server.post("/write?db=d&precision=h", "now v=1");
    let answer = server.query_with("d", "SELECT v FROM now", "&epoch=ns", "");
    let time = answer.json()["results"][0]["series"][0]["values"][0][0].as_i64().unwrap();
    assert_eq!(time % 3_600_000_000_000, 0, "the server's time is cut to the precision");
}

#[test]
fn bodies_without_a_length() {
    let (_dir, server) = started();
    let body = b"7\r\nm v=1 1\r\n8\r\n\nm v=2 2\r\n0\r\n\r\n";
    let head = "POST /write?db=d HTTP/1.1\r\nTransfer-Encoding: chunked\r\n";
    assert_eq!(server.request(head, body).status, 204);
    let large: String = (0..60_000).map(|i| format!("c v={i} {i}\n")).collect();
    let mut chunks = Vec::new();
    for piece in large.as_bytes().chunks(10_000) {
        chunks.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        chunks.extend_from_slice(piece);
        chunks.extend_from_slice(b"\r\n");
    }
    chunks.extend_from_slice(b"0\r\n\r\n");
    assert_eq!(server.request(head, &chunks).status, 204);
    let json = server.query("d", "SELECT count(v) FROM m; SELECT count(v) FROM c").json();
    assert_eq!(json["results"][0]["series"][0]["values"][0][1], 2);
    assert_eq!(json["results"][1]["series"][0]["values"][0][1], 60_000);
}

/// Longer than what is read at once, many times over.
#[test]
fn a_long_body_is_one_body_wherever_it_is_cut() {
    let (_dir, server) = started();
    let mut lines = String::new();
    let bad = 20_000;
    for row in 0..30_000 {
        let value = if row == bad { "x".to_owned() } else { format!("{row}i") };
        lines.push_str(&format!("plain,t={} v={value} {row}\n", row % 1000));
    }
    let (status, text) = refused(&server, "/write?db=d", &lines);
    let expected =
        "partial write: unable to parse 'plain,t=0 v=x 20000': invalid boolean dropped=0";
    assert_eq!((status, &*text), (400, expected));
    let sum: u64 = (0..30_000).filter(|row| *row != bad).sum();
    let answer = server.query("d", "SELECT count(v), sum(v) FROM plain").json();
    let values = &answer["results"][0]["series"][0]["values"][0];
    assert_eq!((values[1].as_u64(), values[2].as_u64()), (Some(29_999), Some(sum)));

    // Half of all newlines are in quotes, so that many a cut is at one of them.
    let line = |row: u32| format!("quoted,t={row} s=\"a{row}\nb\" {row}\n");
    let lines: String = (0..20_000).map(line).collect();
    assert_eq!(server.write("d", &lines).status, 204);
    let answer = server.query("d", "SELECT count(s) FROM quoted").json();
    assert_eq!(answer["results"][0]["series"][0]["values"][0][1], 20_000);
    let answer = server.query("d", "SELECT s FROM quoted WHERE t = '19999'").json();
    assert_eq!(answer["results"][0]["series"][0]["values"][0][1], "a19999\nb");
}
