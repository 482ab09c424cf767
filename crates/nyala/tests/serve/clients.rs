//! Clients of others: Python's, and the requests that Grafana sends.

use std::process::Command;

use crate::support::{Server, encode, temp_dir};

#[test]
fn the_python_client_works() {
    let home = std::env::var_os("HOME").expect("HOME is set");
    let python = std::path::Path::new(&home).join(".cache/nyala/python/bin/python");
    let dir = temp_dir();
    let server = Server::start(dir.path());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/influxdb_client.py");
    let output = Command::new(&python)
        .args([script, "127.0.0.1", &server.address.port().to_string()])
        .output()
        .expect("Python's client is needed: `cargo xtask packages` installs it");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ok\n");
}

/// Grafana's InfluxDB source: GET, times in milliseconds.
fn grafana(server: &Server, q: &str) -> String {
    let answer = server.get(&format!("/query?db=telegraf&epoch=ms&q={}", encode(q)));
    assert_eq!(answer.status, 200, "{q}: {}", answer.text());
    assert!(!answer.text().contains("\"error\""), "{q}: {}", answer.text());
    let json = answer.json();
    json["results"][0].get("series").map_or(String::new(), ToString::to_string)
}

#[test]
fn grafana_is_answered() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    server.create_database("telegraf");
    let start = 1_438_000_000_000_u64;
    let rows: String = (0..60)
        .map(|i| {
            let ns = (start + i * 10_000) * 1_000_000;
            format!(
                "cpu,cpu=cpu-total,host=web.{n} usage_idle={i},usage_user={n}.5 {ns}\n\
                 mem,host=web.{n} used_percent={i} {ns}\n",
                n = i % 2
            )
        })
        .collect();
    assert_eq!(server.write("telegraf", rows).status, 204);
    let event = format!("events,tags=deploy title=\"v1\",text=\"first\" {}000000\n", start + 5);
    assert_eq!(server.write("telegraf", event).status, 204);
    let ask = |q: &str| grafana(&server, q);
    // What variables and the query editor ask.
    assert!(ask("SHOW MEASUREMENTS LIMIT 100").contains("[[\"cpu\"],[\"events\"],[\"mem\"]]"));
    assert!(
        ask("SHOW MEASUREMENTS WITH MEASUREMENT =~ /(?i)CP/ LIMIT 100").contains("[[\"cpu\"]]")
    );
    assert!(
        ask("SHOW MEASUREMENTS WHERE \"host\" = 'web.0' LIMIT 100")
            .contains("[[\"cpu\"],[\"mem\"]]")
    );
    assert!(ask("SHOW TAG KEYS FROM \"cpu\"").contains("[[\"cpu\"],[\"host\"]]"));
    assert!(ask("SHOW TAG KEYS FROM \"cpu\" WHERE \"host\" = 'web.1'").contains("[\"host\"]"));
    assert!(ask("SHOW FIELD KEYS FROM \"cpu\"").contains("[\"usage_user\",\"float\"]"));
    let hosts = "[[\"host\",\"web.0\"],[\"host\",\"web.1\"]]";
    assert!(ask("SHOW TAG VALUES FROM \"cpu\" WITH KEY = \"host\"").contains(hosts));
    assert!(ask("SHOW TAG VALUES WITH KEY = \"host\"").contains(hosts));
    let one = ask("SHOW TAG VALUES FROM \"cpu\" WITH KEY = \"host\" WHERE \"host\" =~ /^web\\.1$/");
    assert!(one.contains("[[\"host\",\"web.1\"]]"), "{one}");
    assert!(ask("SHOW RETENTION POLICIES on \"telegraf\"").contains("autogen"));
    assert!(ask("SHOW DATABASES").contains("telegraf"));
    // What panels ask.
    let range = format!("time >= {start}ms and time <= {}ms", start + 600_000);
    let grouped = ask(&format!(
        "SELECT mean(\"usage_idle\") FROM \"cpu\" WHERE (\"host\" =~ /^(web\\.0|web\\.1)$/) AND \
         {range} GROUP BY time(5m), \"host\" fill(null)"
    ));
    assert!(grouped.contains("\"tags\":{\"host\":\"web.0\"}"), "{grouped}");
    assert!(grouped.contains("[1437999900000,"), "{grouped}");
    let filled = ask(&format!(
        "SELECT mean(\"usage_idle\") AS \"idle\", max(\"usage_user\") FROM \"autogen\".\"cpu\" WHERE \
         {range} GROUP BY time(1s) fill(null) LIMIT 2"
    ));
    assert!(filled.contains("[1438000000000,0,0.5],[1438000001000,null,null]"), "{filled}");
    for fill in ["none", "0", "previous", "linear"] {
        let q = format!(
            "SELECT non_negative_derivative(mean(\"usage_idle\"), 1s) * 8 FROM \"cpu\" WHERE {range} \
             GROUP BY time(20s) fill({fill}) ORDER BY time ASC"
        );
        assert!(ask(&q).contains("non_negative_derivative"), "{q}");
    }
    let two = ask(&format!(
        "SELECT last(\"usage_idle\") FROM \"cpu\" WHERE {range}; \
         SELECT last(\"used_percent\") FROM \"mem\" WHERE {range}"
    ));
    assert!(two.contains("59"), "{two}");
    for relative in ["time > now() - 6h", "time >= now() - 6h and time <= now()"] {
        let q = format!(
            "SELECT mean(\"usage_idle\") FROM \"cpu\" WHERE {relative} GROUP BY time(15s) fill(null)"
        );
        assert_eq!(ask(&q), "", "rows of 2015 are no rows of today");
    }
    // Annotations, tables, and the logs' raw rows.
    let notes = ask(&format!("SELECT title, text, tags FROM events WHERE {range}"));
    assert!(notes.contains("[1438000000005,\"v1\",\"first\",\"deploy\"]"), "{notes}");
    let rows = ask(&format!("SELECT * FROM \"mem\" WHERE {range} ORDER BY time DESC LIMIT 1"));
    assert!(rows.contains("[1438000590000,\"web.1\",59]"), "{rows}");
    // Its test of a connection, and a POST where there is much to say.
    assert!(ask("SHOW TAG KEYS").contains("host"));
    let posted =
        server.query_with("telegraf", "SELECT count(usage_idle) FROM cpu", "&epoch=ms", "");
    assert!(posted.text().contains("[0,60]"), "{}", posted.text());
}
