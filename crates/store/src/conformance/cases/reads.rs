//! What reads give.

use std::collections::BTreeMap;

use model::{Budget, CompareOp, FieldType, Interrupt, Name, Regex, Scalar, TagExpr, TimeRange};

use super::{HOUR_NS, POLICY, check_thrice, integer};
use crate::conformance::apply::{Pair, failed, same};
use crate::conformance::compare::names_request;
use crate::conformance::operation::{Probe, ProbeFilter};
use crate::testing::{self, Row, read_all, read_slice, scan_everything};
use crate::{
    MetadataKind, NameFilter, ScanContext, ScanSlice, StoreError, SummaryParts, TimeOrder, Windows,
};

pub(super) fn an_empty_store_answers(pair: &mut Pair) -> Result<(), String> {
    pair.test.maintain();
    let schema =
        pair.store().schema(POLICY.database, "m", &Interrupt::new()).map_err(failed("schema"))?;
    same("schema of nothing", &schema, &None)?;
    same(
        "rows of nothing",
        &read_all(pair.store(), POLICY, "m").map_err(failed("read"))?,
        &vec![],
    )?;
    for kind in [MetadataKind::Measurements, MetadataKind::Series, MetadataKind::TagKeys] {
        let names = pair.names(POLICY.database, &kind, &NameFilter::All, &TagExpr::True)?;
        same("names of nothing", &names, &Vec::new())?;
    }
    pair.write(POLICY, &[])?;
    check_thrice(pair)
}

/// Some series over three partitions, every field type, gaps.
fn fill(pair: &mut Pair) -> Result<(), String> {
    let row = |n: i64| {
        let key = ["m,host=a,dc=x", "m,host=b", "m,host=c,dc=y", "m"][(n % 4) as usize];
        let fields = [
            ("i", Scalar::Integer(n % 10)),
            ("f", Scalar::Float(n as f64 * 0.5)),
            ("u", Scalar::Unsigned(n as u64)),
            ("s", Scalar::String(format!("t{}", n % 3).into())),
            ("b", Scalar::Boolean(n % 2 == 0)),
        ];
        let from = (n % 5) as usize;
        Row::new(key, &fields[from..5.min(from + 3)], n * HOUR_NS / 60 - HOUR_NS)
    };
    let rows: Vec<Row> = (0..180).map(row).collect();
    pair.write(POLICY, &rows[90..])?;
    pair.test.maintain();
    pair.write(POLICY, &rows[..120]).map(drop)
}

pub(super) fn scan_options(pair: &mut Pair) -> Result<(), String> {
    fill(pair)?;
    let all = Probe::all(POLICY, "m");
    let filter = |op, constant| Some(ProbeFilter { field: 0, op, constant, other: None });
    let host = |value: &str| TagExpr::Equals("host".into(), value.into());
    let some = Regex::new("a|c").map_err(|e| e.to_string())?;
    let probes = [
        Probe { order: TimeOrder::Descending, ..all.clone() },
        Probe { time: TimeRange::new(0, HOUR_NS / 2), ..all.clone() },
        Probe { time: TimeRange::new(5, 4), ..all.clone() },
        Probe { series: host("a"), ..all.clone() },
        Probe { series: host(""), ..all.clone() },
        Probe { series: TagExpr::Not(Box::new(host("a"))), ..all.clone() },
        Probe { series: TagExpr::In("host".into(), vec!["b".into(), "c".into()]), ..all.clone() },
        Probe { series: TagExpr::Matches("host".into(), some), ..all.clone() },
        Probe { series: TagExpr::SameValue("dc".into(), "none".into()), ..all.clone() },
        Probe { series: TagExpr::False, ..all.clone() },
        Probe { series: TagExpr::Or(Vec::new()), ..all.clone() },
        Probe { fields: vec![3, 0], ..all.clone() },
        Probe { series_parts: 3, cuts: vec![-HOUR_NS / 2, 0, 7, HOUR_NS], ..all.clone() },
        Probe {
            series_parts: 2,
            cuts: vec![HOUR_NS / 3],
            order: TimeOrder::Descending,
            rows_per_series: Some(2),
            ..all.clone()
        },
        Probe { rows_per_series: Some(0), ..all.clone() },
        Probe { filter: filter(CompareOp::Greater, Scalar::Integer(6)), ..all.clone() },
        Probe {
            filter: filter(CompareOp::Equal, Scalar::String("t1".into())),
            rows_per_series: Some(3),
            fields: vec![0],
            ..all.clone()
        },
    ];
    for _ in 0..2 {
        for probe in &probes {
            pair.probe(probe)?;
        }
        pair.test.maintain();
    }
    check_thrice(pair)
}

/// Of one series every hundredth row has an `x`, of the other none; some rows come again without one.
pub(super) fn only_rows_that_matter(pair: &mut Pair) -> Result<(), String> {
    const SECOND_NS: i64 = 1_000_000_000;
    let row = |key: &str, second: i64, is_again: bool| {
        let has_x = key == "m,h=a" && second % 100 == 7 && !is_again;
        let x = has_x.then_some(("x", Scalar::Integer(second)));
        let y = ("y", Scalar::Integer(second + i64::from(is_again) * 10_000));
        Row::new(key, &x.into_iter().chain([y]).collect::<Vec<_>>(), second * SECOND_NS)
    };
    for key in ["m,h=a", "m,h=b"] {
        let rows: Vec<Row> = (0..3000).map(|second| row(key, second, false)).collect();
        pair.write(POLICY, &rows)?;
    }
    for again in [Vec::new(), vec![2907, 7, 2999, 0, 2950]] {
        let rows: Vec<Row> = again.iter().map(|second| row("m,h=a", *second, true)).collect();
        pair.write(POLICY, &rows)?;
        for order in [TimeOrder::Ascending, TimeOrder::Descending] {
            for with_any in [vec![0], vec![1], vec![0, 1], Vec::new()] {
                for rows_per_series in [Some(1), Some(2), Some(40), None] {
                    let with_any = Some(with_any.clone());
                    let all = Probe::all(POLICY, "m");
                    pair.probe(&Probe { order, with_any, rows_per_series, ..all })?;
                }
            }
        }
        pair.test.maintain();
    }
    check_thrice(pair)
}

pub(super) fn only_rows_with_wanted_fields(pair: &mut Pair) -> Result<(), String> {
    let both = [("a", Scalar::Integer(1)), ("b", Scalar::Integer(2))];
    pair.write(
        POLICY,
        &[integer("m,h=1", "a", 1, 1), integer("m,h=2", "b", 1, 2), Row::new("m,h=1", &both, 3)],
    )?;
    for fields in [vec![("b".into(), FieldType::Integer)], Vec::new()] {
        let mut request = scan_everything(pair.store(), POLICY, "m").map_err(failed("schema"))?;
        request.fields = fields;
        let got = testing::read(pair.store(), &request).map_err(failed("read"))?;
        let want = [integer("m,h=1", "b", 2, 3), integer("m,h=2", "b", 1, 2)];
        let want = if request.fields.is_empty() { Vec::new() } else { want.to_vec() };
        same("rows", &got, &want)?;
    }
    check_thrice(pair)
}

pub(super) fn series_with_equal_wanted_tags_stay_apart(pair: &mut Pair) -> Result<(), String> {
    let keys = ["m,a=1,b=1", "m,a=1,b=2", "m,a=2,b=1"];
    pair.write(POLICY, &keys.map(|key| integer(key, "x", 1, 5)))?;
    let mut request = scan_everything(pair.store(), POLICY, "m").map_err(failed("schema"))?;
    for (tags, want) in [
        (vec![], vec!["m", "m", "m"]),
        (vec!["a".into()], vec!["m,a=1", "m,a=1", "m,a=2"]),
        (vec!["b".into(), "c".into()], vec!["m,b=1", "m,b=1", "m,b=2"]),
    ] {
        request.tags = tags;
        let rows = testing::read(pair.store(), &request).map_err(failed("read"))?;
        let got: Vec<&str> = rows.iter().map(|row| &*row.key).collect();
        same("series as far as their tags were asked for", &got, &want)?;
    }
    Ok(())
}

pub(super) fn unknown_names_have_no_rows(pair: &mut Pair) -> Result<(), String> {
    pair.write(POLICY, &[integer("m,h=1", "x", 1, 5)])?;
    let all = scan_everything(pair.store(), POLICY, "m").map_err(failed("schema"))?;
    let mut requests = [all.clone(), all.clone(), all.clone(), all];
    requests[0].measurement = "other".into();
    requests[1].policy.id = model::PolicyId(77);
    requests[2].policy.database = model::DatabaseId(77);
    requests[3].fields = vec![("none".into(), FieldType::Float)];
    for request in &requests {
        let got = testing::read(pair.store(), request).map_err(failed("read"))?;
        same("rows of an unknown name", &got, &Vec::new())?;
    }
    let mut request = scan_everything(pair.store(), POLICY, "m").map_err(failed("schema"))?;
    request.fields.push(("none".into(), FieldType::Boolean));
    request.tags = vec!["none".into()];
    let got = testing::read(pair.store(), &request).map_err(failed("read"))?;
    same("rows with an unknown field", &got, &vec![integer("m", "x", 1, 5)])
}

pub(super) fn a_scan_keeps_its_view(pair: &mut Pair) -> Result<(), String> {
    let rows: Vec<Row> = (0..50).map(|n| integer("m,h=1", "x", n, n)).collect();
    pair.write(POLICY, &rows)?;
    let request = scan_everything(pair.store(), POLICY, "m").map_err(failed("schema"))?;
    let scan = pair.store().scan(&request).map_err(failed("scan"))?;
    let read = |what: &str| {
        let got = read_slice(&*scan, &request, &ScanSlice::all()).map_err(failed("read"))?;
        same(&format!("rows of a scan from before {what}"), &got, &rows)
    };
    let store = pair.test.store();
    let later =
        [integer("m,h=1", "x", -1, 3), integer("m,h=1", "x", 0, 99), integer("m,h=2", "x", 0, 1)];
    testing::write(store, POLICY, &later, 0).map_err(failed("write"))?;
    read("a write")?;
    let everything = crate::DeleteTarget::Rows {
        measurements: NameFilter::All,
        series: TagExpr::True,
        time: TimeRange::ALL,
    };
    let request_of = |target| crate::DeleteRequest { database: POLICY.database, target };
    store.delete(&request_of(everything)).map_err(failed("delete"))?;
    read("a delete")?;
    store.delete(&request_of(crate::DeleteTarget::Database)).map_err(failed("delete"))?;
    read("a drop of the database")
}

pub(super) fn summaries_add_up(pair: &mut Pair) -> Result<(), String> {
    fill(pair)?;
    // Rows over what may have been summed up already.
    for round in 0..3 {
        for every_ns in
            [None, Some(HOUR_NS), Some(HOUR_NS / 4), Some(HOUR_NS / 7), Some(10 * HOUR_NS)]
        {
            for offset_ns in [0, HOUR_NS / 9] {
                let parts = SummaryParts { sum: true, min_max: true, first_last: true };
                let windows = Some(Windows { every_ns, offset_ns, parts });
                let all = Probe { windows, ..Probe::all(POLICY, "m") };
                pair.probe(&all)?;
                pair.probe(&Probe { time: TimeRange::new(-HOUR_NS / 3, HOUR_NS), ..all.clone() })?;
                pair.probe(&Probe {
                    fields: vec![1],
                    order: TimeOrder::Descending,
                    cuts: vec![0],
                    series_parts: 2,
                    ..all
                })?;
            }
        }
        match round {
            0 => pair.test.maintain(),
            _ => {
                let row = integer("m,host=a,dc=x", "i", 100, -HOUR_NS);
                pair.write(POLICY, &[row])?;
                let time = TimeRange::new(0, HOUR_NS / 5);
                let (measurements, series) = (NameFilter::All, TagExpr::True);
                let target = crate::DeleteTarget::Rows { measurements, series, time };
                pair.delete(POLICY.database, target)?;
            }
        }
    }
    Ok(())
}

pub(super) fn names_are_sorted_and_filtered(pair: &mut Pair) -> Result<(), String> {
    let keys = ["m,h=b", "m,h=a,z=1", "n", "n,h=a", "a\\ b,q=1", "m,h=a", "\u{e9},h=c"];
    let rows: Vec<Row> = keys.iter().map(|key| integer(key, "x", 1, 5)).collect();
    pair.write(POLICY, &rows[..4])?;
    pair.test.maintain();
    let other = crate::Policy { id: model::PolicyId(2), ..POLICY };
    pair.write(other, &rows[3..])?;
    let h: Name = "h".into();
    let regex = |text: &str| Regex::new(text).map_err(|e| e.to_string());
    let kinds = [
        MetadataKind::Measurements,
        MetadataKind::Series,
        MetadataKind::SeriesCounts,
        MetadataKind::TagKeys,
        MetadataKind::TagValues(NameFilter::All),
        MetadataKind::TagValues(NameFilter::In(vec![h.clone(), "q".into()])),
        MetadataKind::TagValues(NameFilter::Not(Box::new(NameFilter::In(vec![h.clone()])))),
        MetadataKind::TagValues(NameFilter::Matches(regex("^[hq]$")?)),
    ];
    let exprs = [
        TagExpr::True,
        TagExpr::Equals(h.clone(), "a".into()),
        TagExpr::Equals(h.clone(), "".into()),
        TagExpr::Matches(h, regex("[bc]")?),
        TagExpr::False,
    ];
    let measurements = [
        NameFilter::All,
        NameFilter::In(vec!["n".into(), "m".into()]),
        NameFilter::Matches(regex("[mn]|^a b$")?),
        NameFilter::Not(Box::new(NameFilter::Matches(regex("m")?))),
    ];
    for _ in 0..2 {
        for kind in &kinds {
            for expr in &exprs {
                for filter in &measurements {
                    pair.names(POLICY.database, kind, filter, expr)?;
                }
            }
        }
        pair.test.maintain();
    }
    check_thrice(pair)
}

pub(super) fn interrupted_reads_stop(pair: &mut Pair) -> Result<(), String> {
    pair.write(POLICY, &[integer("m,h=1", "x", 1, 5)])?;
    let interrupt = Interrupt::new();
    let context = ScanContext { budget: Budget::unlimited(), interrupt: interrupt.clone() };
    let mut request = scan_everything(pair.store(), POLICY, "m").map_err(failed("schema"))?;
    request.context = context.clone();
    let mut names =
        names_request(POLICY.database, &MetadataKind::Series, &NameFilter::All, &TagExpr::True);
    names.context = context;
    let outcomes = |pair: &Pair| -> BTreeMap<&str, Result<(), StoreError>> {
        let rows = testing::read(pair.store(), &request).map(drop);
        let names = testing::names(pair.store(), &names).map(drop);
        [("scan", rows), ("metadata", names)].into()
    };
    for (what, outcome) in outcomes(pair) {
        outcome.map_err(|error| format!("{what}: {error}"))?;
    }
    interrupt.cancel();
    for (what, outcome) in outcomes(pair) {
        if !matches!(outcome, Err(StoreError::Interrupted(_))) {
            return Err(format!("a cancelled {what} gave {outcome:?}"));
        }
    }
    Ok(())
}
