//! A statement over a small database: the answer does not depend on the way it is found.

#![no_main]

#[path = "../../crates/query/tests/support/database.rs"]
mod database;

use database::Database;
use influxql::{Params, Statement, parse_query};
use model::Budget;
use query::{QueryLimits, QueryTuning};
use store::reference::{ReferenceOptions, SummaryMode};

const LINES: &str = r#"
m,h=a i=7i,j=2i,f=1.5,s="x",b=true,u=5u 10
m,h=a i=3i,f=2.5,b=false 20
m,h=a i=4i,s="y",u=18446744073709551615u 30
m,h=b i=1i,j=5i,f=9.5,s="z",b=true 10
m,h=b i=-9223372036854775808i,j=9223372036854775807i 40
n,h=a v=1 10
n,h=c v=2,w="k" 20
o,h=a,r=x x=1 -9223372036854775806
o,h=a x=1e308 20
o,r=y x=-1e308,y=0 9223372036854775806
"#;

thread_local! {
    /// The same rows twice, to be read in ways as different as can be.
    static DATABASES: (Database, Database) = (plain(), awkward());
}

fn limited(mut database: Database) -> Database {
    database.write(LINES);
    let context = &mut database.context;
    context.limits = QueryLimits { max_select_buckets: 500, ..QueryLimits::default() };
    // Windows without an upper bound end now: not too many of them after the rows.
    context.now_ns = 20_000;
    context.read_only = true;
    context.budget = Budget::new("query-memory-limit", 64 << 20);
    database
}

fn plain() -> Database {
    limited(Database::new(ReferenceOptions::default()))
}

/// Everything in the smallest pieces there are.
fn awkward() -> Database {
    let (item_rows, summaries) = (1, SummaryMode::Mixed);
    let options = ReferenceOptions { item_rows, summaries, filters: true, rows_per_series: true };
    let mut database = limited(Database::new(options));
    database.context.threads = 2;
    database.context.batch_rows = 2;
    database.context.tuning = QueryTuning {
        parallel_cells: 1,
        gather_rows: 2,
        first_slice_rows: 1,
        grid_slots: 2,
        state_bytes: 64,
    };
    database
}

/// Statements that read, and say the same whatever way they are executed.
fn is_comparable(statement: &Statement) -> bool {
    match statement {
        Statement::Select(select) => select.into.is_none(),
        Statement::ShowDatabases
        | Statement::ShowRetentionPolicies { .. }
        | Statement::ShowMeasurements(_)
        | Statement::ShowSeries(_)
        | Statement::ShowTagKeys(_)
        | Statement::ShowTagValues(_)
        | Statement::ShowFieldKeys(_)
        | Statement::ShowCardinality(_) => true,
        _ => false,
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let Ok(parsed) = parse_query(&text, &Params::new()) else { return };
    DATABASES.with(|(plain, awkward)| {
        for statement in &parsed.statements {
            let text = statement.to_string();
            if !is_comparable(statement) {
                // What changes something is refused, and what explains must not fall over.
                let _ = plain.short(&text);
                continue;
            }
            // Each statement starts with a full budget.
            assert_eq!(plain.context.budget.used_bytes(), 0, "BUG: a budget leaks");
            let (want, got) = (plain.short(&text), awkward.short(&text));
            if want != got && !is_limit(&want) && !is_limit(&got) {
                panic!("BUG: {text}\nin one way:\n{want}\nin another:\n{got}");
            }
        }
    });
});

/// Whether an answer says that a limit was met: how soon that is depends on the way.
fn is_limit(answer: &str) -> bool {
    answer.starts_with("error: ") && answer.contains("limit")
}
