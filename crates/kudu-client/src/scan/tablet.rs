//! The scan of one tablet: a scanner on a server, continued there, or opened anew on another one.
//!
//! Invariants
//! - One call at a time; the next answer is asked for as soon as one has come.
//! - A scan that is not fault-tolerant is opened anew only as long as no row was handed out.
//! - A scanner left open on a server is closed when this is dropped.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinHandle;

use super::batch::ScanBatch;
use super::builder::{ReadMode, ReplicaSelection, Spec};
use crate::cluster::locations::Tablet;
use crate::error::Error;
use crate::proto::{
    COLUMNAR_LAYOUT, ErrorOnlyResponse, NewScanRequest, ScanRequest, ScanResponse,
    ScannerKeepAliveRequest, TABLET_SERVICE, order_mode, read_mode, tablet_feature,
};
use crate::retry::{Attempts, Reaction, on_call_error, on_tablet_error};
use crate::rpc::{Answer, Body, Call, CallError, Connection, Endpoint};
use crate::schema::Column;
use crate::table::Table;

/// A call for more rows that is under way.
type NextAnswer = JoinHandle<Result<Answer, CallError>>;

/// A scanner on a server.
#[derive(Debug)]
struct Open {
    id: Bytes,
    endpoint: Endpoint,
    connection: Connection,
    next: NextAnswer,
    /// Number of the call in `next`.
    sequence: u32,
    /// Whether the server still has it.
    to_close: bool,
    timeout: Duration,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.next.abort();
        if !self.to_close {
            return;
        }
        // A server carries out one call of a scanner at a time, so the close comes after the call
        // that is under way.
        let request = ScanRequest {
            scanner_id: Some(std::mem::take(&mut self.id)),
            call_seq_id: Some(self.sequence.wrapping_add(1)),
            batch_size_bytes: Some(0),
            close_scanner: Some(true),
            ..ScanRequest::default()
        };
        self.connection.call_and_forget(scan_call(&request, Vec::new(), self.timeout));
    }
}

/// Where the scan of a tablet stands.
#[derive(Debug)]
pub(crate) struct TabletScan {
    table: Table,
    spec: Arc<Spec>,
    tablet: Arc<Tablet>,
    limit: Option<u64>,
    snapshot: Option<u64>,
    open: Option<Open>,
    last_key: Option<Bytes>,
    handed_out: bool,
}

/// What a step came to.
#[derive(Debug)]
pub(crate) enum Step {
    /// Rows (perhaps none) and whether the tablet may have more.
    Batch(ScanBatch, bool),
    /// The tablet is not where it was: ask the master, then go on with the tablet it names.
    Relocate,
}

impl TabletScan {
    pub(crate) fn new(
        table: Table,
        spec: Arc<Spec>,
        tablet: Arc<Tablet>,
        limit: Option<u64>,
        snapshot: Option<u64>,
    ) -> Self {
        Self { table, spec, tablet, limit, snapshot, open: None, last_key: None, handed_out: false }
    }

    pub(crate) fn tablet(&self) -> &Arc<Tablet> {
        &self.tablet
    }

    /// The snapshot that is read, once a server has said it.
    pub(crate) fn snapshot(&self) -> Option<u64> {
        self.snapshot
    }

    /// Whether rows were handed out.
    pub(crate) fn has_handed_out(&self) -> bool {
        self.handed_out
    }

    /// Whether rows were handed out that a scan from the start would hand out again.
    fn must_not_restart(&self) -> bool {
        self.handed_out && !self.spec.fault_tolerant
    }

    /// Goes on with what the master says about the same partition keys now.
    pub(crate) fn set_tablet(&mut self, tablet: Arc<Tablet>) {
        self.tablet = tablet;
    }

    /// The next rows.
    pub(crate) async fn step(&mut self, attempts: &mut Attempts) -> Result<Step, Error> {
        loop {
            // The scanner stays in its place while its answer is awaited, so that dropping this
            // future loses nothing.
            let Some(open) = &mut self.open else {
                match self.open_scanner(attempts).await? {
                    Some(step) => return Ok(step),
                    None => continue,
                }
            };
            let waiting = tokio::time::timeout(attempts.until_deadline(), &mut open.next).await;
            let result = waiting.map_err(|_| attempts.timed_out())?;
            let result = result.unwrap_or_else(|e| Err(CallError::Network(e.to_string())));
            let Some(mut open) = self.open.take() else { continue };
            let server = open.endpoint.to_string();
            let reaction = match result {
                Ok(answer) => {
                    let response: ScanResponse = decode(&answer, &server)?;
                    match &response.error {
                        None => {
                            if response.has_more_results.unwrap_or(false) {
                                self.go_on(open, 1);
                            } else {
                                open.to_close = false;
                            }
                            return self.take(&answer, &response, &server);
                        }
                        Some(error) => {
                            attempts.failed(&server, &describe(error));
                            on_tablet_error(error, &server, "scan", &self.table.inner.name)
                        }
                    }
                }
                Err(error) => {
                    attempts.failed(&server, &error);
                    on_call_error(&error, &server, "Scan")
                }
            };
            if matches!(reaction, Reaction::Wait) {
                // The server has not carried out the call: the same one again.
                self.go_on(open, 0);
                attempts.back_off().await?;
            } else {
                self.interrupted(reaction, &open.endpoint, attempts).await?;
            }
        }
    }

    /// Asks the scanner for more, `advance` calls later than before.
    fn go_on(&mut self, mut open: Open, advance: u32) {
        open.sequence = open.sequence.wrapping_add(advance);
        open.next = self.ask(&open.connection, &open.id, open.sequence);
        self.open = Some(open);
    }

    /// A scanner was lost between two answers.
    async fn interrupted(
        &mut self,
        reaction: Reaction,
        endpoint: &Endpoint,
        attempts: &mut Attempts,
    ) -> Result<(), Error> {
        if self.must_not_restart() {
            return Err(match reaction {
                Reaction::Fail(error) => error,
                Reaction::ScannerGone(message) => Error::ScanInterrupted(message),
                _ => Error::ScanInterrupted(format!("{endpoint} failed")),
            });
        }
        match reaction {
            Reaction::ScannerGone(_) => Ok(()),
            Reaction::Relocate => attempts.back_off().await,
            other => self.table.react(other, &self.tablet, endpoint, attempts).await,
        }
    }

    /// Opens a scanner; `None`: try again.
    async fn open_scanner(&mut self, attempts: &mut Attempts) -> Result<Option<Step>, Error> {
        if self.must_not_restart() {
            return Err(Error::ScanInterrupted("its scanner was lost".to_owned()));
        }
        let endpoint = match self.spec.replicas {
            ReplicaSelection::Leader => self.tablet.named_leader(),
            ReplicaSelection::Any => self.tablet.any(),
        };
        let Some(endpoint) = endpoint else { return Ok(Some(Step::Relocate)) };
        let server = endpoint.to_string();
        let request = ScanRequest {
            new_scan_request: Some(self.new_scan_request()),
            call_seq_id: Some(0),
            batch_size_bytes: Some(self.spec.batch_bytes),
            ..ScanRequest::default()
        };
        let mut features = vec![tablet_feature::COLUMNAR_LAYOUT];
        if !self.spec.predicates.is_empty() {
            features.push(tablet_feature::COLUMN_PREDICATES);
        }
        let timeout = attempts.next_timeout()?;
        let call = scan_call(&request, features, timeout);
        let pool = &self.table.inner.client.inner.pool;
        let reaction = match pool.call(&endpoint, true, call).await {
            Ok((connection, answer)) => {
                let response: ScanResponse = decode(&answer, &server)?;
                match &response.error {
                    None => {
                        let has_more = response.has_more_results.unwrap_or(false);
                        if let Some(id) = response.scanner_id.clone().filter(|_| has_more) {
                            let next = self.ask(&connection, &id, 1);
                            let timeout = self.attempt_timeout();
                            self.open = Some(Open {
                                id,
                                endpoint,
                                connection,
                                next,
                                sequence: 1,
                                to_close: true,
                                timeout,
                            });
                        }
                        return self.take(&answer, &response, &server).map(Some);
                    }
                    Some(error) => {
                        attempts.failed(&server, &describe(error));
                        on_tablet_error(error, &server, "scan", &self.table.inner.name)
                    }
                }
            }
            Err(error) => {
                attempts.failed(&server, &error);
                on_call_error(&error, &server, "Scan")
            }
        };
        if matches!(reaction, Reaction::Relocate) {
            return Ok(Some(Step::Relocate));
        }
        self.table.react(reaction, &self.tablet, &endpoint, attempts).await?;
        Ok(None)
    }

    fn new_scan_request(&self) -> NewScanRequest {
        let spec = &self.spec;
        let client = &self.table.inner.client;
        let mode = match spec.read_mode {
            ReadMode::Latest => read_mode::LATEST,
            ReadMode::Snapshot(_) => read_mode::AT_SNAPSHOT,
            ReadMode::YourWrites => read_mode::YOUR_WRITES,
        };
        let is_snapshot = matches!(spec.read_mode, ReadMode::Snapshot(_));
        let order = if spec.fault_tolerant { order_mode::ORDERED } else { order_mode::UNORDERED };
        NewScanRequest {
            tablet_id: self.tablet.id.clone(),
            limit: self.limit,
            projected_columns: spec.projection.iter().map(Column::reference).collect(),
            read_mode: Some(mode),
            snap_timestamp: self.snapshot.filter(|_| is_snapshot),
            propagated_timestamp: client.propagated_timestamp(),
            cache_blocks: Some(spec.cache_blocks),
            order_mode: Some(order),
            last_primary_key: self.last_key.clone(),
            column_predicates: spec.predicates.clone(),
            row_format_flags: Some(COLUMNAR_LAYOUT),
            authz_token: self.table.authorization(),
        }
    }

    fn attempt_timeout(&self) -> Duration {
        self.spec.timeout.min(self.table.inner.client.inner.config.attempt_timeout)
    }

    /// Asks for more rows without waiting for them.
    fn ask(&self, connection: &Connection, id: &Bytes, sequence: u32) -> NextAnswer {
        let request = ScanRequest {
            scanner_id: Some(id.clone()),
            call_seq_id: Some(sequence),
            batch_size_bytes: Some(self.spec.batch_bytes),
            ..ScanRequest::default()
        };
        let call = scan_call(&request, Vec::new(), self.attempt_timeout());
        let connection = connection.clone();
        tokio::spawn(async move { connection.call(call).await })
    }

    fn take(
        &mut self,
        answer: &Answer,
        response: &ScanResponse,
        server: &str,
    ) -> Result<Step, Error> {
        let client = &self.table.inner.client;
        for timestamp in [response.propagated_timestamp, response.snap_timestamp] {
            client.observe_timestamp(timestamp.unwrap_or(0));
        }
        self.snapshot = self.snapshot.or(response.snap_timestamp);
        if let Some(key) = response.last_primary_key.clone().filter(|key| !key.is_empty()) {
            self.last_key = Some(key);
        }
        let block = response.columnar_data.clone().unwrap_or_default();
        let batch = ScanBatch::new(&block, &answer.sidecars, &self.spec.projection)
            .map_err(|message| Error::protocol(server, message))?;
        self.handed_out |= batch.rows() > 0;
        if let Some(limit) = &mut self.limit {
            *limit = limit.saturating_sub(batch.rows() as u64);
        }
        Ok(Step::Batch(batch, self.open.is_some()))
    }

    /// Tells the server that the scanner is still wanted.
    pub(crate) async fn keep_alive(&self, attempts: &mut Attempts) -> Result<(), Error> {
        let Some(open) = &self.open else { return Ok(()) };
        let call = Call {
            service: TABLET_SERVICE,
            method: "ScannerKeepAlive",
            features: Vec::new(),
            request_id: None,
            timeout: attempts.next_timeout()?,
            body: Body::message(&ScannerKeepAliveRequest { scanner_id: open.id.clone() }),
        };
        let server = open.endpoint.to_string();
        let name = &self.table.inner.name;
        let reaction = match open.connection.call(call).await {
            Ok(answer) => {
                let response: ErrorOnlyResponse = decode(&answer, &server)?;
                let Some(error) = response.error else { return Ok(()) };
                attempts.failed(&server, &describe(&error));
                on_tablet_error(&error, &server, "keep-alive", name)
            }
            Err(error) => {
                attempts.failed(&server, &error);
                on_call_error(&error, &server, "ScannerKeepAlive")
            }
        };
        match reaction {
            Reaction::Fail(error) => Err(error),
            // The answer that is ahead may have been the last one, which ends the scanner; the next
            // batch finds out what became of it, and can act on it.
            _ => Ok(()),
        }
    }
}

fn scan_call(request: &ScanRequest, features: Vec<u32>, timeout: Duration) -> Call {
    Call {
        service: TABLET_SERVICE,
        method: "Scan",
        features,
        request_id: None,
        timeout,
        body: Body::message(request),
    }
}

fn decode<M: prost::Message + Default>(answer: &Answer, server: &str) -> Result<M, Error> {
    answer.decode().map_err(|e| Error::protocol(server, e.to_string()))
}

fn describe(error: &crate::proto::ServiceError) -> String {
    let message = error.status.message.as_deref().unwrap_or_default();
    format!("{message} (code {}, status {})", error.code, error.status.code)
}
