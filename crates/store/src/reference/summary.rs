//! Summaries one at a time: how the model makes them, and how tests look at those of a store.

use std::cmp::Ordering;

use model::{FieldSummaries, FieldType, Scalar, TimedValues, Values};

use super::scan::compare;
use crate::SummaryParts;

/// One field over one span. With a count of 0 the rest says nothing.
#[derive(Clone, Debug)]
pub(crate) struct FieldSummary {
    pub(crate) count: u64,
    pub(crate) sum: Scalar,
    pub(crate) min: Scalar,
    pub(crate) max: Scalar,
    pub(crate) first: (i64, Scalar),
    pub(crate) last: (i64, Scalar),
}

impl FieldSummary {
    /// Sums up values with their times, which ascend.
    pub(super) fn of<'a>(
        field_type: FieldType,
        values: impl Iterator<Item = (i64, &'a Scalar)>,
    ) -> Self {
        let mut sum = Self::one(0, &zero(field_type));
        sum.count = 0;
        for (time_ns, value) in values {
            if sum.count == 0 {
                let first = add(&sum.sum, value);
                sum = Self { sum: first, ..Self::one(time_ns, value) };
                continue;
            }
            sum.count += 1;
            sum.sum = add(&sum.sum, value);
            if compare(value, &sum.min) == Some(Ordering::Less) {
                sum.min = value.clone();
            }
            if compare(value, &sum.max) == Some(Ordering::Greater) {
                sum.max = value.clone();
            }
            sum.last = (time_ns, value.clone());
        }
        sum
    }

    /// The summary of one value.
    pub(crate) fn one(time_ns: i64, value: &Scalar) -> Self {
        let timed = (time_ns, value.clone());
        let value = || value.clone();
        Self {
            count: 1,
            sum: value(),
            min: value(),
            max: value(),
            first: timed.clone(),
            last: timed,
        }
    }

    /// Adds what of it is in `parts` to `columns`.
    pub(super) fn push_to(&self, columns: &mut FieldSummaries, parts: SummaryParts) {
        columns.counts.push(self.count);
        if parts.sum {
            columns.sums.push(&self.sum);
        }
        if parts.min_max {
            columns.mins.push(&self.min);
            columns.maxs.push(&self.max);
        }
        if parts.first_last {
            columns.firsts.times.push(self.first.0);
            columns.firsts.values.push(&self.first.1);
            columns.lasts.times.push(self.last.0);
            columns.lasts.values.push(&self.last.1);
        }
    }

    /// What a store says of a span. What is not in `parts` is not looked at, and false here.
    pub(crate) fn read(columns: &FieldSummaries, at: usize, parts: SummaryParts) -> Self {
        let parts = parts_of(columns, parts);
        let value = |values: &Values, is_wanted: bool| {
            if is_wanted { values.get(at) } else { Scalar::Boolean(false) }
        };
        let timed = |ends: &TimedValues| {
            let time_ns = if parts.first_last { ends.times[at] } else { 0 };
            (time_ns, value(&ends.values, parts.first_last))
        };
        Self {
            count: columns.counts[at],
            sum: value(&columns.sums, parts.sum),
            min: value(&columns.mins, parts.min_max),
            max: value(&columns.maxs, parts.min_max),
            first: timed(&columns.firsts),
            last: timed(&columns.lasts),
        }
    }
}

/// Those of `parts` that a field has: of texts nothing is added up, nor the smallest one looked for.
pub(crate) fn parts_of(field: &FieldSummaries, parts: SummaryParts) -> SummaryParts {
    match field.sums {
        Values::String(_) => SummaryParts { sum: false, min_max: false, ..parts },
        _ => parts,
    }
}

fn zero(field_type: FieldType) -> Scalar {
    match field_type {
        FieldType::Float => Scalar::Float(0.0),
        FieldType::Integer => Scalar::Integer(0),
        FieldType::Unsigned => Scalar::Unsigned(0),
        FieldType::String => Scalar::String("".into()),
        FieldType::Boolean => Scalar::Boolean(false),
    }
}

/// Integers wrap; what has no sum stays as it is.
fn add(a: &Scalar, b: &Scalar) -> Scalar {
    match (a, b) {
        (Scalar::Float(a), Scalar::Float(b)) => Scalar::Float(a + b),
        (Scalar::Integer(a), Scalar::Integer(b)) => Scalar::Integer(a.wrapping_add(*b)),
        (Scalar::Unsigned(a), Scalar::Unsigned(b)) => Scalar::Unsigned(a.wrapping_add(*b)),
        _ => a.clone(),
    }
}
