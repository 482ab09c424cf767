//! The answers that a real InfluxDB gave to some three thousand requests.

use crate::support::{Server, temp_dir};

#[test]
fn they_are_ours() {
    let dir = temp_dir();
    compare(Server::start(dir.path()));
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn they_are_ours_over_kudu() {
    use kudu_test_cluster::{Cluster, Options};
    let cluster = Cluster::start(&Options::new(3)).unwrap();
    // Patient, so that a machine with much else to do passes, too.
    let masters = cluster.master_list();
    let store = format!("kudu://{masters}/?buckets=2&user=tester&timeout-s=120");
    let dir = temp_dir();
    compare(Server::start_with(dir.path(), &["--store", &store]));
}

#[allow(clippy::print_stdout, reason = "tells what is wrong")]
fn compare(server: Server) {
    let report = differential::check(&server.url(), &differential::Options::default()).unwrap();
    for failure in &report.failures {
        println!("FAILED {}", failure.case);
        failure.differences.iter().for_each(|difference| println!("    {difference:.300}"));
    }
    let wrong = report.failures.len();
    println!("{} as recorded, {wrong} wrong", report.passed);
    assert!(report.is_success(), "{wrong} answers are not as recorded");
    server.stop();
}
