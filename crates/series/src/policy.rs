//! Which runs to merge: a pure function of their sizes.
//!
//! Runs are tiered by size, four to a tier, so a series is rewritten about once a tier. No run
//! grows past a bound, which bounds what a merge keeps in memory and how long it takes.

use std::ops::Range;

/// What the policy looks at of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunStats {
    /// Series and terms.
    pub(crate) weight: u64,
    pub(crate) series: u64,
    /// Of these, removed.
    pub(crate) dead: u64,
}

/// Runs of a tier that are merged together.
const TIER_RUNS: usize = 4;
/// Runs up to this weight are one tier.
const SMALLEST_TIER_WEIGHT: u64 = 16 << 10;
/// Most runs read by one merge: bounds its open cursors.
const MERGE_RUNS_MAX: usize = 16;

/// Neighbouring runs to replace by one, oldest first.
pub(crate) fn choose(runs: &[RunStats], weight_max: u64) -> Option<Range<usize>> {
    // A run that is to a good part dead is rewritten without the dead.
    if let Some(at) = runs.iter().position(|run| run.dead > 0 && run.dead * 4 >= run.series) {
        return Some(at..at + 1);
    }
    let highest = runs.iter().map(|run| tier(run.weight)).max()?;
    (0..=highest).find_map(|tier| choose_in_tier(runs, tier, weight_max))
}

fn choose_in_tier(runs: &[RunStats], highest: u32, weight_max: u64) -> Option<Range<usize>> {
    let mut start = 0;
    while start < runs.len() {
        let (mut end, mut weight, mut largest) = (start, 0u64, 0);
        // The stretch of small runs that begins here, as far as it may be merged.
        while end < runs.len() && end - start < MERGE_RUNS_MAX {
            let run = runs[end];
            if tier(run.weight) > highest || run.weight.saturating_add(weight) > weight_max {
                break;
            }
            weight += run.weight;
            largest = largest.max(run.weight);
            end += 1;
        }
        let full = end < runs.len() && tier(runs[end].weight) <= highest;
        let enough = end - start >= TIER_RUNS || (full && end - start == TIER_RUNS - 1);
        // A series is rewritten only into a run at least twice as large.
        if enough && (largest <= weight / 2 || weight <= SMALLEST_TIER_WEIGHT) {
            return Some(start..end);
        }
        start += 1;
    }
    None
}

fn tier(weight: u64) -> u32 {
    (weight.max(1) / SMALLEST_TIER_WEIGHT).checked_ilog2().map_or(0, |log| log / 2 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(weights: &[u64]) -> Vec<RunStats> {
        let run = |weight: &u64| RunStats { weight: *weight, series: *weight, dead: 0 };
        weights.iter().map(run).collect()
    }

    #[test]
    fn four_of_a_size_are_merged() {
        assert_eq!(choose(&runs(&[]), 1 << 24), None);
        assert_eq!(choose(&runs(&[10, 20, 30]), 1 << 24), None);
        assert_eq!(choose(&runs(&[10, 20, 30, 40]), 1 << 24), Some(0..4));
        let big = 5 << 20;
        assert_eq!(choose(&runs(&[big, 10, 20, 30, 40]), 1 << 24), Some(1..5));
        assert_eq!(choose(&runs(&[big, big, big, 10]), 1 << 24), Some(0..4));
        assert_eq!(choose(&runs(&[big, 10, 10, 10]), 1 << 24), None, "too little gained");
        assert_eq!(choose(&runs(&[u64::MAX, u64::MAX, 10, u64::MAX]), 1 << 24), None);
        assert_eq!(choose(&runs(&[big, big, big, big]), 1 << 24), Some(0..3), "full run");
        assert_eq!(choose(&runs(&[15 << 20, 15 << 20, 15 << 20, 15 << 20]), 1 << 24), None);
    }

    #[test]
    fn dead_series_are_dropped() {
        let mut runs = runs(&[1 << 20, 1 << 18]);
        runs[1].dead = 1 << 15;
        assert_eq!(choose(&runs, 1 << 24), None);
        runs[1].dead = 1 << 16;
        assert_eq!(choose(&runs, 1 << 24), Some(1..2));
    }

    #[test]
    fn growing_forever_settles_with_few_runs() {
        let mut weights: Vec<u64> = Vec::new();
        let mut rewritten = 0;
        for _ in 0..2_000 {
            weights.extend([100_000]);
            while let Some(range) = choose(&runs(&weights), 1 << 24) {
                let sum = weights[range.clone()].iter().sum();
                rewritten += sum;
                weights.splice(range, [sum]);
            }
        }
        assert!(weights.len() < 30, "{weights:?}");
        assert!(
            rewritten < 6 * 2_000 * 100_000,
            "each series is rewritten {rewritten} / 2e8 times"
        );
    }
}
