//! Which rows of a block satisfy conditions, found piece by piece.
//!
//! A thawed page is compared in the form that it is packed in, or a piece at a time where that does not do: what was decoded is
//! looked at while it is in the processor's first cache, and nothing but a bit a row is kept. Once no row of a piece is
//! left, it is not decoded for the conditions behind.
//!
//! Not here: what a comparison of columns means (the caller's), which rows need to be looked at (`sift`).

mod texts;

use std::ops::Range;

use codec::ComparedBits;
use codec::kernels::Comparison;
use model::{Bitmap, Column, FieldType, Values};

use super::SegmentReader;
use super::thaw::Groups;
use super::thawed::{PIECE_ROWS, Thawed};
use crate::SegmentError;
use crate::directory::Block;
use crate::input::Malformed;
use crate::sift::{FieldCondition, FieldOperand};

const _: () = assert!(PIECE_ROWS == codec::COMPARED_ROWS_MAX, "a piece has as many bits");

/// Which rows satisfy a condition, by the column on its left and that on its right, if it has one there.
pub type ConditionTest<'t> = dyn Fn(&FieldCondition, &Column, Option<&Column>) -> Bitmap + 't;

/// See [`SegmentReader::matching`].
pub(super) fn matching(
    reader: &SegmentReader,
    block: &Block,
    parts: &[Range<usize>],
    conditions: &[FieldCondition],
    test: &ConditionTest<'_>,
) -> Result<Option<Vec<Bitmap>>, SegmentError> {
    if conditions.iter().any(FieldCondition::is_of_texts) {
        return texts::matching(reader, block, parts, conditions);
    }
    let mut groups = Groups::new(reader, block);
    let places = |condition: &FieldCondition| {
        let right = match condition.operand {
            FieldOperand::Constant(_) | FieldOperand::Text(_) => None,
            FieldOperand::Field(other) => Some(block.page_place(other)?.0),
        };
        Some((block.page_place(condition.field)?.0, right))
    };
    let Some(places) = conditions.iter().map(places).collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    for place in places.iter().flat_map(|(left, right)| std::iter::once(left).chain(right)) {
        // Looked for now, so that all of them can be borrowed below.
        if groups.of(*place).and_then(|group| group.page(*place)).is_none() {
            return Ok(None);
        }
    }
    let groups = groups;
    let side = |place: usize| {
        let page = groups.known(place).and_then(|group| group.page(place));
        let field = block.pages()[place].field as usize;
        let field_type = block.field_type(field);
        let scratch = Column::new(Values::empty(field_type));
        Side { page: page.expect("BUG: looked for above"), place, field_type, scratch }
    };
    let mut tests: Vec<OfCondition<'_>> = conditions
        .iter()
        .zip(places)
        .map(|(condition, (left, right))| OfCondition {
            condition,
            comparison: Comparison::of(|order| condition.op.holds(order)),
            left: side(left),
            right: right.map(side),
        })
        .collect();
    let found = parts.iter().map(|rows| rows_that_satisfy(rows, &mut tests, test));
    let found: Result<Vec<Bitmap>, (usize, Malformed)> = found.collect();
    found.map(Some).map_err(|(place, error)| {
        reader.shared.source.malformed(block.pages()[place].extent.offset, &error)
    })
}

/// A condition, and where its columns come from.
struct OfCondition<'a> {
    condition: &'a FieldCondition,
    comparison: Comparison,
    left: Side<'a>,
    right: Option<Side<'a>>,
}

/// One side of a comparison.
struct Side<'a> {
    page: &'a Thawed,
    place: usize,
    field_type: FieldType,
    /// What was decoded of a piece.
    scratch: Column,
}

impl Side<'_> {
    fn decode(&mut self, rows: Range<usize>) -> Result<(), (usize, Malformed)> {
        self.scratch.clear();
        self.page.decode(rows, &mut self.scratch).map_err(|error| (self.place, error))
    }
}

/// A bit for each of some rows. An error comes with the page's place in the block.
fn rows_that_satisfy(
    rows: &Range<usize>,
    conditions: &mut [OfCondition<'_>],
    test: &ConditionTest<'_>,
) -> Result<Bitmap, (usize, Malformed)> {
    let mut found = Bitmap::new();
    let mut from = rows.start;
    while from < rows.end {
        let piece = from / PIECE_ROWS;
        let to = rows.end.min((piece + 1) * PIECE_ROWS);
        let mut bits = [u64::MAX; PIECE_ROWS / 64];
        for condition in &mut *conditions {
            let of_condition = condition.bits(piece, from..to, test)?;
            let mut any = 0;
            for (word, other) in bits.iter_mut().zip(of_condition) {
                *word &= other;
                any |= *word;
            }
            if any == 0 {
                break;
            }
        }
        found.extend_from_words(&bits, to - from);
        from = to;
    }
    Ok(found)
}

impl OfCondition<'_> {
    /// A bit for each of some rows of a piece, zeros behind them.
    fn bits(
        &mut self,
        piece: usize,
        rows: Range<usize>,
        test: &ConditionTest<'_>,
    ) -> Result<ComparedBits, (usize, Malformed)> {
        let packed = match (&self.condition.operand, &self.right) {
            (FieldOperand::Constant(constant), _) => {
                self.left.page.compare(piece, self.comparison, constant)
            }
            (FieldOperand::Field(_), Some(right)) if right.field_type == self.left.field_type => {
                let (page, field_type) = (self.left.page, right.field_type);
                page.compare_with(right.page, piece, self.comparison, field_type)
            }
            (FieldOperand::Field(_) | FieldOperand::Text(_), _) => Ok(None),
        };
        if let Some(bits) = packed.map_err(|error| (self.left.place, error))? {
            let first = rows.start - piece * PIECE_ROWS;
            return Ok(if first == 0 { bits } else { behind(&bits, first) });
        }
        self.left.decode(rows.clone())?;
        if let Some(right) = &mut self.right {
            right.decode(rows)?;
        }
        let right = self.right.as_ref().map(|right| &right.scratch);
        let found = test(self.condition, &self.left.scratch, right);
        let mut bits = ComparedBits::default();
        bits[..found.words().len()].copy_from_slice(found.words());
        Ok(bits)
    }
}

/// The bits from `first` on.
fn behind(bits: &ComparedBits, first: usize) -> ComparedBits {
    let (skipped, shift) = (first / 64, first % 64);
    let word = |at: usize| bits.get(at).copied().unwrap_or(0);
    std::array::from_fn(|at| {
        let (low, high) = (word(at + skipped), word(at + skipped + 1));
        if shift == 0 { low } else { low >> shift | high << (64 - shift) }
    })
}

#[cfg(test)]
mod tests {
    use model::{CompareOp, Scalar};
    use proptest::prelude::*;

    use super::*;
    use crate::sparse::SparseColumn;

    fn column_of(values: &[Option<i64>]) -> Column {
        let mut column = Column::new(Values::empty(FieldType::Integer));
        values.iter().for_each(|value| column.push(value.map(Scalar::Integer).as_ref()));
        column
    }

    fn thawed(column: &Column) -> Thawed {
        let rows = 0..column.len();
        Thawed::new(SparseColumn::from(column.clone()).view(), rows)
    }

    /// The definition.
    fn holds(condition: &FieldCondition, left: Option<i64>, right: Option<i64>) -> bool {
        let right = match condition.operand {
            FieldOperand::Constant(Scalar::Integer(constant)) => Some(constant),
            _ => right,
        };
        matches!((left, right), (Some(a), Some(b)) if condition.op.holds(a.cmp(&b)))
    }

    proptest! {
        #[test]
        fn rows_are_those_of_the_definition(
            // Values far apart, in walks, and missing ones.
            rows in 1usize..1700,
            step in 1i64..60,
            missing in prop_oneof![Just(usize::MAX), 2usize..9],
            conditions in prop::collection::vec(
                (prop::sample::select(CompareOp::ALL.to_vec()), prop::option::of(-5i64..105), any::<bool>()),
                1..3,
            ),
            ends in any::<(prop::sample::Index, prop::sample::Index)>(),
        ) {
            let apart = |row: usize| (row as i64 * 37 * step) % 101;
            let walk = |row: usize| 50 + row as i64 % 40 / step;
            let there = |row: usize, value: i64| (row % missing != 1).then_some(value);
            let values: [Vec<Option<i64>>; 2] = [
                (0..rows).map(|row| there(row, apart(row))).collect(),
                (0..rows).map(|row| there(row / 2, walk(row))).collect(),
            ];
            let columns = [column_of(&values[0]), column_of(&values[1])];
            let pages = [thawed(&columns[0]), thawed(&columns[1])];
            let (a, b) = (ends.0.index(rows + 1), ends.1.index(rows + 1));
            let range = a.min(b)..a.max(b);
            let side = |place: usize| Side {
                page: &pages[place],
                place,
                field_type: FieldType::Integer,
                scratch: Column::new(Values::empty(FieldType::Integer)),
            };
            let conditions: Vec<FieldCondition> = conditions
                .into_iter()
                .map(|(op, constant, swapped)| FieldCondition {
                    field: usize::from(swapped),
                    op,
                    operand: match constant {
                        Some(constant) => FieldOperand::Constant(Scalar::Integer(constant)),
                        None => FieldOperand::Field(usize::from(!swapped)),
                    },
                })
                .collect();
            let mut tests: Vec<OfCondition<'_>> = conditions
                .iter()
                .map(|condition| OfCondition {
                    condition,
                    comparison: Comparison::of(|order| condition.op.holds(order)),
                    left: side(condition.field),
                    right: match condition.operand {
                        FieldOperand::Constant(_) | FieldOperand::Text(_) => None,
                        FieldOperand::Field(other) => Some(side(other)),
                    },
                })
                .collect();
            let test = |condition: &FieldCondition, left: &Column, right: Option<&Column>| {
                let at = |column: &Column, row| match column.get(row) {
                    Some(Scalar::Integer(value)) => Some(value),
                    _ => None,
                };
                let rows = 0..left.len();
                rows.map(|row| holds(condition, at(left, row), right.and_then(|r| at(r, row)))).collect()
            };
            let found = rows_that_satisfy(&range, &mut tests, &test).unwrap();
            let expected: Bitmap = range
                .map(|row| {
                    let of = |c: &FieldCondition| holds(c, values[c.field][row], values[1 - c.field][row]);
                    conditions.iter().all(of)
                })
                .collect();
            prop_assert_eq!(found, expected);
        }
    }
}
