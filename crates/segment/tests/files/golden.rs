//! Files of every format version that ever was stay readable.
//!
//! Each file is made once, by the version that introduced it, and never again: a file that cannot be
//! read any more, or gives other rows, is a broken promise, not a file to be made anew.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Column, Values};
use platform::{Disk, PageCache, SystemDisk};
use segment::{SegmentReader, SegmentWriter, WriterOptions};

use crate::support;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// "a" has few rows, "b" has windows, "c" a directory in chunks.
fn write(path: &Path, options: WriterOptions, measurements: Vec<Measurement>) {
    let mut writer = SegmentWriter::create(&SystemDisk, path, options).unwrap();
    for (name, rows) in measurements {
        writer.begin_measurement(&name.into(), &support::fields()).unwrap();
        writer.append(&rows).unwrap();
    }
    writer.finish().unwrap();
}

type Measurement = (&'static str, segment::SegmentRows);

fn measurements() -> Vec<Measurement> {
    vec![("a", support::rows(1, 3)), ("b", support::rows(4, 100)), ("c", support::rows(2, 800))]
}

/// Gauges that walk, of which the integers have gaps: entropy-coded, with summaries that are bounded.
fn walks() -> Vec<Measurement> {
    let mut rows = support::rows(3, 2000);
    let n = rows.times.len();
    let walk = |seed: u64| {
        let steps =
            (0..n as u64).map(move |row| (row + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62);
        steps.scan(50, |at, step| {
            *at += step as i64 - if *at > 90 { 3 } else { i64::from(*at > 10) };
            Some(*at)
        })
    };
    let integers = Column {
        values: Values::Integer(walk(1).map(|value| value - 60).collect()),
        validity: Some((0..n).map(|row| row % 11 != 5).collect()),
    };
    rows.columns[2] = integers.into();
    rows.columns[4].values =
        Values::Unsigned(walk(7).map(|value| value as u64 + (1 << 63)).collect());
    vec![("d", rows)]
}

fn check(name: &str, options: WriterOptions, measurements: Vec<Measurement>) {
    let path = golden(name);
    if SystemDisk.open(&path).is_err() {
        SystemDisk.create_dir_all(path.parent().unwrap()).unwrap();
        write(&path, options, measurements.clone());
    }
    let reader =
        SegmentReader::open(&SystemDisk, &path, Arc::new(PageCache::new(1 << 20))).unwrap();
    let report = reader.verify();
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    assert!(report.window_bytes > 0);
    assert_eq!(reader.info().sequence, options.sequence);
    for (measurement, rows) in measurements {
        let found = support::read_all(&SystemDisk, path.to_str().unwrap(), measurement).unwrap();
        assert!(support::same(&found, &rows), "{name}: {measurement} has other rows");
    }
}

fn hot() -> WriterOptions {
    WriterOptions { block_rows_max: 7, window_rows_min: Some(3), ..WriterOptions::hot(1) }
}

fn cold() -> WriterOptions {
    WriterOptions {
        block_rows_max: 1000,
        window_rows_min: Some(30),
        ..WriterOptions::cold(0x0102_0304_0506_0708)
    }
}

#[test]
fn version_1() {
    check("v1-hot.seg", hot(), measurements());
    check("v1-cold.seg", cold(), measurements());
}

#[test]
fn version_1_with_edges() {
    check("v1-edges-hot.seg", hot(), measurements());
    check("v1-edges-cold.seg", cold(), measurements());
}

#[test]
fn version_1_with_bounded_summaries() {
    check("v1-tight-cold.seg", cold(), walks());
}
