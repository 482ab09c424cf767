//! Which segments to merge: a pure function of what there is.
//!
//! Segments of one partition are ordered by sequence; only neighbours may be merged, so that later
//! writes stay later. What a merge costs is the bytes that it writes, what it gains is segments that
//! nobody has to look into any more, so of the runs of neighbours that may be merged the one that costs
//! least for each segment it saves is taken:
//!
//! - a run of at least [`FAN_IN`] that makes each of its rows part of a segment at least [`GROWTH`]
//!   times as large. So each row is rewritten at most log(size of the partition / size of a
//!   flush) / log(GROWTH) times, whatever sizes flushes have;
//! - in a partition of more than [`SEGMENTS_MAX`], shorter runs whatever they grow by. What comes out
//!   [`FULL_BYTES`] large is preferred: it is not merged again while it is written to.
//!
//! A partition that nobody has written to for a while is merged into its final (cold) form: whole, but for
//! what came late and is little beside the rest.

/// Neighbours that are worth merging.
const FAN_IN: usize = 8;
/// The least that a run is worth merging for: its bytes as a multiple of its largest segment's.
const GROWTH: u64 = 5;
/// Runs are not merged into more than this: what is larger is merged once, when cold.
const MERGED_BYTES_MAX: u64 = 1 << 30;
/// A segment of this size is left alone until it is cold: another merge could hardly double it.
const FULL_BYTES: u64 = MERGED_BYTES_MAX / 2;
/// Segments, full ones not counted, from which on shorter runs are merged as well.
const SEGMENTS_MAX: usize = 20;
/// The shortest such run.
const CROWDED_FAN_IN: usize = 4;
/// How much more a segment saved may cost in such a run if the result is full.
const FULL_PREFERENCE: u64 = 4;
/// A cold segment is not merged with fewer than its own bytes divided by this.
const COLD_RATIO: u64 = 2;
/// Segments, full ones not counted, that merging has to keep up with, or queries become slow.
const SEGMENTS_URGENT: usize = 32;
/// How long merges rest at most, in percent of how long they work.
const REST_PERCENT: u32 = 200;

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
        When::Busy => {
            let is_crowded = not_full(segments) > SEGMENTS_MAX;
            let any = |segments| if is_crowded { cheapest(segments, price_of_any) } else { None };
            cheapest(segments, price_of_worthy).or_else(|| any(segments)).map(hot)
        }
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

/// Everything into one cold segment, as far as the size limit lets; but a cold segment much larger than
/// what came after it stays, or whoever writes a row every few minutes would have all rows written anew
/// every few minutes. In the end each segment is at least [`COLD_RATIO`] times as large as those after it
/// that would fit into one with it.
fn choose_cold(segments: &[Candidate]) -> Option<Choice> {
    let mut start = 0;
    while start < segments.len() {
        let first = segments[start];
        let mut end = start + 1;
        let mut bytes = first.bytes;
        while end < segments.len() && bytes + segments[end].bytes <= MERGED_BYTES_MAX {
            bytes += segments[end].bytes;
            end += 1;
        }
        let is_finished = first.cold && !first.has_tombstones;
        if !is_finished || (bytes - first.bytes) * COLD_RATIO > first.bytes {
            return Some(Choice { segments: start..end, cold: true });
        }
        start += 1;
    }
    None
}

/// Whether merges of a partition are so far behind that they matter more than what else goes on.
pub(crate) fn is_urgent(segments: &[Candidate]) -> bool {
    not_full(segments) > SEGMENTS_URGENT
}

/// How long a merge rests while rows come, in percent of how long it works: the less, the further merges
/// are behind.
pub(crate) fn rest_percent(segments: &[Candidate]) -> u32 {
    const BEARABLE: usize = SEGMENTS_URGENT - SEGMENTS_MAX;
    let behind = not_full(segments).saturating_sub(SEGMENTS_MAX);
    REST_PERCENT * BEARABLE.saturating_sub(behind) as u32 / BEARABLE as u32
}

fn not_full(segments: &[Candidate]) -> usize {
    segments.iter().filter(|s| s.bytes < FULL_BYTES).count()
}

/// Some neighbours.
#[derive(Clone, Copy, Debug)]
struct Run {
    segments: usize,
    bytes: u64,
    largest: u64,
}

/// What a merge of neighbours costs for each segment less, if they are worth merging at any time.
fn price_of_worthy(run: Run) -> Option<u64> {
    let worth = run.segments >= FAN_IN && run.bytes >= run.largest * GROWTH;
    worth.then(|| run.bytes / (run.segments as u64 - 1))
}

/// What it costs where there are too many segments, unless the neighbours are too few.
fn price_of_any(run: Run) -> Option<u64> {
    let preference = if run.bytes >= FULL_BYTES { FULL_PREFERENCE } else { 1 };
    let enough = run.segments >= CROWDED_FAN_IN;
    enough.then(|| run.bytes / (run.segments as u64 - 1) / preference)
}

/// The run with the lowest price, of those that have one; the newest of several.
fn cheapest(
    segments: &[Candidate],
    price: impl Fn(Run) -> Option<u64>,
) -> Option<std::ops::Range<usize>> {
    let mut best: Option<(u64, std::ops::Range<usize>)> = None;
    for start in 0..segments.len() {
        let mut run = Run { segments: 0, bytes: 0, largest: 0 };
        for (end, segment) in (start + 1..).zip(&segments[start..]) {
            run.segments += 1;
            run.bytes += segment.bytes;
            run.largest = run.largest.max(segment.bytes);
            if segment.bytes >= FULL_BYTES || run.bytes > MERGED_BYTES_MAX {
                break;
            }
            let Some(price) = price(run) else { continue };
            if best.as_ref().is_none_or(|(lowest, _)| price <= *lowest) {
                best = Some((price, start..end));
            }
        }
    }
    best.map(|(_, segments)| segments)
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
        // What comes later in small parts is merged with itself, until it is worth rewriting the rest.
        let small = Candidate { bytes: 2, ..cold };
        assert_eq!(
            choose(&[cold, hot(2)], When::Idle),
            Some(Choice { segments: 1..2, cold: true })
        );
        assert_eq!(choose(&[cold, small], When::Idle), None);
        let both = Some(Choice { segments: 1..3, cold: true });
        assert_eq!(choose(&[cold, small, hot(2)], When::Idle), both);
        let all = Some(Choice { segments: 0..3, cold: true });
        assert_eq!(choose(&[cold, small, hot(3)], When::Idle), all);
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

    #[test]
    fn segments_much_larger_than_the_others_stay() {
        let [large, small] = [hot(8), hot(1)];
        let sizes = [vec![large; 3], vec![small; 5]].concat();
        assert_eq!(choose(&sizes, When::Busy), None);
        let sizes = [vec![large; 3], vec![small; 8]].concat();
        assert_eq!(choose(&sizes, When::Busy), Some(Choice { segments: 3..11, cold: false }));
        // Twenty of different size are bearable, one more is not.
        let sizes: Vec<_> = (0..20).map(|n| hot(8u64.pow(n) >> (2 * n))).collect();
        assert_eq!(choose(&sizes, When::Busy), None);
        let more = [sizes, vec![hot(1 << 20)]].concat();
        assert_eq!(choose(&more, When::Busy), Some(Choice { segments: 0..4, cold: false }));
    }

    #[test]
    fn full_segments_are_neither_merged_nor_counted_while_written_to() {
        let full = hot(FULL_BYTES);
        assert_eq!(choose(&[full; 30], When::Busy), None);
        let quarter = hot(FULL_BYTES / 4 + 1);
        let crowd = [vec![full; 9], vec![quarter; 6], vec![full], vec![hot(9000); 15]].concat();
        assert_eq!(choose(&crowd, When::Busy), Some(Choice { segments: 16..31, cold: false }));
        let crowd =
            [vec![full; 9], vec![quarter; 7], (0..14).map(|n| hot(FULL_BYTES >> n)).collect()];
        assert_eq!(choose(&crowd.concat(), When::Busy), None);
        assert!(!is_urgent(&[full; 100]));
        assert!(is_urgent(&[hot(1); 33]));
    }

    #[test]
    fn merges_rest_less_the_more_segments_wait() {
        let rests = [1, 20, 23, 29, 32, 40].map(|n| rest_percent(&vec![hot(1); n]));
        assert_eq!(rests, [200, 200, 150, 50, 0, 0]);
    }

    /// The segments and what was written, after all that is chosen is done.
    fn carried_out(segments: &mut Vec<Candidate>, when: When) -> u64 {
        // Each merge makes segments fewer or one of them cold.
        let (mut written, mut rounds, most) = (0, 0, segments.len() * 2);
        while let Some(choice) = choose(segments, when) {
            let bytes = segments[choice.segments.clone()].iter().map(|s| s.bytes).sum();
            written += bytes;
            let merged = Candidate { bytes, cold: choice.cold, has_tombstones: false };
            segments.splice(choice.segments, [merged]);
            rounds += 1;
            assert!(rounds <= most, "{segments:?}");
        }
        written
    }

    proptest! {
        #[test]
        fn flushing_for_ever_keeps_segments_few_and_rewrites_bounded(
            sizes in prop::collection::vec(1u64..20, 1..600),
            unit in prop::sample::select(vec![1, 4 << 20]),
        ) {
            let (mut segments, mut written, mut flushed) = (Vec::new(), 0, 0);
            for size in sizes {
                segments.push(hot(size * unit));
                flushed += size * unit;
                written += carried_out(&mut segments, When::Busy);
                let full = segments.iter().filter(|s| s.bytes >= FULL_BYTES).count();
                prop_assert!(segments.len() <= SEGMENTS_MAX + full * CROWDED_FAN_IN);
            }
            prop_assert!(written <= flushed * 3, "{written} of {flushed}");
            carried_out(&mut segments, When::Idle);
            let apart = |pair: &[Candidate]| {
                pair[0].bytes + pair[1].bytes > MERGED_BYTES_MAX
                    || pair[0].bytes >= COLD_RATIO * pair[1].bytes
            };
            prop_assert!(segments.windows(2).all(apart), "{segments:?}");
        }

        #[test]
        fn a_few_rows_now_and_then_do_not_rewrite_everything(
            sizes in prop::collection::vec(1u64..20, 1..600),
        ) {
            let (mut segments, mut written, mut flushed) = (Vec::new(), 0, 0);
            for size in sizes {
                segments.push(hot(size));
                flushed += size;
                written += carried_out(&mut segments, When::Idle);
                let sizes: Vec<u64> = segments.iter().map(|s| s.bytes).collect();
                let halves = |at: usize| sizes[at] >= COLD_RATIO * sizes[at + 1..].iter().sum::<u64>();
                prop_assert!((0..sizes.len()).all(halves), "{sizes:?}");
            }
            let levels = u64::from(flushed.ilog2()) + 1;
            prop_assert!(written <= flushed * levels * 2, "{written} of {flushed}");
        }
    }
}
