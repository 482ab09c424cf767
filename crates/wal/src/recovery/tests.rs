use std::convert::Infallible;

use platform::{FaultConfig, SimDisk};
use proptest::prelude::*;

use super::*;
use crate::log::Wal;
use crate::options::WalOptions;

fn dir() -> &'static Path {
    Path::new("/wal")
}

type Replayed = Vec<(Lsn, Vec<u8>)>;

fn open(disk: &SimDisk) -> Result<(Wal, RecoveryReport, Replayed), WalError> {
    let options = WalOptions { file_bytes: 2048, pending_bytes_max: 500, ..WalOptions::default() };
    let mut replayed = Vec::new();
    let (wal, report) =
        Wal::open::<Infallible>(Arc::new(disk.clone()), dir(), options, &mut |lsn, payload| {
            replayed.push((lsn, payload.to_vec()));
            Ok(())
        })?;
    Ok((wal, report, replayed))
}

/// Two lives of a log over several files; the first ends without a close.
fn two_lives(close: bool) -> (SimDisk, Replayed) {
    let disk = SimDisk::new(1, FaultConfig::default());
    let mut written = Vec::new();
    for life in 0..2u8 {
        let (wal, ..) = open(&disk).unwrap();
        for number in 0..20u8 {
            let payload = vec![life * 100 + number; 30 + usize::from(number) * 9];
            let lsn = wal.append(&[&payload]).unwrap();
            wal.wait_durable(lsn).unwrap();
            written.push((lsn, payload));
        }
        if close {
            wal.close().unwrap();
        }
    }
    (disk, written)
}

fn put(disk: &SimDisk, name: &str, bytes: &[u8]) {
    let path = dir().join(name);
    match disk.open_write(&path) {
        Ok(file) => {
            file.set_len(0).unwrap();
            file.write_at(bytes, 0).unwrap();
        }
        Err(_) => disk.create(&path).unwrap().write_at(bytes, 0).unwrap(),
    }
}

#[derive(Clone, Debug)]
enum Harm {
    Overwrite { file: usize, at: prop::sample::Index, bytes: Vec<u8> },
    Cut { file: usize, at: prop::sample::Index },
    Remove { file: usize },
    Swap { file: usize, other: usize },
    Copy { file: usize, name: String },
    Noise { name: String, bytes: Vec<u8> },
}

fn harm() -> impl Strategy<Value = Harm> {
    let at = any::<prop::sample::Index>;
    let bytes = || prop::collection::vec(any::<u8>(), 1..100);
    let name = || "0000000[0-9]\\.(log|spare)|18446744073709551615\\.log|x\\.log";
    prop_oneof![
        (0..20usize, at(), bytes()).prop_map(|(file, at, bytes)| Harm::Overwrite {
            file,
            at,
            bytes
        }),
        (0..20usize, at()).prop_map(|(file, at)| Harm::Cut { file, at }),
        (0..20usize).prop_map(|file| Harm::Remove { file }),
        (0..20usize, 0..20usize).prop_map(|(file, other)| Harm::Swap { file, other }),
        (0..20usize, name()).prop_map(|(file, name)| Harm::Copy { file, name }),
        (name(), bytes()).prop_map(|(name, bytes)| Harm::Noise { name, bytes }),
    ]
}

fn inflict(disk: &SimDisk, harm: Harm) {
    let files: Vec<_> = disk.contents().into_iter().collect();
    let pick = |file: usize| files.get(file % files.len().max(1));
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    match harm {
        Harm::Overwrite { file, at, bytes } => {
            let Some((path, content)) = pick(file) else { return };
            if !content.is_empty() {
                let at = at.index(content.len()) as u64;
                disk.open_write(path).unwrap().write_at(&bytes, at).unwrap();
            }
        }
        Harm::Cut { file, at } => {
            let Some((path, content)) = pick(file) else { return };
            let len = at.index(content.len() + 1) as u64;
            disk.open_write(path).unwrap().set_len(len).unwrap();
        }
        Harm::Remove { file } => {
            let Some((path, _)) = pick(file) else { return };
            disk.remove(path).unwrap();
        }
        Harm::Swap { file, other } => {
            let (Some(a), Some(b)) = (pick(file), pick(other)) else { return };
            put(disk, &name(&a.0), &b.1);
            put(disk, &name(&b.0), &a.1);
        }
        Harm::Copy { file, name } => {
            let Some((_, content)) = pick(file) else { return };
            put(disk, &name, content);
        }
        Harm::Noise { name, bytes } => put(disk, &name, &bytes),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever was done to the files: no panic, nothing replayed that was not written, in order,
    /// each once; and if anything but the end is missing, that is reported.
    #[test]
    fn any_harm_is_survived(close: bool, harms in prop::collection::vec(harm(), 1..5)) {
        let (disk, written) = two_lives(close);
        for harm in harms {
            inflict(&disk, harm);
        }
        // Harm is what the disk holds, not what a crash may undo.
        disk.contents().keys().for_each(|path| disk.open(path).unwrap().sync().unwrap());
        disk.sync_dir(dir()).unwrap();
        let disk = disk.kill();
        let (wal, report, replayed) = match open(&disk) {
            Ok(opened) => opened,
            Err(WalError::PositionsExhausted(_)) => return Ok(()),
            Err(other) => panic!("{other}"),
        };
        prop_assert!(replayed.is_sorted_by(|a, b| a.0 < b.0));
        prop_assert!(replayed.iter().all(|record| written.contains(record)));
        if let (Some(first), Some(last)) = (replayed.first(), replayed.last()) {
            let between = written.iter().filter(|(lsn, _)| *lsn > first.0 && *lsn < last.0).count();
            if between + 2 > replayed.len() && first != last {
                prop_assert!(!report.corruptions.is_empty(), "{:?}", report);
            }
        }
        // It takes records, and finds the same ones again.
        let lsn = wal.append(&[b"new"]).unwrap();
        prop_assert!(replayed.last().is_none_or(|(last, _)| lsn > *last));
        wal.wait_durable(lsn).unwrap();
        let (_, _, again) = open(&disk.crash()).unwrap();
        let mut expected = replayed;
        expected.push((lsn, b"new".to_vec()));
        prop_assert!(again == expected, "{} and {}", again.len(), expected.len());
    }
}

/// Every single bit of a small log, flipped.
#[test]
fn every_flipped_bit_is_survived_and_costs_at_most_one_record() {
    let disk = SimDisk::new(1, FaultConfig::default());
    let (wal, ..) = open(&disk).unwrap();
    let mut written = Vec::new();
    for payload in [&b"first"[..], b"second", b"third"] {
        let lsn = wal.append(&[payload]).unwrap();
        wal.wait_durable(lsn).unwrap();
        written.push((lsn, payload.to_vec()));
    }
    wal.close().unwrap();
    let path = dir().join("00000001.log");
    let used = DATA_START as u64 + written[2].0.0 + 16;
    for offset in 0..used {
        for bit in 0..8 {
            let disk = disk.fork();
            assert!(disk.flip_bit(&path, offset, bit));
            let (_, report, replayed) = open(&disk).unwrap();
            let lost = written.iter().filter(|record| !replayed.contains(record)).count();
            assert_eq!(replayed.len() + lost, 3);
            assert!(lost <= 1 && lost <= report.corruptions.len(), "{offset} {bit}: {report:?}");
        }
    }
}
