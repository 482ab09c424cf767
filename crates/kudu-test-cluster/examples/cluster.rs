//! Runs a cluster of one master and some tablet servers (default 1) until standard input ends, with
//! caches as for measurements: `cargo run -p kudu-test-cluster --example cluster -- [servers]`.
//! Prints `masters=...` and `pids=...` (those of the tablet servers).
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::print_stdout, reason = "a command line tool prints")]

use std::io::Read;

use kudu_test_cluster::{Cluster, Failure, Options};

fn main() -> Result<(), Failure> {
    let servers = std::env::args().nth(1).map_or(Ok(1), |text| text.parse())?;
    let options = Options::new(servers)
        .tablet_server_flag("--block_cache_capacity_mb=512")
        .tablet_server_flag("--memory_limit_hard_bytes=4294967296")
        .tablet_server_flag("--rpc_num_service_threads=20")
        .tablet_server_flag("--heartbeat_interval_ms=1000")
        // Calls that take long, flushes and compactions are in its log then.
        .tablet_server_flag("--minloglevel=0");
    let cluster = Cluster::start(&options)?;
    let pids = (0..servers).filter_map(|at| cluster.tablet_server(at).pid());
    let pids: Vec<String> = pids.map(|pid| pid.to_string()).collect();
    println!("masters={}\npids={}", cluster.master_list(), pids.join(","));
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest)?;
    Ok(())
}
