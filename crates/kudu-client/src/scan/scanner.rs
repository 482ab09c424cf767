//! A scan over all tablets that may have rows, one after another.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::time::Instant;

use super::batch::ScanBatch;
use super::builder::{ReadMode, Spec};
use super::tablet::{Step, TabletScan};
use crate::cluster::locations::{Stretch, WHOLE};
use crate::error::Error;
use crate::prune::KeyRange;
use crate::retry::Attempts;
use crate::table::Table;

/// A scan that runs. Dropping it frees what it holds on the servers.
///
/// Rows come tablet by tablet. To read tablets in parallel use
/// [`ScanBuilder::tokens`](crate::ScanBuilder::tokens).
#[derive(Debug)]
pub struct Scanner {
    table: Table,
    spec: Arc<Spec>,
    /// Partition keys still to be visited.
    ranges: VecDeque<KeyRange>,
    left: Option<u64>,
    snapshot: Option<u64>,
    current: Option<TabletScan>,
    /// Whether a tablet was gone when it was to be read.
    has_lost: bool,
    /// Gaps learned before are not believed.
    begun: Instant,
}

impl Scanner {
    pub(crate) fn new(table: Table, spec: Spec, ranges: Vec<KeyRange>, limit: Option<u64>) -> Self {
        let snapshot = match spec.read_mode {
            ReadMode::Snapshot(timestamp) => timestamp,
            _ => None,
        };
        Self {
            table,
            spec: Arc::new(spec),
            ranges: ranges.into(),
            left: limit,
            snapshot,
            current: None,
            has_lost: false,
            begun: Instant::now(),
        }
    }

    /// The next rows, `None` at the end. Batches are never empty.
    ///
    /// Dropping the future loses no rows; the next call goes on.
    ///
    /// # Errors
    /// [`Error::ScanInterrupted`]: a server failed and the scan is not fault-tolerant.
    pub async fn next(&mut self) -> Result<Option<ScanBatch>, Error> {
        let mut attempts = self.attempts("scan");
        loop {
            if self.left == Some(0) {
                self.current = None;
                return Ok(None);
            }
            if self.current.is_none() && !self.enter_tablet(&mut attempts).await? {
                return Ok(None);
            }
            let Some(current) = &mut self.current else { continue };
            match current.step(&mut attempts).await? {
                Step::Relocate => self.relocate(&mut attempts).await?,
                Step::Batch(mut batch, has_more) => {
                    if matches!(self.spec.read_mode, ReadMode::Snapshot(_)) {
                        self.snapshot = current.snapshot();
                    }
                    if !has_more {
                        let end = current.tablet().end.to_vec();
                        self.current = None;
                        self.visited(&end);
                    }
                    if let Some(left) = &mut self.left {
                        batch.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                        *left -= batch.rows() as u64;
                    }
                    if batch.rows() > 0 {
                        return Ok(Some(batch));
                    }
                    // A server that says "nothing yet" makes progress: the time starts anew.
                    attempts = self.attempts("scan");
                }
            }
        }
    }

    /// The moment that a snapshot scan reads, once its first server has said it.
    #[must_use]
    pub fn snapshot(&self) -> Option<u64> {
        self.snapshot
    }

    /// Whether a range partition was dropped while it was to be read: its rows are missing, or some.
    #[must_use]
    pub fn has_lost_rows(&self) -> bool {
        self.has_lost
    }

    /// Keeps the scanner on the server alive while the consumer is busy: a server forgets it after
    /// a minute without calls.
    ///
    /// If it is too late for that, [`Scanner::next`] says so.
    ///
    /// # Errors
    /// The server refuses the client.
    pub async fn keep_alive(&self) -> Result<(), Error> {
        match &self.current {
            Some(current) => current.keep_alive(&mut self.attempts("keep-alive")).await,
            None => Ok(()),
        }
    }

    fn attempts(&self, what: &str) -> Attempts {
        let operation = format!("{what} of table {}", self.table.inner.name);
        self.table.inner.client.attempts(operation, Some(self.spec.timeout))
    }

    /// Finds the next tablet; `false`: there is none.
    async fn enter_tablet(&mut self, attempts: &mut Attempts) -> Result<bool, Error> {
        while let Some(range) = self.ranges.front() {
            let key = range.lower.clone();
            let stretch = self.find(&key, self.begun, attempts).await?;
            let Some(tablet) = stretch.tablet else {
                self.visited(&stretch.end);
                continue;
            };
            self.current = Some(TabletScan::new(
                self.table.clone(),
                Arc::clone(&self.spec),
                tablet,
                self.left,
                self.snapshot,
            ));
            return Ok(true);
        }
        Ok(false)
    }

    async fn find(
        &self,
        key: &[u8],
        since: Instant,
        attempts: &mut Attempts,
    ) -> Result<Stretch, Error> {
        let table = &self.table.inner;
        let wanted = if self.ranges.len() > 1 { None } else { Some(WHOLE) };
        table.find(key, since, wanted, attempts).await
    }

    /// Asks the master where the tablet is now. A tablet that was dropped has no rows.
    async fn relocate(&mut self, attempts: &mut Attempts) -> Result<(), Error> {
        let Some(current) = &self.current else { return Ok(()) };
        let old = Arc::clone(current.tablet());
        attempts.back_off().await?;
        self.table.inner.locations.forget(&old);
        let found = self.find(&old.start, Instant::now(), attempts).await?;
        match found.tablet {
            Some(tablet) if (&tablet.start, &tablet.end) == (&old.start, &old.end) => {
                if tablet.id != old.id {
                    // Dropped and made anew: what the old one had is gone.
                    self.has_lost = true;
                    self.current = None;
                } else if let Some(current) = &mut self.current {
                    current.set_tablet(tablet);
                }
            }
            Some(_) if self.current.as_ref().is_some_and(TabletScan::has_handed_out) => {
                let message = "range partitions were altered during the scan".to_owned();
                return Err(Error::ScanInterrupted(message));
            }
            Some(_) => self.current = None,
            None => {
                self.has_lost = true;
                self.current = None;
                self.visited(&found.end);
            }
        }
        Ok(())
    }

    /// Takes everything before `end` (empty: everything) off the ranges to visit.
    fn visited(&mut self, end: &[u8]) {
        while let Some(range) = self.ranges.front_mut() {
            if !end.is_empty() && (range.upper.is_empty() || end < range.upper.as_slice()) {
                if range.lower.as_slice() < end {
                    range.lower = end.to_vec();
                }
                return;
            }
            self.ranges.pop_front();
        }
    }
}
