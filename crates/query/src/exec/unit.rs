//! A measurement's share of a running SELECT: its inputs and its output series.

mod present;

use std::sync::Arc;

use model::{ColumnBatch, Interrupt, Name, SeriesHeader, TimeRange};
use store::{ScanItem, ScanRequest, ScanSlice, ScanStats};

use super::extent::Extent;
use super::groups::Groups;
use super::input::{self, Input, ScanUse};
use crate::plan::{ColumnKind, Select, Source};
use crate::{QueryContext, QueryError};
use present::Present;

/// Inputs of one name and their groups.
pub(crate) struct Unit {
    pub name: Name,
    pub inputs: Vec<Input>,
    pub groups: Groups,
    pub extent: Extent,
    /// Names of the result's columns.
    columns: Arc<[Name]>,
}

/// What was read of a unit.
#[derive(Clone, Debug)]
pub(crate) struct UnitStats {
    pub name: Name,
    pub series: usize,
    pub groups: usize,
    pub scans: Vec<ScanStats>,
}

/// Opens everything `select` reads, in the order of the result.
pub(crate) fn open(
    select: &Select,
    usage: ScanUse,
    context: &QueryContext,
) -> Result<Vec<Unit>, QueryError> {
    let unknown = select.aux.iter().all(|aux| aux.kind == ColumnKind::Unknown);
    if select.is_raw() && unknown {
        return Ok(Vec::new());
    }
    let inputs = input::open(select, usage, context)?;
    check_series(&inputs, context)?;
    let columns: Arc<[Name]> = std::iter::once(&select.time_column)
        .chain(select.outputs.iter().map(|output| &output.column))
        .cloned()
        .collect();
    let mut units = Vec::new();
    for of_name in neighbours(inputs, |a, b| a.name == b.name) {
        let mut groups = Groups::new(&of_name);
        // What a subquery reads is limited there.
        let measured = select.sources.iter().any(|s| !matches!(s, Source::Subquery(_)));
        if measured && (select.series_limit > 0 || select.series_offset > 0) {
            limit_series(&mut groups, select, &of_name, context)?;
        }
        let extent = Extent::of(&of_name);
        let (name, columns) = (of_name[0].name.clone(), Arc::clone(&columns));
        units.push(Unit { name, inputs: of_name, groups, extent, columns });
    }
    if !select.ascending {
        units.reverse();
    }
    Ok(units)
}

/// Neighbours that are alike, together. What is handed out has room for itself, not for all that were behind it: of ten
/// thousand measurements that was 25 GB.
fn neighbours<T>(all: Vec<T>, are_alike: impl Fn(&T, &T) -> bool) -> impl Iterator<Item = Vec<T>> {
    let mut left = all.into_iter().peekable();
    std::iter::from_fn(move || {
        let mut alike = vec![left.next()?];
        while let Some(next) = left.next_if(|next| are_alike(&alike[0], next)) {
            alike.push(next);
        }
        Some(alike)
    })
}

/// Leaves the groups that SLIMIT and SOFFSET leave. Series without rows in the shards that are read do
/// not count: a store knows all series of a database, InfluxDB those of a shard.
fn limit_series(
    groups: &mut Groups,
    select: &Select,
    inputs: &[Input],
    context: &QueryContext,
) -> Result<(), QueryError> {
    let dimensions = &select.dimensions;
    let is_counted = |name: &Name| select.limited_dimensions.contains(name);
    let counted: Vec<bool> = dimensions.iter().map(is_counted).collect();
    let mut present = Present::of(inputs, dimensions, context);
    let (limit, offset) = (select.series_limit, select.series_offset);
    groups.limit((limit, offset), (dimensions, &counted), |values| present.has(values), inputs)
}

/// Refuses queries over more series than configured.
pub(super) fn check_series(inputs: &[Input], context: &QueryContext) -> Result<(), QueryError> {
    let limit = context.limits.max_select_series;
    let series: u64 = inputs
        .iter()
        .filter(|input| input.request.is_some())
        .map(|input| u64::from(input.scan.series().len))
        .sum();
    if limit > 0 && series > limit {
        return Err(QueryError::Limit(format!(
            "max-select-series limit exceeded: ({}/{limit})",
            limit + 1
        )));
    }
    Ok(())
}

impl Unit {
    /// Inputs that are read for their rows only; they all count as one measurement.
    pub(super) fn of_rows(name: Name, inputs: Vec<Input>) -> Self {
        let (groups, extent) = (Groups::new(&inputs), Extent::of(&inputs));
        Self { name, inputs, groups, extent, columns: Arc::new([]) }
    }

    /// The slice of input `at` with the series of the groups `groups`; `None` if it has none.
    pub(crate) fn slice(
        &self,
        at: usize,
        groups: std::ops::Range<usize>,
        time: TimeRange,
    ) -> Option<ScanSlice> {
        let series = self.groups.ordinals(at, groups);
        if series.as_ref().is_some_and(|series| series.is_empty()) {
            return None;
        }
        let rows_per_series = self.inputs[at].rows_per_series;
        Some(ScanSlice { series, time, rows_per_series, ..ScanSlice::all() })
    }

    /// The slices of all inputs with the series of the groups `groups`, each with the number of its input.
    pub(crate) fn slices(
        &self,
        groups: std::ops::Range<usize>,
        time: TimeRange,
    ) -> Vec<(usize, ScanSlice)> {
        let slice = |at| Some((at, self.slice(at, groups.clone(), time)?));
        (0..self.inputs.len()).filter_map(slice).collect()
    }

    /// A slice of input `at` cut by series into as many parts as threads pay for `cells` cells: of rows fewer do than of what
    /// summaries answer, if not conditions have to be looked at besides.
    pub(crate) fn shares(
        &self,
        at: usize,
        slice: ScanSlice,
        cells: u64,
        context: &QueryContext,
    ) -> Result<Vec<ScanSlice>, QueryError> {
        let threads = context.threads.max(1);
        let cost = if self.may_be_summarised(at) { 1 } else { ROW_COST };
        if threads == 1 || cells.saturating_mul(cost) < context.tuning.parallel_cells {
            return Ok(vec![slice]);
        }
        self.cut(at, &slice, threads)
    }

    /// A slice of input `at` cut by series into about as many parts, where the store likes it best.
    pub(crate) fn cut(
        &self,
        at: usize,
        slice: &ScanSlice,
        parts: usize,
    ) -> Result<Vec<ScanSlice>, QueryError> {
        let scan = &self.inputs[at].scan;
        let len = slice.series.as_ref().map_or(scan.series().len as usize, |s| s.len());
        let mut cuts = scan.cuts(slice.series.as_deref(), parts)?;
        cuts.push(len);
        let mut from = 0;
        let share = |to: usize| {
            let part = std::mem::replace(&mut from, to)..to;
            let series = match &slice.series {
                Some(series) => series[part].into(),
                None => (part.start as u32..part.end as u32).collect(),
            };
            ScanSlice { series: Some(series), ..slice.clone() }
        };
        Ok(cuts.into_iter().map(share).collect())
    }

    /// Whether summaries may answer for most rows of input `at`: there are no conditions to look at, and many rows of a series
    /// in each window.
    fn may_be_summarised(&self, at: usize) -> bool {
        let input = &self.inputs[at];
        let Some(ScanRequest { windows: Some(windows), filters, joins_series, .. }) =
            &input.request
        else {
            return false;
        };
        let bounds = self.extent.bounds();
        let span = i128::from(bounds.max) - i128::from(bounds.min);
        let count = windows.every_ns.map_or(1, |every| span / i128::from(every.max(1)) + 1);
        // What all rows of several series together are has a summary, too.
        let series = match *joins_series && windows.every_ns.is_none() {
            true => 1,
            false => i128::from(input.scan.series().len.max(1)),
        };
        let rows_each = i128::from(self.extent.rows()) / series / count.max(1);
        input.filter.is_none() && filters.is_empty() && rows_each >= SUMMARISED_ROWS_MIN
    }

    /// What the rows of a group have in common in the result.
    pub(crate) fn header(&self, group: usize, select: &Select) -> Arc<SeriesHeader> {
        let values = self.groups.values(group, &self.inputs);
        let mut tags = Vec::with_capacity(select.dimensions.len());
        tags.extend(select.dimensions.iter().cloned().zip(values));
        let (name, columns) = (self.name.clone(), Arc::clone(&self.columns));
        Arc::new(SeriesHeader { name, tags, columns, list: None })
    }

    /// What was read so far.
    pub(crate) fn stats(&self) -> UnitStats {
        UnitStats {
            name: self.name.clone(),
            series: self.groups.series_count(0..self.groups.len()),
            groups: self.groups.len(),
            scans: self.inputs.iter().map(|input| input.scan.stats()).collect(),
        }
    }

    /// The series of a group that has just one, and its input.
    pub(crate) fn only_series(&self, group: usize) -> Option<(usize, u32)> {
        if self.groups.series_count(group..group + 1) != 1 {
            return None;
        }
        (0..self.inputs.len()).find_map(|input| {
            match self.groups.ordinals(input, group..group + 1) {
                Some(series) => series.first().map(|series| (input, *series)),
                None => (self.inputs[input].scan.series().len == 1).then_some((input, 0)),
            }
        })
    }

    /// An estimate of the rows of a slice of input `at`.
    pub(crate) fn rows_within(&self, at: usize, slice: &ScanSlice) -> usize {
        let all = u128::from(self.inputs[at].scan.series().len.max(1));
        let some = slice.series.as_ref().map_or(all, |series| series.len() as u128);
        let rows = u128::from(self.extent.rows_within(slice.time)) * some / all;
        usize::try_from(rows).unwrap_or(usize::MAX)
    }

    /// An estimate of the rows of `groups`.
    pub(crate) fn rows_estimate(&self, groups: std::ops::Range<usize>) -> u64 {
        let all = self.groups.series_count(0..self.groups.len()).max(1) as u128;
        let some = self.groups.series_count(groups) as u128;
        let rows = u128::from(self.extent.rows()) * some / all;
        rows.min(u128::from(u64::MAX)) as u64
    }
}

/// So many cells that summaries answer take as long as one that is read, at least.
const ROW_COST: u64 = 4;

/// A window has so many rows of a series if summaries are to answer for it: stores have none for less.
const SUMMARISED_ROWS_MIN: i128 = 128;

/// Reads rows of a cursor to its end, with the limits of the query checked between batches.
pub(crate) struct Reader<'a> {
    pub context: &'a QueryContext,
    pub interrupt: &'a Interrupt,
}

impl Reader<'_> {
    /// Calls `visit` with every item of a slice of `input`; rows come filtered and never empty.
    pub(crate) fn read(
        &self,
        input: &Input,
        slice: &ScanSlice,
        mut visit: impl FnMut(Item) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        self.read_while(input, slice, |item| visit(item).map(|()| true)).map(drop)
    }

    /// The same as long as `visit` says so; whether that was to the end.
    pub(crate) fn read_while(
        &self,
        input: &Input,
        slice: &ScanSlice,
        mut visit: impl FnMut(Item) -> Result<bool, QueryError>,
    ) -> Result<bool, QueryError> {
        let mut cursor = input.cursor(slice)?;
        while let Some(item) = cursor.next()? {
            self.interrupt.check()?;
            match item {
                ScanItem::Rows(batch) => {
                    self.context.count_points(batch.rows)?;
                    let batch = input.wanted_rows(batch);
                    if batch.rows > 0 && !visit(Item::Rows(batch))? {
                        return Ok(false);
                    }
                }
                ScanItem::Summaries(batch) => {
                    if !visit(Item::Summaries(batch))? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }
}

/// What a reader hands on.
pub(crate) enum Item {
    Rows(ColumnBatch),
    Summaries(model::SummaryBatch),
}

/// The results of `work` on each share, in order; on threads of their own if there are several.
pub(crate) fn on_threads<S: Sync, T: Send>(
    shares: &[S],
    work: impl Fn(&S) -> Result<T, QueryError> + Sync,
) -> Result<Vec<T>, QueryError> {
    if let [only] = shares {
        return Ok(vec![work(only)?]);
    }
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = shares.iter().map(|share| scope.spawn(move || work(share))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_have_room_for_themselves() {
        let all: Vec<u32> = (0..1000).flat_map(|of| vec![of; of as usize % 3 + 1]).collect();
        let (count, mut room, mut found) = (all.len(), 0, Vec::new());
        for alike in neighbours(all.clone(), |a, b| a == b) {
            assert!(
                alike.iter().all(|of| *of == alike[0]) && alike.len() == alike[0] as usize % 3 + 1
            );
            room += alike.capacity();
            found.extend(alike);
        }
        assert_eq!(found, all);
        assert!(room <= 4 * count, "room for {room} of {count}");
        assert_eq!(neighbours(Vec::<u32>::new(), |a, b| a == b).count(), 0);
    }
}
