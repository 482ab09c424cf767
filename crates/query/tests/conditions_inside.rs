//! What a condition on the tags of a subquery leaves out need not be computed in it: the rows are those of a condition that
//! is tested outside.

#[path = "support/database.rs"]
mod support;

use support::Database;

/// Tags that some series lack, and a field that has the name of a tag in another measurement.
const LINES: &str = r#"
m,a=x,b=1 i=1,f=0.5 0
m,a=x,b=2 i=2,f=1.5 10
m,a=y,b=1 i=3,f=2.5 20
m,a=y i=4,f=3.5 30
m,b=2 i=5,f=4.5 40
m i=6,f=5.5 50
m,a=x,b=1 i=7,f=6.5 60
m,a=y,b=1 i=8 70
n,b=1 a="x",i=9 15
n,b=2 a="y",i=10 65
"#;

#[test]
fn conditions_on_tags_of_subqueries_hold_inside() {
    let database = Database::with_lines(LINES);
    let inner = [
        "SELECT mean(i) AS v FROM m WHERE time >= 0 AND time < 100 GROUP BY a, b",
        "SELECT mean(i) AS v FROM m WHERE time >= 0 AND time < 100 AND f > 1 GROUP BY a",
        "SELECT mean(i) AS v FROM m WHERE time >= 0 AND time < 100 GROUP BY time(20ns), a LIMIT 1",
        "SELECT max(i) AS v FROM m WHERE time < 100 GROUP BY time(20ns), a, b fill(none)",
        "SELECT count(i) AS v FROM m WHERE time < 100 GROUP BY time(20ns), a",
        "SELECT i AS v FROM m GROUP BY a, b LIMIT 1",
        "SELECT i AS v FROM m WHERE b != '2' GROUP BY a, b",
        "SELECT i AS v, f AS b FROM m GROUP BY a",
        "SELECT i AS v, a FROM m",
        "SELECT mean(i) AS v, max(f) AS a FROM m WHERE time < 100 GROUP BY a, b",
        "SELECT mean(i) AS v FROM m, n GROUP BY a, b",
        "SELECT top(i, b, 2) AS v FROM m GROUP BY a",
        "SELECT difference(i) AS v FROM m GROUP BY a",
    ];
    let conditions = [
        "a = 'x'",
        "a != 'x'",
        "a = ''",
        "a =~ /^[xy]$/",
        "a !~ /x/ AND v > 3",
        "(a = 'x' OR b = '1') AND v < 8",
        "a = 'x' OR v > 4",
        "a = b",
        "b = '1' AND a = 'y'",
        "a::tag = 'y'",
        "a = 'z'",
        "'x' = a AND (b = '1' OR b = '')",
        "nothing = '' AND a = 'x'",
        "time > 15 AND a = 'y'",
    ];
    let mut shown = 0;
    for inner in inner {
        for condition in conditions {
            // What stands between them takes no part of the condition to what is in it.
            let inside = format!("SELECT v FROM ({inner}) WHERE {condition} GROUP BY *");
            let outside = format!(
                "SELECT v FROM (SELECT * FROM ({inner}) GROUP BY *) WHERE {condition} GROUP BY *"
            );
            let found = database.short(&inside);
            assert!(!found.starts_with("error"), "{inside}: {found}");
            assert_eq!(found, database.short(&outside), "{inside}");
            shown += usize::from(!found.is_empty());
        }
    }
    assert!(shown > 90, "{shown} conditions left rows");
}
