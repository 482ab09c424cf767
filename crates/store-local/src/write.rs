//! The write path: rows of a request become rows in the log and in memtables.
//!
//! `prepare` resolves names to numbers (and has `define` make what is new), `commit` gives the batch
//! its place in the log and in the memtables, and the caller waits until the log is durable.

mod admit;
mod commit;
mod define;
mod links;
mod order;
mod prepare;
mod record;
mod resolver;

use std::sync::Arc;

use store::{StoreError, WriteOutcome, WriteRequest};
use wal::Lsn;

use crate::engine::Engine;
use crate::error::wal_error;
use crate::memtable::{ROWS_MAX, TEXT_BYTES_MAX};
pub(crate) use admit::used_bytes;
use commit::Committed;
pub(crate) use commit::apply;
use prepare::Prepared;
pub(crate) use record::{Record, put_schema_changes, read_schema_changes};
pub(crate) use resolver::{ENTRY_BYTES as RESOLVER_ENTRY_BYTES, Resolver};

/// Stores the rows of a request.
pub(crate) fn write(
    engine: &Engine,
    request: &WriteRequest<'_>,
) -> Result<WriteOutcome, StoreError> {
    engine.check_writable()?;
    let rows = request.batch.rows.len();
    if rows > ROWS_MAX {
        let reason = format!("{rows} rows in one write, the limit is {ROWS_MAX}: split it");
        return Err(StoreError::Invalid(reason));
    }
    let text = request.batch.strings.len();
    if text > TEXT_BYTES_MAX {
        let reason =
            format!("{text} bytes of text in one write, the limit is {TEXT_BYTES_MAX}: split it");
        return Err(StoreError::Invalid(reason));
    }
    admit::admit(engine)?;
    let (prepared, durable_at) = prepare_and_commit(engine, request)?;
    let rows_written = prepared.batch.rows.len() as u64;
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

/// Gives the rows their place in the log and in memtables; says up to where the log must be durable
/// for them, if there are any.
fn prepare_and_commit<'a>(
    engine: &Engine,
    request: &WriteRequest<'a>,
) -> Result<(Prepared<'a>, Option<Lsn>), StoreError> {
    loop {
        let gate = engine.gate.read();
        let prepared = prepare::prepare(engine, request)?;
        if prepared.batch.rows.is_empty() {
            return Ok((prepared, None));
        }
        match commit::commit(engine, &prepared)? {
            Committed::Until(lsn) => return Ok((prepared, Some(lsn))),
            Committed::Full(table) => {
                drop(gate);
                let _gate = engine.gate.write();
                engine.freeze(|p| p.active.as_ref().is_some_and(|t| Arc::ptr_eq(t, &table)));
                engine.work.notify();
            }
        }
    }
}
