//! Segments on a disk that fails or loses power.

use std::path::Path;

use platform::{Disk, Fault, FaultConfig, SimDisk};
use segment::{SegmentError, SegmentInfo, SegmentRows, SegmentWriter, WriterOptions};

use crate::support;

const PATH: &str = "/data/1.seg";

fn write(disk: &dyn Disk, rows: &SegmentRows) -> Result<SegmentInfo, SegmentError> {
    let mut writer = SegmentWriter::create(disk, Path::new(PATH), WriterOptions::hot(1))?;
    writer.begin_measurement(&"m".into(), &support::fields())?;
    writer.append(rows)?;
    let info = writer.finish()?;
    disk.sync_dir(Path::new("/data"))?;
    Ok(info)
}

fn disk(seed: u64) -> SimDisk {
    let disk = SimDisk::new(seed, FaultConfig::default());
    disk.create_dir_all(Path::new("/data")).unwrap();
    disk
}

/// Some megabytes, so that the file is written in several pieces.
fn rows() -> SegmentRows {
    support::rows(20, 12_000)
}

/// What is found is either everything or reported as damaged or absent.
fn all_or_nothing(disk: &SimDisk, rows: &SegmentRows, finished: bool) {
    match support::read_all(disk, PATH, "m") {
        Ok(found) => assert!(support::same(&found, rows)),
        Err(error) if finished => panic!("a finished segment is lost: {error}"),
        Err(SegmentError::Disk(error)) => assert!(error.is_not_found(), "{error}"),
        Err(error) => assert!(error.is_corrupt(), "{error}"),
    }
}

#[test]
fn a_crash_at_any_point_leaves_a_whole_segment_or_none() {
    let rows = rows();
    let whole = disk(0);
    write(&whole, &rows).unwrap();
    let operations = whole.operations();
    assert!(operations > 5, "the file is written in one piece");
    for seed in 0..4 {
        for after in 0..=operations {
            let disk = disk(seed);
            disk.crash_after(after);
            let finished = write(&disk, &rows).is_ok();
            assert_eq!(finished, after >= operations);
            all_or_nothing(&disk.crash(), &rows, finished);
        }
    }
}

#[test]
fn a_failed_write_or_sync_is_reported() {
    let rows = rows();
    let none = FaultConfig::default();
    for faults in [
        FaultConfig { write: Fault::Nth(2), ..none },
        FaultConfig { torn_write: Fault::Nth(1), ..none },
        FaultConfig { sync: Fault::Nth(1), ..none },
        FaultConfig { capacity_bytes: 1 << 20, ..none },
    ] {
        let disk = disk(7);
        disk.set_faults(faults);
        let error = write(&disk, &rows).unwrap_err();
        let SegmentError::Disk(error) = error else { panic!("{error}") };
        assert_eq!(error.path, Path::new(PATH));
        disk.set_faults(none);
        all_or_nothing(&disk.crash(), &rows, false);
    }
}

#[test]
fn a_failed_read_is_reported_and_does_not_stick() {
    let rows = support::rows(3, 500);
    let disk = disk(1);
    write(&disk, &rows).unwrap();
    let mut failures = 0;
    for nth in 1.. {
        disk.set_faults(FaultConfig { read: Fault::Nth(nth), ..FaultConfig::default() });
        match support::read_all(&disk, PATH, "m") {
            Ok(found) => {
                assert!(support::same(&found, &rows));
                break;
            }
            Err(SegmentError::Disk(error)) => assert_eq!(error.path, Path::new(PATH)),
            Err(error) => panic!("{error}"),
        }
        failures += 1;
    }
    assert!(failures > 5, "{failures}");
    disk.set_faults(FaultConfig::default());
    assert!(support::same(&support::read_all(&disk, PATH, "m").unwrap(), &rows));
}
