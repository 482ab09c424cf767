//! Points on their way through transformations.
//!
//! A pipeline pulls the points of a function, fills its empty windows as `fill()` says, and hands
//! them from step to step, a batch of columns at a time. Steps keep what passes from one batch to
//! the next. A missing value is no point.
//!
//! Not here: what steps compute (`functions::transform`), joining functions to rows (`rows`).

mod step;

use std::sync::Arc;

use influxql::Fill;
use model::{Column, Reservation, Values};

use self::step::Step;
use super::accumulate::Points;
use super::column::{take, undictionary};
use super::rows::RowMaker;
use crate::plan::Select;
use crate::{QueryContext, QueryError};

/// Points that are worked on at a time.
const BATCH_POINTS: usize = 4096;

/// Points without missing values.
#[derive(Debug)]
pub(crate) struct Batch {
    pub times: Vec<i64>,
    pub values: Values,
}

/// The transformed points of one function in one group.
pub(crate) struct Pipeline {
    source: RowMaker,
    steps: Steps,
    finished: bool,
}

/// The steps of a pipeline, with the memory they take.
pub(crate) struct Steps {
    steps: Vec<Step>,
    context: QueryContext,
    held: Reservation,
}

impl Pipeline {
    /// The points of `source`, the only function of its SELECT, through `steps`.
    pub(crate) fn new(source: RowMaker, steps: Steps) -> Self {
        Self { source, steps, finished: false }
    }

    /// The next points; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Points>, QueryError> {
        while !self.finished {
            let batch = match self.source.next(BATCH_POINTS)? {
                Some(block) => {
                    let mut slots = block.slots.into_iter();
                    let Some(column) = slots.next() else { continue };
                    self.steps.apply(Batch::of(block.times, column))?
                }
                None => {
                    self.finished = true;
                    self.steps.finish()?
                }
            };
            if !batch.times.is_empty() {
                return Ok(Some(batch.into_points()));
            }
        }
        Ok(None)
    }
}

impl Steps {
    /// The steps of call `call` of `select`, at their beginning.
    pub(crate) fn new(
        select: &Select,
        call: usize,
        context: &QueryContext,
    ) -> Result<Self, QueryError> {
        let every_ns = select.windows.as_ref().map(|windows| windows.every_ns);
        let transforms = select.calls[call].transforms.iter();
        let steps = transforms.map(|transform| Step::new(transform, every_ns)).collect();
        Ok(Self { steps, context: context.clone(), held: context.budget.reserve(0)? })
    }

    /// What becomes of a batch.
    pub(crate) fn apply(&mut self, batch: Batch) -> Result<Batch, QueryError> {
        self.context.interrupt.check()?;
        let mut batch = batch;
        for step in &mut self.steps {
            batch = step.apply(batch);
        }
        self.reserve()?;
        Ok(batch)
    }

    /// What steps have kept until they have seen everything.
    pub(crate) fn finish(&mut self) -> Result<Batch, QueryError> {
        let mut rest: Option<Batch> = None;
        for step in &mut self.steps {
            let mut batch = rest.take().map(|batch| step.apply(batch));
            if let Some(last) = step.finish(&self.context.interrupt)? {
                batch = Some(match batch {
                    Some(batch) => batch.followed_by(&last),
                    None => last,
                });
            }
            rest = batch;
        }
        self.reserve()?;
        Ok(rest.unwrap_or(Batch { times: Vec::new(), values: Values::Float(Vec::new()) }))
    }

    /// What becomes of points that are all there are.
    pub(crate) fn all(&mut self, batch: Batch) -> Result<Batch, QueryError> {
        let (found, rest) = (self.apply(batch)?, self.finish()?);
        Ok(match (found.times.is_empty(), rest.times.is_empty()) {
            (_, true) => found,
            (true, false) => rest,
            (false, false) => found.followed_by(&rest),
        })
    }

    fn reserve(&mut self) -> Result<(), QueryError> {
        let bytes = self.steps.iter().map(Step::memory_bytes).fold(0, usize::saturating_add);
        if bytes > self.held.bytes() {
            // In steps, so that the budget is not asked for every batch.
            self.held.resize(bytes.saturating_add(bytes / 4))?;
        }
        Ok(())
    }
}

impl Batch {
    /// The values of a column that are there.
    pub(crate) fn of(times: Vec<i64>, mut column: Column) -> Self {
        undictionary(&mut column);
        let Some(validity) = &column.validity else {
            return Self { times, values: column.values };
        };
        let rows: Vec<u32> = validity.ones().map(|row| row as u32).collect();
        let times = rows.iter().map(|row| times[*row as usize]).collect();
        Self { times, values: take(&column, &rows).values }
    }

    fn followed_by(mut self, more: &Self) -> Self {
        self.times.extend_from_slice(&more.times);
        self.values.extend_from(&more.values, 0..more.times.len());
        self
    }

    /// As points of a function that is alone.
    pub(crate) fn into_points(self) -> Points {
        Points { times: self.times, values: Column::new(self.values), aux: Vec::new() }
    }
}

/// The SELECT that makes the points a transformed call starts from: the call alone, as it is inside,
/// its empty windows filled if that gives values.
pub(crate) fn source_select(select: &Select, call: usize) -> Arc<Select> {
    let plan = &select.calls[call];
    let inner = plan.without_transforms();
    // Missing values are no points: windows without values need not be made.
    let fill = match select.fill {
        Fill::Null if !inner.function.is_count() => Fill::None,
        fill => fill,
    };
    Arc::new(Select {
        after: None,
        ascending: select.ascending,
        limit: 0,
        offset: 0,
        series_limit: 0,
        series_offset: 0,
        range: select.window_range(plan),
        bound: select.bound,
        reach: select.reach,
        windows: select.windows.clone(),
        fill,
        zone: select.zone.clone(),
        dimensions: Vec::new(),
        own_dimensions: Vec::new(),
        limited_dimensions: Vec::new(),
        calls: vec![inner],
        aux: Vec::new(),
        outputs: Vec::new(),
        time_column: select.time_column.clone(),
        sources: Vec::new(),
    })
}
