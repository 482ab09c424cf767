//! DELETE with conditions on fields: what a SELECT with the same condition shows is what goes.

#[path = "support/meddled.rs"]
mod meddled;
#[path = "support/database.rs"]
mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use meddled::Moment;
use model::{Budget, Interrupt, PolicyId, Scalar, SeriesKey};
use proptest::prelude::*;
use store::reference::ReferenceOptions;
use store::testing::{Row, read_all, write};
use store::{DeleteTarget, Policy};
use support::{Database, NOW_NS};

const LINES: &str = "
cpu,host=a v=1i,w=10 10
cpu,host=a v=2i,s=\"ok\" 20
cpu,host=b v=3i,w=2.5 10
cpu,host=b v=4i,s=\"bad\" 30
cpu v=9i 40
cpu,host=c w=7 50
mem,host=a free=1i 10
mem,host=b free=9i 20
";

fn database() -> Database {
    Database::with_lines(LINES)
}

/// The times of `cpu` that a delete leaves.
fn left(statement: &str) -> Vec<i64> {
    let db = database();
    assert_eq!(db.short(statement), "", "{statement}");
    rows(&db, "cpu").iter().map(|row| row.time_ns).collect()
}

fn policy(db: &Database) -> Policy {
    db.context.catalog.snapshot().resolve("t", None).expect("the database exists")
}

fn rows(db: &Database, measurement: &str) -> Vec<Row> {
    let mut rows = read_all(&*db.context.store, policy(db), measurement).expect("a working store");
    rows.sort_by_key(|row| row.time_ns);
    rows
}

#[test]
fn rows_that_satisfy_the_condition_go() {
    for (statement, expected) in [
        ("DELETE FROM cpu WHERE v > 2", &[10, 20, 50][..]),
        ("DELETE FROM cpu WHERE v > 2 AND host = 'b'", &[10, 20, 40, 50]),
        ("DELETE FROM cpu WHERE v > 2 AND time >= 30", &[10, 10, 20, 50]),
        ("DELETE FROM cpu WHERE v > 2 OR host = 'a'", &[50]),
        ("DELETE FROM cpu WHERE (v > 2 AND host = 'b') OR s =~ /^o/", &[10, 40, 50]),
        ("DELETE FROM cpu WHERE v < w", &[10, 20, 30, 40, 50]),
        ("DELETE FROM cpu WHERE v * 2 = 6", &[10, 20, 30, 40, 50]),
        ("DELETE FROM cpu WHERE s != 'bad'", &[10, 10, 30, 40, 50]),
        ("DELETE FROM cpu WHERE v != 'x'", &[10, 10, 20, 30, 40, 50]),
        // Rows without the field that the condition looks at.
        ("DELETE FROM cpu WHERE v > 100 OR host = 'c'", &[10, 10, 20, 30, 40]),
        ("DELETE FROM cpu WHERE nosuch > 1", &[10, 10, 20, 30, 40, 50]),
        ("DELETE FROM cpu WHERE v::field > 2", &[10, 20, 50]),
        ("DELETE FROM cpu WHERE v > 2 AND v < 2", &[10, 10, 20, 30, 40, 50]),
        ("DELETE WHERE v > 2", &[10, 20, 50]),
        ("DELETE FROM /c.u/ WHERE v > 2", &[10, 20, 50]),
        ("DELETE FROM nosuch WHERE v > 2", &[10, 10, 20, 30, 40, 50]),
    ] {
        assert_eq!(left(statement), expected, "{statement}");
    }
}

#[test]
fn measurements_are_looked_at_as_by_select() {
    let db = database();
    assert_eq!(db.short("DELETE WHERE v > 2 OR free > 5"), "");
    assert_eq!(rows(&db, "cpu").len(), 3);
    assert_eq!(db.short("SELECT * FROM mem"), "mem: time free host\n10 1 \"a\"");
    assert_eq!(db.short("SHOW SERIES FROM mem"), ": key\n\"mem,host=a\"");
    // Of a measurement that lacks the field, what the rest of the condition says.
    assert_eq!(db.short("DELETE WHERE v > 100 OR host = 'a'"), "");
    assert_eq!(db.short("SELECT * FROM mem"), "");
    assert_eq!(db.short("DELETE FROM cpu WHERE v"), "error: invalid condition expression: v");
}

#[test]
fn every_policy_loses_its_rows() {
    let db = database();
    let other = Policy { id: PolicyId(77), ..policy(&db) };
    assert_eq!(db.short("CREATE RETENTION POLICY other ON t DURATION INF REPLICATION 1"), "");
    let named = db.context.catalog.snapshot().resolve("t", Some("other")).unwrap();
    let rows_of = |policy| read_all(&*db.context.store, policy, "cpu").unwrap();
    for policy in [named, other] {
        let of = |v, time| Row::new("cpu,host=a", &[("v", Scalar::Integer(v))], time);
        write(&*db.context.store, policy, &[of(1, 10), of(5, 20)], NOW_NS).unwrap();
    }
    assert_eq!(db.short("DELETE FROM cpu WHERE v > 2"), "");
    assert_eq!(rows(&db, "cpu").len(), 3);
    assert_eq!(rows_of(named).len(), 1);
    assert_eq!(rows_of(other).len(), 2, "a policy that the catalog does not know");
}

#[test]
fn it_stops_where_it_must() {
    let mut db = database();
    db.context.interrupt = Interrupt::new();
    db.context.interrupt.cancel();
    assert!(db.short("DELETE FROM cpu WHERE v > 2").starts_with("error: "));
    db.context.interrupt = Interrupt::new();
    db.context.budget = Budget::new("query", 100);
    assert!(db.short("DELETE FROM cpu WHERE v > 2").starts_with("error: "));
    db.context.budget = Budget::unlimited();
    db.context.read_only = true;
    assert_eq!(db.short("DELETE FROM cpu WHERE v > 2"), "error: the server is read-only");
    db.context.read_only = false;
    db.context.database = None;
    assert_eq!(db.short("DELETE FROM cpu WHERE v > 2"), "error: database not found: ");
    db.context.database = Some("t".to_owned());
    assert_eq!(rows(&db, "cpu").len(), 6);
}

#[test]
fn many_rows_go_in_parts() {
    let options = ReferenceOptions { item_rows: 5000, ..ReferenceOptions::default() };
    let db = Database::new(options);
    let of =
        |n: i64| Row::new(&format!("m,h={}", n / 100_000), &[("v", Scalar::Integer(n % 10))], n);
    db.write_rows(&(0..150_000).map(of).collect::<Vec<_>>());
    assert_eq!(db.short("DELETE FROM m WHERE v != 3"), "");
    assert_eq!(db.short("SELECT count(v), sum(v) FROM m"), "m: time count sum\n0 15000 45000");
}

#[test]
fn rows_written_meanwhile_stay() {
    let deletes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&deletes);
    let db = meddled::database(Box::new(move |moment| {
        let Moment::Deleting(request) = moment else { return Vec::new() };
        assert!(matches!(request.target, DeleteTarget::Matching(_)));
        counted.fetch_add(1, Ordering::Relaxed);
        let nan = Row::new("m,h=a", &[("f", Scalar::Float(0.5))], 3);
        let same = Row::new("m,h=a", &[("f", Scalar::Float(7.0))], 1);
        let other = Row::new("m,h=a", &[("g", Scalar::Float(1.0))], 4);
        vec![nan, same, other]
    }));
    let f = |time, f: f64| Row::new("m,h=a", &[("f", Scalar::Float(f))], time);
    // Bit for bit: what is not a number, and the zero that is negative.
    db.write_rows(&[f(1, 7.0), f(2, f64::NAN), f(3, f64::NAN), f(4, -0.0), f(5, 1.0)]);
    assert_eq!(db.short("DELETE FROM m WHERE f != 1"), "");
    assert_eq!(deletes.load(Ordering::Relaxed), 1);
    let left: Vec<(i64, String)> =
        rows(&db, "m").iter().map(|row| (row.time_ns, format!("{:?}", row.fields))).collect();
    let field = |time, value: &str| (time, format!("[(\"f\", Float({value}))]"));
    assert_eq!(left, [field(3, "0.5"), field(5, "1.0")]);
}

fn any_rows() -> impl Strategy<Value = Vec<Row>> {
    let value = |name: &'static str, value: BoxedStrategy<Scalar>| {
        prop::option::of(value).prop_map(move |v| v.map(|v| (name, v)))
    };
    let floats = prop_oneof![
        (-8i32..8).prop_map(|v| f64::from(v) / 4.0),
        prop::sample::select(vec![f64::NAN, -0.0, f64::INFINITY]),
    ];
    let fields = (
        value("i", (-5i64..5).prop_map(Scalar::Integer).boxed()),
        value("f", floats.prop_map(Scalar::Float).boxed()),
        value("b", any::<bool>().prop_map(Scalar::Boolean).boxed()),
        value(
            "s",
            prop::sample::select(vec!["u", "v"]).prop_map(|s| Scalar::String(s.into())).boxed(),
        ),
    );
    let key = prop::sample::select(vec!["m,h=a", "m,h=a,r=x", "m,h=b", "m", "n,h=a", "n,i=x"]);
    let row = (key, fields, 0i64..60).prop_map(|(key, (i, f, b, s), time)| {
        let mut fields: Vec<(&str, Scalar)> = [i, f, b, s].into_iter().flatten().collect();
        if fields.is_empty() {
            fields.push(("g", Scalar::Unsigned(0)));
        }
        Row::new(key, &fields, time)
    });
    prop::collection::vec(row, 1..40)
}

fn condition() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "i > 1",
        "i <= 0",
        "f != 0.5",
        "f = 0",
        "f < i",
        "i * 2 > f",
        "b = true",
        "s =~ /u|x/",
        "s != 'u'",
        "h = 'a'",
        "r != 'x'",
        "h =~ /^$/",
        "nosuch = 1",
        "nosuch != 'x'",
        "abs(f) > 1",
        "s = h",
        "g = 0",
        "time > 20",
        "h = r",
    ]);
    let joined = (leaf.clone(), leaf.clone(), leaf, 0..4).prop_map(|(a, b, c, shape)| {
        // Times stand beside conditions, not in alternatives.
        let timed = [a, b, c].iter().any(|part| part.starts_with("time"));
        match shape {
            0 => a.to_owned(),
            1 => format!("{a} AND {b}"),
            2 if !timed => format!("{a} OR {b} AND {c}"),
            3 if !timed => format!("({a} OR {b}) AND {c}"),
            _ => format!("{a} AND {b} AND {c}"),
        }
    });
    joined.boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_select_shows_is_what_goes(
        written in any_rows(),
        condition in condition(),
        from in prop::sample::select(vec!["m", "n", "m, n", "/m|n/"]),
    ) {
        let db = Database::new(ReferenceOptions { item_rows: 7, ..ReferenceOptions::default() });
        db.write_rows(&written);
        let shown = db.batches(&format!("SELECT * FROM {from} WHERE {condition} GROUP BY *"));
        let mut gone = BTreeSet::new();
        for part in shown.unwrap() {
            let mut tags = part.header.tags.clone();
            tags.retain(|(_, value)| !value.is_empty());
            let key = SeriesKey { measurement: part.header.name.clone(), tags }.to_string();
            gone.extend(part.rows.clone().map(|row| (key.clone(), part.batch.times()[row])));
        }
        let all = || ["m", "n"].into_iter().flat_map(|name| rows(&db, name));
        let kept: Vec<Row> =
            all().filter(|row| !gone.contains(&(row.key.clone(), row.time_ns))).collect();
        let deleted = db.short(&format!("DELETE FROM {from} WHERE {condition}"));
        prop_assert_eq!(deleted, "");
        prop_assert_eq!(all().collect::<Vec<_>>(), kept);
    }
}
