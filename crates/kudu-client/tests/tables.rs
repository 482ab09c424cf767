//! Tables, writes and scans on one master and three tablet servers.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod common;

use std::sync::OnceLock;

use common::{client, config, count, keys, metrics, metrics_schema, put, rows};
use kudu_client::{
    Cells, Client, ClientConfig, Column, Compression, DataType, Encoding, Error, HashDimension,
    Operation, Predicate, RangePartition, ReadMode, ReplicaSelection, RowBatch, ScanToken, Schema,
    TableSpec, Value,
};
use kudu_test_cluster::{Cluster, Options, kudu_version};

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

#[tokio::test(flavor = "multi_thread")]
async fn ranges_with_buckets_of_their_own() {
    if kudu_version() < (1, 18) {
        println!("skipped: tables without ranges at first need Kudu 1.18");
        return;
    }
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

/// How a column is stored is told to the servers, and read back from them.
#[tokio::test(flavor = "multi_thread")]
async fn columns_are_stored_as_they_were_asked_for() {
    let client = client(cluster());
    let stored = |name: &str| {
        let column = Column::new(name, DataType::Int64).encoding(Encoding::BitShuffle);
        column.compression(Compression::Zlib).block_bytes(16 << 10)
    };
    let schema = Schema::new(vec![stored("key"), stored("value").nullable()], 1).unwrap();
    let spec = TableSpec::new("stored", schema.clone()).hash(&["key"], 2).replicas(1);
    let table = client.create_table(&spec).await.unwrap();
    assert_eq!(table.schema(), &schema);
    let table = table.alter().add_column(stored("later").nullable()).apply().await.unwrap();
    assert_eq!(table.schema().columns()[2], stored("later").nullable());
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_mean_what_they_say() {
    let client = client(cluster());
    let spec = metrics("operations").replicas(1);
    let table = client.create_table(&spec).await.unwrap();
    client.require_ignore_operations(false).await.unwrap();
    let upserts = client.require_ignore_operations(true).await;
    match kudu_version() < (1, 17) {
        false => upserts.unwrap(),
        true => assert!(matches!(upserts, Err(Error::Unsupported { .. })), "{upserts:?}"),
    }
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
    if kudu_version() >= (1, 16) {
        let counted =
            cluster.cli(&["table", "scan", &masters, "many", "-row_count_only=true"]).unwrap();
        assert!(counted.contains("60000"), "{counted}");
    }
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
    let (major, minor) = kudu_version();
    let version = format!("kudu {major}.{minor}.");
    let is_it = |text: &str| text.contains(&version);
    assert!(servers[0].version.as_deref().is_some_and(is_it), "{servers:?}");
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
