//! Rows that satisfy filters: which stretches of a block are looked at for them, which parts of it are decoded for those
//! that were found, and what is taken of each part.
//!
//! What a filter finds often comes in stretches (a machine is busy for a while): summaries of windows tell of most rows
//! that they satisfy it, or do not, and most rows of a block need not be decoded in the other fields.

use std::ops::Range;
use std::sync::Arc;

use model::{Bitmap, Column, FieldType, Values};
use segment::{Block, FieldCondition, FieldOperand, Stretch};
use store::StoreError;

use super::counters::Counters;
use super::filter::{Side, matching};
use super::piece::{Piece, append_found, empty_like, filter, filter_times};
use super::source::{SegmentSource, same};
use crate::error::segment_error;

/// Rows that satisfy the filters among stretches of some rows of a block.
#[derive(Debug)]
pub(super) struct Found {
    /// The first of the rows in the block.
    start: usize,
    /// A bit a row.
    selection: Bitmap,
    looked_at: LookedAt,
}

/// The block whose texts were asked for last.
#[derive(Debug)]
pub(super) struct Searched {
    block: Block,
    /// Whether rows of it are searched by themselves.
    is_apart: bool,
    asked_rows: usize,
    /// Which of its rows satisfy the filters, if it was searched; `None` therein: only decoded texts tell.
    found: Option<Option<Arc<Bitmap>>>,
}

/// The fields that filters looked at, and what was kept of them: a column for each stretch that had to be looked at.
type LookedAt = Vec<(usize, Option<Vec<Column>>)>;

impl Found {
    /// Which of some rows of the block satisfy the filters.
    pub(super) fn bits(&self, rows: &Range<usize>) -> Bitmap {
        bits(&self.selection, &(rows.start - self.start..rows.end - self.start))
    }

    /// Those rows of the block that satisfy the filters.
    pub(super) fn rows(&self) -> impl Iterator<Item = usize> + '_ {
        self.selection.ones().map(|row| self.start + row)
    }

    /// How many of some rows of the block satisfy the filters.
    pub(super) fn count(&self, rows: &Range<usize>) -> u64 {
        self.selection.count_ones_in(rows.start - self.start..rows.end - self.start) as u64
    }

    /// Whether filters looked at a field: what satisfies them has a value in it.
    pub(super) fn looks_at(&self, field: usize) -> bool {
        self.looked_at.iter().any(|(at, _)| *at == field)
    }

    /// Whether what was decoded of a field is there.
    fn has(&self, field: usize) -> bool {
        self.looked_at.iter().any(|(at, columns)| *at == field && columns.is_some())
    }

    /// What was decoded of a field. It is there once.
    fn take(&mut self, field: usize) -> Option<Vec<Column>> {
        self.looked_at.iter_mut().find(|(at, _)| *at == field)?.1.take()
    }
}

impl SegmentSource {
    /// Those of some rows that may satisfy the filters, as far as summaries tell.
    pub(super) fn sift(
        &self,
        block: &Block,
        rows: &Range<usize>,
    ) -> Result<Vec<Stretch>, StoreError> {
        let Some(conditions) = &self.conditions else { return Ok(Vec::new()) };
        self.reader.sift(block, rows, conditions).map_err(segment_error)
    }

    /// Reads what satisfies the filters in `stretches` of some rows of one series; `None` if no row does.
    pub(super) fn read_satisfying(
        &mut self,
        block: &Block,
        rows: &Range<usize>,
        stretches: &[Stretch],
    ) -> Result<Option<Piece>, StoreError> {
        let found = match stretches.is_empty() {
            true => None,
            false => Some(self.found(block, rows, stretches, |field| self.reads(field))?),
        };
        let Some(found) = found.filter(|found| found.selection.count_ones() > 0) else {
            Counters::add(&self.counters.pages_pruned, self.fields.len() as u64);
            return Ok(None);
        };
        self.want(block, rows.len());
        let found_rows = found.selection.count_ones();
        if found_rows < rows.len() && !self.keeps(block) {
            return self.read_found(block, rows, (stretches, found), None).map(Some);
        }
        let mut piece = self.read_all(block, rows)?;
        if found_rows < rows.len() {
            piece.select(&found.selection);
        }
        Ok(Some(piece))
    }

    /// Whether the scan reads a field, not only for its filters.
    pub(super) fn reads(&self, field: usize) -> bool {
        self.fields.iter().any(|(read, _)| *read == Some(field))
    }

    /// Whether filters are about texts.
    pub(super) fn looks_for_texts(&self) -> bool {
        !self.conditions_by_kind().0.is_empty()
    }

    /// The conditions about texts, and the others, which come behind them.
    fn conditions_by_kind(&self) -> (&[FieldCondition], &[FieldCondition]) {
        let all = self.conditions.as_deref().unwrap_or_default();
        all.split_at(all.partition_point(FieldCondition::is_of_texts))
    }

    /// Looks for the rows in `stretches` of some rows that satisfy the filters. What has to be decoded for that is kept if it
    /// `is_read` afterwards.
    pub(super) fn found(
        &self,
        block: &Block,
        rows: &Range<usize>,
        stretches: &[Stretch],
        is_read: impl Fn(usize) -> bool,
    ) -> Result<Found, StoreError> {
        let open = stretches.iter().filter(|stretch| !stretch.all_satisfy);
        let open: Vec<Range<usize>> = open.map(|stretch| stretch.rows.clone()).collect();
        let (texts, others) = self.conditions_by_kind();
        // Few texts are such as are looked for: others need not be decoded, read or not.
        let of_texts = match texts {
            [] => None,
            texts => self.bits_of_texts(block, &open, texts)?,
        };
        let (bits, looked_at) = match of_texts {
            Some(of_texts) => {
                let (bits, mut looked_at) = self.bits_of_values(block, &open, others, is_read)?;
                looked_at.extend(fields_of(texts).into_iter().map(|field| (field, None)));
                (bits.iter().zip(&of_texts).map(|(a, b)| a.and(b)).collect(), looked_at)
            }
            None => {
                let all = self.conditions.as_deref().unwrap_or_default();
                self.bits_of_values(block, &open, all, is_read)?
            }
        };
        let (mut selection, mut of_open) = (Bitmap::new(), bits.iter());
        for Stretch { rows: of_stretch, all_satisfy } in stretches {
            selection.extend_filled(of_stretch.start - rows.start - selection.len(), false);
            match if *all_satisfy { None } else { of_open.next() } {
                Some(bits) => selection.extend_from(bits, 0..bits.len()),
                None => selection.extend_filled(of_stretch.len(), true),
            }
        }
        selection.extend_filled(rows.len() - selection.len(), false);
        Ok(Found { start: rows.start, selection, looked_at })
    }

    /// Which rows of some parts of a block satisfy conditions, by the values that they look at; these are kept if one of them `is_read`
    /// afterwards.
    fn bits_of_values(
        &self,
        block: &Block,
        parts: &[Range<usize>],
        conditions: &[FieldCondition],
        is_read: impl Fn(usize) -> bool,
    ) -> Result<(Vec<Bitmap>, LookedAt), StoreError> {
        let fields = fields_of(conditions);
        let is_decoded = fields.iter().any(|field| is_read(*field))
            || conditions.iter().any(FieldCondition::is_of_texts);
        let bits = match parts {
            _ if is_decoded => None,
            [] => Some(Vec::new()),
            _ if conditions.is_empty() => None,
            parts => self.matching(block, parts, conditions)?,
        };
        match bits {
            Some(bits) => Ok((bits, fields.into_iter().map(|field| (field, None)).collect())),
            None => self.decoded(block, parts, conditions),
        }
    }

    /// The same where nothing has to be decoded for it; `None`: it has.
    fn matching(
        &self,
        block: &Block,
        parts: &[Range<usize>],
        conditions: &[FieldCondition],
    ) -> Result<Option<Vec<Bitmap>>, StoreError> {
        let bits = self.reader.matching(block, parts, conditions, &satisfying);
        let bits = bits.map_err(segment_error)?;
        if bits.is_some() {
            self.count_read(block, fields_of(conditions));
        }
        Ok(bits)
    }

    /// Which rows of some parts of a block satisfy filters that are about texts: most of the work is mostly one for all rows of a page,
    /// which are often asked for series by series. `None`: they have to be decoded, or that is less work for as few as were asked
    /// for.
    fn bits_of_texts(
        &self,
        block: &Block,
        parts: &[Range<usize>],
        conditions: &[FieldCondition],
    ) -> Result<Option<Vec<Bitmap>>, StoreError> {
        if parts.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let of_parts = |whole: &Bitmap| parts.iter().map(|rows| bits(whole, rows)).collect();
        let mut last = self.searched.borrow_mut();
        if !last.as_ref().is_some_and(|last| same(&last.block, block)) {
            let is_apart = self.reader.are_searched_apart(block, conditions);
            let is_apart = is_apart.map_err(segment_error)?;
            *last = Some(Searched { block: block.clone(), is_apart, asked_rows: 0, found: None });
        }
        let Some(Searched { is_apart, asked_rows, found, .. }) = &mut *last else {
            return Ok(None);
        };
        if *is_apart {
            return self.matching(block, parts, conditions);
        }
        if let Some(found) = found {
            return Ok(found.as_deref().map(of_parts));
        }
        *asked_rows += parts.iter().map(Range::len).sum::<usize>();
        if *asked_rows * SEARCHED_PART < block.rows() {
            return Ok(None);
        }
        let all = 0..block.rows();
        let bits = self.matching(block, std::slice::from_ref(&all), conditions)?;
        let bits = bits.and_then(|mut bits| bits.pop()).map(Arc::new);
        Ok(found.insert(bits).as_deref().map(of_parts))
    }

    /// Decodes the fields of conditions in some parts of a block; a bit for each row that satisfies all.
    fn decoded(
        &self,
        block: &Block,
        parts: &[Range<usize>],
        conditions: &[FieldCondition],
    ) -> Result<(Vec<Bitmap>, LookedAt), StoreError> {
        let fields = fields_of(conditions);
        let with_type = |field: &usize| (Some(*field), self.directory.fields()[*field].1);
        let types: Vec<(Option<usize>, FieldType)> = fields.iter().map(with_type).collect();
        let mut columns = self.columns(block, parts, &types)?.into_iter();
        let decoded: Vec<(usize, Vec<Column>)> = fields
            .into_iter()
            .map(|field| (field, columns.by_ref().take(parts.len()).collect()))
            .collect();
        let of_part = |part: usize| {
            let column = |field: usize| {
                let columns = decoded.iter().find(|(at, _)| *at == field);
                &columns.expect("BUG: all of these were decoded").1[part]
            };
            let of_condition = |condition: &FieldCondition| {
                let right = match &condition.operand {
                    FieldOperand::Constant(_) | FieldOperand::Text(_) => None,
                    FieldOperand::Field(other) => Some(column(*other)),
                };
                satisfying(condition, column(condition.field), right)
            };
            let found = conditions.iter().map(of_condition).reduce(|a, b| a.and(&b));
            found.unwrap_or_else(|| Bitmap::filled(parts[part].len(), true))
        };
        let bits = (0..parts.len()).map(of_part).collect();
        Ok((bits, decoded.into_iter().map(|(at, columns)| (at, Some(columns))).collect()))
    }

    /// Fields in whole stretches: by field a column for each stretch. What filters decoded is taken from what they found.
    pub(super) fn of_stretches(
        &self,
        block: &Block,
        stretches: &[Stretch],
        found: &mut Found,
        fields: &[(Option<usize>, FieldType)],
    ) -> Result<Vec<Vec<Column>>, StoreError> {
        let all: Vec<Range<usize>> = stretches.iter().map(|s| s.rows.clone()).collect();
        let sure = stretches.iter().filter(|s| s.all_satisfy).map(|s| s.rows.clone());
        let sure: Vec<Range<usize>> = sure.collect();
        let (looked_at, others): (Vec<_>, Vec<_>) =
            fields.iter().partition(|(field, _)| field.is_some_and(|at| found.has(at)));
        let mut of_sure = self.columns(block, &sure, &looked_at)?.into_iter();
        let mut of_all = self.columns(block, &all, &others)?.into_iter();
        let mut columns = Vec::with_capacity(fields.len());
        for (field, _) in fields {
            let Some(decoded) = field.and_then(|field| found.take(field)) else {
                columns.push(of_all.by_ref().take(all.len()).collect());
                continue;
            };
            let mut decoded = decoded.into_iter();
            let of_stretch = |stretch: &Stretch| {
                let column = if stretch.all_satisfy { of_sure.next() } else { decoded.next() };
                column.expect("BUG: each stretch was decoded once")
            };
            columns.push(stretches.iter().map(of_stretch).collect());
        }
        Ok(columns)
    }

    /// Those of `wanted` rows of a block, a bit for each of its rows, that satisfy the filters, if that can be told without
    /// decoding the block: of texts, and of numbers that are there in pieces.
    pub(super) fn told(&self, block: &Block, wanted: Bitmap) -> Result<Option<Bitmap>, StoreError> {
        let (texts, others) = self.conditions_by_kind();
        let mut told = wanted;
        if !texts.is_empty() && told.count_ones() > 0 {
            let all = 0..block.rows();
            let found = self.bits_of_texts(block, std::slice::from_ref(&all), texts)?;
            let Some(found) = found.and_then(|mut all| all.pop()) else { return Ok(None) };
            told = told.and(&found);
        }
        if others.is_empty() || told.count_ones() == 0 {
            return Ok(Some(told));
        }
        let found = self.reader.matching_among(block, &told, others, &satisfying);
        let found = found.map_err(segment_error)?;
        if found.is_some() {
            self.count_read(block, fields_of(others));
        }
        Ok(found)
    }

    /// The rows of a block that satisfy the filters, and which these are, if they are few and can be told.
    pub(super) fn few_found(&self, block: &Block) -> Result<Option<(Piece, Bitmap)>, StoreError> {
        let all = Bitmap::filled(block.rows(), true);
        let Some(selection) = self.told(block, all)? else { return Ok(None) };
        match selection.count_ones() {
            0 => {
                let column = |(_, t): &(Option<usize>, FieldType)| Column::new(Values::empty(*t));
                let columns = self.fields.iter().map(column).collect();
                Ok(Some((Piece { times: Vec::new(), columns }, selection)))
            }
            few if few * FEW_PART <= block.rows() => {
                Ok(Some((self.read_selected(block, selection.clone(), None)?, selection)))
            }
            _ => Ok(None),
        }
    }

    /// Reads some rows of a block, at least one; their times may be known.
    pub(super) fn read_selected(
        &self,
        block: &Block,
        selection: Bitmap,
        times: Option<Vec<i64>>,
    ) -> Result<Piece, StoreError> {
        let found = Found { start: 0, selection, looked_at: Vec::new() };
        self.read_found(block, &(0..block.rows()), (&[], found), times)
    }

    /// Reads those of some rows that filters found in `stretches`, at least one; their times may be known.
    fn read_found(
        &self,
        block: &Block,
        rows: &Range<usize>,
        (stretches, mut found): (&[Stretch], Found),
        times: Option<Vec<i64>>,
    ) -> Result<Piece, StoreError> {
        let parts = parts(&found.selection);
        let place = |part: &Part| rows.start + part.rows.start..rows.start + part.rows.end;
        let places: Vec<Range<usize>> = parts.iter().map(place).collect();
        let times = match times {
            Some(times) => times,
            None => self.times_found(block, (&parts, &places))?,
        };
        // Of what filters looked at most is there.
        let (looked_at, others): (Vec<_>, Vec<_>) =
            self.fields.iter().partition(|(field, _)| field.is_some_and(|at| found.has(at)));
        let were_kept: Vec<Option<usize>> = looked_at.iter().map(|(field, _)| *field).collect();
        let mut others =
            self.of_parts(block, (rows, &found.selection), (&parts, &places), &others)?.into_iter();
        let looked_at = self.of_stretches(block, stretches, &mut found, &looked_at)?;
        let of_stretches: Vec<Part> = stretches
            .iter()
            .map(|stretch| Part { rows: stretch.rows.clone(), found: found.bits(&stretch.rows) })
            .collect();
        let mut looked_at = looked_at.into_iter();
        let column = |(field, _): &(Option<usize>, FieldType)| match field
            .filter(|at| were_kept.contains(&Some(*at)))
            .and_then(|_| looked_at.next())
        {
            Some(columns) => pick(&of_stretches, columns),
            None => others.next().expect("BUG: each field is one or the other"),
        };
        Ok(Piece { times, columns: self.fields.iter().map(column).collect() })
    }

    /// The times of rows that were found, which are in some parts: at these places in the block.
    fn times_found(
        &self,
        block: &Block,
        (parts, places): (&[Part], &[Range<usize>]),
    ) -> Result<Vec<i64>, StoreError> {
        let mut times = Vec::with_capacity(places.iter().map(Range::len).sum());
        self.reader.times_of(block, places, &mut times).map_err(segment_error)?;
        Ok(match not_all_found(parts) {
            None => times,
            Some(found) => filter_times(&times, &found),
        })
    }

    /// Fields of the rows that were found among some, which are in some parts of them: at these places in the block.
    fn of_parts(
        &self,
        block: &Block,
        (rows, selection): (&Range<usize>, &Bitmap),
        (parts, places): (&[Part], &[Range<usize>]),
        fields: &[(Option<usize>, FieldType)],
    ) -> Result<Vec<Column>, StoreError> {
        let texts = |(field, field_type): &(Option<usize>, FieldType)| {
            let Some(field) = field.filter(|_| *field_type == FieldType::String) else {
                return Ok(None);
            };
            let mut column = Column::new(Values::empty(*field_type));
            let selected = (rows.clone(), selection);
            if self.only_counts
                || !self.reader.selected_texts(block, field, selected, &mut column)?
            {
                return Ok(None);
            }
            self.count_read(block, [field]);
            Ok(Some(column))
        };
        let texts: Result<Vec<Option<Column>>, _> = fields.iter().map(texts).collect();
        let texts = texts.map_err(segment_error)?;
        let are_left = fields.iter().zip(&texts).filter(|(_, texts)| texts.is_none());
        let left: Vec<_> = are_left.map(|(field, _)| *field).collect();
        let mut decoded: Vec<Column> =
            left.iter().map(|(_, field_type)| Column::new(Values::empty(*field_type))).collect();
        self.add_columns(block, places, &left, &mut decoded)?;
        let (mut decoded, found) = (decoded.into_iter(), not_all_found(parts));
        let mut in_parts = || {
            let column = decoded.next().expect("BUG: each field is one or the other");
            match &found {
                None => column,
                Some(found) => filter(&column, found),
            }
        };
        Ok(texts.into_iter().map(|texts| texts.unwrap_or_else(&mut in_parts)).collect())
    }
}

/// Which rows of parts were found, one part behind the other; `None`: all.
fn not_all_found(parts: &[Part]) -> Option<Bitmap> {
    let mut found = Bitmap::new();
    parts.iter().for_each(|part| found.extend_from(&part.found, 0..part.found.len()));
    (found.count_ones() < found.len()).then_some(found)
}

/// The fields that conditions look at, each once.
fn fields_of(conditions: &[FieldCondition]) -> Vec<usize> {
    let mut fields: Vec<usize> = Vec::new();
    for field in conditions.iter().flat_map(FieldCondition::fields) {
        if !fields.contains(&field) {
            fields.push(field);
        }
    }
    fields
}

/// Which rows satisfy a filter, by the columns that it compares.
fn satisfying(condition: &FieldCondition, left: &Column, right: Option<&Column>) -> Bitmap {
    let side = match (&condition.operand, right) {
        (FieldOperand::Constant(constant), _) => Side::Constant(constant),
        (FieldOperand::Text(pattern), _) => Side::Text(pattern),
        (FieldOperand::Field(_), Some(right)) => Side::Column(right),
        (FieldOperand::Field(_), None) => panic!("BUG: a comparison of fields without one"),
    };
    matching(left, condition.op, side)
}

/// Of the rows of a block this part is few: others are in stretches of which most is decoded anyway.
const FEW_PART: usize = 64;

/// A block is searched for texts as a whole if one row in so many is asked for.
const SEARCHED_PART: usize = 16;

/// Found rows that are this close are decoded together: about so many are decoded in vain at the head of a
/// part.
const GAP_ROWS: usize = 256;
/// Bits of a word: all of its rows are closer than that.
const WORD_ROWS: usize = u64::BITS as usize;

/// Some rows, of which the first and the last were found.
#[derive(Debug, PartialEq)]
struct Part {
    rows: Range<usize>,
    /// Which of them were found, counted from the first.
    found: Bitmap,
}

/// The parts that have all rows whose bit is set, ascending.
fn parts(selection: &Bitmap) -> Vec<Part> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    for (word, at) in selection.words().iter().zip((0..).step_by(WORD_ROWS)) {
        if *word == 0 {
            continue;
        }
        let first = at + word.trailing_zeros() as usize;
        let end = at + WORD_ROWS - word.leading_zeros() as usize;
        match parts.last_mut() {
            Some(part) if first - part.end < GAP_ROWS => part.end = end,
            _ => parts.push(first..end),
        }
    }
    let part = |rows: Range<usize>| Part { found: bits(selection, &rows), rows };
    parts.into_iter().map(part).collect()
}

/// Some of the bits.
pub(super) fn bits(selection: &Bitmap, rows: &Range<usize>) -> Bitmap {
    let mut some = Bitmap::new();
    some.extend_from(selection, rows.clone());
    some
}

/// Values that are read behind those of a column: room for them too keeps the column where it is.
const SPARE_VALUES: usize = 64;

/// The found entries of a column, of which each part was decoded.
fn pick(parts: &[Part], columns: impl IntoIterator<Item = Column>) -> Column {
    let mut columns = parts.iter().zip(columns);
    let (first, column) = columns.next().expect("BUG: nothing was found");
    let are_all = |part: &Part| part.found.count_ones() == part.rows.len();
    if parts.len() == 1 {
        return if are_all(first) { column } else { filter(&column, &first.found) };
    }
    let mut picked = empty_like(&column);
    let found: usize = parts.iter().map(|part| part.found.count_ones()).sum();
    picked.values.reserve(found + SPARE_VALUES);
    for (part, column) in std::iter::once((first, column)).chain(columns) {
        if are_all(part) {
            picked.extend_from(&column, 0..column.len());
        } else {
            append_found(&mut picked, &column, &part.found);
        }
    }
    picked
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_have_what_was_found_and_little_else(
            stretches in prop::collection::vec((any::<bool>(), 1usize..600), 1..8),
            missing in any::<[prop::sample::Index; 3]>(),
        ) {
            let selection: Bitmap =
                stretches.iter().flat_map(|(found, len)| vec![*found; *len]).collect();
            let rows = selection.len();
            let mut column = Column::new(Values::Integer(Vec::new()));
            for row in 0..rows {
                match missing.iter().any(|at| at.index(rows) == row) {
                    true => column.extend_missing(1),
                    false => column.push(Some(&model::Scalar::Integer(row as i64))),
                }
            }
            let parts = parts(&selection);
            let found = |part: &Part| {
                part.found.ones().map(|at| part.rows.start + at).collect::<Vec<usize>>()
            };
            prop_assert!(parts.iter().flat_map(found).eq(selection.ones()));
            prop_assert!(parts.windows(2).all(|w| w[0].rows.end + GAP_ROWS <= w[1].rows.start));
            if parts.is_empty() {
                return Ok(());
            }
            let decoded = parts.iter().map(|part| {
                let mut out = Column::new(Values::Integer(Vec::new()));
                out.extend_from(&column, part.rows.clone());
                out
            });
            let picked = pick(&parts, decoded);
            let wanted: Vec<u32> = selection.ones().map(|row| row as u32).collect();
            prop_assert_eq!(picked.len(), wanted.len());
            for (at, row) in wanted.iter().enumerate() {
                prop_assert_eq!(picked.get(at), column.get(*row as usize));
            }
        }
    }
}
