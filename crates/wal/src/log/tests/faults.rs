//! Failing writes and syncs, full disks, flipped bits.

use platform::Fault;

use super::*;

fn written(wal: &Wal, count: usize) -> Replayed {
    (0..count).map(|n| (append_durably(wal, &payload(n)), payload(n))).collect()
}

/// Appends until the log is stopped. Says what was acknowledged.
fn until_poisoned(wal: &Wal) -> Replayed {
    let mut acknowledged = Vec::new();
    for number in 0..200 {
        let payload = payload(number);
        match wal.append(&[&payload]).and_then(|lsn| wal.wait_durable(lsn).map(|()| lsn)) {
            Ok(lsn) => acknowledged.push((lsn, payload)),
            Err(WalError::Poisoned { cause }) => {
                assert!(cause.path.starts_with(dir()), "{cause}");
                let again = wal.append(&[b"x"]);
                assert!(matches!(again, Err(WalError::Poisoned { .. })), "{again:?}");
                assert!(matches!(wal.sync(), Err(WalError::Poisoned { .. })));
                assert!(wal.close().is_err());
                return acknowledged;
            }
            Err(other) => panic!("{other}"),
        }
    }
    panic!("the fault never struck");
}

/// What was acknowledged is there whichever write, sync or name fails and whatever is lost then;
/// and what was once replayed stays.
#[test]
fn after_a_failed_operation_nothing_is_acknowledged_and_nothing_acknowledged_is_lost() {
    let kinds: [fn(Fault) -> FaultConfig; 4] = [
        |sync| FaultConfig { sync, ..Default::default() },
        |write| FaultConfig { write, ..Default::default() },
        |torn_write| FaultConfig { torn_write, ..Default::default() },
        |names| FaultConfig { names, ..Default::default() },
    ];
    for kind in kinds {
        for nth in 1..40 {
            let disk = quiet(nth);
            let (wal, ..) = open(&disk, small());
            disk.set_faults(kind(Fault::Nth(nth)));
            let acknowledged = until_poisoned_or_released(&wal, &disk);
            for restart in [SimDisk::kill, SimDisk::crash] {
                let disk = restart(&disk);
                let (_, report, replayed) = open(&disk, small());
                assert!(report.corruptions.is_empty(), "{report:?}");
                assert!(replayed.starts_with(&acknowledged), "{nth}: {report:?}");
                assert!(replayed.len() <= acknowledged.len() + 1);
                let (_, report, again) = open(&disk.crash(), small());
                assert!(report.corruptions.is_empty(), "{report:?}");
                assert_eq!(again, replayed, "what was replayed once is durable");
            }
        }
    }
}

fn until_poisoned_or_released(wal: &Wal, disk: &SimDisk) -> Replayed {
    let acknowledged = until_poisoned(wal);
    // The disk works again: that must not bring the log back to life.
    disk.set_faults(FaultConfig::default());
    assert!(matches!(wal.append(&[b"x"]), Err(WalError::Poisoned { .. })));
    acknowledged
}

#[test]
fn the_first_cause_is_told_with_path_and_offset() {
    let disk = quiet(1);
    let (wal, ..) = open(&disk, small());
    append_durably(&wal, b"one");
    disk.set_faults(FaultConfig { write: Fault::Nth(1), ..Default::default() });
    let lsn = wal.append(&[b"two"]).unwrap();
    let error = wal.wait_durable(lsn).unwrap_err();
    let WalError::Poisoned { cause } = &error else { panic!("{error}") };
    assert_eq!((cause.operation, cause.offset), ("write", Some(1024 + 16 + 3)));
    assert_eq!(cause.path, dir().join("00000001.log"));
    assert!(error.to_string().contains("/wal/00000001.log at offset 1043"), "{error}");
}

#[test]
fn a_failed_release_is_told_and_tried_again() {
    let disk = quiet(2);
    let (wal, ..) = open(&disk, small());
    let records = written(&wal, 60);
    let before = wal.oldest();
    disk.set_faults(FaultConfig { names: Fault::Nth(1), ..Default::default() });
    assert!(matches!(wal.release(records[50].0), Err(WalError::Disk(_))));
    assert_eq!(wal.oldest(), before);
    wal.release(records[50].0).unwrap();
    assert!(wal.oldest() > before);
    append_durably(&wal, b"goes on");
}

/// Wherever resting fails: either the log stops, or what comes later is in its new file and stays.
#[test]
fn a_failed_rest_loses_nothing_that_comes_later() {
    let mut went_on = 0;
    for nth in 1..12 {
        let disk = quiet(nth);
        let (wal, ..) = open(&disk, small());
        let end = written(&wal, 60).last().unwrap().0;
        disk.set_faults(FaultConfig { names: Fault::Nth(nth), ..Default::default() });
        let outcome = wal.rest(end);
        disk.set_faults(FaultConfig::default());
        let after = match outcome {
            Err(WalError::Poisoned { .. }) => {
                assert!(wal.append(&[b"after"]).is_err());
                continue;
            }
            Err(WalError::Disk(_)) => {
                went_on += 1;
                append_durably(&wal, b"after")
            }
            Ok(()) => append_durably(&wal, b"after"),
            Err(other) => panic!("{other}"),
        };
        let (_, report, replayed) = open(&disk.crash(), small());
        assert!(report.corruptions.is_empty(), "{report:?}");
        assert_eq!(replayed.last(), Some(&(after, b"after".to_vec())));
    }
    assert!(went_on > 0, "no removal failed");
}

#[test]
fn a_full_disk_stops_acknowledgements_until_there_is_space() {
    let disk = quiet(3);
    let (wal, ..) = open(&disk, small());
    disk.set_faults(FaultConfig { capacity_bytes: 5 * 2048 + 100, ..Default::default() });
    let mut records = Vec::new();
    let failed = loop {
        let payload = payload(records.len());
        let lsn = wal.append(&[&payload]).unwrap();
        records.push((lsn, payload));
        if let Err(error) = wal.wait_durable(lsn) {
            break error;
        }
    };
    let WalError::DiskFull { cause } = failed else { panic!("{failed}") };
    assert!(cause.is_full(), "{cause}");
    assert!(records.len() > 20);
    assert!(wal.metrics().disk_full > 0);
    let unacknowledged = records.len() - 1;

    // Restarting on the full disk reads everything that was acknowledged.
    let (again, report, replayed) = open(&disk.fork().crash(), small());
    assert!(report.corruptions.is_empty(), "{report:?}");
    assert_eq!(replayed, records[..unacknowledged]);
    let lsn = again.append(&[b"x"]).unwrap();
    assert!(matches!(again.wait_durable(lsn), Err(WalError::DiskFull { .. })));
    again.release(records[20].0).unwrap();
    again.wait_durable(lsn).unwrap();
    again.close().unwrap();

    // Memory is bounded while the disk is full.
    let refused = (0..1000).find_map(|_| wal.append(&[&[1; 100]]).err());
    assert!(matches!(refused, Some(WalError::DiskFull { .. })), "{refused:?}");
    assert!(matches!(wal.wait_durable(records[unacknowledged].0), Err(WalError::DiskFull { .. })));

    // With space it goes on, in order, with what it could not write before.
    wal.release(records[20].0).unwrap();
    wal.wait_durable(wal.position()).unwrap();
    let lsn = append_durably(&wal, b"last");
    let (_, report, replayed) = open(&disk.crash(), small());
    assert!(report.corruptions.is_empty(), "{report:?}");
    let first = records.iter().position(|record| *record == replayed[0]).unwrap();
    assert!(replayed.starts_with(&records[first..]));
    assert_eq!(replayed.last(), Some(&(lsn, b"last".to_vec())));
}

#[test]
fn a_write_that_finds_the_disk_full_half_way_poisons() {
    let disk = quiet(4);
    let (wal, ..) = open(&disk, small());
    let lsn = append_durably(&wal, b"kept");
    // As on a file system that cannot reserve: less fits than the file's length promised.
    disk.open_write(&dir().join("00000001.log")).unwrap().set_len(1024 + 30).unwrap();
    disk.set_faults(FaultConfig { capacity_bytes: 1024 + 40, ..Default::default() });
    let next = wal.append(&[&[9; 100]]).unwrap();
    assert!(matches!(wal.wait_durable(next), Err(WalError::Poisoned { .. })));
    assert_eq!(open(&disk.kill(), small()).2, [(lsn, b"kept".to_vec())]);
}

fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "log")
}

/// So that damage is in the last file as often as before it.
fn few_or_many_files(seed: u64) -> WalOptions {
    WalOptions { file_bytes: if seed.is_multiple_of(2) { 2048 } else { 8192 }, ..small() }
}

/// The fills of a log that was closed: file, offset there and length of whatever is between its records,
/// but for the seal.
fn fills(disk: &SimDisk, records: &Replayed) -> Vec<(PathBuf, u64, u64)> {
    const HEADER: u64 = RECORD_HEADER_BYTES as u64;
    let (_, files) = crate::look(disk, dir(), &mut |_, _| {}).unwrap();
    let last = files.last().unwrap().end;
    let mut fills = Vec::new();
    for file in &files {
        let base = file.base.unwrap();
        let end = if file.end == last { Lsn(last.0 - HEADER) } else { file.end };
        let of_file = records.iter().filter(|(lsn, _)| base < *lsn && *lsn <= end);
        let taken = of_file.map(|(lsn, payload)| (lsn.0 - payload.len() as u64 - HEADER, lsn.0));
        let mut at = base.0;
        for (start, next) in taken.chain([(end.0, end.0)]) {
            if at < start {
                fills.push((file.path.clone(), file.offset_of(Lsn(at)).unwrap(), start - at));
            }
            at = next;
        }
    }
    fills
}

/// After a proper close every flipped bit that costs a record is reported, and costs only the
/// record it is in.
#[test]
fn a_flipped_bit_is_reported_and_contained() {
    let (mut lost_one, mut lost_fill) = (0, 0);
    for seed in 0..300 {
        let disk = quiet(seed);
        let (wal, ..) = open(&disk, few_or_many_files(seed));
        let records = written(&wal, 60);
        wal.close().unwrap();
        let fills = fills(&disk, &records);
        let (path, offset, _) = disk.flip_random_bit(is_log).unwrap();
        let (_, report, replayed) = open(&disk.crash(), small());
        if replayed == records {
            // In a header of the file, or in that of a fill, which nobody can tell from a record's.
            for found in &report.corruptions {
                let extent = (found.path.clone(), found.offset, found.lost_bytes);
                let in_fill = fills.contains(&extent)
                    && (found.offset..found.offset + RECORD_HEADER_BYTES as u64).contains(&offset);
                assert_eq!(found.path, path);
                assert!(found.lost_bytes == 0 || in_fill, "{report:?} {fills:?}");
                lost_fill += u32::from(in_fill);
            }
            continue;
        }
        lost_one += 1;
        let mut expected = records.clone();
        expected.retain(|record| replayed.contains(record));
        assert_eq!(replayed, expected, "nothing but what was written, in order");
        assert_eq!(records.len() - replayed.len(), 1);
        assert_eq!(report.corruptions.len(), 1, "{report:?}");
        let found = &report.corruptions[0];
        assert_eq!(found.path, path);
        assert!((found.offset..found.offset + found.lost_bytes).contains(&offset), "{found:?}");
    }
    assert!(lost_one > 100 && lost_fill > 0, "{lost_one} {lost_fill}");
}

/// Also where a record was acknowledged and the process then died: only the last group, which
/// nothing behind it proves durable, may go unreported.
#[test]
fn a_flipped_bit_before_the_last_record_is_reported_without_a_close() {
    for seed in 0..300 {
        let disk = quiet(seed);
        let (wal, ..) = open(&disk, few_or_many_files(seed));
        let records = written(&wal, 60);
        disk.flip_random_bit(is_log).unwrap();
        let (_, report, replayed) = open(&disk.crash(), small());
        let kept = replayed.iter().filter(|record| records.contains(record)).count();
        assert_eq!(kept, replayed.len());
        let lost = records.iter().filter(|record| !replayed.contains(record)).collect::<Vec<_>>();
        assert!(lost.len() <= 1);
        if lost.first().is_some_and(|record| Some(*record) != records.last()) {
            assert_eq!(report.corruptions.len(), 1, "{report:?}");
        }
    }
}

#[test]
fn a_missing_file_and_a_ruined_header_are_reported_and_the_rest_is_replayed() {
    for ruin in [false, true] {
        let disk = quiet(5);
        let (wal, ..) = open(&disk, small());
        let records = written(&wal, 60);
        let path = dir().join("00000003.log");
        if ruin {
            disk.open_write(&path).unwrap().write_at(&[0xff; 1024], 0).unwrap();
        } else {
            disk.remove(&path).unwrap();
        }
        let next = disk.kill();
        let (wal, report, replayed) = open(&next, small());
        assert!(!report.corruptions.is_empty(), "{report:?}");
        let about = if ruin { &path } else { &dir().join("00000002.log") };
        assert!(report.corruptions.iter().all(|found| found.path == *about), "{report:?}");
        let lost: Vec<_> = records.iter().filter(|record| !replayed.contains(record)).collect();
        assert!(lost.len() > 3 && lost.len() < 20);
        let (from, to) = (lost[0].0, lost[lost.len() - 1].0);
        assert!(replayed.iter().all(|(lsn, _)| *lsn < from || *lsn > to));
        assert_eq!(replayed.len() + lost.len(), records.len());
        // It is said again until the owner releases what lies around.
        assert_eq!(open(&next.fork(), small()).1.corruptions, report.corruptions);
        let lsn = append_durably(&wal, b"goes on");
        drop(wal);
        let next = next.crash();
        let (wal, ..) = open(&next, small());
        wal.release(lsn).unwrap();
        assert_eq!(open(&next.kill(), small()).1.corruptions, []);
    }
}

#[test]
fn a_failed_read_stops_opening() {
    let disk = quiet(6);
    let (wal, ..) = open(&disk, small());
    let records = written(&wal, 10);
    let next = disk.crash();
    next.set_faults(FaultConfig { read: Fault::Nth(2), ..Default::default() });
    assert!(matches!(try_open(&next, small()), Err(WalError::Disk(_))));
    assert_eq!(open(&next, small()).2, records);
}
