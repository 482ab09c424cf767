//! Summaries of rows that satisfy filters.
//!
//! Where all rows of a span satisfy them its summary answers for it, where none does nothing is read. Of the others the
//! values are added up where they were decoded: that takes neither times nor copies, and for a count a bit a row.

use std::ops::Range;

use codec::kernels;
use model::{Bitmap, Column, FieldType, TimeRange, Values};
use segment::{Block, SpanNumbers, Stretch};
use store::{StoreError, SummaryParts, Windows};

use super::counters::Counters;
use super::selected::{Found, bits};
use super::source::SegmentSource;
use super::summarise::{Added, SpanSummaries, spans_of_found, spans_of_request, summarise};

/// Rows of one series that satisfy the filters: some are summed up, what may satisfy them of the others is left.
#[derive(Debug, Default)]
pub(super) struct SummedUp {
    pub(super) summaries: Vec<SpanSummaries>,
    pub(super) left: Vec<Stretch>,
}

/// Rows of a stretch that lie in one window of the request.
#[derive(Debug)]
struct Piece {
    /// Which stretch.
    stretch: usize,
    /// Its rows in the block.
    rows: Range<usize>,
    /// How many of them satisfy the filters: at least one.
    count: u64,
}

impl SegmentSource {
    /// Sums up what satisfies the filters among rows of one series, which lie within `time`.
    pub(super) fn sum_up(
        &self,
        block: &Block,
        (rows, time): (&Range<usize>, TimeRange),
        windows: &Windows,
    ) -> Result<SummedUp, StoreError> {
        let mut summed = SummedUp::default();
        for stretch in self.sift(block, rows)? {
            if stretch.all_satisfy
                && let Some(cut) =
                    summarise(&self.reader, block, (&stretch.rows, time), &self.fields, windows)?
            {
                summed.summaries.extend(cut.summaries);
                let left = cut.rows.into_iter().map(|rows| Stretch { rows, all_satisfy: true });
                summed.left.extend(left);
            } else {
                summed.left.push(stretch);
            }
        }
        let SummaryParts { sum, min_max, first_last } = windows.parts;
        // Of texts nothing is added up: they are counted.
        let can_be_added = |(_, field_type): &(Option<usize>, FieldType)| {
            field_type.is_numeric() || *field_type == FieldType::String
        };
        let are_numbers = self.fields.iter().all(can_be_added);
        if !summed.left.is_empty() && !first_last && (are_numbers || !sum && !min_max) {
            self.add_up(block, (rows, time), windows, &mut summed)?;
        }
        if !summed.summaries.is_empty() {
            Counters::add(&self.counters.pages_summarised, self.fields.len() as u64);
        }
        Ok(summed)
    }

    /// Adds up what is left of rows, as far as it lies in spans of one window of the request each.
    fn add_up(
        &self,
        block: &Block,
        rows: (&Range<usize>, TimeRange),
        windows: &Windows,
        summed: &mut SummedUp,
    ) -> Result<(), StoreError> {
        let SummaryParts { sum, min_max, .. } = windows.parts;
        let is_number = |field: usize| self.directory.fields()[field].1.is_numeric();
        let is_read = |field| (sum || min_max) && is_number(field) && self.reads(field);
        let cut = spans_of_request(&self.reader, block, rows, windows)?;
        // Rows would be looked at again, for which texts have to be decoded that were not to find them.
        if cut.is_none() && !self.looks_for_texts() {
            return Ok(());
        }
        let mut found = self.found(block, rows.0, &summed.left, is_read)?;
        let (spans, rest) = match cut {
            Some(cut) => cut,
            None => {
                let spans = spans_of_found(&self.reader, block, rows.0, found.rows(), windows)?;
                (spans, Vec::new())
            }
        };
        let stretches: Vec<Range<usize>> = summed.left.iter().map(|s| s.rows.clone()).collect();
        let of_spans: Vec<Range<usize>> = spans.iter().map(|span| span.rows.clone()).collect();
        let (mut pieces, mut of_pieces) = (Vec::new(), Vec::new());
        for (stretch, span, within) in in_both(&stretches, &of_spans) {
            let count = found.count(&within);
            if count > 0 {
                pieces.push(Piece { stretch, rows: within, count });
                of_pieces.push(spans[span].clone());
            }
        }
        if !pieces.is_empty() {
            match self.added(block, &mut found, (&summed.left, &pieces), windows.parts)? {
                Some(added) => summed.summaries.push(SpanSummaries::added(of_pieces, added)),
                // Nothing is said of numbers with a NaN among them.
                None => return Ok(()),
            }
        }
        let of_rest = in_both(&stretches, &rest).into_iter().map(|(stretch, _, rows)| Stretch {
            rows,
            all_satisfy: summed.left[stretch].all_satisfy,
        });
        summed.left = of_rest.collect();
        Ok(())
    }

    /// What each requested field has in `pieces` of some stretches, if the block has it; outer `None`: a NaN is in the way.
    fn added(
        &self,
        block: &Block,
        found: &mut Found,
        (stretches, pieces): (&[Stretch], &[Piece]),
        parts: SummaryParts,
    ) -> Result<Option<Vec<Option<Added>>>, StoreError> {
        let adds =
            |field_type: FieldType| (parts.sum || parts.min_max) && field_type != FieldType::String;
        let counts_rows = |field: usize| {
            let of_page = block.summary(field).map_or(0, |of_page| of_page.count as usize);
            of_page == block.rows() || found.looks_at(field)
        };
        let present =
            |(field, _): &(Option<usize>, FieldType)| field.filter(|at| block.has_values(*at));
        let is_decoded = |field: &&(Option<usize>, FieldType)| {
            present(field).is_some_and(|at| adds(field.1) || !counts_rows(at))
        };
        let wanted = self.fields.iter().filter(is_decoded);
        let wanted: Vec<_> = wanted.copied().collect();
        let masks: Vec<Bitmap> = match wanted.is_empty() {
            true => Vec::new(),
            false => pieces.iter().map(|piece| found.bits(&piece.rows)).collect(),
        };
        let mut columns = self.of_stretches(block, stretches, found, &wanted)?.into_iter();
        let mut of_fields = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            let Some(at) = present(field) else {
                of_fields.push(None);
                continue;
            };
            if !wanted.iter().any(|(wanted, _)| *wanted == Some(at)) {
                let counts = pieces.iter().map(|piece| piece.count).collect();
                of_fields.push(Some(Added { counts, numbers: Vec::new() }));
                continue;
            }
            let of_stretches = columns.next().expect("BUG: a field's columns were not read");
            let of_piece = |(piece, mask): (&Piece, &Bitmap)| {
                let start = stretches[piece.stretch].rows.start;
                let rows = piece.rows.start - start..piece.rows.end - start;
                add_up(&of_stretches[piece.stretch], rows, mask, parts)
            };
            let of_pieces: Option<Vec<_>> = pieces.iter().zip(&masks).map(of_piece).collect();
            let Some(of_pieces) = of_pieces else { return Ok(None) };
            let (counts, mut numbers): (_, Vec<SpanNumbers>) = of_pieces.into_iter().unzip();
            if !adds(field.1) {
                numbers.clear();
            }
            of_fields.push(Some(Added { counts, numbers }));
        }
        Ok(Some(of_fields))
    }
}

/// How many values some rows of a column have where the mask's bit is set, and the values' numbers, as far as they are asked
/// for; `None` if one is a NaN.
fn add_up(
    column: &Column,
    rows: Range<usize>,
    mask: &Bitmap,
    parts: SummaryParts,
) -> Option<(u64, SpanNumbers)> {
    let there = column.validity.as_ref().map(|validity| bits(validity, &rows).and(mask));
    let mask = there.as_ref().unwrap_or(mask);
    let (count, mut numbers) = (mask.count_ones() as u64, SpanNumbers::default());
    if count == 0 {
        return Some((0, numbers));
    }
    macro_rules! add_up {
        ($values:expr, $sum:ident, $min_max:ident, $bits:expr) => {{
            let (values, bits) = (&$values[rows], $bits);
            if parts.sum {
                numbers.sum = bits(kernels::$sum(values, mask.words()));
            }
            if parts.min_max {
                let bounds = kernels::$min_max(values, mask.words())?;
                (numbers.min, numbers.max) = (bits(bounds.min), bits(bounds.max));
            }
        }};
    }
    match &column.values {
        Values::Float(v) => {
            // A sum is a NaN if a value is one, or if there are infinite ones of both signs.
            let sum = kernels::sum_f64_masked(&v[rows.clone()], mask.words());
            if sum.is_nan() {
                return None;
            }
            if parts.sum {
                numbers.sum = sum.to_bits();
            }
            if parts.min_max {
                let bounds = kernels::min_max_f64_masked(&v[rows], mask.words())?;
                (numbers.min, numbers.max) = (bounds.min.to_bits(), bounds.max.to_bits());
            }
        }
        Values::Integer(v) => add_up!(v, sum_i64_masked, min_max_i64_masked, i64::cast_unsigned),
        Values::Unsigned(v) => add_up!(v, sum_u64_masked, min_max_u64_masked, u64::from),
        // Counted alone.
        _ => {}
    }
    Some((count, numbers))
}

/// What is in both of two lists of ranges, with the places of both; each list ascends, and none of its ranges overlap.
fn in_both(a: &[Range<usize>], b: &[Range<usize>]) -> Vec<(usize, usize, Range<usize>)> {
    let (mut found, mut at) = (Vec::new(), 0);
    for (place, range) in a.iter().enumerate() {
        while at < b.len() && b[at].end <= range.start {
            at += 1;
        }
        let overlapping =
            b[at..].iter().enumerate().take_while(|(_, other)| other.start < range.end);
        found.extend(overlapping.map(|(further, other)| {
            (place, at + further, other.start.max(range.start)..other.end.min(range.end))
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_both_is_found() {
        let (a, b) = ([0..3, 5..9, 12..20], [2..6, 6..7, 9..12, 13..14, 19..30]);
        let found = in_both(&a, &b);
        assert_eq!(
            found,
            [(0, 0, 2..3), (1, 0, 5..6), (1, 1, 6..7), (2, 3, 13..14), (2, 4, 19..20)]
        );
    }
}
