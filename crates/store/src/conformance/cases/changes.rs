//! Deletes, expiry, the catalog's slot, the end.

use model::{DatabaseId, Interrupt, PolicyId, Regex, Scalar, TagExpr, TimeRange};

use super::{HOUR_NS, POLICY, check_thrice, integer};
use crate::conformance::apply::{Pair, failed, same};
use crate::conformance::partitions::list;
use crate::testing::{self, Row, read_all};
use crate::{
    CatalogDocument, DeleteRequest, DeleteTarget, MetadataKind, NameFilter, Policy, StoreError,
    SwapOutcome,
};

fn rows_where(measurements: NameFilter, series: TagExpr, time: TimeRange) -> DeleteTarget {
    DeleteTarget::Rows { measurements, series, time }
}

fn fill(pair: &mut Pair) -> Result<(), String> {
    for policy in [1, 2] {
        let policy = Policy { id: PolicyId(policy), ..POLICY };
        let rows: Vec<Row> = (0..60)
            .map(|n| integer(&format!("m{},h={}", n % 2, n % 5), "x", n, n * HOUR_NS / 20))
            .collect();
        pair.write(policy, &rows)?;
    }
    Ok(())
}

pub(super) fn deletes_are_exact(pair: &mut Pair) -> Result<(), String> {
    let host = |value: &str| TagExpr::Equals("h".into(), value.into());
    let m0 = || NameFilter::In(vec!["m0".into()]);
    let regex = Regex::new("1$").map_err(|e| e.to_string())?;
    let targets = [
        rows_where(m0(), TagExpr::True, TimeRange::new(HOUR_NS / 2, HOUR_NS)),
        rows_where(NameFilter::All, host("1"), TimeRange::new(0, 0)),
        rows_where(NameFilter::All, host("2"), TimeRange::ALL),
        rows_where(NameFilter::Matches(regex), TagExpr::Not(Box::new(host("3"))), TimeRange::ALL),
        rows_where(NameFilter::All, TagExpr::False, TimeRange::ALL),
        rows_where(NameFilter::All, TagExpr::True, TimeRange::EMPTY),
        rows_where(NameFilter::All, TagExpr::True, TimeRange::new(2 * HOUR_NS, TimeRange::ALL.max)),
        rows_where(NameFilter::All, TagExpr::True, TimeRange::ALL),
    ];
    fill(pair)?;
    for (at, target) in targets.into_iter().enumerate() {
        pair.delete(POLICY.database, target)?;
        if at % 2 == 0 { pair.check_all()? } else { check_thrice(pair)? }
    }
    Ok(())
}

pub(super) fn writes_after_a_delete_stay(pair: &mut Pair) -> Result<(), String> {
    for round in 0..3 {
        let both = [("a", Scalar::Integer(round)), ("b", Scalar::Integer(round))];
        pair.write(POLICY, &[Row::new("m,h=1", &both, 5), Row::new("m,h=1", &both, 6)])?;
        if round == 1 {
            pair.test.maintain();
        }
        let all = rows_where(NameFilter::All, TagExpr::True, TimeRange::ALL);
        pair.delete(POLICY.database, all)?;
        // Only the field that is written again may come back.
        pair.write(POLICY, &[integer("m,h=1", "a", 10 + round, 5)])?;
        let got = read_all(pair.store(), POLICY, "m").map_err(failed("read"))?;
        same("rows", &got, &vec![integer("m,h=1", "a", 10 + round, 5)])?;
        check_thrice(pair)?;
    }
    Ok(())
}

pub(super) fn series_without_rows_are_gone(pair: &mut Pair) -> Result<(), String> {
    let other = Policy { id: PolicyId(2), ..POLICY };
    pair.write(POLICY, &[integer("m,h=1", "x", 1, 1), integer("m,h=2,only=2", "x", 1, 2)])?;
    pair.write(other, &[integer("m,h=3", "x", 1, 1)])?;
    pair.test.maintain();
    let series = |pair: &Pair| {
        pair.names(POLICY.database, &MetadataKind::Series, &NameFilter::All, &TagExpr::True)
    };
    same("series", &series(pair)?.len(), &3)?;
    let at_two = rows_where(NameFilter::All, TagExpr::True, TimeRange::new(2, 2));
    pair.delete(POLICY.database, at_two)?;
    same("series after a delete", &series(pair)?.len(), &2)?;
    check_thrice(pair)?;
    let at_one = rows_where(NameFilter::All, TagExpr::True, TimeRange::new(1, 1));
    pair.delete(POLICY.database, at_one)?;
    same("series after the last delete", &series(pair)?.len(), &0)?;
    check_thrice(pair)?;
    pair.write(POLICY, &[integer("m,h=2", "x", 1, 2)])?;
    same("series written again", &series(pair)?.len(), &1)?;
    check_thrice(pair)
}

pub(super) fn a_dropped_measurement_forgets_its_types(pair: &mut Pair) -> Result<(), String> {
    fill(pair)?;
    pair.test.maintain();
    for value in [Scalar::Float(1.5), Scalar::String("text".into()), Scalar::Integer(1)] {
        pair.delete(POLICY.database, DeleteTarget::Measurement("m0".into()))?;
        let schema = pair
            .store()
            .schema(POLICY.database, "m0", &Interrupt::new())
            .map_err(failed("schema"))?;
        same("schema of a dropped measurement", &schema, &None)?;
        pair.check_all()?;
        let outcome = pair.write(POLICY, &[Row::new("m0,h=1", &[("x", value)], 7)])?;
        same("rows written with a new type", &outcome.rows_written, &1)?;
        check_thrice(pair)?;
    }
    Ok(())
}

pub(super) fn dropped_policies_and_databases(pair: &mut Pair) -> Result<(), String> {
    fill(pair)?;
    let elsewhere = Policy { database: DatabaseId(2), id: PolicyId(3), ..POLICY };
    pair.write(elsewhere, &[integer("m0,h=1", "x", 1, 5)])?;
    pair.test.maintain();
    pair.delete(POLICY.database, DeleteTarget::Policy(PolicyId(2)))?;
    check_thrice(pair)?;
    pair.delete(POLICY.database, DeleteTarget::Database)?;
    check_thrice(pair)?;
    let again = Policy { database: DatabaseId(4), id: PolicyId(5), ..POLICY };
    pair.write(again, &[Row::new("m0,h=1", &[("x", Scalar::Float(2.0))], 5)])?;
    check_thrice(pair)
}

pub(super) fn deleting_what_is_missing(pair: &mut Pair) -> Result<(), String> {
    for _ in 0..2 {
        for database in [1, 9] {
            for target in [
                DeleteTarget::Measurement("none".into()),
                DeleteTarget::Policy(PolicyId(9)),
                rows_where(NameFilter::In(vec!["none".into()]), TagExpr::True, TimeRange::ALL),
            ] {
                pair.delete(DatabaseId(database), target)?;
            }
            pair.expire(DatabaseId(database), PolicyId(9), HOUR_NS)?;
        }
        pair.delete(DatabaseId(9), DeleteTarget::Database)?;
        pair.check_all()?;
        fill(pair)?;
    }
    check_thrice(pair)
}

pub(super) fn expiry_drops_whole_partitions(pair: &mut Pair) -> Result<(), String> {
    fill(pair)?;
    pair.write(POLICY, &[integer("m0,only=old", "x", 1, HOUR_NS - 1)])?;
    pair.test.maintain();
    for before in [i64::MIN, 0, HOUR_NS - 1, HOUR_NS, 2 * HOUR_NS + 5] {
        pair.expire(POLICY.database, POLICY.id, before)?;
        check_thrice(pair)?;
    }
    let first = read_all(pair.store(), POLICY, "m0").map_err(failed("read"))?;
    same("rows before 2 h", &first.iter().filter(|row| row.time_ns < 2 * HOUR_NS).count(), &0)?;
    // A partition that was dropped can be written again.
    pair.write(POLICY, &[integer("m0,h=1", "x", 1, 1)])?;
    check_thrice(pair)?;
    pair.expire(POLICY.database, POLICY.id, i64::MAX)?;
    check_thrice(pair)
}

pub(super) fn partitions_keep_their_numbers(pair: &mut Pair) -> Result<(), String> {
    fill(pair)?;
    let elsewhere = Policy { database: DatabaseId(2), id: PolicyId(3), ..POLICY };
    pair.write(elsewhere, &[integer("m0,h=1", "x", 1, 5)])?;
    check_thrice(pair)?;
    let before = list(pair.store(), POLICY.database)?;
    same("partitions", &before.len(), &6)?;
    // Neither a new partition before the others nor one that goes renumbers them.
    pair.write(POLICY, &[integer("m0,h=1", "x", 1, -5 * HOUR_NS)])?;
    check_thrice(pair)?;
    pair.expire(POLICY.database, POLICY.id, HOUR_NS)?;
    check_thrice(pair)?;
    let after = list(pair.store(), POLICY.database)?;
    let lasting = before.iter().filter(|p| p.policy != POLICY.id || p.time.min >= HOUR_NS).copied();
    same("partitions that last", &after, &lasting.collect())?;
    // The same range again may have its old number, and no other's.
    pair.write(POLICY, &[integer("m0,h=1", "x", 1, 0)])?;
    check_thrice(pair)?;
    pair.delete(POLICY.database, DeleteTarget::Database)?;
    same("partitions of no database", &list(pair.store(), POLICY.database)?.len(), &0)?;
    check_thrice(pair)
}

pub(super) fn a_dropped_partition_is_gone(pair: &mut Pair) -> Result<(), String> {
    fill(pair)?;
    pair.write(POLICY, &[integer("m0,only=here", "x", 1, HOUR_NS)])?;
    pair.test.maintain();
    pair.write(POLICY, &[integer("m1,h=1", "x", 1, HOUR_NS + 1)])?;
    let whole = TimeRange::new(HOUR_NS, 2 * HOUR_NS - 1);
    for (time, left) in [
        (TimeRange::new(HOUR_NS, HOUR_NS + 7), 6),
        (TimeRange::new(9 * HOUR_NS, 10 * HOUR_NS - 1), 6),
        (TimeRange::new(0, 2 * HOUR_NS - 1), 6),
        (TimeRange::ALL, 6),
        (whole, 5),
        (whole, 5),
    ] {
        pair.delete(POLICY.database, DeleteTarget::Partition(POLICY.id, time))?;
        same("partitions", &list(pair.store(), POLICY.database)?.len(), &left)?;
        check_thrice(pair)?;
    }
    pair.delete(POLICY.database, DeleteTarget::Partition(PolicyId(9), whole))?;
    pair.write(POLICY, &[integer("m0,h=1", "x", 7, HOUR_NS + 5)])?;
    check_thrice(pair)
}

/// Times are chosen so that the bounds of any partition lead to the same rows.
pub(super) fn a_changed_partition_length(pair: &mut Pair) -> Result<(), String> {
    let day = Policy { partition_ns: 24 * HOUR_NS, ..POLICY };
    pair.write(POLICY, &[integer("m", "x", 1, 0), integer("m", "x", 1, 30 * HOUR_NS)])?;
    pair.write(day, &[integer("m", "x", 2, 1), integer("m", "x", 2, 50 * HOUR_NS)])?;
    pair.test.maintain();
    pair.write(POLICY, &[integer("m", "y", 3, 1), integer("m", "y", 3, 51 * HOUR_NS)])?;
    check_thrice(pair)?;
    pair.expire(POLICY.database, POLICY.id, 24 * HOUR_NS)?;
    check_thrice(pair)
}

pub(super) fn the_catalog_slot(pair: &mut Pair) -> Result<(), String> {
    let swap = |pair: &Pair, expected, bytes: &[u8]| {
        pair.store().swap_catalog(expected, bytes).map_err(failed("swap_catalog"))
    };
    let document = |version, bytes: &[u8]| CatalogDocument { version, bytes: bytes.to_vec() };
    let now = |pair: &Pair| pair.store().catalog().map_err(failed("catalog"));
    same("catalog at first", &now(pair)?, &document(0, b""))?;
    same("conflict", &swap(pair, 1, b"x")?, &SwapOutcome::Conflict(document(0, b"")))?;
    same("swap", &swap(pair, 0, b"one")?, &SwapOutcome::Swapped(1))?;
    same("conflict", &swap(pair, 0, b"two")?, &SwapOutcome::Conflict(document(1, b"one")))?;
    let large = vec![0xa5; 300_000];
    same("swap", &swap(pair, 1, &large)?, &SwapOutcome::Swapped(2))?;
    pair.test.maintain();
    pair.test.reopen();
    same("catalog after a restart", &now(pair)?, &document(2, &large))?;
    same("swap", &swap(pair, 2, b"")?, &SwapOutcome::Swapped(3))?;
    pair.test.reopen();
    same("an empty catalog after a restart", &now(pair)?, &document(3, b""))
}

pub(super) fn a_closed_store_says_so(pair: &mut Pair) -> Result<(), String> {
    pair.write(POLICY, &[integer("m,h=1", "x", 1, 5)])?;
    let store = pair.store();
    store.close().map_err(failed("close"))?;
    let database = POLICY.database;
    let request = DeleteRequest { database, target: DeleteTarget::Database };
    let outcomes = [
        ("write", testing::write(store, POLICY, &[integer("m", "x", 1, 5)], 0).map(drop)),
        ("schema", store.schema(database, "m", &Interrupt::new()).map(drop)),
        ("delete", store.delete(&request)),
        ("expire", store.expire(database, POLICY.id, 0).map(drop)),
        ("catalog", store.catalog().map(drop)),
        ("swap_catalog", store.swap_catalog(0, b"x").map(drop)),
    ];
    for (what, outcome) in outcomes {
        if !matches!(outcome, Err(StoreError::Closed)) {
            return Err(format!("{what} of a closed store gave {outcome:?}"));
        }
    }
    pair.test.reopen();
    check_thrice(pair)
}
