//! What there is of InfluxDB 2's paths.

use serde_json::json;

use crate::support::{Answer, Server, temp_dir};

fn send(server: &Server, method: &str, target: &str, body: &str) -> Answer {
    let len = body.len();
    let head = format!("{method} {target} HTTP/1.1\r\nContent-Length: {len}\r\n");
    server.request(&head, body.as_bytes())
}

#[test]
fn writes() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    server.create_database("d");
    server.query("d", "CREATE RETENTION POLICY r ON d DURATION INF REPLICATION 1");
    for (bucket, precision, lines) in [
        ("d", "", "m,n=1 v=1 1000000000"),
        ("d/", "ns", "m,n=2 v=2 1000000000"),
        ("d/autogen", "us", "m,n=3 v=3 1000000"),
        ("d%2Fautogen", "ms", "m,n=4 v=4 1000"),
        ("d/autogen", "s", "m,n=5 v=5 1"),
        ("d/r", "s", "m v=6 1"),
    ] {
        let target = format!("/api/v2/write?org=o&bucket={bucket}&precision={precision}");
        let answer = server.post(&target, lines);
        assert_eq!(answer.status, 204, "{target}: {}", answer.text());
    }
    let sum = server.query_with("d", "SELECT sum(v) FROM m; SELECT v FROM r.m", "&epoch=s", "");
    let series = |at: usize| sum.json()["results"][at]["series"][0]["values"].clone();
    assert_eq!((series(0), series(1)), (json!([[0, 15]]), json!([[1, 6]])), "{}", sum.text());
    for (params, status, error) in [
        ("bucket=d&precision=h", 400, "invalid precision \"h\" (use ns, us, ms or s)"),
        ("bucket=nosuch", 404, "database not found: \"nosuch\""),
        ("bucket=/r", 404, "bucket name \"/r\" is in db/rp form but has an empty database"),
        (
            "",
            404,
            "bucket name \"\" is missing a slash; not in \"database/retention-policy\" format",
        ),
        ("bucket=d/nosuch", 500, "retention policy not found: nosuch"),
    ] {
        let answer = server.post(&format!("/api/v2/write?{params}"), "m v=1");
        let text = answer.json()["error"].as_str().unwrap().to_owned();
        assert_eq!((answer.status, text.as_str()), (status, error), "{params}");
    }
    let flux = server.post("/api/v2/query", "from(bucket: \"d\")");
    assert_eq!(flux.status, 403);
    assert!(flux.text().starts_with("Flux query service disabled. Verify flux-enabled=true"));
    assert_eq!(send(&server, "GET", "/api/v2/write", "").status, 405);
    assert_eq!(send(&server, "GET", "/api/v2/nosuch", "").status, 404);
}

#[test]
fn deletes() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    server.create_database("d");
    let lines = "m,h=a v=1 1000000000\nm,h=a v=2 2000000000\nm,h=b v=4 1000000000\n\
        n,h=a v=8 1000000000\n";
    assert_eq!(server.write("d", lines).status, 204);
    let delete = |bucket: &str, stop: &str, predicate: &str| {
        let start = "1970-01-01T00:00:01Z";
        let body = json!({ "start": start, "stop": stop, "predicate": predicate });
        send(&server, "POST", &format!("/api/v2/delete?bucket={bucket}"), &body.to_string())
    };
    let left = || {
        let answer = server.query_with("d", "SELECT sum(v) FROM /m|n/", "&epoch=s", "");
        let series = answer.json()["results"][0]["series"].as_array().cloned();
        let sum = |series: &serde_json::Value| series["values"][0][1].as_f64().unwrap();
        series.unwrap_or_default().iter().map(sum).sum::<f64>()
    };
    let stop = "1970-01-01T00:00:02Z";
    let done = delete("d/autogen", stop, "_measurement=\"m\" AND h=\"a\"");
    assert_eq!((done.status, done.text()), (200, ""));
    assert_eq!(left(), 14.0, "the end itself stays");
    for (bucket, stop, predicate, status) in [
        ("d", "", "", 400),
        ("d", stop, "h!=\"a\"", 400),
        ("d", stop, "_field=\"v\"", 400),
        ("nosuch", stop, "", 404),
        ("d/nosuch", stop, "", 404),
        ("d", stop, "_measurement=\"m\" AND _measurement=\"n\"", 200),
        ("d", "1970-01-01T00:00:01Z", "", 200),
    ] {
        assert_eq!(delete(bucket, stop, predicate).status, status, "{bucket} {stop} {predicate}");
        assert_eq!(left(), 14.0);
    }
    assert_eq!(delete("d", "2100-01-01T00:00:00.5+01:00", "").status, 200);
    assert_eq!(left(), 0.0);
    assert_eq!(send(&server, "POST", "/api/v2/delete?bucket=d", "[").status, 400);
}

#[test]
fn buckets() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    server.create_database("d");
    let path = "/api/v2/buckets";
    let rules = json!([{ "everySeconds": 7200, "shardGroupDurationSeconds": 3600 }]);
    let body = json!({ "name": "e/day", "retentionRules": rules }).to_string();
    let created = send(&server, "POST", path, &body);
    assert_eq!(created.status, 201, "{}", created.text());
    let bucket = created.json();
    assert_eq!((&bucket["id"], &bucket["rp"]), (&json!("e/day"), &json!("day")));
    assert_eq!(bucket["retentionRules"][0]["everySeconds"], 7200);
    let names = |params: &str| -> Vec<String> {
        let list = server.get(&format!("{path}{params}")).json();
        let list = list["buckets"].as_array().unwrap().clone();
        list.iter().map(|bucket| bucket["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(""), ["d/autogen", "e/autogen", "e/day"]);
    assert_eq!(names("?name=e/day"), ["e/day"]);
    assert_eq!(names("?limit=1&offset=1"), ["e/autogen"]);
    assert_eq!(names("?after=e/autogen"), ["e/day"]);
    let one = format!("{path}/e%2Fday");
    assert_eq!(server.get(&one).json(), bucket);
    let longer = json!({ "retentionRules": [{ "everySeconds": 10800 }] }).to_string();
    let changed = send(&server, "PATCH", &one, &longer);
    assert_eq!(changed.json()["retentionRules"][0]["everySeconds"], 10800);
    for (method, target, body, status) in [
        ("POST", path, "{\"name\":\"e\"}", 400),
        ("POST", path, "{\"name\":\"/x\"}", 404),
        ("POST", path, "{\"name\":\"e/x\",\"retentionRules\":[{\"everySeconds\":5}]}", 400),
        ("POST", path, "{\"name\":\"e/x\",\"retentionRules\":[{\"everySeconds\":-5}]}", 400),
        ("PATCH", &one, "{\"name\":\"e/other\"}", 400),
        ("PATCH", "/api/v2/buckets/e%2Fnosuch", "{}", 404),
        ("GET", "/api/v2/buckets/e%2Fnosuch", "", 404),
        ("GET", "/api/v2/buckets/e%2Fday/labels", "", 405),
        ("DELETE", "/api/v2/buckets/nosuch%2Fr", "", 404),
    ] {
        let answer = send(&server, method, target, body);
        assert_eq!(answer.status, status, "{method} {target} {body}: {}", answer.text());
    }
    assert_eq!(send(&server, "DELETE", &one, "").status, 204);
    assert_eq!(names(""), ["d/autogen", "e/autogen"]);
}
