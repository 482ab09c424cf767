//! What the integration tests share: rows made of plain arithmetic, and reading them all back.

use std::sync::Arc;

use model::{Bitmap, Column, FieldType, Name, SeriesId, TimeRange, Values};
use platform::{Disk, PageCache};
use segment::{SegmentError, SegmentReader, SegmentRows, SparseColumn};

/// One field of every type, ascending by name.
pub(crate) fn fields() -> Vec<(Name, FieldType)> {
    let types = ["boolean", "float", "integer", "string", "unsigned"].into_iter();
    let types = types.zip([4, 0, 1, 3, 2].map(|code| FieldType::ALL[code as usize]));
    types.map(|(name, field_type)| (name.into(), field_type)).collect()
}

/// `series` series of `rows` rows, ten seconds apart; every seventh float and all strings of every
/// third series are missing.
pub(crate) fn rows(series: u64, rows: u32) -> SegmentRows {
    let n = (series * u64::from(rows)) as usize;
    let per_row = |row: usize| (row as u64 / u64::from(rows), row as u64 % u64::from(rows));
    let mix = |row: usize| (row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let floats = Values::Float((0..n).map(|row| (mix(row) >> 50) as f64 / 100.0).collect());
    let texts = ["", "ok", "failed: no route to host", "\u{2713} done"];
    let strings: Vec<_> = (0..n).map(|row| texts[(mix(row) >> 62) as usize]).collect();
    SegmentRows {
        runs: (0..series).map(|s| (SeriesId(s * 3 + 1), rows)).collect(),
        times: (0..n)
            .map(|row| 1_600_000_000_000_000_000 + per_row(row).1 as i64 * 10_000_000_000)
            .collect(),
        columns: [
            Column::new(Values::Boolean((0..n).map(|row| mix(row) >> 60 < 9).collect())),
            Column {
                values: floats,
                validity: Some((0..n).map(|row| row % 7 != 0).collect::<Bitmap>()),
            },
            Column::new(Values::Integer((0..n).map(|row| (mix(row) >> 52) as i64 - 99).collect())),
            Column {
                values: Values::String(strings.into_iter().collect()),
                validity: Some((0..n).map(|row| per_row(row).0 % 3 != 2).collect()),
            },
            Column::new(Values::Unsigned((0..n).map(|row| mix(row) | 1).collect())),
        ]
        .map(SparseColumn::from)
        .into(),
    }
}

/// All rows of a measurement.
pub(crate) fn read_all(
    disk: &dyn Disk,
    path: &str,
    measurement: &str,
) -> Result<SegmentRows, SegmentError> {
    let reader = SegmentReader::open(disk, path.as_ref(), Arc::new(PageCache::new(1 << 20)))?;
    let mut out = SegmentRows::empty(&fields());
    let empty = |(_, t): &(Name, FieldType)| Column::new(Values::empty(*t));
    let mut columns: Vec<Column> = fields().iter().map(empty).collect();
    let Some(directory) = reader.directory(measurement)? else { return Ok(out) };
    let all = SeriesId(0)..=SeriesId(u64::MAX);
    for block in reader.blocks(&directory, &all, TimeRange::ALL) {
        let block = block?;
        for (series, rows) in reader.runs(&block)?.iter() {
            match out.runs.last_mut() {
                Some((last, n)) if *last == series => *n += rows.len() as u32,
                _ => out.runs.push((series, rows.len() as u32)),
            }
        }
        reader.times(&block, 0..block.rows(), &mut out.times)?;
        for (field, column) in columns.iter_mut().enumerate() {
            reader.column(&block, field, 0..block.rows(), column)?;
        }
    }
    out.columns = columns.into_iter().map(SparseColumn::from).collect();
    Ok(out)
}

/// Whether the same values are there.
pub(crate) fn same(a: &SegmentRows, b: &SegmentRows) -> bool {
    let columns = a.columns.iter().zip(&b.columns).all(|(a, b)| {
        let same_bits = |at: usize| match (&a.values, &b.values) {
            (Values::Float(a), Values::Float(b)) => a[at].to_bits() == b[at].to_bits(),
            (Values::Integer(a), Values::Integer(b)) => a[at] == b[at],
            (Values::Unsigned(a), Values::Unsigned(b)) => a[at] == b[at],
            (Values::Boolean(a), Values::Boolean(b)) => a.get(at) == b.get(at),
            (Values::String(a), Values::String(b)) => a.get(at) == b.get(at),
            _ => false,
        };
        a.present == b.present
            && a.values.len() == b.values.len()
            && (0..a.values.len()).all(same_bits)
    });
    a.runs == b.runs && a.times == b.times && columns
}
