//! The answers that a real InfluxDB gave to some two thousand requests.

use std::collections::BTreeSet;

use crate::support::{Server, temp_dir};

/// Statements that come with later versions; each is refused by name until then.
const LATER: &[&str] = &["KILL QUERY", "SHOW CONTINUOUS QUERIES", "SHOW SUBSCRIPTIONS"];

#[test]
fn they_are_ours() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    let report = differential::check(&server.url(), &differential::Options::default()).unwrap();
    let is_later = |case: &str| LATER.iter().any(|statement| case.contains(statement));
    let (later, wrong): (Vec<_>, Vec<_>) =
        report.failures.iter().partition(|failure| is_later(&failure.case));
    for failure in &wrong {
        println!("FAILED {}", failure.case);
        failure.differences.iter().for_each(|difference| println!("    {difference:.300}"));
    }
    println!("{} as recorded, {} wrong, {} later", report.passed, wrong.len(), later.len());
    let refused = |failure: &differential::Failure| {
        failure.differences.iter().any(|difference| difference.contains("is not supported yet"))
    };
    assert!(later.iter().all(|failure| refused(failure)), "{later:?}");
    // Every gap is listed, and a gap that is closed leaves the list.
    let known: BTreeSet<&str> = include_str!("known_gaps.txt").lines().collect();
    let found: BTreeSet<&str> = wrong.iter().map(|failure| failure.case.as_str()).collect();
    let new: Vec<_> = found.difference(&known).collect();
    assert!(new.is_empty(), "answers that are not as recorded: {new:#?}");
    let closed: Vec<_> = known.difference(&found).collect();
    assert!(closed.is_empty(), "as recorded now, take them off known_gaps.txt: {closed:#?}");
    server.stop();
}
