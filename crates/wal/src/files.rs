//! The files of a log: their names, how one comes into being, how they go.
//!
//! Invariants
//! - A file gets its `.log` name only after its header is synced, and takes records only after that
//!   name is synced: whatever carries the name has a header, or is corrupt.
//! - Old files go oldest first, each durably before the next, so that a crash leaves no hole.
//! - A retired file keeps a `.spare` name, durably, before it is written again under a new one.
//!
//! Not here: writing records (see `log`), reading them (see `recovery`).

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use platform::{Disk, DiskError, DiskResult, File};

use crate::format::{DATA_START, FileHeader, Lsn};

/// Retired files kept for the next: a sync of blocks written before waits for the disk alone, one of new
/// blocks for the file system's journal as well. About as many as one flush of a store gives up at once.
/// A file is only made when none is kept: except for a record longer than a file the log is not longer than
/// it was at its longest.
const SPARES_MAX: usize = 8;

/// Length of the first file of a log and of the one it rests in: a store that is not written to
/// takes next to no room. It is a block of most file systems: the least that there is to save.
const FIRST_FILE_BYTES: u64 = 4 << 10;
/// The next one has so many times what it took: a log of a few dozen records, as of a manifest, stays short.
const FIRST_GROWTH: u64 = 16;
/// Length of the ones behind that, until a part of what the log took is more.
const LATER_FILE_BYTES: u64 = 256 << 10;
/// A file is about such a part of what the log took since it was opened or rested: what is allocated
/// ahead stays small beside what is written, and files get longer with what they are needed for.
const TAKEN_PER_FILE: u64 = 4;
/// A file gets its length in so many steps, as it is needed: right after a load its rest would be as long as
/// half of what the log holds.
const STEPS_PER_FILE: u64 = 8;
/// A step is so long at least, or an eighth of the longest file: each costs the next sync the file system's journal.
const STEP_BYTES_MIN: u64 = LATER_FILE_BYTES;

/// No log gets this far, so that a name made up by hand cannot use up the numbers.
const SEQUENCE_END: u64 = 1 << 62;

/// A name in the directory of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Log(u64),
    Spare(u64),
}

impl Name {
    /// Reads a name; `None` if it is not one the log would give.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (number, kind) = name.split_once('.')?;
        let sequence = number.parse().ok().filter(|sequence| *sequence < SEQUENCE_END)?;
        let parsed = match kind {
            "log" => Self::Log(sequence),
            "spare" => Self::Spare(sequence),
            _ => return None,
        };
        (parsed.to_string() == name).then_some(parsed)
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Log(sequence) => write!(f, "{sequence:08}.log"),
            Self::Spare(sequence) => write!(f, "{sequence:08}.spare"),
        }
    }
}

/// A file that takes no more records.
#[derive(Debug)]
pub(crate) struct ClosedFile {
    pub(crate) sequence: u64,
    pub(crate) base: Lsn,
    /// Where its records end.
    pub(crate) end: Lsn,
    /// Length on the disk.
    pub(crate) len: u64,
    /// Length that it was made for, which it may not have got to.
    pub(crate) full_len: u64,
}

/// The file that takes records.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) file: Arc<dyn File>,
    pub(crate) base: Lsn,
    /// First position that does not fit any more.
    pub(crate) room_end: Lsn,
    /// First position for which the file is to be made longer.
    pub(crate) allocated_end: Lsn,
    step_bytes: u64,
}

impl OpenFile {
    /// Makes the file longer, so that records up to `end` fit, which are within what it was made for. Returns its
    /// length. It is as it was if the disk is full.
    pub(crate) fn extend(&mut self, end: Lsn) -> Result<u64, CreateError> {
        let len = stepped(self.offset(end), self.step_bytes, self.offset(self.room_end));
        self.file.reserve(len).map_err(full_or_failed)?;
        self.file.set_len(len).map_err(full_or_failed)?;
        self.allocated_end = Lsn(self.base.0 + len - DATA_START as u64);
        Ok(len)
    }

    /// Offset in the file of a position.
    pub(crate) fn offset(&self, lsn: Lsn) -> u64 {
        lsn.0 - self.base.0 + DATA_START as u64
    }

    /// What is to be added, with wrapping, to a position for its offset.
    pub(crate) fn offset_of_positions(&self) -> u64 {
        (DATA_START as u64).wrapping_sub(self.base.0)
    }
}

/// Why there is no next file.
#[derive(Debug)]
pub(crate) enum CreateError {
    /// No space; nothing is left behind, it may be tried again.
    Full(DiskError),
    /// Anything else; the disk is not to be trusted.
    Failed(DiskError),
}

/// A retired file that is to be written again.
#[derive(Clone, Copy, Debug)]
struct Spare {
    sequence: u64,
    len: u64,
    full_len: u64,
}

#[derive(Debug)]
pub(crate) struct Files {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    file_bytes: u64,
    /// Bytes that files closed since the log was opened or rested took.
    taken: u64,
    closed: VecDeque<ClosedFile>,
    current: Option<ClosedFile>,
    spares: Vec<Spare>,
    next_sequence: u64,
    made: u64,
}

impl Files {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        dir: &Path,
        file_bytes: u64,
        closed: VecDeque<ClosedFile>,
        next_sequence: u64,
    ) -> Self {
        let dir = dir.to_owned();
        Self {
            disk,
            dir,
            file_bytes,
            taken: 0,
            closed,
            current: None,
            spares: Vec::new(),
            next_sequence,
            made: 0,
        }
    }

    fn path(&self, name: Name) -> PathBuf {
        self.dir.join(name.to_string())
    }

    /// Removes the spares that an earlier run left: a log begins with shorter files.
    pub(crate) fn remove_found(&self, spares: &[u64]) -> DiskResult<()> {
        spares.iter().try_for_each(|spare| self.disk.remove(&self.path(Name::Spare(*spare))))
    }

    /// Length of a file behind others that took so much.
    fn next_bytes(&self, taken: u64) -> u64 {
        // A power of two, so that retired files fit for a while.
        let least = (taken * FIRST_GROWTH).clamp(FIRST_FILE_BYTES, LATER_FILE_BYTES);
        let bytes = 1 << (taken / TAKEN_PER_FILE).max(least).ilog2();
        self.file_bytes.min(bytes)
    }

    fn first_bytes(&self) -> u64 {
        self.file_bytes.min(FIRST_FILE_BYTES)
    }

    /// Closes the current file at `end` and makes the next one, for at least `data_bytes`.
    pub(crate) fn advance(
        &mut self,
        end: Lsn,
        base: Lsn,
        data_bytes: u64,
    ) -> Result<OpenFile, CreateError> {
        let (taken, len) = match &self.current {
            None => (0, self.first_bytes()),
            Some(current) => {
                let taken = self.taken + end.0.saturating_sub(current.base.0);
                (taken, self.next_bytes(taken))
            }
        };
        if self.spares.iter().any(|spare| spare.full_len != len) {
            // Files have become longer: those of before would never be used.
            self.remove_spares().map_err(CreateError::Failed)?;
        }
        let file = self.go_on(end, base, len, data_bytes + DATA_START as u64)?;
        self.taken = taken;
        Ok(file)
    }

    /// Closes the current file at `end` and makes the next one for `full_len` bytes, or for `needed_len` if that is more.
    fn go_on(
        &mut self,
        end: Lsn,
        base: Lsn,
        full_len: u64,
        needed_len: u64,
    ) -> Result<OpenFile, CreateError> {
        let sequence = self.next_sequence;
        let header = FileHeader { sequence, base, previous_end: end };
        let is_good = |spare: &Spare| spare.full_len == full_len && spare.len >= needed_len;
        let full_len = full_len.max(needed_len);
        let step_bytes_min = STEP_BYTES_MIN.min(self.file_bytes / STEPS_PER_FILE);
        let step_bytes = (full_len / STEPS_PER_FILE).max(step_bytes_min);
        let (file, len) = match self.spares.iter().position(is_good) {
            Some(at) => {
                let Spare { sequence, len, .. } = self.spares[at];
                let path = self.path(Name::Spare(sequence));
                let file = self.refill(&path, &header).map_err(CreateError::Failed)?;
                self.spares.remove(at);
                (file, len)
            }
            None => {
                let len = stepped(needed_len, step_bytes, full_len);
                (self.create(&header, len)?, len)
            }
        };
        self.next_sequence += 1;
        self.made += 1;
        if let Some(mut closed) = self.current.take() {
            closed.end = end;
            self.closed.push_back(closed);
        }
        self.current = Some(ClosedFile { sequence, base, end: base, len, full_len });
        let end_of = |len: u64| Lsn(base.0 + len - DATA_START as u64);
        let (room_end, allocated_end) = (end_of(full_len), end_of(len));
        Ok(OpenFile { file, base, room_end, allocated_end, step_bytes })
    }

    /// The current file has become so long.
    pub(crate) fn note_len(&mut self, len: u64) {
        self.current.as_mut().expect("BUG: a file is open that was not made").len = len;
    }

    fn refill(&self, spare: &Path, header: &FileHeader) -> DiskResult<Arc<dyn File>> {
        let file = self.disk.open_write(spare)?;
        file.write_at(&header.encode(), 0)?;
        file.sync()?;
        self.name(spare, header.sequence)
    }

    /// Makes a file of `len` bytes. A full disk is found here, where no record is half written.
    fn create(&self, header: &FileHeader, len: u64) -> Result<Arc<dyn File>, CreateError> {
        let path = self.path(Name::Spare(header.sequence));
        let file = self.disk.create(&path).map_err(full_or_failed)?;
        let filled = (|| {
            file.reserve(len)?;
            file.set_len(len)?;
            file.write_at(&header.encode(), 0)?;
            file.sync()
        })();
        if let Err(error) = filled {
            if error.is_full() {
                self.disk.remove(&path).map_err(CreateError::Failed)?;
            }
            return Err(full_or_failed(error));
        }
        self.name(&path, header.sequence).map_err(CreateError::Failed)
    }

    /// Gives a finished file its name. Opened again, so that messages carry that name.
    fn name(&self, spare: &Path, sequence: u64) -> DiskResult<Arc<dyn File>> {
        let path = self.path(Name::Log(sequence));
        self.disk.rename(spare, &path)?;
        self.disk.sync_dir(&self.dir)?;
        self.disk.open_write(&path)
    }

    /// Gives up the files whose records all end at or before `before`; some become spares.
    pub(crate) fn release(&mut self, before: Lsn) -> DiskResult<()> {
        self.retire(before, SPARES_MAX)
    }

    fn retire(&mut self, before: Lsn, spares_max: usize) -> DiskResult<()> {
        while let Some(oldest) = self.closed.front()
            && oldest.end <= before
        {
            let ClosedFile { sequence, len, full_len, .. } = *oldest;
            let keep = full_len == self.next_bytes(self.taken) && self.spares.len() < spares_max;
            let path = self.path(Name::Log(sequence));
            if keep {
                self.disk.rename(&path, &self.path(Name::Spare(sequence)))?;
            } else {
                self.disk.remove(&path)?;
            }
            // Gone from here on even if the sync fails: the name is not there any more.
            self.closed.pop_front();
            self.disk.sync_dir(&self.dir)?;
            if keep {
                self.spares.push(Spare { sequence, len, full_len });
            }
        }
        Ok(())
    }

    /// Closes the current file at `end` and goes on in a small one, after which no spares are kept.
    /// `None` if that would change nothing. What is closed goes with [`Files::give_up_all`].
    pub(crate) fn rest(&mut self, end: Lsn) -> Result<Option<OpenFile>, CreateError> {
        let small = |file: &ClosedFile| file.len <= self.first_bytes();
        if self.spares.is_empty() && self.closed.is_empty() && self.current.iter().all(small) {
            return Ok(None);
        }
        let file = self.go_on(end, end, self.first_bytes(), DATA_START as u64)?;
        self.taken = 0;
        Ok(Some(file))
    }

    /// Removes spares and the files whose records all end at or before `before`.
    pub(crate) fn give_up_all(&mut self, before: Lsn) -> DiskResult<()> {
        self.remove_spares()?;
        self.retire(before, 0)
    }

    fn remove_spares(&mut self) -> DiskResult<()> {
        while let Some(spare) = self.spares.pop() {
            self.disk.remove(&self.path(Name::Spare(spare.sequence)))?;
        }
        Ok(())
    }

    /// Position of the oldest byte that is kept.
    pub(crate) fn oldest(&self) -> Lsn {
        let first = self.closed.front().or(self.current.as_ref());
        first.map_or(Lsn(0), |file| file.base)
    }

    /// Bytes of the files' used parts, where the current file is used up to `end`.
    pub(crate) fn bytes(&self, end: Lsn) -> u64 {
        let used = |base: Lsn, end: Lsn| end.0.saturating_sub(base.0) + DATA_START as u64;
        let closed: u64 = self.closed.iter().map(|file| used(file.base, file.end)).sum();
        closed + self.current.as_ref().map_or(0, |file| used(file.base, end))
    }

    /// Files begun.
    pub(crate) fn made(&self) -> u64 {
        self.made
    }

    /// Bytes on the disk: everything, with space allocated ahead and spares.
    pub(crate) fn disk_bytes(&self) -> u64 {
        let files = self.closed.iter().chain(&self.current);
        let spares = self.spares.iter().map(|spare| spare.len);
        files.map(|file| file.len).chain(spares).sum()
    }
}

fn full_or_failed(error: DiskError) -> CreateError {
    if error.is_full() { CreateError::Full(error) } else { CreateError::Failed(error) }
}

/// Length of a file that needs `needed` bytes and gets longer in steps, up to `full`.
fn stepped(needed: u64, step: u64, full: u64) -> u64 {
    needed.next_multiple_of(step).min(full)
}

#[cfg(test)]
mod tests;
