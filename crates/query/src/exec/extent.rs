//! Cutting time into slices of about a wanted number of rows, guided by a scan's extent.

use model::TimeRange;
use store::ExtentPart;

use super::input::Input;

/// Stretches of time with an even density of rows, disjoint and ascending.
#[derive(Clone, Debug)]
pub(crate) struct Extent {
    parts: Vec<ExtentPart>,
}

impl Extent {
    /// Where the rows of `inputs` are.
    pub(crate) fn of(inputs: &[Input]) -> Self {
        match inputs {
            [input] => Self { parts: input.scan.extent() },
            _ => {
                let all = inputs.iter().flat_map(|input| input.scan.extent()).collect();
                Self { parts: disjoint(all) }
            }
        }
    }

    /// Where the rows of all of these are.
    pub(crate) fn merged<'a>(extents: impl Iterator<Item = &'a Self>) -> Self {
        Self { parts: disjoint(extents.flat_map(|extent| extent.parts.iter().copied()).collect()) }
    }

    /// The stretches.
    pub(crate) fn parts(&self) -> &[ExtentPart] {
        &self.parts
    }

    /// An estimate of the rows within `time`.
    pub(crate) fn rows_within(&self, time: TimeRange) -> u64 {
        let shared = self.parts.iter().filter_map(|part| {
            let both = part.time.intersect(&time);
            (!both.is_empty()).then(|| cut(part, both.min, both.max).rows)
        });
        shared.fold(0, u64::saturating_add)
    }

    /// An estimate of all rows.
    pub(crate) fn rows(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.rows))
    }

    /// The smallest range that holds every row.
    pub(crate) fn bounds(&self) -> TimeRange {
        match (self.parts.first(), self.parts.last()) {
            (Some(first), Some(last)) => TimeRange::new(first.time.min, last.time.max),
            _ => TimeRange::EMPTY,
        }
    }

    /// The next slice of time behind `done` (before it, going backwards), with about `rows` rows;
    /// `None` when nothing is left.
    pub(crate) fn slice(&self, done: Option<i64>, rows: u64, ascending: bool) -> Option<TimeRange> {
        let left = |part: &ExtentPart| match done {
            None => Some(*part),
            Some(done) if ascending => (part.time.max > done)
                .then(|| cut(part, part.time.min.max(done + 1), part.time.max)),
            Some(done) => (part.time.min < done)
                .then(|| cut(part, part.time.min, part.time.max.min(done - 1))),
        };
        let mut parts: Vec<ExtentPart> = self.parts.iter().filter_map(left).collect();
        if !ascending {
            parts.reverse();
        }
        let first = parts.first()?.time;
        let mut range = first;
        let mut wanted = rows.max(1);
        for part in parts {
            range = range.union(&part.time);
            if part.rows >= wanted {
                let width = i128::from(part.time.max) - i128::from(part.time.min) + 1;
                let share = (width * i128::from(wanted) / i128::from(part.rows)).max(1) - 1;
                if ascending {
                    range.max = (i128::from(part.time.min) + share) as i64;
                } else {
                    range.min = (i128::from(part.time.max) - share) as i64;
                }
                break;
            }
            wanted -= part.rows;
        }
        Some(range)
    }
}

/// The share of `part` that lies in `min..=max`.
fn cut(part: &ExtentPart, min: i64, max: i64) -> ExtentPart {
    let width = |min: i64, max: i64| i128::from(max) - i128::from(min) + 1;
    let share = i128::from(part.rows) * width(min, max) / width(part.time.min, part.time.max);
    ExtentPart { time: TimeRange::new(min, max), rows: share as u64 }
}

/// Parts that may overlap, as parts that do not.
fn disjoint(parts: Vec<ExtentPart>) -> Vec<ExtentPart> {
    let parts: Vec<ExtentPart> = parts.into_iter().filter(|p| !p.time.is_empty()).collect();
    let mut edges: Vec<i64> =
        parts.iter().flat_map(|part| [part.time.min, part.time.max.saturating_add(1)]).collect();
    edges.sort_unstable();
    edges.dedup();
    let mut out = Vec::new();
    for pair in edges.windows(2) {
        let time = TimeRange::new(pair[0], pair[1] - 1);
        let covering = parts.iter().filter(|part| part.time.covers(&time));
        let shares: Vec<u64> = covering.map(|part| cut(part, time.min, time.max).rows).collect();
        if !shares.is_empty() {
            out.push(ExtentPart { time, rows: shares.iter().sum() });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts(list: &[(i64, i64, u64)]) -> Vec<ExtentPart> {
        let part = |(min, max, rows): &(i64, i64, u64)| ExtentPart {
            time: TimeRange::new(*min, *max),
            rows: *rows,
        };
        list.iter().map(part).collect()
    }

    proptest! {
        #[test]
        fn slices_cover_every_part_once(
            lengths in prop::collection::vec((1i64..50, 0i64..20, 0u64..500), 1..6),
            rows in 1u64..300,
            ascending in any::<bool>(),
        ) {
            let mut at = -100;
            let mut list = Vec::new();
            for (length, gap, rows) in lengths {
                list.push((at, at + length - 1, rows));
                at += length + gap;
            }
            let extent = Extent { parts: parts(&list) };
            let (mut done, mut seen) = (None, Vec::new());
            while let Some(slice) = extent.slice(done, rows, ascending) {
                prop_assert!(!slice.is_empty());
                seen.extend(slice.min..=slice.max);
                done = Some(if ascending { slice.max } else { slice.min });
            }
            let distinct: std::collections::BTreeSet<i64> = seen.iter().copied().collect();
            prop_assert_eq!(distinct.len(), seen.len());
            prop_assert!(list.iter().all(|(min, max, _)| (*min..=*max).all(|t| distinct.contains(&t))));
        }
    }

    #[test]
    fn overlapping_parts_are_taken_apart() {
        let got = disjoint(parts(&[(0, 9, 10), (5, 14, 20)]));
        assert_eq!(got, parts(&[(0, 4, 5), (5, 9, 15), (10, 14, 10)]));
    }

    #[test]
    fn the_whole_of_time_can_be_cut() {
        let extent = Extent { parts: parts(&[(model::MIN_TIME_NS, model::MAX_TIME_NS, 1 << 40)]) };
        let slice = extent.slice(None, 1 << 39, true).unwrap();
        assert!(slice.max.abs() < 10);
        assert_eq!(extent.slice(Some(slice.max), 1 << 50, true).unwrap().max, model::MAX_TIME_NS);
    }
}
