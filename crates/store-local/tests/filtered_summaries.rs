//! Summaries of rows that satisfy filters: with the rows that are handed out beside them they must add up to what satisfies
//! the filters, window by window.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;

use model::{
    BytesRegex, CompareOp, FieldFilter, FieldType, Operand, Scalar, TagExpr, TextPattern,
    TextPieces, TextTest, TimeRange, Values,
};
use platform::{FaultConfig, SimDisk};
use store::testing::{self, Row, write};
use store::{Policy, ScanItem, ScanRequest, ScanSlice, Store, SummaryParts, TimeOrder, Windows};
use store_local::LocalStore;

mod common;
use common::satisfies;

const SECOND: i64 = 1_000_000_000;
const POLICY: Policy = Policy { partition_ns: 24 * testing::HOUR_NS, ..testing::POLICY };
const FIELDS: [(&str, FieldType); 5] = [
    ("a", FieldType::Integer),
    ("b", FieldType::Float),
    ("c", FieldType::Integer),
    ("t", FieldType::String),
    ("m", FieldType::String),
];

/// Rises and falls within two hours.
fn wave(at: i64) -> i64 {
    (at.rem_euclid(7200) - 3600).abs()
}

/// Messages of a few kinds, as programs write them: settled they are templates.
fn message(at: i64) -> String {
    let id = at.wrapping_mul(2_654_435_761) % 100_003;
    match at % 7 {
        0 | 1 => format!(
            "GET /items/{id} took {} ms, status {}",
            id % 1000,
            [200, 404, 500][at as usize % 3]
        ),
        2 => format!(
            "worker {} of queue {} is idle",
            at % 9,
            ["mail", "sync", "bulk"][at as usize % 3]
        ),
        3 => format!("trace {:08x} ended", id * 40_503),
        4 => "out of memory".into(),
        5 => format!("{id}"),
        _ => format!("user {id} logged in from 10.0.{}.{}", id % 5, id % 256),
    }
}

/// What a series has at a second: `b` is missing on odd seconds of some hours, `t` is there now and then, `m` not always.
fn row(series: i64, second: i64) -> Row {
    let mut fields = vec![
        ("a", Scalar::Integer(wave(second + series * 900))),
        ("c", Scalar::Integer(wave(second + 1700) - second % 13)),
    ];
    if second / 3600 % 3 != 1 || second % 2 == 0 {
        fields.push(("b", Scalar::Float(wave(second * 2) as f64 / 4.0)));
    }
    if second % 500 == 0 {
        fields.push(("t", Scalar::String(format!("text {}", second % 3).into())));
    }
    if second % 11 != 4 {
        fields.push(("m", Scalar::String(message(second * 3 + series).into())));
    }
    Row::new(&format!("m,s={series}"), &fields, second * SECOND)
}

fn load(store: &LocalStore, series: i64, seconds: std::ops::Range<i64>) {
    let rows: Vec<Row> = seconds.map(|second| row(series, second)).collect();
    write(store, POLICY, &rows, 0).unwrap();
}

/// Per series, window and field: count, sum, minimum and maximum.
type Totals = BTreeMap<(String, i64, String), (u64, f64, f64, f64)>;

fn number(value: &Scalar) -> f64 {
    match value {
        Scalar::Integer(v) => *v as f64,
        Scalar::Float(v) => *v,
        _ => 0.0,
    }
}

/// Adds up rows and summaries; `spans` is how many of the latter there were, and how many rows.
#[derive(Default)]
struct Adder {
    windows: Option<Windows>,
    parts: SummaryParts,
    totals: Totals,
    spans: usize,
    rows: usize,
}

impl Adder {
    fn window(&self, time: i64) -> i64 {
        let windows = self.windows.unwrap();
        windows.every_ns.map_or(0, |every| (time - windows.offset_ns).div_euclid(every))
    }

    fn add(&mut self, key: (String, i64, String), (count, sum, min, max): (u64, f64, f64, f64)) {
        let t = self.totals.entry(key).or_insert((0, 0.0, f64::INFINITY, f64::NEG_INFINITY));
        let SummaryParts { sum: has_sum, min_max, .. } = self.parts;
        *t = (
            t.0 + count,
            if has_sum { t.1 + sum } else { 0.0 },
            if min_max { t.2.min(min) } else { 0.0 },
            if min_max { t.3.max(max) } else { 0.0 },
        );
    }

    fn add_row(&mut self, row: &Row) {
        self.rows += 1;
        for (name, value) in &row.fields {
            let v = number(value);
            let key = (row.key.clone(), self.window(row.time_ns), name.to_string());
            self.add(key, (1, v, v, v));
        }
    }

    fn add_scan(&mut self, store: &LocalStore, request: &ScanRequest) {
        let scan = store.scan(request).unwrap();
        let mut cursor = scan.open(&ScanSlice::all()).unwrap();
        while let Some(item) = cursor.next().unwrap() {
            match item {
                ScanItem::Rows(batch) => {
                    let rows = testing::rows_of(&*scan, request, &batch);
                    let wanted = |row: &&Row| satisfies(row, &request.filters);
                    rows.iter().filter(wanted).for_each(|row| self.add_row(row));
                }
                ScanItem::Summaries(batch) => {
                    self.spans += batch.spans.len();
                    for (at, span) in batch.spans.iter().enumerate() {
                        assert!(request.time.contains(span.min_time));
                        assert!(request.time.contains(span.max_time));
                        let window = self.window(span.min_time);
                        assert_eq!(window, self.window(span.max_time));
                        let series = testing::series_key(&*scan, request, span.series);
                        for ((name, _), of) in request.fields.iter().zip(&batch.fields) {
                            let part = |values: &Values, is_there: bool| {
                                let is_there = is_there && !matches!(values, Values::String(_));
                                if is_there { number(&values.get(at)) } else { 0.0 }
                            };
                            if of.counts[at] > 0 {
                                let numbers = (
                                    of.counts[at],
                                    part(&of.sums, self.parts.sum),
                                    part(&of.mins, self.parts.min_max),
                                    part(&of.maxs, self.parts.min_max),
                                );
                                self.add((series.clone(), window, name.to_string()), numbers);
                            }
                        }
                    }
                }
            }
        }
    }
}

fn filter(field: &str, op: CompareOp, operand: Operand) -> FieldFilter {
    FieldFilter { field: field.into(), op, operand }
}

/// Some filters, and the fields that are asked for with them.
fn questions() -> Vec<(Vec<FieldFilter>, Vec<&'static str>)> {
    use CompareOp::{Equal, Greater, Less, LessOrEqual, NotEqual};
    let whole = |v| Operand::Constant(Scalar::Integer(v));
    let part = |v| Operand::Constant(Scalar::Float(v));
    let field = |name: &str| Operand::Field(name.into());
    let text = Operand::Constant(Scalar::String("text 1".into()));
    let having = |texts: &[&str], test: TextTest| {
        let texts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
        Operand::Text(TextPattern::new(TextPieces::any_of(&texts).unwrap(), test))
    };
    let matching = |text: &str, pattern: &str| {
        having(&[text], TextTest::Matching(BytesRegex::new(pattern).unwrap()))
    };
    let has = |text: &str| having(&[text], TextTest::Having);
    let idle = || Operand::Constant(Scalar::String("worker 3 of queue mail is idle".into()));
    let mut all = vec![
        (vec![filter("m", Equal, has("status 500"))], vec!["m"]),
        (vec![filter("m", Equal, has(" 77"))], vec!["a", "m"]),
        (vec![filter("m", NotEqual, has("took"))], vec!["m", "t"]),
        (vec![filter("m", Equal, has("nowhere"))], vec!["m"]),
        (
            vec![filter("m", Equal, having(&["queue mail", "00f"], TextTest::Having))],
            vec!["c", "m"],
        ),
        (vec![filter("m", Equal, having(&["GET"], TextTest::Starting))], vec!["m"]),
        (vec![filter("m", Equal, having(&["9"], TextTest::Ending))], vec!["m", "b"]),
        (vec![filter("m", Equal, idle())], vec!["m", "a"]),
        (vec![filter("m", NotEqual, having(&["out of memory"], TextTest::Being))], vec!["m"]),
        (vec![filter("m", Equal, matching("trace ", "trace .*a[0-9] ended"))], vec!["m", "a"]),
        (
            vec![filter("m", Equal, has("from 10.0.3")), filter("a", Greater, whole(1800))],
            vec!["m", "a"],
        ),
        (
            vec![filter("a", Less, whole(900)), filter("m", Equal, matching("ms", "took .*7 ms"))],
            vec!["a", "m", "b"],
        ),
    ];
    all.extend([
        (vec![filter("a", Greater, whole(3000))], vec!["a"]),
        (vec![filter("a", LessOrEqual, whole(1800))], vec!["a", "c"]),
        (vec![filter("a", NotEqual, whole(77))], vec!["a", "b"]),
        (vec![filter("a", Greater, field("c"))], vec!["a", "b", "c"]),
        (vec![filter("b", Less, part(200.25))], vec!["a", "b"]),
        (vec![filter("a", Greater, whole(900)), filter("b", Less, part(800.0))], vec!["b", "a"]),
        (vec![filter("a", Greater, whole(900)), filter("a", Less, whole(1000))], vec!["c", "a"]),
        (vec![filter("t", Equal, text.clone())], vec!["t", "a"]),
        (vec![filter("a", Greater, whole(10_000))], vec!["a"]),
        (vec![filter("a", Less, whole(10_000)), filter("t", NotEqual, text)], vec!["a", "t"]),
    ]);
    all
}

/// The rows that satisfy filters, with the fields that are asked for, by series and time.
fn check_rows(store: &LocalStore, request: &ScanRequest, (all, stage): (&[Row], &str)) {
    let scan = store.scan(request).unwrap();
    let mut cursor = scan.open(&ScanSlice::all()).unwrap();
    let mut found = Vec::new();
    while let Some(item) = cursor.next().unwrap() {
        let ScanItem::Rows(batch) = item else { panic!("summaries nobody asked for") };
        found.extend(testing::rows_of(&*scan, request, &batch));
    }
    let looked_at = |row: &Row| satisfies(row, &request.filters);
    let mut wanted: Vec<Row> = all.iter().filter(|row| looked_at(row)).cloned().collect();
    for row in &mut wanted {
        row.fields.retain(|(name, _)| request.fields.iter().any(|(field, _)| field == name));
    }
    // Filters are about fields that are asked for.
    found.retain(looked_at);
    for rows in [&mut found, &mut wanted] {
        rows.iter_mut().for_each(|row| row.fields.sort_by(|a, b| a.0.cmp(&b.0)));
        rows.sort_by(|a, b| (&a.key, a.time_ns).cmp(&(&b.key, b.time_ns)));
    }
    assert!(
        found == wanted,
        "{stage}: {:?}: {} and {} rows",
        request.filters,
        found.len(),
        wanted.len()
    );
}

/// Asks everything; how many spans of summaries there were.
fn check(store: &LocalStore, stage: &str) -> usize {
    let everything = testing::scan_everything(store, POLICY, "m").unwrap();
    let all = testing::read_all(store, POLICY, "m").unwrap();
    let of = |sum, min_max| SummaryParts { sum, min_max, first_last: false };
    let mut spans = 0;
    for (filters, fields) in questions() {
        let fields: Vec<_> = fields
            .iter()
            .map(|name| FIELDS.iter().find(|field| field.0 == *name).unwrap())
            .map(|(name, field_type)| ((*name).into(), *field_type))
            .collect();
        let mut request = ScanRequest { filters: filters.clone(), ..everything.clone() };
        check_rows(store, &request, (&all, stage));
        request.fields = fields.clone();
        check_rows(store, &request, (&all, stage));
        for (every_ns, offset_ns) in [(None, 0), (Some(3600), 0), (Some(7200), 600), (Some(60), 0)]
        {
            let every_ns = every_ns.map(|every| every * SECOND);
            for (at, parts) in
                [of(false, false), of(true, true), of(true, false)].into_iter().enumerate()
            {
                let windows = Windows { every_ns, offset_ns: offset_ns * SECOND, parts };
                let time = match at {
                    0 => TimeRange::ALL,
                    _ => TimeRange::new(1_234 * SECOND, 17_000 * SECOND + 5),
                };
                let order = if at == 2 { TimeOrder::Descending } else { TimeOrder::Ascending };
                let request = ScanRequest {
                    fields: fields.clone(),
                    time,
                    filters: filters.clone(),
                    order,
                    windows: Some(windows),
                    ..everything.clone()
                };
                let new = || Adder { windows: Some(windows), parts, ..Adder::default() };
                let (mut found, mut wanted) = (new(), new());
                found.add_scan(store, &request);
                let is_wanted = |row: &&Row| time.contains(row.time_ns) && satisfies(row, &filters);
                for row in all.iter().filter(is_wanted) {
                    let mut row = row.clone();
                    row.fields.retain(|(name, _)| fields.iter().any(|(field, _)| field == name));
                    wanted.add_row(&row);
                }
                assert_eq!(found.totals, wanted.totals, "{stage}: {filters:?}, {windows:?}");
                spans += found.spans;
                if stage == "one segment" && every_ns.is_none() && parts == of(false, false) {
                    assert_eq!(found.rows, 0, "{filters:?}: what is counted is not handed out");
                }
            }
        }
    }
    spans
}

#[test]
fn what_satisfies_filters_adds_up() {
    let store = common::open(&SimDisk::new(1, FaultConfig::default()), 32 << 20);
    for series in 0..3 {
        load(&store, series, 0..20_000);
    }
    store.flush().unwrap();
    for stage in ["one segment", "a late segment", "overlapping memtable", "settled", "deleted"] {
        match stage {
            "a late segment" => {
                load(&store, 0, 20_000..26_000);
                store.flush().unwrap();
            }
            "overlapping memtable" => {
                let other = |second| Row { time_ns: second * SECOND, ..row(1, second + 1111) };
                let rows: Vec<Row> = (4_000..4_010).map(other).collect();
                write(&store, POLICY, &rows, 0).unwrap();
            }
            "settled" => store.settle().unwrap(),
            "deleted" => {
                let target = store::DeleteTarget::Rows {
                    measurements: store::NameFilter::All,
                    series: TagExpr::Equals("s".into(), "2".into()),
                    time: TimeRange::new(5_000 * SECOND, 6_500 * SECOND),
                };
                store.delete(&store::DeleteRequest { database: POLICY.database, target }).unwrap();
            }
            _ => {}
        }
        assert!(check(&store, stage) > 0, "{stage}: no summary was used");
    }
}
