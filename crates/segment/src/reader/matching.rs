//! Which rows of a block satisfy conditions, found piece by piece.
//!
//! A page is compared in the form that it is packed in, as it is or thawed; a thawed one a piece at a time where that does not do:
//! what was decoded is looked at while it is in the processor's first cache, and nothing but a bit a row is kept. Once no row of a piece is
//! left, it is not decoded for the conditions behind.
//!
//! Not here: what a comparison of columns means (the caller's), which rows need to be looked at (`sift`).

mod texts;

use std::ops::Range;
use std::sync::Arc;

use codec::kernels::Comparison;
use codec::{ComparedBits, PageComparison};
use model::{Bitmap, Column, FieldType, Scalar, Values};
use platform::Page;

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
    with_tests(reader, block, conditions, |tests| {
        parts.iter().map(|rows| rows_that_satisfy(rows, tests, test)).collect()
    })
}

/// What `tell` makes of conditions and the pages they are about; `None`: these are not at hand in a form to compare them in.
fn with_tests<R>(
    reader: &SegmentReader,
    block: &Block,
    conditions: &[FieldCondition],
    tell: impl FnOnce(&mut [OfCondition<'_>]) -> Result<R, (usize, Malformed)>,
) -> Result<Option<R>, SegmentError> {
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
    // Looked for now, so that all of them can be borrowed below.
    let mut pages: Vec<Option<Arc<Page>>> = Vec::with_capacity(conditions.len());
    for (left, right) in &places {
        let mut is_thawed =
            |place| groups.of(place).is_some_and(|group| group.page(place).is_some());
        pages.push(match (is_thawed(*left), right.map(is_thawed)) {
            (true, None | Some(true)) => None,
            (false, None) => match complete_page(reader, block, *left)? {
                Some(page) => Some(page),
                None => return Ok(None),
            },
            (_, Some(_)) => return Ok(None),
        });
    }
    let groups = groups;
    let side = |place: usize| {
        let page = groups.known(place).and_then(|group| group.page(place));
        let field_type = field_type(block, place);
        let scratch = Column::new(Values::empty(field_type));
        Side { page: page.expect("BUG: looked for above"), place, field_type, scratch }
    };
    let mut tests: Vec<OfCondition<'_>> = Vec::with_capacity(conditions.len());
    for ((condition, (left, right)), page) in conditions.iter().zip(places).zip(&pages) {
        let comparison = Comparison::of(|order| condition.op.holds(order));
        let sides = match page {
            None => Sides::Thawed(side(left), right.map(side)),
            Some(page) => {
                let page = OfPage::new(block, left, page, comparison, &condition.operand);
                let Some(page) = page else { return Ok(None) };
                Sides::Page(page)
            }
        };
        tests.push(OfCondition { condition, comparison, sides });
    }
    tell(&mut tests).map(Some).map_err(|(place, error)| {
        reader.shared.source.malformed(block.pages()[place].extent.offset, &error)
    })
}

/// The page at a place of a block, if it is one of numbers without gaps.
fn complete_page(
    reader: &SegmentReader,
    block: &Block,
    place: usize,
) -> Result<Option<Arc<Page>>, SegmentError> {
    let page = &block.pages()[place];
    if !field_type(block, place).is_numeric() || (page.count as usize) < block.rows() {
        return Ok(None);
    }
    reader.shared.source.page(&page.extent, reader.keep_pages).map(Some)
}

fn field_type(block: &Block, place: usize) -> FieldType {
    block.field_type(block.pages()[place].field as usize)
}

/// A condition, and where its columns come from.
struct OfCondition<'a> {
    condition: &'a FieldCondition,
    comparison: Comparison,
    sides: Sides<'a>,
}

enum Sides<'a> {
    Thawed(Side<'a>, Option<Side<'a>>),
    Page(OfPage<'a>),
}

/// A page that is compared with a constant as it is.
struct OfPage<'a> {
    place: usize,
    rows: usize,
    compared: PageComparison<'a>,
    /// The piece that was compared last: several parts may lie in it.
    last: Option<(usize, ComparedBits)>,
}

impl<'a> OfPage<'a> {
    fn new(
        block: &Block,
        place: usize,
        page: &'a Page,
        comparison: Comparison,
        operand: &FieldOperand,
    ) -> Option<Self> {
        let (rows, FieldOperand::Constant(constant)) = (block.rows(), operand) else { return None };
        let compared = match (field_type(block, place), constant) {
            (FieldType::Integer, Scalar::Integer(constant)) => {
                PageComparison::of_i64(page, rows, comparison, *constant)
            }
            (FieldType::Unsigned, Scalar::Unsigned(constant)) => {
                PageComparison::of_u64(page, rows, comparison, *constant)
            }
            (FieldType::Float, Scalar::Float(constant)) => {
                PageComparison::of_f64(page, rows, comparison, *constant)
            }
            _ => None,
        }?;
        Some(Self { place, rows, compared, last: None })
    }

    /// A bit for each row of a piece; pieces ascend.
    fn bits(&mut self, piece: usize) -> Result<ComparedBits, (usize, Malformed)> {
        if let Some((_, bits)) = self.last.filter(|(last, _)| *last == piece) {
            return Ok(bits);
        }
        let rows = piece * PIECE_ROWS..self.rows.min((piece + 1) * PIECE_ROWS);
        let bits = self.compared.compare(rows).map_err(|error| (self.place, error.into()))?;
        self.last = Some((piece, bits));
        Ok(bits)
    }
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
        let to = rows.end.min((from / PIECE_ROWS + 1) * PIECE_ROWS);
        found.extend_from_words(&bits_of_piece(conditions, from..to, test)?, to - from);
        from = to;
    }
    Ok(found)
}

/// The same of rows of one piece.
fn bits_of_piece(
    conditions: &mut [OfCondition<'_>],
    rows: Range<usize>,
    test: &ConditionTest<'_>,
) -> Result<ComparedBits, (usize, Malformed)> {
    let mut bits = [u64::MAX; PIECE_ROWS / 64];
    for condition in conditions {
        let of_condition = condition.bits(rows.start / PIECE_ROWS, rows.clone(), test)?;
        let mut any = 0;
        for (word, other) in bits.iter_mut().zip(of_condition) {
            *word &= other;
            any |= *word;
        }
        if any == 0 {
            break;
        }
    }
    Ok(bits)
}

impl SegmentReader {
    /// Those of `wanted` rows of a block, a bit for each of its rows, that satisfy all conditions, as [`Self::matching`] would say.
    ///
    /// # Errors
    /// If a page is damaged.
    ///
    /// # Panics
    /// If there are not as many bits as rows.
    pub fn matching_among(
        &self,
        block: &Block,
        wanted: &Bitmap,
        conditions: &[FieldCondition],
        test: &ConditionTest<'_>,
    ) -> Result<Option<Bitmap>, SegmentError> {
        assert_eq!(wanted.len(), block.rows(), "BUG: not a bit for each row");
        if conditions.iter().any(FieldCondition::is_of_texts) {
            let all = 0..block.rows();
            let found = texts::matching(self, block, std::slice::from_ref(&all), conditions)?;
            return Ok(found.and_then(|mut found| found.pop()).map(|found| found.and(wanted)));
        }
        with_tests(self, block, conditions, |tests| {
            let mut words = wanted.words().to_vec();
            let of_pieces = words.chunks(PIECE_ROWS / 64).enumerate();
            let looked_at: Vec<usize> = of_pieces
                .filter(|(_, words)| words.iter().any(|word| *word != 0))
                .map(|(piece, _)| piece)
                .collect();
            for (at, piece) in looked_at.iter().enumerate() {
                tests.iter().for_each(|test| test.prefetch(&looked_at[at..]));
                let first = piece * PIECE_ROWS;
                let rows = first..block.rows().min(first + PIECE_ROWS);
                let bits = bits_of_piece(tests, rows, test)?;
                words[first / 64..].iter_mut().zip(bits).for_each(|(word, bits)| *word &= bits);
            }
            Ok(Bitmap::from_words(words, block.rows()))
        })
    }
}

/// Pieces are asked for so many before their turn, what says where they are twice as many.
const PIECES_AHEAD: usize = 4;

impl OfCondition<'_> {
    /// Asks for what is compared soon, of the pieces that are looked at next.
    fn prefetch(&self, pieces: &[usize]) {
        let Sides::Thawed(left, right) = &self.sides else { return };
        for page in std::iter::once(left).chain(right).map(|side| side.page) {
            if let Some(piece) = pieces.get(2 * PIECES_AHEAD) {
                page.prefetch_entry(piece * PIECE_ROWS);
            }
            if let Some(piece) = pieces.get(PIECES_AHEAD) {
                page.prefetch(&(piece * PIECE_ROWS..(piece + 1) * PIECE_ROWS));
            }
        }
    }

    /// A bit for each of some rows of a piece, zeros behind them.
    fn bits(
        &mut self,
        piece: usize,
        rows: Range<usize>,
        test: &ConditionTest<'_>,
    ) -> Result<ComparedBits, (usize, Malformed)> {
        let first = rows.start - piece * PIECE_ROWS;
        let from_first = |bits: &ComparedBits| if first == 0 { *bits } else { behind(bits, first) };
        let (left, right) = match &mut self.sides {
            Sides::Page(page) => return Ok(from_first(&page.bits(piece)?)),
            Sides::Thawed(left, right) => (left, right),
        };
        let packed = match (&self.condition.operand, &right) {
            (FieldOperand::Constant(constant), _) => {
                left.page.compare(piece, self.comparison, constant)
            }
            (FieldOperand::Field(_), Some(right)) if right.field_type == left.field_type => {
                left.page.compare_with(right.page, piece, self.comparison, right.field_type)
            }
            (FieldOperand::Field(_) | FieldOperand::Text(_), _) => Ok(None),
        };
        if let Some(bits) = packed.map_err(|error| (left.place, error))? {
            return Ok(from_first(&bits));
        }
        left.decode(rows.clone())?;
        if let Some(right) = right {
            right.decode(rows)?;
        }
        let right = right.as_ref().map(|right| &right.scratch);
        let found = test(self.condition, &left.scratch, right);
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
    use model::CompareOp;
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
                    sides: Sides::Thawed(
                        side(condition.field),
                        match condition.operand {
                            FieldOperand::Constant(_) | FieldOperand::Text(_) => None,
                            FieldOperand::Field(other) => Some(side(other)),
                        },
                    ),
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
