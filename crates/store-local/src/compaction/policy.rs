//! Which segments to merge: a pure function of what there is.
//!
//! Segments of one partition are ordered by sequence; only neighbours may be merged, so that later
//! writes stay later. Merging is size-tiered: a run of [`FAN_IN`] neighbours of similar size becomes
//! one, so each row is rewritten about log(size of the partition / size of a flush) / log(FAN_IN)
//! times. A partition that nobody has written to for a while is merged whole, once, into its final
//! (cold) form.

/// Neighbours of similar size that are merged.
const FAN_IN: usize = 8;
/// How much the largest of a run may exceed the average of the others.
const SIMILAR: u64 = 4;
/// Runs are not merged into more than this: what is larger is merged once, when cold.
const MERGED_BYTES_MAX: u64 = 1 << 30;
/// Most segments a partition may have before neighbours are merged whatever their sizes.
pub(crate) const SEGMENTS_MAX: usize = 24;

/// What the policy looks at of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) bytes: u64,
    pub(crate) cold: bool,
    /// Whether some tombstone hides rows of it.
    pub(crate) has_tombstones: bool,
}

/// What to do with the segments of a partition: indexes into the list given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The neighbours to merge; may be a single one.
    pub(crate) segments: std::ops::Range<usize>,
    /// Whether the result is for keeping.
    pub(crate) cold: bool,
}

/// When a choice is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// Rows are being written to the partition.
    Busy,
    /// Nobody has written to the partition for a while.
    Idle,
    /// As `Busy`, and tombstones take too much memory.
    FullOfTombstones,
}

/// Chooses what to merge next of one partition, oldest segment first in `segments`.
pub(crate) fn choose(segments: &[Candidate], when: When) -> Option<Choice> {
    let hot = |segments| Choice { segments, cold: false };
    match when {
        When::Idle => choose_cold(segments),
        When::Busy => tier(segments).or_else(|| overfull(segments)).map(hot),
        When::FullOfTombstones => {
            let merged = choose(segments, When::Busy);
            merged.or_else(|| carry_out(segments))
        }
    }
}

/// The first segment with tombstones, written anew as it is.
fn carry_out(segments: &[Candidate]) -> Option<Choice> {
    let at = segments.iter().position(|segment| segment.has_tombstones)?;
    Some(Choice { segments: at..at + 1, cold: segments[at].cold })
}

/// Everything into one cold segment, as far as the size limit lets.
fn choose_cold(segments: &[Candidate]) -> Option<Choice> {
    let mut start = 0;
    while start < segments.len() {
        let mut end = start + 1;
        let mut bytes = segments[start].bytes;
        while end < segments.len() && bytes + segments[end].bytes <= MERGED_BYTES_MAX {
            bytes += segments[end].bytes;
            end += 1;
        }
        let first = segments[start];
        let finished = end - start == 1 && first.cold && !first.has_tombstones;
        if !finished {
            return Some(Choice { segments: start..end, cold: true });
        }
        start = end;
    }
    None
}

/// The newest run of enough neighbours of similar size.
fn tier(segments: &[Candidate]) -> Option<std::ops::Range<usize>> {
    (FAN_IN..=segments.len()).rev().map(|end| end - FAN_IN..end).find(|range| {
        let run = &segments[range.clone()];
        let total: u64 = run.iter().map(|s| s.bytes).sum();
        let largest = run.iter().map(|s| s.bytes).max().unwrap_or(0);
        let others = (total - largest) / (FAN_IN as u64 - 1);
        total <= MERGED_BYTES_MAX && largest <= others.max(1).saturating_mul(SIMILAR)
    })
}

/// The cheapest run of neighbours, once there are too many segments.
fn overfull(segments: &[Candidate]) -> Option<std::ops::Range<usize>> {
    if segments.len() <= SEGMENTS_MAX {
        return None;
    }
    let cost = |range: &std::ops::Range<usize>| -> u64 {
        segments[range.clone()].iter().map(|s| s.bytes).sum()
    };
    (FAN_IN..=segments.len()).map(|end| end - FAN_IN..end).min_by_key(cost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hot(bytes: u64) -> Candidate {
        Candidate { bytes, cold: false, has_tombstones: false }
    }

    #[test]
    fn merges_runs_of_similar_size() {
        assert_eq!(choose(&[hot(3); 7], When::Busy), None);
        assert_eq!(choose(&[hot(3); 8], When::Busy), Some(Choice { segments: 0..8, cold: false }));
        let mut sizes = vec![hot(100)];
        sizes.extend([hot(3); 8]);
        assert_eq!(choose(&sizes, When::Busy), Some(Choice { segments: 1..9, cold: false }));
    }

    #[test]
    fn an_idle_partition_ends_as_one_cold_segment() {
        assert_eq!(choose(&[hot(3); 3], When::Idle), Some(Choice { segments: 0..3, cold: true }));
        let cold = Candidate { bytes: 9, cold: true, has_tombstones: false };
        assert_eq!(choose(&[cold], When::Idle), None);
        assert_eq!(choose(&[], When::Idle), None);
        let hidden = Candidate { has_tombstones: true, ..cold };
        assert_eq!(choose(&[hidden], When::Idle), Some(Choice { segments: 0..1, cold: true }));
        let huge = Candidate { bytes: MERGED_BYTES_MAX, ..cold };
        assert_eq!(choose(&[huge, huge], When::Idle), None);
    }

    #[test]
    fn tombstones_are_carried_out_when_they_take_too_much() {
        let hidden = Candidate { has_tombstones: true, ..hot(100) };
        let cold = Candidate { cold: true, ..hidden };
        assert_eq!(choose(&[hot(3), hidden], When::Busy), None);
        let full = When::FullOfTombstones;
        let alone = |at: usize, cold| Some(Choice { segments: at..at + 1, cold });
        assert_eq!(choose(&[hot(3), hidden, hidden], full), alone(1, false));
        assert_eq!(choose(&[cold, hidden], full), alone(0, true));
        assert_eq!(choose(&[hot(3), hot(100)], full), None);
        let merged = Some(Choice { segments: 1..9, cold: false });
        assert_eq!(choose(&[[hidden].as_slice(), &[hot(3); 8]].concat(), full), merged);
    }

    proptest! {
        #[test]
        fn flushing_for_ever_keeps_segments_few_and_rewrites_bounded(
            sizes in prop::collection::vec(1u64..20, 1..600)
        ) {
            let (mut segments, mut written, mut flushed) = (Vec::new(), 0, 0);
            for size in sizes {
                segments.push(hot(size));
                flushed += size;
                while let Some(choice) = choose(&segments, When::Busy) {
                    let merged: u64 = segments[choice.segments.clone()].iter().map(|s| s.bytes).sum();
                    written += merged;
                    segments.splice(choice.segments, [hot(merged)]);
                }
                prop_assert!(segments.len() <= SEGMENTS_MAX);
            }
            prop_assert!(written <= flushed * 5, "{written} of {flushed}");
            let mut rounds = 0;
            while let Some(choice) = choose(&segments, When::Idle) {
                let bytes = segments[choice.segments.clone()].iter().map(|s| s.bytes).sum();
                segments.splice(choice.segments, [Candidate { bytes, cold: true, has_tombstones: false }]);
                rounds += 1;
                prop_assert!(rounds < 10);
            }
            prop_assert_eq!(segments.len(), 1);
        }
    }
}
