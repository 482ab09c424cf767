//! Loads a workload straight into the engine, without a network, and says what it costs.
//!
//! `cargo run --release -p store-local --example engine_load -- [WORKLOAD] [SCALE] [HOURS] [THREADS]`
#![allow(clippy::print_stdout, clippy::disallowed_methods, clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bench::workload::{HOUR_NS, Spec, Workload};
use ingest::line_protocol::{LineParser, ParseOptions, Precision};
use model::{DatabaseId, PolicyId};
use platform::SystemDisk;
use store::{Policy, Store, WriteRequest};
use store_local::{LocalStore, StoreOptions};

fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

fn rss_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |at: usize, default: &str| args.get(at).cloned().unwrap_or(default.to_owned());
    let workload: Workload = arg(0, "cpu-only").parse().unwrap();
    let scale: u64 = arg(1, "100").parse().unwrap();
    let hours: i64 = arg(2, "72").parse().unwrap();
    let threads: usize = arg(3, "2").parse().unwrap();
    let spec = Spec { workload, ..Spec::cpu_only(scale, hours) };
    let mut generator = spec.generator().unwrap();
    let (mut batches, mut values) = (Vec::new(), 0);
    loop {
        let mut text = Vec::new();
        let batch = generator.fill(10_000, &mut text);
        if batch.rows == 0 {
            break;
        }
        values += batch.values;
        batches.push(text);
    }
    println!("{} batches, {values} values, rss {:.0} MB", batches.len(), rss_mb());

    let dir = tempfile::tempdir_in(".").unwrap();
    let options = StoreOptions::new(dir.path(), 1 << 30);
    let store = LocalStore::open(Arc::new(SystemDisk), options).unwrap();
    let policy = Policy {
        database: DatabaseId(1),
        id: PolicyId(1),
        partition_ns: 168 * HOUR_NS,
        retention_ns: None,
    };
    let (next, start, cpu) = (AtomicUsize::new(0), Instant::now(), cpu_seconds());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut parser = LineParser::new();
                let options = ParseOptions { precision: Precision::Nanosecond, default_time_ns: 0 };
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(text) = batches.get(at) else { return };
                    let parsed = parser.parse(text, &options);
                    assert!(parsed.problems.is_empty());
                    let request = WriteRequest { policy, batch: &parsed.batch, now_ns: 0 };
                    let outcome = store.write(&request).unwrap();
                    assert!(outcome.rejected.is_empty());
                    parser.recycle(parsed.batch);
                }
            });
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "loaded in {seconds:.2} s: {:.2} M values/s, {:.1} ns CPU a value, rss {:.0} MB",
        values as f64 / seconds / 1e6,
        (cpu_seconds() - cpu) / values as f64 * 1e9,
        rss_mb()
    );
    let (start, cpu) = (Instant::now(), cpu_seconds());
    store.flush().unwrap();
    report(&store, "flushed", values, start, cpu);
    let (start, cpu) = (Instant::now(), cpu_seconds());
    store.settle().unwrap();
    report(&store, "settled", values, start, cpu);
}

fn report(store: &LocalStore, what: &str, values: u64, start: Instant, cpu: f64) {
    let metric = |name: &str| store.metrics().iter().find(|m| m.name == name).unwrap().value;
    println!(
        "{what} in {:.2} s ({:.1} ns CPU a value): {} segments, {:.3} bytes a value, flushed {:.1} MB, compacted {:.1} MB, log {:.1} MB",
        start.elapsed().as_secs_f64(),
        (cpu_seconds() - cpu) / values as f64 * 1e9,
        metric("segments"),
        metric("segment_bytes") / values as f64,
        metric("flushed_bytes_total") / 1e6,
        metric("compacted_bytes_total") / 1e6,
        metric("log_bytes_total") / 1e6,
    );
}
