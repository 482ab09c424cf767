//! Rows of many short series that share blocks are what they were in memory, whichever of them are asked for.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{CompareOp, FieldFilter, Operand, Scalar, TimeRange, Values};
use platform::{FaultConfig, SimDisk};
use store::testing::{
    POLICY, Row, line_of, read_slice, rows_of as rows_of_batch, scan_everything, write,
};
use store::{ScanItem, ScanRequest, ScanSlice, Store, SummaryParts, TimeOrder, Windows};
use store_local::LocalStore;

mod common;
use common::{open, random};

/// So many that their rows fill several blocks.
const SERIES: u64 = 12_000;
const STATES: [&str; 3] = ["running", "failed", "über"];

/// What looks random of a number.
/// Up to seven rows of a series, mostly some, and each with some of three fields.
fn rows_of(series: u64) -> Vec<Row> {
    let row = |at: u64| {
        let mut fields = Vec::new();
        let has = random(series * 31 + at);
        if !has.is_multiple_of(4) {
            fields.push(("x", Scalar::Integer((has % 100) as i64)));
        }
        if !has.is_multiple_of(5) {
            fields.push(("y", Scalar::Float(has as f64 / 8.0)));
        }
        if has.is_multiple_of(3) || fields.is_empty() {
            fields.push(("state", Scalar::String(STATES[has as usize % 3].into())));
        }
        Row::new(&format!("m,id={series:05}"), &fields, (at * 10 + has % 7) as i64)
    };
    (0..random(series) % 8).map(row).collect()
}

/// What is asked.
struct Question {
    request: ScanRequest,
    /// Every how manieth series.
    every: u32,
    /// Rows of each series, of those that have the first field.
    few: Option<u64>,
}

fn questions(store: &LocalStore) -> Vec<Question> {
    let everything = scan_everything(store, POLICY, "m").unwrap();
    let filters = |fields: &[&str]| {
        let filter = |(op, constant)| {
            let operand = Operand::Constant(Scalar::Integer(constant));
            FieldFilter { field: "x".into(), op, operand }
        };
        // All rows, some, nearly all, and so few that only they are read.
        let (greater, less) = (CompareOp::Greater, CompareOp::Less);
        let all = [None, Some((greater, 90)), Some((less, 90)), Some((greater, 98))];
        let all = all.into_iter().filter(|one| one.is_none() || fields.contains(&"x"));
        all.map(|one| one.map(filter).into_iter().collect()).collect::<Vec<Vec<FieldFilter>>>()
    };
    let mut questions = Vec::new();
    for fields in [&["x"][..], &["state"], &["x", "y", "state"]] {
        for filters in filters(fields) {
            for time in [TimeRange::ALL, TimeRange::new(11, 38)] {
                for order in [TimeOrder::Ascending, TimeOrder::Descending] {
                    for (every, few) in
                        [(1, None), (2, Some(1)), (700, None), (1, Some(2)), (11_999, Some(1))]
                    {
                        let mut request = ScanRequest { time, order, ..everything.clone() };
                        request.fields.retain(|(name, _)| fields.contains(&&**name));
                        request.filters.clone_from(&filters);
                        questions.push(Question { request, every, few });
                    }
                }
            }
        }
    }
    questions
}

/// The answer: of rows that hints are about those that they say, no more.
fn answer(store: &LocalStore, Question { request, every, few }: &Question) -> Vec<Row> {
    let scan = store.scan(request).unwrap();
    let mut slice = ScanSlice { rows_per_series: *few, ..ScanSlice::all() };
    if *every > 1 {
        let ordinals: Vec<u32> = (0..scan.series().len).step_by(*every as usize).collect();
        slice.series = Some(Arc::from(ordinals));
    }
    slice.with_any = few.map(|_| Arc::from([0]));
    let mut rows = read_slice(&*scan, request, &slice).unwrap();
    let field = |row: &Row, wanted: &str| {
        row.fields.iter().find(|(name, _)| &**name == wanted).map(|(_, value)| value.clone())
    };
    for filter in &request.filters {
        let Operand::Constant(Scalar::Integer(constant)) = filter.operand else {
            panic!("another")
        };
        rows.retain(|row| match field(row, "x") {
            Some(Scalar::Integer(x)) => filter.op.holds(x.cmp(&constant)),
            _ => false,
        });
    }
    if let Some(few) = few {
        rows.retain(|row| field(row, &request.fields[0].0).is_some());
        let (mut key, mut left) = (None, 0);
        rows.retain(|row| {
            if key.as_ref() != Some(&row.key) {
                (key, left) = (Some(row.key.clone()), *few);
            }
            let is_wanted = left > 0;
            left -= u64::from(is_wanted);
            is_wanted
        });
    }
    rows
}

#[test]
fn shared_blocks_hold_what_was_in_memory() {
    let disk = SimDisk::new(1, FaultConfig::default());
    let store = open(&disk, 256 << 20);
    let rows: Vec<Row> = (0..SERIES).flat_map(rows_of).collect();
    assert!(rows.len() > 8192);
    write(&store, POLICY, &rows, 0).unwrap();
    let questions = questions(&store);
    let ask = || -> Vec<Vec<Row>> { questions.iter().map(|asked| answer(&store, asked)).collect() };
    let expected = ask();
    assert!(expected.iter().filter(|rows| rows.is_empty()).count() < expected.len() / 2);
    store.flush().unwrap();
    for (found, (expected, Question { request, every, few })) in
        ask().iter().zip(expected.iter().zip(&questions))
    {
        assert_eq!(found, expected, "{request:?}, every {every}, {few:?} rows");
    }
    store.settle().unwrap();
    assert_eq!(ask(), expected);
}

/// Values of which one is much more frequent than others are encoded so that a block is compared without decoding it; where few rows are
/// left, only these are read.
#[test]
fn few_rows_of_a_block_are_those_that_satisfy() {
    let disk = SimDisk::new(3, FaultConfig::default());
    let store = open(&disk, 256 << 20);
    let value = |number: u64| match random(number) {
        rare if rare.is_multiple_of(300) => 99,
        often if often % 8 < 6 => 50,
        other => (other % 90) as i64,
    };
    let row = |series: u64, at: u64| {
        let fields = ["x", "y"].map(|name| {
            let seed = u64::from(name == "y") << 40;
            (name, Scalar::Integer(value(seed + series * 8 + at)))
        });
        Row::new(&format!("m,id={series:05}"), &fields, (at * 10) as i64)
    };
    let rows: Vec<Row> = (0..SERIES).flat_map(|s| (0..5).map(move |at| row(s, at))).collect();
    write(&store, POLICY, &rows, 0).unwrap();
    let filter = |field: &str, op, operand| FieldFilter { field: field.into(), op, operand };
    let constant = |constant| Operand::Constant(Scalar::Integer(constant));
    let above = filter("x", CompareOp::Greater, constant(90));
    let questions = [
        vec![above.clone()],
        vec![above.clone(), filter("y", CompareOp::Less, Operand::Field("x".into()))],
        vec![filter("y", CompareOp::GreaterOrEqual, constant(99)), above],
        vec![filter("x", CompareOp::Greater, constant(99))],
        vec![filter("x", CompareOp::Greater, Operand::Field("y".into()))],
    ];
    let everything = scan_everything(&store, POLICY, "m").unwrap();
    let numbers = |row: &Row| {
        let number = |(_, value): &(_, Scalar)| match value {
            Scalar::Integer(value) => *value,
            other => panic!("{other:?}"),
        };
        [number(&row.fields[0]), number(&row.fields[1])]
    };
    let holds = |row: &Row, filter: &FieldFilter| {
        let of = |field: &str| numbers(row)[usize::from(field == "y")];
        let right = match &filter.operand {
            Operand::Constant(Scalar::Integer(constant)) => *constant,
            Operand::Constant(_) | Operand::Text(_) => panic!("{filter:?}"),
            Operand::Field(other) => of(other),
        };
        filter.op.holds(of(&filter.field).cmp(&right))
    };
    for is_settled in [false, true] {
        if is_settled {
            store.settle().unwrap();
        } else {
            store.flush().unwrap();
        }
        for (filters, time) in
            questions.iter().zip([TimeRange::ALL, TimeRange::new(10, 30)].iter().cycle())
        {
            let request =
                ScanRequest { filters: filters.clone(), time: *time, ..everything.clone() };
            let scan = store.scan(&request).unwrap();
            // Filters are a hint.
            let mut found = read_slice(&*scan, &request, &ScanSlice::all()).unwrap();
            let satisfies = |row: &Row| filters.iter().all(|filter| holds(row, filter));
            found.retain(satisfies);
            let within = |row: &&Row| time.contains(row.time_ns) && satisfies(row);
            let expected: Vec<Row> = rows.iter().filter(within).cloned().collect();
            assert_eq!(found, expected, "{filters:?} {time:?} {is_settled}");
        }
    }
}

/// Of all series together what the requested numbers add up to: how many there are of each field, and the sum of `x`.
fn sums<'a>(rows: impl Iterator<Item = &'a Row>) -> BTreeMap<String, (u64, i64)> {
    let mut sums = BTreeMap::new();
    for (name, value) in rows.flat_map(|row| &row.fields) {
        let sum: &mut (u64, i64) = sums.entry(name.to_string()).or_default();
        sum.0 += 1;
        if let Scalar::Integer(value) = value {
            sum.1 += value;
        }
    }
    sums
}

/// The same of what a scan hands out whose series may be joined; also how many summaries there were, and rows.
fn joined_sums(
    store: &LocalStore,
    request: &ScanRequest,
) -> (BTreeMap<String, (u64, i64)>, usize, usize) {
    let scan = store.scan(request).unwrap();
    let mut cursor = scan.open(&ScanSlice::all()).unwrap();
    let (mut rows, mut of_spans, mut spans) = (Vec::new(), BTreeMap::new(), 0);
    while let Some(item) = cursor.next().unwrap() {
        match item {
            ScanItem::Rows(batch) => rows.extend(rows_of_batch(&*scan, request, &batch)),
            ScanItem::Summaries(batch) => {
                spans += batch.spans.len();
                for ((name, _), of) in request.fields.iter().zip(&batch.fields) {
                    let sum: &mut (u64, i64) = of_spans.entry(name.to_string()).or_default();
                    sum.0 += of.counts.iter().sum::<u64>();
                    if let Values::Integer(values) = &of.sums {
                        sum.1 += values.iter().sum::<i64>();
                    }
                }
            }
        }
    }
    let handed = rows.len();
    let is_wanted = |row: &&Row| {
        let x = row.fields.iter().find(|(name, _)| &**name == "x").map(|(_, value)| value.clone());
        request.filters.iter().all(|filter| match x {
            Some(Scalar::Integer(x)) => filter.op.holds(x.cmp(&90)),
            _ => false,
        })
    };
    for (name, (count, sum)) in sums(rows.iter().filter(is_wanted)) {
        let all = of_spans.entry(name).or_default();
        *all = (all.0 + count, all.1 + sum);
    }
    of_spans.retain(|_, sum| sum.0 > 0);
    (of_spans, spans, handed)
}

#[test]
fn joined_series_have_the_rows_of_each() {
    let store = open(&SimDisk::new(6, FaultConfig::default()), 256 << 20);
    let rows: Vec<Row> = (0..SERIES).flat_map(rows_of).collect();
    write(&store, POLICY, &rows, 0).unwrap();
    for stage in ["memory", "one segment"] {
        let of_all = questions(&store).into_iter().filter(|asked| {
            (asked.every, asked.few, asked.request.order) == (1, None, TimeOrder::Ascending)
        });
        for mut asked in of_all {
            let expected = answer(&store, &asked);
            asked.request.joins_series = true;
            let found = answer(&store, &asked);
            let mut request = asked.request;
            let in_any_order = |rows: &[Row]| {
                let key = |row: &Row| line_of(&Row { key: String::new(), ..row.clone() });
                let mut lines: Vec<String> = rows.iter().map(key).collect();
                lines.sort();
                lines
            };
            assert_eq!(in_any_order(&found), in_any_order(&expected), "{stage}: {request:?}");
            for parts in [SummaryParts::default(), SummaryParts { sum: true, ..Default::default() }]
            {
                // Texts are counted alone.
                if parts.sum && request.fields.iter().any(|(name, _)| &**name == "state") {
                    continue;
                }
                request.windows = Some(Windows { every_ns: None, offset_ns: 0, parts });
                let (mut sums_found, spans, handed) = joined_sums(&store, &request);
                let mut wanted = sums(expected.iter());
                if !parts.sum {
                    sums_found.values_mut().chain(wanted.values_mut()).for_each(|sum| sum.1 = 0);
                }
                assert_eq!(sums_found, wanted, "{stage}: {request:?}");
                if stage == "one segment" && request.time == TimeRange::ALL {
                    assert!(spans > 0 && handed == 0, "{spans} summaries, {handed} rows");
                }
            }
        }
        store.flush().unwrap();
    }
}

/// Rows of a series that share blocks with those of a few others, so that most blocks begin and end within one.
fn some_thousand_rows_of(series: u64) -> impl Iterator<Item = Row> {
    let count = 400 + random(series) % 7_000;
    (0..count).map(move |at| {
        let x = random(series * 10_007 + at) as i64 % 100;
        let fields = [("x", Scalar::Integer(x)), ("y", Scalar::Integer(x / 2))];
        let some = if at % 11 == 0 { &fields[..1] } else { &fields };
        // Every other hour has rows.
        let time_ns = at as i64 * 1000 + (at % 2) as i64 * 7_200_000_000_000;
        Row::new(&format!("m,id={series:05}"), some, time_ns)
    })
}

#[test]
fn series_that_blocks_begin_and_end_with_are_joined_once() {
    let store = open(&SimDisk::new(8, FaultConfig::default()), 256 << 20);
    let rows: Vec<Row> = (0..120).flat_map(some_thousand_rows_of).collect();
    for rows in rows.chunks(50_000) {
        write(&store, POLICY, rows, 0).unwrap();
    }
    store.settle().unwrap();
    let sum = SummaryParts { sum: true, ..SummaryParts::default() };
    let windows = |every_ns| Some(Windows { every_ns, offset_ns: 0, parts: sum });
    let above = FieldFilter {
        field: "x".into(),
        op: CompareOp::Greater,
        operand: Operand::Constant(Scalar::Integer(90)),
    };
    for time in [TimeRange::ALL, TimeRange::new(90_000, 7_200_003_000_000)] {
        for order in [TimeOrder::Ascending, TimeOrder::Descending] {
            for windows in [None, windows(None), windows(Some(2_000)), windows(Some(900_000))] {
                for filters in [Vec::new(), vec![above.clone()]] {
                    let mut request = scan_everything(&store, POLICY, "m").unwrap();
                    (request.time, request.order) = (time, order);
                    (request.windows, request.filters) = (windows, filters);
                    request.joins_series = true;
                    let x = |row: &Row| match row.fields[0] {
                        (_, Scalar::Integer(x)) => x,
                        _ => panic!("x is an integer"),
                    };
                    let is_wanted = |row: &&Row| {
                        time.contains(row.time_ns) && (request.filters.is_empty() || x(row) > 90)
                    };
                    let (found, spans, handed) = joined_sums(&store, &request);
                    assert_eq!(found, sums(rows.iter().filter(is_wanted)), "{request:?}");
                    let is_summed_up = windows.is_some_and(|w| w.every_ns.is_none())
                        && time == TimeRange::ALL
                        && request.filters.is_empty();
                    assert!(!is_summed_up || spans > 0 && handed == 0, "{spans}, {handed} rows");
                }
            }
        }
    }
}

#[test]
fn sources_that_overlap_are_gathered_as_they_were_written() {
    let disk = SimDisk::new(3, FaultConfig::default());
    let (together, apart) =
        (open(&disk, 256 << 20), open(&SimDisk::new(4, FaultConfig::default()), 256 << 20));
    let mut rows: Vec<Row> = (0..SERIES).flat_map(rows_of).collect();
    // Some series are so long that they have blocks of their own.
    for series in (5..SERIES).step_by(997) {
        let long = |at: i64| {
            let fields = [("x", Scalar::Integer(at % 100))];
            Row::new(&format!("m,id={series:05}"), &fields, 1000 + at)
        };
        rows.extend((0..6000).map(long));
    }
    // Some rows are in the partition of the next hour.
    for (row, at) in rows.iter_mut().zip(0..SERIES * 3) {
        row.time_ns += if random(at + 3).is_multiple_of(4) { 3_600_000_000_000 } else { 0 };
    }
    let part = |number: u64| {
        let mut part: Vec<Row> = rows
            .iter()
            .enumerate()
            .filter(|(at, _)| random(*at as u64) % 4 == number)
            .map(|(_, row)| row.clone())
            .collect();
        // Some rows are written again, with other values in some of their fields.
        let again = rows.iter().enumerate().filter(|(at, _)| random(*at as u64 + 7) % 16 == number);
        part.extend(again.map(|(at, row)| {
            let fields = [("x", Scalar::Integer(at as i64 % 100))];
            Row { fields: Row::new("m", &fields, 0).fields, ..row.clone() }
        }));
        part
    };
    for number in 0..4 {
        write(&together, POLICY, &part(number), 0).unwrap();
        write(&apart, POLICY, &part(number), 0).unwrap();
        if number < 3 {
            apart.flush().unwrap();
        }
    }
    for asked in questions(&together) {
        let (found, expected) = (answer(&apart, &asked), answer(&together, &asked));
        let Question { request, every, few } = asked;
        assert_eq!(found, expected, "{request:?}, every {every}, {few:?} rows");
    }
}

#[test]
fn a_series_goes_on_in_the_next_block() {
    let disk = SimDisk::new(2, FaultConfig::default());
    let store = open(&disk, 256 << 20);
    // Rows so long that a block has those of a series and a half.
    let text = |of: u64| format!("{of:08}").repeat(2000);
    let row = |series: u64, at: u64| {
        let fields = [
            ("x", Scalar::Integer(at as i64)),
            ("t", Scalar::String(text(series * 40 + at).into())),
        ];
        Row::new(&format!("m,id={series:05}"), &fields, at as i64)
    };
    let rows: Vec<Row> =
        (0..40).flat_map(|series| (0..45).map(move |at| row(series, at))).collect();
    write(&store, POLICY, &rows, 0).unwrap();
    store.flush().unwrap();
    let mut request = scan_everything(&store, POLICY, "m").unwrap();
    request.fields.retain(|(name, _)| &**name == "x");
    let x = |row: &Row| (row.key.clone(), row.time_ns);
    let everything = Question { request: request.clone(), every: 1, few: None };
    assert!(answer(&store, &everything).iter().map(x).eq(rows.iter().map(x)));
    // And if a memtable has rows of them, too.
    let later: Vec<Row> = (0..40).map(|series| row(series, 45)).collect();
    write(&store, POLICY, &later, 0).unwrap();
    let mut all: Vec<_> = rows.iter().chain(&later).map(x).collect();
    all.sort();
    assert!(answer(&store, &everything).iter().map(x).eq(all));
    store.flush().unwrap();
    request.time = TimeRange::new(0, 44);
    request.order = TimeOrder::Descending;
    let last = answer(&store, &Question { request, every: 1, few: Some(1) });
    assert!(last.iter().map(x).eq(rows.iter().filter(|row| row.time_ns == 44).map(x)));
}

#[test]
fn more_series_than_a_container_of_their_set_holds() {
    const MANY: u64 = 3 << 16;
    let disk = SimDisk::new(5, FaultConfig::default());
    let store = open(&disk, 256 << 20);
    let row = |series: u64| Row::new(&format!("m,id={series:06}"), &[("x", Scalar::Integer(1))], 7);
    for first in (0..MANY).step_by(1 << 14) {
        let rows: Vec<Row> = (first..first + (1 << 14)).map(row).collect();
        write(&store, POLICY, &rows, 0).unwrap();
    }
    let count = || {
        let request = scan_everything(&store, POLICY, "m").unwrap();
        let scan = store.scan(&request).unwrap();
        assert_eq!(u64::from(scan.series().len), MANY);
        let mut cursor = scan.open(&ScanSlice::all()).unwrap();
        let (mut rows, mut next) = (0, 0);
        while let Some(item) = cursor.next().unwrap() {
            let ScanItem::Rows(batch) = item else { panic!("rows were asked for") };
            for run in &batch.runs {
                assert_eq!((run.series, run.rows), (next, 1));
                next += 1;
            }
            rows += batch.rows as u64;
        }
        rows
    };
    assert_eq!(count(), MANY);
    store.flush().unwrap();
    assert_eq!(count(), MANY);
    store.settle().unwrap();
    assert_eq!(count(), MANY);
}
