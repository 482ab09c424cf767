//! The answers that a real InfluxDB gave to some two thousand requests.

use crate::support::{Server, temp_dir};

#[test]
fn they_are_ours() {
    let dir = temp_dir();
    compare(Server::start(dir.path()), &[], &[]);
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod over_kudu {
    use kudu_test_cluster::{Cluster, Options};

    use super::compare;
    use crate::support::{Server, temp_dir};

    /// Files of which the cases run in every test.
    const FILES: &[&str] = &[
        "delete",
        "functions",
        "group",
        "into",
        "nab",
        "select",
        "show",
        "sources",
        "subquery",
        "tsbs",
        "tz",
        "varied",
        "where",
    ];

    /// Cases answered otherwise over Kudu, and why.
    const DIFFERS: &[(&str, &str)] = &[];

    fn over_kudu(files: &[&str]) {
        let cluster = Cluster::start(&Options::new(1)).unwrap();
        // Patient, so that a machine with much else to do passes, too.
        let masters = cluster.master_list();
        let store = format!("kudu://{masters}/?buckets=2&user=tester&timeout-s=120");
        let dir = temp_dir();
        compare(Server::start_with(dir.path(), &["--store", &store]), files, DIFFERS);
    }

    #[test]
    fn they_are_ours() {
        over_kudu(FILES);
    }

    #[test]
    #[ignore = "makes and drops hundreds of tables: cargo test -p nyala recorded -- --ignored"]
    fn all_of_them_are_ours() {
        over_kudu(&[]);
    }
}

/// Compares a server's answers with those of some files of cases, all if none is named. Exactly the
/// cases named in `differs` are answered otherwise.
fn compare(server: Server, files: &[&str], differs: &[(&str, &str)]) {
    let options = differential::Options {
        files: files.iter().map(|name| (*name).to_owned()).collect(),
        ..differential::Options::default()
    };
    let report = differential::check(&server.url(), &options).unwrap();
    let is_known = |case: &str| differs.iter().any(|(name, _)| *name == case);
    let (known, wrong): (Vec<_>, Vec<_>) =
        report.failures.iter().partition(|failure| is_known(&failure.case));
    for failure in &wrong {
        println!("FAILED {}", failure.case);
        failure.differences.iter().for_each(|difference| println!("    {difference:.300}"));
    }
    println!("{} as recorded, {} wrong, {} known", report.passed, wrong.len(), known.len());
    assert!(wrong.is_empty(), "{} answers are not as recorded", wrong.len());
    server.stop();
}
