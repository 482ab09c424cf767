//! Answers about names, out of the series index.

mod partitions;

use std::collections::VecDeque;
use std::mem::take;
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

/// Parts that one walk through the index makes at most; starting one again costs a few reads.
const PARTS_PER_WALK: usize = 8;

/// Starts an answer.
pub(crate) fn metadata(
    engine: &Arc<Engine>,
    request: &MetadataRequest,
) -> Result<Box<dyn MetadataCursor>, StoreError> {
    if matches!(request.kind, MetadataKind::Partitions) {
        return partitions::metadata(engine, request);
    }
    let measurements = engine.schema.accepted(request.database, &request.measurements);
    Ok(Box::new(Cursor {
        engine: Arc::clone(engine),
        request: request.clone(),
        left: measurements.into(),
        current: None,
        walked: false,
        part: Part::default(),
        ready: VecDeque::new(),
    }))
}

/// Answers measurement by measurement, some parts at a time.
#[derive(Debug)]
struct Cursor {
    engine: Arc<Engine>,
    request: MetadataRequest,
    left: VecDeque<Arc<Measurement>>,
    /// The measurement that is being listed.
    current: Option<Listing>,
    /// Whether a walk was broken off before: the first one makes a single part, for a LIMIT.
    walked: bool,
    part: Part,
    ready: VecDeque<ColumnBatch>,
}

/// How far the names of a measurement were listed.
#[derive(Debug)]
struct Listing {
    name: Name,
    /// Names that were handed out.
    listed: u64,
    /// The series that are meant; `None`: all.
    among: Option<RoaringTreemap>,
    left: Left,
}

/// What is left to list.
#[derive(Debug)]
enum Left {
    /// Series behind the given one.
    Series(Option<SeriesKey>),
    /// Values of tags: of the first behind the given one.
    Values(VecDeque<Name>, Option<String>),
}

impl MetadataCursor for Cursor {
    fn next(&mut self) -> Result<Option<ColumnBatch>, StoreError> {
        while self.ready.is_empty() {
            self.request.context.interrupt.check()?;
            if let Some(listing) = self.current.take() {
                self.current = self.go_on(listing)?;
            } else if let Some(measurement) = self.left.pop_front() {
                self.start(&measurement.name)?;
            } else {
                self.ready.extend(self.part.finish());
                break;
            }
        }
        Ok(self.ready.pop_front())
    }
}

impl Cursor {
    /// Answers for a measurement, or starts to list its names.
    fn start(&mut self, name: &Name) -> Result<(), StoreError> {
        let (index, database) = (&self.engine.index, self.request.database);
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
        let (part, ready) = (&mut self.part, &mut self.ready);
        match &self.request.kind {
            MetadataKind::Measurements => {
                let exists = among.is_some()
                    || index.has_measurement(database, name).map_err(series_error)?;
                if exists {
                    part.push(&[name], ready);
                }
            }
            MetadataKind::SeriesCounts => {
                let count = match &among {
                    Some(among) => among.len(),
                    None => index.cardinality(database, Some(name)).map_err(series_error)?,
                };
                if count > 0 {
                    part.push_count(name, count.cast_signed(), ready);
                }
            }
            // Answered whole at the start.
            MetadataKind::Partitions => {}
            MetadataKind::TagKeys => {
                for key in index.tag_keys(database, name, among.as_ref()).map_err(series_error)? {
                    part.push(&[name, &key], ready);
                }
            }
            MetadataKind::Series => {
                let (name, left) = (name.clone(), Left::Series(None));
                self.current = Some(Listing { name, listed: 0, among, left });
            }
            MetadataKind::TagValues(wanted) => {
                let keys = index.tag_keys(database, name, among.as_ref()).map_err(series_error)?;
                let keys = keys.into_iter().filter(|key| wanted.accepts(key)).collect();
                let (name, left) = (name.clone(), Left::Values(keys, None));
                self.current = Some(Listing { name, listed: 0, among, left });
            }
        }
        Ok(())
    }

    /// Lists some more names; gives back what is left to list.
    fn go_on(&mut self, mut listing: Listing) -> Result<Option<Listing>, StoreError> {
        let (index, database) = (&self.engine.index, self.request.database);
        let (name, among) = (&listing.name, listing.among.as_ref());
        let (part, ready) = (&mut self.part, &mut self.ready);
        let parts_max = if self.walked { PARTS_PER_WALK } else { 1 };
        let interrupt = &self.request.context.interrupt;
        // An interrupt ends the walk; the next call of `next` tells.
        let (facts_max, listed) = (self.request.facts_max.unwrap_or(u64::MAX), &mut listing.listed);
        let mut is_enough = |ready: &VecDeque<_>| {
            *listed += 1;
            ready.len() >= parts_max || *listed >= facts_max || interrupt.check().is_err()
        };
        let flow = |enough| if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        match &mut listing.left {
            Left::Series(after) => {
                let mut last = None;
                let mut visit = |_, key: &SeriesKey| {
                    part.push(&[name, &key.to_string()], ready);
                    let enough = is_enough(ready);
                    last = enough.then(|| key.clone());
                    flow(enough)
                };
                let walk = index.for_each_key(database, name, among, after.as_ref(), &mut visit);
                walk.map_err(series_error)?;
                if last.is_none() {
                    return Ok(None);
                }
                *after = last;
            }
            Left::Values(keys, after) => {
                let Some(key) = keys.front() else { return Ok(None) };
                let mut last = None;
                let mut visit = |value: &str| {
                    part.push(&[name, key, value], ready);
                    let enough = is_enough(ready);
                    last = enough.then(|| value.to_owned());
                    flow(enough)
                };
                let after_value = after.as_deref();
                let walk =
                    index.for_each_tag_value(database, name, key, among, after_value, &mut visit);
                walk.map_err(series_error)?;
                if last.is_none() {
                    keys.pop_front();
                }
                *after = last;
            }
        }
        self.walked |= !self.ready.is_empty();
        Ok((listing.listed < facts_max).then_some(listing))
    }
}

/// Rows gathered for the next batch.
#[derive(Debug, Default)]
struct Part {
    columns: Vec<Strings>,
    /// In place of a last column of text.
    counts: Vec<i64>,
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

    fn push_count(&mut self, name: &str, count: i64, ready: &mut VecDeque<ColumnBatch>) {
        self.counts.push(count);
        self.push(&[name], ready);
    }

    fn finish(&mut self) -> Option<ColumnBatch> {
        let (columns, counts) = (take(&mut self.columns), take(&mut self.counts));
        let rows = columns.first().map_or(0, Strings::len);
        if rows == 0 {
            return None;
        }
        let mut columns: Vec<Column> =
            columns.into_iter().map(|c| Column::new(Values::String(c))).collect();
        if !counts.is_empty() {
            columns.push(Column::new(Values::Integer(counts)));
        }
        Some(ColumnBatch { rows, runs: Vec::new(), columns })
    }
}
