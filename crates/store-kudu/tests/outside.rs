//! Programs that know nothing of Nyala but docs/kudu.md read its tables, with Kudu's Java client and
//! with Spark.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]
#![allow(clippy::disallowed_methods, reason = "starts programs, looks for files")]

mod common;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{fresh, one_server};
use model::{DatabaseId, PolicyId, Scalar};
use store::Policy;
use store::testing::{HOUR_NS, Row, read_all, write};
use store_kudu::KuduStore;

const POLICY: Policy =
    Policy { database: DatabaseId(7), id: PolicyId(3), ..store::testing::POLICY };

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples").join(name)
}

fn text(value: &Scalar) -> String {
    match value {
        Scalar::Float(v) => format!("{v:?}"),
        Scalar::Integer(v) => v.to_string(),
        Scalar::Unsigned(v) => v.to_string(),
        Scalar::String(v) => v.to_string(),
        Scalar::Boolean(v) => v.to_string(),
    }
}

/// Key, time and fields of each row as the examples print them, sorted.
fn lines(store: &KuduStore, measurement: &str) -> Vec<String> {
    let line = |row: &Row| {
        let fields: Vec<String> =
            row.fields.iter().map(|(name, value)| format!("{name}={}", text(value))).collect();
        format!("{}\t{}\t{}", row.key, row.time_ns, fields.join(","))
    };
    let mut lines: Vec<String> =
        read_all(store, POLICY, measurement).unwrap().iter().map(line).collect();
    lines.sort_unstable();
    lines
}

/// What a program prints on lines that begin with `prefix`, without it, sorted.
fn run(command: &mut Command, prefix: &str) -> Vec<String> {
    let out = command.output().unwrap();
    let printed = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success(), "{printed}{}", String::from_utf8_lossy(&out.stderr));
    let mut lines: Vec<String> =
        printed.lines().filter_map(|line| line.strip_prefix(prefix)).map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn a_java_program_reads_a_measurement() {
    let home = std::env::var_os("HOME").unwrap_or_default();
    let jars = Path::new(&home).join(".cache/nyala/kudu/java");
    let is_there = jars.join("slf4j-nop-2.0.16.jar").exists(); // The last one installed.
    if !is_there || Command::new("java").arg("-version").output().is_err() {
        // Not with println!, which the test harness keeps to itself where a test passes.
        writeln!(
            std::io::stderr(),
            "\nSKIPPED, NOTHING IS TESTED: a_java_program_reads_a_measurement needs java and {} \
             (cargo xtask packages)\n",
            jars.display()
        )
        .unwrap();
        return;
    }
    let mut options = fresh(one_server());
    options.columns = 4;
    options.tables = 1;
    let store = KuduStore::open(&options).unwrap();
    let row = |name: &str, n: i64| {
        let all = [
            ("time", Scalar::Float(n as f64 + 0.5)),
            ("i", Scalar::Integer(-n)),
            ("u", Scalar::Unsigned(u64::MAX - n.unsigned_abs())),
            ("s", Scalar::String(format!("text \u{e4} {n}").as_str().into())),
            ("true", Scalar::Boolean(n % 2 == 0)),
            ("another", Scalar::Integer(n)),
        ];
        let from = (n % 6) as usize;
        Row::new(&format!("{name},host=h{},path=/", n % 4), &all[from..], n * HOUR_NS / 7)
    };
    // The second and the third share a table.
    for (key, name) in [("disk\\ io", "disk io"), ("mem", "mem"), ("net", "net")] {
        let rows: Vec<Row> = (0..50).map(|n| row(key, n)).collect();
        assert_eq!(write(&store, POLICY, &rows, 0).unwrap().rejected, []);
        if name == "mem" {
            continue;
        }
        let mut java = Command::new("java");
        java.arg("-cp").arg(jars.join("*")).arg(example("ReadMeasurement.java"));
        java.args([&one_server().master_list(), &options.prefix, name]);
        let found = run(&mut java, "7\t3\t");
        assert_eq!(found.len(), 50);
        assert_eq!(found, lines(&store, name));
    }
}

#[test]
#[ignore = "needs Spark: NYALA_SPARK_SUBMIT and NYALA_KUDU_SPARK_JAR name spark-submit and the jar"]
fn spark_reads_a_table() {
    let [submit, jar] = ["NYALA_SPARK_SUBMIT", "NYALA_KUDU_SPARK_JAR"]
        .map(|name| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set")));
    let options = fresh(one_server());
    let store = KuduStore::open(&options).unwrap();
    let row = |n: i64| {
        let fields = [("f", Scalar::Float(n as f64 + 0.5)), ("s", Scalar::String("text".into()))];
        Row::new(&format!("cpu,host=h{}", n % 4), &fields[..1 + (n % 2) as usize], n * HOUR_NS / 7)
    };
    let rows: Vec<Row> = (0..50).map(row).collect();
    assert_eq!(write(&store, POLICY, &rows, 0).unwrap().rejected, []);
    let table = format!("{}.db7.rp3.m1.cpu", options.prefix);
    let mut spark = Command::new(submit);
    spark.args(["--master", "local[1]", "--jars", &jar]).arg(example("read_measurement.py"));
    spark.args([&one_server().master_list(), &table]);
    assert_eq!(run(&mut spark, "row\t"), lines(&store, "cpu"));
}
