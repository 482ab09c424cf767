//! Power loss at every operation, and disks that fail now and then.
//!
//! The log of the owner is taken to be perfect: what it has is replayed after each crash, and the
//! index must then answer as the model does.

use std::path::PathBuf;

use platform::{Fault, FaultConfig, SimDisk};

use super::*;

fn dir() -> PathBuf {
    PathBuf::from("/series")
}

fn open_on(disk: &SimDisk) -> crate::SeriesResult<SeriesIndex> {
    SeriesIndex::open(Arc::new(disk.clone()), &dir(), options())
}

/// Takes a step; `Err` if the disk failed it, with the index as it was before.
fn apply(index: &SeriesIndex, model: &mut Model, step: &Step) -> crate::SeriesResult<()> {
    match step {
        Step::Create(db, key) => model.created(*db, key, index.create(*db, key)?),
        Step::CreateBatch(db, keys) => {
            for (key, made) in keys.iter().zip(index.create_batch(*db, keys)?) {
                model.created(*db, key, made);
            }
        }
        Step::Remove(n) => {
            let ids = model.every_nth(*n);
            index.remove(&ids);
            model.remove(&ids);
        }
        Step::RemoveDatabase(db) => {
            let below = index.next_id();
            index.remove_database(*db, below)?;
            model.remove_database(*db, below);
        }
        Step::Flush => index.flush()?,
        Step::Merge => {
            index.merge_step()?;
        }
        Step::Reopen => {}
    }
    Ok(())
}

/// Runs the steps until the power goes, and checks what is found after.
fn crash_at(steps: &[Step], seed: u64, operations: u64) {
    let disk = SimDisk::new(seed, FaultConfig::default());
    disk.crash_after(operations);
    let mut model = Model::default();
    if let Ok(index) = open_on(&disk) {
        for step in steps {
            if apply(&index, &mut model, step).is_err() {
                break;
            }
        }
    }
    let disk = disk.crash();
    recovered(&disk, &mut model, steps);
}

fn recovered(disk: &SimDisk, model: &mut Model, steps: &[Step]) {
    let index = open_on(disk).unwrap();
    replay(&index, &model.log);
    check(&index, model, &[]);
    // Life goes on.
    for step in steps.iter().take(6) {
        apply(&index, model, step).unwrap();
    }
    index.flush().unwrap();
    while index.merge_step().unwrap() {}
    check(&index, model, &[]);
    let disk = disk.crash();
    let index = open_on(&disk).unwrap();
    check(&index, model, &[]);
    replay(&index, &model.log);
    check(&index, model, &[]);
}

fn busy_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (database(), prop::collection::vec(key(), 1..30))
            .prop_map(|(db, keys)| Step::CreateBatch(db, keys)),
        1 => (1usize..8).prop_map(Step::Remove),
        1 => database().prop_map(Step::RemoveDatabase),
        5 => Just(Step::Flush),
        3 => Just(Step::Merge),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn nothing_is_lost_wherever_the_power_goes(
        steps in prop::collection::vec(busy_step(), 12..30),
        seed in any::<u64>(),
    ) {
        let disk = SimDisk::new(seed, FaultConfig::default());
        let index = open_on(&disk).unwrap();
        let mut model = Model::default();
        for step in &steps {
            apply(&index, &mut model, step).unwrap();
        }
        for operations in 0..=disk.operations() {
            crash_at(&steps, seed.wrapping_add(operations), operations);
        }
    }

    #[test]
    fn a_failing_disk_costs_no_series(
        steps in prop::collection::vec(busy_step(), 12..60),
        seed in any::<u64>(),
    ) {
        let faults = FaultConfig {
            write: Fault::OneIn(20),
            torn_write: Fault::OneIn(20),
            sync: Fault::OneIn(10),
            names: Fault::OneIn(20),
            ..FaultConfig::default()
        };
        let disk = SimDisk::new(seed, FaultConfig::default());
        let index = open_on(&disk).unwrap();
        disk.set_faults(faults);
        let mut model = Model::default();
        for step in &steps {
            // Only flushing and merging write, and they can be tried again.
            let done = apply(&index, &mut model, step);
            prop_assert!(done.is_ok() || matches!(step, Step::Flush | Step::Merge), "{done:?}");
        }
        check(&index, &model, &[]);
        drop(index);
        recovered(&disk.crash(), &mut model, &steps);
    }
}

/// A damaged block is reported with its place, and nothing but what needs it is affected.
#[test]
fn a_flipped_bit_is_reported_or_harmless() {
    let mut reported = 0;
    for seed in 0..200 {
        let disk = SimDisk::new(seed, FaultConfig::default());
        let index = open_on(&disk).unwrap();
        let db = DatabaseId(1);
        let keys: Vec<SeriesKey> = (0..300)
            .map(|n| SeriesKey::parse(format!("m,host=h{n},dc={}", n % 3).as_bytes()).unwrap())
            .collect();
        let made = index.create_batch(db, &keys).unwrap();
        index.flush().unwrap();
        drop(index);
        let is_run = |path: &Path| path.extension().is_some_and(|name| name == "run");
        disk.flip_random_bit(is_run).unwrap();
        let mut note = |error: crate::SeriesError| {
            assert!(matches!(error, crate::SeriesError::Corrupt { .. }), "{error}");
            assert!(error.to_string().contains("0000000001.run"), "{error}");
            reported += 1;
        };
        let index = match open_on(&disk) {
            Ok(index) => index,
            Err(error) => {
                note(error);
                continue;
            }
        };
        for (key, (id, _)) in keys.iter().zip(&made) {
            match index.lookup(db, key) {
                Ok(found) => assert_eq!(found, Some(*id)),
                Err(error) => note(error),
            }
            match index.key(*id) {
                Ok(found) => assert_eq!(found.as_ref(), Some(&(db, key.clone()))),
                Err(error) => note(error),
            }
        }
        match index.select(db, "m", &TagExpr::Equals("dc".into(), "1".into())) {
            Ok(ids) => assert_eq!(ids.len(), 100),
            Err(error) => note(error),
        }
    }
    assert!(reported > 150, "{reported}");
}

#[test]
fn a_lost_manifest_is_not_taken_for_a_new_index() {
    let disk = SimDisk::new(1, FaultConfig::default());
    let index = open_on(&disk).unwrap();
    index.create(DatabaseId(1), &SeriesKey::parse(b"m,a=b").unwrap()).unwrap();
    index.flush().unwrap();
    drop(index);
    disk.remove(&dir().join("MANIFEST")).unwrap();
    let error = open_on(&disk).unwrap_err();
    assert!(error.to_string().contains("manifest is missing"), "{error}");
}
