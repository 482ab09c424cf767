//! The distinct values of a tag.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use model::{DatabaseId, Name};
use roaring::RoaringTreemap;

use crate::error::SeriesResult;
use crate::index::SeriesIndex;
use crate::part::MeasurementPart;
use crate::posting::Posting;
use crate::run::{Run, RunMeasurement, TupleState, ValueWalk};

/// Walking past this many values costs about as much as looking up the tags of one series.
const VALUES_PER_SERIES: u64 = 16;

/// Values of one part, sorted.
enum Values<'a> {
    /// Gathered beforehand: parts in memory are small.
    Gathered(std::vec::IntoIter<Box<str>>),
    /// All values of a run that some wanted series has; `None`: every value.
    Walked { walk: ValueWalk<'a>, wanted: Option<RoaringTreemap>, posting: Posting },
    /// The values of these terms.
    Picked { run: &'a Run, terms: std::vec::IntoIter<u32> },
}

impl SeriesIndex {
    /// The values that live series of a measurement have for a tag, sorted; with `among`, only
    /// those of the given series. For few values: see [`SeriesIndex::for_each_tag_value`].
    ///
    /// # Errors
    /// [`crate::SeriesError`] if a run cannot be read.
    pub fn tag_values(
        &self,
        database: DatabaseId,
        measurement: &str,
        key: &str,
        among: Option<&RoaringTreemap>,
    ) -> SeriesResult<Vec<Name>> {
        let mut values = Vec::new();
        self.for_each_tag_value(database, measurement, key, among, None, &mut |value| {
            values.push(value.into());
            ControlFlow::Continue(())
        })?;
        Ok(values)
    }

    /// Visits the values of [`SeriesIndex::tag_values`] one after another, until told to stop; those
    /// up to and with `after` are passed over, which takes few reads. Memory in use does not grow
    /// with their number.
    ///
    /// # Errors
    /// [`crate::SeriesError`] if a run cannot be read.
    pub fn for_each_tag_value(
        &self,
        database: DatabaseId,
        measurement: &str,
        key: &str,
        among: Option<&RoaringTreemap>,
        after: Option<&str>,
        visitor: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> SeriesResult<()> {
        let mut parts = Vec::new();
        let view = {
            let state = self.state.read();
            if let Some(part) = state.active.measurement(database, measurement)
                && let Some(number) = part.find_key(key)
            {
                let values = part.values_of(number, |id| state.view.is_wanted(id, among));
                parts.push(gathered(values, after));
            }
            Arc::clone(&state.view)
        };
        for part in view.sealed.iter().filter_map(|mem| mem.measurement(database, measurement)) {
            if let Some(number) = part.find_key(key) {
                let values = part.values_of(number, |id| view.is_wanted(id, among));
                parts.push(gathered(values, after));
            }
        }
        for run in &view.runs {
            if let Some(part) = run.measurement(database, measurement)?
                && let Some(number) = part.find_key(key)
            {
                let wanted = view.wanted(&part, among)?;
                parts.extend(run_values(run, &part, number, wanted, after)?);
            }
        }
        merge(parts, visitor)
    }
}

fn gathered(mut values: Vec<&str>, after: Option<&str>) -> Values<'static> {
    values.retain(|value| after.is_none_or(|after| *value > after));
    values.sort_unstable();
    let values: Vec<Box<str>> = values.into_iter().map(Box::from).collect();
    Values::Gathered(values.into_iter())
}

fn run_values<'a>(
    run: &'a Run,
    part: &RunMeasurement<'a>,
    key: u32,
    wanted: Option<RoaringTreemap>,
    after: Option<&str>,
) -> SeriesResult<Option<Values<'a>>> {
    let mut range = part.key_terms(key);
    if let Some(after) = after {
        range.start = first_after(run, range.clone(), after)?;
    }
    let few = wanted.as_ref().filter(|ids| ids.len() * VALUES_PER_SERIES < part.value_count(key));
    let Some(few) = few else {
        let walk = ValueWalk::new(run, range);
        return Ok(Some(Values::Walked { walk, wanted, posting: Posting::default() }));
    };
    let mut terms = Vec::new();
    let mut state = TupleState::default();
    for id in few {
        if run.tuple_of(id, &mut state)?.is_some() {
            terms.extend(state.tuple.iter().copied().filter(|term| range.contains(term)));
        }
    }
    terms.sort_unstable();
    terms.dedup();
    Ok((!terms.is_empty()).then(|| Values::Picked { run, terms: terms.into_iter() }))
}

/// The first term of `terms` whose value is greater than `after`.
fn first_after(run: &Run, terms: Range<u32>, after: &str) -> SeriesResult<u32> {
    let mut value = String::new();
    let (mut low, mut high) = (terms.start, terms.end);
    while low < high {
        let middle = u32::midpoint(low, high);
        value.clear();
        run.push_value(middle, &mut value)?;
        if value.as_str() <= after { low = middle + 1 } else { high = middle }
    }
    Ok(low)
}

impl Values<'_> {
    /// Replaces `value` by the next one; `false` at the end.
    fn next(&mut self, value: &mut String) -> SeriesResult<bool> {
        value.clear();
        match self {
            Self::Gathered(values) => {
                let next = values.next();
                value.push_str(next.as_deref().unwrap_or_default());
                Ok(next.is_some())
            }
            Self::Walked { walk, wanted, posting } => {
                while walk.advance()? {
                    if let Some(wanted) = wanted {
                        walk.load_posting(posting)?;
                        if !posting.intersects(wanted) {
                            continue;
                        }
                    }
                    value.push_str(walk.text()?);
                    return Ok(true);
                }
                Ok(false)
            }
            Self::Picked { run, terms } => {
                let Some(term) = terms.next() else { return Ok(false) };
                run.push_value(term, value)?;
                Ok(true)
            }
        }
    }
}

/// Visits the values of all parts in order, each once.
fn merge(
    parts: Vec<Values<'_>>,
    visitor: &mut dyn FnMut(&str) -> ControlFlow<()>,
) -> SeriesResult<()> {
    let mut heads = Vec::with_capacity(parts.len());
    for mut part in parts {
        let mut value = String::new();
        if part.next(&mut value)? {
            heads.push((value, part));
        }
    }
    let mut last: Option<String> = None;
    while let Some(at) = (0..heads.len()).min_by(|a, b| heads[*a].0.cmp(&heads[*b].0)) {
        let (value, part) = &mut heads[at];
        if last.as_deref() != Some(value) {
            if visitor(value) == ControlFlow::Break(()) {
                return Ok(());
            }
            std::mem::swap(last.get_or_insert_default(), value);
        }
        if !part.next(value)? {
            heads.swap_remove(at);
        }
    }
    Ok(())
}
