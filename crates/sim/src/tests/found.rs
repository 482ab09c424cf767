//! Histories that found something once.

use crate::{Fault::*, Kind, Operation::*, Row, Trouble::*, run};

const fn row(series: u8, time: u16, fields: u8, value: u32) -> Row {
    Row { series, time, fields, value }
}

/// A flush of one memtable let go of a part of the log that another one, replayed, still needed.
#[test]
fn a_flush_after_a_restart_keeps_the_log_of_others() {
    let operations = [
        Write { policy: 2, rows: vec![row(18, 342, 50, 73994)] },
        Write { policy: 0, rows: vec![row(22, 320, 14, 21410)] },
        Reopen,
        DeleteMeasurement { database: 1, measurement: 2 },
        Maintain,
    ];
    run(1, &operations).unwrap();
}

/// Edits of the manifest that stand before its snapshot were taken at their word, though what they
/// follow had been given up.
#[test]
fn a_manifest_starts_with_its_snapshot() {
    let operations = [
        Write { policy: 2, rows: vec![row(2, 59, 20, 83359)] },
        SwapCatalog { bytes: 23437 },
        Flush,
        Reopen,
        DeleteRows { database: 1, measurement: None, host: Some(1), times: None },
    ];
    run(23, &operations).unwrap();
}

/// A read that failed once while the store was opened left a segment out: what was deleted meanwhile
/// came back with it.
#[test]
fn a_failed_read_is_no_damage() {
    let operations = [
        Write { policy: 0, rows: vec![row(18, 307, 18, 30819), row(15, 380, 12, 79366)] },
        Flush,
        Crash { kill: false, again: vec![Fail(Kind::Read, Nth(8))] },
        DeleteRows { database: 0, measurement: None, host: None, times: None },
    ];
    run(197, &operations).unwrap();
    for nth in 1..40 {
        let again = vec![Fail(Kind::Read, Nth(nth))];
        let mut operations = operations.clone();
        operations[2] = Crash { kill: true, again };
        run(nth, &operations).unwrap();
    }
}

/// A delete found nothing to do, because another that failed had done it in memory only.
#[test]
fn a_delete_rests_on_nothing_that_is_not_durable() {
    let operations = [
        Write { policy: 0, rows: vec![row(11, 473, 29, 66981), row(9, 295, 16, 61016)] },
        Begin(Fail(Kind::Write, Nth(16))),
        Write { policy: 0, rows: vec![row(5, 90, 27, 96540), row(9, 335, 5, 5608)] },
        Flush,
        DeleteDatabase { database: 0 },
        DeleteMeasurement { database: 0, measurement: 0 },
    ];
    run(10134, &operations).unwrap();
    for nth in 1..40 {
        let mut operations = operations.clone();
        operations[1] = Begin(Fail(Kind::Write, Nth(nth)));
        run(10134, &operations).unwrap();
    }
}

/// The drop of a database that a crash cut off took series with it that were made after it, each time
/// the log was replayed.
#[test]
fn a_dropped_database_takes_no_later_series_with_it() {
    let operations = [
        Write { policy: 2, rows: vec![row(1, 349, 10, 51158)] },
        Begin(PowerLossAfter(1)),
        DeleteDatabase { database: 0 },
        Write { policy: 0, rows: vec![row(10, 330, 23, 87162), row(22, 346, 17, 20745)] },
        DeleteMeasurement { database: 0, measurement: 1 },
        Maintain,
    ];
    run(12849, &operations).unwrap();
}

/// Of two types of a new field the one that is sent first counts, also if an earlier row of the other
/// one is refused as too old.
#[test]
fn a_refused_row_gives_a_field_no_type() {
    let (integer, float) = (1 << 5, 1 << 6);
    let operations = [Write {
        policy: 1,
        rows: vec![row(0, 1, integer, 40), row(0, 300, float, 41), row(0, 301, integer, 42)],
    }];
    run(1, &operations).unwrap();
}

/// A store came to be on a full disk without its manifest, and was refused when that was missed.
#[test]
fn a_store_that_began_on_a_full_disk_opens_again() {
    let write = Write { policy: 1, rows: vec![row(5, 341, 15, 62651)] };
    for free in [241, 2924, 88_060, 93_271] {
        let operations = [Crash { kill: false, again: vec![Full(free)] }, write.clone()];
        run(300_116, &operations).unwrap();
    }
    let operations = [
        Crash { kill: false, again: vec![PowerLossAfter(19), Full(9415)] },
        Begin(Full(36_471)),
        Write { policy: 2, rows: vec![row(12, 264, 28, 87301)] },
    ];
    run(300_264, &operations).unwrap();
}
