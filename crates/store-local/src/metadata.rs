//! Answers about names, out of the series index.

mod partitions;

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use model::{Column, ColumnBatch, Name, SeriesKey, Strings, TagExpr, Values};
use roaring::RoaringTreemap;
use store::{MetadataCursor, MetadataKind, MetadataRequest, StoreError};

use crate::engine::Engine;
use crate::error::series_error;
use crate::schema::Measurement;

/// Rows of a part.
const PART_ROWS: usize = 8192;

/// Starts an answer.
pub(crate) fn metadata(
    engine: &Arc<Engine>,
    request: &MetadataRequest,
) -> Result<Box<dyn MetadataCursor>, StoreError> {
    if matches!(request.kind, MetadataKind::Partitions) {
        return partitions::metadata(engine, request);
    }
    let mut measurements = engine.schema.of_database(request.database);
    measurements.retain(|m| request.measurements.accepts(&m.name));
    Ok(Box::new(Cursor {
        engine: Arc::clone(engine),
        request: request.clone(),
        left: measurements.into(),
        part: Part::default(),
        ready: VecDeque::new(),
    }))
}

/// Answers measurement by measurement.
#[derive(Debug)]
struct Cursor {
    engine: Arc<Engine>,
    request: MetadataRequest,
    left: VecDeque<Arc<Measurement>>,
    part: Part,
    ready: VecDeque<ColumnBatch>,
}

impl MetadataCursor for Cursor {
    fn next(&mut self) -> Result<Option<ColumnBatch>, StoreError> {
        while self.ready.is_empty() {
            self.request.context.interrupt.check()?;
            let Some(measurement) = self.left.pop_front() else {
                self.ready.extend(self.part.finish());
                break;
            };
            self.answer(&measurement)?;
        }
        Ok(self.ready.pop_front())
    }
}

impl Cursor {
    fn answer(&mut self, measurement: &Measurement) -> Result<(), StoreError> {
        let (index, database) = (&self.engine.index, self.request.database);
        let name = &measurement.name;
        let among = match &self.request.series {
            TagExpr::True => None,
            expr => {
                let found = index.select(database, name, expr).map_err(series_error)?;
                if found.is_empty() {
                    return Ok(());
                }
                Some(found)
            }
        };
        let among: Option<&RoaringTreemap> = among.as_ref();
        let (part, ready) = (&mut self.part, &mut self.ready);
        match &self.request.kind {
            MetadataKind::Measurements => {
                let exists = among.is_some()
                    || index.has_measurement(database, name).map_err(series_error)?;
                if exists {
                    part.push(&[name], ready);
                }
            }
            MetadataKind::Series => {
                let mut over = Ok(());
                let mut visit = |_, key: &SeriesKey| {
                    part.push(&[name, &key.to_string()], ready);
                    over = self.request.context.interrupt.check();
                    if over.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                };
                index.for_each_key(database, name, among, &mut visit).map_err(series_error)?;
                over?;
            }
            // Answered whole at the start.
            MetadataKind::Partitions => {}
            MetadataKind::TagKeys => {
                for key in index.tag_keys(database, name, among).map_err(series_error)? {
                    part.push(&[name, &key], ready);
                }
            }
            MetadataKind::TagValues(keys) => {
                let all: Vec<Name> = index.tag_keys(database, name, among).map_err(series_error)?;
                for key in all.iter().filter(|key| keys.accepts(key)) {
                    let mut visit = |value: &str| {
                        part.push(&[name, key, value], ready);
                        ControlFlow::Continue(())
                    };
                    index
                        .for_each_tag_value(database, name, key, among, &mut visit)
                        .map_err(series_error)?;
                }
            }
        }
        Ok(())
    }
}

/// Rows gathered for the next batch.
#[derive(Debug, Default)]
struct Part {
    columns: Vec<Strings>,
}

impl Part {
    fn push(&mut self, row: &[&str], ready: &mut VecDeque<ColumnBatch>) {
        self.columns.resize_with(row.len(), Strings::new);
        for (column, text) in self.columns.iter_mut().zip(row) {
            column.push(text);
        }
        if self.columns[0].len() >= PART_ROWS {
            ready.extend(self.finish());
        }
    }

    fn finish(&mut self) -> Option<ColumnBatch> {
        let columns = std::mem::take(&mut self.columns);
        let rows = columns.first().map_or(0, Strings::len);
        if rows == 0 {
            return None;
        }
        let columns = columns.into_iter().map(|c| Column::new(Values::String(c))).collect();
        Some(ColumnBatch { rows, runs: Vec::new(), columns })
    }
}
