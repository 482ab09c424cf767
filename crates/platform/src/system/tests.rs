use super::*;

struct TempDir(PathBuf);

impl TempDir {
    fn new(name: &str) -> Self {
        let dir =
            std::env::temp_dir().join(format!("nyala-platform-{}-{name}", std::process::id()));
        SystemDisk.create_dir_all(&dir).unwrap();
        Self(dir)
    }
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn files_are_created_written_read_renamed_and_removed() {
    let dir = TempDir::new("files");
    let path = dir.path("a");
    let file = SystemDisk.create(&path).unwrap();
    assert_eq!(SystemDisk.create(&path).unwrap_err().source.kind(), io::ErrorKind::AlreadyExists);
    file.write_at(b"hello", 3).unwrap();
    assert_eq!(file.len().unwrap(), 8);
    let mut buf = [9; 8];
    file.read_at(&mut buf, 0).unwrap();
    assert_eq!(&buf, b"\0\0\0hello");
    file.sync().unwrap();
    file.start_writeback(0, 8);
    file.start_writeback(0, 0);

    let short = file.read_at(&mut buf, 4).unwrap_err();
    assert_eq!(short.source.kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!((short.operation, short.offset), ("read", Some(4)));
    assert_eq!(short.path, path);

    SystemDisk.rename(&path, &dir.path("b")).unwrap();
    SystemDisk.sync_dir(&dir.0).unwrap();
    assert!(SystemDisk.open(&path).unwrap_err().is_not_found());
    let reader = SystemDisk.open(&dir.path("b")).unwrap();
    assert!(reader.write_at(b"x", 0).is_err(), "opened for reading only");
    SystemDisk.open_write(&dir.path("b")).unwrap().write_at(b"H", 3).unwrap();
    SystemDisk.remove(&dir.path("b")).unwrap();
    let mut one = [0; 1];
    reader.read_at(&mut one, 3).unwrap();
    assert_eq!(&one, b"H", "open handles outlive the name");
    assert!(SystemDisk.remove(&dir.path("b")).unwrap_err().is_not_found());
}

/// Pages of a file, and how many of them are in memory. Not every file system tells.
#[cfg(target_os = "linux")]
fn pages_in_memory(path: &Path) -> Option<(u64, u64)> {
    use rustix::io::{Errno, ReadWriteFlags, preadv2};
    let opened = OpenOptions::new().read(true).open(path).unwrap();
    // Else one page that is missing brings its neighbours along.
    rustix::fs::fadvise(&opened, 0, None, rustix::fs::Advice::Random).unwrap();
    let is_in_memory = |page: u64| {
        let mut buf = [0; 1];
        let mut into = [io::IoSliceMut::new(&mut buf)];
        match preadv2(&opened, &mut into, page * 4096, ReadWriteFlags::NOWAIT) {
            Ok(1) => Some(true),
            Err(Errno::AGAIN) => Some(false),
            Err(Errno::OPNOTSUPP) => None,
            other => panic!("{other:?}"),
        }
    };
    let pages = opened.metadata().unwrap().len() / 4096;
    let kept: Option<Vec<bool>> = (0..pages).map(is_in_memory).collect();
    Some((pages, kept?.iter().filter(|kept| **kept).count() as u64))
}

/// Written pages are soon read: they must not leave memory because they were sent to the disk.
#[cfg(target_os = "linux")]
#[test]
fn what_is_written_back_early_stays_in_memory_until_it_may_leave() {
    const PIECE_LEN: usize = 256 << 10;
    let dir = TempDir::new("writeback");
    let path = dir.path("a");
    let file = SystemDisk.create(&path).unwrap();
    for piece in 0..64 {
        let offset = (piece * PIECE_LEN) as u64;
        file.write_at(&vec![piece as u8; PIECE_LEN], offset).unwrap();
        file.start_writeback(offset, PIECE_LEN as u64);
    }
    file.sync().unwrap();
    // Again, now that everything is clean.
    file.start_writeback(0, 64 * PIECE_LEN as u64);
    if let Some((pages, kept)) = pages_in_memory(&path) {
        // The system may need the memory, but hardly just now.
        assert!(kept * 10 >= pages * 9, "{kept} of {pages} pages");
    }
    file.leave_memory();
    let mut last = [0; 1];
    file.read_at(&mut last, (64 * PIECE_LEN - 1) as u64).unwrap();
    assert_eq!(last, [63]);
}

/// Where the file system tells what is in memory, and lets it go.
#[cfg(target_os = "linux")]
#[test]
fn what_may_leave_memory_does() {
    let dir = TempDir::new("leave");
    let path = dir.path("a");
    let file = SystemDisk.create(&path).unwrap();
    file.write_at(&vec![1; 4 << 20], 0).unwrap();
    file.sync().unwrap();
    file.leave_memory();
    // Files in memory alone (tmpfs) have nowhere else to be.
    let is_tmpfs = rustix::fs::statfs(&path).unwrap().f_type == 0x0102_1994;
    if let Some((pages, kept)) = pages_in_memory(&path) {
        assert!(is_tmpfs || kept < pages / 2, "{kept} of {pages} pages");
    }
}

/// Bytes that the disk was asked for by this thread. Not every system tells.
#[cfg(target_os = "linux")]
fn bytes_read_by_thread() -> Option<u64> {
    let io = fs::read_to_string("/proc/thread-self/io").ok()?;
    io.lines().find_map(|line| line.strip_prefix("read_bytes: "))?.parse().ok()
}

/// More than Linux takes at once, and nothing of what was not asked for.
#[cfg(target_os = "linux")]
#[test]
fn what_is_read_ahead_is_asked_for_at_once() {
    let dir = TempDir::new("ahead");
    let path = dir.path("a");
    let file = SystemDisk.create(&path).unwrap();
    file.write_at(&vec![1; 24 << 20], 0).unwrap();
    file.sync().unwrap();
    file.leave_memory();
    let read = |at: u64, len: usize| file.read_at(&mut vec![0; len], at).unwrap();
    let asked_by = |action: &dyn Fn()| {
        let before = bytes_read_by_thread()?;
        action();
        bytes_read_by_thread()?.checked_sub(before)
    };
    // Files in memory alone, and those of other machines, are read without the disk.
    if asked_by(&|| read(20 << 20, 1)).is_none_or(|bytes| bytes == 0) {
        return;
    }
    let asked = asked_by(&|| {
        file.read_ahead(0, 0);
        file.read_ahead(1 << 20, 12 << 20);
        // Past the end there is nothing, and no failure.
        file.read_ahead(24 << 20, 12 << 20);
    });
    let asked = asked.unwrap();
    assert!((11 << 20..14 << 20).contains(&asked), "{asked} bytes");
    let more = asked_by(&|| read(1 << 20, 12 << 20)).unwrap();
    assert!(more < 1 << 20, "{more} bytes were asked for again");
}

#[test]
fn reserving_leaves_the_length_alone() {
    let dir = TempDir::new("reserve");
    let file = SystemDisk.create(&dir.path("a")).unwrap();
    file.reserve(0).unwrap();
    file.reserve(1 << 20).unwrap();
    assert_eq!(file.len().unwrap(), 0);
    file.set_len(10).unwrap();
    assert_eq!(file.len().unwrap(), 10);
    let full = file.reserve(1 << 60).unwrap_err();
    assert!(full.is_full(), "{full}");
}

#[test]
fn listing_is_sorted_and_tells_directories_apart() {
    let dir = TempDir::new("list");
    SystemDisk.create_dir_all(&dir.path("sub/deep")).unwrap();
    SystemDisk.create_dir_all(&dir.path("sub/deep")).unwrap();
    SystemDisk.create(&dir.path("z")).unwrap().write_at(b"abc", 0).unwrap();
    SystemDisk.create(&dir.path("a")).unwrap();
    let entry = |name: &str, len, is_dir| Entry { name: name.to_owned(), len, is_dir };
    assert_eq!(
        SystemDisk.list(&dir.0).unwrap(),
        [entry("a", 0, false), entry("sub", 0, true), entry("z", 3, false)]
    );
    assert!(SystemDisk.list(&dir.path("none")).unwrap_err().is_not_found());
    let through_file = SystemDisk.create_dir_all(&dir.path("z/below")).unwrap_err();
    assert_eq!(through_file.source.kind(), io::ErrorKind::NotADirectory);
    assert!(SystemDisk.free_bytes(&dir.0).unwrap() > 0);
}

#[test]
fn a_lock_is_held_by_one_handle_until_it_is_dropped() {
    let dir = TempDir::new("lock");
    let path = dir.path("lock");
    let held = SystemDisk.lock(&path).unwrap();
    assert!(held.is_some());
    assert!(SystemDisk.lock(&path).unwrap().is_none());
    drop(held);
    assert!(SystemDisk.lock(&path).unwrap().is_some());
}
