//! The real `influx` command line client.

use std::process::Command;

use crate::support::{Server, temp_dir};

fn influx(server: &Server, args: &[&str]) -> String {
    let output = Command::new("influx")
        .args(["-host", "127.0.0.1", "-port", &server.address.port().to_string()])
        .args(args)
        .output()
        .expect("`influx` is needed: `cargo xtask packages` installs it (package influxdb-client)");
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{args:?}: {text}{errors}");
    text
}

#[test]
fn it_works() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    influx(&server, &["-execute", "CREATE DATABASE d"]);
    let databases = influx(&server, &["-execute", "SHOW DATABASES"]);
    assert!(databases.lines().any(|line| line == "d"), "{databases}");
    for row in ["cpu,host=a v=1.5,n=3i 1", "cpu,host=b v=2,s=\"x y\" 2"] {
        influx(&server, &["-database", "d", "-execute", &format!("INSERT {row}")]);
    }
    let column = influx(&server, &["-database", "d", "-execute", "SELECT * FROM cpu"]);
    assert!(column.contains("name: cpu"), "{column}");
    let csv = ["-database", "d", "-format", "csv", "-execute", "SELECT v, host FROM cpu"];
    assert_eq!(influx(&server, &csv), "name,time,v,host\ncpu,1,1.5,a\ncpu,2,2,b\n");
    let json = ["-database", "d", "-format", "json", "-execute", "SELECT mean(v) FROM cpu"];
    assert!(influx(&server, &json).contains("[0,1.75]"));
    let times = ["-database", "d", "-precision", "rfc3339", "-execute", "SELECT n FROM cpu"];
    assert!(influx(&server, &times).contains("1970-01-01T00:00:00.000000001Z"));
}

#[test]
fn it_imports() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    let file = dir.path().join("import.txt");
    let rows: String = (0..5000).map(|i| format!("m,host=h{} v={i} {i}\n", i % 3)).collect();
    let text =
        format!("# DDL\nCREATE DATABASE imported\n# DML\n# CONTEXT-DATABASE: imported\n{rows}");
    std::fs::write(&file, text).unwrap();
    influx(&server, &["-import", "-path", file.to_str().unwrap()]);
    let json = server.query("imported", "SELECT count(v) FROM m").json();
    assert_eq!(json["results"][0]["series"][0]["values"][0][1], 5000);
}
