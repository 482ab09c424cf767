//! Other columns of the points that selectors choose, while somebody writes.

#[path = "support/meddled.rs"]
mod meddled;
#[path = "support/database.rs"]
mod support;

use std::sync::atomic::{AtomicUsize, Ordering};

use meddled::{Moment, database};
use model::Scalar;
use store::testing::Row;

const WITHOUT: &str = "m,h=b: time max s\n20 5 \"five\"\nm,h=c: time max s\n20 2 \"two\"";

fn row(host: &str, time: i64, value: i64, text: &str) -> Row {
    let fields = [("v", Scalar::Integer(value)), ("s", Scalar::String(text.into()))];
    Row::new(&format!("m,h={host}"), &fields, time)
}

/// What is beside the greatest value of each host, if `late` is written once scan number `at` was opened.
fn greatest(late: fn() -> Row, at: usize) -> String {
    let scans = AtomicUsize::new(0);
    let mut db = database(Box::new(move |moment| match moment {
        Moment::Scanned(_) if scans.fetch_add(1, Ordering::Relaxed) == at => vec![late()],
        _ => Vec::new(),
    }));
    db.write_rows(&[row("b", 10, 1, "one"), row("b", 20, 5, "five"), row("c", 20, 2, "two")]);
    db.context.tuning.beside_rows = 0;
    db.short("SELECT max(v), s FROM m GROUP BY h")
}

#[test]
fn rows_written_meanwhile_are_shown_whole_or_not_at_all() {
    let greater = "m,h=b: time max s\n15 9 \"nine\"\nm,h=c: time max s\n20 2 \"two\"";
    let answers = |late: fn() -> Row| (0..4).map(move |at| greatest(late, at));
    for answer in answers(|| row("b", 15, 9, "nine")) {
        assert!([WITHOUT, greater].contains(&answer.as_str()), "{answer}");
    }
    // Series before others, whose numbers are others then.
    let first = format!("m,h=a: time max s\n15 9 \"nine\"\n{WITHOUT}");
    for answer in answers(|| row("a", 15, 9, "nine")) {
        assert!([WITHOUT, &first].contains(&answer.as_str()), "{answer}");
    }
}

#[test]
fn a_row_that_is_written_again_is_shown_as_it_was() {
    // The second scan of the statement finds rows, the third reads them.
    for at in 1..3 {
        assert_eq!(greatest(|| row("b", 20, 4, "four"), at), WITHOUT, "after scan {at}");
    }
}
