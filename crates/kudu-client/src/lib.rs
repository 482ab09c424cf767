//! Native asynchronous client of Apache Kudu (1.15 to 1.18), for programs that read and write
//! columns.
//!
//! ```no_run
//! use kudu_client::{
//!     Cells, Client, ClientConfig, Column, DataType, Operation, Predicate, RangePartition, RowBatch,
//!     Schema, TableSpec,
//! };
//!
//! # async fn example() -> Result<(), kudu_client::Error> {
//! let client = Client::new(ClientConfig::new(["master-1:7051", "master-2:7051", "master-3:7051"])?);
//! let schema = Schema::new(
//!     vec![
//!         Column::new("series", DataType::Int64),
//!         Column::new("time", DataType::Int64),
//!         Column::new("usage", DataType::Double).nullable(),
//!     ],
//!     2,
//! )?;
//! let spec = TableSpec::new("cpu", schema)
//!     .hash(&["series"], 4)
//!     .range(&["time"])
//!     .ranges([RangePartition::between(0_i64, 1_000_000_i64)]);
//! let table = client.create_table(&spec).await?;
//!
//! let batch = RowBatch::new(Operation::Upsert, 2)
//!     .column(0, Cells::Int64(&[1, 2]))
//!     .column(1, Cells::Int64(&[1000, 1000]))
//!     .column(2, Cells::Double(&[0.5, 0.75]));
//! let outcome = table.write(&batch).await?;
//! assert!(outcome.row_errors.is_empty());
//!
//! let scan = table.scan().columns(["usage"]).filter(Predicate::equal("series", 1_i64));
//! let mut scanner = scan.open()?;
//! let mut sum = 0.0;
//! while let Some(batch) = scanner.next().await? {
//!     sum += batch.column(0).f64s().sum::<f64>();
//! }
//! # Ok(())
//! # }
//! ```
//!
//! **Writes** take borrowed columns and encode them straight into the buffers that are sent, tablet
//! by tablet. A repeated request is applied once. **Scans** hand out the buffers they received, with
//! typed views; they prune tablets, can be cut into tokens and read in parallel, and go on at
//! another replica if they are fault-tolerant. **Failures** that pass (a leader that died, an
//! overloaded server, an expired token) are retried within the time limit of the call; the error
//! that comes out then tells what was tried. Dropping a future cancels what it does.
//!
//! Authentication is SASL PLAIN, and the cluster's tokens between the first master and the tablet
//! servers. Absent: Kerberos and JWT (refused by name), multi-row transactions, Bloom filter
//! predicates, differential scans, bounds on the primary key other than by predicates, and the
//! row-wise result format.

mod client;
mod clock;
mod cluster;
mod config;
mod ddl;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod predicate;
mod proto;
mod prune;
mod retry;
mod rpc;
mod scan;
mod schema;
mod table;
mod write;

pub use client::{Client, TableStatistics, TabletServer};
pub use cluster::master::{Master, MasterState};
pub use config::{ClientConfig, Encryption};
pub use ddl::{AlterTable, TableSpec};
pub use error::Error;
pub use predicate::Predicate;
pub use scan::{
    ColumnView, ReadMode, ReplicaSelection, ScanBatch, ScanBuilder, ScanToken, Scanner,
};
pub use schema::{
    Column, Compression, DataType, Encoding, HashDimension, PartitionSchema, RangePartition,
    Schema, Value,
};
pub use table::{Replica, Table};
pub use write::{Bits, Cells, Missing, Operation, RowBatch, RowError, WriteOutcome};
