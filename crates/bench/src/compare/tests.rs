use super::*;
use crate::latency::Latencies;
use crate::workload::Batch;

fn figures(name: &'static str, answer: Option<&str>, asked: bool) -> SystemFigures {
    let mut latencies = Latencies::default();
    latencies.record(Duration::from_millis(2));
    let report = QueryReport {
        seconds: 1.0,
        latencies: latencies.clone(),
        bytes: 100,
        empty: 0,
        cpu_seconds: Some(0.001),
        resident_bytes: None,
    };
    let load = LoadReport {
        sent: Batch { rows: 100, values: 1000 },
        bytes: 30_000,
        seconds: 0.5,
        rows_by_second: vec![50, 50],
        usage_by_second: Vec::new(),
        refused: 0,
        latencies,
        usage: None,
    };
    let answers =
        answer.map(|text| ("lastpoint 1".to_owned(), Json::parse(text.as_bytes()).unwrap()));
    SystemFigures {
        name,
        load_rates: vec![load.rate(), 1_500_000.0],
        load,
        resident_bytes: 5_000_000,
        disk_bytes: 400,
        settle_seconds: 16.0,
        queries: vec![QueryFigures {
            name: "lastpoint".to_owned(),
            workers: 2,
            report: asked.then_some(report),
        }],
        mixed: None,
        answers: answers.into_iter().collect(),
    }
}

fn comparison(systems: Vec<SystemFigures>) -> Comparison {
    let (answers_compared, disagreements) = compare_answers(&systems);
    let data = Spec::cpu_only(100, 72);
    Comparison {
        data,
        systems,
        missing: vec!["x is missing".to_owned()],
        answers_compared,
        disagreements,
    }
}

#[test]
fn the_table_has_a_column_per_system() {
    let text = table(&comparison(vec![
        figures("One", Some("[1.5]"), true),
        figures("Two", None, false),
        figures("Three", Some("[1.5000000000001]"), true),
    ]));
    assert!(text.contains("\n|  | One | Two | Three |\n| --- | --- | --- | --- |\n"), "{text}");
    assert!(text.contains("| all loads, M values/s | 0.0 1.5 | 0.0 1.5 | 0.0 1.5 |"), "{text}");
    assert!(
        text.contains("| bytes on disk per value, settled | 0.400 | 0.400 | 0.400 |"),
        "{text}"
    );
    assert!(
        text.contains(
            "| lastpoint, 2 clients | 1 (2.00 / 2.00, 1000) | - | 1 (2.00 / 2.00, 1000) |"
        ),
        "{text}"
    );
    assert!(text.contains("x is missing") && text.contains("all 1 agree"), "{text}");
}

#[test]
fn different_answers_are_listed() {
    let found =
        comparison(vec![figures("One", Some("[1,2]"), true), figures("Two", Some("[1,3]"), true)]);
    assert_eq!(found.disagreements, ["lastpoint 1: One and Two differ at [1]: expected 2, got 3"]);
    assert!(table(&found).contains("- lastpoint 1: One and Two differ"));
}

#[test]
fn a_line_of_history_is_json() {
    let one = figures("Nyala", None, true);
    let line = history::line(&comparison(vec![one.clone()]), &one, "abc", "2026-01-01T00:00:00Z");
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(value["load_values_per_s"], 2000);
    assert_eq!(value["workload"], "cpu-only");
    assert_eq!(value["queries"][0]["type"], "lastpoint");
    assert_eq!(value["queries"][0]["clients"], 2);
}

#[test]
fn plots_show_every_system() {
    let directory = tempfile::tempdir().unwrap();
    let both = vec![figures("One", None, true), figures("Two", None, true)];
    plots(&comparison(both), directory.path()).unwrap();
    for name in ["load-rows", "query-rate-2", "query-p99-2"] {
        let svg = std::fs::read_to_string(directory.path().join(format!("{name}.svg"))).unwrap();
        assert!(svg.contains(">One</text>") && svg.contains(">Two</text>"), "{name}");
    }
    let rate = std::fs::read_to_string(directory.path().join("query-rate-2.svg")).unwrap();
    assert_eq!(rate.matches("<title>").count(), 2, "{rate}");
}

#[test]
fn the_load_of_median_rate_counts() {
    let load = |seconds| LoadReport { seconds, ..figures("One", None, false).load };
    let seconds = |all: &[f64]| {
        let loads: Vec<LoadReport> = all.iter().copied().map(load).collect();
        loads::median(&loads).map(|load| load.seconds)
    };
    assert_eq!(seconds(&[3.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(seconds(&[1.0, 2.0]), Some(1.0));
    assert_eq!(seconds(&[5.0]), Some(5.0));
    assert_eq!(seconds(&[]), None);
}

#[test]
fn a_remark_that_series_were_put_together_is_no_difference() {
    let read = |text: &str| Json::parse(text.as_bytes()).unwrap();
    let answer =
        r#"{"results":[{"statement_id":0,"series":[{"name":"cpu","values":[[1]]PARTIAL}]},{}]}"#;
    let plain = read(&answer.replace("PARTIAL", ""));
    assert_eq!(without_partial(read(&answer.replace("PARTIAL", r#","partial":true"#))), plain);
    assert_eq!(without_partial(plain.clone()), plain);
    for other in [r#"{"results":[{"partial":true}]}"#, r#"{"results":{}}"#, "[1]"] {
        assert_eq!(without_partial(read(other)), read(other));
    }
}
