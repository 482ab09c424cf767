use std::borrow::Cow;
use std::collections::BTreeMap;

use model::{
    Bitmap, Column, DatabaseId, FieldType, PolicyId, SeriesId, TimeRange, Values, string_slot,
};
use proptest::prelude::*;

use super::*;
use crate::rows::NO_FIELD;

const FIELDS: [(FieldNo, FieldType); 3] = [
    (FieldNo(0), FieldType::Integer),
    (FieldNo(1), FieldType::String),
    (FieldNo(2), FieldType::Boolean),
];

fn table() -> Memtable {
    Memtable::new(DatabaseId(1), PolicyId(1), TimeRange::ALL, Lsn(0), Arc::default())
}

/// Writes one row with the fields of `mask`; every value is made of `value`. Other measurements have layouts between those
/// of these rows.
fn write(table: &Memtable, series: u64, time_ns: i64, mask: u8, value: i64) {
    let fields: Vec<_> = (0..3).filter(|f| mask >> f & 1 == 1).map(|f| FIELDS[f]).collect();
    let text = format!("text {value}");
    let slots: Vec<u64> = fields
        .iter()
        .map(|(_, t)| match t {
            FieldType::String => string_slot(0, text.len() as u32),
            FieldType::Boolean => value as u64 & 1,
            _ => value as u64,
        })
        .collect();
    let of_another =
        RowLayout { measurement: MeasurementNo(10 + u32::from(mask)), fields: FIELDS.to_vec() };
    table.intern_layouts(&[of_another]);
    let row = BatchRow { series: SeriesId(series), time_ns, layout: 0, values_start: 0 };
    let batch = RowBatch {
        database: table.database,
        policy: table.policy,
        partition_ns: 1,
        layouts: vec![RowLayout { measurement: MeasurementNo(1), fields }],
        rows: vec![row],
        values: Cow::Owned(slots),
        strings: Cow::Owned(text.into_bytes()),
    };
    let numbers = table.intern_layouts(&batch.layouts);
    table.append(shard_of(row.series), &batch, &numbers, std::iter::once(row));
}

/// What the columns should be: per time the last value of each field.
fn expected(rows: &BTreeMap<i64, [Option<i64>; 3]>) -> SeriesBlock {
    let column = |values: Values, field: usize| {
        let validity: Bitmap = rows.values().map(|r| r[field].is_some()).collect();
        let all = validity.count_ones() == rows.len();
        Column { values, validity: (!all).then_some(validity) }
    };
    let of = |field: usize| rows.values().map(move |r| r[field]);
    let texts: Vec<String> =
        of(1).map(|v| v.map_or(String::new(), |v| format!("text {v}"))).collect();
    SeriesBlock {
        times: rows.keys().copied().collect(),
        columns: vec![
            column(Values::Integer(of(0).map(|v| v.unwrap_or(0)).collect()), 0),
            column(Values::String(texts.iter().map(String::as_str).collect()), 1),
            column(Values::Boolean(of(2).map(|v| v.unwrap_or(0) & 1 == 1).collect()), 2),
        ],
    }
}

proptest! {
    #[test]
    fn reads_what_was_written_last(
        writes in prop::collection::vec((0u64..5, 0i64..40, 1u8..8, any::<i64>()), 0..400),
        (from, to) in (0i64..40, 0i64..40),
    ) {
        let table = table();
        let mut model: BTreeMap<u64, BTreeMap<i64, [Option<i64>; 3]>> = BTreeMap::new();
        for (series, time, mask, value) in writes {
            write(&table, series, time, mask, value);
            let row = model.entry(series).or_default().entry(time).or_default();
            for (field, slot) in row.iter_mut().enumerate() {
                if mask >> field & 1 == 1 {
                    *slot = Some(value);
                }
            }
        }
        for series in 0..5 {
            let rows = model.get(&series).cloned().unwrap_or_default();
            let range = TimeRange::new(from, to);
            let rows: BTreeMap<_, _> =
                rows.into_iter().filter(|(t, _)| range.contains(*t)).collect();
            let read = table.read(SeriesId(series), range, &Pin::ALL, &table.places(MeasurementNo(1), &FIELDS), None);
            prop_assert_eq!(read.is_some(), !rows.is_empty());
            if let Some(read) = read {
                let expected = expected(&rows);
                prop_assert_eq!(read.times, expected.times);
                prop_assert_eq!(read.columns, expected.columns);
            }
        }
        prop_assert_eq!(table.all_series().len(), model.len());
    }
}

/// Steps of time and the fields written: in order, with some late rows, or in no order at all.
fn writes() -> impl Strategy<Value = Vec<(i64, u8)>> {
    let forward = 1i64..4;
    let late = prop_oneof![30 => 1i64..4, 1 => -30i64..1];
    let any = -5i64..6;
    let rows = |step: BoxedStrategy<i64>| prop::collection::vec((step, 1u8..8), 1..700);
    prop_oneof![rows(forward.boxed()), rows(late.boxed()), rows(any.boxed())]
}

proptest! {
    #[test]
    fn few_rows_are_the_first_or_the_last(
        writes in writes(),
        (from, to) in (-300i64..1500, 0i64..1500),
        wanted in 0usize..80,
        seen in 0u32..700,
        from_end in any::<bool>(),
        fields in 1usize..3,
        counted in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let table = table();
        let mut time = 0;
        for ((step, mask), value) in writes.iter().zip(0..) {
            time += step;
            write(&table, 3, time, *mask, value);
        }
        let (range, fields) = (TimeRange::new(from, to), &FIELDS[..fields]);
        let mut pin = Pin::ALL;
        pin.0[shard_of(SeriesId(3))] = seen;
        let counted = counted.map(|field| field.index(fields.len()));
        let with_any = counted.map(|field| [field].into());
        let few = Few { rows: wanted, from_end, with_any, is_alone: false };
        let all = table.read(SeriesId(3), range, &pin, &table.places(MeasurementNo(1), fields), None);
        let some = table.read(SeriesId(3), range, &pin, &table.places(MeasurementNo(1), fields), Some(&few));
        let (Some(all), Some(some)) = (&all, &some) else {
            prop_assert_eq!(all.is_some(), some.is_some());
            return Ok(());
        };
        // What there is of them is as it is among all, from the right end on.
        let (total, got) = (all.times.len(), some.times.len());
        let rows = if from_end { total - got..total } else { 0..got };
        prop_assert_eq!(&some.times[..], &all.times[rows.clone()]);
        for (some, all) in some.columns.iter().zip(&all.columns) {
            for (at, row) in rows.clone().enumerate() {
                prop_assert_eq!(some.is_valid(at), all.is_valid(row));
                if let (Values::Integer(some), Values::Integer(all)) = (&some.values, &all.values) {
                    prop_assert_eq!(some[at], all[row]);
                }
            }
        }
        let has_value = |block: &SeriesBlock, row: usize| match counted {
            Some(field) => block.columns[field].is_valid(row),
            None => block.columns.iter().any(|column| column.is_valid(row)),
        };
        let found = (0..got).filter(|row| has_value(some, *row)).count();
        prop_assert!(got == total || (wanted > 0 && found == wanted), "{} of {}", found, got);
        // Where no row elsewhere is completed by them, others may be missing.
        let few = Few { is_alone: true, ..few };
        let alone = table.read(SeriesId(3), range, &pin, &table.places(MeasurementNo(1), fields), Some(&few));
        let alone = alone.unwrap_or_default();
        let mattering = |block: &SeriesBlock| -> Vec<i64> {
            let rows = (0..block.times.len()).filter(|row| has_value(block, *row));
            rows.map(|row| block.times[row]).collect()
        };
        prop_assert_eq!(mattering(&alone), mattering(some));
        prop_assert!(alone.times.iter().all(|time| some.times.contains(time)));
    }
}

proptest! {
    /// The chunks of such a series are chosen by their times.
    #[test]
    fn any_times_of_a_long_series_are_read(
        steps in prop_oneof![
            prop::collection::vec(1i64..4, 1..2500),
            prop::collection::vec(prop_oneof![50 => 1i64..4, 1 => -900i64..1], 1..2500),
            prop::collection::vec(-50i64..51, 1..2500),
        ],
        ranges in prop::collection::vec((-300i64..3000, 0i64..900), 1..8),
        at_rows in prop::collection::vec(any::<[prop::sample::Index; 2]>(), 1..40),
    ) {
        let table = table();
        let mut model: BTreeMap<i64, [Option<i64>; 3]> = BTreeMap::new();
        let mut time = 0;
        for (step, value) in steps.iter().zip(0..) {
            time += step;
            write(&table, 3, time, 7, value);
            model.insert(time, [Some(value); 3]);
        }
        // Between any times, and from one row exactly to another.
        let times: Vec<i64> = model.keys().copied().collect();
        let at_rows = at_rows.iter().map(|ends| {
            let [a, b] = ends.map(|end| *end.get(&times));
            (a.min(b), a.max(b))
        });
        let ranges = ranges.into_iter().map(|(from, length)| (from, from + length));
        for (from, to) in ranges.chain(at_rows) {
            let range = TimeRange::new(from, to);
            let rows: BTreeMap<_, _> =
                model.range(from..=to).map(|(time, row)| (*time, *row)).collect();
            let read = table.read(SeriesId(3), range, &Pin::ALL, &table.places(MeasurementNo(1), &FIELDS), None).unwrap_or_default();
            prop_assert_eq!(&read.times, &rows.keys().copied().collect::<Vec<_>>());
            if !rows.is_empty() {
                prop_assert_eq!(read.columns, expected(&rows).columns);
            }
        }
    }
}

#[test]
fn many_rows_and_wide_rows_fit() {
    let table = table();
    for time in 0..50_000 {
        write(&table, 7, time, 1, time);
    }
    let block = table
        .read(
            SeriesId(7),
            TimeRange::ALL,
            &Pin::ALL,
            &table.places(MeasurementNo(1), &FIELDS[..1]),
            None,
        )
        .unwrap();
    assert_eq!(block.times.len(), 50_000);
    assert_eq!(block.columns[0].values, Values::Integer((0..50_000).collect()));
    let bytes = table.bytes();
    assert!((50_000 * 24..50_000 * 48).contains(&bytes), "{bytes}");

    let fields: Vec<_> =
        (0..ROW_VALUES_MAX as u32).map(|f| (FieldNo(f), FieldType::Integer)).collect();
    let row = BatchRow { series: SeriesId(8), time_ns: 1, layout: 0, values_start: 0 };
    let batch = RowBatch {
        database: table.database,
        policy: table.policy,
        partition_ns: 1,
        layouts: vec![RowLayout { measurement: MeasurementNo(2), fields }],
        rows: vec![row],
        values: Cow::Owned((0..ROW_VALUES_MAX as u64).collect()),
        strings: Cow::Owned(Vec::new()),
    };
    let numbers = table.intern_layouts(&batch.layouts);
    for time_ns in 0..3 {
        let row = BatchRow { time_ns, ..row };
        table.append(shard_of(row.series), &batch, &numbers, std::iter::once(row));
    }
    let last = (FieldNo(ROW_VALUES_MAX as u32 - 1), FieldType::Integer);
    let block = table
        .read(
            SeriesId(8),
            TimeRange::ALL,
            &Pin::ALL,
            &table.places(MeasurementNo(2), &[last]),
            None,
        )
        .unwrap();
    assert_eq!(block.columns[0].values, Values::Integer(vec![ROW_VALUES_MAX as i64 - 1; 3]));
    assert_eq!(table.fields_of(MeasurementNo(2)).len(), ROW_VALUES_MAX);
}

#[test]
fn an_empty_memtable_is_small() {
    assert!(table().bytes() == 0);
    let table = table();
    write(&table, 1, 1, 1, 1);
    assert!(table.bytes() < 1024, "{}", table.bytes());
}

#[test]
fn a_pin_hides_what_comes_later() {
    let table = table();
    write(&table, 1, 1, 1, 10);
    let pin = table.pin();
    write(&table, 1, 1, 1, 20);
    write(&table, 1, 2, 1, 30);
    write(&table, 2, 1, 1, 40);
    let values = |series, pin: &Pin| {
        let block = table.read(
            SeriesId(series),
            TimeRange::ALL,
            pin,
            &table.places(MeasurementNo(1), &FIELDS[..1]),
            None,
        )?;
        Some(block.columns[0].values.clone())
    };
    assert_eq!(values(1, &pin), Some(Values::Integer(vec![10])));
    assert_eq!(values(1, &table.pin()), Some(Values::Integer(vec![20, 30])));
    assert_eq!(values(2, &pin), None);
}

#[test]
fn room_is_set_aside_for_what_can_be_told_apart() {
    let table = table();
    assert!(table.claim(ROWS_MAX - 1, 10));
    assert!(!table.claim(2, 0), "arrival numbers would repeat");
    assert!(!table.claim(1, TEXT_BYTES_MAX));
    assert!(table.claim(1, TEXT_BYTES_MAX - 10), "what was refused took nothing");
    assert!(!table.claim(usize::MAX, usize::MAX));
}

#[test]
fn many_fields_of_which_some_do_not_exist_are_read() {
    let table = table();
    write(&table, 7, 5, 1, 50);
    let mut fields: Vec<_> = (100..130).map(|field| (FieldNo(field), FieldType::Float)).collect();
    fields.extend([(NO_FIELD, FieldType::Float), FIELDS[0], (NO_FIELD, FieldType::String)]);
    let places = table.places(MeasurementNo(1), &fields);
    let block = table.read(SeriesId(7), TimeRange::ALL, &Pin::ALL, &places, None).unwrap();
    assert_eq!(block.times, [5]);
    let found = block.columns.iter().map(|column| column.is_valid(0));
    assert_eq!(found.collect::<Vec<_>>(), [vec![false; 31], vec![true, false]].concat());
}
