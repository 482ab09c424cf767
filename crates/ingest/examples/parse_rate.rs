//! Parses TSBS-shaped lines over and over and prints the rate.
#![allow(clippy::print_stdout, clippy::disallowed_methods, clippy::unwrap_used, missing_docs)]

use std::fmt::Write as _;
use std::time::Instant;

use ingest::line_protocol::{LineParser, ParseOptions, Precision};

fn main() {
    let mut text = String::new();
    let mut seed = 1u64;
    for row in 0..10_000u64 {
        let host = row % 100;
        write!(text, "cpu,hostname=host_{host},region=eu-central-1,datacenter=eu-central-1a,rack=6,os=Ubuntu15.10,arch=x86,team=SF,service=19,service_version=1,service_environment=test ").unwrap();
        for name in [
            "usage_user",
            "usage_system",
            "usage_idle",
            "usage_nice",
            "usage_iowait",
            "usage_irq",
            "usage_softirq",
            "usage_steal",
            "usage_guest",
            "usage_guest_nice",
        ] {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            write!(text, "{name}={}i,", (seed >> 33) % 100).unwrap();
        }
        text.pop();
        writeln!(text, " {}", 1_451_606_400_000_000_000 + row / 100 * 10_000_000_000).unwrap();
    }
    let options = ParseOptions { precision: Precision::Nanosecond, default_time_ns: 0 };
    let mut parser = LineParser::new();
    let rounds = 300;
    for _ in 0..5 {
        let start = Instant::now();
        let mut values = 0;
        for _ in 0..rounds {
            let parsed = parser.parse(text.as_bytes(), &options);
            values += parsed.batch.values.len();
            parser.recycle(parsed.batch);
        }
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{:.1} M values/s, {:.2} GB/s, {:.1} ns a value",
            values as f64 / seconds / 1e6,
            (text.len() * rounds) as f64 / seconds / 1e9,
            seconds / values as f64 * 1e9
        );
    }
}
