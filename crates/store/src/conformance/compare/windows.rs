//! Compares what rows and summaries add up to, window by window.

use std::collections::BTreeMap;

use model::{FieldType, Name, Scalar};

use super::cursor::read_items;
use super::{is_plain, without_hints};
use crate::conformance::apply::failed;
use crate::reference::{FieldSummary, satisfies, window_of};
use crate::testing::{self, Row, same as same_bits};
use crate::{Scan, ScanRequest, ScanSlice, SummaryParts};

/// What is known of one field in one window of one series.
#[derive(Clone, Debug, Default)]
struct Sum {
    count: u64,
    /// Not wrapped; floats in their own sum.
    integers: i128,
    floats: f64,
    magnitude: f64,
    min: Option<Scalar>,
    max: Option<Scalar>,
    first: Option<(i64, Scalar)>,
    last: Option<(i64, Scalar)>,
    /// Whether every value was one that sums can be compared of. Known of the model only.
    plain: bool,
}

type Sums = BTreeMap<(String, i128), Vec<Sum>>;

pub(super) fn check_windows(
    scan: &dyn Scan,
    pinned: &dyn Scan,
    request: &ScanRequest,
    slice: &ScanSlice,
) -> Result<(), String> {
    let parts = request.windows.map_or(SummaryParts::default(), |w| w.parts);
    let (rows, summaries) = read_items(scan, request, slice)?;
    let mut got = Sums::new();
    // Filters are a hint where rows are handed out.
    let is_wanted = |row: &&Row| {
        let value = |name: &Name| row.fields.iter().find(|(n, _)| n == name).map(|(_, v)| v);
        request.filters.iter().all(|filter| satisfies(filter, value))
    };
    rows.iter().filter(is_wanted).for_each(|row| add_row(&mut got, request, row));
    for batch in &summaries {
        for (at, span) in batch.spans.iter().enumerate() {
            let key = match request.joins_series {
                true => String::new(),
                false => testing::series_key(scan, request, span.series),
            };
            let sums = entry(&mut got, request, key, span.min_time);
            for (sum, field) in sums.iter_mut().zip(&batch.fields) {
                let summary = FieldSummary::read(field, at, parts);
                if summary.count > 0 {
                    add(sum, &summary);
                }
            }
        }
    }
    let keys: Vec<String> = match &slice.series {
        Some(some) => some.iter().map(|s| testing::series_key(scan, request, *s)).collect(),
        None => (0..scan.series().len).map(|s| testing::series_key(scan, request, s)).collect(),
    };
    let mut want = Sums::new();
    let everything = ScanSlice { time: slice.time, ..ScanSlice::all() };
    let model_rows = testing::read_slice(pinned, &without_hints(request), &everything);
    for row in model_rows.map_err(failed("model"))? {
        if keys.contains(&row.key) && is_wanted(&&row) {
            add_row(&mut want, request, &row);
        }
    }
    let (got_windows, want_windows): (Vec<_>, Vec<_>) =
        (got.keys().collect(), want.keys().collect());
    super::same("windows with rows", &got_windows, &want_windows)?;
    for (key, want_sums) in &want {
        for ((field, got), want) in request.fields.iter().zip(&got[key]).zip(want_sums) {
            if !agree(field.1, got, want, parts) {
                return Err(format!(
                    "field {} of {key:?}\n  is        {got:?}\n  should be {want:?}",
                    field.0
                ));
            }
        }
    }
    Ok(())
}

fn entry<'a>(
    sums: &'a mut Sums,
    request: &ScanRequest,
    key: String,
    time_ns: i64,
) -> &'a mut Vec<Sum> {
    let window = request.windows.map_or(0, |windows| window_of(time_ns, windows));
    let empty = || vec![Sum { plain: true, ..Sum::default() }; request.fields.len()];
    sums.entry((key, window)).or_insert_with(empty)
}

fn add_row(sums: &mut Sums, request: &ScanRequest, row: &Row) {
    let key = if request.joins_series { String::new() } else { row.key.clone() };
    let sums = entry(sums, request, key, row.time_ns);
    for (name, value) in &row.fields {
        let at = request.fields.iter().position(|f| f.0 == *name).expect("BUG: not asked for");
        let sum = &mut sums[at];
        sum.plain &= is_plain(value);
        add(sum, &FieldSummary::one(row.time_ns, value));
    }
}

fn add(sum: &mut Sum, field: &FieldSummary) {
    sum.count += field.count;
    match field.sum {
        Scalar::Integer(v) => sum.integers = sum.integers.wrapping_add(v.into()),
        Scalar::Unsigned(v) => sum.integers = sum.integers.wrapping_add(v.into()),
        Scalar::Float(v) => {
            sum.floats += v;
            sum.magnitude += v.abs();
        }
        _ => {}
    }
    let smaller = |a: &Scalar, b: &Scalar| number(a).zip(number(b)).is_none_or(|(a, b)| a < b);
    if sum.min.as_ref().is_none_or(|min| smaller(&field.min, min)) {
        sum.min = Some(field.min.clone());
    }
    if sum.max.as_ref().is_none_or(|max| smaller(max, &field.max)) {
        sum.max = Some(field.max.clone());
    }
    if sum.first.as_ref().is_none_or(|first| field.first.0 < first.0) {
        sum.first = Some(field.first.clone());
    }
    if sum.last.as_ref().is_none_or(|last| field.last.0 > last.0) {
        sum.last = Some(field.last.clone());
    }
}

/// A number that orders as the value does, among values of one type.
fn number(value: &Scalar) -> Option<Order> {
    match value {
        Scalar::Float(v) => Some(Order::Float(*v)),
        Scalar::Integer(v) => Some(Order::Whole((*v).into())),
        Scalar::Unsigned(v) => Some(Order::Whole((*v).into())),
        _ => None,
    }
}

#[derive(PartialEq, PartialOrd)]
enum Order {
    Float(f64),
    Whole(i128),
}

fn agree(field_type: FieldType, got: &Sum, want: &Sum, parts: SummaryParts) -> bool {
    if got.count != want.count {
        return false;
    }
    if want.count == 0 {
        return true;
    }
    let timed = |a: &Option<(i64, Scalar)>, b: &Option<(i64, Scalar)>| match (a, b) {
        (Some(a), Some(b)) => a.0 == b.0 && same_bits(&a.1, &b.1),
        _ => false,
    };
    if parts.first_last && !(timed(&got.first, &want.first) && timed(&got.last, &want.last)) {
        return false;
    }
    if !want.plain || field_type == FieldType::String {
        return true;
    }
    let sums_agree = match field_type {
        // Integers wrap at 64 bits; the order of additions cannot be seen then.
        FieldType::Integer | FieldType::Unsigned => got.integers as u64 == want.integers as u64,
        _ => (got.floats - want.floats).abs() <= 1e-9 * want.magnitude,
    };
    // Zeros of both signs are one number.
    let bounds_agree = |a: &Option<Scalar>, b: &Option<Scalar>| a == b;
    (!parts.sum || sums_agree)
        && (!parts.min_max
            || bounds_agree(&got.min, &want.min) && bounds_agree(&got.max, &want.max))
}
