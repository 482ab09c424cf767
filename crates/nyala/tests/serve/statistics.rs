//! SHOW STATS, SHOW DIAGNOSTICS, the monitor's rows.

use serde_json::Value;

use crate::support::{Server, eventually, temp_dir};

/// The value of a column of the first row of a series.
fn cell<'a>(series: &'a Value, column: &str) -> &'a Value {
    let columns = series["columns"].as_array().unwrap();
    let at = columns.iter().position(|name| name == column);
    &series["values"][0][at.unwrap_or_else(|| panic!("no {column}: {series}"))]
}

#[test]
fn statistics_are_figures_of_this_server() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    server.create_database("d");
    server.write("d", "m,h=a v=1 1\nm,h=b v=2 2\nn v=3 3\n");
    let of = |module: &str| {
        let answer = server.query("", &format!("SHOW STATS FOR '{module}'")).json();
        answer["results"][0]["series"][0].clone()
    };
    let database = of("database");
    assert_eq!(database["tags"]["database"], "d");
    assert_eq!(
        (cell(&database, "numMeasurements"), cell(&database, "numSeries")),
        (&2.into(), &3.into())
    );
    assert_eq!(cell(&of("write"), "pointReq"), 3);
    assert_eq!(cell(&of("httpd"), "pointsWrittenOK"), 3);
    assert!(cell(&of("indexes"), "memoryBytes").is_u64());
    assert_eq!(cell(&of("store"), "rows_written_total"), 3);
    assert!(of("nosuch").is_null());
    let all = server.query("", "SHOW STATS").json();
    let names: Vec<&str> = all["results"][0]["series"]
        .as_array()
        .unwrap()
        .iter()
        .map(|series| series["name"].as_str().unwrap())
        .collect();
    for name in
        ["runtime", "queryExecutor", "database", "store", "write", "subscriber", "cq", "httpd"]
    {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let metrics = server.get("/metrics");
    assert!(metrics.text().contains("nyala_database_series{database=\"d\"} 3\n"));
    let diagnostics = server.query("", "SHOW DIAGNOSTICS").json();
    let series = diagnostics["results"][0]["series"].as_array().unwrap();
    let named = |name: &str| series.iter().find(|s| s["name"] == name).unwrap();
    assert_eq!(cell(named("build"), "Version"), "1.8.10");
    assert_eq!(cell(named("system"), "PID"), server.pid());
    assert!(cell(named("network"), "hostname").is_string());
    let one = server.query("", "SHOW DIAGNOSTICS FOR 'config-httpd'").json();
    assert_eq!(one["results"][0]["series"].as_array().unwrap().len(), 1);
    let none = server.query("", "SHOW STATS FOR 'httpd' LIMIT 1 OFFSET 1").json();
    assert!(none["results"][0]["series"][0]["columns"].is_array());
    assert!(none["results"][0]["series"][0]["values"].is_null());
    server.stop();
}

#[test]
fn the_monitor_keeps_figures() {
    let dir = temp_dir();
    let file = dir.path().join("nyala.toml");
    std::fs::write(&file, "[monitor]\nstore-enabled = true\nstore-interval = \"100ms\"\n").unwrap();
    let data = dir.path().join("data");
    let server = Server::start_with(&data, &["--config", file.to_str().unwrap()]);
    server.create_database("d");
    server.write("d", "m v=1 1\n");
    let last = || {
        server.query("_internal", "SELECT last(numSeries) FROM \"database\" GROUP BY \"database\"")
    };
    eventually(|| last().text().contains(r#"{"database":"d"}"#), || last().text().to_owned());
    let policies = server.query("", "SHOW RETENTION POLICIES ON _internal");
    let want = r#"["monitor","168h0m0s","24h0m0s",1,true]"#;
    assert!(policies.text().contains(want), "{}", policies.text());
    let keys = server.query("_internal", "SHOW TAG KEYS FROM \"write\"");
    assert!(keys.text().contains("hostname"), "{}", keys.text());
    server.stop();
}

#[test]
fn shards_keep_their_numbers_over_a_restart() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    server.create_database("d");
    server.write("d", "m v=1 1700000000000000000\n");
    let shards = |server: &Server| server.query("", "SHOW SHARDS").text().to_owned();
    assert!(shards(&server).contains(r#"[1,"d","autogen",1,"2023-11-13T00:00:00Z","2023-11-20T00:00:00Z","2023-11-20T00:00:00Z",""]"#), "{}", shards(&server));
    // Earlier than the other, and later numbered.
    server.write("d", "m v=1 1600000000000000000\n");
    let before = shards(&server);
    assert!(before.contains("[2,\"d\""), "{before}");
    server.kill();
    let server = Server::start(dir.path());
    assert_eq!(shards(&server), before);
    assert_eq!(server.query("", "DROP SHARD 1").text(), "{\"results\":[{\"statement_id\":0}]}\n");
    server.kill();
    let server = Server::start(dir.path());
    let after = shards(&server);
    assert!(!after.contains("[1,\"d\"") && after.contains("[2,\"d\""), "{after}");
    let rows = server.query_with("d", "SELECT v FROM m", "&epoch=s", "");
    assert!(rows.text().contains("[[1600000000,1]]"), "{}", rows.text());
    server.stop();
}
