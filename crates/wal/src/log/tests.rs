mod crash;
mod faults;
mod threads;

use std::convert::Infallible;

use platform::{FaultConfig, SimDisk};

use super::*;
use crate::format::DATA_START;

/// Small files, so that a few records fill one, and small pages, so that some batches are filled up.
pub(super) fn small() -> WalOptions {
    WalOptions { file_bytes: 2048, pending_bytes_max: 700, page_bytes: 64, ..WalOptions::default() }
}

pub(super) fn dir() -> &'static Path {
    Path::new("/wal")
}

pub(super) fn quiet(seed: u64) -> SimDisk {
    SimDisk::new(seed, FaultConfig::default())
}

pub(super) type Replayed = Vec<(Lsn, Vec<u8>)>;

pub(super) fn try_open(
    disk: &SimDisk,
    options: WalOptions,
) -> Result<(Wal, RecoveryReport, Replayed), WalError> {
    let mut replayed = Vec::new();
    let (wal, report) =
        Wal::open::<Infallible>(Arc::new(disk.clone()), dir(), options, &mut |lsn, payload| {
            replayed.push((lsn, payload.to_vec()));
            Ok(())
        })?;
    assert_eq!(report.records, replayed.len() as u64);
    assert_eq!(report.bytes, replayed.iter().map(|(_, payload)| payload.len() as u64).sum::<u64>());
    Ok((wal, report, replayed))
}

pub(super) fn open(disk: &SimDisk, options: WalOptions) -> (Wal, RecoveryReport, Replayed) {
    try_open(disk, options).unwrap()
}

/// A record that can be told from every other, of a length that varies.
pub(super) fn payload(number: usize) -> Vec<u8> {
    let len = 5 + number * 37 % 150;
    (0..len).map(|i| (number * 7 + i * 13) as u8).collect()
}

pub(super) fn append_durably(wal: &Wal, payload: &[u8]) -> Lsn {
    let lsn = wal.append(&[payload]).unwrap();
    wal.wait_durable(lsn).unwrap();
    lsn
}

fn names(disk: &SimDisk) -> Vec<String> {
    disk.list(dir()).unwrap().into_iter().map(|entry| entry.name).collect()
}

#[test]
fn records_come_back_in_order_over_many_files() {
    let disk = quiet(1);
    let (wal, report, replayed) = open(&disk, small());
    assert_eq!((report, replayed), (RecoveryReport { clean: true, ..Default::default() }, vec![]));
    let written: Replayed = (0..100)
        .map(|number| {
            let payload = payload(number);
            let (head, tail) = payload.split_at(number % 5);
            let lsn = wal.append(&[head, &[], tail]).unwrap();
            if number % 3 == 0 {
                wal.wait_durable(lsn).unwrap();
            }
            (lsn, payload)
        })
        .collect();
    assert!(written.is_sorted_by_key(|(lsn, _)| *lsn));
    wal.wait_durable(written.last().unwrap().0).unwrap();
    let metrics = wal.metrics();
    assert_eq!(metrics.appends, 100);
    assert_eq!(metrics.append_bytes + metrics.fill_bytes, wal.position().0);
    let behind_the_last = wal.position().0 - written.last().unwrap().0.0;
    assert!(behind_the_last < 64, "{behind_the_last}");
    assert!(metrics.fill_bytes > 0);
    let longest = metrics.files * 2048;
    // What the last one lacks.
    let least = longest - 2048 + 1024;
    assert!(metrics.files > 5 && (least..=longest).contains(&metrics.disk_bytes), "{metrics:?}");
    assert_eq!(metrics.group_records_histogram.iter().sum::<u64>(), metrics.writes);
    assert_eq!(metrics.sync_us_histogram.iter().sum::<u64>(), metrics.syncs);
    wal.close().unwrap();
    wal.close().unwrap();
    assert!(matches!(wal.append(&[b"x"]), Err(WalError::Closed)));
    wal.wait_durable(written.last().unwrap().0).unwrap();

    let (next, report, replayed) = open(&disk.crash(), small());
    assert_eq!(replayed, written);
    assert!(report.clean && report.corruptions.is_empty() && report.torn_bytes == 0);
    assert_eq!(report.files, metrics.files);
    assert!(next.position() > wal.position(), "positions are never used twice");
    assert_eq!(next.oldest(), Lsn(0));
}

/// Where batches begin in their page, in a file whose base is a multiple of it, and what they took.
fn batches(wal: &Wal, lengths: &[usize]) -> Vec<(u64, u64)> {
    let mut batches = Vec::new();
    for length in lengths {
        let start = wal.position();
        append_durably(wal, &vec![1; *length]);
        let in_page = (start.0 + DATA_START as u64) % wal.inner.options.page_bytes as u64;
        batches.push((in_page, wal.position().0 - start.0));
    }
    batches
}

#[test]
fn a_batch_is_filled_up_to_the_end_of_its_page_if_little_is_missing() {
    let header = RECORD_HEADER_BYTES as u64;
    let options = WalOptions { file_bytes: 1 << 20, page_bytes: 1024, ..WalOptions::default() };
    let disk = quiet(31);
    let (wal, ..) = open(&disk, options);
    // The first file of a log is short; what does not fit into it begins the next one, from 0 on.
    append_durably(&wal, &[0; 8000]);
    assert_eq!(wal.metrics().fill_bytes, 176, "8016 bytes from the second page on");
    let found = batches(&wal, &[1000, 800, 500, 100, 300, 576, 5000, 2, 992, 30]);
    let expected = [
        // Eight bytes are missing, for which there is no header: the next begins in this page.
        (0, 1000 + header),
        // 216 would be, beside 816.
        (1016, 816),
        (808, 516),
        // 700 are missing, too much for this one.
        (300, 100 + header),
        (416, 300 + header),
        // 724 of 592.
        (732, 576 + header),
        // 828 of 5016.
        (300, 5844),
        (0, 2 + header),
        // 1022 of 1008.
        (18, 992 + header),
        (2, 30 + header),
    ];
    assert_eq!(found, expected);
    assert_eq!(wal.metrics().fill_bytes, 176 + 828);
    let (_, report, replayed) = open(&disk.crash(), options);
    assert!(report.corruptions.is_empty() && !report.clean && replayed.len() == 11, "{report:?}");
    assert!(replayed[1..].iter().all(|(_, payload)| payload.iter().all(|byte| *byte == 1)));

    // Without a promise that needs a sync nothing is gained.
    let never = WalOptions { sync: SyncPolicy::Never, ..options };
    let (wal, ..) = open(&quiet(32), never);
    batches(&wal, &[1000, 820]);
    assert_eq!(wal.metrics().fill_bytes, 0);
}

#[test]
fn a_fill_keeps_no_file() {
    let disk = quiet(33);
    let options = WalOptions { file_bytes: 1 << 20, page_bytes: 1024, ..WalOptions::default() };
    let (wal, ..) = open(&disk, options);
    append_durably(&wal, &[0; 8000]);
    let end = append_durably(&wal, &[1; 820]);
    assert!(wal.position() > end && wal.metrics().fill_bytes > 0);
    wal.rest(wal.position()).unwrap();
    let files = disk.list(dir()).unwrap();
    assert!(files.len() == 1 && files[0].len <= 4 << 10, "{files:?}");
    let next = append_durably(&wal, b"next");
    let (_, report, replayed) = open(&disk.crash(), options);
    assert_eq!(replayed, [(next, b"next".to_vec())]);
    assert!(report.corruptions.is_empty(), "{report:?}");
}

#[test]
fn releasing_keeps_what_it_must_and_reuses_files() {
    let disk = quiet(2);
    let (wal, ..) = open(&disk, small());
    let mut written = Vec::new();
    let mut spares_seen = false;
    for number in 0..300 {
        let payload = payload(number);
        written.push((append_durably(&wal, &payload), payload));
        if number % 20 == 19 {
            let before = written[written.len() - 10].0;
            wal.release(before).unwrap();
            assert!(wal.oldest() <= before, "the next record is there");
            let kept = written.iter().filter(|(lsn, _)| *lsn > before).map(|(_, p)| p.len() as u64);
            assert!(wal.bytes() >= kept.sum());
            let logs = names(&disk).iter().filter(|name| name.ends_with(".log")).count();
            assert!(logs <= 3, "{:?}", names(&disk));
            spares_seen |= names(&disk).iter().any(|name| name.ends_with(".spare"));
            let (_, report, replayed) = open(&disk.fork().crash(), small());
            let first = written.iter().position(|record| record == &replayed[0]).unwrap();
            assert_eq!(replayed, written[first..]);
            assert!(report.corruptions.is_empty(), "{report:?}");
            assert!(first > 0 || number < 40);
            assert!(replayed[0].0 <= written[written.len() - 9].0);
        }
    }
    assert!(spares_seen);
    wal.release(wal.position()).unwrap();
    assert_eq!(names(&disk).iter().filter(|name| name.ends_with(".log")).count(), 1);
    let disk_bytes: u64 = disk.list(dir()).unwrap().iter().map(|entry| entry.len).sum();
    assert_eq!(wal.metrics().disk_bytes, disk_bytes);
}

#[test]
fn files_given_up_at_once_are_all_written_again_and_the_log_gets_no_longer() {
    let disk = quiet(34);
    let (wal, ..) = open(&disk, small());
    let count = |kind: &str| names(&disk).iter().filter(|name| name.ends_with(kind)).count();
    for _ in 0..3 {
        while count(".log") < 6 {
            append_durably(&wal, &[7; 100]);
        }
        wal.release(wal.position()).unwrap();
        assert_eq!((count(".log"), count(".spare")), (1, 5), "{:?}", names(&disk));
        while count(".log") < 6 {
            append_durably(&wal, &[8; 100]);
            assert_eq!(count(".log") + count(".spare"), 6, "{:?}", names(&disk));
        }
        // Five full ones, of which the last step may be missing, and what there is of the sixth.
        let disk_bytes = wal.metrics().disk_bytes;
        assert!((6 * 2048 - 256..=6 * 2048).contains(&disk_bytes), "{disk_bytes}");
        wal.release(wal.position()).unwrap();
    }
}

#[test]
fn a_file_gets_its_length_in_steps_as_it_is_needed() {
    let disk = quiet(35);
    let options = WalOptions { file_bytes: 64 << 10, ..WalOptions::default() };
    let (wal, ..) = open(&disk, options);
    let mut written = Vec::new();
    for number in 0..400 {
        let payload = vec![number as u8; 1000];
        written.push((append_durably(&wal, &payload), payload));
        let metrics = wal.metrics();
        let lengths: Vec<u64> =
            disk.list(dir()).unwrap().into_iter().map(|entry| entry.len).collect();
        assert_eq!(metrics.disk_bytes, lengths.iter().sum::<u64>());
        // Of the last file, and of each before what was too little for one more record.
        let unused = metrics.disk_bytes - wal.bytes();
        assert!(unused < 8192 + metrics.files * 1024, "{unused} in {lengths:?}");
    }
    assert!(wal.metrics().files > 6);
    assert_eq!(open(&disk.crash(), options).2, written);
}

#[test]
fn a_record_larger_than_a_file_gets_its_own() {
    let disk = quiet(3);
    let (wal, ..) = open(&disk, small());
    let large = vec![7; 10_000];
    let written = [b"before".to_vec(), large, b"after".to_vec()];
    let lsns: Vec<_> = written.iter().map(|payload| append_durably(&wal, payload)).collect();
    let (_, _, replayed) = open(&disk.crash(), small());
    assert_eq!(replayed, lsns.into_iter().zip(written).collect::<Vec<_>>());
}

#[test]
fn mistakes_of_the_caller_are_told_and_change_nothing() {
    let (wal, ..) = open(&quiet(4), small());
    assert!(matches!(wal.append(&[]), Err(WalError::EmptyRecord)));
    assert!(matches!(wal.append(&[b"", b""]), Err(WalError::EmptyRecord)));
    let half = vec![0; RECORD_BYTES_MAX / 2 + 1];
    let too_large = wal.append(&[&half, &half]);
    assert!(matches!(too_large, Err(WalError::RecordTooLarge { .. })), "{too_large:?}");
    let beyond = wal.wait_durable(Lsn(1));
    assert!(matches!(beyond, Err(WalError::BeyondEnd { lsn: Lsn(1), end: Lsn(0) })));
    assert_eq!(wal.position(), Lsn(0));
    for options in [
        WalOptions { file_bytes: 1024, ..small() },
        WalOptions { file_bytes: 2 << 30, ..small() },
        WalOptions { pending_bytes_max: 0, ..small() },
        WalOptions { sync: SyncPolicy::Interval(Duration::ZERO), ..small() },
        WalOptions { position_min: Lsn(u64::MAX), ..small() },
    ] {
        let refused = try_open(&quiet(4), options);
        assert!(matches!(refused, Err(WalError::InvalidOptions { .. })), "{options:?}");
    }
}

#[test]
fn the_log_goes_on_behind_what_the_owner_holds_elsewhere() {
    let options = WalOptions { position_min: Lsn(1_000_000), ..small() };
    let disk = quiet(5);
    let (wal, ..) = open(&disk, options);
    assert_eq!((wal.position(), wal.oldest()), (Lsn(1_000_000), Lsn(1_000_000)));
    let lsn = append_durably(&wal, b"x");
    let (_, report, replayed) = open(&disk.crash(), small());
    assert_eq!(replayed, [(lsn, b"x".to_vec())]);
    assert_eq!(report.oldest, Lsn(1_000_000));
}

#[test]
fn the_receiver_may_refuse_a_record() {
    let disk = quiet(6);
    let (wal, ..) = open(&disk, small());
    let lsn = append_durably(&wal, b"x");
    let next = disk.crash();
    let refused = Wal::open(Arc::new(next.clone()), dir(), small(), &mut |_, _| Err("no"));
    match refused {
        Err(WalError::Replay { lsn: at, source }) => {
            assert_eq!((at, source.to_string()), (lsn, "no".to_owned()));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(open(&next, small()).2, [(lsn, b"x".to_vec())]);
}

#[test]
fn opening_again_and_again_piles_up_nothing() {
    let mut disk = quiet(7);
    let mut lsn = Lsn(0);
    for round in 0..20 {
        let (wal, _, replayed) = open(&disk, small());
        if round == 0 {
            lsn = append_durably(&wal, b"x");
        } else {
            assert_eq!(replayed, [(lsn, b"x".to_vec())]);
        }
        if round % 2 == 0 {
            wal.close().unwrap();
        }
        disk = disk.crash();
    }
    let (wal, ..) = open(&disk, small());
    wal.release(lsn).unwrap();
    assert_eq!(names(&disk).len(), 1, "{:?}", names(&disk));
    assert_eq!(wal.oldest(), wal.position());
}

#[test]
fn files_of_later_versions_are_refused() {
    let disk = quiet(8);
    drop(open(&disk, small()));
    let file = disk.open_write(&dir().join("00000001.log")).unwrap();
    let header = crate::format::FileHeader { sequence: 1, base: Lsn(0), previous_end: Lsn(0) };
    file.write_at(&crate::format::tests::patched(&header, 8, &[9]), 0).unwrap();
    let refused = try_open(&disk, small());
    assert!(matches!(refused, Err(WalError::Unsupported { .. })), "{refused:?}");
}

#[test]
fn a_policy_without_syncs_survives_the_death_of_the_process() {
    for sync in [SyncPolicy::Never, SyncPolicy::Interval(Duration::from_secs(3600))] {
        let disk = quiet(9);
        let (wal, ..) = open(&disk, WalOptions { sync, ..small() });
        let written: Vec<_> =
            (0..10).map(|n| (append_durably(&wal, &payload(n)), payload(n))).collect();
        let unsynced = disk.kill();
        assert_eq!(open(&unsynced, small()).2, written);
        drop(wal);

        let disk = quiet(10);
        let (wal, ..) = open(&disk, WalOptions { sync, ..small() });
        let written: Vec<_> =
            (0..5).map(|n| (append_durably(&wal, &payload(n)), payload(n))).collect();
        assert_eq!(wal.metrics().syncs, 0);
        wal.sync().unwrap();
        assert_eq!(wal.metrics().syncs, 1);
        assert_eq!(open(&disk.crash(), small()).2, written);
    }
}

#[test]
fn the_interval_policy_syncs_by_itself() {
    let disk = quiet(11);
    let sync = SyncPolicy::Interval(Duration::from_millis(1));
    let (wal, ..) = open(&disk, WalOptions { sync, ..small() });
    let lsn = wal.append(&[b"x"]).unwrap();
    while wal.metrics().syncs == 0 {
        std::thread::yield_now();
    }
    let (_, _, replayed) = open(&disk.crash(), small());
    assert_eq!(replayed, [(lsn, b"x".to_vec())]);
    drop(wal);
}

#[test]
fn files_grow_under_load_and_shrink_at_rest() {
    let disk = quiet(1);
    let options =
        WalOptions { file_bytes: 1 << 20, pending_bytes_max: 1 << 20, ..WalOptions::default() };
    let (wal, ..) = open(&disk, options);
    assert_eq!(wal.metrics().disk_bytes, 4 << 10);
    let mut end = Lsn(0);
    for _ in 0..40 {
        end = append_durably(&wal, &vec![7; 100_000]);
    }
    let loaded = wal.metrics();
    assert!(loaded.files < 20, "{loaded:?}");
    let ahead = loaded.disk_bytes - wal.bytes();
    assert!(ahead < wal.bytes() / 2, "{ahead} bytes more than was written: {loaded:?}");

    let late = append_durably(&wal, b"late");
    wal.rest(end).unwrap();
    assert_eq!(wal.metrics().disk_bytes, loaded.disk_bytes, "a record is still needed");
    wal.rest(late).unwrap();
    assert_eq!(wal.metrics().disk_bytes, 4 << 10);
    wal.rest(late).unwrap();
    assert_eq!(wal.metrics().files, loaded.files + 1, "resting already");

    let end = append_durably(&wal, b"after");
    assert_eq!(wal.oldest(), late);
    drop(wal);
    let (_, report, replayed) = open(&disk, options);
    assert!(report.corruptions.is_empty());
    assert_eq!(replayed, [(end, b"after".to_vec())]);
}
