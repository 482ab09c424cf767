//! What summaries say of conditions on fields before a value is read: that no row of some satisfies them, or that all do.
//!
//! Pages say it of their block, window summaries of their spans. Floats with a NaN among them have no bounds, texts never
//! have: of these nothing is known.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use model::{CompareOp, FieldFilter, FieldType, Holds, Operand, Scalar, TextPattern};

use crate::directory::{Block, Directory};
use crate::error::SegmentError;
use crate::reader::SegmentReader;
use crate::windows::BlockWindows;

/// Fewer rows are read faster than the summaries that would spare some of them.
pub(crate) const SIFTED_ROWS_MIN: usize = 2048;

/// A comparison of a field with something, the fields by their numbers in a directory.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldCondition {
    /// The field on the left.
    pub field: usize,
    /// The comparison.
    pub op: CompareOp,
    /// What is on the right: of the field's type.
    pub operand: FieldOperand,
}

/// What a field is compared with.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldOperand {
    /// A constant.
    Constant(Scalar),
    /// Another field.
    Field(usize),
    /// Texts that are looked for.
    Text(TextPattern),
}

/// Consecutive rows of a block that may satisfy some conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The rows.
    pub rows: Range<usize>,
    /// Whether each of them does.
    pub all_satisfy: bool,
}

impl FieldCondition {
    /// Whether texts are wanted that are one or have some in them, or are not or have none.
    #[must_use]
    pub fn is_of_texts(&self) -> bool {
        match &self.operand {
            FieldOperand::Text(_) => true,
            FieldOperand::Constant(Scalar::String(_)) => {
                matches!(self.op, CompareOp::Equal | CompareOp::NotEqual)
            }
            _ => false,
        }
    }

    /// The fields that are looked at.
    pub fn fields(&self) -> impl Iterator<Item = usize> {
        let other = match self.operand {
            FieldOperand::Constant(_) | FieldOperand::Text(_) => None,
            FieldOperand::Field(other) => Some(other),
        };
        std::iter::once(self.field).chain(other)
    }
}

impl Directory {
    /// A filter as a condition; `None`: no row satisfies it, since a field is not there or has another type.
    #[must_use]
    pub fn condition(&self, filter: &FieldFilter) -> Option<FieldCondition> {
        let field = self.field(&filter.field)?;
        let field_type = self.fields()[field].1;
        let operand = match &filter.operand {
            Operand::Constant(constant) if constant.field_type() == field_type => {
                FieldOperand::Constant(constant.clone())
            }
            Operand::Text(pattern) if field_type == FieldType::String => {
                FieldOperand::Text(pattern.clone())
            }
            Operand::Constant(_) | Operand::Text(_) => return None,
            Operand::Field(other) => {
                let other = self.field(other)?;
                if self.fields()[other].1 != field_type {
                    return None;
                }
                FieldOperand::Field(other)
            }
        };
        Some(FieldCondition { field, op: filter.op, operand })
    }
}

/// What is known of a field in some rows.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// The bits of the least and the greatest value, if they are known.
    numbers: Option<(u64, u64)>,
    /// Whether each row has a value.
    are_all_there: bool,
}

impl Bounds {
    /// Of a text.
    const UNKNOWN: Self = Self { numbers: None, are_all_there: true };

    fn of_constant(constant: &Scalar) -> Self {
        let bits = match constant {
            Scalar::Float(v) => Some(v.to_bits()),
            Scalar::Integer(v) => Some(v.cast_unsigned()),
            Scalar::Unsigned(v) => Some(*v),
            Scalar::Boolean(v) => Some(u64::from(*v)),
            Scalar::String(_) => None,
        };
        Self { numbers: bits.map(|bits| (bits, bits)), are_all_there: true }
    }

    /// `None`: no row of the block has a value.
    fn of_block(block: &Block, field: usize) -> Option<Self> {
        let page = block.page(field)?;
        let numbers = page.numbers.map(|numbers| (numbers.min, numbers.max));
        Some(Self { numbers, are_all_there: page.count as usize == block.rows() })
    }

    /// `None`: no row of the span has a value.
    fn of_span(windows: &BlockWindows, place: usize, span: usize) -> Option<Self> {
        let (field, rows) = (windows.field(place), windows.index().rows(span).len());
        let count = field.count(span, rows);
        let numbers = field.numbers()[span];
        let there =
            Self { numbers: Some((numbers.min, numbers.max)), are_all_there: count == rows as u64 };
        (count > 0).then_some(there)
    }
}

/// How two values of a type compare, by their bits.
fn compare(field_type: FieldType, a: u64, b: u64) -> Option<Ordering> {
    match field_type {
        FieldType::Float => f64::from_bits(a).partial_cmp(&f64::from_bits(b)),
        FieldType::Integer => Some(a.cast_signed().cmp(&b.cast_signed())),
        FieldType::Unsigned | FieldType::Boolean => Some(a.cmp(&b)),
        FieldType::String => None,
    }
}

/// Whether rows satisfy a comparison of what lies within two bounds; `None`: there is nothing.
fn holds(
    field_type: FieldType,
    op: CompareOp,
    left: Option<Bounds>,
    right: Option<Bounds>,
) -> Holds {
    let (Some(left), Some(right)) = (left, right) else { return Holds::Never };
    let (Some((left_min, left_max)), Some((right_min, right_max))) = (left.numbers, right.numbers)
    else {
        return Holds::Maybe;
    };
    let least = compare(field_type, left_min, right_max);
    let most = compare(field_type, left_max, right_min);
    let (Some(least), Some(most)) = (least, most) else { return Holds::Maybe };
    match op.holds_within(least, most) {
        Holds::Always if !(left.are_all_there && right.are_all_there) => Holds::Maybe,
        holds => holds,
    }
}

impl Block {
    /// Whether rows satisfy a condition, as far as its pages' summaries tell.
    #[must_use]
    pub fn holds(&self, condition: &FieldCondition) -> Holds {
        let left = Bounds::of_block(self, condition.field);
        let right = match &condition.operand {
            FieldOperand::Constant(constant) => Some(Bounds::of_constant(constant)),
            FieldOperand::Text(_) => Some(Bounds::UNKNOWN),
            FieldOperand::Field(other) => Bounds::of_block(self, *other),
        };
        holds(self.field_type(condition.field), condition.op, left, right)
    }
}

/// See [`SegmentReader::sift`].
pub(crate) fn sift(
    reader: &SegmentReader,
    block: &Block,
    rows: &Range<usize>,
    conditions: &[FieldCondition],
) -> Result<Vec<Stretch>, SegmentError> {
    let mut open = Vec::with_capacity(conditions.len());
    for condition in conditions {
        match block.holds(condition) {
            Holds::Never => return Ok(Vec::new()),
            Holds::Maybe => open.push(condition),
            Holds::Always => {}
        }
    }
    let whole = |all_satisfy| vec![Stretch { rows: rows.clone(), all_satisfy }];
    if open.is_empty() {
        return Ok(whole(true));
    }
    if rows.len() < SIFTED_ROWS_MIN {
        return Ok(whole(false));
    }
    let Some(windows) = reader.windows(block)? else { return Ok(whole(false)) };
    let mut of_spans = Vec::with_capacity(open.len());
    let mut are_all_known = true;
    for condition in open {
        match SpanCondition::open(reader, block, condition, &windows)? {
            Some(condition) => of_spans.push(condition),
            None => are_all_known = false,
        }
    }
    if of_spans.is_empty() {
        return Ok(whole(false));
    }
    Ok(stretches(&windows, rows, &of_spans, are_all_known))
}

/// A condition, and where the summaries of its fields are.
struct SpanCondition<'a> {
    condition: &'a FieldCondition,
    field_type: FieldType,
    left: usize,
    right: SpanOperand,
}

enum SpanOperand {
    Constant(Bounds),
    Place(usize),
}

impl<'a> SpanCondition<'a> {
    /// `None`: there are no summaries of its fields.
    fn open(
        reader: &SegmentReader,
        block: &Block,
        condition: &'a FieldCondition,
        windows: &Arc<BlockWindows>,
    ) -> Result<Option<Self>, SegmentError> {
        let places = reader.load_windows(block, condition.fields(), windows)?;
        let Some(places) = places else { return Ok(None) };
        let right = match &condition.operand {
            FieldOperand::Constant(constant) => {
                SpanOperand::Constant(Bounds::of_constant(constant))
            }
            FieldOperand::Text(_) => SpanOperand::Constant(Bounds::UNKNOWN),
            FieldOperand::Field(_) => SpanOperand::Place(places[1]),
        };
        let field_type = block.field_type(condition.field);
        Ok(Some(Self { condition, field_type, left: places[0], right }))
    }

    fn holds(&self, windows: &BlockWindows, span: usize) -> Holds {
        let left = Bounds::of_span(windows, self.left, span);
        let right = match self.right {
            SpanOperand::Constant(bounds) => Some(bounds),
            SpanOperand::Place(place) => Bounds::of_span(windows, place, span),
        };
        holds(self.field_type, self.condition.op, left, right)
    }
}

/// What is left of some rows when spans that no row satisfies all conditions in are left out.
fn stretches(
    windows: &BlockWindows,
    rows: &Range<usize>,
    conditions: &[SpanCondition<'_>],
    are_all_known: bool,
) -> Vec<Stretch> {
    let index = windows.index();
    let mut found: Vec<Stretch> = Vec::new();
    for span in index.span_at(rows.start)..index.len() {
        let of_span = index.rows(span);
        if of_span.start >= rows.end {
            break;
        }
        let mut all_satisfy = are_all_known;
        let may_satisfy = conditions.iter().all(|condition| {
            let holds = condition.holds(windows, span);
            all_satisfy &= holds == Holds::Always;
            holds != Holds::Never
        });
        if !may_satisfy {
            continue;
        }
        let (start, end) = (of_span.start.max(rows.start), of_span.end.min(rows.end));
        match found.last_mut() {
            Some(last) if last.rows.end == start && last.all_satisfy == all_satisfy => {
                last.rows.end = end;
            }
            _ => found.push(Stretch { rows: start..end, all_satisfy }),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use model::{SeriesId, TimeRange};

    use super::*;
    use crate::WriterOptions;
    use crate::testing::{ALL_SERIES, Cell, PlainMeasurement, Rng, Spec, open, write};

    const ROWS: usize = 6000;

    /// Two fields that rise and fall over hours, half a day apart, and one that is like the first but where it misses
    /// values for a while.
    fn measurement(field_type: FieldType) -> PlainMeasurement {
        let bits = |value: i64| match field_type {
            FieldType::Float => (value as f64 / 4.0).to_bits(),
            FieldType::Integer => (value - 500).cast_unsigned(),
            _ => value.cast_unsigned() << 54,
        };
        let wave = |row: usize| bits((1000.0 * (row as f64 / 1200.0).sin().abs()) as i64);
        let cells = |row: usize| {
            let gaps =
                (2000..2500).contains(&row) || (4000..4100).contains(&row) && row.is_multiple_of(3);
            let third = if gaps { Cell::Missing } else { Cell::Number(wave(row)) };
            vec![Cell::Number(wave(row)), Cell::Number(wave(row + 1500)), third]
        };
        let time = |row: usize| row as i64 * 10_000_000_000;
        let rows = [1, 2]
            .into_iter()
            .flat_map(|series| (0..ROWS).map(move |row| (SeriesId(series), time(row), cells(row))));
        let fields = ["a", "b", "c"].map(|name| (name.into(), field_type));
        PlainMeasurement { name: "m0".into(), fields: fields.into(), rows: rows.collect() }
    }

    fn order(field_type: FieldType, row: &[Cell], a: usize, b: &FieldOperand) -> Option<Ordering> {
        let number = |field: usize| match row[field] {
            Cell::Number(bits) => Some(bits),
            _ => None,
        };
        let right = match b {
            FieldOperand::Constant(constant) => Bounds::of_constant(constant).numbers?.0,
            FieldOperand::Field(other) => number(*other)?,
            FieldOperand::Text(_) => return None,
        };
        compare(field_type, number(a)?, right)
    }

    #[test]
    fn stretches_are_what_they_say() {
        let mut rng = Rng(3);
        for field_type in [FieldType::Float, FieldType::Integer, FieldType::Unsigned] {
            let plain = measurement(field_type);
            let options = WriterOptions { block_rows_max: 16 << 10, ..WriterOptions::hot(1) };
            let spec = Spec { seed: 1, measurements: vec![(3, 2 * ROWS)], options };
            let reader = open(write(&spec, std::slice::from_ref(&plain)).0).unwrap();
            let directory = reader.directory("m0").unwrap().unwrap();
            let blocks = reader.blocks(&directory, &ALL_SERIES, TimeRange::ALL);
            let blocks: Vec<Block> = blocks.map(Result::unwrap).collect();
            let (mut all, mut left_out) = (0, 0);
            for _ in 0..200 {
                let condition = |rng: &mut Rng| {
                    let Cell::Number(bits) = plain.rows[rng.below(ROWS)].2[0] else { panic!() };
                    let constant = crate::numbers::scalar(field_type, bits).unwrap();
                    FieldCondition {
                        field: rng.below(3),
                        op: CompareOp::ALL[rng.below(CompareOp::ALL.len())],
                        operand: match rng.below(2) {
                            0 => FieldOperand::Constant(constant),
                            _ => FieldOperand::Field(rng.below(3)),
                        },
                    }
                };
                let conditions: Vec<_> = (0..=rng.below(2)).map(|_| condition(&mut rng)).collect();
                let mut start = 0;
                for block in &blocks {
                    let of_block = &plain.rows[start..start + block.rows()];
                    start += block.rows();
                    let from = rng.below(block.rows() / 3);
                    let rows = from..from + 1 + rng.below(block.rows() - from);
                    let satisfies = |row: usize| {
                        conditions.iter().all(|FieldCondition { field, op, operand }| {
                            let order = order(field_type, &of_block[row].2, *field, operand);
                            order.is_some_and(|order| op.holds(order))
                        })
                    };
                    let mut done = rows.start;
                    for stretch in reader.sift(block, &rows, &conditions).unwrap() {
                        assert!(done <= stretch.rows.start && stretch.rows.end <= rows.end);
                        assert!(!(done..stretch.rows.start).any(satisfies), "{conditions:?}");
                        assert!(!stretch.all_satisfy || stretch.rows.clone().all(satisfies));
                        all += if stretch.all_satisfy { stretch.rows.len() } else { 0 };
                        left_out += stretch.rows.start - done;
                        done = stretch.rows.end;
                    }
                    assert!(!(done..rows.end).any(satisfies), "{conditions:?}");
                }
            }
            assert!(all > 50_000 && left_out > 50_000, "{all} {left_out}");
        }
    }
}
