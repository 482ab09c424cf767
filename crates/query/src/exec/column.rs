//! Operations on columns: picking rows, casting, single cells.

use std::sync::Arc;

use codec::kernels;
use model::{Bitmap, Column, ColumnBatch, FieldType, Scalar, SeriesRun, Values};

/// One cell; `None`: no value.
pub(crate) type Cell = Option<Scalar>;

/// Stands for "no row" among the indexes of [`take`]: a window without points.
pub(crate) const NO_ROW: u32 = u32::MAX;
/// Stands for "no row" among the indexes of [`take`]: not even a window.
pub(crate) const ABSENT: u32 = u32::MAX - 1;

/// The type of a column's values; text for dictionaries, integers for times.
pub(crate) fn type_of(values: &Values) -> FieldType {
    match values {
        Values::Float(_) => FieldType::Float,
        Values::Time(_) | Values::Integer(_) => FieldType::Integer,
        Values::Unsigned(_) => FieldType::Unsigned,
        Values::Boolean(_) => FieldType::Boolean,
        Values::String(_) | Values::Dictionary(..) => FieldType::String,
    }
}

/// A column of `rows` missing values.
pub(crate) fn missing(field_type: FieldType, rows: usize) -> Column {
    let mut column = Column::new(Values::empty(field_type));
    column.extend_missing(rows);
    column
}

/// A column of `rows` times `cell`.
pub(crate) fn repeated(cell: &Scalar, rows: usize) -> Column {
    Column::new(match cell {
        Scalar::Float(v) => Values::Float(vec![*v; rows]),
        Scalar::Integer(v) => Values::Integer(vec![*v; rows]),
        Scalar::Unsigned(v) => Values::Unsigned(vec![*v; rows]),
        Scalar::Boolean(v) => Values::Boolean(Bitmap::filled(rows, *v)),
        Scalar::String(v) => {
            Values::Dictionary(vec![0; rows], Arc::new([&**v].into_iter().collect()))
        }
    })
}

/// The rows `rows` of a column, in that order; [`NO_ROW`] and [`ABSENT`] give missing values.
pub(crate) fn take(column: &Column, rows: &[u32]) -> Column {
    picked(column, rows, rows.iter().any(|row| *row >= ABSENT))
}

/// The same, where each of `rows` is one of the column's.
pub(crate) fn arrange(column: &Column, rows: &[u32]) -> Column {
    picked(column, rows, false)
}

fn picked(column: &Column, rows: &[u32], has_gaps: bool) -> Column {
    let validity = if has_gaps || column.validity.is_some() {
        let valid = |row: &u32| *row < ABSENT && column.is_valid(*row as usize);
        Some(rows.iter().map(valid).collect::<Bitmap>())
    } else {
        None
    };
    let values = match &column.values {
        // Without rows there is nothing a gap could stand on.
        _ if column.is_empty() => return missing(type_of(&column.values), rows.len()),
        Values::Time(v) => Values::Time(pick(v, rows, has_gaps)),
        Values::Float(v) => Values::Float(pick(v, rows, has_gaps)),
        Values::Integer(v) => Values::Integer(pick(v, rows, has_gaps)),
        Values::Unsigned(v) => Values::Unsigned(pick(v, rows, has_gaps)),
        Values::Boolean(v) => Values::Boolean(rows.iter().map(|r| v.get(place(*r))).collect()),
        Values::String(v) => {
            let some = rows.iter().map(|row| (*row < ABSENT).then_some(*row as usize));
            Values::String(v.take_some(some))
        }
        Values::Dictionary(codes, texts) => {
            Values::Dictionary(pick(codes, rows, has_gaps), Arc::clone(texts))
        }
    };
    Column { values, validity }
}

/// The values of `rows`, any for a gap.
fn pick<T: Copy>(values: &[T], rows: &[u32], has_gaps: bool) -> Vec<T> {
    if has_gaps {
        return rows.iter().map(|row| values[place(*row)]).collect();
    }
    rows.iter().map(|row| values[*row as usize]).collect()
}

/// The place of a row, any for a gap.
fn place(row: u32) -> usize {
    if row >= ABSENT { 0 } else { row as usize }
}

/// Rows `range` of a column.
pub(crate) fn slice(column: &Column, range: std::ops::Range<usize>) -> Column {
    let values = match &column.values {
        Values::Time(v) => Values::Time(v[range.clone()].to_vec()),
        Values::Dictionary(codes, texts) => {
            Values::Dictionary(codes[range.clone()].to_vec(), Arc::clone(texts))
        }
        other => {
            let mut out = Values::empty(type_of(other));
            out.extend_from(other, range.clone());
            out
        }
    };
    let validity = column.validity.as_ref().map(|validity| {
        let mut out = Bitmap::new();
        out.extend_from(validity, range);
        out
    });
    Column { values, validity }
}

/// The rows of `batch` that `selection` has a bit for, runs included.
pub(crate) fn filter(batch: &ColumnBatch, selection: &Bitmap) -> ColumnBatch {
    let (mut runs, mut start) = (Vec::new(), 0);
    for run in &batch.runs {
        let end = start + run.rows as usize;
        let rows = selection.count_ones_in(start..end) as u32;
        if rows > 0 {
            runs.push(SeriesRun { series: run.series, rows });
        }
        start = end;
    }
    let columns = batch.columns.iter().map(|column| select(column, selection)).collect();
    ColumnBatch { rows: selection.count_ones(), runs, columns }
}

/// The entries of a column that `selection` has a bit for.
pub(crate) fn select(column: &Column, selection: &Bitmap) -> Column {
    assert_eq!(column.len(), selection.len(), "BUG: not a bit for each entry");
    let values = match &column.values {
        Values::Time(v) => Values::Time(selected(v, selection, kernels::filter_i64)),
        Values::Float(v) => Values::Float(selected(v, selection, kernels::filter_f64)),
        Values::Integer(v) => Values::Integer(selected(v, selection, kernels::filter_i64)),
        Values::Unsigned(v) => Values::Unsigned(selected(v, selection, kernels::filter_u64)),
        Values::Boolean(v) => Values::Boolean(select_bits(v, selection)),
        Values::String(v) => Values::String(v.take(selection.ones())),
        Values::Dictionary(codes, texts) => {
            let codes = selection.ones().map(|row| codes[row]).collect();
            Values::Dictionary(codes, Arc::clone(texts))
        }
    };
    let validity = column.validity.as_ref().map(|bits| select_bits(bits, selection));
    Column { values, validity: validity.filter(|bits| bits.count_ones() < bits.len()) }
}

/// The bits that `selection` has a bit for.
fn select_bits(bits: &Bitmap, selection: &Bitmap) -> Bitmap {
    let mut words = Vec::with_capacity(bits.words().len());
    let found = kernels::filter_bits(bits.words(), selection.words(), bits.len(), &mut words);
    Bitmap::from_words(words, found)
}

/// The values that `selection` has a bit for, as `filter` finds them many at a time.
fn selected<T>(
    values: &[T],
    selection: &Bitmap,
    filter: impl FnOnce(&[T], &[u64], &mut Vec<T>),
) -> Vec<T> {
    let mut picked = Vec::new();
    filter(values, selection.words(), &mut picked);
    picked
}

/// Adds all of `more` behind `column`; two dictionaries that differ become text.
pub(crate) fn append(column: &mut Column, more: &Column) {
    let same_kind = match (&column.values, &more.values) {
        (Values::Dictionary(_, a), Values::Dictionary(_, b)) => Arc::ptr_eq(a, b),
        (Values::Dictionary(..), _) | (_, Values::Dictionary(..)) => false,
        _ => true,
    };
    if same_kind {
        column.extend_from(more, 0..more.len());
    } else if column.is_empty() {
        *column = more.clone();
    } else {
        undictionary(column);
        let mut more = more.clone();
        undictionary(&mut more);
        column.extend_from(&more, 0..more.len());
    }
}

/// Adds the entries `range` of `more` to values of their type; a dictionary's entries as text.
pub(crate) fn extend_plain(values: &mut Values, more: &Values, range: std::ops::Range<usize>) {
    match (values, more) {
        (Values::String(texts), Values::Dictionary(codes, dictionary)) => {
            codes[range].iter().for_each(|code| texts.push(dictionary.get(*code as usize)));
        }
        (values, more) => values.extend_from(more, range),
    }
}

/// Makes a dictionary plain text.
pub(crate) fn undictionary(column: &mut Column) {
    if let Values::Dictionary(codes, texts) = &column.values {
        let plain = codes.iter().map(|code| texts.get(*code as usize)).collect();
        column.values = Values::String(plain);
    }
}

/// A column of those that nobody else needs; a copy if it is wanted again.
pub(crate) fn take_column(columns: &mut [Column], at: usize, is_wanted_again: bool) -> Column {
    if is_wanted_again {
        return columns[at].clone();
    }
    std::mem::replace(&mut columns[at], Column::new(Values::Time(Vec::new())))
}

/// The column with its values as `to`: numbers convert as InfluxDB's casts do, anything else has no
/// value then.
pub(crate) fn cast(column: Column, to: FieldType) -> Column {
    let from = type_of(&column.values);
    if from == to {
        return column;
    }
    let rows = column.len();
    let values = match (column.values, to) {
        (Values::Integer(v), FieldType::Float) => {
            Values::Float(v.into_iter().map(|x| x as f64).collect())
        }
        (Values::Unsigned(v), FieldType::Float) => {
            Values::Float(v.into_iter().map(|x| x as f64).collect())
        }
        (Values::Float(v), FieldType::Integer) => {
            Values::Integer(v.into_iter().map(|x| x as i64).collect())
        }
        (Values::Unsigned(v), FieldType::Integer) => {
            Values::Integer(v.into_iter().map(u64::cast_signed).collect())
        }
        (Values::Float(v), FieldType::Unsigned) => {
            Values::Unsigned(v.into_iter().map(|x| x as u64).collect())
        }
        (Values::Integer(v), FieldType::Unsigned) => {
            Values::Unsigned(v.into_iter().map(i64::cast_unsigned).collect())
        }
        _ => return missing(to, rows),
    };
    Column { values, validity: column.validity }
}

/// A number as `to`; `None` where it has no such form.
pub(crate) fn cast_scalar(value: &Scalar, to: FieldType) -> Cell {
    let column = cast(repeated(value, 1), to);
    column.get(0)
}

/// Gives missing values the last value before them, or `last` at the start; `last` becomes the last
/// value there is.
pub(crate) fn fill_forward(column: &mut Column, last: &mut Cell) {
    let Some(validity) = &column.validity else {
        if !column.is_empty() {
            *last = column.get(column.len() - 1);
        }
        return;
    };
    if validity.count_ones() == 0 && last.is_none() {
        return;
    }
    undictionary(column);
    let mut out = Column::new(Values::empty(type_of(&column.values)));
    for row in 0..column.len() {
        if let Some(value) = column.get(row) {
            *last = Some(value);
        }
        out.push(last.as_ref());
    }
    *column = out;
}

/// Gives missing values `value`, where it has the column's type.
pub(crate) fn fill_missing(column: &mut Column, value: &Scalar) {
    if column.validity.is_none() {
        return;
    }
    let Some(value) = cast_scalar(value, type_of(&column.values)) else { return };
    let Some(validity) = column.validity.take() else { return };
    for row in 0..validity.len() {
        if validity.get(row) {
            continue;
        }
        match (&mut column.values, &value) {
            (Values::Float(v), Scalar::Float(x)) => v[row] = *x,
            (Values::Integer(v), Scalar::Integer(x)) => v[row] = *x,
            (Values::Unsigned(v), Scalar::Unsigned(x)) => v[row] = *x,
            _ => {
                column.validity = Some(validity);
                return;
            }
        }
    }
}

/// NaN becomes a missing value, as InfluxDB's results show it.
pub(crate) fn hide_nan(column: &mut Column) {
    let Values::Float(values) = &column.values else { return };
    if !values.iter().any(|v| v.is_nan()) {
        return;
    }
    let valid = (0..values.len()).map(|row| column.is_valid(row) && !values[row].is_nan());
    column.validity = Some(valid.collect());
}

/// Both bitmaps; `None` is all ones.
pub(crate) fn both(a: Option<&Bitmap>, b: Option<&Bitmap>) -> Option<Bitmap> {
    match (a, b) {
        (None, None) => None,
        (Some(one), None) | (None, Some(one)) => Some(one.clone()),
        (Some(a), Some(b)) => Some(a.and(b)),
    }
}

/// The bitmap of `op` on the words of two bitmaps of one length.
pub(crate) fn combine(a: &Bitmap, b: &Bitmap, op: impl Fn(u64, u64) -> u64) -> Bitmap {
    assert_eq!(a.len(), b.len(), "BUG: bitmaps of two lengths");
    let words = a.words().iter().zip(b.words()).map(|(x, y)| op(*x, *y)).collect();
    Bitmap::from_words(words, a.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn selected_rows_are_those_with_a_bit(
            stretches in prop::collection::vec((0usize..3, 1usize..150), 1..6),
            has_gaps: bool,
        ) {
            // Nothing of some rows, everything of others, and every third.
            let bits = |(kind, len): &(usize, usize)| {
                let kind = *kind;
                (0..*len).map(move |at| [false, true, at % 3 == 1][kind])
            };
            let selection: Bitmap = stretches.iter().flat_map(bits).collect();
            let rows = selection.len();
            let validity = has_gaps.then(|| (0..rows).map(|row| row % 5 > 0).collect());
            let texts: model::Strings = ["a", "b", "c"].into_iter().collect();
            let columns = [
                Values::Integer((0..rows as i64).collect()),
                Values::Float((0..rows).map(|row| row as f64).collect()),
                Values::Boolean((0..rows).map(|row| row % 7 == 0).collect()),
                Values::Dictionary((0..rows as u32).map(|row| row % 3).collect(), Arc::new(texts)),
            ];
            let numbers: Vec<u32> = selection.ones().map(|row| row as u32).collect();
            for values in columns {
                let column = Column { values, validity: validity.clone() };
                let mut want = take(&column, &numbers);
                want.validity = want.validity.filter(|bits| bits.count_ones() < bits.len());
                prop_assert_eq!(select(&column, &selection), want);
            }
        }
    }
}
