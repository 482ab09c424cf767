//! Texts that decide between rows of a group that have the same time: those of the leading columns. Rows without one come
//! behind those that have it.

use std::cmp::Ordering;
use std::ops::Range;

use model::{Column, FieldType, Name, Values};
use store::TagColumn;

use crate::exec::input::ColumnSource;
use crate::exec::unit::Unit;
use crate::plan::{AuxPlan, Select};

/// The leading columns of texts: of rows from the store only. Mostly these are tags, so that it is the series that decides.
pub(super) enum Leading<'a> {
    /// There are none, or they do not matter.
    Nothing,
    /// So many columns, which differ from row to row.
    Texts(usize),
    /// Tags.
    Tags(Vec<LeadingTag<'a>>),
}

impl<'a> Leading<'a> {
    pub(super) fn of(select: &Select, unit: &'a Unit) -> Self {
        let groups = unit.groups.len();
        let one_series_each = unit.groups.series_count(0..groups) == groups;
        let from_store = unit.inputs.iter().all(|input| input.request.is_some());
        if select.shows_groups() || one_series_each || !from_store {
            return Self::Nothing;
        }
        let is_text = |aux: &&AuxPlan| aux.kind.field_type() == FieldType::String;
        let texts = select.aux.iter().take_while(is_text).count();
        if texts == 0 {
            return Self::Nothing;
        }
        let [input] = unit.inputs.as_slice() else { return Self::Texts(texts) };
        let table = input.scan.series();
        let tag = |source: &ColumnSource| match source {
            ColumnSource::Tag { at, .. } => Some(LeadingTag::of(&table.tags[*at])),
            _ => None,
        };
        let tags: Option<Vec<LeadingTag>> = input.aux[..texts].iter().map(tag).collect();
        tags.map_or(Self::Texts(texts), Self::Tags)
    }
}

/// Where the series come by one tag.
pub(super) struct LeadingTag<'a> {
    pub(super) key: &'a Name,
    codes: &'a [u32],
    /// 1 if the first code stands for no text, which comes behind all others.
    missing: u32,
    /// Bits of a rank: 1 to 32.
    pub(super) bits: u32,
}

impl<'a> LeadingTag<'a> {
    pub(super) fn of(tag: &'a TagColumn) -> Self {
        let has_missing = !tag.values.is_empty() && tag.values.get_bytes(0).is_empty();
        let bits = (usize::BITS - tag.values.len().leading_zeros()).clamp(1, u32::BITS);
        Self { key: &tag.key, codes: &tag.codes, missing: has_missing.into(), bits }
    }

    /// A number that orders series as their texts do.
    #[inline]
    pub(super) fn rank(&self, series: u32) -> u32 {
        self.rank_of(self.codes[series as usize])
    }

    /// The same of neighbouring series.
    #[inline]
    pub(super) fn ranks(&self, series: Range<usize>) -> impl Iterator<Item = u32> + '_ {
        self.codes[series].iter().map(|code| self.rank_of(*code))
    }

    #[inline]
    fn rank_of(&self, code: u32) -> u32 {
        code.wrapping_sub(self.missing) & (u32::MAX >> (u32::BITS - self.bits))
    }
}

/// Order of series by the texts of tags.
pub(super) fn compare_series(tags: &[LeadingTag], a: u32, b: u32) -> Ordering {
    let orders = tags.iter().map(|tag| tag.rank(a).cmp(&tag.rank(b)));
    orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Order of rows by columns of texts.
pub(super) fn compare_texts(columns: &[Column], x: usize, y: usize) -> Ordering {
    let orders = columns.iter().map(|column| match (column.is_valid(x), column.is_valid(y)) {
        (true, true) => match &column.values {
            // The texts of a tag are sorted: their numbers order as they do.
            Values::Dictionary(codes, _) => codes[x].cmp(&codes[y]),
            Values::String(texts) => texts.get_bytes(x).cmp(texts.get_bytes(y)),
            _ => panic!("BUG: a leading column of no texts"),
        },
        (is_there, other) => other.cmp(&is_there),
    });
    orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::{Scalar, Strings};
    use proptest::prelude::*;

    use super::*;

    const TEXTS: [&str; 4] = ["", "a", "b", "c"];

    proptest! {
        /// No text is the text 0 here.
        #[test]
        fn rows_and_series_without_a_text_come_last(
            rows in prop::collection::vec(prop::array::uniform3(0u32..4), 1..80),
        ) {
            let numbers: Vec<usize> = (0..rows.len()).collect();
            let mut want = numbers.clone();
            want.sort_by_key(|row| rows[*row].map(|text| (text == 0, text)));
            let columns = [0, 1, 2].map(|at| {
                let mut column = Column::new(Values::String(Strings::new()));
                for row in &rows {
                    match TEXTS[row[at] as usize] {
                        "" => column.extend_missing(1),
                        text => column.push(Some(&Scalar::String(text.into()))),
                    }
                }
                column
            });
            let mut sorted = numbers.clone();
            sorted.sort_by(|a, b| compare_texts(&columns, *a, *b));
            prop_assert_eq!(&sorted, &want);
            let values = Arc::new(TEXTS.into_iter().collect());
            let tags = [0, 1, 2].map(|at| {
                let codes = rows.iter().map(|row| row[at]).collect();
                TagColumn { key: "tag".into(), codes, values: Arc::clone(&values) }
            });
            let tags: Vec<LeadingTag> = tags.iter().map(LeadingTag::of).collect();
            let mut sorted = numbers;
            sorted.sort_by(|a, b| compare_series(&tags, *a as u32, *b as u32));
            prop_assert_eq!(sorted, want);
        }
    }
}
