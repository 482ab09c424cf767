//! As long as the basis of an answer holds, the question has the same answer.

#[path = "support/database.rs"]
mod support;

use influxql::{Params, parse_statement};
use proptest::prelude::*;
use query::Basis;
use support::{Database, NOW_NS};

const LINES: &str = "
m,h=a i=1i,f=2.5 10
m,h=b i=3i,s=\"u\" 20
m,h=a i=4i 130
n,h=a i=7i 20
";

fn basis(db: &Database, text: &str) -> Option<Basis> {
    let statement = parse_statement(text, &Params::new()).expect(text);
    Basis::of(&statement, &db.context).expect(text)
}

fn holds(db: &Database, basis: &Basis) -> bool {
    basis.holds(&*db.context.store, &db.context.catalog)
}

#[test]
fn what_has_a_basis() {
    let db = Database::with_lines(LINES);
    for text in [
        "SELECT i FROM m",
        "SELECT * FROM m WHERE time < 100",
        "SELECT last(*) FROM m GROUP BY *",
        "SELECT mean(i) FROM m WHERE time < 100 GROUP BY time(10ns)",
        "SELECT max(mean) FROM (SELECT mean(i) FROM m GROUP BY h)",
        "SELECT max(mean) FROM (SELECT mean(i) FROM m GROUP BY time(5ns)) WHERE time < 100",
        "SELECT i FROM m, n",
        "SELECT i FROM nosuch..m",
    ] {
        let statement = parse_statement(text, &Params::new()).expect(text);
        match Basis::of(&statement, &db.context) {
            Ok(basis) => assert!(holds(&db, &basis.expect(text)), "{text}"),
            Err(error) => assert!(text.contains("nosuch"), "{text}: {error}"),
        }
    }
    for text in [
        "SHOW MEASUREMENTS",
        "SELECT i INTO n FROM m",
        "SELECT i FROM m WHERE time > now() - 1h",
        "SELECT mean(i) FROM m WHERE time > 0 GROUP BY time(10ns)",
        "SELECT mean(i) FROM m WHERE time < 100 GROUP BY time(10ns, now())",
        "SELECT max(mean) FROM (SELECT mean(i) FROM m GROUP BY time(1000d))",
        "SELECT max(i) FROM (SELECT i FROM m WHERE time < now())",
        "SELECT sample(i, 2) FROM m",
        "SELECT i FROM /m/",
        "SELECT i FROM nosuch",
        "SELECT i FROM m, nosuch",
        "SELECT a.i FROM m AS a JOIN n AS b USING (h)",
    ] {
        assert!(basis(&db, text).is_none(), "{text}");
    }
}

#[test]
fn a_window_around_the_present_is_open() {
    let mut db = Database::with_lines(LINES);
    let text = format!(
        "SELECT max(mean) FROM (SELECT mean(i) FROM m WHERE time > 0 GROUP BY time(1000d)) WHERE time < {}",
        NOW_NS + 5
    );
    assert!(basis(&db, &text).is_none());
    db.context.now_ns += 10;
    assert!(basis(&db, &text).is_some());
}

#[test]
fn what_a_basis_survives() {
    let asked = "SELECT * FROM m WHERE time < 100";
    for (line, survives) in [
        ("m,h=a i=9i 110", true),
        ("n,h=z z=9i 110", true),
        ("m,h=a i=9i 99", false),
        ("m,h=a i=1i 10", false),
        ("m,h=a new=9i 110", false),
        ("m,h=a,new=t i=9i 110", false),
    ] {
        let db = Database::with_lines(LINES);
        let basis = basis(&db, asked).expect("names all it reads");
        db.write(line);
        assert_eq!(holds(&db, &basis), survives, "{line}");
    }
    for statement in ["DELETE FROM m WHERE time = 10", "DROP MEASUREMENT m", "CREATE DATABASE u"] {
        let db = Database::with_lines(LINES);
        let basis = basis(&db, asked).expect("names all it reads");
        assert_eq!(db.short(statement), "");
        assert!(!holds(&db, &basis), "{statement}");
    }
}

#[test]
fn fields_of_other_policies_show() {
    let db = Database::with_lines(LINES);
    assert_eq!(db.short("CREATE RETENTION POLICY p ON t DURATION 0s REPLICATION 1"), "");
    let basis = basis(&db, "SELECT * FROM m WHERE time < 100").expect("names all it reads");
    assert!(holds(&db, &basis));
    db.write("m,h=a i=9i 110");
    assert!(!holds(&db, &basis), "which policy a field is in is looked for at any time");
}

fn statement() -> impl Strategy<Value = String> {
    let what = prop::sample::select(vec![
        "*",
        "i",
        "f, s",
        "last(*)",
        "mean(f), max(i)",
        "count(*)",
        "derivative(i, 1ns)",
        "difference(last(i))",
    ]);
    let from = prop::sample::select(vec!["m", "n", "m, n", "(SELECT i, f FROM m)"]);
    let time = prop::sample::select(vec!["time < 100", "time >= 10 AND time < 30", "h = 'a'"]);
    let group = prop::sample::select(vec!["", " GROUP BY *", " GROUP BY h", " GROUP BY time(7ns)"]);
    (what, from, time, group).prop_map(|(w, f, t, g)| format!("SELECT {w} FROM {f} WHERE {t}{g}"))
}

fn change() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec!["m,h=a", "m,h=b,r=x", "n,h=c", "o,h=a"]);
    let field = prop::sample::select(vec!["i=5i", "f=1.5", "s=\"v\"", "z=1i"]);
    let line = (key, field, 0i64..150).prop_map(|(k, f, t)| format!("{k} {f} {t}"));
    let other = prop::sample::select(vec![
        "DELETE FROM m WHERE time < 15",
        "DELETE FROM n",
        "DROP SERIES FROM m WHERE h = 'a'",
        "DROP MEASUREMENT n",
        "CREATE RETENTION POLICY p ON t DURATION 0s REPLICATION 1 DEFAULT",
    ]);
    prop_oneof![6 => line, 1 => other.prop_map(str::to_owned)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn same_basis_same_answer(text in statement(), changes in prop::collection::vec(change(), 1..4)) {
        let db = Database::with_lines(LINES);
        let statement = parse_statement(&text, &Params::new()).expect("is one");
        // What cannot be planned is not asked.
        let Ok(Some(basis)) = Basis::of(&statement, &db.context) else { return Ok(()) };
        let before = db.json(&text);
        prop_assert!(holds(&db, &basis));
        for change in &changes {
            if change.starts_with("D") || change.starts_with("C") {
                prop_assert_eq!(db.short(change), "");
            } else {
                db.write(change);
            }
        }
        if holds(&db, &basis) {
            prop_assert_eq!(db.json(&text), before);
        }
    }
}

#[test]
fn a_closed_store_cannot_tell() {
    let db = Database::with_lines(LINES);
    let basis = basis(&db, "SELECT i FROM m").expect("names all it reads");
    db.context.store.close().expect("can be closed");
    assert!(!holds(&db, &basis));
}
