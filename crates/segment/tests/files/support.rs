//! What the integration tests share: rows made of plain arithmetic, and reading them all back.

use std::sync::Arc;

use model::{Bitmap, Column, FieldType, Name, SeriesId, TimeRange, Values};
use platform::{Disk, PageCache};
use segment::{SegmentError, SegmentReader, SegmentRows};

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
        columns: vec![
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
        ],
    }
}

/// All rows of a measurement; missing values are as `extend_missing` leaves them.
pub(crate) fn read_all(
    disk: &dyn Disk,
    path: &str,
    measurement: &str,
) -> Result<SegmentRows, SegmentError> {
    let reader = SegmentReader::open(disk, path.as_ref(), Arc::new(PageCache::new(1 << 20)))?;
    let mut out = SegmentRows::empty(&fields());
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
        for (field, column) in out.columns.iter_mut().enumerate() {
            reader.column(&block, field, 0..block.rows(), column)?;
        }
    }
    Ok(out)
}

/// Whether the same values are there; what stands for missing ones is nobody's business.
pub(crate) fn same(a: &SegmentRows, b: &SegmentRows) -> bool {
    let columns = a.columns.iter().zip(&b.columns).all(|(a, b)| {
        let same_bits = |row: usize| match (&a.values, &b.values) {
            (Values::Float(a), Values::Float(b)) => a[row].to_bits() == b[row].to_bits(),
            (Values::Integer(a), Values::Integer(b)) => a[row] == b[row],
            (Values::Unsigned(a), Values::Unsigned(b)) => a[row] == b[row],
            (Values::Boolean(a), Values::Boolean(b)) => a.get(row) == b.get(row),
            (Values::String(a), Values::String(b)) => a.get(row) == b.get(row),
            _ => false,
        };
        let same_row =
            |row: usize| a.is_valid(row) == b.is_valid(row) && (!a.is_valid(row) || same_bits(row));
        a.len() == b.len() && (0..a.len()).all(same_row)
    });
    a.runs == b.runs && a.times == b.times && columns
}
