//! Users, and who may do what.

use crate::support::{Answer, Server, encode, temp_dir};

const FLAGS: [&str; 4] = ["--auth-enabled", "true", "--shared-secret", "key"];

/// A GET or POST as `user:password`, or as nobody.
fn as_user(server: &Server, user: &str, method: &str, target: &str, body: &str) -> Answer {
    let auth = if user.is_empty() {
        String::new()
    } else {
        format!("Authorization: Token {user}:pw-{user}\r\n")
    };
    let len = body.len();
    let head = format!("{method} {target} HTTP/1.1\r\nContent-Length: {len}\r\n{auth}");
    server.request(&head, body.as_bytes())
}

fn query(server: &Server, user: &str, statements: &str) -> Answer {
    as_user(server, user, "POST", &format!("/query?db=d&q={}", encode(statements)), "")
}

fn error(answer: &Answer) -> String {
    let json = answer.json();
    let text = json["error"].as_str().or(json["results"][0]["error"].as_str());
    text.unwrap_or("").to_owned()
}

const CREATE_ROOT: &str = "CREATE USER root WITH PASSWORD 'pw-root' WITH ALL PRIVILEGES";

/// A server with databases `d` and `e`, an administrator, and one user for each privilege on `d`.
fn with_users(dir: &std::path::Path, flags: &[&str]) -> Server {
    let server = Server::start_with(dir, &[&FLAGS[..], flags].concat());
    assert_eq!(query(&server, "", CREATE_ROOT).status, 200);
    let mut setup = "CREATE DATABASE d; CREATE DATABASE e".to_owned();
    for (user, privilege) in
        [("reader", "READ"), ("writer", "WRITE"), ("both", "ALL"), ("none", "")]
    {
        setup.push_str(&format!("; CREATE USER {user} WITH PASSWORD 'pw-{user}'"));
        if !privilege.is_empty() {
            setup.push_str(&format!("; GRANT {privilege} ON d TO {user}"));
        }
    }
    let answer = query(&server, "root", &setup);
    assert!(answer.status == 200 && !answer.text().contains("error"), "{}", answer.text());
    server
}

#[test]
fn the_first_user_is_an_administrator() {
    let dir = temp_dir();
    let server = Server::start_with(dir.path(), &FLAGS);
    let first = "error authorizing query: create admin user first or disable authentication";
    for statement in ["SHOW DATABASES", "CREATE DATABASE d", "CREATE USER a WITH PASSWORD 'x'"] {
        let answer = query(&server, "", statement);
        assert_eq!((answer.status, error(&answer).as_str()), (403, first), "{statement}");
    }
    let write = as_user(&server, "", "POST", "/write?db=d", "m v=1");
    assert_eq!((write.status, error(&write).as_str()), (404, "database not found: \"d\""));
    assert_eq!(query(&server, "", CREATE_ROOT).status, 200);
    let nobody = query(&server, "", "SHOW DATABASES");
    assert_eq!(nobody.status, 401);
    assert_eq!(error(&nobody), "unable to parse authentication credentials");
    assert_eq!(nobody.header("www-authenticate"), Some("Basic realm=\"InfluxDB\""));
    assert_eq!(nobody.header("x-influxdb-error"), None);
    assert_eq!(query(&server, "root", "CREATE DATABASE d").status, 200);
    // Users survive a restart. Without an administrator there is no second beginning.
    server.stop();
    let server = Server::start_with(dir.path(), &FLAGS);
    query(&server, "root", "CREATE USER bob WITH PASSWORD 'pw-bob'; REVOKE ALL FROM root");
    let again = query(&server, "", "CREATE USER eve WITH PASSWORD 'x' WITH ALL PRIVILEGES");
    assert_eq!(again.status, 401);
    assert_eq!(query(&server, "bob", "SHOW DATABASES").status, 200);
}

#[test]
fn ways_to_say_who_one_is() {
    let dir = temp_dir();
    let server = with_users(dir.path(), &[]);
    let show = "GET /query?q=SHOW+DATABASES";
    let get = |params: &str, header: &str| {
        server.request(&format!("{show}{params} HTTP/1.1\r\n{header}"), b"")
    };
    for (params, header) in [
        ("&u=root&p=pw-root", ""),
        ("", "Authorization: Basic cm9vdDpwdy1yb290\r\n"),
        ("", "Authorization: Token root:pw-root\r\n"),
    ] {
        for _ in 0..2 {
            let answer = get(params, header);
            assert_eq!(answer.status, 200, "{params} {header}: {}", answer.text());
        }
    }
    for (params, header, text) in [
        ("", "", "unable to parse authentication credentials"),
        ("&u=root", "", "unable to parse authentication credentials"),
        ("&u=root&p=wrong", "", "authorization failed"),
        ("&u=nobody&p=pw-root", "", "authorization failed"),
        ("", "Authorization: Basic Og==\r\n", "username required"),
        ("", "Authorization: Bearer a.b\r\n", "token contains an invalid number of segments"),
        ("&u=root&p=wrong", "Authorization: Token root:pw-root\r\n", "authorization failed"),
    ] {
        let answer = get(params, header);
        assert_eq!((answer.status, error(&answer).as_str()), (401, text), "{params} {header}");
    }
    // Signed with `key`, for root, good until the year 2100; and one that ended in 2001.
    let good = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ1c2VybmFtZSI6InJvb3QiLCJleHAiOjQxMDI0NDQ4MDB9.1u8NuN2t63SEW8M_LA3k4uQyzzUqPFB4uAv3gYNYtv0";
    let ended = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ1c2VybmFtZSI6InJvb3QiLCJleHAiOjEwMDAwMDAwMDB9.3tI1zW7zguuXTBRdCfSwlb0crToSwAqZoOFgX-KhySA";
    let bearer = |token: &str| get("", &format!("Authorization: Bearer {token}\r\n"));
    assert_eq!(bearer(good).status, 200);
    assert_eq!(error(&bearer(ended)), "Token is expired");
    let metrics = server.get("/metrics");
    assert!(metrics.text().contains("nyala_http_authentication_failures_total 8\n"));
}

#[test]
fn a_changed_password_counts_at_once() {
    let dir = temp_dir();
    let server = with_users(dir.path(), &[]);
    assert_eq!(query(&server, "reader", "SHOW DATABASES").status, 200);
    query(&server, "root", "SET PASSWORD FOR reader = 'other'");
    assert_eq!(query(&server, "reader", "SHOW DATABASES").status, 401);
    query(&server, "root", "SET PASSWORD FOR reader = 'pw-reader'");
    assert_eq!(query(&server, "reader", "SHOW DATABASES").status, 200);
    query(&server, "root", "DROP USER reader");
    assert_eq!(query(&server, "reader", "SHOW DATABASES").status, 401);
}

/// Who may: nobody in particular, a user without privileges, one with READ, with WRITE, with both
/// on `d`, an administrator.
const USERS: [&str; 6] = ["", "none", "reader", "writer", "both", "root"];

#[test]
fn statements_and_privileges() {
    let dir = temp_dir();
    let server = with_users(dir.path(), &[]);
    assert_eq!(as_user(&server, "writer", "POST", "/write?db=d", "m v=1 1").status, 204);
    let statuses = |statement: &str| USERS.map(|user| query(&server, user, statement).status);
    let login = [401, 200, 200, 200, 200, 200];
    let read = [401, 403, 200, 403, 200, 200];
    let write = [401, 403, 403, 200, 200, 200];
    let admin = [401, 403, 403, 403, 403, 200];
    let both = [401, 403, 403, 403, 200, 200];
    for (name, target) in [("own", "d"), ("other", "e")] {
        let text = format!(
            "CREATE CONTINUOUS QUERY {name} ON d BEGIN SELECT mean(v) INTO {target}..x FROM d..m \
             GROUP BY time(1h) END; CREATE CONTINUOUS QUERY secret ON e BEGIN SELECT mean(v) INTO \
             e..x FROM e..m GROUP BY time(1h) END"
        );
        let created = query(&server, "root", &text);
        assert!(!created.text().contains("error"), "{}", created.text());
    }
    for (statement, expected) in [
        ("SHOW DATABASES", login),
        ("SELECT v FROM m", read),
        ("SELECT v FROM d..m", read),
        ("SELECT v FROM e..m", admin),
        ("SELECT v FROM (SELECT v FROM e..m)", admin),
        ("EXPLAIN SELECT v FROM m", read),
        ("SHOW MEASUREMENTS", read),
        ("SHOW MEASUREMENTS ON e", admin),
        ("SHOW SERIES", read),
        ("SHOW TAG KEYS ON d", read),
        ("SHOW FIELD KEYS", read),
        ("SHOW RETENTION POLICIES", read),
        ("SHOW SERIES EXACT CARDINALITY ON e", admin),
        ("DELETE FROM nosuch", write),
        ("DROP SERIES FROM nosuch", write),
        ("DROP RETENTION POLICY nosuch ON d", write),
        ("DROP RETENTION POLICY nosuch ON e", admin),
        ("SHOW DATABASES; SHOW USERS", admin),
        ("CREATE DATABASE f", admin),
        ("CREATE RETENTION POLICY r ON d DURATION 1h REPLICATION 1", admin),
        ("DROP MEASUREMENT nosuch", admin),
        ("SHOW USERS", admin),
        ("SHOW USERS LIMIT 1", admin),
        ("SHOW CARDINALITY BY MEASUREMENT", read),
        ("SHOW CARDINALITY ON e BY TAG KEY", admin),
        ("SHOW GRANTS FOR none", admin),
        ("CREATE USER x WITH PASSWORD 'y'", admin),
        ("SET PASSWORD FOR reader = 'pw-reader'", admin),
        ("GRANT READ ON d TO reader", admin),
        ("SHOW QUERIES", read),
        ("SHOW CONTINUOUS QUERIES", read),
        ("SHOW CONTINUOUS QUERY STATUS", read),
        ("RUN CONTINUOUS QUERY nosuch ON d", write),
        ("RUN CONTINUOUS QUERY own ON d", both),
        ("RUN CONTINUOUS QUERY other ON d", admin),
        ("RUN CONTINUOUS QUERY secret ON e", admin),
    ] {
        assert_eq!(statuses(statement), expected, "{statement}");
    }
    let refused = query(&server, "none", "SET PASSWORD FOR none = 'hidden'");
    assert_eq!(
        error(&refused),
        "error authorizing query: none not authorized to execute statement 'SET PASSWORD FOR none = \
         [REDACTED]', requires admin privilege"
    );
    assert!(!refused.head.contains("hidden"));
    assert_eq!(
        error(&query(&server, "writer", "SELECT v FROM m")),
        "error authorizing query: writer not authorized to execute statement 'SELECT v FROM m', \
         requires READ on d"
    );
    let seen = query(&server, "reader", "SHOW DATABASES");
    assert_eq!(seen.json()["results"][0]["series"][0]["values"], serde_json::json!([["d"]]));
    for statement in ["SHOW CONTINUOUS QUERIES", "SHOW CONTINUOUS QUERY STATUS"] {
        assert!(query(&server, "root", statement).text().contains("secret"));
        let seen = query(&server, "reader", statement);
        assert!(seen.text().contains("own") && !seen.text().contains("secret"), "{}", seen.text());
    }
}

#[test]
fn paths_and_privileges() {
    let dir = temp_dir();
    let server = with_users(dir.path(), &[]);
    let statuses = |server: &Server, method: &str, target: &str, body: &str| {
        USERS.map(|user| as_user(server, user, method, target, body).status)
    };
    let write = [401, 403, 403, 204, 204, 204];
    let open = |status: u16| [status; 6];
    for (method, target, expected) in [
        ("POST", "/write?db=d", write),
        ("POST", "/write?db=nosuch", [401, 404, 404, 404, 404, 404]),
        ("POST", "/write", [401, 400, 400, 400, 400, 400]),
        ("GET", "/query", [401, 400, 400, 400, 400, 400]),
        ("GET", "/write", open(405)),
        ("GET", "/nosuch", open(404)),
        ("OPTIONS", "/query", open(200)),
        ("GET", "/ping", open(204)),
        ("GET", "/status", open(204)),
        ("GET", "/health", open(200)),
        ("GET", "/metrics", open(200)),
    ] {
        let body = if method == "POST" { "m v=1 1" } else { "" };
        assert_eq!(statuses(&server, method, target, body), expected, "{method} {target}");
    }
    let delete = r#"{"start":"1970-01-01T00:00:00Z","stop":"1970-01-01T00:00:01Z"}"#;
    let bucket = r#"{"name":"d/r"}"#;
    let admin = [401, 403, 403, 403, 403, 200];
    for (method, target, body, expected) in [
        ("POST", "/api/v2/write?bucket=d", "m v=1 1", write),
        ("POST", "/api/v2/query", "", [401, 403, 403, 403, 403, 403]),
        ("POST", "/api/v2/delete?bucket=d", delete, write.map(|s| if s == 204 { 200 } else { s })),
        ("POST", "/api/v2/buckets", bucket, admin.map(|s| if s == 200 { 201 } else { s })),
        ("GET", "/api/v2/buckets", "", [401, 200, 200, 200, 200, 200]),
        ("GET", "/api/v2/buckets/d%2Fr", "", [401, 404, 200, 200, 200, 200]),
        ("PATCH", "/api/v2/buckets/d%2Fr", bucket, admin),
        ("DELETE", "/api/v2/buckets/d%2Fr", "", admin.map(|s| if s == 200 { 204 } else { s })),
        // An empty message packed by snappy: no samples, and no query.
        ("POST", "/api/v1/prom/write?db=d", "\0", write),
        ("POST", "/api/v1/prom/read?db=d", "\0", [401, 403, 400, 403, 400, 400]),
        ("GET", "/debug/vars", "", open(200)),
        ("GET", "/debug/requests?seconds=0", "", open(200)),
    ] {
        assert_eq!(statuses(&server, method, target, body), expected, "{method} {target}");
    }
    let refused = as_user(&server, "reader", "POST", "/write?db=d", "m v=1 1");
    assert_eq!(error(&refused), "\"reader\" user is not authorized to write to database \"d\"");
    server.stop();
    let flags =
        [&FLAGS[..], &["--ping-auth-enabled", "true", "--pprof-auth-enabled", "true"]].concat();
    let server = Server::start_with(dir.path(), &flags);
    let login = |status: u16| [401, status, status, status, status, status];
    for (target, status) in [("/ping", 204), ("/status", 204), ("/health", 200), ("/metrics", 200)]
    {
        assert_eq!(statuses(&server, "GET", target, ""), login(status), "{target}");
    }
    for target in ["/debug/vars", "/debug/requests?seconds=0"] {
        assert_eq!(statuses(&server, "GET", target, ""), admin, "{target}");
    }
}

#[test]
fn answers_that_are_kept_are_for_those_who_may_see_them() {
    let dir = temp_dir();
    let server = with_users(dir.path(), &[]);
    assert_eq!(as_user(&server, "writer", "POST", "/write?db=d", "m v=1 1").status, 204);
    let text = "SELECT v FROM m";
    let status = |user| query(&server, user, text).status;
    for user in ["reader", "both", "root"] {
        assert_eq!([(); 4].map(|()| status(user)), [200; 4], "{user}");
    }
    assert_eq!((status(""), status("none"), status("writer")), (401, 403, 403));
    assert_eq!(query(&server, "root", "REVOKE READ ON d FROM reader").status, 200);
    assert_eq!((status("reader"), status("both")), (403, 200));
    assert_eq!(query(&server, "root", "DROP USER both").status, 200);
    assert_eq!((status("both"), status("root")), (401, 200));
    server.stop();
}

#[test]
fn without_authentication_anybody_may() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    assert_eq!(query(&server, "", CREATE_ROOT).status, 200);
    assert_eq!(query(&server, "", "CREATE DATABASE d").status, 200);
    assert_eq!(query(&server, "wrong", "SHOW USERS").status, 200);
    assert_eq!(as_user(&server, "wrong", "POST", "/write?db=d", "m v=1 1").status, 204);
}

#[test]
fn passwords_get_nowhere() {
    let dir = temp_dir();
    let flags = [&FLAGS[..], &["--log-level", "trace"]].concat();
    let server = Server::start_logging(dir.path(), &flags);
    query(&server, "", "CREATE USER root WITH PASSWORD 'hush-1' WITH ALL PRIVILEGES");
    server.get("/query?q=SHOW+USERS&u=root&p=hush-1");
    server.get("/query?q=SHOW+USERS&u=root&p=hush-2");
    server.request("GET /query?q=SHOW+USERS HTTP/1.1\r\nAuthorization: Token root:hush-3\r\n", b"");
    server.get("/query?u=root&p=hush-1&q=SET+PASSWORD+FOR+root+%3D+%27hush-4%27%3B+GRANT+ALL+TO+x");
    server.get("/query?u=root&p=hush-4&q=CREATE+USER+a+WITH+PASSWORD+%27hush-5%27+garbage");
    let log = server.stop_and_read_log();
    assert!(log.contains("SHOW USERS"), "requests are logged: {log}");
    assert!(!log.contains("hush"), "{log}");
}
