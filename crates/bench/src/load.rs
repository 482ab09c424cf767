//! Sends a workload to a server with several workers.
//!
//! Workers take turns at the generator and send in parallel, so rows reach the server nearly in the order of the
//! data. Generating costs a small share of what any server needs for the same rows; with `pregenerate` it is done
//! before the clock starts.

use std::fmt;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::http::Client;
use crate::latency::Latencies;
use crate::process::{self, Usage};
use crate::queries::clickhouse::push_tsv;
use crate::remote_write;
use crate::workload::{Batch, Generator, Spec};

#[cfg(test)]
mod tests;

/// How long to wait before a refused batch is sent again.
const REFUSED_PAUSE: Duration = Duration::from_millis(50);
/// A server that refuses one batch for this long is given up.
const REFUSED_MAX: Duration = Duration::from_secs(120);
const SHOWN_BYTES_MAX: usize = 500;

/// How to load.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// The server: `http://HOST:PORT`.
    pub url: String,
    /// Path and query that batches are posted to.
    pub target: String,
    /// What the server takes.
    pub format: Format,
    /// Parallel connections.
    pub workers: usize,
    /// Rows of one request.
    pub batch_rows: u64,
    /// Rows a second at most, over all connections; `None`: as many as the server takes.
    pub rows_per_second: Option<f64>,
    /// Stop after this time, though there are more rows; `None`: send all.
    pub duration_max: Option<Duration>,
    /// Generate everything into memory first.
    pub pregenerate: bool,
    /// The server's process, if its usage is wanted.
    pub pid: Option<u32>,
    /// Say on stderr how it goes, once a second.
    pub progress: bool,
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// As line protocol, just as generators make it.
    Lines,
    /// The same, packed with gzip as most agents do by default.
    GzipLines,
    /// As samples of Prometheus' remote write, a series for each number.
    RemoteWrite,
    /// As ClickHouse's tab-separated rows; of cpu-only alone.
    ClickHouseTsv,
}

impl Format {
    /// Headers of requests.
    fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Lines | Self::ClickHouseTsv => &[],
            Self::GzipLines => &[("Content-Encoding", "gzip")],
            Self::RemoteWrite => {
                &[("Content-Encoding", "snappy"), ("Content-Type", "application/x-protobuf")]
            }
        }
    }

    /// The body of the request that sends `lines`; may be made in `buffer`.
    fn body<'a>(self, lines: &'a [u8], buffer: &'a mut Vec<u8>) -> &'a [u8] {
        buffer.clear();
        match self {
            Self::Lines => return lines,
            Self::ClickHouseTsv => push_tsv(lines, buffer),
            Self::RemoteWrite => *buffer = remote_write::body(lines),
            Self::GzipLines => {
                let mut encoder = GzEncoder::new(buffer, Compression::fast());
                let packed = encoder.write_all(lines).and_then(|()| encoder.finish());
                return packed.expect("BUG: packing in memory failed");
            }
        }
        buffer
    }
}

/// What a load run did.
#[derive(Debug, Clone)]
pub struct LoadReport {
    /// Rows and values sent.
    pub sent: Batch,
    /// Bytes sent.
    pub bytes: u64,
    /// Wall time.
    pub seconds: f64,
    /// Rows acknowledged in each full second.
    pub rows_by_second: Vec<u64>,
    /// The server's usage at the end of each full second, if its process is known.
    pub usage_by_second: Vec<Usage>,
    /// Requests that the server refused with 429 or 503; they were sent again.
    pub refused: u64,
    /// Latencies of requests.
    pub latencies: Latencies,
    /// The server's usage before and after, if its process is known.
    pub usage: Option<(Usage, Usage)>,
}

impl LoadReport {
    /// Values per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.sent.values as f64 / self.seconds
    }

    /// How long it took until `rows` were acknowledged, to a fraction of the second; `None` if it ended in
    /// the same second as the load.
    #[must_use]
    pub fn seconds_until(&self, rows: u64) -> Option<f64> {
        let mut before = 0;
        for (second, more) in self.rows_by_second.iter().enumerate() {
            if before + more >= rows && *more > 0 {
                return Some(second as f64 + (rows - before) as f64 / *more as f64);
            }
            before += more;
        }
        None
    }

    /// Microseconds of the server's processor time per value.
    #[must_use]
    pub fn cpu_us_per_value(&self) -> Option<f64> {
        let (before, after) = self.usage?;
        Some((after.cpu_seconds - before.cpu_seconds) * 1e6 / self.sent.values as f64)
    }
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Batch { rows, values } = self.sent;
        writeln!(
            f,
            "sent {rows} rows, {values} values, {} bytes in {:.3} s",
            self.bytes, self.seconds
        )?;
        writeln!(f, "rate {:.0} values/s, {:.0} rows/s", self.rate(), rows as f64 / self.seconds)?;
        writeln!(
            f,
            "requests {}, {} refused: {}",
            self.latencies.count(),
            self.refused,
            self.latencies
        )?;
        if let (Some(low), Some(high)) =
            (self.rows_by_second.iter().min(), self.rows_by_second.iter().max())
        {
            writeln!(f, "rows in a second: lowest {low}, highest {high}")?;
        }
        if let (Some((before, after)), Some(cpu_us)) = (self.usage, self.cpu_us_per_value()) {
            writeln!(f, "server CPU {cpu_us:.3} us/value")?;
            let megabytes = |bytes: u64| bytes as f64 / 1e6;
            let (now, peak) =
                (megabytes(after.resident_bytes), megabytes(after.resident_peak_bytes));
            writeln!(f, "server memory {now:.0} MB, peak {peak:.0} MB")?;
            if let (Some(before), Some(after)) = (before.written_bytes, after.written_bytes) {
                let written = after.saturating_sub(before);
                writeln!(
                    f,
                    "server wrote {written} bytes, {:.2} per value",
                    written as f64 / values as f64
                )?;
            }
        }
        Ok(())
    }
}

/// Where batches come from.
enum Source {
    Streaming(Box<dyn Generator>),
    /// Bodies of requests, in reverse order, so that the next is at the end.
    Generated(Vec<(Batch, Vec<u8>)>),
}

impl Source {
    /// Puts the next batch into `out`; no rows at the end.
    fn next(&mut self, rows: u64, out: &mut Vec<u8>) -> Batch {
        match self {
            Self::Streaming(generator) => {
                out.clear();
                generator.fill(rows, out)
            }
            Self::Generated(batches) => match batches.pop() {
                Some((batch, bytes)) => {
                    *out = bytes;
                    batch
                }
                None => Batch::default(),
            },
        }
    }
}

struct Shared {
    source: Mutex<Source>,
    /// Rows that were generated.
    rows_given: AtomicU64,
    rows_done: AtomicU64,
    workers_left: AtomicU64,
}

/// What one worker did.
#[derive(Default)]
struct Share {
    sent: Batch,
    bytes: u64,
    refused: u64,
    latencies: Latencies,
}

/// Generates and sends a workload.
///
/// # Errors
/// When the description is wrong, or the server answers anything but success or a refusal.
pub fn load(spec: &Spec, options: &LoadOptions) -> Result<LoadReport> {
    if options.workers == 0 || options.batch_rows == 0 {
        bail!("workers and batch must be at least 1");
    }
    if options.rows_per_second.is_some_and(|rate| rate.is_nan() || rate < 1.0) {
        bail!("the rate must be at least 1 row a second");
    }
    let mut source = Source::Streaming(spec.generator()?);
    if options.pregenerate {
        source = pregenerated(source, options);
    }
    let shared = Shared {
        source: Mutex::new(source),
        rows_given: AtomicU64::new(0),
        rows_done: AtomicU64::new(0),
        workers_left: AtomicU64::new(options.workers as u64),
    };
    let before =
        options.pid.map(process::usage).transpose().context("cannot read the server's usage")?;
    let started = Instant::now();
    let (shares, watched) = std::thread::scope(|scope| {
        let worker = || run_worker(&shared, started, options);
        let workers: Vec<_> = (0..options.workers).map(|_| scope.spawn(worker)).collect();
        let watched = watch(&shared, started, options);
        let shares: Vec<_> = workers
            .into_iter()
            .map(|worker| worker.join().expect("BUG: a worker panicked"))
            .collect();
        (shares, watched)
    });
    let seconds = started.elapsed().as_secs_f64();
    let mut total = Share::default();
    for share in shares {
        let share = share?;
        total.sent += share.sent;
        total.bytes += share.bytes;
        total.refused += share.refused;
        total.latencies.merge(&share.latencies);
    }
    let usage = match (before, options.pid) {
        (Some(before), Some(pid)) => {
            Some((before, process::usage(pid).context("the server is gone")?))
        }
        _ => None,
    };
    let Share { sent, bytes, refused, latencies } = total;
    let (rows_by_second, usage_by_second) = watched;
    Ok(LoadReport {
        sent,
        bytes,
        seconds,
        rows_by_second,
        usage_by_second,
        refused,
        latencies,
        usage,
    })
}

fn pregenerated(mut source: Source, options: &LoadOptions) -> Source {
    let mut batches = Vec::new();
    let (mut lines, mut buffer) = (Vec::new(), Vec::new());
    loop {
        let batch = source.next(options.batch_rows, &mut lines);
        if batch.rows == 0 {
            batches.reverse();
            return Source::Generated(batches);
        }
        batches.push((batch, options.format.body(&lines, &mut buffer).to_vec()));
    }
}

/// Marks the worker as gone however it leaves, so that the watcher ends.
struct Leaving<'a>(&'a AtomicU64);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

fn run_worker(shared: &Shared, started: Instant, options: &LoadOptions) -> Result<Share> {
    let _leaving = Leaving(&shared.workers_left);
    let mut client = Client::new(&options.url)?;
    let mut share = Share::default();
    let (mut bytes, mut buffer) = (Vec::new(), Vec::new());
    loop {
        if options.duration_max.is_some_and(|max| started.elapsed() >= max) {
            return Ok(share);
        }
        let batch = {
            let mut source = shared.source.lock().expect("BUG: a worker panicked");
            source.next(options.batch_rows, &mut bytes)
        };
        if batch.rows == 0 {
            return Ok(share);
        }
        let before = shared.rows_given.fetch_add(batch.rows, Ordering::Relaxed);
        if let Some(rate) = options.rows_per_second {
            let due = started + Duration::from_secs_f64(before as f64 / rate);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        let body = match options.pregenerate {
            true => &*bytes,
            false => options.format.body(&bytes, &mut buffer),
        };
        send(&mut client, options, body, &mut share)?;
        share.sent += batch;
        share.bytes += body.len() as u64;
        shared.rows_done.fetch_add(batch.rows, Ordering::Relaxed);
    }
}

fn send(client: &mut Client, options: &LoadOptions, bytes: &[u8], share: &mut Share) -> Result<()> {
    let first = Instant::now();
    loop {
        let started = Instant::now();
        let response = client.post(&options.target, options.format.headers(), bytes)?;
        share.latencies.record(started.elapsed());
        match response.status {
            200..300 => return Ok(()),
            429 | 503 if first.elapsed() < REFUSED_MAX => {
                share.refused += 1;
                std::thread::sleep(REFUSED_PAUSE);
            }
            status => {
                let shown = &response.body[..response.body.len().min(SHOWN_BYTES_MAX)];
                bail!(
                    "the server answered {status} to a write: {}",
                    String::from_utf8_lossy(shown)
                );
            }
        }
    }
}

/// Samples rows and the server's usage once a second until all workers have left.
fn watch(shared: &Shared, started: Instant, options: &LoadOptions) -> (Vec<u64>, Vec<Usage>) {
    const TICK: Duration = Duration::from_millis(20);
    let (mut rows_by_second, mut usage_by_second) = (Vec::new(), Vec::new());
    let (mut rows_before, mut next) = (0, started + Duration::from_secs(1));
    while shared.workers_left.load(Ordering::Acquire) > 0 {
        std::thread::sleep(TICK.min(next.saturating_duration_since(Instant::now())));
        if Instant::now() < next {
            continue;
        }
        let rows = shared.rows_done.load(Ordering::Relaxed);
        rows_by_second.push(rows - rows_before);
        // A server that is gone fails its workers.
        usage_by_second.extend(options.pid.and_then(|pid| process::usage(pid).ok()));
        if options.progress {
            note(&format!(
                "{} s: {rows} rows, {} in the last second",
                rows_by_second.len(),
                rows - rows_before
            ));
        }
        rows_before = rows;
        next += Duration::from_secs(1);
    }
    (rows_by_second, usage_by_second)
}

/// Says something about progress on stderr.
#[allow(clippy::print_stderr, reason = "progress of a command line tool")]
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}
