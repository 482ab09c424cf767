//! The part of a log that all threads share under one short lock: records waiting in memory and
//! how far the disk has come.
//!
//! Invariants
//! - `synced <= written <= taken <= position`; `pending` holds exactly `taken..position`.
//! - Only the thread that set `flushing` writes to the disk; it alone moves `written` and `synced`.
//!
//! Not here: waiting and the disk (see `log`).

use std::sync::Arc;
use std::time::Duration;

use platform::DiskError;

use crate::error::WalError;
use crate::format::{DATA_START, Lsn, RECORD_HEADER_BYTES, RecordHeader};
use crate::metrics::WalMetrics;

/// A fill is at most such a part of the records it follows: a log of fills is a longer one to replay.
const RECORDS_PER_FILL: usize = 4;

#[derive(Debug)]
pub(crate) struct State {
    pending: Vec<u8>,
    pending_records: u64,
    /// The buffer of the write before, for the next.
    idle: Vec<u8>,
    position: u64,
    /// What is to be added to a position for its offset in the file that was last written.
    offset: u64,
    taken: u64,
    written: u64,
    synced: u64,
    /// Number of the batch that `pending` will become.
    pub(crate) batch: usize,
    /// A thread is the leader: it is about to write, writing or syncing.
    pub(crate) flushing: bool,
    /// Records that may be expected before the next write: those the last one took, whose threads
    /// are likely to come again, and those that came meanwhile.
    pub(crate) expected_records: u64,
    /// How long the last sync took.
    pub(crate) last_sync: Duration,
    /// No more appends.
    pub(crate) closed: bool,
    /// The seal was appended, nothing follows.
    pub(crate) sealed: bool,
    poison: Option<Arc<DiskError>>,
    pub(crate) metrics: WalMetrics,
}

/// Everything that waited, on its way to the disk.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) records: u64,
    pub(crate) start: Lsn,
    pub(crate) end: Lsn,
}

/// How far a record must have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Handed to the operating system.
    Written,
    /// Synced to the disk.
    Synced,
}

impl State {
    pub(crate) fn new(start: Lsn) -> Self {
        let start = start.0;
        Self {
            pending: Vec::new(),
            pending_records: 0,
            idle: Vec::new(),
            position: start,
            // The file begins where the log does.
            offset: (DATA_START as u64).wrapping_sub(start),
            taken: start,
            written: start,
            synced: start,
            batch: 0,
            flushing: false,
            expected_records: 0,
            last_sync: Duration::ZERO,
            closed: false,
            sealed: false,
            poison: None,
            metrics: WalMetrics::default(),
        }
    }

    pub(crate) fn position(&self) -> Lsn {
        Lsn(self.position)
    }

    pub(crate) fn pending_records(&self) -> u64 {
        self.pending_records
    }

    pub(crate) fn pending_bytes(&self) -> usize {
        self.pending.len()
    }

    pub(crate) fn reached(&self, reach: Reach) -> Lsn {
        match reach {
            Reach::Written => Lsn(self.written),
            Reach::Synced => Lsn(self.synced),
        }
    }

    /// The batch a waiter for `lsn` belongs to: the one in memory or the one under way.
    pub(crate) fn batch_of(&self, lsn: Lsn) -> usize {
        if lsn.0 > self.taken { self.batch } else { self.batch.wrapping_sub(1) }
    }

    /// Fails if the log is stopped.
    pub(crate) fn check(&self) -> Result<(), WalError> {
        match &self.poison {
            Some(cause) => Err(WalError::Poisoned { cause: Arc::clone(cause) }),
            None => Ok(()),
        }
    }

    /// Stops the log. The first cause stays.
    pub(crate) fn poison(&mut self, cause: DiskError) -> WalError {
        let cause = Arc::clone(self.poison.get_or_insert_with(|| Arc::new(cause)));
        WalError::Poisoned { cause }
    }

    /// Appends a record.
    pub(crate) fn push(&mut self, parts: &[&[u8]], payload_bytes: u32, payload_crc: u32) -> Lsn {
        let bytes = RECORD_HEADER_BYTES + payload_bytes as usize;
        self.pending.reserve(bytes);
        self.push_header(false, payload_bytes, payload_crc);
        for part in parts {
            self.pending.extend_from_slice(part);
        }
        self.position += u64::from(payload_bytes);
        self.pending_records += 1;
        self.metrics.appends += 1;
        self.metrics.append_bytes += bytes as u64;
        Lsn(self.position)
    }

    /// Appends a header without payload: it states what is durable, and ends a log closed properly.
    pub(crate) fn push_seal(&mut self) {
        self.push_header(false, 0, 0);
    }

    /// Appends a fill up to the end of the page, if that is little beside what waits: what is synced
    /// next would otherwise write that page again.
    pub(crate) fn fill_page(&mut self, page_bytes: usize) {
        let in_page = (self.position.wrapping_add(self.offset) % page_bytes as u64) as usize;
        let bytes = page_bytes - in_page;
        let is_little = bytes * RECORDS_PER_FILL <= self.pending.len();
        if in_page == 0 || bytes < RECORD_HEADER_BYTES || !is_little {
            return;
        }
        let payload_bytes = bytes - RECORD_HEADER_BYTES;
        self.push_header(true, payload_bytes as u32, 0);
        self.pending.resize(self.pending.len() + payload_bytes, 0);
        self.position += payload_bytes as u64;
        self.metrics.fill_bytes += bytes as u64;
    }

    fn push_header(&mut self, is_fill: bool, payload_bytes: u32, payload_crc: u32) {
        let durable_back = u32::try_from(self.position - self.synced).unwrap_or(u32::MAX);
        let header = RecordHeader { is_fill, payload_bytes, payload_crc, durable_back };
        self.pending.extend_from_slice(&header.encode(Lsn(self.position)));
        self.position += RECORD_HEADER_BYTES as u64;
    }

    /// Takes everything that waits.
    pub(crate) fn take(&mut self) -> Batch {
        let bytes = std::mem::replace(&mut self.pending, std::mem::take(&mut self.idle));
        let records = std::mem::take(&mut self.pending_records);
        let batch = Batch { bytes, records, start: Lsn(self.taken), end: Lsn(self.position) };
        self.taken = self.position;
        self.batch = self.batch.wrapping_add(1);
        batch
    }

    /// Puts a batch of which nothing was written back before what came since.
    pub(crate) fn put_back(&mut self, batch: Batch) {
        let Batch { mut bytes, records, start, end: _ } = batch;
        bytes.extend_from_slice(&self.pending);
        self.pending.clear();
        self.idle = std::mem::replace(&mut self.pending, bytes);
        self.pending_records += records;
        self.taken = start.0;
    }

    /// Notes that a batch reached the disk, in a file where `offset` is to be added to positions. Keeps
    /// its buffer unless it grew above `keep_bytes`.
    pub(crate) fn finish(&mut self, batch: Batch, synced: Lsn, offset: u64, keep_bytes: usize) {
        self.offset = offset;
        self.written = batch.end.0;
        self.synced = synced.0;
        self.expected_records = batch.records + self.pending_records;
        if batch.records > 0 {
            self.metrics.add_write(batch.records);
        }
        if batch.bytes.capacity() <= keep_bytes {
            self.idle = batch.bytes;
            self.idle.clear();
        }
    }
}
