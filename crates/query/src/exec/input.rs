//! One source of a running SELECT: a scan, and where in it the columns of the plan are.

mod matching;
mod tagged;

use std::borrow::Cow;
use std::sync::Arc;

use hashbrown::HashMap;
use model::{
    Bitmap, Column, ColumnBatch, FieldType, Name, Scalar, SeriesRun, TagExpr, TimeRange, Values,
};
use store::{Scan, ScanCursor, ScanRequest, ScanSlice, SeriesTable, TagColumn, TimeOrder, Windows};

use super::column::{self, Cell, cast, missing, take_column};
use super::join;
use super::predicate::{Predicate, Rows};
use super::subquery::{self, KeptUse, SubqueryScan};
use crate::plan::{AuxPlan, CallPlan, ColumnKind, Condition, Select, SlotSource, Source};
use crate::{QueryContext, QueryError};
pub(crate) use matching::{Matching, open_matching};
use tagged::tagged;

/// A source that can be read.
pub(crate) struct Input {
    /// Name of its measurement.
    pub name: Name,
    /// The rows.
    pub scan: Box<dyn Scan>,
    /// Where the field of each function is.
    pub calls: Vec<ColumnSource>,
    /// Where each other column is.
    pub aux: Vec<ColumnSource>,
    /// The tag columns of the dimensions.
    pub dimensions: Vec<usize>,
    /// What rows must satisfy, if the scan does not see to it.
    pub filter: Option<Filter>,
    /// Whether the scan reads forward in time.
    pub ascending: bool,
    /// Rows of each series that are enough.
    pub rows_per_series: Option<u64>,
    /// What the scan was asked for, for EXPLAIN.
    pub request: Option<ScanRequest>,
}

/// Where in a scan a column is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ColumnSource {
    /// A column of the batches, read as another type perhaps.
    Column { at: usize, cast: Option<FieldType> },
    /// A column of the series table. `blank`: an absent tag is an empty text, not a missing value.
    Tag { at: usize, blank: bool },
    /// Nowhere.
    Missing(FieldType),
    /// The ordinal of a row's series, which says with [`Self::RowTime`] which row it is.
    RowSeries,
    /// A row's time.
    RowTime,
}

/// A condition that is evaluated for each row.
pub(crate) struct Filter {
    predicate: Option<Predicate>,
    slots: Vec<ColumnSource>,
    /// Columns of which a row must have at least one, if others are read too.
    shown: Option<Vec<usize>>,
}

/// How a scan is going to be used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScanUse {
    /// Order of time that is read in.
    pub ascending: bool,
    /// Rows of each series that are enough.
    pub rows_per_series: Option<u64>,
    /// Windows that summaries may stand for.
    pub windows: Option<Windows>,
    /// Whether it does not matter which series a row is of.
    pub joins_series: bool,
}

/// The columns asked for, each once.
#[derive(Default)]
struct Wanted {
    fields: Vec<(Name, FieldType)>,
    /// Where in `fields` they are.
    places: HashMap<Name, usize>,
    tags: Vec<Name>,
}

impl Wanted {
    fn column(&mut self, source: SlotSource) -> ColumnSource {
        match source {
            SlotSource::Field { name, stored, wanted } => {
                let at = *self.places.entry(name).or_insert_with_key(|name| {
                    self.fields.push((Name::clone(name), stored));
                    self.fields.len() - 1
                });
                ColumnSource::Column { at: at + 1, cast: (stored != wanted).then_some(wanted) }
            }
            SlotSource::Tag(name) => ColumnSource::Tag { at: self.tag(&name), blank: false },
            SlotSource::Missing(field_type) => ColumnSource::Missing(field_type),
        }
    }

    fn tag(&mut self, name: &Name) -> usize {
        match self.tags.iter().position(|tag| tag == name) {
            Some(at) => at,
            None => {
                self.tags.push(name.clone());
                self.tags.len() - 1
            }
        }
    }
}

/// Starts reading all sources of `select`, sorted by name. A subquery runs to its end here.
pub(crate) fn open(
    select: &Select,
    usage: ScanUse,
    context: &QueryContext,
) -> Result<Vec<Input>, QueryError> {
    let columns = Columns {
        calls: &select.calls,
        aux: &select.aux,
        dimensions: &select.dimensions,
        time: select.read_range(),
    };
    let mut inputs = Vec::with_capacity(select.sources.len());
    for source in &select.sources {
        open_source(source, &columns, usage, context, &mut inputs)?;
    }
    inputs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(inputs)
}

/// What is read of a source.
pub(crate) struct Columns<'a> {
    /// Functions, each over a field; none: rows are wanted as they are.
    pub calls: &'a [CallPlan],
    /// Fields and tags beside them.
    pub aux: &'a [AuxPlan],
    /// Tags that rows are grouped by.
    pub dimensions: &'a [Name],
    /// The times of rows.
    pub time: TimeRange,
}

/// Starts reading one source. A subquery runs to its end here.
pub(crate) fn open_source(
    source: &Source,
    columns: &Columns<'_>,
    usage: ScanUse,
    context: &QueryContext,
    inputs: &mut Vec<Input>,
) -> Result<(), QueryError> {
    let mut wanted = Wanted::default();
    let mut plan = InputPlan::new(source, columns, usage, &mut wanted);
    let tags;
    let (scans, filter) = match source {
        Source::Measurement(measurement) => {
            let filter = plan.filter(&measurement.condition, &mut wanted, columns.calls.is_empty());
            let is_store_decided = measurement.condition.is_filtered_exactly;
            let request = ScanRequest {
                policy: measurement.policy,
                measurement: measurement.name.clone(),
                fields: wanted.fields,
                tags: wanted.tags,
                series: measurement.condition.tags.clone(),
                time: columns.time,
                filters: measurement.condition.filters.clone(),
                order: order(usage.ascending),
                // Summaries are of values as they are stored, in rows that the store can tell.
                windows: usage.windows.filter(|_| is_store_decided && !plan.casts()),
                joins_series: usage.joins_series
                    && !filter.as_ref().is_some_and(Filter::looks_at_tags),
                context: context.scan_context(),
            };
            if request.fields.is_empty() || request.time.is_empty() {
                return Ok(());
            }
            let scan = context.store.scan(&request)?;
            let name = measurement.name.clone();
            inputs.push(plan.input(name, scan, filter, Some(request)));
            return Ok(());
        }
        // Every row of a subquery or join is a row, with or without the columns wanted here.
        Source::Subquery(inner) => {
            let filter = plan.filter(&inner.condition, &mut wanted, false);
            tags = plan.take_tags(&wanted);
            let usage = KeptUse {
                ascending: usage.ascending,
                joins_series: usage.joins_series
                    && tags.is_empty()
                    && !filter.as_ref().is_some_and(Filter::looks_at_tags),
            };
            (subquery::scans(inner, &wanted.fields, &wanted.tags, usage, context)?, filter)
        }
        Source::Join(inner) => {
            let filter = plan.filter(&inner.condition, &mut wanted, false);
            tags = plan.take_tags(&wanted);
            let scans = join::scans(inner, &wanted.fields, &wanted.tags, usage.ascending, context)?;
            (scans, filter)
        }
    };
    for SubqueryScan { name, scan } in scans {
        inputs.push(plan.input(name, tagged(scan, &tags), filter.clone(), None));
    }
    Ok(())
}

fn order(ascending: bool) -> TimeOrder {
    if ascending { TimeOrder::Ascending } else { TimeOrder::Descending }
}

struct InputPlan {
    calls: Vec<ColumnSource>,
    aux: Vec<ColumnSource>,
    dimensions: Vec<usize>,
    shown_fields: usize,
    usage: ScanUse,
}

impl InputPlan {
    /// Where in `source` the columns are, as far as it has them.
    fn new(source: &Source, columns: &Columns<'_>, usage: ScanUse, wanted: &mut Wanted) -> Self {
        let calls = columns.calls.iter().map(|call| match call.input {
            Some(input) => {
                let kind = ColumnKind::Field(input);
                match crate::plan::slot_source(source, &call.field, kind) {
                    // Another source has numbers of this name.
                    SlotSource::Tag(_) if input != FieldType::String => {
                        ColumnSource::Missing(input)
                    }
                    slot => wanted.column(slot),
                }
            }
            None => ColumnSource::Missing(FieldType::Float),
        });
        let calls = calls.collect();
        let aux = columns.aux.iter().map(|column| {
            let found = crate::plan::slot_source(source, &column.name, column.kind);
            match wanted.column(found) {
                // The tags of a subquery's rows are its dimensions, which are always there.
                ColumnSource::Tag { at, .. } => {
                    ColumnSource::Tag { at, blank: !matches!(source, Source::Measurement(_)) }
                }
                column => column,
            }
        });
        let aux = aux.collect();
        let shown_fields = wanted.fields.len();
        let dimensions = columns.dimensions.iter().map(|name| wanted.tag(name)).collect();
        Self { calls, aux, dimensions, shown_fields, usage }
    }

    /// Whether a function reads values as another type than theirs.
    fn casts(&self) -> bool {
        self.calls.iter().any(|call| matches!(call, ColumnSource::Column { cast: Some(_), .. }))
    }

    fn filter(&self, condition: &Condition, wanted: &mut Wanted, raw: bool) -> Option<Filter> {
        let slots = condition.slots.iter().map(|slot| wanted.column(slot.clone())).collect();
        if let Some(predicate) = &condition.predicate {
            tags_of(predicate, &mut |name| {
                wanted.tag(name);
            });
        }
        let has_more = raw && wanted.fields.len() > self.shown_fields;
        if condition.predicate.is_none() && !has_more {
            return None;
        }
        Some(Filter {
            predicate: condition.predicate.clone(),
            slots,
            shown: has_more.then(|| (1..=self.shown_fields).collect()),
        })
    }

    fn input(
        &self,
        name: Name,
        scan: Box<dyn Scan>,
        filter: Option<Filter>,
        request: Option<ScanRequest>,
    ) -> Input {
        // Rows that fail the condition must not count.
        let rows_per_series = self.usage.rows_per_series.filter(|_| filter.is_none());
        Input {
            name,
            scan,
            calls: self.calls.clone(),
            aux: self.aux.clone(),
            dimensions: self.dimensions.clone(),
            filter,
            ascending: self.usage.ascending,
            rows_per_series,
            request,
        }
    }
}

/// Calls `visit` with the tags that `predicate` looks at by itself.
fn tags_of(predicate: &Predicate, visit: &mut impl FnMut(&Name)) {
    match predicate {
        Predicate::Tags(tags) => crate::plan::tag_names(tags, visit),
        Predicate::All(parts) | Predicate::Any(parts) => {
            parts.iter().for_each(|part| tags_of(part, visit));
        }
        Predicate::Agree(sides) => sides.iter().for_each(|side| tags_of(side, visit)),
        _ => {}
    }
}

impl Clone for Filter {
    fn clone(&self) -> Self {
        Self {
            predicate: self.predicate.clone(),
            slots: self.slots.clone(),
            shown: self.shown.clone(),
        }
    }
}

impl Input {
    /// Starts reading a slice.
    pub(crate) fn cursor(&self, slice: &ScanSlice) -> Result<Box<dyn ScanCursor>, QueryError> {
        Ok(self.scan.open(slice)?)
    }

    /// What to ask for the columns that functions and the condition look at, and where these are then; `None`: there are no others.
    pub(crate) fn without_aux(&self) -> Option<(ScanRequest, Vec<ColumnSource>, Option<Filter>)> {
        let request = self.request.as_ref()?;
        let mut kept: Vec<usize> = Vec::new();
        let mut placed = |source: &ColumnSource| match source {
            ColumnSource::Column { at, cast } => {
                let place = kept.iter().position(|kept| kept == at).unwrap_or_else(|| {
                    kept.push(*at);
                    kept.len() - 1
                });
                ColumnSource::Column { at: place + 1, cast: *cast }
            }
            source => source.clone(),
        };
        let calls = self.calls.iter().map(&mut placed).collect();
        let filter = self.filter.as_ref().map(|filter| Filter {
            predicate: filter.predicate.clone(),
            slots: filter.slots.iter().map(&mut placed).collect(),
            shown: None,
        });
        let fields: Vec<_> = kept.iter().map(|at| request.fields[at - 1].clone()).collect();
        let is_less = fields.len() < request.fields.len();
        is_less.then(|| (ScanRequest { fields, ..request.clone() }, calls, filter))
    }

    /// The rows of a batch that satisfy the condition.
    pub(crate) fn wanted_rows(&self, batch: ColumnBatch) -> ColumnBatch {
        let Some(filter) = &self.filter else { return batch };
        let selection = filter.select(&batch, self.scan.series());
        match selection.count_ones() {
            all if all == batch.rows => batch,
            _ => column::filter(&batch, &selection),
        }
    }

    /// The tag of a series as a cell.
    pub(crate) fn tag_cell(&self, at: usize, blank: bool, series: u32) -> Cell {
        let text = self.tag(at, series);
        (blank || !text.is_empty()).then(|| Scalar::String(text.into()))
    }

    /// The other columns over the rows of a batch, which has none of them any more.
    pub(crate) fn take_aux(&self, batch: &mut ColumnBatch) -> Vec<Column> {
        let mut columns = Vec::with_capacity(self.aux.len());
        let mut uses_left = vec![0u32; batch.columns.len()];
        for source in &self.aux {
            if let ColumnSource::Column { at, .. } = source {
                uses_left[*at] += 1;
            }
        }
        for source in &self.aux {
            let ColumnSource::Column { at, cast: to } = source else {
                columns.push(source.column(batch, self.scan.series()).into_owned());
                continue;
            };
            uses_left[*at] -= 1;
            let column = take_column(&mut batch.columns, *at, uses_left[*at] > 0);
            columns.push(match to {
                Some(to) => cast(column, *to),
                None => column,
            });
        }
        columns
    }

    /// The tag of a series in column `at` of the series table.
    pub(crate) fn tag(&self, at: usize, series: u32) -> &str {
        let tags = &self.scan.series().tags[at];
        tags.values.get(tags.codes[series as usize] as usize)
    }
}

impl ColumnSource {
    /// The column over the rows of a batch.
    pub(crate) fn column<'a>(
        &self,
        batch: &'a ColumnBatch,
        table: &SeriesTable,
    ) -> Cow<'a, Column> {
        match self {
            Self::Column { at, cast: None } => Cow::Borrowed(&batch.columns[*at]),
            Self::Column { at, cast: Some(to) } => {
                Cow::Owned(cast(batch.columns[*at].clone(), *to))
            }
            Self::Tag { at, blank } => {
                Cow::Owned(tag_column(batch.rows, &batch.runs, &table.tags[*at], *blank))
            }
            Self::Missing(field_type) => Cow::Owned(missing(*field_type, batch.rows)),
            Self::RowSeries | Self::RowTime => panic!("BUG: which row it is as a column"),
        }
    }
}

/// A tag, row by row.
fn tag_column(rows: usize, runs: &[SeriesRun], tag: &TagColumn, blank: bool) -> Column {
    let mut codes = Vec::with_capacity(rows);
    for run in runs {
        codes.resize(codes.len() + run.rows as usize, tag.codes[run.series as usize]);
    }
    tag_of_codes(tag, codes, blank)
}

/// A tag of rows, of which the series are given.
pub(crate) fn tag_of_series(tag: &TagColumn, series: &[u32], blank: bool) -> Column {
    let codes = series.iter().map(|series| tag.codes[*series as usize]).collect();
    tag_of_codes(tag, codes, blank)
}

fn tag_of_codes(tag: &TagColumn, codes: Vec<u32>, blank: bool) -> Column {
    // All series have the tag if the least of its values is a text.
    let may_lack = !blank && !tag.values.is_empty() && tag.values.get_bytes(0).is_empty();
    let is_there = |code: &u32| !tag.values.get_bytes(*code as usize).is_empty();
    let validity = may_lack.then(|| codes.iter().map(is_there).collect::<Bitmap>());
    let validity = validity.filter(|valid| valid.count_ones() < codes.len());
    Column { values: Values::Dictionary(codes, Arc::clone(&tag.values)), validity }
}

impl Filter {
    fn looks_at_tags(&self) -> bool {
        let mut is_any = self.slots.iter().any(|slot| matches!(slot, ColumnSource::Tag { .. }));
        if let Some(predicate) = &self.predicate {
            tags_of(predicate, &mut |_| is_any = true);
        }
        is_any
    }

    fn select(&self, batch: &ColumnBatch, table: &SeriesTable) -> Bitmap {
        let mut selection = match &self.predicate {
            None => Bitmap::filled(batch.rows, true),
            Some(predicate) => {
                let columns: Vec<Cow<'_, Column>> =
                    self.slots.iter().map(|slot| slot.column(batch, table)).collect();
                let slots: Vec<&Column> = columns.iter().map(|c| &**c).collect();
                let tags = |condition: &TagExpr| rows_of_series(condition, batch, table);
                predicate.select(&Rows { slots: &slots, rows: batch.rows, tags: &tags })
            }
        };
        if let Some(shown) = &self.shown {
            let mut any = Bitmap::filled(batch.rows, false);
            for at in shown {
                any = match &batch.columns[*at].validity {
                    None => Bitmap::filled(batch.rows, true),
                    Some(validity) => column::combine(&any, validity, |x, y| x | y),
                };
            }
            selection = column::combine(&selection, &any, |x, y| x & y);
        }
        selection
    }
}

/// The rows whose series satisfies `condition`.
fn rows_of_series(condition: &TagExpr, batch: &ColumnBatch, table: &SeriesTable) -> Bitmap {
    let mut bits = Bitmap::new();
    for run in &batch.runs {
        let tag = |name: &str| {
            let column = table.tags.iter().find(|column| *column.key == *name);
            column.map_or("", |c| c.values.get(c.codes[run.series as usize] as usize))
        };
        bits.extend_filled(run.rows as usize, condition.evaluate(&tag));
    }
    bits
}
