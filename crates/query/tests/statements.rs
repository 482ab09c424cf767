//! What statements change, what limits stop, what is refused.

#[path = "support/database.rs"]
mod support;

use std::sync::Arc;
use std::time::Duration;

use influxql::{Params, parse_statement};
use model::{Budget, Interrupt};
use query::{Cost, LastRun, QueryLimits, estimate};
use store::reference::ReferenceOptions;
use support::Database;

const LINES: &str = "
cpu,host=a v=1i,w=10 10
cpu,host=a v=2i 20
cpu,host=b v=3i 10
cpu,host=b v=4i 30
mem,host=a x=\"u\" 10
";

fn database() -> Database {
    Database::with_lines(LINES)
}

#[test]
fn delete_removes_rows_of_matching_series_in_a_range() {
    let db = database();
    assert_eq!(db.short("DELETE FROM cpu WHERE host = 'b' AND time > 10"), "");
    assert_eq!(db.short("SELECT v FROM cpu"), "cpu: time v\n10 1\n10 3\n20 2");
    assert_eq!(db.short("DELETE WHERE time <= 10"), "");
    assert_eq!(db.short("SHOW SERIES"), ": key\n\"cpu,host=a\"");
    assert_eq!(db.short("DELETE FROM nosuch"), "");
    assert_eq!(db.short("DELETE FROM /c.u/"), "");
    assert_eq!(db.short("SHOW MEASUREMENTS"), "");
}

#[test]
fn dropping_series_refuses_fields() {
    let db = database();
    let refused = "error: shard 1: fields not supported in WHERE clause during deletion";
    assert_eq!(db.short("DROP SERIES WHERE x = 'u'"), refused);
    assert_eq!(db.short("DROP SERIES FROM cpu WHERE v > 1"), refused);
    assert_eq!(
        db.short("DROP SERIES FROM cpu WHERE time > 5"),
        "error: DROP SERIES doesn't support time in WHERE clause"
    );
    assert_eq!(db.short("SELECT count(v) FROM cpu"), "cpu: time count\n0 4");
}

#[test]
fn dropping_a_measurement_forgets_its_types() {
    let db = database();
    assert_eq!(db.short("DROP SERIES FROM cpu WHERE host = 'a'"), "");
    assert_eq!(db.short("SHOW SERIES FROM cpu"), ": key\n\"cpu,host=b\"");
    assert_eq!(db.short("DROP MEASUREMENT cpu"), "");
    assert_eq!(db.short("DROP MEASUREMENT cpu"), "");
    assert_eq!(db.short("SHOW FIELD KEYS FROM cpu"), "");
    db.write("cpu v=\"text\" 1");
    assert_eq!(db.short("SELECT v FROM cpu"), "cpu: time v\n1 \"text\"");
}

#[test]
fn databases_and_policies_are_defined() {
    let db = database();
    for statement in [
        "CREATE DATABASE d WITH DURATION 48h NAME p",
        "CREATE RETENTION POLICY q ON d DURATION INF REPLICATION 1 DEFAULT",
        "ALTER RETENTION POLICY p ON d DURATION 72h",
    ] {
        assert_eq!(db.short(statement), "");
    }
    assert_eq!(
        db.short("SHOW RETENTION POLICIES ON d"),
        ": name duration shardGroupDuration replicaN default\n\
         \"p\" \"72h0m0s\" \"24h0m0s\" 1 false\n\"q\" \"0s\" \"168h0m0s\" 1 true"
    );
    assert_eq!(db.short("SELECT v FROM d.nosuch.m"), "error: retention policy not found: nosuch");
    assert_eq!(db.short("DROP RETENTION POLICY q ON d"), "");
    assert_eq!(db.short("SELECT v FROM d..m"), "error: retention policy not found: q");
    assert_eq!(db.short("DROP DATABASE d"), "");
    assert_eq!(db.short("SHOW DATABASES"), "databases: name\n\"t\"");
    assert_eq!(db.short("DROP DATABASE t"), "");
    assert_eq!(
        db.json("SHOW DATABASES"),
        r#"{"statement_id":0,"series":[{"name":"databases","columns":["name"]}]}"#
    );
    assert_eq!(db.short("SELECT v FROM cpu"), "error: database not found: t");
}

#[test]
fn nothing_changes_where_it_must_not() {
    let mut db = database();
    db.context.read_only = true;
    for statement in [
        "DELETE FROM cpu",
        "DROP SERIES FROM cpu",
        "DROP MEASUREMENT cpu",
        "CREATE DATABASE x",
        "DROP DATABASE t",
        "SELECT v INTO x FROM cpu",
        "CREATE CONTINUOUS QUERY q ON t BEGIN SELECT v INTO x FROM cpu END",
        "DROP RETENTION POLICY autogen ON t",
        "DROP SHARD 1",
    ] {
        assert_eq!(db.short(statement), "error: the server is read-only", "{statement}");
    }
    assert_eq!(db.short("SELECT count(v) FROM cpu"), "cpu: time count\n0 4");
}

#[test]
fn what_is_not_executed_is_refused_by_name() {
    let db = database();
    for (statement, name) in [
        ("KILL QUERY 1 ON \"host\"", "KILL QUERY on another host"),
        ("SHOW STATS", "SHOW STATS outside of a server"),
    ] {
        assert_eq!(db.short(statement), format!("error: {name} is not supported yet"));
    }
}

#[test]
fn shards_are_shown_and_dropped() {
    let db = database();
    db.short("CREATE RETENTION POLICY day ON t DURATION 20000d REPLICATION 1 SHARD DURATION 1d");
    db.short("SELECT v INTO t.day.copy FROM cpu WHERE time = 30");
    let week = "1969-12-29T00:00:00Z 1970-01-05T00:00:00Z 1970-01-05T00:00:00Z";
    let day = "1970-01-01T00:00:00Z 1970-01-02T00:00:00Z 2024-10-05T00:00:00Z";
    assert_eq!(
        db.short("SHOW SHARDS"),
        format!(
            "t: id database retention_policy shard_group start_time end_time expiry_time owners\n\
             1 \"t\" \"autogen\" 1 {}\n2 \"t\" \"day\" 2 {}",
            quoted(week) + " \"\"",
            quoted(day) + " \"\""
        )
    );
    assert_eq!(db.short("DROP SHARD 7"), "");
    assert_eq!(db.short("DROP SHARD 1"), "");
    assert_eq!(
        db.short("SHOW SHARD GROUPS"),
        format!(
            "shard groups: id database retention_policy start_time end_time expiry_time\n\
             2 \"t\" \"day\" {}",
            quoted(day)
        )
    );
    assert_eq!(db.short("SELECT v FROM cpu"), "");
    assert_eq!(db.short("SELECT v FROM t.day.copy"), "copy: time v\n30 4");
}

fn quoted(words: &str) -> String {
    let words: Vec<String> = words.split(' ').map(|word| format!("\"{word}\"")).collect();
    words.join(" ")
}

#[test]
fn rows_of_an_answer_go_into_other_measurements() {
    let db = database();
    let written = |count| format!("result: time written\n0 {count}");
    assert_eq!(db.short("SELECT v AS x, w INTO copy FROM cpu GROUP BY *"), written(4));
    assert_eq!(
        db.short("SELECT * FROM copy GROUP BY *"),
        "copy,host=a: time w x\n10 10 1\n20 null 2\ncopy,host=b: time w x\n10 null 3\n30 null 4"
    );
    // Without GROUP BY a tag becomes a field; a function without points gives no row.
    assert_eq!(db.short("SELECT v, host INTO t.autogen.flat FROM cpu LIMIT 1"), written(1));
    assert_eq!(db.short("SHOW TAG KEYS FROM flat"), "");
    let sums = "SELECT sum(v) INTO sums FROM cpu WHERE time >= 0 AND time < 50 GROUP BY time(10ns)";
    assert_eq!(db.short(sums), written(3));
    assert_eq!(db.short("SELECT * FROM sums"), "sums: time sum\n10 4\n20 2\n30 4");
    assert_eq!(db.short("SELECT v INTO :MEASUREMENT FROM cpu").split(':').next(), Some("error"));
    assert_eq!(db.short("SELECT x INTO other FROM nothing"), written(0));
    assert_eq!(
        db.short("SELECT w INTO sums FROM cpu"),
        written(1),
        "another field of the same measurement"
    );
    assert!(db.short("SELECT host AS sum, v INTO sums FROM cpu").starts_with(
        "error: partial write: field type conflict: input field \"sum\" on measurement \"sums\""
    ));
    assert_eq!(db.short("SELECT v INTO no..x FROM cpu"), "error: database not found: no");
}

#[test]
fn many_rows_are_written_in_parts() {
    let db = Database::new(ReferenceOptions::default());
    let lines: Vec<String> = (0..12_000).map(|t| format!("m,h={} v={t}i {t}", t % 7)).collect();
    db.write(&lines.join("\n"));
    assert_eq!(db.short("SELECT v INTO n FROM m GROUP BY h"), "result: time written\n0 12000");
    assert_eq!(
        db.short("SELECT count(v), sum(v) FROM n"),
        db.short("SELECT count(v), sum(v) FROM m").replace("m:", "n:")
    );
}

#[test]
fn continuous_queries_are_kept_with_complete_names() {
    let db = database();
    let create =
        "CREATE CONTINUOUS QUERY q ON t BEGIN SELECT mean(v) INTO x FROM cpu GROUP BY time(1h) END";
    assert_eq!(db.short(create), "");
    assert_eq!(db.short(create), "");
    assert_eq!(
        db.short("SHOW CONTINUOUS QUERIES"),
        "t: name query\n\"q\" \"CREATE CONTINUOUS QUERY q ON t BEGIN SELECT mean(v) INTO \
         t.autogen.x FROM t.autogen.cpu GROUP BY time(1h) END\""
    );
    assert_eq!(db.short(&create.replace("1h", "2h")), "error: continuous query already exists");
    assert_eq!(db.short("DROP CONTINUOUS QUERY q ON t"), "");
    assert_eq!(db.short("DROP CONTINUOUS QUERY q ON t"), "");
    assert_eq!(db.short("SHOW CONTINUOUS QUERIES"), "t: name query");
}

#[test]
fn continuous_queries_are_run_over_the_past() {
    const MINUTE: i64 = 60_000_000_000;
    let db = Database::with_lines("");
    let line =
        |n: i64| format!("cpu,host={} v={n}i {}\n", if n % 2 == 0 { "a" } else { "b" }, n * MINUTE);
    db.write(&(0..600).map(line).collect::<String>());
    let create = |name: &str, select: &str| {
        let text = format!("CREATE CONTINUOUS QUERY {name} ON t BEGIN {select} END");
        assert_eq!(db.short(&text), "");
    };
    create("q", "SELECT sum(v) INTO sums FROM cpu GROUP BY time(1h), host");
    let run = |rest: &str| db.short(&format!("RUN CONTINUOUS QUERY {rest}"));
    assert_eq!(
        run("q ON t WHERE time >= '1970-01-01T01:30:00Z' AND time < 3h"),
        "result: start end written\n\"1970-01-01T01:00:00Z\" \"1970-01-01T03:00:00Z\" 4"
    );
    let by_hand =
        "SELECT sum(v) AS sum FROM cpu WHERE time >= 1h AND time < 3h GROUP BY time(1h), host";
    assert_eq!(
        db.short("SELECT sum FROM sums GROUP BY host").replace("sums", "cpu"),
        db.short(by_hand)
    );
    // From the first row to the last window that has ended.
    assert_eq!(run("q ON t"), "result: start end written\n\"\" \"2001-09-09T01:00:00Z\" 20");
    assert_eq!(db.short("SELECT count(sum) FROM sums"), "sums: time count\n0 20");
    assert_eq!(run("q ON t WHERE time > now()"), "result: start end written\n\"\" \"\" 0");

    let refused = |rest: &str, why: &str| assert_eq!(run(rest), format!("error: {why}"));
    refused("q ON nosuch", "database not found: nosuch");
    refused("nosuch ON t", "continuous query not found: nosuch");
    refused(
        "q ON t WHERE host = 'a' AND time > 5",
        "RUN CONTINUOUS QUERY takes times alone in WHERE, not host = 'a'",
    );
    create("raw", "SELECT v INTO x FROM cpu");
    refused(
        "raw ON t",
        "continuous query raw has no GROUP BY time(): there are no windows to run it over",
    );
    create("typed", "SELECT sum(v) AS s INTO typed FROM cpu GROUP BY time(1h)");
    db.write("typed s=\"text\" 5");
    let failed = run("typed ON t");
    assert!(failed.starts_with("error: partial write: field type conflict"), "{failed}");
}

#[test]
fn the_status_of_continuous_queries_is_shown() {
    let db = database();
    assert_eq!(db.short("SHOW CONTINUOUS QUERY STATUS"), "");
    let resample = "RESAMPLE EVERY 10m FOR 2h";
    for (name, resample, select) in [
        ("q", resample, "SELECT sum(v) INTO sums FROM cpu GROUP BY time(1h)"),
        ("raw", "", "SELECT v INTO x FROM cpu"),
    ] {
        let text = format!("CREATE CONTINUOUS QUERY {name} ON t {resample} BEGIN {select} END");
        assert_eq!(db.short(&text), "");
    }
    let columns = "t: name every for runs failures last_run last_start last_end last_written \
                   last_duration last_error next_run";
    let raw = r#""raw" "" "" 0 0 "" "" "" 0 "" "never run: it has no GROUP BY time()" """#;
    let q = r#""q" "10m0s" "2h0m0s" 0 0 "" "" "" 0 "" "" """#;
    assert_eq!(db.short("SHOW CONTINUOUS QUERY STATUS"), format!("{columns}\n{q}\n{raw}"));

    let id = db.context.catalog.snapshot().database("t").unwrap().id;
    let last = |outcome| LastRun {
        at_ns: 7_500_000_000_000,
        start_ns: Some(0),
        end_ns: 7_200_000_000_000,
        took: Duration::from_millis(3),
        outcome,
    };
    let status = &db.context.continuous;
    status.due(id, &"q".into(), 8_000_000_000_000);
    status.ran(id, &"q".into(), last(Err("no room".to_owned())));
    let times = r#""1970-01-01T02:05:00Z" "1970-01-01T00:00:00Z" "1970-01-01T02:00:00Z""#;
    let next = r#""1970-01-01T02:13:20Z""#;
    assert_eq!(
        db.short("SHOW CONTINUOUS QUERY STATUS LIMIT 1"),
        format!("{columns}\n\"q\" \"10m0s\" \"2h0m0s\" 1 1 {times} 0 \"3ms\" \"no room\" {next}")
    );
    status.ran(id, &"q".into(), last(Ok(12)));
    assert_eq!(
        db.short("SHOW CONTINUOUS QUERY STATUS LIMIT 1"),
        format!("{columns}\n\"q\" \"10m0s\" \"2h0m0s\" 2 1 {times} 12 \"3ms\" \"\" {next}")
    );
    status.retain(|_, _| false);
    assert_eq!(db.short("SHOW CONTINUOUS QUERY STATUS LIMIT 1"), format!("{columns}\n{q}"));
}

#[test]
fn running_queries_are_shown_and_killed() {
    let db = database();
    assert_eq!(db.short("KILL QUERY 7"), "error: no such query id: 7");
    let statements = influxql::parse_query("SELECT v FROM cpu", &Params::new()).unwrap().statements;
    let interrupt = Interrupt::new();
    let place =
        db.context.queries.enter(statements.into(), Some("t".to_owned()), interrupt.clone());
    let shown = db.short("SHOW QUERIES");
    assert!(
        shown.starts_with(": qid query database duration status\n1 \"SELECT v FROM cpu\""),
        "{shown}"
    );
    assert_eq!(db.short("KILL QUERY 1"), "");
    assert!(interrupt.check().is_err());
    assert!(db.short("SHOW QUERIES").ends_with("\"killed\""));
    drop(place);
    assert_eq!(db.short("SHOW QUERIES"), "");
}

#[test]
fn a_forecast_of_more_points_than_memory_holds_is_refused() {
    let mut db = database();
    db.context.budget = Budget::new("test", 16 << 20);
    let forecast = |count: u64| {
        db.short(&format!(
            "SELECT holt_winters(mean(v), {count}, 0) FROM cpu WHERE time >= 0 AND time < 50 GROUP BY time(10ns)"
        ))
    };
    assert_eq!(forecast(100).lines().count(), 101);
    assert!(forecast(1_000_000_000_000).starts_with("error: test limit exceeded"));
}

#[test]
fn groups_with_a_row_each_are_as_those_with_many() {
    let db = Database::with_lines(
        "t,host=a,dc=x v=1i 10\nt,host=a,dc=x v=7i 30\nt,host=b,dc=y v=3i,w=0.5 20\n\
         t,host=b,dc=y w=1.5 40\nt,host=c,dc=x w=2.5,s=\"u\" 10\nt,host=d,dc=y b=true 50",
    );
    for what in [
        "mean(v)",
        "max(v)",
        "max(v), w",
        "min(w), host",
        "mean(v), max(w), count(s)",
        "last(v), mean(w)",
        "first(s)",
        "count(v) / sum(w)",
        "sum(v) + 1, spread(w), count(nosuch)",
        "max(w), min(v), count(b)",
    ] {
        for from in ["t WHERE time > 5", "t", "t WHERE v > 2 OR w > 1"] {
            for groups in
                ["", " GROUP BY host", " GROUP BY dc", " GROUP BY *", " GROUP BY host SLIMIT 2"]
            {
                // With a LIMIT groups are not taken together.
                let question = format!("SELECT {what} FROM {from}{groups}");
                let limited = question.replace(" SLIMIT", " LIMIT 3 SLIMIT");
                let limited =
                    if limited == question { format!("{question} LIMIT 3") } else { limited };
                assert_eq!(db.short(&question), db.short(&limited), "{question}");
            }
        }
    }
    for (outer, inner) in [
        ("sum(m), count(m)", "max(v) AS m"),
        ("top(m, host, 2)", "mean(w) AS m"),
        ("m, n", "max(v) AS m, min(w) AS n"),
        ("mean(m)", "mean(v) * 2 AS m, count(s)"),
    ] {
        let ask = |limit: &str| {
            db.short(&format!("SELECT {outer} FROM (SELECT {inner} FROM t GROUP BY host{limit})"))
        };
        assert_eq!(ask(""), ask(" LIMIT 3"), "{outer} of {inner}");
        assert!(ask("").contains("t: time"), "{outer} of {inner}");
    }
}

#[test]
fn configured_limits_stop_queries() {
    let mut db = database();
    db.context.limits = QueryLimits { max_select_series: 1, ..QueryLimits::default() };
    assert_eq!(db.short("SELECT v FROM cpu"), "error: max-select-series limit exceeded: (2/1)");
    assert_eq!(db.short("SELECT v FROM cpu WHERE host = 'a' LIMIT 1"), "cpu: time v\n10 1");
    db.context.limits = QueryLimits { max_select_buckets: 5, ..QueryLimits::default() };
    assert_eq!(
        db.short("SELECT mean(v) FROM cpu WHERE time >= 0 AND time < 250 GROUP BY time(10ns)"),
        "error: max-select-buckets limit exceeded: (25/5)"
    );
    db.context.limits = QueryLimits { max_select_point: 3, ..QueryLimits::default() };
    assert_eq!(db.short("SELECT v FROM cpu"), "error: max-select-point limit exceeed: (4/3)");
}

#[test]
fn memory_is_bounded_by_the_budget() {
    let mut db = Database::new(ReferenceOptions::default());
    let lines: Vec<String> = (0..5000).map(|t| format!("m,h={} v={t}i {t}", t % 7)).collect();
    db.write(&lines.join("\n"));
    db.context.budget = Budget::new("query-memory", 20_000);
    let error = db.short("SELECT median(v) FROM m");
    assert!(error.starts_with("error: query-memory limit exceeded"), "{error}");
    let error = db.short("SELECT max(x) FROM (SELECT mean(v) AS x FROM m GROUP BY time(1ns))");
    assert!(error.starts_with("error: query-memory limit exceeded"), "{error}");
    assert_eq!(db.context.budget.used_bytes(), 0, "everything was given back");
    db.context.budget = Budget::new("query-memory", 4 << 20);
    assert_eq!(db.short("SELECT median(v) FROM m"), "m: time median\n0 2499.5");
    assert_eq!(db.context.budget.used_bytes(), 0, "everything was given back");
}

#[test]
fn an_endless_fill_is_stopped_from_outside() {
    let mut db = database();
    db.context.batch_rows = 1000;
    db.context.interrupt = Interrupt::new();
    let statement = "SELECT mean(v) FROM cpu WHERE time >= 0 GROUP BY time(1ns)";
    let statement = parse_statement(statement, &Params::new()).unwrap();
    let mut answer = query::execute(&statement, &db.context).unwrap();
    for _ in 0..20 {
        let batch = answer.next().unwrap().unwrap();
        assert_eq!((batch.rows.len(), batch.continues), (1000, true));
    }
    db.context.interrupt.cancel();
    let error = (0..3).find_map(|_| answer.next().err()).expect("it must stop");
    assert_eq!(error.to_string(), "query interrupted");
}

#[test]
fn long_conditions_are_no_burden() {
    let db = database();
    let mut terms: Vec<String> = (0..100_000).map(|n| format!("host = 'h{n}'")).collect();
    terms.push("host = 'a'".to_owned());
    let condition = terms.join(" OR ");
    assert_eq!(
        db.short(&format!("SELECT count(v) FROM cpu WHERE {condition}")),
        "cpu: time count\n0 2"
    );
    let condition = terms.join(" OR v = 99 OR ");
    assert_eq!(
        db.short(&format!("SELECT count(v) FROM cpu WHERE time > 0 AND ({condition})")),
        "cpu: time count\n1 2"
    );
    let nested =
        (0..30).fold("SELECT v FROM cpu".to_owned(), |q, _| format!("SELECT v FROM ({q})"));
    assert_eq!(db.short(&format!("SELECT sum(v) FROM ({nested})")), "cpu: time sum\n0 10");
}

#[test]
fn explain_says_what_is_read() {
    let db = database();
    let plan =
        db.short("EXPLAIN SELECT mean(v) FROM cpu WHERE host = 'a' AND w > 3 GROUP BY time(1m)");
    for line in
        ["EXPRESSION: mean(v)", "MEASUREMENT: cpu", "host = 'a'", "SUMMARIES: no", "w Greater"]
    {
        assert!(plan.contains(line), "{line} in {plan}");
    }
    let plan =
        db.short("EXPLAIN SELECT difference(derivative(max(v), 1s)) FROM cpu GROUP BY time(1m)");
    assert!(plan.contains("EXPRESSION: difference(derivative(max(v)))"), "{plan}");
    let run = db.short("EXPLAIN ANALYZE SELECT v FROM cpu");
    for line in [": EXPLAIN ANALYZE", "RESULT ROWS: 4", "NUMBER OF SERIES: 2", "ROWS READ: 4"] {
        assert!(run.contains(line), "{line} in {run}");
    }
}

#[test]
fn cost_follows_the_rows() {
    let mut db = Database::new(ReferenceOptions::default());
    let lines: Vec<String> = (0..30_000).map(|t| format!("m,h={} v={t}i,w=1 {t}", t % 3)).collect();
    db.write(&lines.join("\n"));
    db.context.threads = 2;
    let cost = |statement: &str| {
        let statement = parse_statement(statement, &Params::new()).unwrap();
        estimate(&statement, &db.context).unwrap()
    };
    assert_eq!(cost("SELECT v FROM m"), Cost::Light);
    assert_eq!(cost("SHOW DATABASES"), Cost::Light);
    let wide: Vec<String> = (0..40).map(|n| format!("percentile(v, {n})")).collect();
    let wide = format!("SELECT {} FROM m", wide.join(", "));
    assert_eq!(cost(&wide), Cost::Heavy);
    assert_eq!(cost(&format!("SELECT * FROM ({wide})")), Cost::Heavy);
    assert_eq!(cost("SELECT * FROM m LIMIT 3"), Cost::Light);
    let shared = Arc::strong_count(&db.context.store);
    assert_eq!(cost(&wide), Cost::Heavy);
    assert_eq!(Arc::strong_count(&db.context.store), shared, "an estimate keeps nothing");
}

#[test]
fn names_of_series_at_some_time_are_in_order() {
    let db = database();
    // Values that others begin with, with bytes that come before a comma; series without a tag.
    let values = ["v1", "v10", "v1-", "v1!", "ü", "v1~"];
    let keys = values.iter().flat_map(|a| values.iter().map(move |b| (a, b)));
    let mut lines: Vec<String> = Vec::new();
    for (at, (a, b)) in keys.enumerate() {
        lines.push(format!("all,a={a},b={b} v=1 {at}"));
        lines.push(format!("some,a={a} v=1 {at}"));
        if at % 3 > 0 {
            lines.push(format!("some,a={a},b={b} v=1 {at}"));
        }
    }
    lines.push("plain,a=v1,b=w v=1 1\nplain,a=v10,b=w v=1 1\nplain,a=v1,b=w-1 v=1 1".into());
    db.write(&lines.join("\n"));
    for measurement in ["all", "some", "plain"] {
        for what in ["SERIES FROM", "TAG KEYS FROM", "TAG VALUES FROM"] {
            let keys = if what == "TAG VALUES FROM" { " WITH KEY IN (a, b)" } else { "" };
            let statement = format!("SHOW {what} {measurement}{keys}");
            let at_some_time = db.short(&format!("{statement} WHERE time > 0 AND time < 1000"));
            assert_eq!(at_some_time, db.short(&statement), "{statement}");
        }
    }
}
