//! Power lost at every operation, the process killed at every operation, and both during recovery.

use super::*;

/// What was appended, what was acknowledged, what was given up.
#[derive(Clone, Default)]
struct Model {
    history: Replayed,
    /// Of `history`, from the start.
    acknowledged: usize,
    released: Lsn,
    appended: usize,
}

impl Model {
    fn append(&mut self, wal: &Wal) -> Result<Lsn, WalError> {
        let payload = payload(self.appended);
        let lsn = wal.append(&[&payload])?;
        self.appended += 1;
        self.history.push((lsn, payload));
        Ok(lsn)
    }

    fn wait(&mut self, wal: &Wal, lsn: Lsn) -> Result<(), WalError> {
        wal.wait_durable(lsn)?;
        let covered = self.history.iter().take_while(|(end, _)| *end <= lsn).count();
        self.acknowledged = self.acknowledged.max(covered);
        Ok(())
    }

    /// A run of the owner: appends, waits, gives up what it holds elsewhere. Stops at the first
    /// failure.
    fn work(&mut self, wal: &Wal, rounds: usize, close: bool) -> Result<(), WalError> {
        for round in 0..rounds {
            for _ in 0..1 + round % 4 {
                self.append(wal)?;
            }
            let lsn = self.history.last().unwrap().0;
            if round % 3 != 2 {
                self.wait(wal, lsn)?;
            }
            if round % 7 == 6 && self.acknowledged > 6 {
                let before = self.history[self.acknowledged - 6].0;
                // The owner says so before it is done: files may go or not.
                self.released = before;
                wal.release(before)?;
            }
            if round % 11 == 10 {
                let end = self.history.last().unwrap().0;
                self.wait(wal, end)?;
                self.released = end;
                wal.rest(end)?;
            }
        }
        if close {
            wal.close()?;
            self.acknowledged = self.history.len();
        }
        Ok(())
    }

    /// What is replayed is the history without what was released at its start and what was never
    /// acknowledged at its end.
    fn check(&self, report: &RecoveryReport, replayed: &Replayed) {
        assert!(report.corruptions.is_empty(), "{report:?}");
        let released = |lsn: Lsn| lsn <= self.released;
        let Some(first) = replayed.first() else {
            let kept = &self.history[..self.acknowledged];
            assert!(
                kept.iter().all(|(lsn, _)| released(*lsn)),
                "all acknowledged records are lost"
            );
            return;
        };
        let start =
            self.history.iter().position(|(lsn, _)| *lsn == first.0).expect("a known record");
        assert!(self.history[..start].iter().all(|(lsn, _)| released(*lsn)), "lost at the start");
        let end = start + replayed.len();
        assert!(end >= self.acknowledged, "{} of {}: {report:?}", end, self.acknowledged);
        assert_eq!(replayed[..], self.history[start..end]);
    }

    /// What was replayed is the history from here on, and stays.
    fn adopt(&mut self, replayed: Replayed) {
        self.history = replayed;
        self.acknowledged = self.history.len();
    }
}

#[derive(Clone, Copy, PartialEq)]
enum End {
    Power,
    Kill,
}

impl End {
    fn of(self, disk: &SimDisk) -> SimDisk {
        match self {
            Self::Power => disk.crash(),
            Self::Kill => disk.kill(),
        }
    }
}

/// Runs the owner until the disk is gone after `operations`. Whether it was.
fn run(disk: &SimDisk, model: &mut Model, operations: u64, options: WalOptions) -> bool {
    disk.crash_after(operations);
    match try_open(disk, options) {
        Ok((wal, report, replayed)) => {
            model.check(&report, &replayed);
            model.adopt(replayed);
            model.work(&wal, 24, operations.is_multiple_of(2)).is_err()
        }
        Err(WalError::Disk(_)) => true,
        Err(other) => panic!("{other}"),
    }
}

fn verify(disk: &SimDisk, model: &mut Model) -> Wal {
    let (wal, report, replayed) = open(disk, small());
    model.check(&report, &replayed);
    model.adopt(replayed);
    wal
}

/// Every record acknowledged before the disk went after any operation is there, again after a
/// second end, and the log takes new ones.
fn survives_any_end(first: End, second: End, options: WalOptions) {
    let mut operations = 0;
    loop {
        let disk = quiet(operations);
        let mut model = Model::default();
        let ended = run(&disk, &mut model, operations, options);
        for _ in 0..3 {
            let mut model = model.clone();
            let disk = first.of(&disk);
            let wal = verify(&disk, &mut model);
            let disk = if operations % 3 == 0 {
                model.work(&wal, 9, false).unwrap();
                second.of(&disk)
            } else {
                second.of(&disk)
            };
            verify(&disk, &mut model);
        }
        if !ended {
            break;
        }
        operations += 1;
    }
    assert!(operations > 40, "{operations}");
}

#[test]
fn power_loss_at_every_operation() {
    survives_any_end(End::Power, End::Power, small());
}

#[test]
fn power_loss_after_a_kill_at_every_operation() {
    survives_any_end(End::Kill, End::Power, small());
    survives_any_end(End::Power, End::Kill, small());
}

#[test]
fn power_loss_with_large_files_that_are_never_full() {
    survives_any_end(End::Power, End::Power, WalOptions { file_bytes: 1 << 16, ..small() });
}

#[test]
fn power_loss_at_every_operation_of_recovery() {
    for seed in 0..60 {
        let disk = quiet(seed);
        let mut model = Model::default();
        run(&disk, &mut model, 20 + seed * 3, small());
        let end = if seed % 2 == 0 { End::Power } else { End::Kill };
        for operations in 0.. {
            let mut model = model.clone();
            let disk = end.of(&disk);
            disk.crash_after(operations);
            let opened = try_open(&disk, small());
            let disk = if operations % 2 == 0 { disk.crash() } else { disk.kill() };
            let done = match opened {
                Ok((_, report, replayed)) => {
                    model.check(&report, &replayed);
                    model.adopt(replayed);
                    true
                }
                Err(_) => false,
            };
            verify(&disk, &mut model);
            if done {
                break;
            }
        }
    }
}

/// The same over many lives, each ended somewhere.
#[test]
fn many_lives() {
    for seed in 0..150u64 {
        let mut disk = quiet(seed);
        let mut model = Model::default();
        for life in 0..8 {
            run(&disk, &mut model, (seed * 31 + life * 17) % 90, small());
            disk = if (seed + life) % 3 == 0 { disk.kill() } else { disk.crash() };
        }
        verify(&disk, &mut model);
    }
}

/// Without syncs power loss takes the end, but never leaves a hole: full files are synced.
#[test]
fn power_loss_without_syncs_takes_only_the_end() {
    let mut lost = 0;
    for operations in 0..90 {
        let disk = quiet(operations);
        let mut model = Model::default();
        run(&disk, &mut model, operations, WalOptions { sync: SyncPolicy::Never, ..small() });
        lost += model.acknowledged;
        model.acknowledged = 0;
        model.released = model.history.last().map_or(Lsn(0), |(lsn, _)| *lsn);
        verify(&disk.crash(), &mut model);
        lost -= model.acknowledged.min(lost);
    }
    assert!(lost > 0);
}

/// A check that cannot fail checks nothing: a log that acknowledges without syncing is caught.
#[test]
#[should_panic(expected = "of")]
fn the_check_catches_a_log_that_does_not_sync() {
    for seed in 0..100 {
        let disk = quiet(seed);
        let mut model = Model::default();
        run(&disk, &mut model, 60, WalOptions { sync: SyncPolicy::Never, ..small() });
        verify(&disk.crash(), &mut model);
    }
}
