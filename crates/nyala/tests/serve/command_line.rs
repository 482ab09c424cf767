//! Help, configuration, and what is said about mistakes in either.

use std::process::Output;

use crate::support::{nyala, temp_dir};

fn run(args: &[&str]) -> Output {
    nyala().args(args).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn help() {
    let help = stdout(&run(&["--help"]));
    assert!(help.contains("nyala serve") && help.contains("config") && help.contains("version"));
    let serve = stdout(&run(&["serve", "--help"]));
    for name in ["--config", "--data-dir", "--memory-limit", "NYALA_WAL_SYNC", "[default: 30m]"] {
        assert!(serve.contains(name), "{name}: {serve}");
    }
    assert_eq!(stdout(&run(&["version"])), format!("nyala {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(stdout(&run(&["--version"])), stdout(&run(&["version"])));
    let wrong = run(&["serv"]);
    assert!(!wrong.status.success());
    assert!(stderr(&wrong).contains("serve"), "{}", stderr(&wrong));
    let wrong = run(&["serve", "--datadir", "x"]);
    assert!(stderr(&wrong).contains("--data-dir"), "{}", stderr(&wrong));
}

#[test]
fn the_configuration_is_shown_with_its_origins() {
    let dir = temp_dir();
    let file = dir.path().join("nyala.toml");
    std::fs::write(&file, "query-timeout = \"7s\"\nmax-connections = 9\nlog-level = \"debug\"\n")
        .unwrap();
    let file = file.to_str().unwrap();
    let output = nyala()
        .args(["config", "--config", file, "--log-level", "warn"])
        .env("NYALA_MAX_CONNECTIONS", "10")
        .output()
        .unwrap();
    let text = stdout(&output);
    for line in [
        "log-level = \"warn\" # flag --log-level".to_owned(),
        "max-connections = \"10\" # environment variable NYALA_MAX_CONNECTIONS".to_owned(),
        format!("query-timeout = \"7s\" # file {file}"),
        "http-bind = \"127.0.0.1:8086\" # default".to_owned(),
    ] {
        assert!(text.contains(&line), "{line}:\n{text}");
    }
    let again = dir.path().join("again.toml");
    std::fs::write(&again, &text).unwrap();
    let output = run(&["config", "--config", again.to_str().unwrap()]);
    assert!(output.status.success(), "what is shown is a configuration: {}", stderr(&output));
    let by_environment = nyala().arg("config").env("NYALA_CONFIG", file).output().unwrap();
    assert!(stdout(&by_environment).contains("query-timeout = \"7s\""));
}

#[test]
fn mistakes_are_named() {
    let dir = temp_dir();
    let file = dir.path().join("nyala.toml");
    std::fs::write(&file, "memmory-limit = \"1GB\"\n").unwrap();
    let refused = |output: Output| {
        assert_eq!(output.status.code(), Some(1));
        stderr(&output)
    };
    let text = refused(run(&["serve", "--config", file.to_str().unwrap()]));
    assert!(text.contains("did you mean memory-limit?"), "{text}");
    let text = refused(run(&["serve", "--config", "/no/such/file"]));
    assert!(text.contains("/no/such/file"), "{text}");
    let text = refused(nyala().arg("serve").env("NYALA_QUERY_TIMOUT", "1s").output().unwrap());
    assert!(text.contains("NYALA_QUERY_TIMOUT") && text.contains("NYALA_QUERY_TIMEOUT"), "{text}");
    for (flag, value) in [
        ("--memory-limit", "lots"),
        ("--memory-limit", "1MB"),
        ("--wal-sync", "sometimes"),
        ("--query-timeout", "5"),
        ("--max-connections", "-1"),
        ("--http-bind", "nowhere"),
        ("--log-format", "xml"),
        ("--log-level", "info=debug=trace"),
        ("--retention-autocreate", "maybe"),
    ] {
        let text = refused(run(&["config", &format!("{flag}={value}")]));
        assert!(text.contains(&format!("flag {flag}")) && text.contains(value), "{text}");
    }
}
