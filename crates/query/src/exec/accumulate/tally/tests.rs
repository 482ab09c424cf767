use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use model::Bitmap;
use proptest::prelude::*;

use super::*;

/// Rows in two slots, of one series in order of time or of several: slot, value, time.
type Row = (u32, Option<i64>, i64);

fn rows() -> impl Strategy<Value = Vec<Row>> {
    // Some values lie close to each other, some far apart.
    let value = prop_oneof![4 => -3i64..4, 1 => prop::sample::select(vec![i64::MIN, 90, i64::MAX])];
    let row = (0u32..2, prop::option::weighted(0.9, value), 0i64..9);
    let order = prop::option::weighted(0.7, any::<bool>());
    let rows = prop::collection::vec(row, 0..60);
    (rows, order, any::<bool>()).prop_map(|(mut rows, order, is_one_slot)| {
        if is_one_slot {
            rows.iter_mut().for_each(|row| row.0 = 0);
        }
        if let Some(ascending) = order {
            rows.sort_by_key(|row| if ascending { row.2 } else { -row.2 });
        }
        rows
    })
}

/// The values as a column of a type, a number for each that keeps their order.
fn column(input: FieldType, rows: &[Row], is_dictionary: bool) -> Column {
    let values = rows.iter().map(|row| row.1.unwrap_or(0));
    let text = |value: i64| format!("{:020}", i128::from(value) - i128::from(i64::MIN));
    let texts: Vec<String> = values.clone().map(text).collect();
    let values = match input {
        FieldType::Float => Values::Float(values.map(|v| v as f64 / 10.0).collect()),
        FieldType::Integer => Values::Integer(values.collect()),
        FieldType::Unsigned => Values::Unsigned(values.map(|v| (v ^ i64::MIN) as u64).collect()),
        FieldType::Boolean => Values::Boolean(values.map(|v| v > 0).collect()),
        FieldType::String if is_dictionary => {
            let codes = (0..rows.len() as u32).rev().collect();
            Values::Dictionary(codes, Arc::new(texts.iter().rev().map(String::as_str).collect()))
        }
        FieldType::String => Values::String(texts.iter().map(String::as_str).collect()),
    };
    let validity: Bitmap = rows.iter().map(|row| row.1.is_some()).collect();
    let validity = (validity.count_ones() < rows.len()).then_some(validity);
    Column { values, validity }
}

/// Adds the rows, cut into runs.
fn add(tally: &mut Tally, input: FieldType, rows: &[Row], is_dictionary: bool) {
    let mut runs: Vec<Run> = Vec::new();
    let is_sorted = rows.is_sorted_by_key(|row| row.2) || rows.is_sorted_by_key(|row| -row.2);
    let series = if is_sorted { 0 } else { SEVERAL };
    for ((slot, ..), at) in rows.iter().zip(0..) {
        match runs.last_mut() {
            Some(run) if run.slot == *slot => run.end += 1,
            _ => runs.push(Run { slot: *slot, start: at, end: at + 1, series }),
        }
    }
    let times: Vec<i64> = rows.iter().map(|row| row.2).collect();
    tally.add_rows(&column(input, rows, is_dictionary), &times, &runs);
}

/// Of each value of a slot its occurrences, by value.
fn expected(input: FieldType, rows: &[Row], slot: u32) -> Vec<(Scalar, Occurrences)> {
    let mut found: BTreeMap<i64, (Scalar, Occurrences)> = BTreeMap::new();
    let column = column(input, rows, false);
    for (row, (of, value, time)) in rows.iter().enumerate() {
        let (Some(value), true) = (value, *of == slot) else { continue };
        let value = if input == FieldType::Boolean { i64::from(*value > 0) } else { *value };
        let one = Occurrences::one(*time);
        let scalar = column.get(row).expect("the row has a value");
        found.entry(value).and_modify(|(_, all)| all.add(one)).or_insert((scalar, one));
    }
    found.into_values().collect()
}

fn input() -> impl Strategy<Value = FieldType> {
    prop::sample::select(vec![
        FieldType::Float,
        FieldType::Integer,
        FieldType::Unsigned,
        FieldType::Boolean,
        FieldType::String,
    ])
}

proptest! {
    #[test]
    fn finds_what_is_found_one_by_one(
        input in input(),
        (rows, more) in (rows(), rows()),
        (ascending, is_dictionary) in (any::<bool>(), any::<bool>()),
        spread_from in prop::sample::select(vec![2, 6, SPREAD_FROM]),
    ) {
        // What another thread found is added with its slots the other way round.
        let turned: Vec<Row> = more.iter().map(|(slot, v, t)| (1 - slot, *v, *t)).collect();
        let all = [&rows[..], &turned[..]].concat();
        for function in [Function::Distinct, Function::Mode, Function::CountDistinct] {
            let new = || {
                let rows_expected = SPREAD_ROWS_MIN;
                Tally { spread_from, rows_expected, ..Tally::new(function.clone(), input) }
            };
            let mut tally = new();
            add(&mut tally, input, &rows, is_dictionary);
            let mut other = new();
            add(&mut other, input, &more, false);
            tally.merge(other, &[(0, 1), (1, 0)]);
            tally.sort(2);
            for slot in 0..2 {
                let mut found = expected(input, &all, slot);
                let want: Vec<Scalar> = match function {
                    Function::CountDistinct if found.is_empty() => Vec::new(),
                    Function::CountDistinct => vec![Scalar::Integer(found.len() as i64)],
                    Function::Distinct => {
                        let appears = |o: &Occurrences| if ascending { o.first } else { o.last };
                        found.sort_by_key(|(_, found)| appears(found));
                        found.into_iter().map(|(value, _)| value).collect()
                    }
                    _ if input == FieldType::Boolean => {
                        let most = found.iter().map(|(_, found)| found.count).max();
                        let largest = found.iter().rfind(|(_, found)| Some(found.count) == most);
                        largest.map(|(value, _)| value.clone()).into_iter().collect()
                    }
                    _ => {
                        let best = values::mode(found.iter().map(|(_, found)| *found));
                        best.map(|at| found[at].0.clone()).into_iter().collect()
                    }
                };
                prop_assert_eq!(tally.results(slot as usize, ascending), want);
            }
        }
    }
}

#[test]
fn zeros_of_either_sign_are_one_value_shown_as_it_came_first() {
    let mut tally = Tally::new(Function::Distinct, FieldType::Float);
    let column = Column::new(Values::Float(vec![0.0, 1.0, -0.0]));
    tally.add_rows(&column, &[5, 6, 2], &[Run { slot: 0, start: 0, end: 3, series: 0 }]);
    tally.sort(1);
    let [Scalar::Float(zero), Scalar::Float(one)] = tally.results(0, true)[..] else {
        panic!("two values")
    };
    assert!(zero == 0.0 && zero.is_sign_negative() && one == 1.0);
}

#[test]
fn memory_follows_the_values_that_differ() {
    let mut tally = Tally::new(Function::Mode, FieldType::Integer);
    let rows = 100_000;
    let values = (0..i64::from(rows)).map(|row| row % 7).collect();
    let times: Vec<i64> = (0..i64::from(rows)).collect();
    let run = Run { slot: 0, start: 0, end: rows, series: 0 };
    tally.add_rows(&Column::new(Values::Integer(values)), &times, &[run]);
    assert!(tally.memory_bytes() < 1024, "{}", tally.memory_bytes());
}

#[test]
fn very_many_values_are_each_known_once() {
    let rows = 300_000u32;
    let of = |function: Function, from: u64| {
        let tally = Tally::new(function, FieldType::Integer);
        let mut tally = Tally { spread_from: 1000, rows_expected: SPREAD_ROWS_MIN, ..tally };
        // They lie far apart, and come again after 200,000 rows.
        let value = |row: u64| (row * 7919 % 200_000).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let values = (from..from + u64::from(rows)).map(|row| value(row).cast_signed()).collect();
        let times: Vec<i64> = (0..i64::from(rows)).collect();
        let runs = [(0, 0..rows / 2), (1, rows / 2..rows)];
        let runs = runs.map(|(slot, Range { start, end })| Run { slot, start, end, series: 0 });
        tally.add_rows(&Column::new(Values::Integer(values)), &times, &runs);
        tally
    };
    // One slot has the first and the third 150,000 rows, the other the second ones, twice.
    let both = |function: Function, slots: &[(usize, usize)]| {
        let mut tally = of(function.clone(), 0);
        tally.merge(of(function, 150_000), slots);
        tally.sort(2);
        [0, 1].map(|slot| tally.results(slot, true))
    };
    let crossed = [(0, 1), (1, 0)];
    let count = |count| vec![Scalar::Integer(count)];
    assert_eq!(both(Function::CountDistinct, &crossed), [count(200_000), count(150_000)]);
    let [first, second] = both(Function::Distinct, &crossed);
    assert_eq!((first.len(), second.len()), (200_000, 150_000));
    // Slots that stay the same: the first two, and the last two.
    let same = [(0, 0), (1, 1)];
    assert_eq!(both(Function::CountDistinct, &same), [count(200_000), count(200_000)]);
    // The smallest of those that come twice, in the order of InfluxDB.
    let [mode, _] = both(Function::Mode, &crossed);
    assert!(mode.len() == 1 && first.contains(&mode[0]));
}
