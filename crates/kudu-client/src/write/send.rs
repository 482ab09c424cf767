//! Sending rows: all tablets at once, the requests of one tablet one after another.

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use prost::encoding::{encode_varint, encoded_len_varint};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::batch::RowBatch;
use super::encode::{Chunk, Encoder, Group, Routed};
use crate::client::BUDGET_UNIT;
use crate::cluster::locations::Tablet;
use crate::error::Error;
use crate::proto::{AppStatus, TABLET_SERVICE, WriteRequest, WriteResponse};
use crate::retry::{Attempts, Reaction, on_call_error, on_tablet_error, status};
use crate::rpc::{Body, Call, CallError, Endpoint};
use crate::table::Table;

/// Status of a row whose immutable column would have changed.
const STATUS_IMMUTABLE: i32 = 20;

/// What became of a batch. Rows without an error are applied: replicated by a majority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOutcome {
    /// Rows that were refused, ascending by row.
    pub row_errors: Vec<RowError>,
}

/// Why a row was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowError {
    /// Index of the row in the batch.
    pub row: usize,
    /// What the server says.
    pub message: String,
    /// Code of the server's status.
    pub code: i32,
}

impl RowError {
    /// A row with this key exists.
    #[must_use]
    pub fn is_already_present(&self) -> bool {
        self.code == status::ALREADY_PRESENT
    }

    /// There is no row with this key.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.code == status::NOT_FOUND
    }

    /// An immutable column would have changed.
    #[must_use]
    pub fn is_immutable(&self) -> bool {
        self.code == STATUS_IMMUTABLE
    }
}

impl Table {
    /// Writes rows and waits until all tablets have acknowledged them.
    ///
    /// Each row is atomic, the batch is not. Within a batch rows with the same key are applied in
    /// order. Whatever is retried is applied once. Calls that run at the same time may be applied
    /// in any order.
    ///
    /// # Errors
    /// [`Error::NotCovered`]: nothing was sent. After other errors some of the rows may have been
    /// applied.
    pub async fn write(&self, batch: &RowBatch<'_>) -> Result<WriteOutcome, Error> {
        self.write_within(batch, self.inner.client.inner.config.operation_timeout).await
    }

    /// [`Table::write`] with a time limit of its own.
    ///
    /// # Errors
    /// As [`Table::write`].
    pub async fn write_within(
        &self,
        batch: &RowBatch<'_>,
        limit: Duration,
    ) -> Result<WriteOutcome, Error> {
        let operation = format!("write to table {}", self.inner.name);
        let mut attempts = self.inner.client.attempts(operation, Some(limit));
        let inner = &self.inner.client.inner;
        let units = u32::try_from(batch.bytes().div_ceil(BUDGET_UNIT)).unwrap_or(u32::MAX);
        let waiting = inner.write_budget.acquire_many(units.min(inner.write_budget_permits));
        let waited = tokio::time::timeout(attempts.until_deadline(), waiting).await;
        let _permits = waited.map_err(|_| attempts.timed_out())?;
        let groups = self.route(batch, &mut attempts).await?;
        let mut sending = JoinSet::new();
        for group in groups {
            let operation = format!("write to a tablet of table {}", self.inner.name);
            let attempts = attempts.part(operation);
            sending.spawn(send_group(self.clone(), group, attempts));
        }
        let mut outcome = WriteOutcome::default();
        let mut failures = Vec::new();
        while let Some(joined) = sending.join_next().await {
            match joined {
                Ok(Ok(errors)) => outcome.row_errors.extend(errors),
                Ok(Err(error)) => failures.push(error),
                Err(join) => failures.push(Error::OutcomeUnknown(join.to_string())),
            }
        }
        if let Some(error) = weightiest(failures, &self.inner.name) {
            return Err(error);
        }
        outcome.row_errors.sort_unstable_by_key(|e| e.row);
        Ok(outcome)
    }

    /// The id of the tablet that each row of a batch belongs to, as a write would have it. Nothing is
    /// written.
    ///
    /// # Errors
    /// [`Error::NotCovered`] and others, as [`Table::write`].
    pub async fn locate(&self, batch: &RowBatch<'_>) -> Result<Vec<String>, Error> {
        let operation = format!("locating rows of table {}", self.inner.name);
        let mut attempts = self.inner.client.attempts(operation, None);
        let mut located = vec![String::new(); batch.rows];
        for Group { tablet, chunks } in self.route(batch, &mut attempts).await? {
            let id = String::from_utf8_lossy(&tablet.id);
            for number in chunks.iter().flat_map(|chunk| &chunk.numbers) {
                if let Some(place) = located.get_mut(*number as usize) {
                    id.as_ref().clone_into(place);
                }
            }
        }
        Ok(located)
    }

    /// Encodes the batch, asking the master for the tablets that are not known.
    async fn route(
        &self,
        batch: &RowBatch<'_>,
        attempts: &mut Attempts,
    ) -> Result<Vec<Group>, Error> {
        let inner = &self.inner;
        let since = Instant::now();
        let encoder = Encoder::new(batch, &inner.schema, &inner.partition)?;
        let mut routed = Routed::default();
        encoder.route(0..batch.rows as u32, &inner.locations.snapshot(), since, &mut routed);
        while !routed.unknown.is_empty() {
            let key = std::mem::take(&mut routed.unknown_key);
            inner.find(&key, since, None, attempts).await?;
            let unknown = std::mem::take(&mut routed.unknown);
            let known = inner.locations.snapshot();
            encoder.route(unknown.into_iter(), &known, since, &mut routed);
        }
        match routed.uncovered.iter().min() {
            None => Ok(routed.groups),
            Some(first) => Err(self.not_covered(routed.uncovered.len(), *first)),
        }
    }

    fn not_covered(&self, rows: usize, first: u32) -> Error {
        let table = self.inner.name.clone();
        Error::NotCovered { table, rows, first_row: first as usize }
    }
}

/// Of what went wrong at several tablets, the first that no repetition helps against: a caller who is
/// told of another one would repeat the write for nothing. The others are logged.
fn weightiest(failures: Vec<Error>, table: &str) -> Option<Error> {
    let chosen = failures.iter().position(|error| !error.is_transient()).unwrap_or(0);
    let mut failures = failures.into_iter();
    let before: Vec<Error> = failures.by_ref().take(chosen).collect();
    let weightiest = failures.next();
    for error in before.into_iter().chain(failures) {
        tracing::warn!(table, %error, "a write failed at another tablet, too");
    }
    weightiest
}

async fn send_group(
    table: Table,
    group: Group,
    mut attempts: Attempts,
) -> Result<Vec<RowError>, Error> {
    let mut tablet = group.tablet;
    let mut errors = Vec::new();
    for chunk in group.chunks {
        errors.extend(send_chunk(&table, &mut tablet, chunk, &mut attempts).await?);
    }
    Ok(errors)
}

/// The parts of a request that stay the same over its attempts.
struct Payload {
    operations: [Bytes; 4],
    numbers: Vec<u32>,
}

async fn send_chunk(
    table: &Table,
    tablet: &mut Arc<Tablet>,
    chunk: Chunk,
    attempts: &mut Attempts,
) -> Result<Vec<RowError>, Error> {
    let mut request = table.inner.client.inner.requests.begin();
    let payload = Payload::new(chunk);
    loop {
        let Some(endpoint) = tablet.leader() else {
            relocate(table, tablet, attempts).await?;
            continue;
        };
        let server = endpoint.to_string();
        let call = Call {
            service: TABLET_SERVICE,
            method: "Write",
            features: Vec::new(),
            request_id: Some(request.next_attempt()),
            timeout: attempts.next_timeout()?,
            body: payload.body(table, tablet),
        };
        let reaction = match exchange(table, &endpoint, call).await {
            Ok(WriteResponse { error: None, per_row_errors, timestamp }) => {
                table.inner.client.observe_timestamp(timestamp.unwrap_or(0));
                tablet.promote(&endpoint);
                attempts.succeeded();
                let errors = per_row_errors.into_iter();
                return errors.map(|e| payload.row_error(&server, e.row_index, e.error)).collect();
            }
            Ok(WriteResponse { error: Some(error), .. }) => {
                attempts.failed(&server, &error.status.message.as_deref().unwrap_or_default());
                on_tablet_error(&error, &server, "write", &table.inner.name)
            }
            Err(error) => {
                attempts.failed(&server, &error);
                on_call_error(&error, &server, "Write")
            }
        };
        match reaction {
            Reaction::Relocate => relocate(table, tablet, attempts).await?,
            other => table.react(other, tablet, &endpoint, attempts).await?,
        }
    }
}

async fn exchange(
    table: &Table,
    endpoint: &Endpoint,
    call: Call,
) -> Result<WriteResponse, CallError> {
    let pool = &table.inner.client.inner.pool;
    pool.call(endpoint, true, call).await?.1.decode()
}

/// Asks the master anew where the tablet is: there may be another leader, or no tablet any more.
async fn relocate(
    table: &Table,
    tablet: &mut Arc<Tablet>,
    attempts: &mut Attempts,
) -> Result<(), Error> {
    let inner = &table.inner;
    attempts.back_off().await?;
    inner.locations.forget(tablet);
    let found = inner.find(&tablet.start, Instant::now(), Some(2), attempts).await?.tablet;
    // Other parts of the batch may have been sent: this is not "not covered".
    match found.filter(|found| (&found.start, &found.end) == (&tablet.start, &tablet.end)) {
        Some(found) => {
            *tablet = found;
            Ok(())
        }
        None => {
            let message = "its range partitions were altered during the write".to_owned();
            Err(Error::SchemaChanged { table: inner.name.clone(), message })
        }
    }
}

impl Payload {
    /// The rows as field 3 of the request, `RowOperations { rows = 2, indirect_data = 3 }`, around
    /// the buffers they were encoded into.
    fn new(chunk: Chunk) -> Self {
        let delimited = |tag: u8, length: usize, more: usize| {
            let mut out = BytesMut::with_capacity(11 + more);
            out.put_u8(tag);
            encode_varint(length as u64, &mut out);
            out
        };
        let field_len = |length: usize| 1 + encoded_len_varint(length as u64) + length;
        let total = field_len(chunk.rows.len()) + field_len(chunk.indirect.len());
        let mut head = delimited(3 << 3 | 2, total, 11);
        head.extend_from_slice(&delimited(2 << 3 | 2, chunk.rows.len(), 0));
        let middle = delimited(3 << 3 | 2, chunk.indirect.len(), 0);
        let operations = [head.freeze(), chunk.rows.into(), middle.freeze(), chunk.indirect.into()];
        Self { operations, numbers: chunk.numbers }
    }

    fn body(&self, table: &Table, tablet: &Tablet) -> Body {
        let request = WriteRequest {
            tablet_id: tablet.id.clone(),
            schema: None,
            row_operations: None,
            propagated_timestamp: table.inner.client.propagated_timestamp(),
            authz_token: table.authorization(),
        };
        let mut body = Body::message(&request);
        body.push(table.inner.encoded_reference.clone());
        for part in &self.operations {
            body.push(part.clone());
        }
        body
    }

    fn row_error(&self, server: &str, index: i32, error: AppStatus) -> Result<RowError, Error> {
        let number = usize::try_from(index).ok().and_then(|i| self.numbers.get(i));
        let row = *number.ok_or_else(|| Error::protocol(server, "error of a row never sent"))?;
        let message = error.message.unwrap_or_default();
        Ok(RowError { row: row as usize, message, code: error.code })
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::proto::RowOperations;

    #[test]
    fn of_several_failures_the_one_that_stays_is_told() {
        let late = |server: &str| Error::ScanInterrupted(server.to_owned());
        let refused = |n| Error::invalid(format!("{n}"));
        assert_eq!(weightiest(Vec::new(), "t"), None);
        assert_eq!(weightiest(vec![late("a"), late("b")], "t"), Some(late("a")));
        assert_eq!(
            weightiest(vec![late("a"), refused(1), late("b"), refused(2)], "t"),
            Some(refused(1))
        );
    }

    #[test]
    fn the_parts_of_a_payload_are_one_message() {
        let chunk = Chunk { rows: vec![7; 300], indirect: b"text".to_vec(), numbers: vec![0] };
        let payload = Payload::new(chunk);
        let bytes: Vec<u8> = payload.operations.iter().flat_map(|part| part.to_vec()).collect();
        let request = [WriteRequest::default().encode_to_vec(), bytes].concat();
        let request = WriteRequest::decode(request.as_slice()).unwrap();
        let expected = RowOperations {
            rows: Some(vec![7; 300].into()),
            indirect_data: Some(Bytes::from_static(b"text")),
        };
        assert_eq!(request.row_operations, Some(expected));
    }
}
