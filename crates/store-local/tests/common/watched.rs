//! A disk that remembers what was read of segments, and what was asked for ahead.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use platform::{Disk, DiskResult, Entry, File, FileLock, SimDisk};

/// Something that was asked of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// To read these bytes ahead.
    Asked(PathBuf, Range<u64>),
    /// To read them.
    Read(PathBuf, Range<u64>),
}

#[derive(Clone, Debug)]
pub(crate) struct WatchedDisk {
    disk: SimDisk,
    events: Arc<Mutex<Vec<Event>>>,
}

#[derive(Debug)]
struct WatchedFile {
    file: Arc<dyn File>,
    events: Arc<Mutex<Vec<Event>>>,
}

impl WatchedDisk {
    pub(crate) fn new(disk: &SimDisk) -> Self {
        Self { disk: disk.clone(), events: Arc::default() }
    }

    /// What happened since this was asked last.
    pub(crate) fn events(&self) -> Vec<Event> {
        std::mem::take(&mut *self.events.lock().unwrap())
    }

    fn watched(&self, file: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(WatchedFile { file, events: Arc::clone(&self.events) })
    }
}

impl Disk for WatchedDisk {
    fn create(&self, path: &Path) -> DiskResult<Arc<dyn File>> {
        self.disk.create(path).map(|file| self.watched(file))
    }

    fn open(&self, path: &Path) -> DiskResult<Arc<dyn File>> {
        self.disk.open(path).map(|file| self.watched(file))
    }

    fn open_write(&self, path: &Path) -> DiskResult<Arc<dyn File>> {
        self.disk.open_write(path).map(|file| self.watched(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> DiskResult<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> DiskResult<()> {
        self.disk.remove(path)
    }

    fn list(&self, dir: &Path) -> DiskResult<Vec<Entry>> {
        self.disk.list(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> DiskResult<()> {
        self.disk.create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> DiskResult<()> {
        self.disk.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> DiskResult<Option<Box<dyn FileLock>>> {
        self.disk.lock(path)
    }

    fn free_bytes(&self, path: &Path) -> DiskResult<u64> {
        self.disk.free_bytes(path)
    }
}

impl WatchedFile {
    fn note(&self, event: impl FnOnce(PathBuf) -> Event) {
        let path = self.path();
        if path.extension().is_some_and(|extension| extension == "seg") {
            self.events.lock().unwrap().push(event(path.to_owned()));
        }
    }
}

impl File for WatchedFile {
    fn path(&self) -> &Path {
        self.file.path()
    }

    fn len(&self) -> DiskResult<u64> {
        self.file.len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> DiskResult<()> {
        self.note(|path| Event::Read(path, offset..offset + buf.len() as u64));
        self.file.read_at(buf, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> DiskResult<()> {
        self.file.write_at(bytes, offset)
    }

    fn set_len(&self, len: u64) -> DiskResult<()> {
        self.file.set_len(len)
    }

    fn reserve(&self, len: u64) -> DiskResult<()> {
        self.file.reserve(len)
    }

    fn start_writeback(&self, offset: u64, len: u64) {
        self.file.start_writeback(offset, len);
    }

    fn sync(&self) -> DiskResult<()> {
        self.file.sync()
    }

    fn read_ahead(&self, offset: u64, len: u64) {
        self.note(|path| Event::Asked(path, offset..offset + len));
        self.file.read_ahead(offset, len);
    }
}
