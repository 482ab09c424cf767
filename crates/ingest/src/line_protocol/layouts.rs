//! The layouts of a body: which fields lines have, and which layout follows which.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use model::key::{KEY_BYTES_MAX, unescape};
use model::{FieldType, Layout, LayoutField};

use super::FIELD_SEPARATOR_BYTES;

/// A field as it stands in the text.
#[derive(Clone, Debug)]
pub(super) struct RawField {
    /// The name, escapes and all, and the `=` after it.
    pub(super) name: Range<usize>,
    /// The type its value had.
    pub(super) field_type: FieldType,
}

/// A layout as it stands in the text.
#[derive(Debug)]
pub(super) struct RawLayout<'a> {
    /// The measurement, escapes and all.
    measurement: &'a [u8],
    /// Names with their `=`, and types.
    pub(super) fields: Vec<(&'a [u8], FieldType)>,
    /// Longest key that may stand before these fields.
    key_bytes_max: usize,
    /// The layout that followed this one last time.
    next: u32,
}

/// All layouts seen so far.
#[derive(Debug, Default)]
pub(super) struct Layouts<'a> {
    layouts: Vec<Layout<'a>>,
    raw: Vec<RawLayout<'a>>,
    by_shape: HashMap<Shape<'a>, u32>,
    last: Option<u32>,
}

/// What makes two lines share a layout.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Shape<'a> {
    measurement: &'a [u8],
    fields: Vec<(&'a [u8], FieldType)>,
}

impl<'a> Layouts<'a> {
    pub(super) fn into_layouts(self) -> Vec<Layout<'a>> {
        self.layouts
    }

    pub(super) fn raw(&self, layout: u32) -> &RawLayout<'a> {
        &self.raw[layout as usize]
    }

    /// The layout a line with the raw key `key` probably has.
    #[inline]
    pub(super) fn expected(&self, key: &[u8]) -> Option<u32> {
        let guess = self.raw(self.last?).next;
        self.raw(guess).is_of(key).then_some(guess)
    }

    /// Notes that a line of this layout was the last one.
    #[inline]
    pub(super) fn seen(&mut self, layout: u32) {
        if let Some(last) = self.last {
            self.raw[last as usize].next = layout;
        }
        self.last = Some(layout);
    }

    /// The layout of a line that has `fields`, made if new. `values` from `values_start` on are the
    /// line's; those of fields that do not count (a name given twice, `time`) are taken out.
    pub(super) fn resolve(
        &mut self,
        text: &'a [u8],
        key: &'a [u8],
        fields: &[RawField],
        values: &mut Vec<u64>,
        values_start: usize,
    ) -> Result<u32, String> {
        let measurement = raw_measurement(key);
        let shape = |fields: &[RawField]| Shape {
            measurement,
            fields: fields.iter().map(|f| (&text[f.name.clone()], f.field_type)).collect(),
        };
        let whole = shape(fields);
        if let Some(layout) = self.by_shape.get(&whole).copied() {
            self.seen(layout);
            return Ok(layout);
        }
        let kept = kept_fields(text, fields);
        if kept.is_empty() {
            let measurement = unescape(as_text(measurement), b", ");
            return Err(format!(
                "invalid field name: input field \"time\" on measurement \"{measurement}\" is \
                 invalid"
            ));
        }
        let whole = if kept.len() == fields.len() {
            whole
        } else {
            let line_values: Vec<u64> = kept.iter().map(|at| values[values_start + at]).collect();
            values.truncate(values_start);
            values.extend_from_slice(&line_values);
            let fields: Vec<RawField> = kept.iter().map(|at| fields[*at].clone()).collect();
            shape(&fields)
        };
        let layout = match self.by_shape.get(&whole) {
            Some(layout) => *layout,
            None => self.add(whole),
        };
        self.seen(layout);
        Ok(layout)
    }

    fn add(&mut self, shape: Shape<'a>) -> u32 {
        let layout = self.layouts.len() as u32;
        self.layouts.push(Layout {
            measurement: unescape(as_text(shape.measurement), b", "),
            fields: shape
                .fields
                .iter()
                .map(|(name, field_type)| LayoutField {
                    name: field_name(name),
                    field_type: *field_type,
                })
                .collect(),
        });
        // The names end in `=`.
        let longest = shape.fields.iter().map(|(name, _)| name.len() - 1).max().unwrap_or(0);
        self.raw.push(RawLayout {
            measurement: shape.measurement,
            key_bytes_max: KEY_BYTES_MAX.saturating_sub(FIELD_SEPARATOR_BYTES + longest),
            fields: shape.fields.clone(),
            next: layout,
        });
        self.by_shape.insert(shape, layout);
        layout
    }
}

impl RawLayout<'_> {
    #[inline]
    fn is_of(&self, key: &[u8]) -> bool {
        let len = self.measurement.len();
        key.len() >= len
            && key.len() <= self.key_bytes_max
            && key[..len] == *self.measurement
            && matches!(key.get(len), None | Some(b','))
    }
}

/// Indexes of the fields that count: of a name given twice the last, and none named `time`.
fn kept_fields(text: &[u8], fields: &[RawField]) -> Vec<usize> {
    let mut last_of = HashMap::with_capacity(fields.len());
    for (at, field) in fields.iter().enumerate() {
        last_of.insert(field_name(&text[field.name.clone()]), at);
    }
    last_of.remove("time");
    let mut kept: Vec<usize> = last_of.into_values().collect();
    kept.sort_unstable();
    kept
}

/// The name in a raw field name with its `=`.
fn field_name(raw: &[u8]) -> Cow<'_, str> {
    unescape(as_text(&raw[..raw.len() - 1]), b",= ")
}

/// The measurement part of a raw key: up to the first unescaped comma.
fn raw_measurement(key: &[u8]) -> &[u8] {
    let mut at = 0;
    while at < key.len() {
        match key[at] {
            b'\\' => at += 2,
            b',' => return &key[..at],
            _ => at += 1,
        }
    }
    key
}

fn as_text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("BUG: lines are checked to be UTF-8, parts end at ASCII")
}
