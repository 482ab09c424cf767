//! What goes in comes out, in every form.

use std::io::Read;

use crate::support::{Answer, Server, temp_dir};

fn loaded() -> (tempfile::TempDir, Server) {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    server.create_database("d");
    let lines = "cpu,host=a v=1.5,n=3i,s=\"x y\",b=true 1000000000\n\
                 cpu,host=b v=-2 2000000000\n\
                 cpu,host=a v=4 3000000000\n";
    assert_eq!(server.write("d", lines).status, 204);
    (dir, server)
}

#[test]
fn json() {
    let (_dir, server) = loaded();
    let answer = server.query("d", "SELECT * FROM cpu");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(
        answer.text(),
        "{\"results\":[{\"statement_id\":0,\"series\":[{\"name\":\"cpu\",\"columns\":[\"time\",\"b\",\
         \"host\",\"n\",\"s\",\"v\"],\"values\":[[\"1970-01-01T00:00:01Z\",true,\"a\",3,\"x y\",1.5],\
         [\"1970-01-01T00:00:02Z\",null,\"b\",null,null,-2],\
         [\"1970-01-01T00:00:03Z\",null,\"a\",null,null,4]]}]}]}\n"
    );
    assert_eq!(
        answer.header("content-length"),
        Some(answer.body.len().to_string().as_str()),
        "a small answer is sent whole"
    );
    let pretty = server.get("/query?db=d&epoch=s&pretty=true&q=SELECT+v+FROM+cpu+LIMIT+1");
    assert!(pretty.text().starts_with("{\n    \"results\": [\n"), "{}", pretty.text());
    assert_eq!(pretty.json()["results"][0]["series"][0]["values"][0][0], 1);
}

#[test]
fn chunked_csv_and_message_pack() {
    let (_dir, server) = loaded();
    let select = "SELECT v FROM cpu";
    let answer = server.query_with("d", select, "&chunked=true&chunk_size=2&epoch=s", "");
    let documents: Vec<&str> = answer.text().lines().collect();
    assert_eq!(documents.len(), 2);
    assert!(
        documents[0].contains("\"values\":[[1,1.5],[2,-2]],\"partial\":true}],\"partial\":true")
    );
    assert!(documents[1].contains("\"values\":[[3,4]]}]}]}"));

    let csv = server.query_with("d", select, "&epoch=s", "Accept: text/csv\r\n");
    assert_eq!(csv.header("content-type"), Some("text/csv"));
    assert_eq!(csv.text(), "name,tags,time,v\ncpu,,1,1.5\ncpu,,2,-2\ncpu,,3,4\n");

    let packed = server.query_with("d", select, "&epoch=s", "Accept: application/x-msgpack\r\n");
    assert_eq!(packed.header("content-type"), Some("application/x-msgpack"));
    assert!(packed.body.starts_with(b"\x81\xa7results\x91"), "{:?}", packed.body);
}

fn unpacked(answer: &Answer) -> String {
    assert_eq!(answer.header("content-encoding"), Some("gzip"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(&*answer.body).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn gzip_both_ways() {
    let (_dir, server) = loaded();
    let gzip = "Accept-Encoding: gzip\r\n";
    let answer = server.query_with("d", "SELECT v FROM cpu", "", gzip);
    assert_eq!(unpacked(&answer), server.query("d", "SELECT v FROM cpu").text());
    let answer = server.query_with("d", "SELECT v FROM cpu", "&chunked=true&chunk_size=1", gzip);
    assert_eq!(unpacked(&answer).lines().count(), 3);

    // Short, longer than it looks, and long.
    let rows: String = (3..10_000).map(|at| format!("packed v={at} {at}\n")).collect();
    for text in ["packed v=7 1\n".to_owned(), "packed v=8 2\n".repeat(10_000), rows] {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut encoder, text.as_bytes()).unwrap();
        let body = encoder.finish().unwrap();
        let head = format!(
            "POST /write?db=d HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n",
            body.len()
        );
        assert_eq!(server.request(&head, &body).status, 204);
    }
    let stored = server.query("d", "SELECT first(v), count(v) FROM packed");
    assert!(stored.text().contains(",7,9999]"), "{}", stored.text());
}

#[test]
fn a_large_answer_is_streamed_and_complete() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    server.create_database("d");
    for part in 0..10 {
        let rows = part * 20_000..(part + 1) * 20_000;
        let lines: String = rows.map(|i| format!("m,host=h{} v={i} {i}\n", i % 7)).collect();
        assert_eq!(server.write("d", lines).status, 204);
    }
    let whole = server.query_with("d", "SELECT v FROM m", "&epoch=ns", "");
    assert_eq!(whole.header("transfer-encoding"), Some("chunked"));
    let json = whole.json();
    let values = json["results"][0]["series"][0]["values"].as_array().unwrap();
    assert_eq!(values.len(), 200_000);
    assert!(values.iter().enumerate().all(|(i, row)| row[0] == i && row[1] == i as f64));
    let gzip = server.query_with("d", "SELECT v FROM m", "&epoch=ns", "Accept-Encoding: gzip\r\n");
    assert_eq!(unpacked(&gzip), whole.text());
    let chunked = server.query_with("d", "SELECT v FROM m", "&chunked=true&chunk_size=999", "");
    assert_eq!(chunked.text().lines().count(), 200_000_usize.div_ceil(999));
}

#[test]
fn several_statements() {
    let (_dir, server) = loaded();
    let answer = server.query("d", "SHOW DATABASES; SELECT count(v) FROM cpu;");
    let json = answer.json();
    assert_eq!(json["results"][0]["series"][0]["values"][0][0], "d");
    assert_eq!(json["results"][1]["series"][0]["values"][0][1], 3);

    let failing = "SELECT nofunction(v) FROM cpu; SHOW DATABASES; SHOW DATABASES";
    let answer = server.query("d", failing);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["results"][0]["error"], "not executed");
    let last = server.query("d", "SHOW DATABASES; SELECT nofunction(v) FROM cpu");
    assert_eq!(last.json()["results"][1]["error"], "undefined function nofunction()");

    let broken = server.query("d", "CREATE DATABASE never; SELEKT");
    assert_eq!(broken.status, 400);
    assert!(!server.query("", "SHOW DATABASES").text().contains("never"), "nothing is executed");
    assert_eq!(server.query("", ";").text(), "{}\n");
}

#[test]
fn get_may_change_something_but_is_told() {
    let (_dir, server) = loaded();
    let answer = server.get("/query?q=CREATE+DATABASE+%22e%22");
    assert_eq!(
        answer.text(),
        "{\"results\":[{\"statement_id\":0,\"messages\":[{\"level\":\"warning\",\"text\":\"deprecated \
         use of 'CREATE DATABASE e' in a read only context, please use a POST request instead\"}]}]}\n"
    );
    assert!(server.query("", "SHOW DATABASES").text().contains("[\"e\"]"));
}

#[test]
fn bound_parameters_and_asynchronous_statements() {
    let (_dir, server) = loaded();
    let params = "&params=%7B%22h%22%3A%22b%22%2C%22min%22%3A-5%7D";
    let answer =
        server.query_with("d", "SELECT v FROM cpu WHERE host = $h AND v > $min", params, "");
    assert_eq!(answer.json()["results"][0]["series"][0]["values"][0][1], -2);
    let answer = server.query_with("d", "CREATE DATABASE later", "&async=true", "");
    assert_eq!((answer.status, answer.text()), (204, ""));
    let there = (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        server.query("", "SHOW DATABASES").text().contains("later")
    });
    assert!(there);
}

#[test]
fn routes_and_headers() {
    let (_dir, server) = loaded();
    let ping = server.request("GET /ping HTTP/1.1\r\nX-Request-Id: mine\r\n", b"");
    assert_eq!((ping.status, ping.text()), (204, ""));
    assert_eq!(ping.header("x-influxdb-version"), Some("1.8.10"));
    assert_eq!(ping.header("x-influxdb-build"), Some("OSS"));
    assert_eq!(ping.header("request-id"), Some("mine"));
    assert_eq!(ping.header("x-request-id"), Some("mine"));
    assert!(ping.header("date").is_some());
    assert_eq!(server.get("/ping?verbose=true").text(), "{\"version\":\"1.8.10\"}");
    assert_eq!(server.get("/ping?verbose=0").status, 204);
    assert_eq!(server.request("HEAD /ping HTTP/1.1\r\n", b"").status, 204);
    assert_eq!(server.get("/status").status, 204);
    assert_eq!(server.get("/health").json()["status"], "pass");
    for unknown in ["/", "/query/", "/api/v2/nosuch", "/debug/nosuch"] {
        let answer = server.get(unknown);
        assert_eq!((answer.status, answer.text()), (404, "404 page not found\n"), "{unknown}");
    }
    let wrong = server.get("/write");
    assert_eq!((wrong.status, wrong.text()), (405, "Method Not Allowed\n"));
    assert_eq!(wrong.header("allow"), Some("OPTIONS, POST"));
    assert_eq!(server.request("HEAD /query HTTP/1.1\r\n", b"").status, 405);
    let options = server.request("OPTIONS /any HTTP/1.1\r\nOrigin: http://a\r\n", b"");
    assert_eq!((options.status, options.text()), (200, ""));
    assert_eq!(options.header("access-control-allow-origin"), Some("http://a"));
    assert!(ping.header("access-control-allow-origin").is_none());
    let metrics = server.get("/metrics");
    assert!(metrics.text().contains("nyala_write_rows_total 3\n"), "{}", metrics.text());
    assert!(metrics.text().contains("nyala_http_requests_total{route=\"/ping\",status=\"204\"}"));
    // What names itself twice, Prometheus takes once, and warns.
    let samples = metrics.text().lines().filter(|line| !line.starts_with('#'));
    let mut seen = std::collections::HashSet::new();
    for sample in samples {
        let (series, _) = sample.rsplit_once(' ').unwrap();
        assert!(seen.insert(series), "{series} twice");
    }
}
