//! Adding texts to a tally: by the number of each, found once for those that rows share.

use std::ops::Range;

use model::{FieldType, Numbered, Strings, TextPlace};

use super::{Rows, Tally};
use crate::functions::Function;
use crate::functions::values::Occurrences;

/// The texts of a column whose rows share them.
pub(super) struct SharedTexts {
    /// Of each row; less than there are `places`.
    numbers: Vec<u64>,
    places: Vec<TextPlace>,
    /// What the tally calls the text at each place, once that was asked.
    known: Vec<Option<u32>>,
}

impl SharedTexts {
    pub(super) fn new(Numbered { numbers, places }: Numbered) -> Self {
        let numbers = numbers.into_iter().map(u64::from).collect();
        Self { numbers, known: vec![None; places.len()], places }
    }
}

impl Tally {
    /// Adds texts of a column, rows `range` of it, by numbers that are less than their texts.
    pub(super) fn add_shared_texts(
        &mut self,
        rows: Rows<'_>,
        column: &Strings,
        shared: &mut SharedTexts,
        range: Range<usize>,
    ) {
        let SharedTexts { numbers, places, known } = shared;
        let mut texts = std::mem::take(&mut self.texts);
        let hasher = self.hasher.clone();
        let mut text = |number: u64| {
            let known = &mut known[number as usize];
            let find = || texts.number(column.bytes_at(places[number as usize]), &hasher);
            (*known.get_or_insert_with(find)).into()
        };
        let numbers = &numbers[range];
        if !self.add_close(rows, numbers, |number| number, &mut text) {
            for (number, time) in numbers.iter().zip(rows.times) {
                self.add(rows.slot, text(*number), Occurrences::one(*time));
            }
        }
        self.texts = texts;
    }

    pub(super) fn add_texts<'t>(
        &mut self,
        slot: u32,
        texts: impl Iterator<Item = &'t [u8]>,
        times: &[i64],
    ) {
        let mut known = std::mem::take(&mut self.texts);
        let hasher = self.hasher.clone();
        let mut times = times.iter();
        // Of those that are known nothing more is asked then.
        let are_counted = self.function == Function::CountDistinct;
        known.numbers(texts, &hasher, |numbers| {
            let known = if are_counted && self.is_only(slot) { self.entries.len() } else { 0 };
            if known == 0 {
                self.prefetch(slot, numbers);
            }
            for (number, time) in numbers.iter().zip(&mut times) {
                if (*number as usize) < known {
                    continue;
                }
                self.add(slot, (*number).into(), Occurrences::one(*time));
            }
        });
        self.texts = known;
    }

    /// Whether a slot is the only one, of texts: entries are in the order of their numbers then.
    pub(super) fn is_only(&self, slot: u32) -> bool {
        self.input == FieldType::String && slot == 0 && self.slots.len() <= 1
    }

    /// Has the entries of some texts on their way from memory, if it is known where they are.
    fn prefetch(&self, slot: u32, numbers: &[u32]) {
        if self.is_only(slot) {
            let entries = numbers.iter().filter_map(|number| self.entries.get(*number as usize));
            entries.for_each(codec::prefetch);
        }
    }
}
