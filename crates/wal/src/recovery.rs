//! Reads a log back: replays its records, tells torn writes from corruption, cuts the torn end.
//!
//! How the two are told apart: every record states up to where the log was durable when it was
//! appended, and a file is durable before the next one exists. Damage before the last such
//! statement was durable once: corruption. Damage after it is what a crash leaves of writes that
//! nobody was told about: the log ends there, even if whole records lie behind it, because those
//! may depend on the lost ones.
//!
//! Invariants
//! - Replayed records are synced before a new file says where the old one ended. They are written
//!   once more before, because a sync that failed in an earlier run may have left them only in the
//!   operating system's cache, marked as clean.
//!
//! Limits: one file is in memory at a time.
//! Not here: finding records among bytes (see `scan`), making the next file (see `files`).

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use platform::{Disk, File};

use crate::error::{Corruption, WalError};
use crate::files::{ClosedFile, Name};
use crate::format::{DATA_START, FileHeader, HeaderError, Lsn};
use crate::scan::{Item, Scanner};

/// What opening a log found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Records replayed.
    pub records: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Files that were there.
    pub files: u64,
    /// Where the oldest file starts. The owner must hold everything before it elsewhere.
    pub oldest: Lsn,
    /// Where the log ended.
    pub end: Lsn,
    /// Bytes cut from the end that can be told to have been written: never acknowledged ones.
    pub torn_bytes: u64,
    /// The log was closed properly (or is new).
    pub clean: bool,
    /// What was durable once and is damaged now. The owner decides what that means.
    pub corruptions: Vec<Corruption>,
}

/// Everything a log needs to go on.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) report: RecoveryReport,
    pub(crate) closed: VecDeque<ClosedFile>,
    /// Sequences and lengths.
    pub(crate) spares: Vec<u64>,
    pub(crate) next_sequence: u64,
    /// Above every position that any byte on the disk may have.
    pub(crate) next_base: Lsn,
}

type Replay<'a> = &'a mut dyn FnMut(Lsn, &[u8]) -> Result<(), WalError>;

/// A file of the log, its header read.
#[derive(Debug)]
struct Found {
    sequence: u64,
    path: PathBuf,
    file: Arc<dyn File>,
    len: u64,
    header: Option<FileHeader>,
}

pub(crate) fn recover(
    disk: &dyn Disk,
    dir: &Path,
    replay: Replay<'_>,
) -> Result<Recovered, WalError> {
    disk.create_dir_all(dir)?;
    read(disk, dir, replay, true).map(|(recovered, _)| recovered)
}

/// A file of a log, as it is on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// Position of its first record; `None` if its header is damaged.
    pub base: Option<Lsn>,
    /// Where its records end.
    pub end: Lsn,
}

impl LogFile {
    /// Where in the file a position is, if it is in it.
    #[must_use]
    pub fn offset_of(&self, lsn: Lsn) -> Option<u64> {
        let base = self.base.filter(|base| *base <= lsn && lsn <= self.end)?;
        Some(lsn.0 - base.0 + DATA_START as u64)
    }
}

/// Reads a log and changes nothing. The owner makes sure that no other process has the directory
/// open.
///
/// # Errors
/// A file cannot be read, or was written by a later version. Damage is in the report.
pub fn look(
    disk: &dyn Disk,
    dir: &Path,
    each: &mut dyn FnMut(Lsn, &[u8]),
) -> Result<(RecoveryReport, Vec<LogFile>), WalError> {
    let mut replay = |lsn: Lsn, payload: &[u8]| {
        each(lsn, payload);
        Ok(())
    };
    read(disk, dir, &mut replay, false).map(|(recovered, files)| (recovered.report, files))
}

/// Reads all files; with `repair`, the last one is cut and made durable.
fn read(
    disk: &dyn Disk,
    dir: &Path,
    replay: Replay<'_>,
    repair: bool,
) -> Result<(Recovered, Vec<LogFile>), WalError> {
    let (mut sequences, mut spares) = (Vec::new(), Vec::new());
    for entry in disk.list(dir)? {
        match Name::parse(&entry.name) {
            Some(Name::Log(sequence)) if !entry.is_dir => sequences.push(sequence),
            Some(Name::Spare(sequence)) if !entry.is_dir => spares.push(sequence),
            _ => {}
        }
    }
    sequences.sort_unstable();
    let mut recovery = Recovery {
        report: RecoveryReport::default(),
        replay,
        repair,
        needed_end: Lsn(0),
        buffer: Vec::new(),
    };
    let mut found = Vec::new();
    for sequence in sequences {
        let path = dir.join(Name::Log(sequence).to_string());
        found.push(recovery.read_header(disk, sequence, path)?);
    }
    recovery.report.files = found.len() as u64;
    let closed = recovery.read_files(disk, &mut found)?;
    let mut report = recovery.report;
    report.oldest = closed.front().map_or(report.end, |file| file.base);
    if found.is_empty() {
        report.clean = true;
    }
    let last_sequence = found.iter().map(|file| file.sequence).chain(spares.iter().copied());
    let next_sequence = last_sequence.max().map_or(1, |last| last + 1);
    let next_base = next_base(&found);
    let files = found.into_iter().zip(&closed).map(|(file, closed)| LogFile {
        path: file.path,
        bytes: file.len,
        base: file.header.map(|header| header.base),
        end: closed.end,
    });
    let files = files.collect();
    Ok((Recovered { report, closed, spares, next_sequence, next_base }, files))
}

/// The lowest position that no byte on the disk can have been written for.
fn next_base(found: &[Found]) -> Lsn {
    let mut next = 0u64;
    for file in found {
        let base = file.header.map_or(next, |header| header.base.0.max(next));
        next = base.saturating_add(file.len);
    }
    Lsn(next)
}

/// Up to where a file's records may go.
#[derive(Clone, Copy, Debug)]
struct Limit {
    /// Records end here or before.
    end: Option<Lsn>,
    /// Records end exactly there: the next file says so.
    exact: bool,
    /// Another file follows, so this one was durable to its end.
    followed: bool,
}

impl Limit {
    fn of(index: usize, found: &[Found]) -> Self {
        let mut later = found[index + 1..].iter();
        let followed = later.len() > 0;
        let exact = found.get(index + 1).is_some_and(|next| next.header.is_some());
        let end = later.find_map(|next| next.header).map(|header| header.previous_end);
        Self { end, exact, followed }
    }
}

struct Recovery<'a> {
    report: RecoveryReport,
    replay: Replay<'a>,
    /// Whether the torn end of the last file is cut.
    repair: bool,
    /// End of the last record, good or not; seals need not be kept.
    needed_end: Lsn,
    /// Data of the file under way; kept for the next.
    buffer: Vec<u8>,
}

impl Recovery<'_> {
    fn corrupt(&mut self, path: &Path, offset: u64, lost_bytes: u64, detail: &str) {
        let detail = detail.to_owned();
        self.report.corruptions.push(Corruption {
            path: path.to_owned(),
            offset,
            lost_bytes,
            detail,
        });
    }

    fn read_header(
        &mut self,
        disk: &dyn Disk,
        sequence: u64,
        path: PathBuf,
    ) -> Result<Found, WalError> {
        let file = disk.open(&path)?;
        let len = file.len()?;
        let mut bytes = [0; DATA_START];
        let there = usize::try_from(len).unwrap_or(usize::MAX).min(DATA_START);
        file.read_at(&mut bytes[..there], 0)?;
        let header = match FileHeader::decode(&bytes[..there], sequence) {
            Ok(read) => {
                if let Some(offset) = read.damaged_copy {
                    self.corrupt(&path, offset, 0, "one of two copies of the header is damaged");
                }
                Some(read.header)
            }
            Err(HeaderError::Damaged(detail)) => {
                self.corrupt(&path, 0, u64::MAX, detail);
                None
            }
            Err(HeaderError::Unsupported(detail)) => {
                return Err(WalError::Unsupported { path, detail });
            }
        };
        Ok(Found { sequence, path, file, len, header })
    }

    /// Replays the files in order.
    fn read_files(
        &mut self,
        disk: &dyn Disk,
        found: &mut [Found],
    ) -> Result<VecDeque<ClosedFile>, WalError> {
        let mut base_min = Lsn(0);
        for file in found.iter_mut() {
            match file.header {
                Some(header) if header.base < base_min => {
                    let detail = "the file starts before the one that precedes it";
                    self.corrupt(&file.path, 0, u64::MAX, detail);
                    file.header = None;
                }
                Some(header) => base_min = header.base,
                None => {}
            }
        }
        let after_all = next_base(found);
        let mut closed = VecDeque::new();
        for index in 0..found.len() {
            let limit = Limit::of(index, found);
            let Found { sequence, len, header, .. } = found[index];
            let (base, end, len) = match header {
                Some(header) => {
                    let (end, len) = self.read_file(disk, &found[index], header, limit)?;
                    (header.base, end, len)
                }
                // Kept for whoever wants to look, until everything around it is released.
                None => (self.report.end, limit.end.unwrap_or(after_all), len),
            };
            closed.push_back(ClosedFile { sequence, base, end, len, full_len: len });
        }
        Ok(closed)
    }

    /// Replays one file. Returns where its records end and its length on the disk.
    fn read_file(
        &mut self,
        disk: &dyn Disk,
        file: &Found,
        header: FileHeader,
        limit: Limit,
    ) -> Result<(Lsn, u64), WalError> {
        self.report.end = self.report.end.max(header.previous_end);
        let mut bytes = file.len.saturating_sub(DATA_START as u64);
        if let Some(end) = limit.end {
            // The next one continues before the base of this one if this one has no records.
            bytes = bytes.min(end.0.saturating_sub(header.base.0));
        }
        let mut data = std::mem::take(&mut self.buffer);
        read_data(file, bytes, &mut data)?;
        let mut len = file.len;
        if !limit.followed {
            let tail = Tail::find(&data, header.base);
            self.report.torn_bytes = tail.written_end.0 - tail.cut.0;
            data.truncate((tail.cut.0 - header.base.0) as usize);
            if self.repair {
                len = make_durable(disk, file, header.base, &data, tail.proven)?;
            }
        }
        let mut end = self.replay_data(file, header.base, &data, limit)?;
        if let (true, Some(limit_end)) = (limit.exact, limit.end) {
            let there = header.base.0 + bytes;
            if there < limit_end.0 {
                let detail = "the file ends before its records do, or files are missing after it";
                self.corrupt(&file.path, DATA_START as u64 + bytes, limit_end.0 - there, detail);
                end = limit_end;
                self.needed_end = end;
            }
        }
        self.buffer = data;
        if end > header.base {
            self.report.end = end;
        }
        Ok((self.needed_end, len))
    }

    /// Replays the records in `data`; damage in it is corruption. Returns where they end.
    fn replay_data(
        &mut self,
        file: &Found,
        base: Lsn,
        data: &[u8],
        limit: Limit,
    ) -> Result<Lsn, WalError> {
        let data_end = Lsn(base.0 + data.len() as u64);
        let mut reached = base;
        self.report.clean = true;
        for item in Scanner::new(data, base) {
            match item {
                Item::Record { end, payload, .. } => {
                    self.report.clean = payload.is_empty();
                    if !payload.is_empty() {
                        (self.replay)(end, payload)?;
                        self.needed_end = end;
                        self.report.records += 1;
                        self.report.bytes += payload.len() as u64;
                    }
                    reached = end;
                }
                Item::Fill { end, .. } => {
                    self.report.clean = false;
                    // Kept like a record: an owner may call its start where the next record starts.
                    self.needed_end = end;
                    reached = end;
                }
                // Never written: where the records end, only a good next file would have told.
                Item::Damaged { end, .. } if limit.followed && !limit.exact && end == data_end => {}
                Item::Damaged { start, end, .. } => {
                    self.report.clean = false;
                    let offset = start.0 - base.0 + DATA_START as u64;
                    let detail = "the checksum of a record does not match";
                    self.corrupt(&file.path, offset, end.0 - start.0, detail);
                    self.needed_end = end;
                    reached = end;
                }
            }
        }
        Ok(reached)
    }
}

fn read_data(file: &Found, bytes: u64, data: &mut Vec<u8>) -> Result<(), WalError> {
    let too_large = || WalError::OutOfMemory { path: file.path.clone(), bytes };
    let bytes = usize::try_from(bytes).map_err(|_| too_large())?;
    data.clear();
    data.try_reserve_exact(bytes).map_err(|_| too_large())?;
    data.resize(bytes, 0);
    // A file cut before its data has nothing to read there.
    if !data.is_empty() {
        file.file.read_at(data, DATA_START as u64)?;
    }
    Ok(())
}

/// The end of the last file.
struct Tail {
    /// Everything before was durable when the last good record was appended.
    proven: Lsn,
    /// Where the log ends: the first damage that is not proven to have been durable.
    cut: Lsn,
    /// End of the last thing that can be told to be a record, good or not.
    written_end: Lsn,
}

impl Tail {
    fn find(data: &[u8], base: Lsn) -> Self {
        let mut tail = Self { proven: base, cut: base, written_end: base };
        let mut damaged = Vec::new();
        let mut whole_end = base;
        for item in Scanner::new(data, base) {
            match item {
                Item::Record { end, durable, .. } | Item::Fill { end, durable } => {
                    tail.proven = tail.proven.max(durable);
                    whole_end = end;
                    tail.written_end = end;
                }
                Item::Damaged { start, recognised_end, .. } => {
                    damaged.push(start);
                    tail.written_end = tail.written_end.max(recognised_end);
                }
            }
        }
        let torn = damaged.into_iter().find(|start| *start >= tail.proven);
        tail.cut = torn.unwrap_or(whole_end);
        tail
    }
}

/// Cuts the last file after `data`, the records that count, and makes those durable. Returns its
/// length.
fn make_durable(
    disk: &dyn Disk,
    file: &Found,
    base: Lsn,
    data: &[u8],
    proven: Lsn,
) -> Result<u64, WalError> {
    let unproven = (proven.0 - base.0) as usize;
    let len = (DATA_START + data.len()) as u64;
    let writer = disk.open_write(&file.path)?;
    if unproven < data.len() {
        match writer.write_at(&data[unproven..], (DATA_START + unproven) as u64) {
            Ok(()) => {}
            // A file system that never overwrites needs space even for this. The records are there;
            // a full disk must not keep them from being read.
            Err(error) if error.is_full() => {}
            Err(error) => return Err(error.into()),
        }
    }
    writer.set_len(len)?;
    writer.sync()?;
    Ok(len)
}

#[cfg(test)]
mod tests;
