use proptest::prelude::*;

use super::*;

fn quiet(seed: u64) -> SimDisk {
    SimDisk::new(seed, FaultConfig::default())
}

fn faulty(config: FaultConfig) -> SimDisk {
    SimDisk::new(7, config)
}

fn dir() -> &'static Path {
    Path::new("/d")
}

fn path(name: &str) -> PathBuf {
    dir().join(name)
}

/// A durable file with `bytes`.
fn durable(disk: &SimDisk, name: &str, bytes: &[u8]) -> Arc<dyn File> {
    disk.create_dir_all(dir()).unwrap();
    let file = disk.create(&path(name)).unwrap();
    file.write_at(bytes, 0).unwrap();
    file.sync().unwrap();
    disk.sync_dir(dir()).unwrap();
    file
}

fn content(disk: &SimDisk, name: &str) -> Option<Vec<u8>> {
    disk.contents().remove(&path(name))
}

#[test]
fn what_was_synced_survives_every_crash_and_old_handles_fail() {
    for seed in 0..50 {
        let disk = quiet(seed);
        let file = durable(&disk, "a", b"kept");
        let lock = disk.lock(&path("lock")).unwrap();
        assert!(lock.is_some() && disk.lock(&path("lock")).unwrap().is_none());
        let after = disk.crash();
        assert_eq!(content(&after, "a").unwrap(), b"kept");
        assert!(after.lock(&path("lock")).unwrap().is_some(), "locks go with the process");
        drop(lock);
        assert!(file.read_at(&mut [0; 1], 0).is_err());
        assert!(file.write_at(b"x", 0).is_err());
        assert!(disk.open(&path("a")).is_err());
        let reopened = after.open_write(&path("a")).unwrap();
        reopened.write_at(b"more", 4).unwrap();
        reopened.sync().unwrap();
        assert_eq!(content(&after.crash(), "a").unwrap(), b"keptmore");
    }
}

#[test]
fn an_unsynced_write_survives_whole_in_part_or_not_at_all() {
    let (mut whole, mut gone, mut torn, mut zeros) = (0, 0, 0, 0);
    for seed in 0..200 {
        let disk = quiet(seed);
        let file = durable(&disk, "a", &[]);
        let written: Vec<u8> = (0..2000u32).map(|i| (i % 250 + 1) as u8).collect();
        file.write_at(&written, 100).unwrap();
        let found = content(&disk.crash(), "a").unwrap();
        assert!(found.len() <= 2100);
        for (offset, byte) in found.iter().enumerate() {
            let expected = if offset < 100 { 0 } else { written[offset - 100] };
            assert!(*byte == expected || *byte == 0, "no byte that was never written");
        }
        match found.iter().filter(|byte| **byte != 0).count() {
            2000 => whole += 1,
            0 if found.is_empty() => gone += 1,
            0 => zeros += 1,
            _ => torn += 1,
        }
    }
    assert!(whole > 20 && gone > 10 && torn > 20 && zeros > 5, "{whole} {gone} {torn} {zeros}");
}

#[test]
fn unsynced_names_may_be_undone() {
    let (mut created, mut renamed, mut removed) = ([0; 2], [0; 2], [0; 2]);
    for seed in 0..100 {
        let disk = quiet(seed);
        durable(&disk, "from", b"moved");
        durable(&disk, "to", b"replaced");
        durable(&disk, "old", b"old");
        disk.create(&path("new")).unwrap().sync().unwrap();
        disk.rename(&path("from"), &path("to")).unwrap();
        disk.remove(&path("old")).unwrap();
        let after = disk.crash();
        created[usize::from(content(&after, "new").is_some())] += 1;
        removed[usize::from(content(&after, "old").is_none())] += 1;
        let both = (content(&after, "from"), content(&after, "to"));
        let done = (None, Some(b"moved".to_vec()));
        let undone = (Some(b"moved".to_vec()), Some(b"replaced".to_vec()));
        assert!(both == done || both == undone, "a rename is atomic: {both:?}");
        renamed[usize::from(both == done)] += 1;

        let disk = after;
        let before = disk.contents().into_keys().collect::<Vec<_>>();
        disk.create(&path("b")).unwrap();
        disk.sync_dir(dir()).unwrap();
        assert!(before.iter().all(|path| disk.crash().contents().contains_key(path)));
        assert_eq!(content(&disk.crash(), "b").unwrap(), b"");
    }
    for counts in [created, renamed, removed] {
        assert!(counts[0] > 10 && counts[1] > 10, "{counts:?}");
    }
}

#[test]
fn a_kill_loses_nothing_and_makes_nothing_durable() {
    let (mut kept, mut lost) = (0, 0);
    for seed in 0..50 {
        let disk = quiet(seed);
        let file = durable(&disk, "a", b"1");
        file.write_at(b"2", 1).unwrap();
        disk.create(&path("b")).unwrap();
        let next = disk.kill();
        assert!(file.read_at(&mut [0; 1], 0).is_err());
        assert_eq!(content(&next, "a").unwrap(), b"12");
        assert_eq!(content(&next, "b").unwrap(), b"");
        let after = next.crash();
        let whole = content(&after, "a").unwrap() == b"12" && content(&after, "b").is_some();
        *(if whole { &mut kept } else { &mut lost }) += 1;
    }
    assert!(kept > 0 && lost > 10, "{kept} {lost}");
}

#[test]
fn a_fork_goes_its_own_way() {
    let disk = quiet(1);
    let file = durable(&disk, "a", b"1");
    let lock = disk.lock(&path("lock")).unwrap();
    let fork = disk.fork();
    assert!(lock.is_some() && fork.lock(&path("lock")).unwrap().is_some());
    fork.open_write(&path("a")).unwrap().write_at(b"22", 0).unwrap();
    file.write_at(b"333", 0).unwrap();
    assert_eq!(content(&disk, "a").unwrap(), b"333");
    assert_eq!(content(&fork, "a").unwrap(), b"22");
}

#[test]
fn a_failed_sync_loses_data_that_later_syncs_do_not_bring_back() {
    let mut lost = 0;
    for seed in 0..50 {
        let disk = SimDisk::new(seed, FaultConfig { sync: Fault::Nth(2), ..Default::default() });
        let file = durable(&disk, "a", b"12");
        file.write_at(b"34", 2).unwrap();
        let error = file.sync().unwrap_err();
        assert_eq!((error.operation, error.path.clone()), ("sync", path("a")));
        file.sync().unwrap();
        assert_eq!(content(&disk, "a").unwrap(), b"1234", "the cache still shows it");
        let found = content(&disk.kill().crash(), "a").unwrap();
        assert_eq!(found[..2], *b"12");
        lost += u32::from(found != b"1234");
    }
    assert!(lost > 10, "{lost}");
}

#[test]
fn writes_reads_and_names_fail_when_told() {
    let disk = faulty(FaultConfig { write: Fault::Nth(2), ..Default::default() });
    let file = durable(&disk, "a", b"1");
    assert_eq!(file.write_at(b"2", 1).unwrap_err().offset, Some(1));
    file.write_at(b"3", 1).unwrap();
    assert_eq!(content(&disk, "a").unwrap(), b"13");

    disk.set_faults(FaultConfig { read: Fault::OneIn(1), ..Default::default() });
    assert!(file.read_at(&mut [0; 1], 0).is_err());
    disk.set_faults(FaultConfig { names: Fault::From(2), ..Default::default() });
    disk.create(&path("b")).unwrap();
    assert!(disk.rename(&path("a"), &path("c")).is_err());
    assert!(disk.remove(&path("a")).is_err());
    assert!(disk.sync_dir(dir()).is_err());
    assert_eq!(content(&disk, "a").unwrap(), b"13");

    disk.set_faults(FaultConfig { torn_write: Fault::From(1), ..Default::default() });
    let lens: std::collections::BTreeSet<_> = (0..20)
        .map(|at| {
            let name = format!("torn{at}");
            let file = disk.create(&path(&name)).unwrap();
            assert!(file.write_at(&[1; 1000], 0).is_err());
            file.len().unwrap()
        })
        .collect();
    assert!(lens.len() > 10 && lens.iter().all(|len| *len <= 1000), "{lens:?}");
}

#[test]
fn a_full_disk_takes_what_fits_and_frees_what_is_removed() {
    let disk = faulty(FaultConfig { capacity_bytes: 1000, ..Default::default() });
    let file = durable(&disk, "a", &[1; 400]);
    let other = durable(&disk, "b", &[2; 300]);
    assert_eq!(disk.free_bytes(dir()).unwrap(), 300);
    let full = file.write_at(&[3; 400], 400).unwrap_err();
    assert!(full.is_full(), "{full}");
    assert_eq!(file.len().unwrap(), 700, "the part that fits");
    assert!(other.reserve(301).unwrap_err().is_full());
    file.set_len(400).unwrap();
    other.reserve(600).unwrap();
    assert_eq!((disk.free_bytes(dir()).unwrap(), other.len().unwrap()), (0, 300));
    assert!(file.set_len(401).unwrap_err().is_full());
    other.write_at(&[4; 300], 300).unwrap();
    disk.remove(&path("b")).unwrap();
    assert_eq!(disk.free_bytes(dir()).unwrap(), 0, "an open file still takes space");
    drop(other);
    assert_eq!(disk.free_bytes(dir()).unwrap(), 600);
}

#[test]
fn nothing_works_after_the_operation_it_was_told_to_crash_after() {
    let disk = quiet(1);
    let file = durable(&disk, "a", b"1");
    let before = disk.operations();
    disk.crash_after(before + 2);
    file.write_at(b"2", 1).unwrap();
    file.sync().unwrap();
    let error = file.write_at(b"3", 2).unwrap_err();
    assert_eq!(error.source.to_string(), "crashed");
    assert!(file.read_at(&mut [0; 1], 0).is_err() && disk.open(&path("a")).is_err());
    assert_eq!(disk.operations(), before + 2);
    assert_eq!(content(&disk.crash(), "a").unwrap(), b"12");
}

#[test]
fn bits_flip_where_told() {
    let disk = quiet(3);
    let file = durable(&disk, "a", &[0; 100]);
    assert!(disk.flip_bit(&path("a"), 5, 1));
    let mut byte = [0];
    file.read_at(&mut byte, 5).unwrap();
    assert_eq!(byte, [2]);
    assert!(!disk.flip_bit(&path("a"), 100, 0) && !disk.flip_bit(&path("b"), 0, 0));
    let (where_, offset, bit) = disk.flip_random_bit(|p| p == path("a")).unwrap();
    assert!(where_ == path("a") && offset < 100 && bit < 8);
    assert_eq!(disk.flip_random_bit(|_| false), None);
    let ones: u32 = content(&disk.crash(), "a").unwrap().iter().map(|b| b.count_ones()).sum();
    assert!(ones == 2 || (ones == 0 && (offset, bit) == (5, 1)));
}

#[test]
fn names_behave_like_the_systems() {
    let disk = quiet(1);
    assert!(disk.create(&path("a")).unwrap_err().is_not_found(), "no such directory");
    disk.create_dir_all(&path("sub/deep")).unwrap();
    durable(&disk, "z", b"abc");
    durable(&disk, "a", b"");
    let entry = |name: &str, len, is_dir| Entry { name: name.to_owned(), len, is_dir };
    assert_eq!(
        disk.list(dir()).unwrap(),
        [entry("a", 0, false), entry("sub", 0, true), entry("z", 3, false)]
    );
    assert!(disk.list(&path("none")).unwrap_err().is_not_found());
    assert!(disk.create(&path("a")).is_err() && disk.create(&path("sub")).is_err());
    assert!(disk.create_dir_all(&path("z/below")).is_err());
    assert!(disk.open(&path("sub")).is_err() && disk.remove(&path("none")).is_err());
    let reader = disk.open(&path("z")).unwrap();
    assert!(reader.write_at(b"x", 0).is_err(), "opened for reading only");
    disk.remove(&path("z")).unwrap();
    disk.sync_dir(dir()).unwrap();
    let mut bytes = [0; 3];
    reader.read_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"abc", "open handles outlive the name");
    assert!(reader.read_at(&mut bytes, 1).is_err());
}

#[derive(Clone, Debug)]
enum Step {
    Create(u8),
    Write(u8, u64, usize),
    SetLen(u8, u64),
    Sync(u8),
    Rename(u8, u8),
    Remove(u8),
    SyncDir,
    Crash,
    Kill,
}

fn step() -> impl Strategy<Value = Step> {
    let name = || 0..4u8;
    prop_oneof![
        name().prop_map(Step::Create),
        (name(), 0..3000u64, 1..1500usize).prop_map(|(n, o, l)| Step::Write(n, o, l)),
        (name(), 0..3000u64).prop_map(|(n, l)| Step::SetLen(n, l)),
        name().prop_map(Step::Sync),
        (name(), name()).prop_map(|(a, b)| Step::Rename(a, b)),
        name().prop_map(Step::Remove),
        Just(Step::SyncDir),
        Just(Step::Crash),
        Just(Step::Kill),
    ]
}

/// Runs steps; says how each went and what is there in the end.
fn run(seed: u64, faults: FaultConfig, steps: &[Step]) -> (Vec<bool>, BTreeMap<PathBuf, Vec<u8>>) {
    let mut disk = quiet(seed);
    disk.create_dir_all(dir()).unwrap();
    disk.set_faults(faults);
    let name = |n: &u8| path(&n.to_string());
    let outcomes = steps.iter().map(|step| match step {
        Step::Create(n) => disk.create(&name(n)).is_ok(),
        Step::Write(n, offset, len) => {
            disk.open_write(&name(n)).and_then(|f| f.write_at(&vec![n + 1; *len], *offset)).is_ok()
        }
        Step::SetLen(n, len) => disk.open_write(&name(n)).and_then(|f| f.set_len(*len)).is_ok(),
        Step::Sync(n) => disk.open(&name(n)).and_then(|f| f.sync()).is_ok(),
        Step::Rename(a, b) => disk.rename(&name(a), &name(b)).is_ok(),
        Step::Remove(n) => disk.remove(&name(n)).is_ok(),
        Step::SyncDir => disk.sync_dir(dir()).is_ok(),
        Step::Crash => {
            disk = disk.crash();
            disk.set_faults(faults);
            true
        }
        Step::Kill => {
            disk = disk.kill();
            disk.set_faults(faults);
            true
        }
    });
    let outcomes = outcomes.collect();
    (outcomes, disk.contents())
}

proptest! {
    #[test]
    fn the_same_seed_gives_the_same_run(
        seed: u64,
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let faults = FaultConfig {
            write: Fault::OneIn(10),
            torn_write: Fault::OneIn(10),
            sync: Fault::OneIn(5),
            names: Fault::OneIn(20),
            ..FaultConfig::default()
        };
        prop_assert_eq!(run(seed, faults, &steps), run(seed, faults, &steps));
    }

    /// Without crashes and faults it is a plain file system.
    #[test]
    fn a_quiet_disk_behaves_like_a_map(steps in proptest::collection::vec(step(), 1..60)) {
        let mut model: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
        let name = |n: &u8| path(&n.to_string());
        let steps: Vec<_> = steps.into_iter().filter(|step| !matches!(step, Step::Crash)).collect();
        let mut expected = Vec::new();
        for step in &steps {
            expected.push(match step {
                Step::Create(n) => match model.contains_key(&name(n)) {
                    true => false,
                    false => model.insert(name(n), Vec::new()).is_none(),
                },
                Step::Write(n, offset, len) => model.get_mut(&name(n)).map(|bytes| {
                    let start = *offset as usize;
                    bytes.resize(bytes.len().max(start + len), 0);
                    bytes[start..start + len].fill(n + 1);
                }).is_some(),
                Step::SetLen(n, len) => {
                    model.get_mut(&name(n)).map(|bytes| bytes.resize(*len as usize, 0)).is_some()
                }
                Step::Sync(n) => model.contains_key(&name(n)),
                Step::Rename(a, b) => model.remove(&name(a)).map(|bytes| {
                    model.insert(name(b), bytes)
                }).is_some(),
                Step::Remove(n) => model.remove(&name(n)).is_some(),
                Step::SyncDir | Step::Crash | Step::Kill => true,
            });
        }
        let (outcomes, contents) = run(1, FaultConfig::default(), &steps);
        prop_assert_eq!(outcomes, expected);
        prop_assert_eq!(contents, model);
    }
}

#[test]
fn different_seeds_give_different_crashes() {
    let outcome = |seed| {
        let disk = quiet(seed);
        durable(&disk, "a", &[]).write_at(&[1; 3000], 0).unwrap();
        content(&disk.crash(), "a")
    };
    let distinct: std::collections::BTreeSet<_> = (0..50).map(outcome).collect();
    assert!(distinct.len() > 10);
    let disk = quiet(1);
    durable(&disk, "a", &[]).write_at(&[1; 3000], 0).unwrap();
    let again: std::collections::BTreeSet<_> =
        (0..50).map(|_| content(&disk.crash(), "a")).collect();
    assert!(again.len() > 10, "one loss of power has many outcomes");
}
