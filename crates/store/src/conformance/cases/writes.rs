//! What becomes of written rows.

use model::{DatabaseId, MAX_TIME_NS, MIN_TIME_NS, PolicyId, Scalar};

use super::{HOUR_NS, POLICY, check_thrice, integer};
use crate::Policy;
use crate::conformance::apply::{Pair, failed, same};
use crate::testing::{self, Row, read_all};

pub(super) fn values_come_back_bit_for_bit(pair: &mut Pair) -> Result<(), String> {
    let floats = [
        0.0,
        -0.0,
        f64::MIN_POSITIVE,
        5e-324,
        f64::MAX,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        f64::from_bits(0xfff8_0000_0000_1234),
        0.1,
        1e300,
        -1.5,
    ];
    let integers = [0, -1, 1, i64::MIN, i64::MAX, 1 << 40];
    let texts = ["", " ", "a\nb", "\"\\", "\u{1f600}", "ends in \\", "\u{0}"];
    let mut rows = Vec::new();
    for (at, value) in floats.iter().enumerate() {
        rows.push(Row::new("m,of=floats", &[("f", Scalar::Float(*value))], at as i64));
    }
    for (at, value) in integers.iter().enumerate() {
        let both = [
            ("i", Scalar::Integer(*value)),
            ("u", Scalar::Unsigned(value.cast_unsigned())),
            ("b", Scalar::Boolean(at % 2 == 0)),
        ];
        rows.push(Row::new("m,of=integers", &both, at as i64 - 3));
    }
    for (at, text) in texts.iter().enumerate() {
        rows.push(Row::new("m,of=texts", &[("s", Scalar::String((*text).into()))], at as i64));
    }
    for time in [MIN_TIME_NS, MIN_TIME_NS + 1, -1, 0, 1, MAX_TIME_NS - 1, MAX_TIME_NS] {
        rows.push(integer("m,of=times", "i", time, time));
    }
    pair.write(POLICY, &rows)?;
    let got = read_all(pair.store(), POLICY, "m").map_err(failed("read"))?;
    same("number of rows", &got.len(), &rows.len())?;
    check_thrice(pair)
}

pub(super) fn rows_merge_field_by_field(pair: &mut Pair) -> Result<(), String> {
    pair.write(POLICY, &[integer("m,h=1", "a", 1, 5), integer("m,h=1", "b", 1, 5)])?;
    pair.test.maintain();
    pair.write(POLICY, &[integer("m,h=1", "b", 2, 5)])?;
    pair.test.maintain();
    pair.write(POLICY, &[integer("m,h=1", "c", 3, 5), integer("m,h=2", "a", 9, 5)])?;
    let merged = [("a", Scalar::Integer(1)), ("b", Scalar::Integer(2)), ("c", Scalar::Integer(3))];
    let got = read_all(pair.store(), POLICY, "m").map_err(failed("read"))?;
    same("rows", &got, &vec![Row::new("m,h=1", &merged, 5), integer("m,h=2", "a", 9, 5)])?;
    check_thrice(pair)
}

pub(super) fn later_rows_of_a_batch_win(pair: &mut Pair) -> Result<(), String> {
    let rows: Vec<Row> = (0..50).map(|n| integer("m", "x", n, n % 3)).collect();
    pair.write(POLICY, &rows)?;
    let got = read_all(pair.store(), POLICY, "m").map_err(failed("read"))?;
    let want = [(48, 0), (49, 1), (47, 2)].map(|(value, time)| integer("m", "x", value, time));
    same("rows", &got, &want.to_vec())?;
    check_thrice(pair)
}

pub(super) fn order_of_arrival_does_not_matter(pair: &mut Pair) -> Result<(), String> {
    // 7 is coprime to 200: every time once, far from sorted, over several partitions.
    for batch in 0..10 {
        let time = |n: i64| (n * 7 % 200) * (HOUR_NS / 40) - 2 * HOUR_NS;
        let rows: Vec<Row> = (batch * 20..batch * 20 + 20)
            .map(|n| integer(&format!("m,h={}", n % 3), "x", n, time(n)))
            .collect();
        pair.write(POLICY, &rows)?;
        if batch % 4 == 3 {
            pair.test.maintain();
        }
    }
    check_thrice(pair)
}

pub(super) fn tags_in_any_order_are_one_series(pair: &mut Pair) -> Result<(), String> {
    pair.write(POLICY, &[integer("m,b=2,a=1", "x", 1, 5), integer("m,a=1,b=2", "y", 2, 5)])?;
    let got = read_all(pair.store(), POLICY, "m").map_err(failed("read"))?;
    let merged = [("x", Scalar::Integer(1)), ("y", Scalar::Integer(2))];
    same("rows", &got, &vec![Row::new("m,a=1,b=2", &merged, 5)])?;
    check_thrice(pair)
}

pub(super) fn names_of_any_kind(pair: &mut Pair) -> Result<(), String> {
    let keys = [
        r"a\ b,c\,d=e\=f",
        r"a\,b,=x=1",
        "\u{e9}t\u{e9},\u{1f600}=\u{1f601}",
        r#""quoted",q="v""#,
        r"back\slash,k\ey=val\ue",
        "m=x,tab\there=1",
        "_internal,_field=_measurement",
        "m",
        "m,m=m",
    ];
    let mut rows: Vec<Row> = Vec::new();
    for (at, key) in keys.iter().enumerate() {
        // A field may have the name of a tag.
        rows.push(integer(key, ["x", "m", "a b", "c,d=e", "\u{fc}"][at % 5], 1, at as i64));
    }
    let long = format!("m,host={}", "x".repeat(20_000));
    rows.push(integer(&long, &"f".repeat(3_000), 1, 0));
    pair.write(POLICY, &rows)?;
    check_thrice(pair)
}

pub(super) fn bad_rows_leave_the_others_alone(pair: &mut Pair) -> Result<(), String> {
    let rows = [
        integer("m,a=1", "x", 1, 1),
        integer("m,a=", "x", 1, 1),
        integer("m,a", "x", 1, 2),
        integer(",a=1", "x", 1, 3),
        integer("m,a=1,a=2", "x", 1, 4),
        integer("m,a=1=2", "x", 1, 5),
        integer("m,=1", "x", 1, 6),
        integer("m,time=1", "x", 1, 7),
        integer("only_bad,time=1", "x", 1, 7),
        integer(&format!("m,a={}", "x".repeat(65_536)), "x", 1, 8),
        integer("m,a=2", "x", 1, 9),
    ];
    let outcome = pair.write(POLICY, &rows)?;
    same("rows written", &outcome.rows_written, &2)?;
    // Once more: now the store may know some of the bad keys.
    let outcome = pair.write(POLICY, &rows)?;
    same("rows rejected", &outcome.rejected.len(), &9)?;
    check_thrice(pair)
}

pub(super) fn the_first_write_fixes_a_type(pair: &mut Pair) -> Result<(), String> {
    let float = |time| Row::new("m", &[("v", Scalar::Float(1.0))], time);
    let outcome = pair.write(
        POLICY,
        &[
            integer("m", "v", 1, 1),
            float(2),
            // Refused as a whole: the new field must not appear.
            Row::new("m", &[("new", Scalar::Boolean(true)), ("v", Scalar::Float(1.0))], 3),
            integer("m,h=1", "v", 1, 4),
        ],
    )?;
    same("rows written", &outcome.rows_written, &2)?;
    let other = Policy { id: PolicyId(2), ..POLICY };
    let outcome = pair.write(other, &[float(5)])?;
    same("rows written to another policy", &outcome.rows_written, &0)?;
    pair.test.reopen();
    let outcome = pair.write(POLICY, &[float(6)])?;
    same("rows written after a restart", &outcome.rows_written, &0)?;
    // Another measurement and another database have types of their own.
    let elsewhere = Policy { database: DatabaseId(2), id: PolicyId(3), ..POLICY };
    pair.write(elsewhere, &[float(7)])?;
    pair.write(POLICY, &[Row::new("n", &[("v", Scalar::Float(1.0))], 7)])?;
    check_thrice(pair)
}

pub(super) fn old_rows_are_beyond_retention(pair: &mut Pair) -> Result<(), String> {
    let policy = Policy { retention_ns: Some(2 * HOUR_NS), ..POLICY };
    let now = 100 * HOUR_NS;
    let times = [now - 2 * HOUR_NS - 1, now - 2 * HOUR_NS, now, now + 1000 * HOUR_NS, 0];
    let rows: Vec<Row> = times.iter().map(|t| integer("m", "x", 1, *t)).collect();
    let outcome = pair.write_at(policy, &rows, now)?;
    let refused: Vec<u32> = outcome.rejected.iter().map(|r| r.row).collect();
    same("rows refused", &refused, &vec![0, 4])?;
    pair.write_at(policy, &rows, i64::MIN)?;
    check_thrice(pair)
}

pub(super) fn policies_and_databases_are_apart(pair: &mut Pair) -> Result<(), String> {
    for (database, policy) in [(1, 1), (1, 2), (2, 3)] {
        let policy = Policy { database: DatabaseId(database), id: PolicyId(policy), ..POLICY };
        let value = i64::from(policy.id.0);
        pair.write(policy, &[integer("m,h=1", "x", value, 5)])?;
        pair.write(policy, &[integer(&format!("m,p={value}"), "x", value, 5)])?;
    }
    check_thrice(pair)
}

pub(super) fn writers_at_once(pair: &mut Pair) -> Result<(), String> {
    let rows_of = |writer: i64| -> Vec<Row> {
        (0..200)
            .map(|n| integer(&format!("m,w={writer},h={}", n % 5), "x", n, n * HOUR_NS / 50))
            .collect()
    };
    let store = pair.store();
    let written: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                scope.spawn(move || -> Result<(), String> {
                    for rows in rows_of(writer).chunks(10) {
                        testing::write(store, POLICY, rows, 0).map_err(failed("write"))?;
                        let seen = read_all(store, POLICY, "m").map_err(failed("read"))?;
                        let tag = format!(",w={writer}");
                        let last = rows.last().expect("BUG: a chunk is not empty").time_ns;
                        if !seen.iter().any(|r| r.key.ends_with(&tag) && r.time_ns == last) {
                            return Err("a written row was not seen".into());
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        writers.into_iter().map(|w| w.join().unwrap_or(Err("a writer panicked".into()))).collect()
    });
    written.into_iter().collect::<Result<(), String>>()?;
    // The same rows again change nothing, and the model learns of them.
    for writer in 0..4 {
        pair.write(POLICY, &rows_of(writer))?;
    }
    check_thrice(pair)
}

pub(super) fn many_rows(pair: &mut Pair) -> Result<(), String> {
    let row = |n: i64| {
        let fields = [
            ("i", Scalar::Integer(n * n)),
            ("f", Scalar::Float(n as f64 / 8.0)),
            ("s", Scalar::String(format!("text {}", n % 100).into())),
            ("b", Scalar::Boolean(n % 3 == 0)),
        ];
        let some = &fields[..1 + (n % 4) as usize];
        Row::new(&format!("m,h={}", n % 7), some, n * 10_000_000_000)
    };
    let rows: Vec<Row> = (0..6_000).map(row).collect();
    for part in rows.chunks(1_500) {
        pair.write(POLICY, part)?;
    }
    pair.test.maintain();
    let again: Vec<Row> =
        (0..6_000).step_by(37).map(|n| integer(&rows[n].key, "i", -1, rows[n].time_ns)).collect();
    pair.write(POLICY, &again)?;
    check_thrice(pair)
}
