//! The space of large files without a name, given back little by little.
//!
//! Whoever frees hundreds of megabytes at once makes others wait: mounted with `discard` the file system names all freed
//! blocks to the drive, which was busy for 165 to 190 ms with the 680 to 950 MB that a merge left (measured; a third fewer
//! syncs came through in that second). So the last handle of a large file does not just close it: a thread cuts it shorter
//! in steps. (RocksDB's files go the same way, at a rate that one has to set.)
//!
//! Invariants
//! - Only files that nobody reads: without a name, and with no other handle in any process, which a write lease shows. It is
//!   let go at once: who opens the file would wait for it, and have the kernel send a signal that ends this process.
//! - Space is a matter of seconds: the more waits, the larger the steps, and all of it goes at once if the disk gets full.
//! - A process that ends gives back everything at once: the kernel closes its handles.
//!
//! Not here: removing names (see `system`).

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, sleep};
use std::time::Duration;

/// The least that is given back with one step; smaller files are closed as they are.
const STEP_BYTES_MIN: u64 = 16 << 20;
/// How much later the next step comes.
const STEP_EVERY: Duration = Duration::from_millis(100);
/// A step is at least this part of all that waits.
const STEP_PART: u64 = 64;
/// How many times what waits must be free besides, for it to wait.
const FREE_TIMES: u64 = 8;

/// Says which signal a lease sends (fcntl(2)); Linux' asm-generic/fcntl.h, of all architectures but parisc. libc has no name for it.
const F_SETSIG: libc::c_int = 10;

/// A file whose space is given back in steps if it has no name when this is dropped.
#[derive(Debug)]
pub(super) struct FreedInSteps(Option<File>);

impl From<File> for FreedInSteps {
    fn from(file: File) -> Self {
        Self(Some(file))
    }
}

impl Deref for FreedInSteps {
    type Target = File;

    fn deref(&self) -> &File {
        self.0.as_ref().expect("BUG: taken before it is dropped")
    }
}

impl AsFd for FreedInSteps {
    fn as_fd(&self) -> BorrowedFd<'_> {
        (**self).as_fd()
    }
}

impl Drop for FreedInSteps {
    fn drop(&mut self) {
        if let Some(file) = self.0.take().filter(is_worth_steps) {
            give_back(file);
        }
    }
}

fn is_worth_steps(file: &File) -> bool {
    file.metadata().is_ok_and(|m| m.nlink() == 0 && m.blocks() * 512 > STEP_BYTES_MIN)
}

fn give_back(file: File) {
    static FILES: OnceLock<Option<Sender<File>>> = OnceLock::new();
    let start = || {
        let (files, taken) = channel();
        let thread = Builder::new().name("space".to_owned()).spawn(move || run(&taken));
        thread.is_ok().then_some(files)
    };
    if let Some(files) = FILES.get_or_init(start) {
        // Without the thread it is closed here.
        let _ = files.send(file);
    }
}

fn run(files: &Receiver<File>) {
    let mut waiting: Vec<Unread> = Vec::new();
    loop {
        if waiting.is_empty() {
            let Ok(file) = files.recv() else { return };
            waiting.extend(Unread::new(file));
        }
        while let Ok(file) = files.try_recv() {
            waiting.extend(Unread::new(file));
        }
        give_back_step(&mut waiting);
        sleep(STEP_EVERY);
    }
}

/// Cuts the files that wait shorter by a step's bytes. What cannot be cut is closed.
fn give_back_step(waiting: &mut Vec<Unread>) {
    let Some(first) = waiting.first() else { return };
    let free_bytes = rustix::fs::fstatvfs(&first.file).map_or(0, |s| s.f_bavail * s.f_frsize);
    let mut left = step_bytes(waiting.iter().map(|file| file.bytes).sum(), free_bytes);
    while left > 0
        && let Some(last) = waiting.last_mut()
    {
        let step = left.min(last.bytes);
        left -= step;
        last.bytes -= step;
        if last.bytes == 0 || last.file.set_len(last.bytes).is_err() {
            waiting.pop();
        }
    }
}

/// How much of what waits is given back now.
fn step_bytes(waiting_bytes: u64, free_bytes: u64) -> u64 {
    if free_bytes / FREE_TIMES < waiting_bytes {
        return waiting_bytes;
    }
    STEP_BYTES_MIN.max(waiting_bytes / STEP_PART)
}

/// A file that nobody reads.
#[derive(Debug)]
struct Unread {
    file: File,
    bytes: u64,
}

impl Unread {
    /// Nothing if somebody else may read the file: then the last to close it frees its space.
    fn new(file: File) -> Option<Self> {
        // The owner's handle may not be for writing; left open it would count as somebody else's.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let writable = OpenOptions::new().write(true).open(path).ok()?;
        drop(file);
        check_sole_handle(&writable).ok()?;
        let bytes = writable.metadata().ok()?.len();
        Some(Self { file: writable, bytes })
    }
}

/// Fails if the file is open elsewhere, or if that cannot be found out.
fn check_sole_handle(file: &File) -> io::Result<()> {
    // What is sent to who has a lease when somebody opens the file meanwhile: nobody minds this one.
    control(file, F_SETSIG, libc::SIGURG)?;
    control(file, libc::F_SETLEASE, libc::F_WRLCK)?;
    control(file, libc::F_SETLEASE, libc::F_UNLCK)
}

#[allow(unsafe_code)]
fn control(file: &File, command: libc::c_int, argument: libc::c_int) -> io::Result<()> {
    // SAFETY: these commands take numbers and no pointers; the file is open as long as it is borrowed.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, argument) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    use crate::disk::Disk;
    use crate::system::SystemDisk;

    const LARGE: u64 = 3 * STEP_BYTES_MIN;

    /// A file without a name that takes up space, open for writing or for reading only.
    fn unnamed(name: &str, bytes: u64, for_writing: bool) -> File {
        let path = std::env::temp_dir().join(format!("nyala-space-{}-{name}", std::process::id()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes).unwrap();
        let file = if for_writing { file } else { open(&path) };
        SystemDisk.remove(&path).unwrap();
        file
    }

    fn open(path: impl AsRef<Path>) -> File {
        OpenOptions::new().read(true).open(path).unwrap()
    }

    fn len(file: &File) -> u64 {
        file.metadata().unwrap().len()
    }

    #[test]
    fn steps_grow_with_what_waits_and_a_full_disk_waits_for_nothing() {
        let plenty = 1 << 50;
        assert_eq!(step_bytes(LARGE, plenty), STEP_BYTES_MIN);
        assert_eq!(step_bytes(1 << 40, plenty), (1 << 40) / STEP_PART);
        assert_eq!(step_bytes(LARGE, LARGE * FREE_TIMES), STEP_BYTES_MIN);
        assert_eq!(step_bytes(LARGE, LARGE * FREE_TIMES - 1), LARGE);
    }

    #[test]
    fn files_get_shorter_step_by_step() {
        for for_writing in [true, false] {
            let small = Unread::new(unnamed("short", 1 << 20, true)).unwrap();
            let large = Unread::new(unnamed("long", LARGE, for_writing)).unwrap();
            let mut waiting = vec![small, large];
            give_back_step(&mut waiting);
            let lens =
                |waiting: &[Unread]| waiting.iter().map(|f| len(&f.file)).collect::<Vec<_>>();
            assert_eq!(lens(&waiting), [1 << 20, LARGE - STEP_BYTES_MIN]);
            give_back_step(&mut waiting);
            give_back_step(&mut waiting);
            assert_eq!(lens(&waiting), [1 << 20]);
            give_back_step(&mut waiting);
            assert!(waiting.is_empty());
            give_back_step(&mut waiting);
        }
    }

    #[test]
    fn a_file_that_somebody_may_read_stays_whole() {
        let file = unnamed("read", LARGE, true);
        let reader = open(format!("/proc/self/fd/{}", file.as_raw_fd()));
        assert!(Unread::new(file).is_none());
        assert_eq!(len(&reader), LARGE);
        let unread = Unread::new(reader).expect("the last handle");
        // Would wait for the lease, and then end the process.
        assert_eq!(len(&open(format!("/proc/self/fd/{}", unread.file.as_raw_fd()))), LARGE);
    }

    #[test]
    fn only_large_files_without_a_name_are_taken() {
        assert!(is_worth_steps(&unnamed("large", LARGE, false)));
        assert!(!is_worth_steps(&unnamed("small", STEP_BYTES_MIN, true)));
        let path = std::env::temp_dir().join(format!("nyala-space-{}-named", std::process::id()));
        let named = OpenOptions::new().write(true).create_new(true).open(&path).unwrap();
        rustix::fs::fallocate(&named, rustix::fs::FallocateFlags::empty(), 0, LARGE).unwrap();
        assert!(!is_worth_steps(&named));
        drop(FreedInSteps::from(named));
        assert_eq!(std::fs::metadata(&path).unwrap().len(), LARGE);
        SystemDisk.remove(&path).unwrap();
    }
}
