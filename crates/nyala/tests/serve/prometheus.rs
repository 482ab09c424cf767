//! Remote write and remote read.

use prost::Message;

use crate::support::{Answer, Server, temp_dir};

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(int64, tag = "2")]
    timestamp: i64,
}

#[derive(Clone, PartialEq, Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
}

#[derive(Clone, PartialEq, Message)]
struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    timeseries: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, Message)]
struct Matcher {
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "3")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Query {
    #[prost(int64, tag = "1")]
    start: i64,
    #[prost(int64, tag = "2")]
    end: i64,
    #[prost(message, repeated, tag = "3")]
    matchers: Vec<Matcher>,
}

#[derive(Clone, PartialEq, Message)]
struct ReadRequest {
    #[prost(message, repeated, tag = "1")]
    queries: Vec<Query>,
}

#[derive(Clone, PartialEq, Message)]
struct QueryResult {
    #[prost(message, repeated, tag = "1")]
    timeseries: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, Message)]
struct ReadResponse {
    #[prost(message, repeated, tag = "1")]
    results: Vec<QueryResult>,
}

fn packed(message: &impl Message) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(&message.encode_to_vec()).unwrap()
}

fn series(labels: &[(&str, &str)], samples: &[(f64, i64)]) -> TimeSeries {
    let label =
        |(name, value): &(&str, &str)| Label { name: (*name).into(), value: (*value).into() };
    let sample = |(value, timestamp): &(f64, i64)| Sample { value: *value, timestamp: *timestamp };
    TimeSeries {
        labels: labels.iter().map(label).collect(),
        samples: samples.iter().map(sample).collect(),
    }
}

/// Matchers as `(type, name, value)`.
fn read(server: &Server, range: (i64, i64), matchers: &[(i32, &str, &str)]) -> Answer {
    let matcher = |(kind, name, value): &(i32, &str, &str)| Matcher {
        kind: *kind,
        name: (*name).into(),
        value: (*value).into(),
    };
    let matchers = matchers.iter().map(matcher).collect();
    let queries = vec![Query { start: range.0, end: range.1, matchers }];
    server.post("/api/v1/prom/read?db=d", packed(&ReadRequest { queries }))
}

fn found(answer: &Answer) -> Vec<TimeSeries> {
    assert_eq!(answer.status, 200, "{:?}", String::from_utf8_lossy(&answer.body));
    assert_eq!(answer.header("content-encoding"), Some("snappy"));
    assert_eq!(answer.header("content-type"), Some("application/x-protobuf"));
    let bytes = snap::raw::Decoder::new().decompress_vec(&answer.body).unwrap();
    let mut results = ReadResponse::decode(&*bytes).unwrap().results;
    assert_eq!(results.len(), 1);
    results.remove(0).timeseries
}

#[test]
fn what_is_written_is_read() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    server.create_database("d");
    let a = series(&[("__name__", "up"), ("job", "a b")], &[(1.0, 1000), (0.0, 2000)]);
    let b = series(&[("__name__", "up"), ("job", "c")], &[(3.5, 1500)]);
    let c = series(&[("__name__", "other"), ("job", "c")], &[(-4.0, 1500), (f64::NAN, 1600)]);
    let request = WriteRequest { timeseries: vec![a.clone(), b.clone(), c] };
    let written = server.post("/api/v1/prom/write?db=d", packed(&request));
    assert_eq!(written.status, 204, "{}", written.text());
    let text = server.query_with("d", "SELECT * FROM up", "&epoch=ms", "").text().to_owned();
    assert!(text.contains("[1000,\"up\",\"a b\",1]"), "{text}");
    // Not Prometheus' own: no float field of that name.
    server.write("d", "up2 value=\"x\" 1500000000\nup3 v=1 1500000000");

    let all = (0, 10_000);
    let up = (0, "__name__", "up");
    assert_eq!(found(&read(&server, all, &[up])), [a.clone(), b.clone()]);
    assert_eq!(found(&read(&server, all, &[up, (0, "job", "c")])), std::slice::from_ref(&b));
    assert_eq!(found(&read(&server, all, &[up, (1, "job", "c")])), std::slice::from_ref(&a));
    assert_eq!(found(&read(&server, all, &[up, (2, "job", "a.*")])), std::slice::from_ref(&a));
    assert_eq!(found(&read(&server, all, &[up, (3, "job", "a")])), [a.clone(), b.clone()]);
    assert_eq!(found(&read(&server, all, &[up, (0, "none", "")])).len(), 2);
    assert_eq!(found(&read(&server, all, &[(2, "__name__", "u.|u.[23]")])), [a.clone(), b.clone()]);
    assert_eq!(found(&read(&server, all, &[(1, "__name__", "up"), (0, "job", "c")])).len(), 1);
    assert_eq!(found(&read(&server, (1001, 1999), &[up])), std::slice::from_ref(&b));
    let first = series(&[("__name__", "up"), ("job", "a b")], &[(1.0, 1000)]);
    assert_eq!(found(&read(&server, (1000, 1000), &[up])), [first], "both ends are inside");
    assert_eq!(found(&read(&server, (5000, 1000), &[up])), []);
    assert_eq!(found(&read(&server, all, &[(0, "__name__", "nosuch")])), []);
}

#[test]
fn what_is_refused() {
    let dir = temp_dir();
    let server = Server::start_with(dir.path(), &["--max-body-size", "1MB"]);
    server.create_database("d");
    let error = |answer: &Answer| answer.json()["error"].as_str().unwrap().to_owned();
    for path in ["write", "read"] {
        let post =
            |params: &str, body: &[u8]| server.post(&format!("/api/v1/prom/{path}{params}"), body);
        for (params, body, status, text) in [
            ("", &b"\0"[..], 400, "database is required"),
            ("?db=nosuch", b"\0", 404, "database not found: \"nosuch\""),
            ("?db=d", b"no snappy", 400, "snappy: corrupt input"),
            ("?db=d", b"", 400, "snappy: corrupt input"),
            // The head alone: four billion bytes.
            ("?db=d", b"\xff\xff\xff\xff\x0f", 413, "Request Entity Too Large"),
        ] {
            let answer = post(params, body);
            let got = (answer.status, error(&answer));
            assert_eq!(got, (status, text.to_owned()), "{path} {params}");
        }
        let broken = snap::raw::Encoder::new().compress_vec(b"\x0a\xff").unwrap();
        assert_eq!(post("?db=d", &broken).status, 400);
        // What packs a thousandfold is not unpacked beyond the limit.
        let bomb = snap::raw::Encoder::new().compress_vec(&vec![0; 8 << 20]).unwrap();
        assert_eq!(post("?db=d", &bomb).status, 413, "{} bytes", bomb.len());
    }
    let nothing = read(&server, (0, 1), &[]);
    assert_eq!((nothing.status, error(&nothing).as_str()), (400, "expected matcher"));
    assert_eq!(read(&server, (0, 1), &[(2, "job", "(")]).status, 400);
    let empty = packed(&ReadRequest::default());
    let one = "Prometheus read endpoint currently only supports one query at a time";
    assert_eq!(error(&server.post("/api/v1/prom/read?db=d", empty)), one);
    let late = series(&[("__name__", "m")], &[(1.0, i64::MAX), (1.0, 5)]);
    let partly = packed(&WriteRequest { timeseries: vec![late] });
    let answer = server.post("/api/v1/prom/write?db=d", partly);
    assert_eq!(error(&answer), "partial write: time outside range dropped=1");
    server.check_alive();
}
