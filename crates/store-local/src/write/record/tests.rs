use std::borrow::Cow;

use model::{FieldType, TimeRange, string_slot, string_slot_parts};
use proptest::prelude::*;

use super::*;
use crate::rows::{BatchRow, RowLayout};
use crate::tombstone::{HiddenSeries, RowSet};

type Rows = Vec<(u8, u64, i64, i64)>;

/// A batch over three layouts, values made of the rows' last number.
fn batch(rows: &Rows) -> RowBatch<'static> {
    let field = |no, t| (FieldNo(no), t);
    let layouts = vec![
        RowLayout { measurement: MeasurementNo(1), fields: vec![field(0, FieldType::Integer)] },
        RowLayout {
            measurement: MeasurementNo(1),
            fields: vec![field(2, FieldType::String), field(0, FieldType::Integer)],
        },
        RowLayout {
            measurement: MeasurementNo(7),
            fields: vec![
                field(0, FieldType::Float),
                field(1, FieldType::Unsigned),
                field(2, FieldType::Boolean),
            ],
        },
    ];
    let (mut out, mut values, mut strings) = (Vec::new(), Vec::new(), Vec::new());
    for (layout, series, time_ns, value) in rows {
        let values_start = values.len() as u32;
        for (_, field_type) in &layouts[*layout as usize].fields {
            values.push(match field_type {
                FieldType::Boolean => *value as u64 & 1,
                FieldType::String => {
                    let text = format!("{}", value % 50);
                    strings.extend_from_slice(text.as_bytes());
                    string_slot((strings.len() - text.len()) as u32, text.len() as u32)
                }
                _ => *value as u64,
            });
        }
        let (series, time_ns, layout) = (SeriesId(*series), *time_ns, u32::from(*layout));
        out.push(BatchRow { series, time_ns, layout, values_start });
    }
    RowBatch {
        database: DatabaseId(1),
        policy: PolicyId(2),
        partition_ns: 3_600_000_000_000,
        layouts,
        rows: out,
        values: Cow::Owned(values),
        strings: Cow::Owned(strings),
    }
}

/// Rows with their values spelled out.
fn spelled(batch: &RowBatch<'_>) -> Vec<String> {
    batch
        .rows
        .iter()
        .map(|row| {
            let layout = &batch.layouts[row.layout as usize];
            let values: Vec<String> = layout
                .fields
                .iter()
                .zip(batch.row_values(row))
                .map(|((no, t), slot)| match t {
                    FieldType::String => {
                        let (start, len) = string_slot_parts(*slot);
                        let text = &batch.strings[start as usize..(start + len) as usize];
                        format!("{no:?}={text:?}")
                    }
                    _ => format!("{no:?}={slot}"),
                })
                .collect();
            format!("{:?} {} {:?} {values:?}", row.series, row.time_ns, layout.measurement)
        })
        .collect()
}

proptest! {
    #[test]
    fn rows_come_back_in_order(
        mut rows in prop::collection::vec((0u8..3, any::<u64>(), any::<i64>(), any::<i64>()), 0..200),
        by_series: bool,
    ) {
        if by_series {
            rows.iter_mut().for_each(|row| row.1 %= 9);
            rows.sort_by_key(|row| row.1);
        }
        let batch = batch(&rows);
        let expected = spelled(&batch);
        let bytes = Record::Rows(batch).encode();
        let Record::Rows(read) = Record::decode(&bytes).unwrap() else { panic!("not rows") };
        prop_assert_eq!(spelled(&read), expected);
        prop_assert_eq!((read.database, read.policy), (DatabaseId(1), PolicyId(2)));
        prop_assert_eq!(read.partition_ns, 3_600_000_000_000);
    }

    #[test]
    fn damaged_records_are_refused_or_read_but_never_panic(
        rows in prop::collection::vec((0u8..3, 0u64..9, 0i64..9, any::<i64>()), 1..20),
        (at, bit) in (any::<prop::sample::Index>(), 0u8..8),
    ) {
        let mut bytes = Record::Rows(batch(&rows)).encode();
        for cut in 0..bytes.len() {
            prop_assert!(Record::decode(&bytes[..cut]).is_err());
        }
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let _ = Record::decode(&bytes);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = Record::decode(&bytes);
    }
}

/// A counter in each of ten series: values far from those of other series, near their neighbours.
#[test]
fn rows_by_series_take_a_fraction_of_the_space() {
    let mut sent: Rows = (0..2000u64)
        .map(|at| (0, at % 10, (at / 10) as i64, ((at % 10) << 30) as i64 + at as i64))
        .collect();
    let as_sent = Record::Rows(batch(&sent)).encode().len();
    sent.sort_by_key(|row| row.1);
    let by_series = Record::Rows(batch(&sent)).encode().len();
    assert!(by_series * 10 < as_sent, "{by_series} of {as_sent} bytes");
}

#[test]
fn other_records_come_back() {
    let stone = Tombstone {
        id: 1,
        database: DatabaseId(1),
        policy: None,
        measurement: Some("m".into()),
        series: HiddenSeries::Some(RoaringTreemap::from_iter([3])),
        time: TimeRange::ALL,
    };
    let records = [
        Record::Series(
            DatabaseId(1),
            vec![SeriesDefinition { series: SeriesId(5), key: "m,a=b".into() }],
        ),
        Record::Schema(vec![
            SchemaChange::Measurement {
                no: MeasurementNo(1),
                database: DatabaseId(1),
                name: "m".into(),
            },
            SchemaChange::Field {
                measurement: MeasurementNo(1),
                no: FieldNo(0),
                name: "f".into(),
                field_type: FieldType::String,
            },
            SchemaChange::Drop(MeasurementNo(1)),
        ]),
        Record::Delete(stone),
        Record::DropPartitions {
            database: DatabaseId(1),
            policy: Some(PolicyId(0)),
            before_ns: i64::MAX,
        },
        Record::DropPartition {
            database: DatabaseId(1),
            policy: PolicyId(7),
            time: TimeRange::new(-5, i64::MAX),
        },
        Record::RemoveDatabase(DatabaseId(1), SeriesId(300)),
        Record::RemoveSeries(DatabaseId(1), RoaringTreemap::from_iter([1, 2])),
    ];
    for record in records {
        let bytes = record.encode();
        assert_eq!(format!("{:?}", Record::decode(&bytes).unwrap()), format!("{record:?}"));
        for cut in 0..bytes.len() {
            assert!(Record::decode(&bytes[..cut]).is_err());
        }
    }
}

/// The records that docs/formats/log-records.md shows, in its order.
fn documented() -> Vec<Record<'static>> {
    let (database, measurement) = (DatabaseId(1), MeasurementNo(2));
    let field = |no, name: &str, field_type| SchemaChange::Field {
        measurement,
        no: FieldNo(no),
        name: name.into(),
        field_type,
    };
    let fields = vec![(FieldNo(0), FieldType::Integer), (FieldNo(1), FieldType::String)];
    let row = |series, time_ns, values_start| BatchRow {
        series: SeriesId(series),
        time_ns,
        layout: 0,
        values_start,
    };
    let rows = RowSet::new(vec![(SeriesId(7), vec![1000, 2000]), (SeriesId(8), vec![1500])]);
    vec![
        Record::Schema(vec![
            SchemaChange::Measurement { no: measurement, database, name: "cpu".into() },
            field(0, "idle", FieldType::Integer),
            field(1, "state", FieldType::String),
        ]),
        Record::Series(
            database,
            vec![
                SeriesDefinition { series: SeriesId(7), key: "cpu,host=a".into() },
                SeriesDefinition { series: SeriesId(8), key: "cpu,host=b".into() },
            ],
        ),
        Record::Rows(RowBatch {
            database,
            policy: PolicyId(3),
            partition_ns: 3_600_000_000_000,
            layouts: vec![RowLayout { measurement, fields }],
            rows: vec![row(7, 1000, 0), row(8, 1000, 2), row(7, 2000, 4)],
            values: Cow::Owned(vec![
                90,
                string_slot(0, 2),
                95,
                string_slot(0, 2),
                91,
                string_slot(2, 3),
            ]),
            strings: Cow::Owned(b"upoff".to_vec()),
        }),
        Record::Rows(documented_apart()),
        Record::Delete(Tombstone {
            id: 4,
            database,
            policy: None,
            measurement: Some("cpu".into()),
            series: HiddenSeries::Some(RoaringTreemap::from_iter([7])),
            time: TimeRange::new(1000, 1999),
        }),
        Record::RemoveSeries(database, RoaringTreemap::from_iter([7, 8])),
        Record::DropPartitions {
            database,
            policy: Some(PolicyId(3)),
            before_ns: 3_600_000_000_000,
        },
        Record::RemoveDatabase(database, SeriesId(9)),
        Record::DropPartition {
            database,
            policy: PolicyId(3),
            time: TimeRange::new(0, 3_599_999_999_999),
        },
        Record::Delete(Tombstone {
            id: 5,
            database,
            policy: Some(PolicyId(3)),
            measurement: Some("cpu".into()),
            time: rows.time(),
            series: HiddenSeries::Rows(rows),
        }),
    ]
}

fn documented_apart() -> RowBatch<'static> {
    let fields = vec![(FieldNo(0), FieldType::Integer), (FieldNo(2), FieldType::Float)];
    let sent = [
        (7, 1000, 9_000_000, 20.5f64),
        (8, 1000, 15, 3.0),
        (7, 2000, 9_000_001, 20.4),
        (8, 2000, 15, 3.5),
        (7, 3000, 9_000_003, 20.4),
    ];
    let row = |(at, row): (usize, &(u64, i64, u64, f64))| BatchRow {
        series: SeriesId(row.0),
        time_ns: row.1,
        layout: 0,
        values_start: 2 * at as u32,
    };
    RowBatch {
        database: DatabaseId(1),
        policy: PolicyId(3),
        partition_ns: 3_600_000_000_000,
        layouts: vec![RowLayout { measurement: MeasurementNo(2), fields }],
        rows: sent.iter().enumerate().map(row).collect(),
        values: sent.iter().flat_map(|row| [row.2, row.3.to_bits()]).collect(),
        strings: Cow::Borrowed(b""),
    }
}

#[test]
fn the_examples_in_the_documents_are_what_is_written() {
    let page = include_str!("../../../../../docs/formats/log-records.md");
    let listings = crate::documented::listings(page);
    let records = documented();
    assert_eq!(listings.len(), records.len(), "a listing for each record");
    for (record, listed) in records.iter().zip(listings) {
        let bytes = record.encode();
        assert_eq!(
            bytes, listed,
            "{record:?}: what is written changed. Logs of users must stay readable: give the new \
             layout a new kind, keep the old one and its listing"
        );
        let read = Record::decode(&listed).unwrap();
        if !matches!(read, Record::Rows(_)) {
            assert_eq!(format!("{read:?}"), format!("{record:?}"));
        }
        assert_eq!(read.encode(), listed);
    }
}
