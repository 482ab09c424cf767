//! What each field of a series has first from one end, field by field: where rows have a handful of thousands of fields, most
//! of what rows of all of them were made of was room for what they do not have.

use std::ops::ControlFlow;

use model::{FieldType, Scalar, string_slot_parts};

use super::read::Wanted;
use super::shard::Shard;

/// The first value from one end that was found of each field, with its time.
///
/// Whoever adds to it begins with what was written last: of two values of one time the first that is met stays.
#[derive(Debug)]
pub(crate) struct FieldEnds {
    /// The last values in time, not the first.
    pub(crate) from_end: bool,
    found: Vec<Option<(i64, Scalar)>>,
    missing: usize,
}

impl FieldEnds {
    /// Of so many fields nothing yet.
    pub(crate) fn new(fields: usize, from_end: bool) -> Self {
        Self { from_end, found: vec![None; fields], missing: fields }
    }

    /// What was found, by field.
    pub(crate) fn found(&self) -> &[Option<(i64, Scalar)>] {
        &self.found
    }

    /// Whether every field has a value.
    pub(crate) fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// Whether a value of this time is nearer to the end than what was found of the field.
    #[inline]
    pub(crate) fn wants(&self, field: usize, time_ns: i64) -> bool {
        match &self.found[field] {
            None => true,
            Some((best, _)) if self.from_end => time_ns > *best,
            Some((best, _)) => time_ns < *best,
        }
    }

    /// Notes a value that is wanted.
    pub(crate) fn put(&mut self, field: usize, time_ns: i64, value: Scalar) {
        debug_assert!(self.wants(field, time_ns), "BUG: a nearer value was found");
        let before = self.found[field].replace((time_ns, value));
        self.missing -= usize::from(before.is_none());
    }
}

impl Wanted<'_> {
    /// Adds what these rows have, which may have so many fields.
    pub(super) fn field_ends(&self, mut unseen: usize, ends: &mut FieldEnds) {
        let places = self.places;
        let is_ascending = self.series.rows.is_ascending();
        let mut is_seen = vec![false; places.columns()];
        // Where a time may come twice, what was written last is met first.
        let from_end = ends.from_end || !is_ascending;
        self.shard.rows_until_enough(self.series, self.time, from_end, |row| {
            if !self.has(&row) {
                return ControlFlow::Continue(());
            }
            for found in places.steady.iter().chain(places.others_of(row.layout)) {
                let field = found.field as usize;
                if !std::mem::replace(&mut is_seen[field], true) {
                    unseen -= 1;
                }
                if ends.wants(field, row.time_ns) {
                    let slot = row.values[found.position as usize];
                    ends.put(field, row.time_ns, scalar(self.shard, places.types[field], slot));
                }
            }
            if is_ascending && unseen == 0 {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
    }
}

/// The value that a slot of a row stands for.
fn scalar(shard: &Shard, field_type: FieldType, slot: u64) -> Scalar {
    match field_type {
        FieldType::Float => Scalar::Float(f64::from_bits(slot)),
        FieldType::Integer => Scalar::Integer(slot as i64),
        FieldType::Unsigned => Scalar::Unsigned(slot),
        FieldType::Boolean => Scalar::Boolean(slot != 0),
        FieldType::String => {
            let text = shard.text(string_slot_parts(slot));
            Scalar::String(std::str::from_utf8(text).expect("BUG: stored text is UTF-8").into())
        }
    }
}
