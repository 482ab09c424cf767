//! Writes and reads segments of TSBS cpu-only rows and prints sizes and speeds.
//!
//! Run with `cargo run --release -p segment --example tsbs_cpu -- [hosts] [rows per host] [dir]`.

#![allow(clippy::print_stdout)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use model::{Column, FieldType, Name, SeriesId, TimeRange, Values};
use platform::{Disk, PageCache, SystemDisk};
use segment::{
    SegmentError, SegmentReader, SegmentRows, SegmentWriter, SparseColumn, WriterOptions,
};

const FIELDS: usize = 10;
const STEP_NS: i64 = 10_000_000_000;
const START_NS: i64 = 1_451_606_400_000_000_000;
const REPEATS: usize = 7;

struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let (a, b) = (self.uniform().max(1e-300), self.uniform());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }
}

fn fields() -> Vec<(Name, FieldType)> {
    (0..FIELDS).map(|f| (Name::from(format!("usage_{f}")), FieldType::Integer)).collect()
}

/// All rows of one host.
fn host_rows(host: u64, rows: usize, random: &mut Random) -> SegmentRows {
    let columns = (0..FIELDS).map(|_| {
        let mut value = random.uniform() * 100.0;
        let mut step = || {
            value = (value + random.normal()).clamp(0.0, 100.0);
            value as i64
        };
        SparseColumn::new(Values::Integer((0..rows).map(|_| step()).collect()))
    });
    SegmentRows {
        columns: columns.collect(),
        runs: vec![(SeriesId(host), rows as u32)],
        times: (0..rows).map(|row| START_NS + row as i64 * STEP_NS).collect(),
    }
}

fn best(mut run: impl FnMut() -> Result<(), SegmentError>) -> Result<f64, SegmentError> {
    let mut best = f64::MAX;
    for _ in 0..REPEATS {
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}

fn main() -> Result<(), SegmentError> {
    let mut args = std::env::args().skip(1);
    let hosts = args.next().and_then(|a| a.parse().ok()).unwrap_or(100);
    let rows = args.next().and_then(|a| a.parse().ok()).unwrap_or(7200);
    let dir = args.next().map_or_else(|| std::env::temp_dir().join("nyala-segment"), PathBuf::from);
    let disk = SystemDisk;
    disk.create_dir_all(&dir)?;
    let mut random = Random(0x1234_5678_9abc_def1);
    let data: Vec<SegmentRows> = (0..hosts).map(|h| host_rows(h, rows, &mut random)).collect();
    for (name, options) in [("hot", WriterOptions::hot(1)), ("cold", WriterOptions::cold(1))] {
        let path = dir.join(format!("{name}.seg"));
        measure(&disk, &path, &data, name, options)?;
        disk.remove(&path)?;
    }
    Ok(())
}

fn measure(
    disk: &SystemDisk,
    path: &Path,
    data: &[SegmentRows],
    name: &str,
    options: WriterOptions,
) -> Result<(), SegmentError> {
    let mut bytes = 0;
    let seconds = best(|| {
        disk.remove(path).or_else(|e| if e.is_not_found() { Ok(()) } else { Err(e) })?;
        let mut writer = SegmentWriter::create(disk, path, options)?;
        writer.begin_measurement(&"cpu".into(), &fields())?;
        data.iter().try_for_each(|rows| writer.append(rows))?;
        bytes = writer.finish()?.bytes;
        Ok(())
    })?;
    let cells = (data.len() * data[0].len() * FIELDS) as f64;
    println!("{name}: {bytes} bytes, {:.4} bytes/value", bytes as f64 / cells);
    println!(
        "{name}: write {:.0} M values/s, {:.0} MB/s of file",
        cells / seconds / 1e6,
        bytes as f64 / seconds / 1e6
    );
    let reader = SegmentReader::open(disk, path, Arc::new(PageCache::new(256 << 20)))?;
    let report = reader.verify();
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    println!(
        "{name}: times {} series {} windows {} directory {} bytes, pages {:?}",
        report.time_bytes,
        report.series_bytes,
        report.window_bytes,
        report.directory_bytes,
        report.fields.first().map(|f| (f.bytes, &f.encodings))
    );
    point_reads(&reader, data, name)?;
    scans(&reader, name, cells)?;
    window_scan(&reader, name, cells)
}

/// One field of one host for an hour.
fn point_reads(
    reader: &SegmentReader,
    data: &[SegmentRows],
    name: &str,
) -> Result<(), SegmentError> {
    let mut random = Random(99);
    let mut total = 0usize;
    const READS: usize = 10_000;
    let seconds = best(|| {
        for _ in 0..READS {
            let host = SeriesId((random.uniform() * data.len() as f64) as u64);
            let last_start = data[0].len().saturating_sub(360) as f64;
            let first = START_NS + (random.uniform() * last_start) as i64 * STEP_NS;
            let time = TimeRange::new(first, first + 360 * STEP_NS - 1);
            let (mut times, mut values) = (Vec::new(), Column::new(Values::Integer(Vec::new())));
            let Some(directory) = reader.directory("cpu")? else { return Ok(()) };
            let field = directory.field("usage_3").unwrap_or(0);
            for block in reader.blocks(&directory, &(host..=host), time) {
                let block = block?;
                let Some(rows) = reader.runs(&block)?.rows_of(host) else { continue };
                let rows = reader.times_in(&block, &[rows], time, &mut times)?.remove(0);
                reader.column(&block, field, rows, &mut values)?;
            }
            assert_eq!(times.len(), values.len());
            total += times.len();
        }
        Ok(())
    })?;
    println!(
        "{name}: one field, one host, an hour: {:.2} us ({} rows each)",
        seconds / READS as f64 * 1e6,
        total / READS / REPEATS
    );
    Ok(())
}

fn scans(reader: &SegmentReader, name: &str, cells: f64) -> Result<(), SegmentError> {
    for (kind, reader) in [("cached", reader.clone()), ("streaming", reader.streaming())] {
        let mut sum = 0i64;
        let seconds = best(|| {
            let Some(directory) = reader.directory("cpu")? else { return Ok(()) };
            let all = SeriesId(0)..=SeriesId(u64::MAX);
            let mut column = Column::new(Values::Integer(Vec::new()));
            for block in reader.blocks(&directory, &all, TimeRange::ALL) {
                let block = block?;
                for field in 0..FIELDS {
                    if let Values::Integer(values) = &mut column.values {
                        values.clear();
                    }
                    reader.column(&block, field, 0..block.rows(), &mut column)?;
                    if let Values::Integer(values) = &column.values {
                        sum = sum.wrapping_add(codec::kernels::sum_i64(values));
                    }
                }
            }
            Ok(())
        })?;
        println!("{name}: {kind} scan and sum {:.0} M cells/s ({sum})", cells / seconds / 1e6);
    }
    Ok(())
}

fn window_scan(reader: &SegmentReader, name: &str, cells: f64) -> Result<(), SegmentError> {
    let (mut sum, mut window_ns) = (0i64, 0);
    let seconds = best(|| {
        let Some(directory) = reader.directory("cpu")? else { return Ok(()) };
        let all = SeriesId(0)..=SeriesId(u64::MAX);
        for block in reader.blocks(&directory, &all, TimeRange::ALL) {
            let block = block?;
            let Some(windows) = reader.windows(&block)? else { continue };
            window_ns = windows.index().window_ns();
            let Some(places) = reader.load_windows(&block, 0..FIELDS, &windows)? else { continue };
            for place in places {
                let numbers = windows.field(place).numbers().iter();
                sum = numbers.fold(sum, |all, span| all.wrapping_add(span.sum.cast_signed()));
            }
        }
        Ok(())
    })?;
    println!(
        "{name}: windows of {} s: {:.0} M cells/s ({sum})",
        window_ns / 1_000_000_000,
        cells / seconds / 1e6
    );
    Ok(())
}
