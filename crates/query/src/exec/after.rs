//! HAVING, ORDER BY other columns than time, and their LIMIT, over the rows of a running SELECT.
//!
//! Without ORDER BY rows pass through. With it the rows of one series are held; of those that LIMIT
//! leaves out not many more than the ones it keeps. All of it is counted in the query's budget.

mod sorter;

use std::sync::Arc;

use model::{Bitmap, Column, FieldType, Scalar, SeriesHeader, TagExpr};

use self::sorter::Sorter;
use super::column::{missing, repeated, select};
use super::predicate::Rows;
use super::stream::Part;
use crate::plan::{After, Having, HavingSlot};
use crate::{QueryContext, QueryError};

/// The last steps of a running SELECT.
pub(crate) struct Finisher {
    context: QueryContext,
    state: State,
}

enum State {
    /// Rows pass through: the series, and its rows so far.
    Passing(Option<(Arc<SeriesHeader>, u64)>),
    /// Rows of a series are gathered, or nothing yet.
    Gathering(Option<Sorter>),
    /// The rows of a series are handed out; the first ones of the next series wait.
    Sorted(Sorter, Option<Part>),
    Ended,
}

impl Finisher {
    /// The steps before the first row.
    pub(crate) fn new(after: &After, context: &QueryContext) -> Self {
        let state = match after.order.is_empty() {
            true => State::Passing(None),
            false => State::Gathering(None),
        };
        Self { context: context.clone(), state }
    }

    /// The next rows; `pull` gives those before these steps.
    pub(crate) fn next(
        &mut self,
        after: &After,
        rows_max: usize,
        mut pull: impl FnMut() -> Result<Option<Part>, QueryError>,
    ) -> Result<Option<Part>, QueryError> {
        loop {
            match std::mem::replace(&mut self.state, State::Ended) {
                State::Passing(series) => {
                    let Some(part) = self.wanted(after, pull()?)? else { return Ok(None) };
                    let (header, before) = match series {
                        Some((header, rows)) if Arc::ptr_eq(&header, &part.header) => {
                            (header, rows)
                        }
                        _ => (Arc::clone(&part.header), 0),
                    };
                    let rows = before + part.rows() as u64;
                    self.state = State::Passing(Some((header, rows)));
                    if let Some(part) = limited(after, part, before) {
                        return Ok(Some(part));
                    }
                }
                State::Gathering(sorter) => self.gather(after, sorter, &mut pull)?,
                State::Sorted(mut sorter, next) => match sorter.next(rows_max) {
                    Some(part) => {
                        self.state = State::Sorted(sorter, next);
                        return Ok(Some(part));
                    }
                    None => {
                        drop(sorter);
                        let Some(part) = next else { return Ok(None) };
                        self.state = State::Gathering(Some(self.sorter(after, &part)?));
                    }
                },
                State::Ended => return Ok(None),
            }
        }
    }

    /// Adds the next rows to those of their series, or finds that it is complete.
    fn gather(
        &mut self,
        after: &After,
        sorter: Option<Sorter>,
        pull: &mut impl FnMut() -> Result<Option<Part>, QueryError>,
    ) -> Result<(), QueryError> {
        let part = self.wanted(after, pull()?)?;
        self.state = match (sorter, part) {
            (Some(mut sorter), Some(part)) if sorter.is_of(&part.header) => {
                sorter.add(&part)?;
                State::Gathering(Some(sorter))
            }
            (Some(sorter), next) => State::Sorted(sorter.finish(), next),
            (None, Some(part)) => State::Gathering(Some(self.sorter(after, &part)?)),
            (None, None) => State::Ended,
        };
        Ok(())
    }

    fn sorter(&self, after: &After, first: &Part) -> Result<Sorter, QueryError> {
        let held = self.context.budget.reserve(0)?;
        let mut sorter =
            Sorter::new(&first.header, after.order.clone(), after.limit, after.offset, held);
        sorter.add(first)?;
        Ok(sorter)
    }

    /// The rows that HAVING keeps; a part may have none.
    fn wanted(&self, after: &After, part: Option<Part>) -> Result<Option<Part>, QueryError> {
        self.context.interrupt.check()?;
        Ok(match &after.having {
            Some(having) => part.map(|part| kept(having, part)),
            None => part,
        })
    }
}

/// The rows of a part that a condition keeps.
fn kept(having: &Having, part: Part) -> Part {
    let rows = part.rows();
    let tag = |name: &str| {
        let tag = part.header.tags.iter().find(|(key, _)| **key == *name);
        tag.map_or("", |(_, value)| &**value)
    };
    let slot = |slot: &HavingSlot| match slot {
        HavingSlot::Column(at) => part.column(*at).into_owned(),
        HavingSlot::Tag(name) => match tag(name) {
            "" => missing(FieldType::String, rows),
            value => repeated(&Scalar::String(value.into()), rows),
        },
    };
    let columns: Vec<Column> = having.slots.iter().map(slot).collect();
    let slots: Vec<&Column> = columns.iter().collect();
    let tags = |condition: &TagExpr| Bitmap::filled(rows, condition.evaluate(&tag));
    let selection = having.predicate.select(&Rows { slots: &slots, rows, tags: &tags });
    if selection.count_ones() == rows {
        return part;
    }
    let columns = 0..part.batch.columns.len();
    let columns = columns.map(|at| select(&part.column(at), &selection)).collect();
    Part::new(part.header, columns)
}

/// What LIMIT and OFFSET leave of a part with `before` rows before it.
fn limited(after: &After, mut part: Part, before: u64) -> Option<Part> {
    let rows = part.rows() as u64;
    let end = match after.limit {
        0 => u64::MAX,
        limit => after.offset.saturating_add(limit),
    };
    let from = after.offset.saturating_sub(before).min(rows);
    let to = end.saturating_sub(before).min(rows);
    if from >= to {
        return None;
    }
    if from == 0 && to == rows {
        return Some(part);
    }
    part.narrow(from as usize..to as usize);
    Some(part)
}
