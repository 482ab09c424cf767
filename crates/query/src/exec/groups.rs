//! Output series: which stored series belong to each, and in what order they come.

mod limited;

use std::cmp::Ordering;
use std::sync::Arc;

use model::Name;
use store::{SeriesGroups, TagColumn};

use super::input::Input;
use crate::QueryError;

/// A series of one of the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub input: u32,
    pub series: u32,
}

/// The groups of inputs of one name, sorted by the values of their dimensions.
#[derive(Debug)]
pub(crate) struct Groups {
    /// Members, group after group, of each by input and ordinal. Empty: there is one group and
    /// every series is in it.
    members: Vec<Member>,
    /// Where the members of each group start, and the end.
    starts: Vec<u32>,
    /// The group of every series, input by input.
    of_series: Vec<Vec<u32>>,
}

/// Groups are counted where there are no more combinations of values than this for each series.
const COMBINATIONS_PER_SERIES: usize = 2;

/// Stands for a series that is in no group.
const NONE: u32 = u32::MAX;

impl Groups {
    /// Groups the series of `inputs`.
    pub(crate) fn new(inputs: &[Input]) -> Self {
        let total: usize = inputs.iter().map(|input| input.scan.series().len as usize).sum();
        let has_dimensions = inputs.first().is_some_and(|input| !input.dimensions.is_empty());
        if !has_dimensions {
            let starts = if total == 0 { vec![0] } else { vec![0, total as u32] };
            return Self { members: Vec::new(), starts, of_series: Vec::new() };
        }
        if let [input] = inputs
            && let Some(groups) = Self::counted(input)
        {
            return groups;
        }
        if let [input] = inputs {
            let tags = &input.scan.series().tags;
            let tags: Vec<&TagColumn> = input.dimensions.iter().map(|at| &tags[*at]).collect();
            let SeriesGroups { series, starts } =
                SeriesGroups::new((0..total as u32).collect(), &tags);
            let members = series.into_iter().map(|series| Member { input: 0, series }).collect();
            let mut groups = Self { members, starts, of_series: Vec::new() };
            groups.index(inputs);
            return groups;
        }
        let mut members = Vec::with_capacity(total);
        for (at, input) in inputs.iter().enumerate() {
            let input_at = at as u32;
            let all = 0..input.scan.series().len;
            members.extend(all.map(|series| Member { input: input_at, series }));
        }
        members.sort_by(|a, b| compare(inputs, *a, *b));
        let mut starts = vec![0];
        for at in 1..members.len() {
            if compare(inputs, members[at - 1], members[at]).is_ne() {
                starts.push(at as u32);
            }
        }
        if !members.is_empty() {
            starts.push(members.len() as u32);
        }
        let mut groups = Self { members, starts, of_series: Vec::new() };
        groups.index(inputs);
        groups
    }

    /// Groups the series of an input by counting, if its dimensions do not have many more combinations of values than there
    /// are series: codes order as their texts do.
    fn counted(input: &Input) -> Option<Self> {
        let table = input.scan.series();
        let tags = || input.dimensions.iter().map(|at| &table.tags[*at]);
        let sizes = tags().map(|tag| tag.values.len());
        let size = sizes.clone().try_fold(1usize, usize::checked_mul)?;
        let series = table.len as usize;
        if size > series.saturating_mul(COMBINATIONS_PER_SERIES) || size >= NONE as usize {
            return None;
        }
        let mut of_series = vec![0u32; series];
        for (tag, size) in tags().zip(sizes) {
            let codes = of_series.iter_mut().zip(tag.codes.iter());
            codes.for_each(|(of, code)| *of = *of * size as u32 + code);
        }
        let mut ends = vec![0u32; size];
        of_series.iter().for_each(|of| ends[*of as usize] += 1);
        // Of each combination first where its members start, then its number among those that there are.
        let (mut starts, mut numbers, mut start) = (vec![0], vec![NONE; size], 0);
        for (end, number) in ends.iter_mut().zip(&mut numbers) {
            let count = std::mem::replace(end, start);
            if count > 0 {
                *number = starts.len() as u32 - 1;
                start += count;
                starts.push(start);
            }
        }
        let mut members = vec![Member { input: 0, series: 0 }; series];
        for (series, of) in (0..).zip(&mut of_series) {
            let next = &mut ends[*of as usize];
            members[*next as usize].series = series;
            *next += 1;
            *of = numbers[*of as usize];
        }
        Some(Self { members, starts, of_series: vec![of_series] })
    }

    /// Keeps `limit` groups behind the first `offset`, all if both are 0. Which groups come first is
    /// decided as InfluxDB does: by the keys of the tags that are there, then by their values. Groups
    /// that differ only in dimensions that are not `counted` count as one, and groups whose values are
    /// not `present` do not count.
    pub(crate) fn limit(
        &mut self,
        (limit, offset): (u64, u64),
        (names, counted): (&[Name], &[bool]),
        mut present: impl FnMut(&[Name]) -> Result<bool, QueryError>,
        inputs: &[Input],
    ) -> Result<(), QueryError> {
        if limit == 0 && offset == 0 {
            return Ok(());
        }
        let key_of = |group: usize, key: &mut Vec<u8>| {
            let pairs = || names.iter().zip(self.texts(group, inputs)).zip(counted);
            let there = || pairs().filter(|((_, value), counts)| **counts && !value.is_empty());
            let names = there().map(|((name, _), _)| &**name);
            for text in names.chain(there().map(|((_, value), _)| value)) {
                key.extend_from_slice(text.as_bytes());
                key.push(b'|');
            }
        };
        let present = |group| present(&self.values(group, inputs).collect::<Vec<Name>>());
        let kept = limited::choose(self.len(), (limit, offset), key_of, present)?;
        if self.members.is_empty() {
            if kept.is_empty() {
                self.starts = vec![0];
            }
            return Ok(());
        }
        let (mut members, mut starts) = (Vec::new(), vec![0]);
        for group in kept {
            members.extend_from_slice(&self.members[self.range(group)]);
            starts.push(members.len() as u32);
        }
        (self.members, self.starts) = (members, starts);
        self.index(inputs);
        Ok(())
    }

    fn index(&mut self, inputs: &[Input]) {
        let none = |input: &Input| vec![NONE; input.scan.series().len as usize];
        self.of_series = inputs.iter().map(none).collect();
        for group in 0..self.len() {
            for member in &self.members[self.range(group)] {
                self.of_series[member.input as usize][member.series as usize] = group as u32;
            }
        }
    }

    fn range(&self, group: usize) -> std::ops::Range<usize> {
        self.starts[group] as usize..self.starts[group + 1] as usize
    }

    /// Number of groups.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of series of the groups `range`.
    pub(crate) fn series_count(&self, range: std::ops::Range<usize>) -> usize {
        (self.starts[range.end] - self.starts[range.start]) as usize
    }

    /// The group of a series, if it is in any.
    pub(crate) fn of(&self, input: usize, series: u32) -> Option<u32> {
        if self.of_series.is_empty() {
            return (self.len() > 0).then_some(0);
        }
        Some(self.of_series[input][series as usize]).filter(|group| *group != NONE)
    }

    /// The ordinals of one input in the groups `range`, ascending; `None`: all of them.
    pub(crate) fn ordinals(
        &self,
        input: usize,
        range: std::ops::Range<usize>,
    ) -> Option<Arc<[u32]>> {
        let whole = range == (0..self.len());
        if self.members.is_empty() || (whole && self.covers(input)) {
            return None;
        }
        let members =
            &self.members[self.starts[range.start] as usize..self.starts[range.end] as usize];
        let of_input = members.iter().filter(|m| m.input as usize == input).map(|m| m.series);
        let mut ordinals: Vec<u32> = of_input.collect();
        ordinals.sort_unstable();
        Some(ordinals.into())
    }

    fn covers(&self, input: usize) -> bool {
        self.of_series.get(input).is_some_and(|groups| !groups.contains(&NONE))
    }

    /// The first series of a group, of groups of one input with dimensions.
    pub(crate) fn first_series(&self, group: usize) -> u32 {
        self.members.get(self.starts[group] as usize).map_or(0, |member| member.series)
    }

    /// The values of the dimensions of `group`, in their order.
    pub(crate) fn values<'a>(
        &self,
        group: usize,
        inputs: &'a [Input],
    ) -> impl Iterator<Item = Name> + use<'a> {
        self.texts(group, inputs).map(Name::from)
    }

    fn texts<'a>(
        &self,
        group: usize,
        inputs: &'a [Input],
    ) -> impl Iterator<Item = &'a str> + use<'a> {
        let member = self.members.get(self.starts[group] as usize).copied();
        member.into_iter().flat_map(|member| {
            let input = &inputs[member.input as usize];
            input.dimensions.iter().map(move |at| input.tag(*at, member.series))
        })
    }
}

fn compare(inputs: &[Input], a: Member, b: Member) -> Ordering {
    let (left, right) = (&inputs[a.input as usize], &inputs[b.input as usize]);
    let dimensions = left.dimensions.iter().zip(&right.dimensions);
    for (x, y) in dimensions {
        let order = if a.input == b.input {
            let codes = &left.scan.series().tags[*x].codes;
            codes[a.series as usize].cmp(&codes[b.series as usize])
        } else {
            left.tag(*x, a.series).cmp(right.tag(*y, b.series))
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}
