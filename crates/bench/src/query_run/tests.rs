use super::*;
use crate::fake_server;

const DATA: &str = r#"{"results":[{"statement_id":0,"series":[{"name":"cpu"}]}]}"#;

fn options(url: String, dialect: Dialect) -> QueryOptions {
    QueryOptions {
        url,
        dialect,
        workers: 3,
        duration: Duration::from_secs(60),
        queries_max: 50,
        repeated: false,
        seed: 1,
        pid: Some(std::process::id()),
    }
}

fn influxql() -> Dialect {
    Dialect::InfluxQl { db: "x".to_owned() }
}

#[test]
fn queries_are_counted_and_differ_unless_repeated() {
    for repeated in [false, true] {
        let targets = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let seen = std::sync::Arc::clone(&targets);
        let url = fake_server::start(move |request| {
            seen.lock().unwrap().push(request.target.clone());
            (200, DATA.to_owned())
        });
        let options = QueryOptions { repeated, ..options(url, influxql()) };
        let query_type = QueryType::SingleGroupby { fields: 1, hosts: 1, hours: 1 };
        let report = run(query_type, &Spec::cpu_only(10, 24), &options).unwrap().unwrap();
        assert_eq!((report.latencies.count(), report.empty), (50, 0));
        assert_eq!(report.bytes, 50 * DATA.len() as u64);
        let mut targets = targets.lock().unwrap().clone();
        assert!(targets[0].starts_with("/query?db=x&epoch=ns&q=SELECT%20max%28usage_user%29"));
        targets.sort_unstable();
        targets.dedup();
        assert_eq!(targets.len() == 1, repeated, "{}", targets.len());
    }
}

#[test]
fn errors_and_missing_data_are_noticed() {
    let data = Spec::cpu_only(10, 24);
    let ask = |status: u16, body: &'static str, dialect: Dialect| {
        let url = fake_server::start(move |_| (status, body.to_owned()));
        run(QueryType::DoubleGroupby { fields: 1 }, &data, &options(url, dialect))
    };
    assert!(ask(200, r#"{"results":[{"statement_id":0,"error":"x"}]}"#, influxql()).is_err());
    assert!(ask(500, DATA, influxql()).is_err());
    let empty = "{\"results\":[{\"statement_id\":0}]}\n";
    assert_eq!(ask(200, empty, influxql()).unwrap().unwrap().empty, 50);
    let empty = r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#;
    assert_eq!(ask(200, empty, Dialect::PromQl).unwrap().unwrap().empty, 50);
    let url = fake_server::start(|_| (200, String::new()));
    assert!(run(QueryType::LastPoint, &data, &options(url, Dialect::PromQl)).unwrap().is_none());
}

#[test]
fn two_runs_count_as_one() {
    let report = |ms: u64, cpu_seconds| {
        let mut latencies = Latencies::default();
        latencies.record(Duration::from_millis(ms));
        QueryReport {
            seconds: 0.5,
            latencies,
            bytes: 7,
            empty: 1,
            cpu_seconds,
            resident_bytes: Some(ms),
        }
    };
    let both = QueryReport::after(Some(report(1, Some(2.0))), report(9, Some(3.0)));
    assert_eq!((both.latencies.count(), both.bytes, both.empty), (2, 14, 2));
    assert_eq!((both.rate(), both.cpu_us_per_query()), (2.0, Some(2.5e6)));
    assert_eq!((both.resident_bytes, both.latencies.quantile_ms(1.0).round()), (Some(9), 9.0));
    let unknown = QueryReport::after(Some(report(1, None)), report(1, Some(1.0)));
    assert_eq!(unknown.cpu_seconds, None);
    assert_eq!(QueryReport::after(None, report(5, None)).latencies.count(), 1);
}
