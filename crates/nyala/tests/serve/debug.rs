//! What the server says of itself.

use std::io::Read;

use crate::support::{Server, temp_dir};

#[test]
fn variables() {
    let dir = temp_dir();
    let server = Server::start_with(dir.path(), &["--shared-secret", "hush"]);
    server.create_database("d");
    server.write("d", "m v=1 1\nm v=2 2\n");
    server.write("nosuch", "m v=1 1\n");
    let answer = server.get("/debug/vars");
    assert!(!answer.text().contains("hush"));
    let vars = answer.json();
    assert!(vars["system"]["uptime"].is_u64() && vars["memstats"].is_object());
    let httpd = vars.as_object().unwrap().values().find(|v| v["name"] == "httpd").unwrap();
    assert_eq!(httpd["values"]["writeReq"], 2);
    assert_eq!(httpd["values"]["queryReq"], 1);
    assert_eq!(httpd["values"]["clientError"], 1);
    assert_eq!(httpd["values"]["pointsWrittenOK"], 2);
    assert_eq!(httpd["values"]["pointsWrittenFail"], 0);
    assert_eq!(httpd["values"]["writeReqActive"], 0);
    // A write is read when it is known where it goes.
    assert_eq!(httpd["values"]["writeReqBytes"], "m v=1 1\nm v=2 2\n".len());
    assert!(httpd["values"]["queryRespBytes"].as_u64().unwrap() > 0);
    assert_eq!(vars["write"]["values"]["writeOk"], 1);
    assert_eq!(vars["database:d"]["values"]["numSeries"], 1);
    let packed = server.request("GET /debug/vars HTTP/1.1\r\nAccept-Encoding: gzip\r\n", b"");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(&packed.body[..]).read_to_string(&mut text).unwrap();
    assert!(text.contains("\"cmdline\""), "{text}");
}

#[test]
fn requests_while_somebody_watches() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    server.create_database("d");
    let seen = std::thread::scope(|scope| {
        let watch = scope.spawn(|| server.get("/debug/requests?seconds=2").json());
        while !watch.is_finished() {
            server.write("d", "m v=1 1");
            server.query("d", "SELECT v FROM m");
        }
        watch.join().unwrap()
    });
    assert!(seen["127.0.0.1"]["writes"].as_u64().unwrap() > 0, "{seen}");
    assert!(seen["127.0.0.1"]["queries"].as_u64().unwrap() > 0, "{seen}");
    assert_eq!(server.get("/debug/requests?seconds=99999").status, 400);
    assert_eq!(server.get("/debug/requests?seconds=x").status, 400);
}

#[test]
fn access_log() {
    let dir = temp_dir();
    let server = Server::start_logging(dir.path(), &["--access-log", "true"]);
    server.create_database("d");
    server.get("/query?db=d&q=SHOW+MEASUREMENTS&u=ann&p=hush");
    let log = server.stop_and_read_log();
    let line = log.lines().find(|line| line.contains("SHOW MEASUREMENTS")).unwrap();
    assert!(line.contains("127.0.0.1") && line.contains("200") && !line.contains("hush"), "{line}");
}
