//! Measures appends and group commit on a real disk.
//!
//! `cargo run --release -p wal --example append_rate -- [directory]`

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use platform::SystemDisk;
use wal::{SyncPolicy, Wal, WalOptions};

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn open(dir: &std::path::Path, sync: SyncPolicy) -> Result<Wal, Failure> {
    let options = WalOptions { sync, ..WalOptions::default() };
    let (wal, _) = Wal::open::<Infallible>(Arc::new(SystemDisk), dir, options, &mut |_, _| Ok(()))?;
    Ok(wal)
}

/// Several threads append records and wait for each; old files are released on the way.
fn run(wal: &Wal, threads: usize, record: &[u8], time: Duration) -> Result<String, Failure> {
    let before = wal.metrics();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let worker = |_| {
            scope.spawn(|| -> Result<(), Failure> {
                while begun.elapsed() < time {
                    let lsn = wal.append(&[record])?;
                    wal.wait_durable(lsn)?;
                    if lsn.0 % 64 == 0 {
                        wal.release(lsn)?;
                    }
                }
                Ok(())
            })
        };
        let workers: Vec<_> = (0..threads).map(worker).collect();
        workers.into_iter().try_for_each(|w| w.join().expect("BUG: a worker panicked"))
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    let after = wal.metrics();
    let appends = (after.appends - before.appends) as f64;
    let syncs = (after.syncs - before.syncs) as f64;
    let sync_us = (after.sync_ns - before.sync_ns) as f64 / 1e3 / syncs.max(1.0);
    Ok(format!(
        "{threads:2} threads x {:6} B: {:9.0} acks/s {:7.1} MB/s {:6.1} records/sync, sync {sync_us:.0} us",
        record.len(),
        appends / seconds,
        appends * record.len() as f64 / seconds / 1e6,
        appends / syncs.max(1.0),
    ))
}

/// What an append costs its caller while the disk keeps up: checksum and copy.
fn append_alone(wal: &Wal, record: &[u8]) -> Result<String, Failure> {
    let mut best = Duration::MAX;
    for _ in 0..50 {
        let begun = Instant::now();
        for _ in 0..64 {
            wal.append(&[record])?;
        }
        best = best.min(begun.elapsed());
        wal.wait_durable(wal.position())?;
        wal.release(wal.position())?;
    }
    let ns = best.as_nanos() as f64 / 64.0;
    Ok(format!(
        "append alone x {:6} B: {ns:6.0} ns, {:.1} GB/s",
        record.len(),
        record.len() as f64 / ns
    ))
}

#[expect(clippy::print_stdout, reason = "a program for people")]
fn main() -> Result<(), Failure> {
    let root = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = root.join(format!("nyala-wal-{}", std::process::id()));
    let time = Duration::from_secs(2);
    for (name, sync) in [("always", SyncPolicy::Always), ("never", SyncPolicy::Never)] {
        let wal = open(&dir, sync)?;
        for bytes in [100, 1000, 50_000] {
            println!("{name}: {}", append_alone(&wal, &vec![7; bytes])?);
        }
        for (threads, bytes) in
            [(1, 100), (1, 65536), (2, 100), (4, 100), (16, 100), (64, 100), (16, 50_000)]
        {
            let record: Vec<u8> = (0..bytes).map(|i| (i * 31 % 251) as u8).collect();
            println!("{name}: {}", run(&wal, threads, &record, time)?);
        }
        wal.close()?;
    }
    let begun = Instant::now();
    let mut bytes = 0;
    let (_, report) =
        Wal::open::<Infallible>(Arc::new(SystemDisk), &dir, WalOptions::default(), &mut |_, r| {
            bytes += r.len();
            Ok(())
        })?;
    println!("replay: {} records, {bytes} bytes in {:?}", report.records, begun.elapsed());
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}
