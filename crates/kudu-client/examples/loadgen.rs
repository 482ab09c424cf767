//! Writes or scans rows as `kudu perf loadgen` and `kudu perf table_scan` do, to compare:
//!
//! ```sh
//! cargo run --release -p kudu-client --example loadgen -- MASTERS TABLE write \
//!     [rows=10000000] [threads=2] [batch=20000] [string-len=32] [pid=SERVER]
//! cargo run --release -p kudu-client --example loadgen -- MASTERS TABLE scan \
//!     [columns=NAME,NAME] [ordered=1] [pid=SERVER]
//! ```
//!
//! The table is made if it is not there: `key INT64`, `int_val INT32`, `string_val STRING`, eight hash
//! buckets, one replica, which is what loadgen makes. Rows are upserted; each thread has two batches
//! on their way at a time, as a session of loadgen has two buffers.
#![allow(clippy::print_stdout, reason = "a command line tool prints")]
#![allow(clippy::disallowed_methods, reason = "reads what the kernel tells of processes")]

use std::collections::HashMap;
use std::time::Instant;

use kudu_client::{
    Cells, Client, ClientConfig, Column, DataType, Error, Operation, ReadMode, RowBatch, Schema,
    Table, TableSpec,
};
use tokio::task::JoinSet;

/// Kernel ticks of processor time a second.
const TICKS: f64 = 100.0;

struct Settings {
    options: HashMap<String, String>,
}

impl Settings {
    fn number(&self, name: &str, default: usize) -> Result<usize, Error> {
        let Some(text) = self.options.get(name) else { return Ok(default) };
        text.parse().map_err(|_| Error::InvalidArgument(format!("{name}: {text:?} is no number")))
    }
}

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |what: &str| {
        arguments.next().ok_or_else(|| Error::InvalidArgument(format!("{what} is missing")))
    };
    let (masters, table, action) = (next("MASTERS")?, next("TABLE")?, next("write or scan")?);
    let options = arguments.filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    });
    let settings = Settings { options: options.collect() };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Error::InvalidArgument(e.to_string()))?;
    runtime.block_on(async {
        let client = Client::new(ClientConfig::new(masters.split(','))?);
        let table = open_or_create(&client, &table).await?;
        let server = settings.number("pid", 0)?;
        let (begun, own, theirs) = (Instant::now(), cpu(None), cpu(Some(server)));
        let rows = match action.as_str() {
            "write" => write(&table, &settings).await?,
            "scan" => scan(&table, &settings).await?,
            other => {
                return Err(Error::InvalidArgument(format!("{other}: neither write nor scan")));
            }
        };
        let seconds = begun.elapsed().as_secs_f64();
        let (own, theirs) = (cpu(None) - own, cpu(Some(server)) - theirs);
        println!(
            "{action}: {rows} rows in {seconds:.2} s, {:.0} rows/s, CPU of client {own:.2} s, of \
             server {theirs:.2} s",
            rows as f64 / seconds
        );
        Ok(())
    })
}

async fn open_or_create(client: &Client, name: &str) -> Result<Table, Error> {
    match client.open_table(name).await {
        Err(Error::TableNotFound { .. }) => {}
        other => return other,
    }
    let columns = vec![
        Column::new("key", DataType::Int64),
        Column::new("int_val", DataType::Int32),
        Column::new("string_val", DataType::String),
    ];
    let spec = TableSpec::new(name, Schema::new(columns, 1)?).hash(&["key"], 8).replicas(1);
    client.create_table(&spec).await
}

async fn write(table: &Table, settings: &Settings) -> Result<usize, Error> {
    let threads = settings.number("threads", 2)?.max(1);
    let rows = settings.number("rows", 10_000_000)? / threads;
    let batch = settings.number("batch", 20_000)?.max(1);
    let length = settings.number("string-len", 32)?;
    let mut writers = JoinSet::new();
    for thread in 0..threads {
        for half in 0..2 {
            let table = table.clone();
            let first = thread * rows;
            writers.spawn(async move {
                let starts = (first..first + rows).step_by(batch).skip(half).step_by(2);
                for start in starts {
                    let end = (start + batch).min(first + rows);
                    upsert(&table, start..end, length).await?;
                }
                Ok::<_, Error>(())
            });
        }
    }
    while let Some(written) = writers.join_next().await {
        written.map_err(|e| Error::InvalidArgument(e.to_string()))??;
    }
    Ok(rows * threads)
}

async fn upsert(table: &Table, rows: std::ops::Range<usize>, length: usize) -> Result<(), Error> {
    let keys: Vec<i64> = rows.clone().map(|n| n as i64).collect();
    let numbers: Vec<i32> = rows.clone().map(|n| n as i32).collect();
    let mut text = Vec::with_capacity(rows.len() * length);
    let mut offsets = Vec::with_capacity(rows.len() + 1);
    offsets.push(0);
    for (at, n) in rows.enumerate() {
        // The number, then filled up.
        let mut left = n;
        let end = (at + 1) * length;
        while left > 0 && text.len() < end {
            text.push(b'0' + (left % 10) as u8);
            left /= 10;
        }
        text.resize(end, b'.');
        offsets.push(end as u32);
    }
    let batch = RowBatch::new(Operation::Upsert, keys.len())
        .column(0, Cells::Int64(&keys))
        .column(1, Cells::Int32(&numbers))
        .column(2, Cells::Bytes { offsets: &offsets, data: &text });
    let outcome = table.write(&batch).await?;
    match outcome.row_errors.first() {
        None => Ok(()),
        Some(error) => Err(Error::InvalidArgument(error.message.clone())),
    }
}

/// Two scanners at a time, a token each, like two threads of `table_scan`.
async fn scan(table: &Table, settings: &Settings) -> Result<usize, Error> {
    let mut scan = table.scan().read_mode(ReadMode::Snapshot(None));
    if let Some(columns) = settings.options.get("columns") {
        scan = scan.columns(columns.split(','));
    }
    if settings.number("ordered", 0)? > 0 {
        scan = scan.fault_tolerant();
    }
    let mut waiting = scan.tokens().await?.into_iter();
    let mut scanning = JoinSet::new();
    let mut rows = 0;
    loop {
        while scanning.len() < 2
            && let Some(token) = waiting.next()
        {
            let client = table.client().clone();
            scanning.spawn(async move {
                let mut scanner = token.open(&client).await?;
                let mut rows = 0;
                while let Some(batch) = scanner.next().await? {
                    rows += batch.rows();
                }
                Ok::<_, Error>(rows)
            });
        }
        let Some(done) = scanning.join_next().await else { return Ok(rows) };
        rows += done.map_err(|e| Error::InvalidArgument(e.to_string()))??;
    }
}

/// Processor time that a process has used, seconds; `None`: this one. 0: there is none.
fn cpu(pid: Option<usize>) -> f64 {
    let path = match pid {
        None => "/proc/self/stat".to_owned(),
        Some(pid) => format!("/proc/{pid}/stat"),
    };
    let stat = std::fs::read_to_string(path).unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    // User and system time are the 14th and 15th field, the 12th and 13th behind the name.
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks.filter_map(|text| text.parse::<f64>().ok()).sum::<f64>() / TICKS
}
