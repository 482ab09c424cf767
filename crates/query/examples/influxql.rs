//! Answers InfluxQL over a file of simple lines, as InfluxDB would: for comparing the two by hand.
//!
//! `cargo run -p query --example influxql LINES < QUERIES` prints each query and its result.

#[path = "../tests/support/database.rs"]
mod support;

use std::io::BufRead as _;

#[expect(clippy::print_stdout, reason = "a tool for the terminal")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which file of lines?")?;
    let database = support::Database::with_lines(&std::fs::read_to_string(path)?);
    for query in std::io::stdin().lock().lines() {
        let query = query?;
        println!("{query}");
        println!("{{\"results\":[{}]}}", database.json(&query));
    }
    Ok(())
}
