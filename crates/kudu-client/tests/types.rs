//! Every type as values and as keys, on one master and one tablet server.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod common;

use std::sync::OnceLock;

use common::{client, rows};
use kudu_client::{
    Bits, Cells, Column, DataType, Error, Missing, Operation, Predicate, RangePartition, RowBatch,
    Schema, TableSpec, Value,
};
use kudu_test_cluster::{Cluster, Options};

fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start(&Options::new(1)).unwrap())
}

const LARGE_128: [i128; 3] = [-(10_i128.pow(37)), 0, 0];
const LARGE_64: [i64; 3] = [-(10_i64.pow(17)), 0, 0];

const TYPES: &[(&str, DataType)] = &[
    ("i8", DataType::Int8),
    ("i16", DataType::Int16),
    ("i32", DataType::Int32),
    ("i64", DataType::Int64),
    ("text", DataType::String),
    ("flag", DataType::Bool),
    ("f32", DataType::Float),
    ("f64", DataType::Double),
    ("blob", DataType::Binary),
    ("micros", DataType::UnixtimeMicros),
    ("date", DataType::Date),
    ("d128", DataType::Decimal128),
    ("d64", DataType::Decimal64),
    ("d32", DataType::Decimal32),
    ("short", DataType::Varchar),
];

/// Every type, with extreme values, NULL, and left out; and with a default.
#[tokio::test(flavor = "multi_thread")]
async fn every_type_comes_back() {
    let client = client(cluster());
    let mut columns = vec![Column::new("k", DataType::Int32)];
    columns.extend(TYPES.iter().map(|(name, data_type)| {
        let column = Column::new(name, *data_type).nullable();
        match data_type {
            DataType::Decimal128 => column.decimal(38, 4),
            DataType::Decimal64 => column.decimal(18, 2),
            DataType::Decimal32 => column.decimal(9, 0),
            DataType::Varchar => column.varchar_length(3),
            _ => column,
        }
    }));
    columns.push(Column::new("with_default", DataType::Int64).default_value(42_i64));
    let schema = Schema::new(columns, 1).unwrap();
    let spec = TableSpec::new("types", schema).hash(&["k"], 2).replicas(1);
    let table = client.create_table(&spec).await.unwrap();

    for missing in [Missing::Null, Missing::Unset] {
        let with = |batch: RowBatch<'static>, index: usize, cells: Cells<'static>| {
            batch.column_where(index, cells, Bits(&[0b001]), missing)
        };
        let mut batch = RowBatch::new(Operation::Upsert, 3).column(0, Cells::Int32(&[0, 1, 2]));
        batch = with(batch, 1, Cells::Int8(&[i8::MIN, 0, 0]));
        batch = with(batch, 2, Cells::Int16(&[i16::MAX, 0, 0]));
        batch = with(batch, 3, Cells::Int32(&[i32::MIN, 0, 0]));
        batch = with(batch, 4, Cells::Int64(&[i64::MIN, 0, 0]));
        batch = with(batch, 5, Cells::Slices(&[b"Gr\xc3\xb6\xc3\x9fe\0", b"", b""]));
        batch = with(batch, 6, Cells::Bool(&[true, false, false]));
        batch = with(batch, 7, Cells::Float(&[f32::MIN_POSITIVE, 0.0, 0.0]));
        batch = with(batch, 8, Cells::Double(&[-0.0, 0.0, 0.0]));
        batch = with(batch, 9, Cells::Bytes { offsets: &[1, 3, 3, 3], data: b"\0\0\xff" });
        batch = with(batch, 10, Cells::Int64(&[i64::MAX, 0, 0]));
        batch = with(batch, 11, Cells::Int32(&[-719_162, 0, 0]));
        batch = with(batch, 12, Cells::Int128(&LARGE_128));
        batch = with(batch, 13, Cells::Int64(&LARGE_64));
        batch = with(batch, 14, Cells::Int32(&[-99_999_999, 0, 0]));
        let long =
            with(batch.clone(), 15, Cells::Slices(&[b"\xc3\xb6\xc3\xb6\xc3\xb6o", b"", b""]));
        let refused = table.write(&long).await.unwrap_err().to_string();
        assert!(refused.contains("3 characters"), "{refused}");
        batch = with(batch, 15, Cells::Slices(&[b"\xc3\xb6\xc3\xb6\xc3\xb6", b"", b""]));
        let outcome = table.write(&batch).await.unwrap();
        assert_eq!(outcome.row_errors, []);
        let got = rows(table.scan()).await.unwrap();
        assert_eq!(got.len(), 3);
        let first = &got[0];
        let expected: Vec<Value> = vec![
            Value::from(0),
            Value::Int(i8::MIN.into()),
            Value::Int(i16::MAX.into()),
            Value::from(i32::MIN),
            Value::from(i64::MIN),
            Value::Bytes(b"Gr\xc3\xb6\xc3\x9fe\0".to_vec()),
            Value::Bool(true),
            Value::Float(f32::MIN_POSITIVE),
            Value::Double(-0.0),
            Value::Bytes(b"\0\xff".to_vec()),
            Value::from(i64::MAX),
            Value::from(-719_162),
            Value::Int(-(10_i128.pow(37))),
            Value::Int(-(10_i128.pow(17))),
            Value::from(-99_999_999),
            Value::from("\u{f6}\u{f6}\u{f6}"),
            Value::from(42_i64),
        ];
        assert_eq!(*first, expected.into_iter().map(Some).collect::<Vec<_>>());
        for empty in &got[1..] {
            assert!(empty[1..16].iter().all(Option::is_none), "{empty:?}");
            assert_eq!(empty[16], Some(Value::from(42_i64)));
        }
    }
}

/// Bounds of text, several from the beginning.
#[tokio::test(flavor = "multi_thread")]
async fn ranges_of_text() {
    let client = client(cluster());
    let schema = Schema::new(vec![Column::new("name", DataType::String)], 1).unwrap();
    let between = |from: &str, to: &str| RangePartition::between(from, to);
    let ranges = [between("a", "kilo"), between("kilo", "mike"), between("x", "zulu")];
    let spec = TableSpec::new("text_ranges", schema).range(&["name"]).ranges(ranges.clone());
    let table = client.create_table(&spec.replicas(1)).await.unwrap();
    assert_eq!(table.range_partitions().await.unwrap(), ranges);
    let write = |names: &'static [&'static [u8]]| {
        let batch = RowBatch::new(Operation::Insert, names.len()).column(0, Cells::Slices(names));
        let table = table.clone();
        async move { table.write(&batch).await }
    };
    assert_eq!(write(&[b"alpha", b"kilo", b"yankee"]).await.unwrap().row_errors, []);
    let outside = write(&[b"november"]).await;
    assert!(matches!(outside, Err(Error::NotCovered { rows: 1, .. })), "{outside:?}");
}

/// A row that goes to the wrong tablet is refused by the server, so that whatever is accepted was
/// routed rightly.
#[tokio::test(flavor = "multi_thread")]
async fn rows_of_all_key_types_are_routed_as_the_servers_do() {
    let client = client(cluster());
    let columns = vec![
        Column::new("a", DataType::Int8),
        Column::new("b", DataType::String),
        Column::new("c", DataType::Int64),
        Column::new("d", DataType::Binary),
        Column::new("e", DataType::Int16),
    ];
    let schema = Schema::new(columns, 5).unwrap();
    let spec = TableSpec::new("routed", schema)
        .hash_seeded(&["b", "a"], 3, 7)
        .hash(&["d"], 2)
        .range(&["c", "e"])
        .ranges([
            RangePartition { lower: vec![], upper: vec![Value::from(0)] },
            RangePartition {
                lower: vec![Value::from(0)],
                upper: vec![Value::from(0), Value::from(5)],
            },
            RangePartition { lower: vec![Value::from(0), Value::from(5)], upper: vec![] },
        ])
        .replicas(1);
    let table = client.create_table(&spec).await.unwrap();
    assert_eq!(table.range_partitions().await.unwrap().len(), 3);
    let n = 500_usize;
    let a: Vec<i8> = (0..n).map(|i| (i * 37) as i8).collect();
    let texts: Vec<Vec<u8>> = (0..n)
        .map(|i| match i % 4 {
            0 => Vec::new(),
            1 => format!("x{i}").into_bytes(),
            2 => vec![0, i as u8, 0],
            _ => vec![b'z'; i % 20],
        })
        .collect();
    let b: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
    let c: Vec<i64> =
        (0..n as i64).map(|i| [i64::MIN, -1, 0, 1, i64::MAX, i][i as usize % 6]).collect();
    let d: Vec<&[u8]> = texts.iter().rev().map(Vec::as_slice).collect();
    let e: Vec<i16> = (0..n).map(|i| i as i16 % 11).collect();
    let batch = RowBatch::new(Operation::Upsert, n)
        .column(0, Cells::Int8(&a))
        .column(1, Cells::Slices(&b))
        .column(2, Cells::Int64(&c))
        .column(3, Cells::Slices(&d))
        .column(4, Cells::Int16(&e));
    assert_eq!(table.write(&batch).await.unwrap().row_errors, []);
    let mut wanted: Vec<String> = (0..n)
        .map(|i| {
            let row = [
                Value::Int(a[i].into()),
                b[i].into(),
                c[i].into(),
                d[i].into(),
                Value::Int(e[i].into()),
            ];
            format!("{:?}", row.map(Some))
        })
        .collect();
    wanted.sort_unstable();
    wanted.dedup();
    let got: Vec<String> =
        rows(table.scan()).await.unwrap().iter().map(|row| format!("{row:?}")).collect();
    assert_eq!(got, wanted);
    // Pruned scans find the same rows as scans of everything do.
    for predicates in [
        vec![Predicate::equal("c", 0_i64)],
        vec![Predicate::equal("c", 0_i64), Predicate::less("e", 5)],
        vec![Predicate::equal("d", "x1")],
        vec![Predicate::in_list("d", ["", "x1", "zzz"]), Predicate::greater("c", 3_i64)],
        vec![Predicate::equal("b", ""), Predicate::in_list("a", [0, 37, 74])],
        vec![Predicate::less("c", -1_i64)],
        vec![Predicate::greater("c", i64::MAX)],
    ] {
        let scan = predicates.iter().fold(table.scan(), |s, p| s.filter(p.clone()));
        let got = rows(scan).await.unwrap();
        let all = rows(table.scan()).await.unwrap();
        let wanted = all.into_iter().filter(|row| satisfies(&predicates, row));
        assert_eq!(got, wanted.collect::<Vec<_>>(), "{predicates:?}");
    }
}

/// The predicates above, by their text, on rows (a, b, c, d, e).
fn satisfies(predicates: &[Predicate], row: &[Option<Value>]) -> bool {
    let int = |i: usize| match row[i] {
        Some(Value::Int(v)) => v,
        _ => panic!(),
    };
    let text = |i: usize| match &row[i] {
        Some(Value::Bytes(v)) => v.clone(),
        _ => panic!(),
    };
    let is = |p: &Predicate, q: Predicate| *p == q;
    predicates.iter().all(|p| {
        (is(p, Predicate::equal("c", 0_i64)) && int(2) == 0)
            || (is(p, Predicate::less("e", 5)) && int(4) < 5)
            || (is(p, Predicate::equal("d", "x1")) && text(3) == b"x1")
            || (is(p, Predicate::in_list("d", ["", "x1", "zzz"]))
                && [&b""[..], b"x1", b"zzz"].contains(&text(3).as_slice()))
            || (is(p, Predicate::greater("c", 3_i64)) && int(2) > 3)
            || (is(p, Predicate::equal("b", "")) && text(1).is_empty())
            || (is(p, Predicate::in_list("a", [0, 37, 74])) && [0, 37, 74].contains(&int(0)))
            || (is(p, Predicate::less("c", -1_i64)) && int(2) < -1)
    })
}

/// Kudu's own tool says of rows of all kinds that they are in the tablets that this client has chosen,
/// and finds them there.
#[tokio::test(flavor = "multi_thread")]
async fn rows_are_in_the_tablets_that_kudu_names() {
    let client = client(cluster());
    let columns = vec![
        Column::new("name", DataType::String),
        Column::new("id", DataType::Int64),
        Column::new("small", DataType::Int8),
        Column::new("at", DataType::Int64),
    ];
    let schema = Schema::new(columns, 4).unwrap();
    // As the tables of a time series database are, and more: two hash dimensions, ranges of time.
    let spec = TableSpec::new("located", schema).hash(&["name", "id"], 4).hash(&["small"], 2);
    let hours = (-1..2_i64).map(|hour| RangePartition::between(hour * 3600, (hour + 1) * 3600));
    let spec = spec.range(&["at"]).ranges(hours).replicas(1);
    let table = client.create_table(&spec).await.unwrap();

    let names =
        ["", "h", "host=a b", "\u{e4}\u{20ac}", "a\"quote", "back\\slash", "cpu,host=1,dc=2"];
    let ids = [0, 1, -1, i64::MIN, i64::MAX, 1 << 32, -(1 << 40), 42, 7];
    let rows = 24_usize;
    let name = |row: usize| names[row % names.len()];
    let id: Vec<i64> = (0..rows).map(|row| ids[row % ids.len()]).collect();
    let small: Vec<i8> = (0..rows).map(|row| (row as i8).wrapping_mul(23)).collect();
    let at: Vec<i64> = (0..rows as i64).map(|row| -3600 + row * 10_799 / 23).collect();
    let text: Vec<&[u8]> = (0..rows).map(|row| name(row).as_bytes()).collect();
    let batch = RowBatch::new(Operation::Insert, rows)
        .column(0, Cells::Slices(&text))
        .column(1, Cells::Int64(&id))
        .column(2, Cells::Int8(&small))
        .column(3, Cells::Int64(&at));
    let ours = table.locate(&batch).await.unwrap();
    assert_eq!(table.write(&batch).await.unwrap().row_errors, []);
    let masters = cluster().master_list();
    let mut seen = std::collections::BTreeMap::new();
    for (row, tablet) in ours.iter().enumerate() {
        let escaped = name(row).replace('\\', "\\\\").replace('"', "\\\"");
        let key = format!("[\"{escaped}\", {}, {}, {}]", id[row], small[row], at[row]);
        let located = ["table", "locate_row", &masters, "located", &key, "-check_row_existence"];
        let told = cluster().cli(&located).unwrap();
        assert!(told.contains(tablet.as_str()), "{key}: {tablet}: {told}");
        *seen.entry(tablet).or_insert(0) += 1;
    }
    assert!(seen.len() > 8, "many tablets: {seen:?}");
    let outside = RowBatch::new(Operation::Insert, 1)
        .column(0, Cells::Slices(&[b"h"]))
        .column(1, Cells::Int64(&[1]))
        .column(2, Cells::Int8(&[1]))
        .column(3, Cells::Int64(&[7200]));
    let nowhere = table.locate(&outside).await;
    assert!(matches!(nowhere, Err(Error::NotCovered { .. })), "{nowhere:?}");
}
