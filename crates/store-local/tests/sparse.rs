//! Rows of thousands of fields of which each has a handful: what is read of them is what was written, in parts that are
//! small, wherever they are.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;

use model::{FieldType, Name, Scalar, TimeRange};
use platform::{FaultConfig, SimDisk};
use store::testing::{POLICY, Row, matching, rows_of, scan_everything, series_key, write};
use store::{DeleteRequest, ScanItem, ScanRequest, ScanSlice, Store, TimeOrder};
use store_local::LocalStore;

mod common;
use common::{open, random};

const FIELDS: u64 = 1500;
/// Rows of the longest series: several times what is copied at once of so many fields.
const ROWS: u64 = 4000;
/// Cells that a batch has at most, and a row more.
const CELLS_MAX: usize = (1 << 20) + FIELDS as usize + 1;

type Values = BTreeMap<String, Scalar>;
type Model = BTreeMap<(String, i64), Values>;

/// One to three fields, of every type.
fn row(key: &str, time: i64, seed: u64) -> (Row, Values) {
    let values: Values = (0..1 + random(seed) % 3)
        .map(|at| {
            let number = random(seed * 7 + at);
            let field = number % FIELDS;
            let value = match field % 5 {
                0 => Scalar::Integer(number as i64),
                1 => Scalar::Float(number as f64 / 4.0),
                2 => Scalar::Boolean(number.is_multiple_of(3)),
                3 => Scalar::Unsigned(number),
                _ => Scalar::String(format!("text {}", number % 50).into()),
            };
            (format!("f{field:04}"), value)
        })
        .collect();
    let fields: Vec<(&str, Scalar)> = values.iter().map(|(f, v)| (f.as_str(), v.clone())).collect();
    (Row::new(key, &fields, time), values)
}

/// Writes rows in requests of some hundred; later ones complete or replace what was there.
fn add(store: &LocalStore, model: &mut Model, rows: impl Iterator<Item = (String, i64, u64)>) {
    let rows: Vec<Row> = rows
        .map(|(key, time, seed)| {
            let (row, values) = row(&key, time, seed);
            model.entry((key, time)).or_default().extend(values);
            row
        })
        .collect();
    for rows in rows.chunks(700) {
        write(store, POLICY, rows, 0).unwrap();
    }
}

/// The rows of a request, whose batches are small.
fn read(store: &LocalStore, request: &ScanRequest) -> Vec<Row> {
    let scan = store.scan(request).unwrap();
    let mut cursor = scan.open(&ScanSlice::all()).unwrap();
    let mut rows = Vec::new();
    while let Some(item) = cursor.next().unwrap() {
        let ScanItem::Rows(batch) = item else { panic!("summaries were not asked for") };
        assert!(batch.rows * batch.columns.len() <= CELLS_MAX, "{} rows at once", batch.rows);
        rows.extend(rows_of(&*scan, request, &batch));
    }
    rows
}

fn expected(model: &Model, request: &ScanRequest) -> Vec<Row> {
    let mut rows = Vec::new();
    for ((key, time), values) in model {
        let wanted = request
            .fields
            .iter()
            .filter_map(|(name, _)| values.get(&**name).map(|value| (&**name, value.clone())));
        let fields: Vec<(&str, Scalar)> = wanted.collect();
        if request.time.contains(*time) && !fields.is_empty() {
            rows.push(Row::new(key, &fields, *time));
        }
    }
    if request.order == TimeOrder::Descending {
        // Series after series, each from its end.
        rows.sort_by(|a, b| (&a.key, b.time_ns).cmp(&(&b.key, a.time_ns)));
    }
    rows
}

/// What each field has first in each series, with its time.
type Ends = BTreeMap<(String, Name), (i64, Scalar)>;

fn ends(store: &LocalStore, request: &ScanRequest) -> Ends {
    let scan = store.scan(request).unwrap();
    let series: Vec<u32> = (0..scan.series().len).collect();
    let batch = scan.field_ends(&series, TimeRange::ALL).unwrap().unwrap();
    let mut found = Ends::new();
    for (at, span) in batch.spans.iter().enumerate() {
        let key = series_key(&*scan, request, span.series);
        for ((name, _), field) in request.fields.iter().zip(&batch.fields) {
            let is_last = request.order == TimeOrder::Descending;
            let ends = if is_last { &field.lasts } else { &field.firsts };
            if field.counts[at] > 0 {
                let end = (ends.times[at], ends.values.get(at));
                found.insert((key.clone(), name.clone()), end);
            }
        }
    }
    found
}

fn expected_ends(model: &Model, request: &ScanRequest) -> Ends {
    let mut ends = Ends::new();
    for row in expected(model, request) {
        for (name, value) in row.fields {
            ends.entry((row.key.clone(), name)).or_insert((row.time_ns, value));
        }
    }
    ends
}

fn check(store: &LocalStore, model: &Model, at: &str) {
    let everything = scan_everything(store, POLICY, "m").unwrap();
    for time in [TimeRange::ALL, TimeRange::new(1500, 2600)] {
        for order in [TimeOrder::Ascending, TimeOrder::Descending] {
            for fields in [usize::MAX, 3, 1] {
                let mut request = ScanRequest { time, order, ..everything.clone() };
                request.fields.truncate(fields);
                let (found, expected) = (read(store, &request), expected(model, &request));
                assert_eq!(found.len(), expected.len(), "{at}: {time:?} {order:?} {fields}");
                let other = found.iter().zip(&expected).find(|(a, b)| a != b);
                assert_eq!(other, None, "{at}: {time:?} {order:?} {fields}");
                let (found, expected) = (ends(store, &request), expected_ends(model, &request));
                assert_eq!(found.len(), expected.len(), "{at}: ends {time:?} {order:?} {fields}");
                let other = found.iter().zip(&expected).find(|(a, b)| a != b);
                assert_eq!(other, None, "{at}: ends {time:?} {order:?} {fields}");
            }
        }
    }
}

#[test]
fn rows_with_few_of_their_fields_are_read_in_small_parts() {
    let disk = SimDisk::new(1, FaultConfig::default());
    let store = open(&disk, 256 << 20);
    let mut model = Model::new();
    // A long series in order of time, one that is not, and many short ones.
    let long = (0..ROWS).map(|at| ("m,id=a".to_owned(), at as i64, at));
    let any =
        (0..ROWS / 4).map(|at| ("m,id=b".to_owned(), (random(at) % 3000) as i64, at + 10_000));
    let short = (0..ROWS / 4).map(|at| (format!("m,id=c{:03}", at % 200), at as i64, at + 20_000));
    add(&store, &mut model, long.chain(any).chain(short));
    check(&store, &model, "in memory");
    store.flush().unwrap();
    check(&store, &model, "in a segment");
    // The same times and others once more: two sources that overlap.
    let again = (0..ROWS).map(|at| ("m,id=a".to_owned(), at as i64 / 2 * 3, at + 30_000));
    let short = (0..ROWS / 4).map(|at| (format!("m,id=c{:03}", at % 300), at as i64, at + 40_000));
    add(&store, &mut model, again.chain(short));
    check(&store, &model, "in a segment and in memory");
    store.flush().unwrap();
    check(&store, &model, "in two segments");
    // Rows that are hidden, in memory too.
    let late = (0..900).map(|at| ("m,id=a".to_owned(), 7000 + at as i64, at + 50_000));
    add(&store, &mut model, late);
    let gone: Vec<Row> = model
        .iter()
        .filter(|((key, time), _)| key == "m,id=a" && time % 11 == 0)
        .map(|((key, time), values)| {
            let fields: Vec<(&str, Scalar)> =
                values.iter().map(|(f, v)| (f.as_str(), v.clone())).collect();
            Row::new(key, &fields, *time)
        })
        .collect();
    let fields: Vec<(Name, FieldType)> = scan_everything(&store, POLICY, "m").unwrap().fields;
    let target = matching(POLICY, "m", &fields, &gone);
    store.delete(&DeleteRequest { database: POLICY.database, target }).unwrap();
    model.retain(|(key, time), _| key != "m,id=a" || time % 11 != 0);
    check(&store, &model, "with rows that were deleted");
    store.flush().unwrap();
    check(&store, &model, "deleted before they were flushed");
    store.settle().unwrap();
    check(&store, &model, "settled");
    store.close().unwrap();
    check(&open(&disk, 256 << 20), &model, "after a restart");
}
