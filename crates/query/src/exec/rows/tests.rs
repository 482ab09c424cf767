use super::*;
use crate::exec::window::Windows;
use crate::functions::Function;
use crate::plan::CallPlan;
use model::TimeRange;
use proptest::prelude::*;

fn select(fill: Fill, range: TimeRange, ascending: bool, calls: usize) -> Select {
    let call = || CallPlan {
        function: Function::Sum,
        field: "f".into(),
        input: Some(FieldType::Integer),
        result: FieldType::Integer,
        transforms: Vec::new(),
        shown: FieldType::Integer,
        is_known: true,
    };
    Select {
        after: None,
        ascending,
        limit: 0,
        offset: 0,
        series_limit: 0,
        series_offset: 0,
        range,
        bound: range.min,
        reach: range,
        windows: Some(Windows::new(10, 0, None)),
        fill,
        zone: None,
        dimensions: Vec::new(),
        own_dimensions: Vec::new(),
        limited_dimensions: Vec::new(),
        calls: (0..calls).map(|_| call()).collect(),
        aux: Vec::new(),
        outputs: Vec::new(),
        time_column: "time".into(),
        sources: Vec::new(),
    }
}

fn points(windows: &[(i64, i64)], ascending: bool) -> Points {
    let mut windows = windows.to_vec();
    if !ascending {
        windows.reverse();
    }
    Points {
        times: windows.iter().map(|w| w.0 * 10).collect(),
        values: Column::new(Values::Integer(windows.iter().map(|w| w.1).collect())),
        aux: Vec::new(),
    }
}

type Row = (i64, Vec<Option<i64>>);

fn rows(select: Select, points: Vec<Points>, block: usize) -> Vec<Row> {
    let mut maker = RowMaker::new(Arc::new(select), points.into_iter().map(Source::Points));
    let mut rows = Vec::new();
    while let Some(block) = maker.next(block).unwrap() {
        for (row, time) in block.times.iter().enumerate() {
            let value = |column: &Column| match column.get(row) {
                Some(Scalar::Integer(v)) => Some(v),
                None => None,
                other => panic!("{other:?}"),
            };
            rows.push((*time, block.slots.iter().map(value).collect()));
        }
    }
    rows
}

/// One function's rows, straight from the rules.
fn naive_stream(select: &Select, windows: &[(i64, i64)]) -> Vec<(i64, Option<i64>)> {
    let there: std::collections::BTreeMap<i64, i64> =
        windows.iter().map(|w| (w.0 * 10, w.1)).collect();
    let (Some(first), Some(last)) = (there.keys().next(), there.keys().next_back()) else {
        return Vec::new();
    };
    let grid = |t: i64| t.div_euclid(10) * 10;
    let bounded = select.has_lower_bound();
    let (from, to) = if select.fill == Fill::None {
        (*first, *last)
    } else {
        (if bounded { grid(select.range.min) } else { *first }, grid(select.range.max))
    };
    let mut out: Vec<(i64, Option<i64>)> = Vec::new();
    let mut at = from;
    while at <= to {
        let value = there.get(&at).copied();
        let before = there.range(..at).next_back();
        let after = there.range(at..).next();
        let filled = match select.fill {
            Fill::None if value.is_none() => {
                at += 10;
                continue;
            }
            Fill::Integer(n) => Some(n),
            Fill::Previous if select.ascending => before.map(|(_, v)| *v),
            Fill::Previous => there.range(at + 1..).next().map(|(_, v)| *v),
            Fill::Linear => before.zip(after).map(|((t0, v0), (t1, v1))| {
                let (v0, v1, width) = (*v0, *v1, (t1 - t0) / 10);
                if select.ascending {
                    let slope = (v1 - v0) as f64 / width as f64;
                    (slope * ((at - t0) / 10) as f64 + v0 as f64) as i64
                } else {
                    let slope = (v0 - v1) as f64 / -width as f64;
                    (slope * ((at - t1) / 10) as f64 + v1 as f64) as i64
                }
            }),
            _ => None,
        };
        out.push((at, value.or(filled)));
        at += 10;
    }
    if !select.ascending {
        out.reverse();
    }
    let limit = if select.limit == 0 { usize::MAX } else { select.limit as usize };
    out.into_iter().skip(select.offset as usize).take(limit).collect()
}

fn naive(select: &Select, calls: &[Vec<(i64, i64)>]) -> Vec<Row> {
    let streams: Vec<Vec<(i64, Option<i64>)>> =
        calls.iter().map(|windows| naive_stream(select, windows)).collect();
    let mut times: Vec<i64> = streams.iter().flatten().map(|r| r.0).collect();
    times.sort_unstable();
    times.dedup();
    if !select.ascending {
        times.reverse();
    }
    let mut last = vec![None; streams.len()];
    times
        .into_iter()
        .map(|time| {
            let cells = streams.iter().zip(&mut last).map(|(stream, last)| {
                let found = stream.iter().find(|r| r.0 == time);
                let mut value = found.and_then(|r| r.1);
                if let (None, Fill::Integer(n)) = (found, select.fill) {
                    value = Some(n);
                }
                if select.fill == Fill::Previous {
                    value = if found.is_some() { value } else { *last };
                    *last = value;
                }
                value
            });
            (time, cells.collect())
        })
        .collect()
}

fn some_windows() -> impl Strategy<Value = Vec<(i64, i64)>> {
    prop::collection::btree_map(-12i64..12, -50i64..50, 0..12)
        .prop_map(|windows| windows.into_iter().collect())
}

proptest! {
    #[test]
    fn rows_follow_the_rules(
        calls in prop::collection::vec(some_windows(), 1..3),
        fill in prop::sample::select(vec![
            Fill::Null, Fill::None, Fill::Previous, Fill::Linear, Fill::Integer(7),
        ]),
        bounded in any::<bool>(),
        ascending in any::<bool>(),
        (limit, offset) in (0u64..6, 0u64..4),
        block in 1usize..9,
    ) {
        let min = if bounded { -125 } else { model::MIN_TIME_NS };
        // Without a lower bound a descending stream ends with its last point.
        prop_assume!(bounded || ascending || fill == Fill::None);
        let mut plan = select(fill, TimeRange::new(min, 133), ascending, calls.len());
        (plan.limit, plan.offset) = (limit, offset);
        let want = naive(&plan, &calls);
        let points = calls.iter().map(|windows| points(windows, ascending)).collect();
        prop_assert_eq!(rows(plan, points, block), want);
    }
}

#[test]
fn descending_without_lower_bound_ends_at_the_last_point() {
    let plan = select(Fill::Null, TimeRange::new(model::MIN_TIME_NS, 45), false, 1);
    let got = rows(plan, vec![points(&[(0, 1), (2, 3)], false)], 100);
    let times: Vec<i64> = got.iter().map(|r| r.0).collect();
    assert_eq!(times, [40, 30, 20, 10, 0]);
}

#[test]
fn a_huge_fill_comes_in_blocks() {
    let range = TimeRange::new(0, 1 << 60);
    let sources = std::iter::once(Source::Points(points(&[(3, 1)], true)));
    let mut maker = RowMaker::new(Arc::new(select(Fill::Null, range, true, 1)), sources);
    for block in 0..50 {
        let rows = maker.next(1000).unwrap().unwrap();
        assert_eq!((rows.times.len(), rows.times[0]), (1000, block * 10_000));
    }
}
