//! The answers that a real InfluxDB gave to some two thousand requests.

use crate::support::{Server, temp_dir};

/// Statements that come with later versions; each is refused by name until then.
const LATER: &[&str] = &[];

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
    assert!(wrong.is_empty(), "{} answers are not as recorded", wrong.len());
    server.stop();
}
