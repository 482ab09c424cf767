//! The write path: rows of a request become rows in the log and in memtables.
//!
//! `prepare` resolves names to numbers (and has `define` make what is new), `commit` gives the batch
//! its place in the log and in the memtables, and the caller waits until the log is durable.

mod admit;
mod commit;
mod define;
mod prepare;
mod record;
mod resolver;

use store::{StoreError, WriteOutcome, WriteRequest};

use crate::engine::Engine;
use crate::error::wal_error;
pub(crate) use commit::apply;
pub(crate) use record::{Record, put_schema_changes, read_schema_changes};
pub(crate) use resolver::{ENTRY_BYTES as RESOLVER_ENTRY_BYTES, Resolver};

/// Stores the rows of a request.
pub(crate) fn write(
    engine: &Engine,
    request: &WriteRequest<'_>,
) -> Result<WriteOutcome, StoreError> {
    engine.check_writable()?;
    admit::admit(engine)?;
    let gate = engine.gate.read();
    let prepared = prepare::prepare(engine, request)?;
    let rows_written = prepared.batch.rows.len() as u64;
    let durable_at =
        if rows_written > 0 { Some(commit::commit(engine, &prepared.batch)?) } else { None };
    drop(gate);
    if let Some(lsn) = durable_at {
        let durable = engine.wal.wait_durable(lsn).map_err(wal_error);
        durable.inspect_err(|error| match error {
            // The log has the rows in memory and goes on once there is space.
            StoreError::Overloaded { .. } => {}
            error => engine.fail(error),
        })?;
    }
    engine.metrics.rows_written.add(rows_written);
    engine.metrics.values_written.add(prepared.batch.values.len() as u64);
    engine.metrics.rows_rejected.add(prepared.rejected.len() as u64);
    Ok(WriteOutcome { rows_written, rejected: prepared.rejected })
}
