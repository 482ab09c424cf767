//! Deletes of rows that are named one by one, with the values they had.

use model::{FieldType, Name, PolicyId, Scalar, TimeRange};

use super::{HOUR_NS, POLICY, check_thrice, integer};
use crate::conformance::apply::{Pair, failed, same};
use crate::conformance::operation::Probe;
use crate::testing::{Row, matching, read_all};
use crate::{Policy, SummaryParts, TimeOrder, Windows};

fn field(name: &str, field_type: FieldType) -> (Name, FieldType) {
    (name.into(), field_type)
}

fn rows(pair: &Pair) -> Result<Vec<Row>, String> {
    read_all(pair.store(), POLICY, "m").map_err(failed("read"))
}

/// Deletes `named` and compares the rows left with `left`.
fn delete(
    pair: &mut Pair,
    fields: &[(Name, FieldType)],
    named: &[Row],
    left: &[Row],
) -> Result<(), String> {
    pair.delete(POLICY.database, matching(POLICY, "m", fields, named))?;
    same("rows left", &rows(pair)?, &left.to_vec())?;
    check_thrice(pair)
}

pub(super) fn named_rows_go_if_unchanged(pair: &mut Pair) -> Result<(), String> {
    let of = |value, time| {
        Row::new("m,h=1", &[("x", Scalar::Integer(value)), ("y", Scalar::Float(0.5))], time)
    };
    let all = [of(1, 1), of(2, 2), of(3, 3), of(4, HOUR_NS), of(5, HOUR_NS + 1)];
    pair.write(POLICY, &all)?;
    let seen = rows(pair)?;
    // Since they were seen: one has another value, one another field, one has gone.
    pair.write(POLICY, &[integer("m,h=1", "x", 7, 2), integer("m,h=1", "z", 1, 3)])?;
    let gone = crate::DeleteTarget::Rows {
        measurements: crate::NameFilter::All,
        series: model::TagExpr::True,
        time: TimeRange::new(HOUR_NS, HOUR_NS),
    };
    pair.delete(POLICY.database, gone)?;
    let x = [field("x", FieldType::Integer)];
    delete(pair, &x, &seen, &[of(7, 2)])?;
    // What is written at the place of a row that was removed is new.
    pair.write(POLICY, &[integer("m,h=1", "x", 5, HOUR_NS + 1)])?;
    let again = integer("m,h=1", "x", 5, HOUR_NS + 1);
    same("rows", &rows(pair)?, &vec![of(7, 2), again.clone()])?;
    let absent =
        [integer("m,h=2", "x", 5, 2), integer("m", "x", 5, 2), integer("m,h=1", "x", 5, 9)];
    delete(pair, &x, &absent, &[of(7, 2), again.clone()])?;
    // Without fields rows go whatever they hold.
    delete(pair, &[], &[integer("m,h=1", "x", 5, 2)], &[again])
}

pub(super) fn named_rows_are_compared_bit_by_bit(pair: &mut Pair) -> Result<(), String> {
    let values = [
        ("f", Scalar::Float(f64::NAN)),
        ("f", Scalar::Float(-0.0)),
        ("f", Scalar::Float(0.0)),
        ("i", Scalar::Integer(0)),
        ("u", Scalar::Unsigned(u64::MAX)),
        ("s", Scalar::String("".into())),
        ("s", Scalar::String("text".into())),
        ("b", Scalar::Boolean(false)),
        ("b", Scalar::Boolean(true)),
    ];
    let all: Vec<Row> = values
        .iter()
        .zip(0..)
        .map(|(value, time)| Row::new("m", &[value.clone(), ("z", Scalar::Integer(1))], time))
        .collect();
    let fields = [
        field("b", FieldType::Boolean),
        field("f", FieldType::Float),
        field("i", FieldType::Integer),
        field("s", FieldType::String),
        field("u", FieldType::Unsigned),
    ];
    for maintained in [false, true] {
        pair.write(POLICY, &all)?;
        if maintained {
            pair.test.maintain();
        }
        // Each row with the values of the next: none goes.
        let moved: Vec<Row> = (0..all.len())
            .map(|at| Row { time_ns: all[at].time_ns, ..all[(at + 1) % all.len()].clone() })
            .collect();
        delete(pair, &fields, &moved, &all)?;
        let plain: Vec<Row> = all.iter().map(|row| integer("m", "z", 1, row.time_ns)).collect();
        delete(pair, &fields, &plain, &all)?;
        delete(pair, &fields, &all, &[])?;
    }
    // A row without values of the fields is unchanged as long as it has none.
    let (first, second) = (integer("m", "z", 1, 1), integer("m", "z", 2, 2));
    pair.write(POLICY, &[first.clone(), second.clone(), Row { time_ns: 3, ..all[3].clone() }])?;
    pair.write(POLICY, &[integer("m", "i", 5, 2)])?;
    let left = Row::new("m", &[("i", Scalar::Integer(5)), ("z", Scalar::Integer(2))], 2);
    let third = integer("m", "z", 1, 3);
    let kept = Row { time_ns: 3, ..all[3].clone() };
    delete(pair, &fields[2..3], &[first, second, third], &[left, kept])
}

pub(super) fn named_rows_are_of_one_policy(pair: &mut Pair) -> Result<(), String> {
    let other = Policy { id: PolicyId(2), ..POLICY };
    let both = [integer("m", "x", 1, 5), integer("m,h=1", "x", 1, 5), integer("m,h=1", "x", 2, 6)];
    for maintained in [false, true] {
        pair.write(POLICY, &both)?;
        pair.write(other, &both)?;
        pair.write(POLICY, &[integer("n,h=1", "x", 1, 5)])?;
        if maintained {
            pair.test.maintain();
        }
        let x = [field("x", FieldType::Integer)];
        delete(pair, &x, &both[..2], &both[2..])?;
        pair.delete(POLICY.database, matching(other, "m", &x, &both))?;
        let left = read_all(pair.store(), other, "m").map_err(failed("read"))?;
        same("rows of the other policy", &left, &Vec::new())?;
        check_thrice(pair)?;
    }
    Ok(())
}

/// What stands for rows must not stand for those that are gone: windows, and the rows at the ends.
pub(super) fn named_rows_do_not_show_in_windows(pair: &mut Pair) -> Result<(), String> {
    let x = [field("x", FieldType::Integer)];
    let row = |n: i64, host| integer(&format!("m,h={host}"), "x", n % 97, n * 1_000_000_000);
    let chosen = [0, 1, 2, 700, 701, 1500, 2997, 2998, 2999];
    for maintained in [false, true] {
        for host in ["a", "b"] {
            let all: Vec<Row> = (0..3000).map(|n| row(n, host)).collect();
            pair.write(POLICY, &all)?;
        }
        if maintained {
            pair.test.maintain();
        }
        for some in [&chosen[7..], &chosen[..2], &chosen[3..4], &chosen[..]] {
            let named: Vec<Row> = some.iter().map(|n| row(*n, "a")).collect();
            pair.delete(POLICY.database, matching(POLICY, "m", &x, &named))?;
            check_windows(pair)?;
        }
        pair.test.maintain();
        check_windows(pair)?;
    }
    let many: Vec<Row> = (0..3000).filter(|n| n % 3 > 0).map(|n| row(n, "b")).collect();
    pair.delete(POLICY.database, matching(POLICY, "m", &x, &many))?;
    check_windows(pair)?;
    check_thrice(pair)?;
    let rest = rows(pair)?;
    pair.delete(POLICY.database, matching(POLICY, "m", &x, &rest))?;
    same("rows left", &rows(pair)?, &Vec::new())?;
    check_thrice(pair)
}

fn check_windows(pair: &Pair) -> Result<(), String> {
    let all = Probe::all(POLICY, "m");
    for (every_ns, first_last) in [None, Some(HOUR_NS / 60), Some(HOUR_NS)]
        .into_iter()
        .flat_map(|every| [(every, false), (every, true)])
    {
        let parts = SummaryParts { sum: true, min_max: true, first_last };
        let windows = Some(Windows { every_ns, offset_ns: 0, parts });
        pair.probe(&Probe { windows, ..all.clone() })?;
    }
    for order in [TimeOrder::Ascending, TimeOrder::Descending] {
        for rows in [1, 2, 5] {
            pair.probe(&Probe { order, rows_per_series: Some(rows), ..all.clone() })?;
        }
    }
    Ok(())
}
