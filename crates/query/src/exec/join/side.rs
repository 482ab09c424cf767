//! One side of a join: its scans, and its rows in order of groups and time.

use std::ops::Range;

use influxql::JoinKind;
use model::{Column, Name, Reservation, TimeRange, Values};
use store::ScanSlice;

use super::NO_GROUP;
use crate::exec::column::append;
use crate::exec::input::{self, Columns, ScanUse};
use crate::exec::unit::{self, Item, Reader, Unit};
use crate::plan::{AuxPlan, ColumnKind, JoinSource, Source};
use crate::{QueryContext, QueryError};

/// A side that can be read.
pub(super) struct Side {
    pub kind: JoinKind,
    /// Its scans; the groups are those of the tags that rows pair by.
    pub unit: Unit,
    /// The columns that are read.
    columns: Vec<AuxPlan>,
}

/// Some rows of one side.
pub(super) struct SideRows {
    times: Vec<i64>,
    /// The columns, in the order that rows were read in.
    pub slots: Vec<Column>,
    /// The rows in order of their groups and of time.
    order: Vec<u32>,
    /// Where in `order` each group is, by ascending group.
    groups: Vec<(u32, Range<usize>)>,
    _reservation: Reservation,
}

impl Side {
    /// Starts reading the side `at` of a join; a subquery runs here.
    ///
    /// A row of a measurement is one that has a value in a field of the query, as in any SELECT;
    /// where the query has none of this side, one with a value in any field.
    pub(super) fn open(
        source: &JoinSource,
        at: usize,
        columns: Vec<(Name, ColumnKind)>,
        ascending: bool,
        context: &QueryContext,
    ) -> Result<Self, QueryError> {
        let side = &source.sides[at];
        let mut columns: Vec<AuxPlan> =
            columns.into_iter().map(|(name, kind)| AuxPlan { name, kind }).collect();
        let is_field = |kind: ColumnKind| matches!(kind, ColumnKind::Field(_));
        let is_measured = matches!(side.source, Some(Source::Measurement(_)));
        if is_measured && !columns.iter().any(|column| is_field(column.kind)) {
            let all = side.columns.iter().filter(|column| is_field(column.kind));
            columns.extend(all.map(|c| AuxPlan { name: c.own.clone(), kind: c.kind }));
        }
        let mut inputs = Vec::new();
        if let Some(rows) = &side.source {
            let wanted =
                Columns { calls: &[], aux: &columns, dimensions: &source.tags, time: source.range };
            let usage = ScanUse { ascending, ..ScanUse::default() };
            input::open_source(rows, &wanted, usage, context, &mut inputs)?;
            unit::check_series(&inputs, context)?;
        }
        let unit = Unit::of_rows(side.alias.as_str().into(), inputs);
        Ok(Self { kind: side.kind, unit, columns })
    }

    /// Reads the rows of some groups within `time`. The groups ascend.
    pub(super) fn read(
        &self,
        groups: &[u32],
        time: TimeRange,
        ascending: bool,
        context: &QueryContext,
    ) -> Result<SideRows, QueryError> {
        let mut read = Read::new(self, context)?;
        let reader = Reader { context, interrupt: &context.interrupt };
        for (at, input) in self.unit.inputs.iter().enumerate() {
            let Some(slice) = self.slice(at, groups, time) else { continue };
            let table = input.scan.series();
            reader.read(input, &slice, |item| {
                let Item::Rows(batch) = item else {
                    panic!("BUG: summaries were not asked for");
                };
                read.times.extend_from_slice(batch.times());
                for run in &batch.runs {
                    let group = self.unit.groups.of(at, run.series).unwrap_or(NO_GROUP);
                    read.groups.resize(read.groups.len() + run.rows as usize, group);
                }
                for (slot, source) in read.slots.iter_mut().zip(&input.aux) {
                    append(slot, &source.column(&batch, table));
                }
                read.reserve()
            })?;
        }
        Ok(read.in_order(ascending))
    }

    /// The slice of input `at` with the series of `groups`; `None` if it has none.
    fn slice(&self, at: usize, groups: &[u32], time: TimeRange) -> Option<ScanSlice> {
        let mut series: Vec<u32> = Vec::new();
        for group in groups.iter().map(|group| *group as usize) {
            match self.unit.groups.ordinals(at, group..group + 1) {
                Some(more) => series.extend_from_slice(&more),
                None => return Some(ScanSlice { time, ..ScanSlice::all() }),
            }
        }
        series.sort_unstable();
        if series.is_empty() {
            return None;
        }
        Some(ScanSlice { series: Some(series.into()), time, ..ScanSlice::all() })
    }
}

impl SideRows {
    /// Where in the order the rows of `group` are.
    pub(super) fn of_group(&self, group: u32) -> Range<usize> {
        if group == NO_GROUP {
            return 0..0;
        }
        let found = self.groups.binary_search_by_key(&group, |(group, _)| *group);
        found.map_or(0..0, |at| self.groups[at].1.clone())
    }

    /// The number of the row at `at` in the order.
    pub(super) fn row(&self, at: usize) -> u32 {
        self.order[at]
    }

    /// The time of the row at `at` in the order.
    pub(super) fn time(&self, at: usize) -> i64 {
        self.times[self.order[at] as usize]
    }
}

/// Rows as they are read.
struct Read {
    times: Vec<i64>,
    groups: Vec<u32>,
    slots: Vec<Column>,
    reservation: Reservation,
}

impl Read {
    fn new(side: &Side, context: &QueryContext) -> Result<Self, QueryError> {
        let slot = |column: &AuxPlan| Column::new(Values::empty(column.kind.field_type()));
        Ok(Self {
            times: Vec::new(),
            groups: Vec::new(),
            slots: side.columns.iter().map(slot).collect(),
            reservation: context.budget.reserve(0)?,
        })
    }

    fn reserve(&mut self) -> Result<(), QueryError> {
        let columns: usize = self.slots.iter().map(|c| c.values.memory_bytes()).sum();
        // Times, groups, their order, and what sorting takes.
        let bytes = columns + self.times.capacity() * (8 + 4 + 4 + 24);
        if bytes > self.reservation.bytes() {
            self.reservation.resize(bytes + bytes / 4)?;
        }
        Ok(())
    }

    fn in_order(self, ascending: bool) -> SideRows {
        let place = |row: usize| {
            let time = self.times[row];
            (self.groups[row], if ascending { time } else { !time })
        };
        let mut order: Vec<u32> = (0..self.times.len() as u32).collect();
        if !order.is_sorted_by_key(|row| place(*row as usize)) {
            order.sort_by_key(|row| place(*row as usize));
        }
        let mut groups = Vec::new();
        let mut from = 0;
        let group_of = |row: &u32| self.groups[*row as usize];
        for rows in order.chunk_by(|a, b| group_of(a) == group_of(b)) {
            groups.push((group_of(&rows[0]), from..from + rows.len()));
            from += rows.len();
        }
        let (times, slots, reservation) = (self.times, self.slots, self.reservation);
        SideRows { times, slots, order, groups, _reservation: reservation }
    }
}
