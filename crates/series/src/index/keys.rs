//! The series of a measurement in the order of their keys.

use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use hashbrown::HashMap;
use model::{DatabaseId, Name, SeriesId, SeriesKey};
use roaring::RoaringTreemap;

use crate::error::SeriesResult;
use crate::index::{SeriesIndex, View};
use crate::mem::{Mem, MemMeasurementView};
use crate::part::MeasurementPart;
use crate::run::{Run, RunMeasurement, SeriesWalk, TupleState};

/// With so many times more series than wanted ones, these are looked up and sorted.
const SERIES_PER_LOOKUP: u64 = 64;
/// Values that a walk keeps at hand.
const VALUES_KEPT: usize = 4096;

type Item = (u64, SeriesKey);

/// Series of one part, sorted.
enum Keys<'a> {
    Gathered(std::vec::IntoIter<Item>),
    Walked(Box<Walked<'a>>),
}

struct Walked<'a> {
    /// Those of the measurement, by number.
    series: Range<u32>,
    name: Name,
    walk: SeriesWalk<'a>,
    /// `None`: all.
    wanted: Option<RoaringTreemap>,
    tags: Tags<'a>,
}

/// The tags of a measurement's series in a run.
struct Tags<'a> {
    run: &'a Run,
    part: RunMeasurement<'a>,
    /// By term number: series share most of theirs.
    known: HashMap<u32, (Name, Name)>,
}

impl SeriesIndex {
    /// Visits the live series of a measurement, until told to stop; with `among`, only the given
    /// ones. They come sorted by their tags: key by key and value by value, bytewise, a series
    /// before those that have further tags; those up to and with the tags of `after` are passed
    /// over, which takes few reads. Memory in use does not grow with their number.
    ///
    /// # Errors
    /// [`crate::SeriesError`] if a run cannot be read.
    pub fn for_each_key(
        &self,
        database: DatabaseId,
        measurement: &str,
        among: Option<&RoaringTreemap>,
        after: Option<&SeriesKey>,
        visitor: &mut dyn FnMut(SeriesId, &SeriesKey) -> ControlFlow<()>,
    ) -> SeriesResult<()> {
        let mut parts = Vec::new();
        let view = {
            let state = self.state.read();
            if let Some(part) = state.active.measurement(database, measurement) {
                parts.push(in_memory(&state.active, part, &state.view, among, after)?);
            }
            Arc::clone(&state.view)
        };
        for mem in &view.sealed {
            if let Some(part) = mem.measurement(database, measurement) {
                parts.push(in_memory(mem, part, &view, among, after)?);
            }
        }
        for run in &view.runs {
            if let Some(part) = run.measurement(database, measurement)? {
                let wanted = view.wanted(&part, among)?;
                parts.push(in_run(run, part, measurement, wanted, after)?);
            }
        }
        merge(parts, visitor)
    }
}

fn in_memory(
    mem: &Mem,
    part: MemMeasurementView<'_>,
    view: &View,
    among: Option<&RoaringTreemap>,
    after: Option<&SeriesKey>,
) -> SeriesResult<Keys<'static>> {
    let wanted = view.wanted(&part, among)?;
    let ids = wanted.map_or_else(|| part.all(), Ok)?;
    let key = |id| mem.key(id).map(|(_, key)| (id, key)).filter(|(_, key)| is_after(key, after));
    Ok(gathered(ids.into_iter().filter_map(key).collect()))
}

fn in_run<'a>(
    run: &'a Run,
    part: RunMeasurement<'a>,
    name: &str,
    wanted: Option<RoaringTreemap>,
    after: Option<&SeriesKey>,
) -> SeriesResult<Keys<'a>> {
    let few = wanted.as_ref().filter(|ids| ids.len() * SERIES_PER_LOOKUP < part.series_count());
    let Some(few) = few else {
        let (series, walk) = (part.series(), SeriesWalk::new(run, part.series()));
        let (name, tags) = (name.into(), Tags::new(run, part));
        let mut walked = Walked { series, name, walk, wanted, tags };
        if let Some(after) = after {
            walked.seek_after(after)?;
        }
        return Ok(Keys::Walked(Box::new(walked)));
    };
    let (measurement, mut tags): (Name, _) = (name.into(), Tags::new(run, part));
    let mut items = Vec::with_capacity(few.len() as usize);
    let mut state = TupleState::default();
    for id in few {
        if run.tuple_of(id, &mut state)?.is_some() {
            let measurement = measurement.clone();
            let key = SeriesKey { measurement, tags: tags.of(&state.tuple)? };
            items.extend(is_after(&key, after).then_some((id, key)));
        }
    }
    Ok(gathered(items))
}

fn gathered(mut items: Vec<Item>) -> Keys<'static> {
    items.sort_unstable_by(compare);
    Keys::Gathered(items.into_iter())
}

fn is_after(key: &SeriesKey, after: Option<&SeriesKey>) -> bool {
    after.is_none_or(|after| key.tags > after.tags)
}

/// The order of keys within a measurement.
fn compare(a: &Item, b: &Item) -> Ordering {
    a.1.tags.cmp(&b.1.tags)
}

impl Keys<'_> {
    fn next(&mut self) -> SeriesResult<Option<Item>> {
        match self {
            Self::Gathered(items) => Ok(items.next()),
            Self::Walked(walked) => walked.next(),
        }
    }
}

impl Walked<'_> {
    fn next(&mut self) -> SeriesResult<Option<Item>> {
        while self.walk.advance()? {
            let id = self.walk.state.id;
            if self.wanted.as_ref().is_some_and(|wanted| !wanted.contains(id)) {
                continue;
            }
            let tags = self.tags.of(&self.walk.state.tuple)?;
            return Ok(Some((id, SeriesKey { measurement: self.name.clone(), tags })));
        }
        Ok(None)
    }

    /// Goes to the first series behind `after`: a binary search.
    fn seek_after(&mut self, after: &SeriesKey) -> SeriesResult<()> {
        let series = self.series.clone();
        let (mut low, mut high) = (series.start, series.end);
        while low < high {
            let middle = u32::midpoint(low, high);
            self.walk.seek(middle..series.end);
            self.walk.advance()?;
            let tags = self.tags.of(&self.walk.state.tuple)?;
            if tags <= after.tags { low = middle + 1 } else { high = middle }
        }
        self.walk.seek(low..series.end);
        Ok(())
    }
}

impl<'a> Tags<'a> {
    fn new(run: &'a Run, part: RunMeasurement<'a>) -> Self {
        Self { run, part, known: HashMap::new() }
    }

    /// The tags of a series.
    fn of(&mut self, tuple: &[u32]) -> SeriesResult<Vec<(Name, Name)>> {
        tuple.iter().map(|term| self.tag(*term)).collect()
    }

    fn tag(&mut self, term: u32) -> SeriesResult<(Name, Name)> {
        if let Some((key, value)) = self.known.get(&term) {
            return Ok((key.clone(), value.clone()));
        }
        let mut value = String::new();
        self.run.push_value(term, &mut value)?;
        let key = self.part.key_of(term)?;
        let tag: (Name, Name) = (self.part.key_text(key).into(), value.into());
        if self.known.len() >= VALUES_KEPT {
            self.known.clear();
        }
        self.known.insert(term, tag.clone());
        Ok(tag)
    }
}

fn merge(
    parts: Vec<Keys<'_>>,
    visitor: &mut dyn FnMut(SeriesId, &SeriesKey) -> ControlFlow<()>,
) -> SeriesResult<()> {
    let mut heads = Vec::with_capacity(parts.len());
    for mut part in parts {
        if let Some(item) = part.next()? {
            heads.push((item, part));
        }
    }
    while let Some(at) = (0..heads.len()).min_by(|a, b| compare(&heads[*a].0, &heads[*b].0)) {
        let ((id, key), part) = &mut heads[at];
        if visitor(SeriesId(*id), key) == ControlFlow::Break(()) {
            return Ok(());
        }
        match part.next()? {
            Some(item) => heads[at].0 = item,
            None => {
                heads.swap_remove(at);
            }
        }
    }
    Ok(())
}
