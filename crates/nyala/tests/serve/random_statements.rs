//! Random statements over random rows, asked of a real InfluxDB as well.

use differential::{IDLE_SOON, RandomOptions};

#[test]
fn they_are_answered_as_by_influxdb() {
    compare(450, vec![(IDLE_SOON.0, IDLE_SOON.1.to_owned())]);
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn they_are_answered_as_by_influxdb_over_kudu() {
    use kudu_test_cluster::{Cluster, Options};
    let cluster = Cluster::start(&Options::new(1)).unwrap();
    let masters = cluster.master_list();
    let store = format!("kudu://{masters}/?buckets=2&user=tester&timeout-s=120");
    compare(300, vec![("NYALA_STORE", store)]);
}

fn compare(statements: u64, settings: Vec<(&'static str, String)>) {
    let nyala = env!("CARGO_BIN_EXE_nyala").into();
    let options = RandomOptions { seed: 20_161_124, statements, nyala, settings };
    let report = differential::random(&options).unwrap();
    assert!(report.disagreements.is_empty(), "{report}");
    // Most find something: what is empty on both sides says little.
    assert!(report.found > statements * 2 / 3, "{report}");
}
