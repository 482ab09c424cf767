//! Remote write to rows.

use std::borrow::Cow;
use std::collections::HashMap;

use model::{
    FieldType, Layout, LayoutField, LineBatch, LineRow, MAX_TIME_NS, MIN_TIME_NS,
    key::push_escaped, key_hash,
};

use super::message::{Label, SERIES_LABELS, SERIES_SAMPLES, Sample, parts};
use super::{BodyError, NAME_LABEL, NAMELESS, VALUE_FIELD};
use crate::line_protocol::{Parsed, Problem, ProblemKind};

/// Rows take at most so many times the bytes of the body they come from. A sample that says
/// anything is at least nine bytes.
pub const ROW_BYTES_FACTOR: usize = 8;

/// Small bodies are not worth counting.
const ROW_BYTES_FREE: usize = 64 << 10;

/// A metric, with its name twice.
const LAYOUT_BYTES: usize = 200;

const ROW_BYTES: usize = size_of::<LineRow>() + size_of::<u64>();

/// The rows of a write request.
///
/// # Errors
/// [`BodyError`]; what is wrong with single series or samples is in the result.
pub fn write_rows(bytes: &[u8]) -> Result<Parsed<'static>, BodyError> {
    let memory_max = bytes.len().saturating_mul(ROW_BYTES_FACTOR).saturating_add(ROW_BYTES_FREE);
    // Keys are about as long as their labels.
    let mut rows = Rows { text: Vec::with_capacity(bytes.len()), ..Rows::default() };
    for series in parts(bytes, 1) {
        rows.add(series?, memory_max)?;
    }
    Ok(rows.finish())
}

#[derive(Default)]
struct Rows {
    /// The keys, one after another.
    text: Vec<u8>,
    layouts: Vec<Layout<'static>>,
    /// Layouts by the hash of their metric.
    by_metric: HashMap<u128, u32>,
    rows: Vec<LineRow>,
    values: Vec<u64>,
    problems: Vec<Problem>,
}

impl Rows {
    /// Adds a series: looks for its name, then writes its key, then reads its samples.
    fn add(&mut self, series: &[u8], memory_max: usize) -> Result<(), BodyError> {
        let start = self.text.len();
        let metric = metric_of(series)?;
        let written = self.write_key(series, metric)?;
        let end = self.text.len();
        let line_start = u32::try_from(start).map_err(|_| BodyError::TooLarge)?;
        let len = u32::try_from(end - start).map_err(|_| BodyError::TooLarge)?;
        u32::try_from(end).map_err(|_| BodyError::TooLarge)?;
        let drop = |problems: &mut Vec<Problem>, reason: &str| {
            let kind = ProblemKind::Dropped(reason.to_owned());
            problems.push(Problem { line_start, kind });
        };
        let key_hash = key_hash(&self.text[start..end]);
        let mut known_layout = None;
        for sample in parts(series, SERIES_SAMPLES) {
            let sample = Sample::read(sample?)?;
            if !sample.value.is_finite() {
                continue;
            }
            if self.memory_bytes() > memory_max {
                return Err(BodyError::TooLarge);
            }
            if let Err(reason) = written {
                drop(&mut self.problems, reason);
                continue;
            }
            let time_ns = sample.timestamp_ms.checked_mul(1_000_000);
            let Some(time_ns) = time_ns.filter(|t| (MIN_TIME_NS..=MAX_TIME_NS).contains(t)) else {
                drop(&mut self.problems, "time outside range");
                continue;
            };
            let layout = match known_layout {
                Some(layout) => layout,
                None => *known_layout.insert(self.layout(metric)),
            };
            let values_start = u32::try_from(self.values.len()).map_err(|_| BodyError::TooLarge)?;
            self.values.push(sample.value.to_bits());
            self.rows.push(LineRow {
                key_hash,
                time_ns,
                line_start,
                line_len: len,
                key_len: len,
                layout,
                values_start,
            });
        }
        Ok(())
    }

    /// Writes the key of a series; says why if there is none.
    fn write_key(
        &mut self,
        series: &[u8],
        metric: &[u8],
    ) -> Result<Result<(), &'static str>, BodyError> {
        let start = self.text.len();
        let mut written = write_name(&mut self.text, metric);
        // Whether some label is not in the key.
        let mut is_part = written.is_err();
        for label in parts(series, SERIES_LABELS) {
            let label = Label::decode(label?)?;
            is_part |= label.value.is_empty();
            if written.is_ok() {
                written = write_label(&mut self.text, label);
                is_part |= written.is_err();
            }
        }
        // What stands between labels is ASCII: the key is text if they are, and the other way round.
        let key = &self.text[start..];
        if is_part || !(key.is_ascii() || str::from_utf8(key).is_ok()) {
            for label in parts(series, SERIES_LABELS) {
                Label::decode(label?)?.check()?;
            }
        }
        Ok(written)
    }

    /// What has been made so far takes about so much.
    fn memory_bytes(&self) -> usize {
        (self.rows.len() + self.problems.len()) * ROW_BYTES
            + self.layouts.len() * LAYOUT_BYTES
            + self.text.len()
    }

    fn layout(&mut self, metric: &[u8]) -> u32 {
        // Series of one metric often come one after another.
        let last = self.rows.last().map(|row| row.layout);
        let is_of = |layout: u32| self.layouts[layout as usize].measurement.as_bytes() == metric;
        if let Some(last) = last.filter(|last| is_of(*last)) {
            return last;
        }
        // As many as there are metrics: fewer than bytes, whose number was checked.
        let new = self.layouts.len() as u32;
        let layout = *self.by_metric.entry(key_hash(metric)).or_insert(new);
        if layout == new {
            let value =
                LayoutField { name: Cow::Borrowed(VALUE_FIELD), field_type: FieldType::Float };
            let metric = str::from_utf8(metric).expect("BUG: labels are checked to be UTF-8");
            let measurement = Cow::Owned(metric.to_owned());
            self.layouts.push(Layout { measurement, fields: vec![value] });
        }
        layout
    }

    fn finish(self) -> Parsed<'static> {
        let batch = LineBatch {
            text: self.text.into(),
            layouts: self.layouts,
            rows: self.rows,
            values: self.values,
            strings: Vec::new(),
        };
        Parsed { batch, problems: self.problems }
    }
}

/// The name of the metric of a series; labels behind it are not looked at yet.
fn metric_of(series: &[u8]) -> Result<&[u8], BodyError> {
    for label in parts(series, SERIES_LABELS) {
        let Label { name, value } = Label::decode(label?)?;
        if name == NAME_LABEL.as_bytes() && !value.is_empty() {
            return Ok(value);
        }
    }
    Ok(NAMELESS.as_bytes())
}

/// Writes the start of a series key; says why if there is none.
fn write_name(text: &mut Vec<u8>, metric: &[u8]) -> Result<(), &'static str> {
    check_writable(metric)?;
    push_escaped(text, metric, b", ");
    Ok(())
}

/// Adds a tag to a series key; a label without a value is none.
fn write_label(text: &mut Vec<u8>, label: Label<'_>) -> Result<(), &'static str> {
    let Label { name, value } = label;
    if value.is_empty() {
        return Ok(());
    }
    check_writable(name)?;
    check_writable(value)?;
    text.push(b',');
    push_escaped(text, name, b",= ");
    text.push(b'=');
    push_escaped(text, value, b",= ");
    Ok(())
}

/// The notation has no way to write a backslash before what ends a name.
fn check_writable(name: &[u8]) -> Result<(), &'static str> {
    match name {
        [.., b'\\'] => Err("a label that ends in a backslash cannot be stored"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::OwnedLabel;
    use super::*;
    use proptest::prelude::*;
    use prost::Message;

    /// One series of a write.
    #[derive(Clone, PartialEq, Message)]
    struct TimeSeries {
        #[prost(message, repeated, tag = "1")]
        labels: Vec<OwnedLabel>,
        #[prost(message, repeated, tag = "2")]
        samples: Vec<Sample>,
    }

    fn label(name: &str, value: &str) -> OwnedLabel {
        OwnedLabel { name: name.to_owned(), value: value.to_owned() }
    }

    fn body(series: &[TimeSeries]) -> Vec<u8> {
        let mut out = Vec::new();
        for series in series {
            prost::encoding::message::encode(1, series, &mut out);
        }
        out
    }

    fn series(labels: &[(&str, &str)], samples: &[(f64, i64)]) -> TimeSeries {
        let sample = |(value, timestamp_ms): &(f64, i64)| Sample {
            value: *value,
            timestamp_ms: *timestamp_ms,
        };
        TimeSeries {
            labels: labels.iter().map(|(name, value)| label(name, value)).collect(),
            samples: samples.iter().map(sample).collect(),
        }
    }

    #[test]
    fn samples_become_rows() {
        let parsed = write_rows(&body(&[
            series(&[("__name__", "up"), ("job", "a b"), ("none", "")], &[(1.0, 5), (0.5, -6)]),
            series(&[("instance", "x")], &[(f64::NAN, 1), (2.0, 1), (f64::INFINITY, 3)]),
            series(&[("__name__", "up")], &[]),
        ]));
        let Parsed { batch, problems } = parsed.unwrap();
        assert!(problems.is_empty());
        let lines: Vec<String> = batch
            .rows
            .iter()
            .map(|row| {
                let key = String::from_utf8(batch.raw_key(row).to_vec()).unwrap();
                let value = f64::from_bits(batch.row_values(row)[0]);
                format!("{key} {value} {}", row.time_ns)
            })
            .collect();
        assert_eq!(
            lines,
            [
                "up,__name__=up,job=a\\ b 1 5000000",
                "up,__name__=up,job=a\\ b 0.5 -6000000",
                "prom_metric_not_specified,instance=x 2 1000000",
            ]
        );
        let measurements: Vec<&str> = batch.layouts.iter().map(|l| &*l.measurement).collect();
        assert_eq!(measurements, ["up", "prom_metric_not_specified"]);
    }

    #[test]
    fn what_cannot_be_stored_is_told() {
        let parsed = write_rows(&body(&[
            series(&[("__name__", "m"), ("path", "C:\\")], &[(1.0, 5)]),
            series(&[("__name__", "m")], &[(1.0, i64::MAX), (1.0, 7)]),
        ]));
        let Parsed { batch, problems } = parsed.unwrap();
        assert_eq!((batch.rows.len(), problems.len()), (1, 2));
        assert!(matches!(&problems[0].kind, ProblemKind::Dropped(r) if r.contains("backslash")));
    }

    #[test]
    fn empty_parts_do_not_become_much() {
        let empty = series(&[], &vec![(0.0, 0); 100_000]);
        assert!(matches!(write_rows(&body(&[empty])), Err(BodyError::TooLarge)));
        let zeros: Vec<_> = (0..100_000).map(|at| (0.0, 1_700_000_000_000 + at)).collect();
        let legal = series(&[("__name__", "m")], &zeros);
        assert_eq!(write_rows(&body(&[legal])).unwrap().batch.rows.len(), 100_000);
    }

    #[test]
    fn other_fields_are_skipped() {
        let mut bytes = body(&[series(&[("__name__", "m")], &[(1.0, 1)])]);
        // Metadata: field 3, two bytes.
        bytes.extend_from_slice(&[3 << 3 | 2, 2, 8, 1]);
        assert_eq!(write_rows(&bytes).unwrap().batch.rows.len(), 1);
        assert!(write_rows(&bytes[..bytes.len() - 1]).is_err());
    }

    #[test]
    fn labels_that_are_no_text_spoil_the_body() {
        let good = body(&[series(&[("__name__", "m"), ("k", "vw")], &[(1.0, 1)])]);
        assert_eq!(write_rows(&good).unwrap().batch.rows.len(), 1);
        let at = good.windows(2).position(|pair| pair == b"vw").unwrap();
        for broken in [[0xff, b'w'], [b'v', 0xc3]] {
            let mut bytes = good.clone();
            bytes[at..at + 2].copy_from_slice(&broken);
            assert!(matches!(write_rows(&bytes), Err(BodyError::Malformed(_))), "{broken:?}");
        }
        // Those that are in no key as well.
        let mut bytes = body(&[series(&[("__name__", "m"), ("kx", "")], &[(1.0, 1)])]);
        let at = bytes.windows(2).position(|pair| pair == b"kx").unwrap();
        bytes[at] = 0xff;
        assert!(matches!(write_rows(&bytes), Err(BodyError::Malformed(_))));
    }

    #[test]
    fn metrics_in_turns_share_layouts() {
        let one = |metric| series(&[("__name__", metric)], &[(1.0, 1)]);
        let parsed = write_rows(&body(&[one("a"), one("b"), one("b"), one("a")])).unwrap();
        let layouts: Vec<u32> = parsed.batch.rows.iter().map(|row| row.layout).collect();
        assert_eq!((layouts, parsed.batch.layouts.len()), (vec![0, 1, 1, 0], 2));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = (write_rows(&bytes), crate::prometheus::read_queries(&bytes));
        }

        #[test]
        fn any_labels_are_stored_or_refused(
            name in ".{0,8}", value in ".{0,8}", metric in ".{0,8}",
        ) {
            let labels = [("__name__", metric.as_str()), (name.as_str(), value.as_str())];
            let parsed = write_rows(&body(&[series(&labels, &[(1.0, 1)])])).unwrap();
            for row in &parsed.batch.rows {
                // The store finds out what is no key.
                if let Ok(key) = model::SeriesKey::parse(parsed.batch.raw_key(row)) {
                    prop_assert_eq!(&*key.measurement, if metric.is_empty() { NAMELESS } else { &metric });
                }
            }
        }
    }
}
