//! From the points of each function to rows: filling empty windows, limits, joining functions.
//!
//! Each function has a row stream of its own: its points, and the windows between them that `fill`
//! adds. LIMIT and OFFSET count in each stream. Streams are joined by time. Rows are made a block at
//! a time, so that a fill over any range takes bounded memory. The points of a transformed function
//! come from a pipeline, batch by batch; a block ends with the first batch that does.

use std::sync::Arc;

use influxql::Fill;
use model::{Column, FieldType, Scalar, Values};

use super::accumulate::Points;
use super::column::{self, ABSENT, Cell, NO_ROW, fill_forward, fill_missing, take};
use super::transform::Pipeline;
use super::window::Window;
use crate::QueryError;
use crate::plan::{CallPlan, Select};

/// Some rows of one group: times, and the columns that the plan's slots refer to.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub times: Vec<i64>,
    pub slots: Vec<Column>,
}

impl Block {
    /// Bytes of memory of the rows.
    pub(crate) fn memory_bytes(&self) -> usize {
        let columns: usize = self.slots.iter().map(Column::memory_bytes).sum();
        columns + size_of_val(&self.times[..])
    }
}

/// Makes the rows of one group.
pub(crate) struct RowMaker {
    select: Arc<Select>,
    streams: Vec<Stream>,
    /// The last value of each slot, for `fill(previous)`.
    last: Vec<Cell>,
}

/// The rows of one function.
struct Stream {
    /// All points, or those that the pipeline gave last.
    points: Points,
    /// Where more points come from.
    pipeline: Option<Box<Pipeline>>,
    /// Next point.
    at: usize,
    /// Next window that gets a row; `None`: windows are not filled, or no more.
    window: Option<Window>,
    /// The last window that gets a row; `None`: that of the last point.
    last_start: Option<i64>,
    /// Rows to leave out.
    skip: u64,
    /// Rows still wanted.
    left: u64,
}

/// Where the points of a function come from.
pub(crate) enum Source {
    Points(Points),
    Pipeline(Box<Pipeline>),
}

/// Where a row of a stream comes from.
enum Next {
    Point,
    Window,
}

impl RowMaker {
    /// Rows of a group from the points of its functions.
    pub(crate) fn new(select: Arc<Select>, sources: impl Iterator<Item = Source>) -> Self {
        let streams = sources
            .zip(&select.calls)
            .map(|(source, call)| match source {
                Source::Points(points) => Stream::new(&select, call, points, None),
                Source::Pipeline(pipeline) => {
                    let none = Points::none(call.shown, std::iter::empty());
                    Stream::new(&select, call, none, Some(pipeline))
                }
            })
            .collect();
        let slots = select.calls.len() + select.aux.len();
        Self { streams, last: vec![None; slots], select }
    }

    /// The next rows, at most `rows_max`; `None` at the end.
    ///
    /// # Errors
    /// If a pipeline fails.
    pub(crate) fn next(&mut self, rows_max: usize) -> Result<Option<Block>, QueryError> {
        for stream in &mut self.streams {
            stream.refill()?;
        }
        if let Some(block) = self.aligned(rows_max) {
            return Ok(Some(block));
        }
        for stream in &mut self.streams {
            stream.drop_skipped(&self.select)?;
        }
        Ok(self.joined(rows_max))
    }

    /// The next rows by joining streams, as far as their points are there.
    fn joined(&mut self, rows_max: usize) -> Option<Block> {
        let ascending = self.select.ascending;
        let mut times = Vec::new();
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); self.streams.len()];
        let mut gaps: Vec<Vec<Gap>> = vec![Vec::new(); self.streams.len()];
        // Rows of the other columns, which go with the only function there is then.
        let mut aux_rows: Vec<u32> = Vec::new();
        let has_aux = !self.select.aux.is_empty();
        let linear = self.select.fill == Fill::Linear;
        let previous = self.select.fill == Fill::Previous;
        while times.len() < rows_max && !self.streams.iter().any(Stream::is_waiting) {
            let heads = self.streams.iter().filter_map(|s| s.peek(ascending).map(|p| p.0));
            let Some(time) = (if ascending { heads.min() } else { heads.max() }) else { break };
            for ((stream, rows), gaps) in self.streams.iter_mut().zip(&mut rows).zip(&mut gaps) {
                match stream.peek(ascending) {
                    Some((head, Next::Point)) if head == time => {
                        rows.push(stream.at as u32);
                        stream.advance(&self.select, &Next::Point);
                    }
                    Some((head, Next::Window)) if head == time => {
                        if linear {
                            gaps.push(Gap { row: times.len(), time, next: stream.at });
                        }
                        rows.push(if previous { stream.before() } else { NO_ROW });
                        stream.advance(&self.select, &Next::Window);
                    }
                    _ => rows.push(ABSENT),
                }
            }
            if has_aux {
                let stream = &self.streams[0];
                let passed = stream.at > 0 && stream.points.times[stream.at - 1] == time;
                aux_rows.push(if passed { stream.at as u32 - 1 } else { NO_ROW });
            }
            times.push(time);
        }
        if times.is_empty() {
            return None;
        }
        let mut slots = self.columns(&rows, &gaps);
        if let Some(stream) = self.streams.first() {
            slots.extend(stream.points.aux.iter().map(|column| take(column, &aux_rows)));
        }
        Some(self.filled(Block { times, slots }, Some(&rows)))
    }

    /// The common case: every stream has points at the same times and no window is empty.
    fn aligned(&mut self, rows_max: usize) -> Option<Block> {
        let (first, others) = self.streams.split_first()?;
        let from = first.at;
        let times = first.points.times.get(from..)?;
        if times.is_empty() || !first.is_dense(&self.select) {
            return None;
        }
        let same = |s: &Stream| {
            s.at == from
                && (s.skip, s.left) == (first.skip, first.left)
                && s.points.times.len() == first.points.times.len()
                && s.points.times == first.points.times
                && s.is_dense(&self.select)
        };
        if !others.iter().all(same) {
            return None;
        }
        let skipped = first.skip.min(times.len() as u64) as usize;
        let rows = (times.len() - skipped).min(rows_max);
        let rows = first.left.min(rows as u64) as usize;
        let whole = skipped == 0 && from == 0 && rows == times.len();
        let (start, end) = (from + skipped, from + skipped + rows);
        let mut out_times = Vec::new();
        let mut slots = Vec::with_capacity(self.last.len());
        let aux_of = self.streams.len() - 1;
        let mut aux = Vec::new();
        for (at, stream) in self.streams.iter_mut().enumerate() {
            let points = &mut stream.points;
            let part = |column: &mut Column| {
                if whole {
                    std::mem::replace(column, Column::new(Values::Integer(Vec::new())))
                } else {
                    column::slice(column, start..end)
                }
            };
            slots.push(part(&mut points.values));
            if at == aux_of {
                out_times = points.times[start..end].to_vec();
                aux = points.aux.iter_mut().map(part).collect();
            }
            stream.at = end;
            stream.skip -= skipped as u64;
            stream.left -= rows as u64;
            let next = stream.points.times.get(end);
            stream.window = match (stream.window, &self.select.windows, next) {
                (Some(_), Some(windows), Some(time)) => Some(windows.at(*time)),
                _ => None,
            };
        }
        slots.extend(aux);
        (!out_times.is_empty()).then(|| self.filled(Block { times: out_times, slots }, None))
    }

    fn columns(&self, rows: &[Vec<u32>], gaps: &[Vec<Gap>]) -> Vec<Column> {
        let mut slots = Vec::with_capacity(self.last.len());
        for (at, (stream, rows)) in self.streams.iter().zip(rows).enumerate() {
            let call = &self.select.calls[at];
            let mut column = take(&stream.points.values, rows);
            match number(self.select.fill).filter(|_| call.is_known) {
                Some(value) => {
                    match column::cast_scalar(&value, call.shown) {
                        Some(value) => fill_gaps(&mut column, rows, &value, true),
                        // A number has no form here; rows without any window stay without a value.
                        None => fill_gaps(&mut column, rows, &blank(call.shown), false),
                    }
                }
                None if counts(call) && self.select.fill == Fill::Null => {
                    fill_gaps(&mut column, rows, &Scalar::Integer(0), false);
                }
                None => {}
            }
            if !gaps[at].is_empty() {
                self.interpolate(&mut column, stream, &gaps[at]);
            }
            slots.push(column);
        }
        slots
    }

    /// Fills what is missing in the joined rows; `rows` are the rows of each stream, `None`: all
    /// streams have all rows.
    fn filled(&mut self, mut block: Block, rows: Option<&[Vec<u32>]>) -> Block {
        let calls = self.select.calls.len();
        match self.select.fill {
            Fill::Previous => {
                let (functions, others) = block.slots.split_at_mut(calls);
                for (at, column) in functions.iter_mut().enumerate() {
                    carry_over(column, rows.map(|rows| &*rows[at]), &mut self.last[at]);
                }
                for (column, last) in others.iter_mut().zip(&mut self.last[calls..]) {
                    fill_forward(column, last);
                }
            }
            fill => {
                if let Some(value) = number(fill) {
                    for column in &mut block.slots[calls..] {
                        fill_missing(column, &value);
                    }
                }
            }
        }
        block
    }

    fn interpolate(&self, column: &mut Column, stream: &Stream, gaps: &[Gap]) {
        let Some(windows) = &self.select.windows else { return };
        let points = &stream.points;
        for gap in gaps {
            let (Some(before), after) = (gap.next.checked_sub(1), gap.next) else { continue };
            if after >= points.times.len() {
                continue;
            }
            let step = |time: i64| windows.index(time);
            let (from, to) = (step(points.times[before]), step(points.times[after]));
            let x = (step(gap.time) - from) as f64;
            let width = (to - from) as f64;
            set_linear(column, gap.row, &points.values, (before, after), x, width);
        }
    }
}

/// A row between two points that gets a value by interpolation.
#[derive(Clone, Copy)]
struct Gap {
    row: usize,
    time: i64,
    /// The point behind it; the one before it is the one before that.
    next: usize,
}

/// `column[row]` on the line between two of `values`.
fn set_linear(
    column: &mut Column,
    row: usize,
    values: &Column,
    (before, after): (usize, usize),
    x: f64,
    width: f64,
) {
    if !values.is_valid(before) || !values.is_valid(after) {
        return;
    }
    match (&mut column.values, &values.values) {
        (Values::Float(out), Values::Float(v)) => {
            out[row] = (v[after] - v[before]) / width * x + v[before];
        }
        (Values::Integer(out), Values::Integer(v)) => {
            let slope = v[after].wrapping_sub(v[before]) as f64 / width;
            out[row] = (slope * x + v[before] as f64) as i64;
        }
        (Values::Unsigned(out), Values::Unsigned(v)) => {
            let slope = (v[after] as f64 - v[before] as f64) / width;
            out[row] = (slope * x + v[before] as f64) as u64;
        }
        _ => return,
    }
    if let Some(validity) = &mut column.validity {
        validity.set(row, true);
    }
}

/// The number of `fill(<number>)`.
pub(crate) fn number(fill: Fill) -> Option<Scalar> {
    match fill {
        Fill::Integer(v) => Some(Scalar::Integer(v)),
        Fill::Number(v) => Some(Scalar::Float(v)),
        _ => None,
    }
}

/// What a number becomes in a window of text or booleans.
fn blank(field_type: FieldType) -> Scalar {
    match field_type {
        FieldType::Boolean => Scalar::Boolean(false),
        _ => Scalar::String("".into()),
    }
}

fn counts(call: &CallPlan) -> bool {
    call.transforms.is_empty() && call.function.is_count()
}

/// Gives empty windows (and, with `absent`, rows that the stream lacks) a value.
fn fill_gaps(column: &mut Column, rows: &[u32], value: &Scalar, absent: bool) {
    let gap = |row: &u32| *row == NO_ROW || (absent && *row == ABSENT);
    if !rows.iter().any(gap) {
        return;
    }
    let mut out = Column::new(Values::empty(column::type_of(&column.values)));
    for (at, row) in rows.iter().enumerate() {
        let cell = if gap(row) { Some(value.clone()) } else { column.get(at) };
        out.push(cell.as_ref());
    }
    *column = out;
}

/// A function that has no row at some time repeats the row before.
fn carry_over(column: &mut Column, rows: Option<&[u32]>, last: &mut Cell) {
    let Some(rows) = rows.filter(|rows| rows.contains(&ABSENT)) else {
        *last = column.len().checked_sub(1).and_then(|row| column.get(row));
        return;
    };
    let mut out = Column::new(Values::empty(column::type_of(&column.values)));
    for (at, row) in rows.iter().enumerate() {
        if *row != ABSENT {
            *last = column.get(at);
        }
        out.push(last.as_ref());
    }
    *column = out;
}

impl Stream {
    fn new(
        select: &Select,
        call: &CallPlan,
        points: Points,
        pipeline: Option<Box<Pipeline>>,
    ) -> Self {
        let mut stream = Self {
            points,
            pipeline,
            at: 0,
            window: None,
            last_start: None,
            skip: select.offset,
            left: if select.limit == 0 { u64::MAX } else { select.limit },
        };
        let fills = select.fill != Fill::None && call.is_filled();
        if let (Some(windows), Some(first), true) =
            (&select.windows, stream.points.times.first(), fills)
        {
            let range = select.range;
            let bounded = select.has_lower_bound();
            if select.ascending {
                let start = if bounded { range.min } else { *first };
                stream.window = Some(windows.at(start));
                stream.last_start = Some(windows.at(range.max).start);
            } else {
                stream.window = Some(windows.at(range.max));
                stream.last_start = bounded.then(|| windows.at(range.min).start);
            }
        }
        stream
    }

    /// Whether more points are wanted and there may be some.
    fn is_waiting(&self) -> bool {
        self.pipeline.is_some() && self.left > 0 && self.at >= self.points.times.len()
    }

    /// Gets more points from the pipeline where all were passed.
    fn refill(&mut self) -> Result<(), QueryError> {
        while self.is_waiting() {
            match self.pipeline.as_mut().map(|pipeline| pipeline.next()).transpose()?.flatten() {
                Some(points) => (self.points, self.at) = (points, 0),
                None => self.pipeline = None,
            }
        }
        Ok(())
    }

    /// The next row's time and kind.
    fn peek(&self, ascending: bool) -> Option<(i64, Next)> {
        if self.left == 0 {
            return None;
        }
        let point = self.points.times.get(self.at).copied();
        let Some(window) = self.window else { return point.map(|time| (time, Next::Point)) };
        match point {
            Some(time) if time == window.start => Some((time, Next::Point)),
            Some(time) if (time < window.start) == ascending => Some((time, Next::Point)),
            _ => Some((window.start, Next::Window)),
        }
    }

    /// The last point passed, left out by OFFSET or not.
    fn before(&self) -> u32 {
        match self.at.checked_sub(1) {
            Some(at) if self.points.values.is_valid(at) => at as u32,
            _ => NO_ROW,
        }
    }

    /// Passes the row that `peek` gave.
    fn advance(&mut self, select: &Select, next: &Next) {
        self.left -= 1;
        self.step(select, next);
    }

    fn step(&mut self, select: &Select, next: &Next) {
        let mut passes_window = true;
        if matches!(next, Next::Point) {
            passes_window = self.window.is_some_and(|w| w.start == self.points.times[self.at]);
            self.at += 1;
        }
        if let (Some(window), Some(windows), true) = (self.window, &select.windows, passes_window) {
            self.window =
                if select.ascending { windows.after(window) } else { windows.before(window) };
        }
        self.finish_if_done(select);
    }

    fn finish_if_done(&mut self, select: &Select) {
        let Some(window) = self.window else { return };
        let done = match self.last_start {
            Some(last) if select.ascending => window.start > last,
            Some(last) => window.start < last,
            None => self.at >= self.points.times.len(),
        };
        if done {
            self.window = None;
        }
    }

    /// Passes the rows that OFFSET leaves out.
    fn drop_skipped(&mut self, select: &Select) -> Result<(), QueryError> {
        while self.skip > 0 {
            self.refill()?;
            let Some((_, next)) = self.peek(select.ascending) else { break };
            self.step(select, &next);
            self.skip -= 1;
        }
        self.skip = 0;
        self.refill()
    }

    /// Whether the rest of the stream is its points, without empty windows between or around them.
    fn is_dense(&self, select: &Select) -> bool {
        let (Some(window), Some(windows)) = (self.window, &select.windows) else { return true };
        let rest = &self.points.times[self.at..];
        let (Some(first), Some(last)) = (rest.first(), rest.last()) else { return false };
        let ends = *first == window.start && self.last_start.is_none_or(|end| end == *last);
        let span = (i128::from(*last) - i128::from(*first)).abs();
        let steps = span / i128::from(windows.every_ns) + 1;
        windows.is_regular() && ends && steps == rest.len() as i128
    }
}

#[cfg(test)]
mod tests;
