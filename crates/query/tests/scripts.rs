//! Scripts of InfluxQL with the answers InfluxDB gives.
//!
//! A script is a file in `tests/scripts`: lines to load, then statements (`> ...`) each followed by
//! its answer in short form, up to a blank line. Where InfluxDB's answer rests on chance (ties,
//! unstable sorts) a script does not ask.

#[path = "support/database.rs"]
mod support;

use std::fmt::Write as _;
use std::path::Path;

use support::Database;

/// Runs a script; gives what differs.
fn run(script: &str) -> String {
    let mut differences = String::new();
    let (lines, statements) = script.split_once("\n\n").expect("lines, then statements");
    let database = Database::with_lines(&without_comments(lines));
    for block in without_comments(statements).split("\n\n") {
        let Some((statement, expected)) =
            block.trim().split_once('\n').or(Some((block.trim(), "")))
        else {
            continue;
        };
        let Some(statement) = statement.strip_prefix("> ") else { continue };
        let got = database.short(statement);
        if got != expected.trim_end() {
            write!(differences, "\n> {statement}\nwant:\n{expected}\ngot:\n{got}\n")
                .expect("text can grow");
        }
    }
    differences
}

fn without_comments(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n")
}

#[test]
fn scripts_answer_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut scripts = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let script = std::fs::read_to_string(&path).unwrap();
        let differences = run(&script);
        assert!(differences.is_empty(), "{}:{differences}", path.display());
        assert!(script.contains("\n> "), "{} asks nothing", path.display());
        scripts += 1;
    }
    assert!(scripts >= 5, "scripts are missing");
}

#[test]
fn a_wrong_answer_is_noticed() {
    let script = "m v=1 1\n\n> SELECT v FROM m\nm: time v\n1 2\n";
    assert!(run(script).contains("got:\nm: time v\n1 1"));
}
