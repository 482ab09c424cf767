//! Measures how fast answers are written: `cargo run --release -p render --example render_rate`.
//!
//! Every case writes the same batch of 1000 rows again and again for about half a second, five
//! times; the best counts.
#![allow(clippy::print_stdout, reason = "it prints what it measures")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{Bitmap, Column, ColumnBatch, Name, ResultBatch, SeriesHeader, Strings, Values};
use render::{Encoder, Epoch, Format, Options, ZoneOffset};

const ROWS: usize = 1000;
const COLUMNS: usize = 10;

/// Numbers that look random and are the same every time.
fn noise(at: usize) -> u64 {
    (at as u64 + 1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(23)
        .wrapping_mul(0x2545_f491_4f6c_dd1d)
        >> 11
}

fn part(make: impl Fn(usize) -> Values) -> ResultBatch {
    let start = 1_500_000_000_000_000_000;
    let times = (0..ROWS as i64).map(|n| start + n * 10_000_000_000).collect();
    let mut columns = vec![Column::new(Values::Time(times))];
    columns.extend((0..COLUMNS).map(|at| Column::new(make(at * ROWS))));
    let names: Vec<Name> = (0..=COLUMNS).map(|at| format!("column_{at}").into()).collect();
    let header =
        SeriesHeader { name: "cpu".into(), columns: names.into(), ..SeriesHeader::default() };
    let batch = ColumnBatch { rows: ROWS, runs: Vec::new(), columns };
    ResultBatch { continues: true, ..ResultBatch::whole(Arc::new(header), batch) }
}

fn measure(name: &str, options: Options, zone: Option<&ZoneOffset>, part: &ResultBatch) {
    let mut best = (f64::MAX, 0);
    for _ in 0..5 {
        let mut encoder = Encoder::new(options);
        encoder.begin_statement(0, zone.cloned());
        let (start, mut bytes, mut rows) = (Instant::now(), 0, 0);
        while start.elapsed() < Duration::from_millis(100) {
            for _ in 0..20 {
                encoder.batch(part);
                rows += part.batch.rows;
                if encoder.buffered_bytes() >= 64 * 1024 {
                    bytes += encoder.take().len();
                }
            }
            if options.format == Format::MessagePack {
                // Nothing can be taken before the end.
                bytes += encoder.buffered_bytes();
                encoder = Encoder::new(options);
                encoder.begin_statement(0, None);
            }
        }
        let per_row = start.elapsed().as_secs_f64() / rows as f64;
        if per_row < best.0 {
            best = (per_row, bytes / rows);
        }
    }
    let (per_row, row_bytes) = best;
    println!(
        "{name:32} {:7.1} ns/row {:6.0} MB/s {:6.1} M values/s ({row_bytes} bytes/row)",
        per_row * 1e9,
        row_bytes as f64 / per_row / 1e6,
        (COLUMNS + 1) as f64 / per_row / 1e6,
    );
}

fn main() {
    let json = Options::default();
    let pretty = Options { format: Format::Json { pretty: true }, ..json };
    let epoch = Options { epoch: Some(Epoch::Milliseconds), ..json };
    let csv = Options { format: Format::Csv, ..json };
    let packed = Options { format: Format::MessagePack, ..json };
    let zone = ZoneOffset::new(|time_ns| if time_ns > 0 { 7200 } else { 3600 });

    let column = |from: usize| from..from + ROWS;
    let small =
        part(|from| Values::Integer(column(from).map(|n| (noise(n) % 101) as i64).collect()));
    let large = part(|from| Values::Integer(column(from).map(|n| noise(n) as i64).collect()));
    let floats = part(|from| Values::Float(column(from).map(|n| noise(n) as f64 / 1e14).collect()));
    let decimals = part(|from| {
        Values::Float(column(from).map(|n| (noise(n) % 10_000) as f64 / 100.0).collect())
    });
    let texts = part(|from| {
        let texts: Vec<String> =
            column(from).map(|n| format!("host_{}", noise(n) % 4000)).collect();
        Values::String(texts.iter().map(String::as_str).collect())
    });
    let tags = part(|from| {
        let hosts: Vec<String> = (0..100).map(|n| format!("host_{n}")).collect();
        let hosts: Strings = hosts.iter().map(String::as_str).collect();
        Values::Dictionary(column(from).map(|n| (noise(n) % 100) as u32).collect(), Arc::new(hosts))
    });
    let mut gaps = small.clone();
    for (at, column) in Arc::make_mut(&mut gaps.batch).columns.iter_mut().enumerate().skip(1) {
        let valid: Bitmap = (0..ROWS).map(|n| !noise(n * at).is_multiple_of(4)).collect();
        column.validity = Some(valid);
    }

    measure("json, 10 integers below 101", json, None, &small);
    measure("json, the same, a quarter null", json, None, &gaps);
    measure("json, the same, epoch=ms", epoch, None, &small);
    measure("json, the same, time zone", json, Some(&zone), &small);
    measure("json, the same, indented", pretty, None, &small);
    measure("json, 10 integers of 53 bits", json, None, &large);
    measure("json, 10 floats of 53 bits", json, None, &floats);
    measure("json, 10 floats of 4 digits", json, None, &decimals);
    measure("json, 10 texts", json, None, &texts);
    measure("json, 10 tags", json, None, &tags);
    measure("csv, 10 integers below 101", csv, None, &small);
    measure("csv, 10 floats of 4 digits", csv, None, &decimals);
    measure("csv, 10 texts", csv, None, &texts);
    measure("msgpack, 10 integers below 101", packed, None, &small);
}
