//! What queries cost on top of the store: the TSBS-shaped statements over a store that only copies
//! ready columns.
//!
//! `cargo run --release -p query --example speed [HOSTS [PART OF A NAME]]` prints the best of
//! several runs.

use std::sync::Arc;
use std::time::Instant;

use catalog::Catalog;
use influxql::{Params, parse_statement};
use model::{
    Column, ColumnBatch, DatabaseId, FieldType, Interrupt, MeasurementSchema, Name, PolicyId,
    SeriesRun, Strings, TagExpr, TimeRange, Values,
};
use query::{QueryContext, execute};
use store::reference::ReferenceStore;
use store::{
    CatalogDocument, DeleteRequest, ExtentPart, MetadataCursor, MetadataRequest, Metric, Revision,
    Scan, ScanCursor, ScanItem, ScanRequest, ScanSlice, ScanStats, SeriesTable, Store, StoreError,
    SwapOutcome, TagColumn, TimeOrder, WriteOutcome, WriteRequest,
};

const START_NS: i64 = 1_451_606_400_000_000_000;
const STEP_NS: i64 = 10_000_000_000;
const ROWS: i64 = 25_920;
const BATCH_ROWS: i64 = 4096;
const FIELDS: usize = 10;
const HOUR_NS: i64 = 3_600_000_000_000;

/// Hosts that all have the same rows.
#[derive(Debug)]
struct Ready {
    hosts: u32,
    catalog: ReferenceStore,
    values: Arc<Vec<Vec<i64>>>,
}

impl Ready {
    fn new(hosts: u32) -> Self {
        let mut state = 1u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as i64 % 101
        };
        let values = (0..FIELDS).map(|_| (0..ROWS).map(|_| draw()).collect()).collect();
        Self { hosts, catalog: ReferenceStore::new(), values: Arc::new(values) }
    }
}

fn host(number: u32) -> String {
    format!("host_{number:04}")
}

impl Store for Ready {
    fn write(&self, _: &WriteRequest<'_>) -> Result<WriteOutcome, StoreError> {
        Err(StoreError::Unsupported("write"))
    }

    fn scan(&self, request: &ScanRequest) -> Result<Box<dyn Scan>, StoreError> {
        let names: Vec<String> = match &request.series {
            TagExpr::Equals(_, value) => vec![value.to_string()],
            TagExpr::In(_, values) => values.iter().map(ToString::to_string).collect(),
            _ => (0..self.hosts).map(host).collect(),
        };
        let series = names.len() as u32;
        let values: Arc<Strings> = Arc::new(names.iter().map(String::as_str).collect());
        let tag = |key: &Name| match &**key {
            "hostname" => {
                TagColumn { key: key.clone(), codes: (0..series).collect(), values: values.clone() }
            }
            _ => TagColumn {
                key: key.clone(),
                codes: vec![0; series as usize].into(),
                values: Arc::new(["x"].into_iter().collect()),
            },
        };
        let table = SeriesTable::new(series, request.tags.iter().map(tag).collect());
        let field = |(name, _): &(Name, FieldType)| name[1..].parse::<usize>().expect("f0 to f9");
        let fields = request.fields.iter().map(field).collect();
        Ok(Box::new(ReadyScan {
            table,
            fields,
            time: request.time,
            descending: request.order == TimeOrder::Descending,
            values: Arc::clone(&self.values),
        }))
    }

    fn metadata(&self, _: &MetadataRequest) -> Result<Box<dyn MetadataCursor>, StoreError> {
        Err(StoreError::Unsupported("metadata"))
    }

    fn schema(
        &self,
        _: DatabaseId,
        _: &str,
        _: &Interrupt,
    ) -> Result<Option<Arc<MeasurementSchema>>, StoreError> {
        let fields = (0..FIELDS).map(|n| (Name::from(format!("f{n}")), FieldType::Integer));
        let tags = ["arch", "datacenter", "hostname", "os", "rack", "region", "service", "team"];
        Ok(Some(Arc::new(MeasurementSchema {
            fields: fields.collect(),
            tag_keys: tags.into_iter().map(Name::from).collect(),
        })))
    }

    fn revision(&self, _: PolicyId, _: TimeRange) -> Result<Option<Revision>, StoreError> {
        Ok(None)
    }

    fn delete(&self, _: &DeleteRequest) -> Result<(), StoreError> {
        Err(StoreError::Unsupported("delete"))
    }

    fn expire(&self, _: DatabaseId, _: PolicyId, _: i64) -> Result<u64, StoreError> {
        Ok(0)
    }

    fn catalog(&self) -> Result<CatalogDocument, StoreError> {
        self.catalog.catalog()
    }

    fn swap_catalog(&self, expected: u64, bytes: &[u8]) -> Result<SwapOutcome, StoreError> {
        self.catalog.swap_catalog(expected, bytes)
    }

    fn metrics(&self) -> Vec<Metric> {
        Vec::new()
    }

    fn close(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

struct ReadyScan {
    table: SeriesTable,
    fields: Vec<usize>,
    time: TimeRange,
    descending: bool,
    values: Arc<Vec<Vec<i64>>>,
}

/// The rows within `time`, as positions.
fn rows_within(time: TimeRange) -> (i64, i64) {
    let from = (i128::from(time.min) - i128::from(START_NS) + i128::from(STEP_NS) - 1)
        .div_euclid(i128::from(STEP_NS));
    let to = (i128::from(time.max) - i128::from(START_NS)).div_euclid(i128::from(STEP_NS)) + 1;
    let clip = |row: i128| row.clamp(0, i128::from(ROWS)) as i64;
    (clip(from), clip(to).max(clip(from)))
}

impl Scan for ReadyScan {
    fn series(&self) -> &SeriesTable {
        &self.table
    }

    fn extent(&self) -> Vec<ExtentPart> {
        let (from, to) = rows_within(self.time);
        if from == to {
            return Vec::new();
        }
        let time = TimeRange::new(START_NS + from * STEP_NS, START_NS + (to - 1) * STEP_NS);
        vec![ExtentPart { time, rows: (to - from) as u64 * u64::from(self.table.len) }]
    }

    fn open(&self, slice: &ScanSlice) -> Result<Box<dyn ScanCursor>, StoreError> {
        let series = match &slice.series {
            Some(series) => series.to_vec(),
            None => (0..self.table.len).collect(),
        };
        let (from, to) = rows_within(self.time.intersect(&slice.time));
        Ok(Box::new(ReadyCursor {
            fields: self.fields.clone(),
            series,
            at: 0,
            rows: (from, to),
            done: 0,
            descending: self.descending,
            rows_per_series: slice.rows_per_series.unwrap_or(u64::MAX).min(1 << 40) as i64,
            values: Arc::clone(&self.values),
        }))
    }

    fn stats(&self) -> ScanStats {
        ScanStats::default()
    }
}

struct ReadyCursor {
    fields: Vec<usize>,
    series: Vec<u32>,
    at: usize,
    rows: (i64, i64),
    done: i64,
    descending: bool,
    rows_per_series: i64,
    values: Arc<Vec<Vec<i64>>>,
}

impl ScanCursor for ReadyCursor {
    fn next(&mut self) -> Result<Option<ScanItem>, StoreError> {
        let (from, to) = self.rows;
        let total = (to - from).min(self.rows_per_series);
        if self.done == total {
            (self.at, self.done) = (self.at + 1, 0);
        }
        if self.at >= self.series.len() || total == 0 {
            return Ok(None);
        }
        let count = (total - self.done).min(BATCH_ROWS);
        let ascending = from + self.done..from + self.done + count;
        let descending = to - self.done - count..to - self.done;
        let range = if self.descending { descending } else { ascending };
        self.done += count;
        let mut times: Vec<i64> = range.clone().map(|row| START_NS + row * STEP_NS).collect();
        if self.descending {
            times.reverse();
        }
        let mut columns = vec![Column::new(Values::Time(times))];
        for field in &self.fields {
            let mut v = self.values[*field][range.start as usize..range.end as usize].to_vec();
            if self.descending {
                v.reverse();
            }
            columns.push(Column::new(Values::Integer(v)));
        }
        let run = SeriesRun { series: self.series[self.at], rows: count as u32 };
        Ok(Some(ScanItem::Rows(ColumnBatch { rows: count as usize, runs: vec![run], columns })))
    }
}

fn statements(hosts: u32) -> Vec<(&'static str, String)> {
    let at = |hour: i64| START_NS + hour * HOUR_NS;
    let range = |from: i64, to: i64| format!("time >= {} and time < {}", at(from), at(to));
    let maxes = |n: usize| (0..n).map(|f| format!("max(f{f})")).collect::<Vec<_>>().join(", ");
    let means = |n: usize| (0..n).map(|f| format!("mean(f{f})")).collect::<Vec<_>>().join(", ");
    let some: Vec<String> =
        (0..8.min(hosts)).map(|n| format!("hostname = '{}'", host(n))).collect();
    let (one, eight) = (some[0].clone(), some.join(" or "));
    vec![
        (
            "single-groupby-1-1-1",
            format!(
                "SELECT max(f0) from cpu where ({one}) and {} group by time(1m)",
                range(30, 31)
            ),
        ),
        (
            "single-groupby-1-1-12",
            format!(
                "SELECT max(f0) from cpu where ({one}) and {} group by time(1m)",
                range(30, 42)
            ),
        ),
        (
            "single-groupby-1-8-1",
            format!(
                "SELECT max(f0) from cpu where ({eight}) and {} group by time(1m)",
                range(30, 31)
            ),
        ),
        (
            "single-groupby-5-8-1",
            format!(
                "SELECT {} from cpu where ({eight}) and {} group by time(1m)",
                maxes(5),
                range(30, 31)
            ),
        ),
        (
            "cpu-max-all-8",
            format!(
                "SELECT {} from cpu where ({eight}) and {} group by time(1h)",
                maxes(10),
                range(30, 38)
            ),
        ),
        (
            "double-groupby-1",
            format!("SELECT mean(f0) from cpu where {} group by time(1h), hostname", range(30, 42)),
        ),
        (
            "double-groupby-all",
            format!(
                "SELECT {} from cpu where {} group by time(1h), hostname",
                means(10),
                range(30, 42)
            ),
        ),
        (
            "high-cpu-1",
            format!("SELECT * from cpu where f0 > 90.0 and ({one}) and {}", range(30, 42)),
        ),
        ("high-cpu-all", format!("SELECT * from cpu where f0 > 90.0 and {}", range(30, 42))),
        ("lastpoint", "SELECT * from cpu group by hostname order by time desc limit 1".to_owned()),
        (
            "groupby-orderby-limit",
            format!("SELECT max(f0) from cpu WHERE time < {} group by time(1m) limit 5", at(60)),
        ),
        (
            "groupby-orderby-limit desc",
            format!(
                "SELECT max(f0) from cpu WHERE time < {} group by time(1m) order by time desc limit 5",
                at(60)
            ),
        ),
        ("limit over all hosts", "SELECT * from cpu limit 10".to_owned()),
        ("median of everything", "SELECT median(f0) from cpu".to_owned()),
        ("mean of everything", "SELECT mean(f0) from cpu".to_owned()),
        ("mean of a difference", "SELECT mean(d) from (SELECT f0 - f1 AS d from cpu)".to_owned()),
        (
            "fill one host by second",
            format!(
                "SELECT mean(f0) from cpu where ({one}) and {} group by time(1s)",
                range(0, 24)
            ),
        ),
    ]
}

#[expect(clippy::print_stdout, reason = "a tool for the terminal")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hosts = std::env::args().nth(1).map_or(Ok(100), |n| n.parse())?;
    let store: Arc<dyn Store> = Arc::new(Ready::new(hosts));
    let catalog = Arc::new(Catalog::open(Arc::clone(&store))?);
    catalog.create_database("b", None)?;
    let mut context = QueryContext::new(store, catalog, START_NS + 100 * HOUR_NS);
    context.database = Some("b".to_owned());
    println!("{:<30}{:>12}{:>12}{:>10}", "statement", "plan, us", "all, us", "rows");
    let only = std::env::args().nth(2).unwrap_or_default();
    for (name, text) in statements(hosts).into_iter().filter(|s| s.0.contains(&only)) {
        let (mut best, mut best_plan, mut rows) = (f64::MAX, f64::MAX, 0);
        let started = Instant::now();
        while started.elapsed().as_secs_f64() < 0.5 {
            let from = Instant::now();
            let statement = parse_statement(&text, &Params::new())?;
            let mut answer = execute(&statement, &context)?;
            best_plan = best_plan.min(from.elapsed().as_secs_f64());
            rows = 0;
            while let Some(batch) = answer.next()? {
                rows += batch.batch.rows;
            }
            best = best.min(from.elapsed().as_secs_f64());
        }
        println!("{name:<30}{:>12.1}{:>12.1}{rows:>10}", best_plan * 1e6, best * 1e6);
    }
    Ok(())
}
