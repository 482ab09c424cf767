//! The real `influx` command line client.

use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;

use crate::support::{Server, temp_dir};
use crate::terminal::at_terminal;

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

/// What `influx` shows at a terminal when these lines are typed.
fn typed(server: &Server, home: &Path, lines: &[&str]) -> String {
    let command = format!("influx -host 127.0.0.1 -port {}", server.address.port());
    let mut process = at_terminal(&command, home);
    let mut output = process.stdout.take().unwrap();
    let mut input = process.stdin.take().unwrap();
    for line in lines.iter().chain(&["exit"]) {
        input.write_all(format!("{line}\r").as_bytes()).unwrap();
    }
    // The end of the input would end the terminal before everything is shown.
    let mut text = Vec::new();
    output.read_to_end(&mut text).unwrap();
    drop(input);
    assert!(process.wait().unwrap().success());
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn its_commands_work_at_a_terminal() {
    let dir = temp_dir();
    let (server, other) =
        (Server::start(&dir.path().join("one")), Server::start(&dir.path().join("other")));
    other.create_database("d");
    let rows: String = (0..5).map(|i| format!("m v={i}i 100{i}\n")).collect();
    assert_eq!(other.write("d", &rows).status, 204);
    let there = format!("connect {}", other.address);
    let select = "select v from m";
    let text = typed(
        &server,
        dir.path(),
        // Chunked at first; `chunked` changes that.
        &[&there, "use d", "chunk size 2", select, "chunked", select, "node 3", select, "settings"],
    );
    for row in ["1000 0", "1001 1", "1004 4"] {
        assert_eq!(text.matches(row).count(), 3, "{row} in {text}");
    }
    assert!(text.contains("Using database d") && text.contains("chunk size set to 2"), "{text}");
    assert!(text.contains(&other.address.to_string()), "{text}");
    assert!(!text.contains("ERR"), "{text}");
}
