//! Parses, prints and splits typical queries over and over and prints the time of each.
#![allow(clippy::print_stdout, clippy::disallowed_methods, missing_docs)]

use std::hint::black_box;
use std::time::Instant;

use influxql::{Params, Statement, Utc, parse_query, split_condition};

const QUERIES: [(&str, &str); 4] = [
    ("short", "SELECT usage_user FROM cpu LIMIT 10"),
    (
        "dashboard",
        "SELECT mean(\"usage_user\") FROM \"telegraf\".\"autogen\".\"cpu\" WHERE (\"host\" = 'host_1' OR \"host\" = 'host_2') \
         AND time >= now() - 6h AND time <= now() GROUP BY time(1m), \"host\" fill(null)",
    ),
    (
        "wide",
        "SELECT max(usage_user), max(usage_system), max(usage_idle), max(usage_nice), max(usage_iowait), max(usage_irq), \
         max(usage_softirq), max(usage_steal), max(usage_guest), max(usage_guest_nice) FROM cpu WHERE hostname = 'host_249' \
         AND time >= '2016-01-01T00:00:00Z' AND time < '2016-01-01T08:00:00Z' GROUP BY time(1h)",
    ),
    (
        "metadata",
        "SHOW TAG VALUES ON db FROM cpu WITH KEY IN (host, region) WHERE host =~ /web-.*/ LIMIT 100",
    ),
];

/// The least time of one call in ns.
fn best_ns(mut run: impl FnMut()) -> f64 {
    const CALLS: u32 = 20_000;
    (0..10)
        .map(|_| {
            let start = Instant::now();
            (0..CALLS).for_each(|_| run());
            start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
        })
        .fold(f64::INFINITY, f64::min)
}

fn main() {
    let params = Params::new();
    for (name, text) in QUERIES {
        let parse_ns = best_ns(|| drop(black_box(parse_query(black_box(text), &params))));
        let query = parse_query(text, &params).expect("valid");
        let print_ns = best_ns(|| drop(black_box(query.to_string())));
        print!(
            "{name:10} {:4} bytes: parse {parse_ns:5.0} ns, print {print_ns:5.0} ns",
            text.len()
        );
        if let Statement::Select(select) = &query.statements[0]
            && let Some(condition) = &select.condition
        {
            let split_ns = best_ns(|| drop(black_box(split_condition(condition, 0, &Utc))));
            print!(", split {split_ns:5.0} ns");
        }
        println!();
    }
    let terms: Vec<String> = (0..100_000).map(|i| format!("host = 'h{i}'")).collect();
    let text = format!("SELECT a FROM m WHERE {}", terms.join(" OR "));
    let start = Instant::now();
    let query = parse_query(&text, &params).expect("valid");
    println!("100,000 terms: parse {:?} ({} statement)", start.elapsed(), query.statements.len());
}
