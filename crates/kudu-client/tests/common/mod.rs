//! What the tests share.
#![allow(dead_code, reason = "each test binary uses a part")]

pub(crate) mod proxy;

use kudu_client::{
    Cells, Client, ClientConfig, Column, DataType, Operation, RowBatch, ScanBuilder, Schema, Table,
    TableSpec, Value, WriteOutcome,
};
use kudu_test_cluster::Cluster;

pub(crate) fn config(cluster: &Cluster) -> ClientConfig {
    // Long, so that a machine with much else to do passes, too.
    let config = ClientConfig::new(cluster.masters()).unwrap().user("tester", "");
    config.operation_timeout(std::time::Duration::from_secs(120))
}

pub(crate) fn client(cluster: &Cluster) -> Client {
    Client::new(config(cluster))
}

/// Columns series, time (the key), usage, host.
pub(crate) fn metrics_schema() -> Schema {
    let columns = vec![
        Column::new("series", DataType::Int64),
        Column::new("time", DataType::Int64),
        Column::new("usage", DataType::Double).nullable(),
        Column::new("host", DataType::String).nullable(),
    ];
    Schema::new(columns, 2).unwrap()
}

/// Hash on series, range on time.
pub(crate) fn metrics(name: &str) -> TableSpec {
    TableSpec::new(name, metrics_schema()).hash(&["series"], 3).range(&["time"])
}

/// Rows (series, time) with usage = time, all set.
pub(crate) async fn put(
    table: &Table,
    operation: Operation,
    rows: &[(i64, i64)],
) -> Result<WriteOutcome, kudu_client::Error> {
    let series: Vec<i64> = rows.iter().map(|r| r.0).collect();
    let time: Vec<i64> = rows.iter().map(|r| r.1).collect();
    let usage: Vec<f64> = rows.iter().map(|r| r.1 as f64).collect();
    let batch = RowBatch::new(operation, rows.len())
        .column(0, Cells::Int64(&series))
        .column(1, Cells::Int64(&time))
        .column(2, Cells::Double(&usage));
    table.write(&batch).await
}

/// All rows, sorted.
pub(crate) async fn rows(scan: ScanBuilder) -> Result<Vec<Vec<Option<Value>>>, kudu_client::Error> {
    let mut scanner = scan.open()?;
    let mut rows = Vec::new();
    while let Some(batch) = scanner.next().await? {
        for row in 0..batch.rows() {
            rows.push((0..batch.columns()).map(|c| batch.column(c).value(row)).collect());
        }
    }
    rows.sort_by_key(|row: &Vec<Option<Value>>| format!("{row:?}"));
    Ok(rows)
}

/// Keys of the rows, sorted.
pub(crate) async fn keys(scan: ScanBuilder) -> Result<Vec<(i64, i64)>, kudu_client::Error> {
    let mut scanner = scan.columns(["series", "time"]).open()?;
    let mut keys = Vec::new();
    while let Some(batch) = scanner.next().await? {
        keys.extend(batch.column(0).i64s().zip(batch.column(1).i64s()));
    }
    keys.sort_unstable();
    Ok(keys)
}

pub(crate) async fn count(scan: ScanBuilder) -> Result<usize, kudu_client::Error> {
    let mut scanner = scan.columns([""; 0]).open()?;
    let mut rows = 0;
    while let Some(batch) = scanner.next().await? {
        rows += batch.rows();
    }
    Ok(rows)
}
