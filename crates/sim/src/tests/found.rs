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

/// A memtable was flushed whose rows the full disk kept out of the log. After a crash the log gave
/// their positions again, and the next replay took what had them for flushed.
#[test]
fn a_flush_ahead_of_the_log_takes_no_positions_of_later_rows() {
    let operations = [
        Write {
            policy: 1,
            rows: vec![
                row(2, 256, 8, 11456),
                row(11, 377, 8, 99943),
                row(17, 349, 8, 66903),
                row(6, 300, 16, 68040),
                row(19, 283, 91, 70571),
                row(1, 442, 31, 66981),
                row(12, 304, 31, 50720),
                row(20, 309, 21, 11119),
                row(4, 356, 16, 34264),
                row(11, 359, 66, 84666),
                row(2, 346, 0, 5548),
                row(9, 299, 25, 51419),
                row(20, 324, 0, 14192),
                row(5, 478, 21, 69720),
            ],
        },
        Write {
            policy: 2,
            rows: vec![
                row(2, 16, 24, 10600),
                row(21, 366, 14, 6918),
                row(20, 424, 11, 4204),
                row(7, 325, 4, 70801),
                row(22, 358, 18, 91905),
                row(10, 233, 27, 30068),
                row(23, 373, 11, 24549),
                row(17, 277, 12, 77181),
                row(19, 65534, 6, 43570),
                row(0, 375, 19, 30888),
                row(21, 362, 27, 47493),
                row(20, 305, 2, 78579),
                row(21, 351, 22, 76903),
                row(14, 64, 2, 12193),
                row(7, 306, 1, 25993),
                row(18, 131, 5, 17376),
                row(15, 314, 6, 39539),
                row(4, 315, 11, 43834),
                row(8, 293, 2, 21634),
                row(9, 368, 27, 84023),
                row(23, 256, 15, 24367),
                row(21, 268, 27, 56250),
                row(20, 255, 2, 13689),
                row(1, 264, 29, 75260),
                row(9, 358, 18, 88321),
                row(17, 307, 10, 56109),
                row(0, 291, 13, 19838),
                row(1, 341, 27, 18847),
                row(20, 259, 76, 23849),
                row(7, 323, 12, 91033),
                row(7, 52, 9, 86743),
                row(0, 336, 9, 79573),
                row(8, 335, 10, 73),
                row(22, 310, 25, 40463),
                row(8, 266, 62, 57579),
                row(10, 294, 20, 86821),
                row(13, 214, 28, 19123),
                row(16, 302, 26, 62310),
            ],
        },
        Begin(Full(7205)),
        Bulk { policy: 0, first: row(7, 372, 27, 68207), rows: 304, spread: false },
        Crash { kill: false, again: vec![] },
        Write { policy: 0, rows: vec![row(20, 360, 14, 34474)] },
    ];
    run(2_201_386, &operations).unwrap();
}

/// Partitions that became one had a field with two types, the older of them in the later partition.
#[test]
fn a_field_has_the_type_that_the_schema_says() {
    let operations = [
        Write {
            policy: 0,
            rows: vec![
                row(17, 276, 0, 886),
                row(6, 379, 57, 22552),
                row(17, 429, 20, 24988),
                row(9, 3, 2, 10864),
                row(22, 248, 24, 53047),
            ],
        },
        Settle,
        DeleteMeasurement { database: 0, measurement: 0 },
        Write { policy: 0, rows: vec![row(5, 381, 23, 66027)] },
        Write { policy: 0, rows: vec![row(0, 74, 95, 17900)] },
        Settle,
    ];
    run(2319, &operations).unwrap();
}
