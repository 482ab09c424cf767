//! Tables, writes and scans on one master and three tablet servers.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod common;

use std::sync::OnceLock;

use common::{client, config, count, keys, metrics, metrics_schema, put, rows};
use kudu_client::{
    Bits, Cells, Client, ClientConfig, Column, DataType, Error, HashDimension, Missing, Operation,
    Predicate, RangePartition, ReadMode, ReplicaSelection, RowBatch, ScanToken, Schema, TableSpec,
    Value,
};
use kudu_test_cluster::{Cluster, Options};

fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start(&Options::new(3)).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_created_altered_and_dropped() {
    let client = client(cluster());
    let spec = metrics("ddl").ranges([RangePartition::between(0, 100)]).replicas(1);
    let table = client.create_table(&spec).await.unwrap();
    assert_eq!(table.schema(), &metrics_schema());
    assert_eq!(table.replicas(), 1);
    assert_eq!(client.list_tables("ddl").await.unwrap(), ["ddl"]);
    let again = client.create_table(&spec).await;
    assert_eq!(again.err(), Some(Error::TableExists { table: "ddl".to_owned() }));

    let table = table
        .alter()
        .add_column(Column::new("idle", DataType::Int64).nullable())
        .rename_column("host", "node")
        .drop_column("usage")
        .add_range(RangePartition::between(100, 200))
        .apply()
        .await
        .unwrap();
    let names: Vec<&str> = table.schema().columns().iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["series", "time", "node", "idle"]);
    let ranges = table.range_partitions().await.unwrap();
    assert_eq!(ranges, [RangePartition::between(0, 100), RangePartition::between(100, 200)]);

    let twice = table.alter().add_range(RangePartition::between(100, 200)).apply().await;
    assert!(matches!(twice, Err(Error::AlreadyPresent(_))), "{twice:?}");
    let column = Column::new("idle", DataType::Int64).nullable();
    let twice = table.alter().add_column(column).apply().await;
    assert!(matches!(twice, Err(Error::AlreadyPresent(_))), "{twice:?}");

    let table = table
        .alter()
        .drop_range(RangePartition::between(0, 100))
        .rename("ddl2")
        .apply()
        .await
        .unwrap();
    assert_eq!(table.range_partitions().await.unwrap(), [RangePartition::between(100, 200)]);
    client.delete_table("ddl2").await.unwrap();
    let gone = client.open_table("ddl2").await;
    assert_eq!(gone.err(), Some(Error::TableNotFound { table: "ddl2".to_owned() }));
    assert!(matches!(client.delete_table("ddl2").await, Err(Error::TableNotFound { .. })));
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
            Value::from(42_i64),
        ];
        assert_eq!(*first, expected.into_iter().map(Some).collect::<Vec<_>>());
        for empty in &got[1..] {
            assert!(empty[1..15].iter().all(Option::is_none), "{empty:?}");
            assert_eq!(empty[15], Some(Value::from(42_i64)));
        }
    }
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

#[tokio::test(flavor = "multi_thread")]
async fn ranges_with_buckets_of_their_own() {
    let client = client(cluster());
    let spec = metrics("custom").ranges([]).replicas(1);
    let table = client.create_table(&spec).await.unwrap();
    let hash = |buckets| vec![HashDimension { columns: vec![0], buckets, seed: buckets }];
    let table = table
        .alter()
        .add_range(RangePartition::between(0, 100))
        .add_range_with_hash(RangePartition::between(100, 200), hash(5))
        .add_range_with_hash(RangePartition::between(200, 300), hash(2))
        .apply()
        .await
        .unwrap();
    let wanted: Vec<(i64, i64)> = (0..40).flat_map(|s| [(s, 50), (s, 150), (s, 250)]).collect();
    assert_eq!(put(&table, Operation::Insert, &wanted).await.unwrap().row_errors, []);
    let table = client.open_table("custom").await.unwrap();
    assert_eq!(keys(table.scan()).await.unwrap(), wanted);
    let some = table.scan().filter(Predicate::equal("series", 7_i64));
    assert_eq!(keys(some).await.unwrap(), [(7, 50), (7, 150), (7, 250)]);
    let some = table.scan().filter(Predicate::greater_or_equal("time", 150_i64));
    assert_eq!(count(some.filter(Predicate::less("series", 10_i64))).await.unwrap(), 20);
    assert_eq!(table.range_partitions().await.unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_mean_what_they_say() {
    let client = client(cluster());
    let spec = metrics("operations").replicas(1);
    let table = client.create_table(&spec).await.unwrap();
    client.require_ignore_operations(true).await.unwrap();
    assert_eq!(put(&table, Operation::Insert, &[(1, 1), (2, 2)]).await.unwrap().row_errors, []);
    let outcome = put(&table, Operation::Insert, &[(3, 3), (1, 1), (4, 4)]).await.unwrap();
    assert_eq!(outcome.row_errors.len(), 1);
    assert!(outcome.row_errors[0].is_already_present() && outcome.row_errors[0].row == 1);
    let outcome = put(&table, Operation::Update, &[(9, 9), (2, 2)]).await.unwrap();
    assert!(outcome.row_errors[0].is_not_found() && outcome.row_errors[0].row == 0);
    for ignoring in [Operation::InsertIgnore, Operation::UpdateIgnore] {
        assert_eq!(put(&table, ignoring, &[(1, 1)]).await.unwrap().row_errors, []);
    }
    let key = |operation| {
        RowBatch::new(operation, 2)
            .column(0, Cells::Int64(&[1, 8]))
            .column(1, Cells::Int64(&[1, 8]))
    };
    let outcome = table.write(&key(Operation::Delete)).await.unwrap();
    assert!(outcome.row_errors.len() == 1 && outcome.row_errors[0].row == 1);
    assert_eq!(table.write(&key(Operation::DeleteIgnore)).await.unwrap().row_errors, []);
    assert_eq!(keys(table.scan()).await.unwrap(), [(2, 2), (3, 3), (4, 4)]);
    // Columns that an upsert leaves out keep what they have; in order within a batch.
    let batch = RowBatch::new(Operation::Upsert, 3)
        .column(0, Cells::Int64(&[2, 2, 2]))
        .column(1, Cells::Int64(&[2, 2, 2]))
        .column(3, Cells::Slices(&[b"first", b"second", b"last"]));
    assert_eq!(table.write(&batch).await.unwrap().row_errors, []);
    let row = rows(table.scan().filter(Predicate::equal("series", 2_i64))).await.unwrap();
    assert_eq!(row[0][2..], [Some(Value::from(2.0)), Some(Value::from("last"))]);
    let null = table.scan().filter(Predicate::is_null("host"));
    assert_eq!(keys(null).await.unwrap(), [(3, 3), (4, 4)]);
    let not_null = table.scan().filter(Predicate::is_not_null("host"));
    assert_eq!(keys(not_null).await.unwrap(), [(2, 2)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_rows_in_all_ways_of_scanning() {
    let cluster = cluster();
    let client = client(cluster);
    let spec = metrics("many")
        .ranges([RangePartition::between(0, 500), RangePartition::between(500, 1000)]);
    let table = client.create_table(&spec.replicas(3)).await.unwrap();
    let wanted: Vec<(i64, i64)> = (0..60).flat_map(|s| (0..1000).map(move |t| (s, t))).collect();
    for part in wanted.chunks(20_000) {
        assert_eq!(put(&table, Operation::Insert, part).await.unwrap().row_errors, []);
    }
    assert_eq!(keys(table.scan()).await.unwrap(), wanted);
    assert_eq!(count(table.scan()).await.unwrap(), wanted.len());
    // Small batches, and the ways that need more than one round trip.
    let small = || table.scan().batch_bytes(10_000);
    assert_eq!(keys(small()).await.unwrap(), wanted);
    let snapshot = || small().read_mode(ReadMode::Snapshot(None));
    assert_eq!(keys(snapshot().fault_tolerant()).await.unwrap(), wanted);
    let mine = || small().read_mode(ReadMode::YourWrites).replicas(ReplicaSelection::Any);
    assert_eq!(keys(mine().bypass_cache()).await.unwrap(), wanted);
    assert_eq!(count(small().limit(12_345)).await.unwrap(), 12_345);
    assert_eq!(keys(table.scan().limit(0)).await.unwrap(), []);
    assert!(table.scan().fault_tolerant().open().is_err());
    let series = table.scan().filter(Predicate::in_list("series", [3_i64, 99, 7, 3]));
    assert_eq!(count(series).await.unwrap(), 2000);

    // Parts, carried as bytes to another client and read at the same time.
    let tokens = small().filter(Predicate::less("time", 700_i64)).tokens().await.unwrap();
    assert_eq!(tokens.len(), 6);
    let mut parts = tokio::task::JoinSet::new();
    for token in tokens {
        let bytes = token.to_bytes();
        let other = common::client(cluster);
        parts.spawn(async move {
            let token = ScanToken::from_bytes(&bytes).unwrap();
            let mut scanner = token.open(&other).await.unwrap();
            let mut rows = 0;
            while let Some(batch) = scanner.next().await.unwrap() {
                scanner.keep_alive().await.unwrap();
                rows += batch.rows();
            }
            rows
        });
    }
    assert_eq!(parts.join_all().await.into_iter().sum::<usize>(), 60 * 700);
    assert!(ScanToken::from_bytes(b"nonsense").is_err());

    // Kudu's own tool sees the same.
    let masters = cluster.master_list();
    let counted =
        cluster.cli(&["table", "scan", &masters, "many", "-row_count_only=true"]).unwrap();
    assert!(counted.contains("60000"), "{counted}");
    let found = cluster.cli(&["table", "scan", &masters, "many", "-columns=usage,time"]).unwrap();
    assert_eq!(found.lines().filter(|line| line.contains("int64 time=999")).count(), 60);
    cluster.cli(&["cluster", "ksck", &masters, "-tables=many"]).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_and_timestamps() {
    let cluster = cluster();
    let (writer, reader) = (client(cluster), client(cluster));
    let table = writer.create_table(&metrics("snapshots").replicas(3)).await.unwrap();
    put(&table, Operation::Insert, &[(1, 1)]).await.unwrap();
    // What carries the timestamp W of the write is in a snapshot at W + 1.
    let before = writer.last_timestamp() + 1;
    for i in 2..20 {
        put(&table, Operation::Insert, &[(i, i)]).await.unwrap();
        reader.observe_timestamp(writer.last_timestamp());
        let other = reader.open_table("snapshots").await.unwrap();
        let scan = other.scan().read_mode(ReadMode::YourWrites).replicas(ReplicaSelection::Any);
        assert_eq!(count(scan).await.unwrap(), i as usize);
    }
    let scan = || table.scan().read_mode(ReadMode::Snapshot(Some(before)));
    assert_eq!(keys(scan()).await.unwrap(), [(1, 1)]);
    assert_eq!(keys(scan().fault_tolerant()).await.unwrap(), [(1, 1)]);
    let future = before + (60_000_000 << 12);
    let far = table.scan().read_mode(ReadMode::Snapshot(Some(future)));
    let refused = count(far).await;
    assert!(matches!(refused, Err(Error::SnapshotUnavailable(_))), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_other_clients_do_is_noticed() {
    let cluster = cluster();
    let (ours, theirs) = (client(cluster), client(cluster));
    let spec = metrics("shared").ranges([RangePartition::between(0, 10)]).replicas(1);
    let table = ours.create_table(&spec).await.unwrap();
    let other = theirs.open_table("shared").await.unwrap();
    let outside = put(&table, Operation::Insert, &[(1, 5), (1, 15), (1, 16)]).await;
    let error = Error::NotCovered { table: "shared".to_owned(), rows: 2, first_row: 1 };
    assert_eq!(outside.err(), Some(error));
    assert_eq!(keys(table.scan()).await.unwrap(), []);
    // A range that another process has added.
    let other = other.alter().add_range(RangePartition::between(10, 20)).apply().await.unwrap();
    put(&other, Operation::Insert, &[(1, 15)]).await.unwrap();
    assert_eq!(keys(table.scan()).await.unwrap(), [(1, 15)]);
    put(&table, Operation::Insert, &[(1, 5), (1, 16)]).await.unwrap();
    // A column that another process has added, and one that it has dropped.
    let column = Column::new("extra", DataType::Int64).nullable();
    let other = other.alter().add_column(column).apply().await.unwrap();
    put(&table, Operation::Insert, &[(2, 5)]).await.unwrap();
    let other = other.alter().drop_column("host").apply().await.unwrap();
    let host = table.scan().columns(["host"]).open().unwrap().next().await;
    assert!(matches!(host, Err(Error::SchemaChanged { .. })), "{host:?}");
    // A range that it has dropped, and made anew.
    let other = other.alter().drop_range(RangePartition::between(10, 20)).apply().await.unwrap();
    assert_eq!(keys(table.scan()).await.unwrap(), [(1, 5), (2, 5)]);
    let table = ours.open_table("shared").await.unwrap();
    let outside = put(&table, Operation::Insert, &[(1, 15)]).await;
    assert!(matches!(outside, Err(Error::NotCovered { .. })), "{outside:?}");
    other.alter().add_range(RangePartition::between(10, 20)).apply().await.unwrap();
    put(&table, Operation::Insert, &[(1, 17)]).await.unwrap();
    assert_eq!(keys(table.scan()).await.unwrap(), [(1, 5), (1, 17), (2, 5)]);
    // The whole table.
    theirs.delete_table("shared").await.unwrap();
    let gone = put(&table, Operation::Insert, &[(3, 3), (4, 4), (5, 5)]).await;
    if gone.is_ok() {
        // A tablet may take writes for some milliseconds more.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    let gone = put(&table, Operation::Upsert, &[(6, 3), (7, 4), (8, 5)]).await;
    assert_eq!(gone.err(), Some(Error::TableNotFound { table: "shared".to_owned() }));
    let gone = count(table.scan()).await;
    assert!(matches!(gone, Err(Error::TableNotFound { .. })), "{gone:?}");
}

/// Writers that race to add the same columns: one adds each, nobody fails for good.
#[tokio::test(flavor = "multi_thread")]
async fn racing_schema_growth() {
    let cluster = cluster();
    client(cluster).create_table(&metrics("growing").replicas(1)).await.unwrap();
    let mut racers = tokio::task::JoinSet::new();
    for racer in 0..3_i64 {
        let client = client(cluster);
        racers.spawn(async move {
            for round in 0..4 {
                let name = format!("f{round}");
                let mut table = client.open_table("growing").await.unwrap();
                while table.schema().find(&name).is_none() {
                    let column = Column::new(&name, DataType::Int64).nullable();
                    table = match table.alter().add_column(column).apply().await {
                        Ok(table) => table,
                        Err(Error::AlreadyPresent(_)) => {
                            client.open_table("growing").await.unwrap()
                        }
                        Err(error) => panic!("{error}"),
                    };
                }
                let index = table.schema().find(&name).unwrap();
                let batch = RowBatch::new(Operation::Upsert, 1)
                    .column(0, Cells::Int64(std::slice::from_ref(&racer)))
                    .column(1, Cells::Int64(&[0]))
                    .column(index, Cells::Int64(&[7]));
                // The other racer's alteration may not have reached the tablet yet.
                loop {
                    match table.write(&batch).await {
                        Ok(outcome) => break assert_eq!(outcome.row_errors, []),
                        Err(Error::SchemaChanged { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        });
    }
    racers.join_all().await;
    let table = client(cluster).open_table("growing").await.unwrap();
    assert_eq!(table.schema().columns().len(), 8);
    assert_eq!(count(table.scan().filter(Predicate::is_not_null("f3"))).await.unwrap(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_named() {
    let cluster = cluster();
    let nobody = ClientConfig::new(["127.0.0.1:1"]).unwrap();
    let nobody = nobody.operation_timeout(std::time::Duration::from_secs(1));
    let error = Client::new(nobody).connect().await.err();
    assert!(matches!(error, Some(Error::MastersUnreachable { .. })), "{error:?}");
    // A tablet server in place of a master.
    let address = cluster.tablet_server(0).address();
    let wrong = ClientConfig::new([address]).unwrap();
    let wrong = wrong.operation_timeout(std::time::Duration::from_secs(1));
    let error = Client::new(wrong).connect().await.err().unwrap();
    assert!(error.to_string().contains("MasterService"), "{error}");
    // Somebody who does not speak the protocol at all.
    let other = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = other.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = other.accept().await {
            let answer = b"HTTP/1.1 400 Bad Request\r\n\r\n";
            let _ = tokio::io::AsyncWriteExt::write_all(&mut socket, answer).await;
        }
    });
    let error = Client::new(ClientConfig::new([address]).unwrap()).connect().await.err();
    assert!(matches!(error, Some(Error::Protocol { .. })), "{error:?}");

    let client = Client::new(config(cluster));
    let table = client.create_table(&metrics("mistakes").replicas(1)).await.unwrap();
    assert!(table.scan().columns(["nope"]).open().is_err());
    assert!(table.scan().columns(["time", "time"]).open().is_err());
    assert!(table.scan().filter(Predicate::equal("usage", 3)).open().is_err());
    let even = client.create_table(&metrics("even").replicas(2)).await;
    assert!(matches!(even, Err(Error::Master { code: 10, .. })), "{even:?}");
    let too_many = client.create_table(&metrics("rf5").replicas(5)).await;
    assert!(matches!(too_many, Err(Error::Master { code: 8, .. })), "{too_many:?}");
    let servers = client.list_tablet_servers().await.unwrap();
    assert_eq!(servers.len(), 3);
    assert!(servers[0].version.as_deref().is_some_and(|v| v.contains("1.18")), "{servers:?}");
    let oversized = vec![b'x'; 70_000];
    let batch = RowBatch::new(Operation::Insert, 2)
        .column(0, Cells::Int64(&[1, 2]))
        .column(1, Cells::Int64(&[1, 2]))
        .column(3, Cells::Bytes { offsets: &[0, 70_000, 70_000], data: &oversized });
    let outcome = table.write(&batch).await.unwrap();
    assert_eq!(outcome.row_errors.len(), 1, "{outcome:?}");
    assert_eq!(outcome.row_errors[0].row, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn buckets_are_scanned_one_by_one() {
    let client = client(cluster());
    let spec = metrics("buckets").ranges([RangePartition::between(0, 100)]).replicas(1);
    let table = client.create_table(&spec).await.unwrap();
    let written: Vec<(i64, i64)> = (-20..20).map(|series| (series, 5)).collect();
    put(&table, Operation::Upsert, &written).await.unwrap();
    for with_time in [false, true] {
        let mut seen = 0;
        for bucket in 0..3 {
            let mut scan = table.scan().bucket(bucket);
            if with_time {
                scan = scan.filter(Predicate::less("time", 50_i64));
            }
            let got = keys(scan).await.unwrap();
            seen += got.len();
            for (series, _) in got {
                assert_eq!(table.hash_bucket(&[series.into()]), Ok(bucket));
            }
        }
        assert_eq!(seen, written.len());
    }
}

/// What one client was told is stored is in another client's snapshot, whoever it asks.
#[tokio::test(flavor = "multi_thread")]
async fn the_current_time_is_after_everything_acknowledged() {
    let (writer, reader) = (client(cluster()), client(cluster()));
    let spec = metrics("clock").ranges([RangePartition::between(0, 1000)]).replicas(1);
    let table = writer.create_table(&spec).await.unwrap();
    let seen = reader.open_table("clock").await.unwrap();
    for time in 0..50 {
        put(&table, Operation::Upsert, &[(time % 7, time)]).await.unwrap();
        let now = reader.current_timestamp().await.unwrap();
        let scan = seen.scan().read_mode(ReadMode::Snapshot(Some(now)));
        assert_eq!(count(scan).await.unwrap(), usize::try_from(time).unwrap() + 1);
    }
}
