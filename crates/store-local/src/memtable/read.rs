//! Turning a series' stored rows into columns: sorted by time, one row a time.

use std::ops::ControlFlow;

use model::{Bitmap, Column, FieldType, Strings, TimeRange, Values};

use super::LayoutTable;
use super::shard::{SeriesRows, Shard, StoredRow};
use crate::rows::FieldNo;

/// Rows of one series, sorted by time, no time twice.
#[derive(Clone, Debug, Default)]
pub(crate) struct SeriesBlock {
    pub(crate) times: Vec<i64>,
    /// The wanted fields.
    pub(crate) columns: Vec<Column>,
}

/// How many rows of a series are needed, and from which end: rows beyond them may be left out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Few {
    /// Rows that have one of the fields.
    pub(crate) rows: usize,
    /// The last ones in time, not the first.
    pub(crate) from_end: bool,
}

/// Copies the rows of a series within `time`, as far as `fields` go; with `few` at least those.
pub(super) fn read(
    shard: &Shard,
    rows: &SeriesRows,
    layouts: &LayoutTable,
    (time, arrived_before): (TimeRange, u32),
    fields: &[(FieldNo, FieldType)],
    few: Option<Few>,
) -> SeriesBlock {
    let mut found: Vec<StoredRow<'_>> = Vec::new();
    let is_few = |few: &Few| rows.ascending && (1..rows.rows as usize).contains(&few.rows);
    match few.filter(is_few) {
        Some(few) => {
            let positions: Vec<Positions> =
                fields.iter().map(|(field, _)| Positions::new(layouts, *field)).collect();
            let mut left = few.rows;
            shard.rows_until_enough(rows, few.from_end, |row| {
                let is_behind =
                    if few.from_end { row.time_ns < time.min } else { row.time_ns > time.max };
                if is_behind {
                    return ControlFlow::Break(());
                }
                if !time.contains(row.time_ns) || row.arrival >= arrived_before {
                    return ControlFlow::Continue(());
                }
                found.push(row);
                left -= usize::from(positions.iter().any(|of| of.slot(&row).is_some()));
                if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            if few.from_end {
                found.reverse();
            }
        }
        None => {
            found.reserve_exact(rows.rows as usize);
            shard.for_each_row(rows, |row| {
                if time.contains(row.time_ns) && row.arrival < arrived_before {
                    found.push(row);
                }
            });
        }
    }
    if !rows.ascending {
        // Stable: of rows with one time the later written stays behind the earlier.
        found.sort_by_key(|row| row.time_ns);
    }
    let mut times: Vec<i64> = found.iter().map(|row| row.time_ns).collect();
    times.dedup();
    let columns = fields
        .iter()
        .map(|(field, field_type)| {
            let positions = Positions::new(layouts, *field);
            if times.len() == found.len() {
                distinct_column(shard, &found, &positions, *field_type)
            } else {
                merged_column(shard, &found, &positions, *field_type)
            }
        })
        .collect();
    SeriesBlock { times, columns }
}

/// Where a field's value stands in rows of each layout.
struct Positions(Vec<Option<u32>>);

impl Positions {
    fn new(layouts: &LayoutTable, field: FieldNo) -> Self {
        let position = |fields: &[FieldNo]| fields.iter().position(|f| *f == field);
        Self(layouts.iter().map(|l| position(&l.fields).map(|p| p as u32)).collect())
    }

    #[inline]
    fn slot(&self, row: &StoredRow<'_>) -> Option<u64> {
        self.0[row.layout as usize].map(|at| row.values[at as usize])
    }
}

/// The column of rows that all have different times.
fn distinct_column(
    shard: &Shard,
    rows: &[StoredRow<'_>],
    positions: &Positions,
    field_type: FieldType,
) -> Column {
    build(shard, rows.len(), field_type, rows.iter().map(|row| positions.slot(row)))
}

/// The column of sorted rows some of which share a time: the last value of each time counts.
fn merged_column(
    shard: &Shard,
    rows: &[StoredRow<'_>],
    positions: &Positions,
    field_type: FieldType,
) -> Column {
    let same_time = rows.chunk_by(|a, b| a.time_ns == b.time_ns);
    let slots = same_time.map(|group| group.iter().rev().find_map(|row| positions.slot(row)));
    build(shard, rows.len(), field_type, slots)
}

fn build(
    shard: &Shard,
    capacity: usize,
    field_type: FieldType,
    slots: impl Iterator<Item = Option<u64>>,
) -> Column {
    let mut builder = SlotColumn::new(field_type, capacity);
    for slot in slots {
        builder.push(shard, slot);
    }
    builder.finish()
}

/// Builds a column from slots.
struct SlotColumn {
    field_type: FieldType,
    slots: Vec<u64>,
    strings: Strings,
    missing: Vec<u32>,
}

impl SlotColumn {
    fn new(field_type: FieldType, capacity: usize) -> Self {
        Self {
            field_type,
            slots: Vec::with_capacity(capacity),
            strings: Strings::new(),
            missing: Vec::new(),
        }
    }

    #[inline]
    fn push(&mut self, shard: &Shard, slot: Option<u64>) {
        if slot.is_none() {
            self.missing.push(self.slots.len() as u32);
        }
        if self.field_type == FieldType::String {
            let text = slot.map_or(&b""[..], |s| shard.string(s));
            self.strings.push(std::str::from_utf8(text).expect("BUG: stored text is UTF-8"));
        }
        self.slots.push(slot.unwrap_or(0));
    }

    fn finish(self) -> Column {
        let rows = self.slots.len();
        let values = match self.field_type {
            FieldType::Float => Values::Float(self.slots.into_iter().map(f64::from_bits).collect()),
            FieldType::Integer => {
                Values::Integer(self.slots.into_iter().map(|s| s as i64).collect())
            }
            FieldType::Unsigned => Values::Unsigned(self.slots),
            FieldType::Boolean => {
                Values::Boolean(self.slots.into_iter().map(|slot| slot != 0).collect())
            }
            FieldType::String => Values::String(self.strings),
        };
        let validity = (!self.missing.is_empty()).then(|| {
            let mut map = Bitmap::filled(rows, true);
            self.missing.iter().for_each(|at| map.set(*at as usize, false));
            map
        });
        Column { values, validity }
    }
}
