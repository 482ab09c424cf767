//! Measures what the machine can do: the yardstick for everything else.
//!
//! `cargo run --release -p platform --example limits -- [directory on the disk that matters]`

use std::fs::OpenOptions;
use std::hint::black_box;
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// More than the caches hold.
const LARGE: usize = 256 << 20;
/// Less than the second level holds.
const SMALL: usize = 256 << 10;

/// The shortest of some runs.
fn best(mut run: impl FnMut()) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..7 {
        let begun = Instant::now();
        run();
        best = best.min(begun.elapsed());
    }
    best
}

fn gigabytes(bytes: usize, time: Duration) -> f64 {
    bytes as f64 / time.as_secs_f64() / 1e9
}

#[expect(clippy::print_stdout, reason = "a program for people")]
#[expect(clippy::disallowed_methods, reason = "it measures the real disk")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    for (name, size) in [("memory", LARGE), ("cache", SMALL)] {
        let from = vec![1u8; size];
        let mut to = vec![0u8; size];
        let rounds = LARGE / size;
        let copy = best(|| {
            for _ in 0..rounds {
                to.copy_from_slice(black_box(&from));
                black_box(&mut to);
            }
        });
        let words: Vec<u64> = vec![3; size / 8];
        let sum = best(|| {
            for _ in 0..rounds {
                black_box(black_box(&words).iter().fold(0u64, |sum, word| sum.wrapping_add(*word)));
            }
        });
        let lines: Vec<u8> =
            (0..size).map(|at| if at % 344 == 343 { b'\n' } else { b'x' }).collect();
        let scan = best(|| {
            for _ in 0..rounds {
                black_box(memchr::memchr_iter(b'\n', black_box(&lines)).count());
            }
        });
        println!(
            "{name}: copy {:.1} GB/s, sum of words {:.1} GB/s, counting lines {:.1} GB/s",
            gigabytes(LARGE, copy),
            gigabytes(LARGE, sum),
            gigabytes(LARGE, scan)
        );
    }
    let places: Vec<u32> = {
        // One cycle through all entries, in an order that nothing foresees.
        let mut order: Vec<u32> = (0..(LARGE / 64) as u32).collect();
        let mut state = 1u64;
        for at in (1..order.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            order.swap(at, (state >> 33) as usize % (at + 1));
        }
        let mut places = vec![0u32; LARGE / 4];
        for pair in order.windows(2) {
            places[pair[0] as usize * 16] = pair[1];
        }
        places
    };
    let steps = 1_000_000;
    let walk = best(|| {
        let mut at = 0;
        for _ in 0..steps {
            at = places[at as usize * 16];
        }
        black_box(at);
    });
    println!("dependent read out of 256 MB: {:.0} ns", walk.as_secs_f64() * 1e9 / f64::from(steps));
    let path = directory.join("nyala-limits.tmp");
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).open(&path)?;
    let block = vec![7u8; 1 << 20];
    let begun = Instant::now();
    for _ in 0..256 {
        file.write_all(&block)?;
    }
    file.sync_data()?;
    println!("disk: write and sync {:.0} MB/s", 256.0 * 1.048_576 / begun.elapsed().as_secs_f64());
    let mut syncs = Vec::new();
    for at in 0..200u64 {
        file.seek(SeekFrom::Start(at << 12))?;
        let begun = Instant::now();
        file.write_all(&block[..4096])?;
        file.sync_data()?;
        syncs.push(begun.elapsed());
    }
    syncs.sort_unstable();
    println!(
        "disk: write and sync 4 KiB in place, median {:.3} ms",
        syncs[100].as_secs_f64() * 1e3
    );
    drop(file);
    std::fs::remove_file(&path)?;
    Ok(())
}
