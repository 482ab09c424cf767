//! Measures the index at scale: `cargo run --release -p series --example scale -- [tsbs|single]
//! [million series] [directory]`.

#![expect(clippy::print_stdout, reason = "it reports measurements")]

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{Budget, DatabaseId, Name, Regex, SeriesId, SeriesKey, TagExpr};
use platform::{PageCache, SystemDisk};
use series::{SeriesIndex, SeriesOptions, SeriesResult};

const DB: DatabaseId = DatabaseId(1);
const BATCH: u64 = 1000;

/// A host of the time series benchmark suite: ten tags.
struct Tsbs {
    names: Vec<Name>,
}

impl Tsbs {
    fn new() -> Self {
        let names = [
            "arch",
            "datacenter",
            "hostname",
            "os",
            "rack",
            "region",
            "service",
            "service_environment",
            "service_version",
            "team",
        ];
        Self { names: names.map(Name::from).to_vec() }
    }

    fn key(&self, n: u64, measurement: &Name) -> SeriesKey {
        // A fixed mix of n stands for the generator's random choices.
        let mut mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (n >> 3);
        let mut pick = |of: u64| {
            mixed = mixed.wrapping_mul(0xd134_2543_de82_ef95).rotate_left(23) ^ 0x51;
            (mixed >> 20) % of
        };
        let region = pick(9);
        let values = [
            ["x64", "x86"][pick(2) as usize].to_owned(),
            format!("region-{region}{}", ["a", "b", "c"][pick(3) as usize]),
            format!("host_{n}"),
            ["Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10"][pick(3) as usize].to_owned(),
            format!("{}", pick(100)),
            format!("region-{region}"),
            format!("{}", pick(20)),
            ["production", "staging", "test"][pick(3) as usize].to_owned(),
            format!("{}", pick(2)),
            ["SF", "NYC", "LON", "CHI"][pick(4) as usize].to_owned(),
        ];
        let tags = self.names.iter().cloned().zip(values.map(Name::from)).collect();
        SeriesKey { measurement: measurement.clone(), tags }
    }
}

fn single(n: u64, measurement: &Name, host: &Name) -> SeriesKey {
    SeriesKey {
        measurement: measurement.clone(),
        tags: vec![(host.clone(), format!("host_{n}").into())],
    }
}

/// Series a second, without the time that making the keys takes.
fn load(index: &SeriesIndex, count: u64, key: &dyn Fn(u64) -> SeriesKey) -> SeriesResult<()> {
    let (mut creating, mut flushing, mut merging) =
        (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let (mut most, mut flushes, mut merges, mut slowest) = (0, 0u64, 0u64, Duration::ZERO);
    for start in (0..count).step_by(BATCH as usize) {
        let keys: Vec<SeriesKey> = (start..start + BATCH).map(key).collect();
        let clock = Clock::start();
        index.create_batch(DB, &keys)?;
        creating += clock.elapsed();
        if index.flush_wanted() {
            most = most.max(index.memory_bytes());
            let clock = Clock::start();
            index.flush()?;
            flushing += clock.elapsed();
            flushes += 1;
            while index.merge_wanted() {
                let clock = Clock::start();
                index.merge_step()?;
                merging += clock.elapsed();
                slowest = slowest.max(clock.elapsed());
                merges += 1;
            }
        }
    }
    println!(
        "create {:.2} us a series ({:.0} K/s); {flushes} flushes {:.2} s ({:.2} us a series); \
         {merges} merges {:.2} s, slowest {:.2} s; memory at most {} MB",
        creating.as_secs_f64() * 1e6 / count as f64,
        count as f64 / creating.as_secs_f64() / 1e3,
        flushing.as_secs_f64(),
        flushing.as_secs_f64() * 1e6 / count as f64,
        merging.as_secs_f64(),
        slowest.as_secs_f64(),
        most >> 20,
    );
    Ok(())
}

/// Time of `f` over numbers spread over the series: the median of many short stretches, so that
/// others on the machine show little.
fn time<T>(what: &str, count: u64, mut f: impl FnMut(u64) -> SeriesResult<T>) -> SeriesResult<()> {
    const STRETCHES: u64 = 200;
    const ROUNDS: u64 = 10;
    for pass in ["first", "second"] {
        let mut times = Vec::new();
        for stretch in 0..STRETCHES {
            let clock = Instant::now();
            for round in 0..ROUNDS {
                let n = (stretch * ROUNDS + round) * 7_919 * 104_729 % count;
                std::hint::black_box(f(n)?);
            }
            times.push(clock.elapsed() / ROUNDS as u32);
        }
        times.sort_unstable();
        println!("  {what}, {pass} pass: {:?}", times[times.len() / 2]);
    }
    Ok(())
}

fn once<T>(what: &str, mut f: impl FnMut() -> SeriesResult<T>) -> SeriesResult<T> {
    let mut best = Duration::MAX;
    let mut value = f()?;
    for _ in 0..3 {
        let clock = Instant::now();
        value = f()?;
        best = best.min(clock.elapsed());
    }
    println!("  {what}: {best:?}");
    Ok(value)
}

fn queries(
    index: &SeriesIndex,
    count: u64,
    host: &Name,
    key: &dyn Fn(u64) -> SeriesKey,
) -> SeriesResult<()> {
    let keys: Vec<SeriesKey> = (0..2_000u64).map(|r| key((r * 7_919 * 104_729) % count)).collect();
    let at = std::cell::Cell::new(0);
    let next = || {
        at.set((at.get() + 1) % keys.len());
        &keys[at.get()]
    };
    time("lookup", count, |_| index.lookup(DB, next()))?;
    time("id to key", count, |n| index.key(SeriesId(n + 1)))?;
    time("select host=X", count, |n| {
        index.select(DB, "cpu", &TagExpr::Equals(host.clone(), format!("host_{n}").into()))
    })?;
    let names = [host.clone()];
    for ids in [1u64, 8] {
        time(&format!("tag_columns of {ids}"), count, |n| {
            let set = (0..ids).map(|at| (n + at * 1_000) % count + 1).collect();
            index.tag_columns(DB, "cpu", &set, &names, &Budget::unlimited())
        })?;
    }
    let all = once("select all", || index.select(DB, "cpu", &TagExpr::True))?;
    once("select region=region-3", || {
        index.select(DB, "cpu", &TagExpr::Equals("region".into(), "region-3".into()))
    })?;
    once("select host=~/^host_1.*7$/", || {
        let regex = Regex::new("^host_1.*7$").expect("the pattern is right");
        index.select(DB, "cpu", &TagExpr::Matches(host.clone(), regex))
    })?;
    once("tag_columns host of all", || {
        index.tag_columns(DB, "cpu", &all, &names, &Budget::unlimited())
    })?;
    let few = all.iter().step_by((count / 4_000).max(1) as usize).collect();
    once("tag_columns host of 4000", || {
        index.tag_columns(DB, "cpu", &few, &names, &Budget::unlimited())
    })?;
    once("tag_columns region of all", || {
        index.tag_columns(DB, "cpu", &all, &["region".into()], &Budget::unlimited())
    })?;
    once("tag keys", || index.tag_keys(DB, "cpu", None))?;
    once("cardinality", || index.cardinality(DB, None))?;
    once("all tag values of host", || {
        let mut bytes = 0;
        index.for_each_tag_value(DB, "cpu", host, None, None, &mut |value| {
            bytes += value.len();
            std::ops::ControlFlow::Continue(())
        })?;
        Ok(bytes)
    })?;
    once("all keys", || {
        let mut tags = 0;
        index.for_each_key(DB, "cpu", None, None, &mut |_, key| {
            tags += key.tags.len();
            std::ops::ControlFlow::Continue(())
        })?;
        Ok(tags)
    })?;
    Ok(())
}

fn report(index: &SeriesIndex, count: u64) {
    println!(
        "{} runs, {:.1} bytes a series on disk, {:.1} resident; resident set {} MB",
        index.run_count(),
        index.disk_bytes() as f64 / count as f64,
        index.resident_bytes() as f64 / count as f64,
        resident_set_mb(),
    );
}

/// A stopwatch that counts time on the processor, so that others on the machine do not show.
/// Falls back to the wall clock where the system does not say.
struct Clock(Instant, Option<u64>);

impl Clock {
    fn start() -> Self {
        Self(Instant::now(), cpu_ns())
    }

    fn elapsed(&self) -> Duration {
        match (self.1, cpu_ns()) {
            (Some(start), Some(now)) => Duration::from_nanos(now - start),
            _ => self.0.elapsed(),
        }
    }
}

fn cpu_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok()
}

fn resident_set_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    (pages.unwrap_or(0) * 4096) >> 20
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_else(|| "tsbs".to_owned());
    let count = arguments.next().map_or(Ok(1), |text| text.parse::<u64>())? * 1_000_000;
    let dir =
        arguments.next().map_or_else(|| std::env::temp_dir().join("series-scale"), PathBuf::from);
    if dir.exists() {
        std::fs::remove_dir_all(&dir)?;
    }
    let (tsbs, measurement) = (Tsbs::new(), Name::from("cpu"));
    let host = Name::from(if kind == "tsbs" { "hostname" } else { "host" });
    let key: Box<dyn Fn(u64) -> SeriesKey> = match kind.as_str() {
        "tsbs" => Box::new(|n| tsbs.key(n, &measurement)),
        _ => Box::new(|n| single(n, &measurement, &host)),
    };
    let open = || {
        let cache = Arc::new(PageCache::new(256 << 20));
        SeriesIndex::open(Arc::new(SystemDisk), &dir, SeriesOptions::new(42, cache))
    };
    let index = open()?;
    load(&index, count, &*key)?;
    index.flush()?;
    while index.merge_step()? {}
    report(&index, count);
    drop(index);
    let clock = Instant::now();
    let index = open()?;
    println!("reopen {:?}", clock.elapsed());
    report(&index, count);
    queries(&index, count, &host, &*key)?;
    report(&index, count);
    Ok(())
}
