//! Writes the contents of several parts as one run, leaving out what is removed.
//!
//! Everything is streamed in order; in memory are one entry a source and, of the measurement at
//! hand, four bytes a term (old number to new). Numbers of a source map to ascending new numbers,
//! so its series stay sorted under the new numbers.

use roaring::RoaringTreemap;

use crate::error::SeriesResult;
use crate::hash::KeyHash;
use crate::posting::Posting;
use crate::run::RunWriter;
use crate::source::{Source, SourceMeasurement};

/// A term that no live series has.
const DROPPED: u32 = u32::MAX;

/// Writes all live series of `sources`. `removed` holds no more than ids of the sources.
pub(crate) fn merge(
    sources: Vec<Box<dyn Source + '_>>,
    removed: &RoaringTreemap,
    writer: &mut RunWriter,
) -> SeriesResult<()> {
    let mut inputs = Vec::with_capacity(sources.len());
    for mut source in sources {
        let head = source.next_measurement()?;
        inputs.push(Input { source, head });
    }
    loop {
        let names = inputs.iter().filter_map(|input| input.head.as_ref());
        let Some(first) = names.map(|m| (m.database, m.name.clone())).min() else { break };
        let mut group = Vec::new();
        for input in &mut inputs {
            let here = |m: &mut SourceMeasurement| m.database == first.0 && m.name == first.1;
            if let Some(measurement) = input.head.take_if(here) {
                let source = &mut input.source;
                group.push(Member { source, measurement, numbers: Vec::new(), key: 0 });
            }
        }
        merge_measurement(&mut group, removed, writer)?;
        for input in inputs.iter_mut().filter(|input| input.head.is_none()) {
            input.head = input.source.next_measurement()?;
        }
    }
    merge_hashes(&mut inputs, removed, writer)
}

struct Input<'s> {
    source: Box<dyn Source + 's>,
    head: Option<SourceMeasurement>,
}

/// A source that has the measurement at hand.
struct Member<'i, 's> {
    source: &'i mut Box<dyn Source + 's>,
    measurement: SourceMeasurement,
    /// New number of each term read so far.
    numbers: Vec<u32>,
    /// The next key to read.
    key: usize,
}

fn merge_measurement(
    group: &mut [Member<'_, '_>],
    removed: &RoaringTreemap,
    writer: &mut RunWriter,
) -> SeriesResult<()> {
    let mut all = RoaringTreemap::new();
    group.iter().for_each(|member| all |= &member.measurement.all);
    all -= removed;
    if all.is_empty() {
        return Ok(());
    }
    let measurement = &group[0].measurement;
    writer.begin_measurement(measurement.database, &measurement.name);
    while let Some(name) = next_key(group) {
        let present = present(group, &name, &all, removed);
        let written = merge_terms(group, &name, removed, writer)?;
        assert_eq!(
            written > 0,
            !present.as_ref().is_some_and(RoaringTreemap::is_empty),
            "BUG: terms and series of a tag key disagree"
        );
        if written > 0 {
            writer.end_key(&name, present.as_ref())?;
        }
    }
    merge_series(group, removed, writer)?;
    writer.end_measurement(&all)
}

fn next_key(group: &[Member<'_, '_>]) -> Option<model::Name> {
    let keys = group.iter().filter_map(|member| member.measurement.keys.get(member.key));
    keys.map(|key| &key.name).min().cloned()
}

/// The live series that have the key, `None` for all of the measurement.
fn present(
    group: &[Member<'_, '_>],
    name: &str,
    all: &RoaringTreemap,
    removed: &RoaringTreemap,
) -> Option<RoaringTreemap> {
    let key = |member: &Member<'_, '_>| {
        let key = member.measurement.keys.get(member.key).filter(|key| *key.name == *name);
        key.map(|key| key.present.clone())
    };
    let keys: Vec<_> = group.iter().map(key).collect();
    if keys.iter().all(|key| matches!(key, Some(None))) {
        return None;
    }
    let mut present = RoaringTreemap::new();
    for (member, key) in group.iter().zip(keys) {
        match key {
            None => {}
            Some(None) => present |= &member.measurement.all,
            Some(Some(some)) => present |= some,
        }
    }
    present -= removed;
    (present != *all).then_some(present)
}

/// A source's next term of the key at hand.
struct TermHead {
    member: usize,
    left: u32,
    value: String,
    posting: Posting,
}

/// Writes the terms of one key; returns how many there were.
fn merge_terms(
    group: &mut [Member<'_, '_>],
    name: &str,
    removed: &RoaringTreemap,
    writer: &mut RunWriter,
) -> SeriesResult<u64> {
    let mut heads = Vec::new();
    for (at, member) in group.iter_mut().enumerate() {
        let key = member.measurement.keys.get(member.key).filter(|key| *key.name == *name);
        if let Some(key) = key {
            let left = key.terms;
            member.key += 1;
            heads.push(TermHead {
                member: at,
                left,
                value: String::new(),
                posting: Posting::default(),
            });
        }
    }
    for head in &mut heads {
        read_term(head, group)?;
    }
    heads.retain(|head| head.left > 0);
    let mut written = 0;
    let mut joined = Posting::default();
    let mut equal = Vec::with_capacity(heads.len());
    while !heads.is_empty() {
        smallest(&heads, &mut equal, |a, b| a.value.cmp(&b.value));
        let posting = if let [only] = equal[..] {
            &mut heads[only].posting
        } else {
            joined.clear();
            equal.iter().for_each(|at| joined.union_with(&heads[*at].posting));
            &mut joined
        };
        if !removed.is_empty() {
            posting.subtract(removed);
        }
        let number = if posting.is_empty() {
            DROPPED
        } else {
            written += 1;
            let posting = std::mem::take(posting);
            let number = writer.term(name, &heads[equal[0]].value, &posting)?;
            joined = posting;
            number
        };
        for at in &equal {
            group[heads[*at].member].numbers.push(number);
            heads[*at].left -= 1;
            read_term(&mut heads[*at], group)?;
        }
        heads.retain(|head| head.left > 0);
    }
    Ok(written)
}

fn read_term(head: &mut TermHead, group: &mut [Member<'_, '_>]) -> SeriesResult<()> {
    if head.left > 0 {
        group[head.member].source.next_term(&mut head.value, &mut head.posting)?;
    }
    Ok(())
}

/// A source's next live series.
struct SeriesHead {
    member: usize,
    left: u32,
    tuple: Vec<u32>,
    id: u64,
}

impl SeriesHead {
    /// Moves to the next live series; `false` if there is none.
    fn advance(
        &mut self,
        group: &mut [Member<'_, '_>],
        removed: &RoaringTreemap,
    ) -> SeriesResult<bool> {
        let member = &mut group[self.member];
        while self.left > 0 {
            self.left -= 1;
            self.id = member.source.next_series(&mut self.tuple)?;
            if !removed.is_empty() && removed.contains(self.id) {
                continue;
            }
            for term in &mut self.tuple {
                *term = member.numbers[*term as usize];
                assert!(*term != DROPPED, "BUG: a live series has a term without series");
            }
            return Ok(true);
        }
        Ok(false)
    }
}

fn merge_series(
    group: &mut [Member<'_, '_>],
    removed: &RoaringTreemap,
    writer: &mut RunWriter,
) -> SeriesResult<()> {
    let mut heads = Vec::with_capacity(group.len());
    for member in 0..group.len() {
        let left = group[member].measurement.series;
        let mut head = SeriesHead { member, left, tuple: Vec::new(), id: 0 };
        if head.advance(group, removed)? {
            heads.push(head);
        }
    }
    let mut equal = Vec::new();
    while !heads.is_empty() {
        smallest(&heads, &mut equal, |a, b| a.tuple.cmp(&b.tuple));
        // Live keys are distinct, but damage may repeat one: any order will do.
        let at = equal[0];
        writer.series(&heads[at].tuple, heads[at].id)?;
        if !heads[at].advance(group, removed)? {
            heads.remove(at);
        }
    }
    Ok(())
}

fn merge_hashes(
    inputs: &mut [Input<'_>],
    removed: &RoaringTreemap,
    writer: &mut RunWriter,
) -> SeriesResult<()> {
    let mut heads: Vec<(KeyHash, u64, usize)> = Vec::with_capacity(inputs.len());
    for (at, input) in inputs.iter_mut().enumerate() {
        if let Some((hash, id)) = input.source.next_hash()? {
            heads.push((hash, id, at));
        }
    }
    let mut equal = Vec::new();
    while !heads.is_empty() {
        smallest(&heads, &mut equal, Ord::cmp);
        let at = equal[0];
        let (hash, id, input) = heads[at];
        if removed.is_empty() || !removed.contains(id) {
            writer.hash(hash, id)?;
        }
        match inputs[input].source.next_hash()? {
            Some((hash, id)) => heads[at] = (hash, id, input),
            None => {
                heads.swap_remove(at);
            }
        }
    }
    Ok(())
}

/// Which of `heads` are smallest. There are few, so looking at each beats a heap.
fn smallest<T>(heads: &[T], equal: &mut Vec<usize>, cmp: impl Fn(&T, &T) -> std::cmp::Ordering) {
    equal.clear();
    equal.push(0);
    for at in 1..heads.len() {
        match cmp(&heads[at], &heads[equal[0]]) {
            std::cmp::Ordering::Less => {
                equal.clear();
                equal.push(at);
            }
            std::cmp::Ordering::Equal => equal.push(at),
            std::cmp::Ordering::Greater => {}
        }
    }
}
