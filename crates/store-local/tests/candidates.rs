//! Of many short series in several partitions a filter finds the same rows, however few of the series are looked at.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use model::{CompareOp, FieldFilter, Operand, Scalar, TimeRange};
use platform::{FaultConfig, SimDisk};
use store::testing::{self, POLICY, Row, matching, read_slice, scan_everything, write};
use store::{DeleteRequest, ScanSlice, Store, TimeOrder};
use store_local::LocalStore;

mod common;
use common::{open, satisfies};

const SERIES: i64 = 80;
const ROWS: i64 = 50;
const PARTITIONS: i64 = 5;
/// No value but those of [`is_rare`] rows is as large.
const RARE_MIN: i64 = 900;

/// A few rows of a few series, in some partitions.
fn is_rare(series: i64, partition: i64, row: i64) -> bool {
    partition % 2 == 1 && (series * 7 + partition) % 41 == 3 && row % 23 == 5
}

fn row(series: i64, partition: i64, row: i64) -> Row {
    let time = partition * POLICY.partition_ns + row * 1_000_000_000;
    let value = (series * 31 + row * 17) % 100;
    let x = if is_rare(series, partition, row) { RARE_MIN + value } else { value };
    let mut fields = vec![("x", Scalar::Integer(x)), ("y", Scalar::Integer(60 + row % 50))];
    if (series + row) % 5 > 0 {
        fields.push(("z", Scalar::Float(value as f64 / 4.0)));
    }
    Row::new(&format!("m,id={series:03}"), &fields, time)
}

fn filter(field: &str, op: CompareOp, operand: Operand) -> FieldFilter {
    FieldFilter { field: field.into(), op, operand }
}

fn number(row: &Row, name: &str) -> Option<f64> {
    let (_, value) = row.fields.iter().find(|(field, _)| &**field == name)?;
    Some(match value {
        Scalar::Integer(v) => *v as f64,
        Scalar::Float(v) => *v,
        other => panic!("{other:?} was not written"),
    })
}

fn check(store: &LocalStore, at: &str) {
    let all = testing::read_all(store, POLICY, "m").unwrap();
    let everything = scan_everything(store, POLICY, "m").unwrap();
    let constant = |value| Operand::Constant(Scalar::Integer(value));
    let rare = filter("x", CompareOp::Greater, constant(RARE_MIN - 1));
    for (name, filters) in [
        ("rare", vec![rare.clone()]),
        ("none", vec![filter("x", CompareOp::Greater, constant(2000))]),
        ("many", vec![filter("x", CompareOp::Greater, constant(50))]),
        ("fields", vec![filter("x", CompareOp::Greater, Operand::Field("y".into()))]),
        ("both", vec![rare, filter("z", CompareOp::Less, Operand::Constant(Scalar::Float(20.0)))]),
    ] {
        for (order, time) in [
            (TimeOrder::Ascending, TimeRange::ALL),
            (TimeOrder::Descending, TimeRange::ALL),
            (TimeOrder::Ascending, TimeRange::new(POLICY.partition_ns + 7_000_000_000, i64::MAX)),
        ] {
            let request =
                store::ScanRequest { order, time, filters: filters.clone(), ..everything.clone() };
            let scan = store.scan(&request).unwrap();
            let ordinals = [None, Some((0..scan.series().len).filter(|s| s % 3 > 0).collect())];
            for series in ordinals {
                let slice = ScanSlice { series: series.clone(), ..ScanSlice::all() };
                let mut found = read_slice(&*scan, &request, &slice).unwrap();
                found.retain(|row| satisfies(row, &filters));
                let keys = |ordinal| testing::series_key(&*scan, &request, ordinal);
                let wanted: Option<Vec<String>> = series
                    .map(|some: std::sync::Arc<[u32]>| some.iter().copied().map(keys).collect());
                let mut expected = all.clone();
                expected.retain(|row| {
                    let is_asked_for = wanted.as_ref().is_none_or(|keys| keys.contains(&row.key));
                    let satisfies_all = satisfies(row, &filters);
                    time.contains(row.time_ns) && is_asked_for && satisfies_all
                });
                for rows in [&mut found, &mut expected] {
                    rows.sort_by(|a, b| (&a.key, a.time_ns).cmp(&(&b.key, b.time_ns)));
                }
                assert_eq!(found, expected, "{at}: {name} {order:?} {time:?}");
            }
        }
    }
}

#[test]
fn what_a_filter_finds_among_short_series_of_several_partitions() {
    let disk = SimDisk::new(1, FaultConfig::default());
    let store = open(&disk, 64 << 20);
    let rows: Vec<Row> = (0..PARTITIONS)
        .flat_map(|partition| (0..ROWS).map(move |row| (partition, row)))
        .flat_map(|(partition, at)| (0..SERIES).map(move |series| row(series, partition, at)))
        .collect();
    write(&store, POLICY, &rows, 0).unwrap();
    check(&store, "in memory");
    store.flush().unwrap();
    store.settle().unwrap();
    check(&store, "settled");

    // Rows that satisfy a filter only with what was written later, and some that do no more.
    let later = |series: i64, x: i64| {
        let time = (PARTITIONS - 1) * POLICY.partition_ns + 9_000_000_000;
        Row::new(&format!("m,id={series:03}"), &[("x", Scalar::Integer(x))], time)
    };
    let over: Vec<Row> = (10..13).map(|series| later(series, RARE_MIN + 70 + series)).collect();
    write(&store, POLICY, &over, 0).unwrap();
    check(&store, "with rows in memory");
    store.flush().unwrap();
    check(&store, "in two segments");

    let rare: Vec<Row> = testing::read_all(&store, POLICY, "m")
        .unwrap()
        .into_iter()
        .filter(|row| number(row, "x").is_some_and(|x| x >= RARE_MIN as f64))
        .step_by(2)
        .collect();
    let fields = scan_everything(&store, POLICY, "m").unwrap().fields;
    let target = matching(POLICY, "m", &fields, &rare);
    store.delete(&DeleteRequest { database: POLICY.database, target }).unwrap();
    check(&store, "with rows that were deleted");
    store.settle().unwrap();
    check(&store, "settled again");
}
