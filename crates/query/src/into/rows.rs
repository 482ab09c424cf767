//! Rows on their way from an answer to the store.

use std::borrow::Cow;
use std::ops::Range;

use hashbrown::HashMap;
use model::{
    Column, FieldType, Layout, LayoutField, LineBatch, LineRow, Name, Reservation, SeriesKey,
    Values, key_hash, string_slot,
};
use store::{Policy, WriteOutcome, WriteRequest};

use super::Shape;
use crate::exec::column::{slice, type_of, undictionary};
use crate::exec::stream::Part;
use crate::{QueryContext, QueryError};

/// Rows that are written together.
pub(super) struct RowBatch {
    text: Vec<u8>,
    layouts: Layouts,
    rows: Vec<LineRow>,
    values: Vec<u64>,
    strings: Vec<u8>,
    held: Reservation,
}

/// Measurements with the fields of some rows, each once.
#[derive(Default)]
struct Layouts {
    known: HashMap<(Name, Vec<(Name, FieldType)>), u32>,
    all: Vec<Layout<'static>>,
}

impl Layouts {
    fn number(&mut self, measurement: &Name, fields: Vec<(Name, FieldType)>) -> u32 {
        let next = self.all.len() as u32;
        let all = &mut self.all;
        *self.known.entry((measurement.clone(), fields)).or_insert_with_key(|(name, fields)| {
            let field = |(name, field_type): &(Name, FieldType)| LayoutField {
                name: Cow::Owned(name.to_string()),
                field_type: *field_type,
            };
            all.push(Layout {
                measurement: Cow::Owned(name.to_string()),
                fields: fields.iter().map(field).collect(),
            });
            next
        })
    }
}

impl RowBatch {
    /// No rows.
    pub(super) fn new(context: &QueryContext) -> Result<Self, QueryError> {
        Ok(Self {
            text: Vec::new(),
            layouts: Layouts::default(),
            rows: Vec::new(),
            values: Vec::new(),
            strings: Vec::new(),
            held: context.budget.reserve(0)?,
        })
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Adds rows of one series of the answer.
    pub(super) fn add(
        &mut self,
        measurement: &Name,
        part: &Part,
        shape: &Shape,
        range: Range<usize>,
    ) -> Result<(), QueryError> {
        let columns = &part.batch.columns;
        let Values::Time(times) = &columns[0].values else {
            panic!("BUG: the first column is the time");
        };
        let range = part.range.start + range.start..part.range.start + range.end;
        let plain = |(name, at): &(Name, usize)| {
            let mut column = slice(&columns[*at], range.clone());
            undictionary(&mut column);
            (name.clone(), column)
        };
        let fields: Vec<(Name, Column)> = shape.fields.iter().map(plain).collect();
        let tags: Vec<(Name, Column)> = shape.tags.iter().map(plain).collect();
        let mut key = Key::default();
        // Rows mostly have the fields of the row before.
        let mut last: (Vec<bool>, u32) = (Vec::new(), 0);
        for (row, time) in times[range.clone()].iter().enumerate() {
            let is_there = |(_, column): &(Name, Column)| column.is_valid(row);
            let present: Vec<bool> = fields.iter().map(is_there).collect();
            let infinite = |(_, column): &(Name, Column)| match &column.values {
                Values::Float(v) => column.is_valid(row) && v[row].is_infinite(),
                _ => false,
            };
            // What cannot be stored takes its row with it.
            if !present.contains(&true) || fields.iter().any(infinite) {
                continue;
            }
            if last.0 != present {
                let there = fields.iter().filter(|field| is_there(field));
                let there = there.map(|(name, c)| (name.clone(), type_of(&c.values))).collect();
                last = (present, self.layouts.number(measurement, there));
            }
            if key.is_unknown() || !tags.is_empty() {
                key = Key::of(measurement, part, &tags, row, &mut self.text);
            }
            let values_start = self.values.len() as u32;
            for (_, column) in fields.iter().filter(|field| is_there(field)) {
                let slot = slot(column, row, &mut self.strings);
                self.values.push(slot);
            }
            self.rows.push(LineRow {
                key_hash: key.hash,
                time_ns: *time,
                line_start: key.start,
                line_len: key.len,
                key_len: key.len,
                layout: last.1,
                values_start,
            });
        }
        self.held.resize(self.memory_bytes())?;
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        let rows = self.rows.capacity() * size_of::<LineRow>();
        rows + self.text.capacity() + self.values.capacity() * 8 + self.strings.capacity()
    }

    /// Writes the rows and forgets them.
    pub(super) fn write(
        &mut self,
        policy: Policy,
        context: &QueryContext,
    ) -> Result<WriteOutcome, QueryError> {
        let layouts = std::mem::take(&mut self.layouts);
        let batch = LineBatch {
            text: std::mem::take(&mut self.text).into(),
            layouts: layouts.all,
            rows: std::mem::take(&mut self.rows),
            values: std::mem::take(&mut self.values),
            strings: std::mem::take(&mut self.strings),
        };
        let request = WriteRequest { policy, batch: &batch, now_ns: context.now_ns };
        Ok(context.store.write(&request)?)
    }
}

/// Where the key of a series stands.
#[derive(Default)]
struct Key {
    hash: u128,
    start: u32,
    len: u32,
}

impl Key {
    fn is_unknown(&self) -> bool {
        self.len == 0
    }

    /// Writes the key of a row: the tags of its series, and those that are columns.
    fn of(
        measurement: &Name,
        part: &Part,
        columns: &[(Name, Column)],
        row: usize,
        text: &mut Vec<u8>,
    ) -> Self {
        let mut tags = part.header.tags.clone();
        for (name, column) in columns {
            if let Values::String(texts) = &column.values
                && column.is_valid(row)
            {
                tags.retain(|(key, _)| key != name);
                tags.push((name.clone(), Name::from(texts.get(row))));
            }
        }
        // An empty tag is none.
        tags.retain(|(_, value)| !value.is_empty());
        tags.sort_unstable();
        let key = SeriesKey { measurement: measurement.clone(), tags }.to_string();
        let start = text.len() as u32;
        text.extend_from_slice(key.as_bytes());
        Self { hash: key_hash(key.as_bytes()), start, len: key.len() as u32 }
    }
}

/// The bits of a value; text goes to `strings`.
fn slot(column: &Column, row: usize, strings: &mut Vec<u8>) -> u64 {
    match &column.values {
        Values::Float(v) => v[row].to_bits(),
        Values::Integer(v) | Values::Time(v) => v[row].cast_unsigned(),
        Values::Unsigned(v) => v[row],
        Values::Boolean(v) => u64::from(v.get(row)),
        Values::String(v) => {
            let text = v.get(row).as_bytes();
            let start = strings.len() as u32;
            strings.extend_from_slice(text);
            string_slot(start, text.len() as u32)
        }
        Values::Dictionary(..) => panic!("BUG: dictionaries were made plain before"),
    }
}
