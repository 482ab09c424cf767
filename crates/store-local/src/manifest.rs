//! The manifest: which segments there are, what hides parts of them, the schema, the catalog's
//! document. A log of edits; each record counts whole or not at all, and a snapshot now and then
//! keeps it short. The log itself (framing, checksums, torn tails) is the `wal` crate's.

mod edit;
mod state;

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use platform::Disk;
use store::StoreError;
use wal::{Lsn, SyncPolicy, Wal, WalOptions};

use crate::error::{corrupt_record, wal_error};
use crate::recover::has_file;
pub(crate) use edit::{Edit, SegmentMeta};
pub(crate) use edit::{decode_edits, encode_edits};
pub(crate) use state::ManifestState;

/// The manifest of an open store.
#[derive(Debug)]
pub(crate) struct Manifest {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    log: Wal,
    state: ManifestState,
    bytes_since_snapshot: u64,
    /// A snapshot is written after so many bytes of edits, or after as many as it takes itself.
    snapshot_every_bytes: u64,
    snapshot_bytes: u64,
    tombstone_given: u64,
}

impl Manifest {
    /// Opens the manifest in `dir`, an empty one if there is none; it is written anew after
    /// `snapshot_every_bytes` of edits, or more if it is large. Anything damaged but a torn tail
    /// is an error: without it nobody knows what the files of the store mean. Afterwards it has a
    /// file, so that nothing is ever written to a store that has none.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        snapshot_every_bytes: u64,
    ) -> Result<Self, StoreError> {
        let mut state = ManifestState::default();
        let options = WalOptions {
            file_bytes: 2 * snapshot_every_bytes,
            sync: SyncPolicy::Always,
            ..WalOptions::default()
        };
        // Edits before a snapshot are void, and may be of what files given up since say.
        let mut misfit = None;
        let listed = Arc::clone(&disk);
        let (log, report) = Wal::open(disk, dir, options, &mut |lsn: Lsn, payload: &[u8]| {
            let malformed = |e| corrupt_record(dir, lsn, e);
            for edit in decode_edits(payload).map_err(malformed)? {
                if edit == Edit::Snapshot {
                    misfit = None;
                }
                if misfit.is_none() {
                    misfit = state.apply(&edit).map_err(malformed).err();
                }
            }
            Ok::<(), StoreError>(())
        })
        .map_err(wal_error)?;
        if let Some(misfit) = misfit {
            return Err(misfit);
        }
        // A log opens on a full disk and makes its file later.
        if !has_file(&*listed, dir, ".log")? {
            let dir = dir.display();
            return Err(StoreError::Io(format!("{dir}: no room for a new store, free disk space")));
        }
        if let Some(first) = report.corruptions.into_iter().next() {
            return Err(StoreError::Corruption {
                path: first.path,
                offset: first.offset,
                detail: format!("manifest: {}", first.detail),
            });
        }
        let inner = Inner {
            log,
            state,
            bytes_since_snapshot: report.bytes,
            snapshot_every_bytes,
            snapshot_bytes: 0,
            tombstone_given: 0,
        };
        Ok(Self { inner: Mutex::new(inner) })
    }

    /// Looks at the state.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&ManifestState) -> T) -> T {
        look(&self.inner.lock().state)
    }

    /// Makes edits durable, all or none.
    pub(crate) fn commit(&self, edits: &[Edit]) -> Result<(), StoreError> {
        let mut inner = self.inner.lock();
        let bytes = encode_edits(edits);
        inner.append(&bytes)?;
        for edit in edits {
            inner.state.apply(edit).expect("BUG: an edit does not fit the state it was made for");
        }
        inner.bytes_since_snapshot += bytes.len() as u64;
        if inner.bytes_since_snapshot > inner.snapshot_every_bytes.max(inner.snapshot_bytes) {
            inner.write_snapshot()?;
        }
        Ok(())
    }

    /// The id of the next segment, never given again by this process.
    pub(crate) fn next_segment_id(&self) -> u64 {
        let state = &mut self.inner.lock().state;
        state.next_segment += 1;
        state.next_segment - 1
    }

    /// The id of the next tombstone, never given again by this process.
    pub(crate) fn next_tombstone_id(&self) -> u64 {
        self.inner.lock().next_tombstone()
    }

    /// Lets go of the files.
    pub(crate) fn close(&self) -> Result<(), StoreError> {
        self.inner.lock().log.close().map_err(wal_error)
    }
}

impl Inner {
    fn next_tombstone(&mut self) -> u64 {
        // What the state says is what the manifest has: recovery tells by it which tombstones never
        // got there. So numbers given out are counted apart.
        self.tombstone_given = self.tombstone_given.max(self.state.next_tombstone) + 1;
        self.tombstone_given - 1
    }

    fn append(&mut self, payload: &[u8]) -> Result<Lsn, StoreError> {
        let end = self.log.append(&[payload]).map_err(wal_error)?;
        self.log.wait_durable(end).map_err(wal_error)?;
        Ok(end)
    }

    fn write_snapshot(&mut self) -> Result<(), StoreError> {
        let start = self.log.position();
        let bytes = encode_edits(&self.state.snapshot());
        self.append(&bytes)?;
        self.log.release(start).map_err(wal_error)?;
        self.bytes_since_snapshot = 0;
        self.snapshot_bytes = bytes.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
