//! The suite every store must pass, on real clusters: of one tablet server, and of three with three
//! copies of everything, where reads meet followers and leaders of many groups.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod common;

use std::sync::OnceLock;

use common::{OnCluster, one_server};
use kudu_test_cluster::{Cluster, Options};
use store::conformance::{TestStore, run_cases, run_random};
use store_kudu::KuduOptions;

fn factory() -> Box<dyn TestStore> {
    Box::new(OnCluster::new(one_server(), 290))
}

fn replicated_factory() -> Box<dyn TestStore> {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    let cluster = CLUSTER.get_or_init(|| Cluster::start(&Options::new(3)).unwrap());
    let options = KuduOptions { replicas: Some(3), ..common::fresh(cluster) };
    Box::new(OnCluster::with(options, cluster))
}

/// Most measurements have fields in both tables.
fn narrow_factory() -> Box<dyn TestStore> {
    Box::new(OnCluster::new(one_server(), 1))
}

#[test]
fn cases() {
    run_cases(&replicated_factory);
}

#[test]
fn cases_with_narrow_fields() {
    run_cases(&narrow_factory);
}

#[test]
fn random_histories_with_narrow_fields() {
    run_random(&narrow_factory, 3, 150);
}

/// All measurements share a table, but for the first of each database.
fn sharing_factory() -> Box<dyn TestStore> {
    Box::new(OnCluster::with(
        KuduOptions { tables: 1, ..common::fresh(one_server()) },
        one_server(),
    ))
}

#[test]
fn cases_with_a_shared_table() {
    run_cases(&|| {
        Box::new(OnCluster::with(
            KuduOptions { tables: 0, ..common::fresh(one_server()) },
            one_server(),
        ))
    });
}

#[test]
fn random_histories_with_a_shared_table() {
    run_random(&sharing_factory, 5, 150);
}

#[test]
fn random_histories_without_columns() {
    run_random(&|| Box::new(OnCluster::new(one_server(), 0)), 4, 100);
}

#[test]
fn random_histories_1() {
    run_random(&factory, 1, 120);
}

#[test]
fn random_histories_2() {
    run_random(&replicated_factory, 2, 120);
}

#[test]
#[ignore = "a long run: cargo test -p store-kudu --test conformance -- --ignored"]
fn conforms_at_length() {
    for seed in 100..140 {
        run_random(&factory, seed, 200);
        run_random(&sharing_factory, seed, 200);
        run_random(&|| Box::new(OnCluster::new(one_server(), (seed % 4) as u32)), seed, 200);
    }
}
