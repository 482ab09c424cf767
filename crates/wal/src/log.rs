//! The log: appending, group commit, releasing, closing.
//!
//! Group commit needs no thread of its own. The first thread that waits becomes the leader: it
//! takes everything appended so far, writes it at once and syncs it. Threads that append meanwhile
//! wait for the next batch; when the leader is done it wakes those it covered, and one of the
//! others to lead the next.
//!
//! Invariants
//! - A batch lies in one file, behind the batches before it; a file is synced before the next one
//!   is made.
//! - Lock order: `state` is never held while `writer` or `files` is taken; `files` inside `writer`.
//!
//! Limits: [`WalOptions::pending_bytes_max`] waiting, as much under way.
//! Not here: bytes (see `format`), names (see `files`), replay (see `recovery`).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use platform::{Disk, DiskError};

use crate::error::WalError;
use crate::files::{CreateError, Files, OpenFile};
use crate::format::{Lsn, RECORD_BYTES_MAX, RECORD_HEADER_BYTES};
use crate::metrics::WalMetrics;
use crate::options::{SyncPolicy, WalOptions};
use crate::recovery::{RecoveryReport, recover};
use crate::state::{Batch, Reach, State};
use crate::ticker::Ticker;

/// A leader waits this part of a sync for the next thread that may append.
const SYNC_PER_PATIENCE: u32 = 8;

/// Times a waiter looks again before it sleeps, where it waits for a write only.
const SPINS_MAX: u32 = 16;

/// An open log. Shared by reference between threads; dropping it without [`Wal::close`] is what a
/// crash of the process is: what was acknowledged stays.
#[derive(Debug)]
pub struct Wal {
    inner: Arc<Inner>,
    /// Syncs at an interval, if that is the policy.
    ticker: Option<Ticker>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    options: WalOptions,
    /// What the policy promises of an acknowledged record.
    promise: Reach,
    files: Mutex<Files>,
    writer: Mutex<Writer>,
    state: Mutex<State>,
    /// Up to where the promise holds: spares waiters the lock.
    acknowledged: AtomicU64,
    /// Waiters of batches with even and with odd numbers.
    turns: [Condvar; 2],
    /// Appends that wait for room.
    room: Condvar,
}

/// The end of the log on the disk; only the leader locks it.
#[derive(Debug)]
struct Writer {
    /// `None` after the log was opened on a full disk.
    current: Option<OpenFile>,
    /// Where the records before the current file end.
    previous_end: Lsn,
    written: Lsn,
    synced: Lsn,
}

/// A batch that reached the disk.
struct Flushed {
    batch: Batch,
    synced: Lsn,
    /// What is to be added to a position for its offset in the current file.
    offset: u64,
    /// How long syncs took: of a full file, of the current one.
    syncs: [Option<Duration>; 2],
}

/// Why a batch did not reach the disk.
enum FlushError {
    /// Nothing was written; the batch may be tried again.
    Full(DiskError, Batch),
    Failed(DiskError),
}

impl Wal {
    /// Opens the log in `dir` (made if missing) and hands every record in it to `replay`, in order,
    /// with its end position. New records go to a new file.
    ///
    /// The owner makes sure that no other process has the directory open.
    pub fn open<E>(
        disk: Arc<dyn Disk>,
        dir: &Path,
        options: WalOptions,
        replay: &mut dyn FnMut(Lsn, &[u8]) -> Result<(), E>,
    ) -> Result<(Self, RecoveryReport), WalError>
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        options.check()?;
        let recovered = recover(&*disk, dir, &mut |lsn, payload| {
            replay(lsn, payload).map_err(|source| WalError::Replay { lsn, source: source.into() })
        })?;
        let report = recovered.report;
        let base = recovered.next_base.max(options.position_min);
        if base > Lsn::MAX {
            return Err(WalError::PositionsExhausted(base));
        }
        let (closed, sequence) = (recovered.closed, recovered.next_sequence);
        let mut files = Files::new(disk, dir, options.file_bytes, closed, sequence);
        files.remove_found(&recovered.spares)?;
        let current = match files.advance(report.end, base, 0) {
            Ok(current) => Some(current),
            // A full disk does not keep the owner from reading. Appends will say what is wrong.
            Err(CreateError::Full(_)) => None,
            Err(CreateError::Failed(error)) => return Err(error.into()),
        };
        let writer = Writer { current, previous_end: report.end, written: base, synced: base };
        let inner = Arc::new(Inner {
            options,
            promise: match options.sync {
                SyncPolicy::Always => Reach::Synced,
                SyncPolicy::Interval(_) | SyncPolicy::Never => Reach::Written,
            },
            files: Mutex::new(files),
            writer: Mutex::new(writer),
            state: Mutex::new(State::new(base)),
            acknowledged: AtomicU64::new(base.0),
            turns: [Condvar::new(), Condvar::new()],
            room: Condvar::new(),
        });
        let ticker = match options.sync {
            SyncPolicy::Interval(interval) => {
                Some(Ticker::start(interval, &inner).map_err(WalError::Thread)?)
            }
            SyncPolicy::Always | SyncPolicy::Never => None,
        };
        Ok((Self { inner, ticker }, report))
    }

    /// Appends one record, the concatenation of `parts`, and returns its end position. Returns as
    /// soon as the record is copied, unless too many bytes wait for the disk already.
    pub fn append(&self, parts: &[&[u8]]) -> Result<Lsn, WalError> {
        self.inner.append(parts)
    }

    /// Waits until everything up to `lsn` is as durable as the policy promises.
    pub fn wait_durable(&self, lsn: Lsn) -> Result<(), WalError> {
        if self.inner.acknowledged.load(Ordering::Acquire) >= lsn.0 {
            return Ok(());
        }
        self.inner.wait(lsn, self.inner.promise)
    }

    /// Syncs everything appended so far to the disk, whatever the policy.
    pub fn sync(&self) -> Result<(), WalError> {
        self.inner.sync()
    }

    /// Gives up all records that end at or before `before`: files with no other are removed or
    /// reused. Never gives up anything later, nor the file that takes records.
    pub fn release(&self, before: Lsn) -> Result<(), WalError> {
        Ok(self.inner.files.lock().release(before)?)
    }

    /// Goes on in a small file, without spares, if every record ends at or before `before` and is
    /// given up: for an owner that expects no appends for a while. Otherwise does nothing.
    pub fn rest(&self, before: Lsn) -> Result<(), WalError> {
        self.inner.rest(before)
    }

    /// Where the next record will start.
    #[must_use]
    pub fn position(&self) -> Lsn {
        self.inner.state.lock().position()
    }

    /// Where the oldest record that is kept starts.
    #[must_use]
    pub fn oldest(&self) -> Lsn {
        self.inner.files.lock().oldest()
    }

    /// Bytes of the records that are kept.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let position = self.position();
        self.inner.files.lock().bytes(position)
    }

    /// Counters since the log was opened.
    #[must_use]
    pub fn metrics(&self) -> WalMetrics {
        let (disk_bytes, files) = {
            let files = self.inner.files.lock();
            (files.disk_bytes(), files.made())
        };
        WalMetrics { disk_bytes, files, ..self.inner.state.lock().metrics }
    }

    /// Syncs everything, marks the log as properly closed and refuses appends from then on.
    /// Closing again does nothing.
    pub fn close(&self) -> Result<(), WalError> {
        if let Some(ticker) = &self.ticker {
            ticker.stop();
        }
        self.inner.close()
    }
}

impl Inner {
    fn append(&self, parts: &[&[u8]]) -> Result<Lsn, WalError> {
        let bytes = parts.iter().fold(0, |sum: usize, part| sum.saturating_add(part.len()));
        if bytes == 0 {
            return Err(WalError::EmptyRecord);
        }
        let Some(payload_bytes) = u32::try_from(bytes).ok().filter(|_| bytes <= RECORD_BYTES_MAX)
        else {
            return Err(WalError::RecordTooLarge { bytes: bytes as u64 });
        };
        let crc = parts.iter().fold(0, |crc, part| crc32c::crc32c_append(crc, part));
        let mut state = self.with_room(RECORD_HEADER_BYTES + bytes)?;
        if state.position() > Lsn::MAX {
            return Err(WalError::PositionsExhausted(state.position()));
        }
        Ok(state.push(parts, payload_bytes, crc))
    }

    /// Waits until `bytes` more may wait in memory. One record always may.
    fn with_room(&self, bytes: usize) -> Result<MutexGuard<'_, State>, WalError> {
        let mut state = self.state.lock();
        let mut deadline = None;
        loop {
            state.check()?;
            if state.closed {
                return Err(WalError::Closed);
            }
            let pending_bytes = state.pending_bytes();
            if pending_bytes == 0 || pending_bytes + bytes <= self.options.pending_bytes_max {
                return Ok(state);
            }
            if deadline.is_none() {
                state.metrics.append_waits += 1;
            }
            let waited = self.options.append_wait_max;
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + waited);
            if !state.flushing {
                self.lead(&mut state, self.promise)?;
            } else if self.room.wait_until(&mut state, deadline).timed_out() {
                return Err(WalError::Overloaded { pending_bytes: state.pending_bytes(), waited });
            }
        }
    }

    fn wait(&self, lsn: Lsn, reach: Reach) -> Result<(), WalError> {
        let mut state = self.state.lock();
        let end = state.position();
        if lsn > end {
            return Err(WalError::BeyondEnd { lsn, end });
        }
        let outcome = self.wait_in(&mut state, lsn, reach);
        if !state.flushing {
            // Whoever was woken to lead and need not passes the turn on.
            self.turns[0].notify_one();
            self.turns[1].notify_one();
        }
        outcome
    }

    fn wait_in(
        &self,
        state: &mut MutexGuard<'_, State>,
        lsn: Lsn,
        reach: Reach,
    ) -> Result<(), WalError> {
        let mut patience = if reach == Reach::Written { SPINS_MAX } else { 0 };
        while state.reached(reach) < lsn {
            state.check()?;
            if state.flushing && patience > 0 {
                // A write without a sync is over sooner than a sleep.
                MutexGuard::unlocked(state, || {
                    while patience > 0 && self.acknowledged.load(Ordering::Acquire) < lsn.0 {
                        patience -= 1;
                        std::thread::yield_now();
                    }
                });
            } else if state.flushing {
                let turn = &self.turns[state.batch_of(lsn) & 1];
                turn.wait(state);
            } else {
                self.lead(state, reach)?;
            }
        }
        Ok(())
    }

    fn rest(&self, before: Lsn) -> Result<(), WalError> {
        self.state.lock().check()?;
        let mut writer = self.writer.lock();
        // What waits to be written begins where the new file does.
        if writer.current.is_none() || writer.written > before || writer.synced < writer.written {
            return Ok(());
        }
        let next = self.files.lock().rest(writer.written);
        match next {
            Ok(None) => return Ok(()),
            // From here on records go to the new file, whatever becomes of the old ones.
            Ok(next) => writer.current = next,
            // A full disk has no room for saving room; the log goes on as it was.
            Err(CreateError::Full(_)) => return Ok(()),
            Err(CreateError::Failed(error)) => {
                drop(writer);
                let poisoned = self.state.lock().poison(error);
                self.wake_all();
                return Err(poisoned);
            }
        }
        drop(writer);
        Ok(self.files.lock().give_up_all(before)?)
    }

    pub(crate) fn sync(&self) -> Result<(), WalError> {
        let position = self.state.lock().position();
        self.wait(position, Reach::Synced)
    }

    /// Writes everything that waits, as the only thread that does, without the lock.
    fn lead(&self, state: &mut MutexGuard<'_, State>, reach: Reach) -> Result<(), WalError> {
        state.flushing = true;
        if reach == Reach::Synced {
            self.let_others_in(state);
        }
        if self.promise == Reach::Synced {
            state.fill_page(self.options.page_bytes);
        }
        let batch = state.take();
        let number = state.batch.wrapping_sub(1);
        self.room.notify_all();
        let outcome = MutexGuard::unlocked(state, || {
            let mut unwinding = StopOnPanic { inner: self, armed: true };
            let outcome = self.flush(batch, reach);
            unwinding.armed = false;
            outcome
        });
        state.flushing = false;
        let outcome = match outcome {
            Ok(flushed) => {
                for took in flushed.syncs.into_iter().flatten() {
                    state.metrics.add_sync(took);
                    state.last_sync = took;
                }
                let keep_bytes = self.options.pending_bytes_max;
                state.finish(flushed.batch, flushed.synced, flushed.offset, keep_bytes);
                self.acknowledged.store(state.reached(self.promise).0, Ordering::Release);
                self.turns[number & 1].notify_all();
                self.turns[(number & 1) ^ 1].notify_one();
                // Those who wait for room may be all who are left to lead.
                self.room.notify_all();
                return Ok(());
            }
            Err(FlushError::Full(cause, batch)) => {
                state.metrics.disk_full += 1;
                state.put_back(batch);
                Err(WalError::DiskFull { cause })
            }
            Err(FlushError::Failed(cause)) => Err(state.poison(cause)),
        };
        self.wake_all();
        outcome
    }

    /// Steps aside until as many records wait as the last sync covered and kept waiting: threads
    /// it woke are about to append, and a sync that covers them too costs the same. Whoever stays
    /// away is waited for only a fraction of the time a sync takes.
    fn let_others_in(&self, state: &mut MutexGuard<'_, State>) {
        let patience = state.last_sync / SYNC_PER_PATIENCE;
        let mut seen = state.position();
        let mut since = Instant::now();
        while state.pending_records() < state.expected_records
            && state.pending_bytes() < self.options.pending_bytes_max
        {
            MutexGuard::unlocked(state, std::thread::yield_now);
            if state.position() != seen {
                seen = state.position();
                since = Instant::now();
            } else if since.elapsed() > patience {
                break;
            }
        }
    }

    fn flush(&self, batch: Batch, reach: Reach) -> Result<Flushed, FlushError> {
        let mut writer = self.writer.lock();
        let mut syncs = [None; 2];
        if !batch.bytes.is_empty() {
            match self.make_room(&mut writer, &batch) {
                Ok(took) => syncs[0] = took,
                Err(CreateError::Full(cause)) => return Err(FlushError::Full(cause, batch)),
                Err(CreateError::Failed(error)) => return Err(FlushError::Failed(error)),
            }
            writer.write(&batch).map_err(FlushError::Failed)?;
        }
        if reach == Reach::Synced {
            syncs[1] = writer.sync().map_err(FlushError::Failed)?;
        }
        let offset = writer.current.as_ref().map_or(0, OpenFile::offset_of_positions);
        Ok(Flushed { batch, synced: writer.synced, offset, syncs })
    }

    /// Has the current file take `batch`, or the next one; returns how long a sync of a full one took.
    fn make_room(
        &self,
        writer: &mut Writer,
        batch: &Batch,
    ) -> Result<Option<Duration>, CreateError> {
        if let Some(current) = &mut writer.current
            && batch.end <= current.room_end
        {
            if current.allocated_end < batch.end {
                let len = current.extend(batch.end)?;
                self.files.lock().note_len(len);
            }
            return Ok(None);
        }
        let took = writer.sync().map_err(CreateError::Failed)?;
        let bytes = batch.bytes.len() as u64;
        let next = self.files.lock().advance(writer.end(), batch.start, bytes)?;
        writer.current = Some(next);
        Ok(took)
    }

    fn close(&self) -> Result<(), WalError> {
        {
            let mut state = self.state.lock();
            if state.sealed {
                return Ok(());
            }
            state.closed = true;
        }
        // No append gets in any more, so this covers all records, and the seal can say so.
        self.sync()?;
        let has_records = self.writer.lock().has_records();
        {
            let mut state = self.state.lock();
            if has_records && !state.sealed {
                state.push_seal();
            }
            state.sealed = true;
        }
        self.sync()
    }

    fn wake_all(&self) {
        self.turns[0].notify_all();
        self.turns[1].notify_all();
        self.room.notify_all();
    }
}

impl Writer {
    fn has_records(&self) -> bool {
        self.current.as_ref().is_some_and(|current| self.written > current.base)
    }

    /// Where the records end, which is not where the next one starts if the log was just opened.
    fn end(&self) -> Lsn {
        if self.current.is_some() { self.written } else { self.previous_end }
    }

    fn write(&mut self, batch: &Batch) -> Result<(), DiskError> {
        assert!(batch.start == self.written, "BUG: a batch does not follow the one before");
        let current = self.current.as_ref().expect("BUG: writing without a file");
        current.file.write_at(&batch.bytes, current.offset(batch.start))?;
        self.written = batch.end;
        Ok(())
    }

    /// Syncs what was written; returns how long it took, `None` if there was nothing to do.
    fn sync(&mut self) -> Result<Option<Duration>, DiskError> {
        if self.synced == self.written {
            return Ok(None);
        }
        let begun = Instant::now();
        let current = self.current.as_ref().expect("BUG: syncing without a file");
        current.file.sync()?;
        self.synced = self.written;
        Ok(Some(begun.elapsed()))
    }
}

/// Stops the log if the leader unwinds, so that nobody waits for it for ever.
struct StopOnPanic<'a> {
    inner: &'a Inner,
    armed: bool,
}

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if self.armed {
            let mut state = self.inner.state.lock();
            state.flushing = false;
            state.poison(DiskError {
                operation: "write",
                path: PathBuf::new(),
                offset: None,
                source: io::Error::other("BUG: the thread that wrote the log panicked"),
            });
            drop(state);
            self.inner.wake_all();
        }
    }
}

#[cfg(test)]
mod tests;
