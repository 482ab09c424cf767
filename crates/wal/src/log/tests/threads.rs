//! Real threads, and a disk whose syncs wait until they may.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;

use platform::{DiskResult, Entry, File, FileLock, SystemDisk};

use super::*;

/// A disk whose files sync and reserve space only while the gate is open.
#[derive(Debug)]
struct GatedDisk {
    disk: SimDisk,
    gate: Arc<Gate>,
}

#[derive(Debug, Default)]
struct Gate {
    closed: Mutex<bool>,
    opened: Condvar,
    waiting: AtomicUsize,
    panics: Mutex<bool>,
}

impl Gate {
    fn set(&self, closed: bool) {
        *self.closed.lock() = closed;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let mut closed = self.closed.lock();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        while *closed {
            self.opened.wait(&mut closed);
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        assert!(!*self.panics.lock(), "a test's panic");
    }

    fn until_waiting(&self) {
        while self.waiting.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
    }
}

#[derive(Debug)]
struct GatedFile {
    file: Arc<dyn File>,
    gate: Arc<Gate>,
}

impl GatedDisk {
    fn file(&self, file: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(GatedFile { file, gate: Arc::clone(&self.gate) })
    }
}

impl Disk for GatedDisk {
    fn create(&self, path: &Path) -> DiskResult<Arc<dyn File>> {
        self.disk.create(path).map(|file| self.file(file))
    }
    fn open(&self, path: &Path) -> DiskResult<Arc<dyn File>> {
        self.disk.open(path)
    }
    fn open_write(&self, path: &Path) -> DiskResult<Arc<dyn File>> {
        self.disk.open_write(path).map(|file| self.file(file))
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

impl File for GatedFile {
    fn path(&self) -> &Path {
        self.file.path()
    }
    fn len(&self) -> DiskResult<u64> {
        self.file.len()
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> DiskResult<()> {
        self.file.read_at(buf, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> DiskResult<()> {
        self.file.write_at(bytes, offset)
    }
    fn set_len(&self, len: u64) -> DiskResult<()> {
        self.file.set_len(len)
    }
    fn reserve(&self, len: u64) -> DiskResult<()> {
        self.gate.pass();
        self.file.reserve(len)
    }
    fn start_writeback(&self, offset: u64, len: u64) {
        self.file.start_writeback(offset, len);
    }
    fn sync(&self) -> DiskResult<()> {
        self.gate.pass();
        self.file.sync()
    }
}

fn gated(options: WalOptions) -> (SimDisk, Arc<Gate>, Wal) {
    let (disk, gate) = (quiet(1), Arc::new(Gate::default()));
    let gated = Arc::new(GatedDisk { disk: disk.clone(), gate: Arc::clone(&gate) });
    let (wal, _) = Wal::open::<Infallible>(gated, dir(), options, &mut |_, _| Ok(())).unwrap();
    (disk, gate, wal)
}

#[test]
fn one_sync_covers_all_who_came_while_the_one_before_was_under_way() {
    let (disk, gate, wal) = gated(WalOptions::default());
    gate.set(true);
    let acknowledged = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let wait = |lsn| {
            let (wal, acknowledged) = (&wal, &acknowledged);
            scope.spawn(move || {
                wal.wait_durable(lsn).unwrap();
                acknowledged.fetch_add(1, Ordering::SeqCst);
            });
        };
        wait(wal.append(&[b"leads"]).unwrap());
        gate.until_waiting();
        let lsns: Vec<_> = (0..16).map(|n| wal.append(&[&payload(n)]).unwrap()).collect();
        lsns.into_iter().for_each(wait);
        assert_eq!(acknowledged.load(Ordering::SeqCst), 0, "nothing is synced yet");
        gate.set(false);
    });
    assert_eq!(acknowledged.load(Ordering::SeqCst), 17);
    let metrics = wal.metrics();
    assert_eq!((metrics.appends, metrics.writes, metrics.syncs), (17, 2, 2));
    assert_eq!(metrics.group_records_histogram[..6], [0, 1, 0, 0, 0, 1]);
    assert_eq!(open(&disk.crash(), WalOptions::default()).2.len(), 17);
}

#[test]
fn an_append_without_room_waits_and_gives_up() {
    let options = WalOptions {
        pending_bytes_max: 300,
        append_wait_max: Duration::from_millis(20),
        ..small()
    };
    let (_, gate, wal) = gated(options);
    gate.set(true);
    let first = wal.append(&[&[1; 100]]).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| wal.wait_durable(first).unwrap());
        gate.until_waiting();
        wal.append(&[&[2; 100]]).unwrap();
        wal.append(&[&[3; 100]]).unwrap();
        let end = wal.position();
        let refused = wal.append(&[&[4; 100]]);
        assert!(
            matches!(refused, Err(WalError::Overloaded { pending_bytes: 232, .. })),
            "{refused:?}"
        );
        assert_eq!(wal.position(), end, "a refused record is not in the log");
        gate.set(false);
    });
    assert_eq!(wal.metrics().append_waits, 1);
    append_durably(&wal, &[5; 100]);
}

#[test]
fn an_append_without_room_goes_on_when_there_is_some() {
    let options = WalOptions { pending_bytes_max: 300, ..small() };
    let (disk, gate, wal) = gated(options);
    gate.set(true);
    let first = wal.append(&[&[1; 100]]).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| wal.wait_durable(first).unwrap());
        gate.until_waiting();
        wal.append(&[&[2; 250]]).unwrap();
        let appender = scope.spawn(|| append_durably(&wal, &[3; 250]));
        while wal.metrics().append_waits == 0 {
            std::thread::yield_now();
        }
        gate.set(false);
        appender.join().unwrap();
    });
    assert_eq!(open(&disk.crash(), small()).2.len(), 3);
}

#[test]
fn what_a_full_disk_refused_stays_before_what_was_appended_meanwhile() {
    let (disk, gate, wal) = gated(WalOptions { pending_bytes_max: 10_000, ..small() });
    append_durably(&wal, b"fits");
    gate.set(true);
    let refused = wal.append(&[&[1; 1500]]).unwrap();
    let later = std::thread::scope(|scope| {
        let leader = scope.spawn(|| wal.wait_durable(refused));
        gate.until_waiting();
        let later = wal.append(&[b"later"]).unwrap();
        disk.set_faults(FaultConfig { capacity_bytes: 3000, ..Default::default() });
        gate.set(false);
        assert!(matches!(leader.join().unwrap(), Err(WalError::DiskFull { .. })));
        later
    });
    assert!(matches!(wal.wait_durable(later), Err(WalError::DiskFull { .. })));
    disk.set_faults(FaultConfig::default());
    wal.wait_durable(later).unwrap();
    let replayed = open(&disk.crash(), small()).2;
    let expected = [(refused, vec![1; 1500]), (later, b"later".to_vec())];
    assert_eq!(replayed[1..], expected);
}

#[test]
fn a_panic_while_writing_stops_the_log_and_leaves_nobody_waiting() {
    let (_, gate, wal) = gated(WalOptions::default());
    let before = append_durably(&wal, b"before");
    gate.set(true);
    let lsn = wal.append(&[b"leads"]).unwrap();
    std::thread::scope(|scope| {
        let leader = scope.spawn(|| wal.wait_durable(lsn));
        gate.until_waiting();
        let follows = wal.append(&[b"follows"]).unwrap();
        let wal = &wal;
        let follower = scope.spawn(move || wal.wait_durable(follows));
        *gate.panics.lock() = true;
        gate.set(false);
        assert!(leader.join().is_err());
        assert!(matches!(follower.join().unwrap(), Err(WalError::Poisoned { .. })));
    });
    assert!(matches!(wal.wait_durable(lsn), Err(WalError::Poisoned { .. })));
    assert!(matches!(wal.append(&[b"x"]), Err(WalError::Poisoned { .. })));
    wal.wait_durable(before).unwrap();
}

/// Threads append and wait; power is lost in the middle; what they were told is there.
#[test]
fn what_threads_were_told_is_durable_when_power_is_lost() {
    for seed in 0..10 {
        let disk = quiet(seed);
        let options = WalOptions { file_bytes: 1 << 14, ..WalOptions::default() };
        let (wal, ..) = open(&disk, options);
        let told = Mutex::new(BTreeMap::new());
        disk.crash_after(disk.operations() + 100 + seed * 7);
        std::thread::scope(|scope| {
            for thread in 0..8u8 {
                let (wal, told) = (&wal, &told);
                scope.spawn(move || {
                    for number in 0.. {
                        let record = [&[thread][..], &payload(number)].concat();
                        let Ok(lsn) = wal.append(&[&record]) else { break };
                        if wal.wait_durable(lsn).is_err() {
                            break;
                        }
                        told.lock().insert(lsn, record);
                    }
                });
            }
        });
        let (_, report, replayed) = open(&disk.crash(), options);
        assert!(report.corruptions.is_empty(), "{report:?}");
        assert!(replayed.is_sorted_by(|a, b| a.0 < b.0));
        let replayed: BTreeMap<_, _> = replayed.into_iter().collect();
        let told = told.into_inner();
        assert!(told.len() > 20);
        for (lsn, record) in &told {
            assert_eq!(replayed.get(lsn), Some(record));
        }
        assert!(replayed.len() <= told.len() + 8);
    }
}

/// Appends, waits, syncs, releases and closing at once, on a real disk.
#[test]
fn threads_on_a_real_disk() {
    let dir = std::env::temp_dir().join(format!("nyala-wal-test-{}", std::process::id()));
    let options =
        WalOptions { file_bytes: 1 << 16, pending_bytes_max: 1 << 12, ..Default::default() };
    for sync in
        [SyncPolicy::Always, SyncPolicy::Interval(Duration::from_millis(2)), SyncPolicy::Never]
    {
        let options = WalOptions { sync, ..options };
        let replay: &mut dyn FnMut(Lsn, &[u8]) -> Result<(), Infallible> = &mut |_, _| Ok(());
        let (wal, _) = Wal::open(Arc::new(SystemDisk), &dir, options, replay).unwrap();
        let lsns = std::thread::scope(|scope| {
            let work = |thread: usize| {
                let wal = &wal;
                scope.spawn(move || {
                    let mut lsns = Vec::new();
                    for number in 0..200 {
                        let lsn = wal.append(&[&payload(thread * 1000 + number)]).unwrap();
                        match number % 10 {
                            9 => wal.sync().unwrap(),
                            8 => wal.release(Lsn(lsn.0.saturating_sub(100_000))).unwrap(),
                            _ => wal.wait_durable(lsn).unwrap(),
                        }
                        lsns.push(lsn);
                    }
                    lsns
                })
            };
            let workers: Vec<_> = (0..8).map(work).collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect::<Vec<_>>()
        });
        let oldest = wal.oldest();
        wal.close().unwrap();
        let mut replayed = Vec::new();
        let (next, report) =
            Wal::open::<Infallible>(Arc::new(SystemDisk), &dir, options, &mut |lsn, _| {
                replayed.push(lsn);
                Ok(())
            })
            .unwrap();
        assert!(report.clean && report.corruptions.is_empty(), "{report:?}");
        let mut expected = lsns;
        expected.retain(|lsn| *lsn > oldest);
        expected.sort_unstable();
        replayed.retain(|lsn| *lsn >= expected[0]);
        assert_eq!(replayed, expected);
        next.release(next.position()).unwrap();
        drop(next);
    }
    std::fs::remove_dir_all(&dir).unwrap();
}
