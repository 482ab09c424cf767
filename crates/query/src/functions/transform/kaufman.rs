//! Kaufman's efficiency ratio, and his moving average that adapts to it.
//!
//! Before the first point there is zero: the first step leads up from there.

use std::collections::VecDeque;

use super::{Indicator, IndicatorKind};

/// Smoothing of a market that only moves sideways, and of one that only moves on.
const SLOW: f64 = 2.0 / 31.0;
const FAST: f64 = 2.0 / 3.0;

/// The last steps.
#[derive(Clone, Debug)]
pub(crate) struct Kaufman {
    kind: IndicatorKind,
    period: u64,
    /// The last values, at most `period` of them, with the length of the step to each.
    last: VecDeque<(f64, f64)>,
    /// Sum of these lengths.
    way: f64,
    /// Points so far, up to one more than the period.
    seen: u64,
    average: f64,
}

impl Kaufman {
    /// The state of one of the two functions.
    pub(crate) fn new(indicator: &Indicator) -> Self {
        let Indicator { kind, period, .. } = *indicator;
        Self { kind, period, last: VecDeque::new(), way: 0.0, seen: 0, average: 0.0 }
    }

    /// Makes each value the function's result there.
    pub(crate) fn apply(&mut self, values: &mut [f64]) {
        for value in values {
            let before = self.last.back().map_or(0.0, |(value, _)| *value);
            let ratio = self.step(*value, before);
            if self.kind == IndicatorKind::EfficiencyRatio {
                *value = ratio;
                continue;
            }
            // Until it is warm the average follows the values.
            let from = if self.seen <= self.period { before } else { self.average };
            self.seen = (self.seen + 1).min(self.period.saturating_add(1));
            let smoothing = (ratio * (FAST - SLOW) + SLOW).powi(2);
            self.average = from + smoothing * (*value - from);
            *value = self.average;
        }
    }

    /// How much of the way of the last steps leads ahead.
    fn step(&mut self, value: f64, before: f64) -> f64 {
        let mut start = 0.0;
        if self.last.len() as u64 == self.period
            && let Some((oldest, length)) = self.last.pop_front()
        {
            self.way -= length;
            start = oldest;
        }
        let length = (value - before).abs();
        self.way += length;
        self.last.push_back((value, length));
        let ahead = (value - start).abs();
        if ahead == 0.0 || self.way == 0.0 { 0.0 } else { ahead / self.way }
    }

    /// Bytes of memory taken.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.last.capacity() * 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::transform::Warmup;

    fn applied(kind: IndicatorKind, values: &[f64]) -> Vec<f64> {
        let warmup = Warmup::Exponential;
        let mut state = Kaufman::new(&Indicator { kind, period: 2, hold: None, warmup });
        let mut values = values.to_vec();
        state.apply(&mut values);
        values
    }

    #[test]
    fn the_ratio_is_the_distance_over_the_way() {
        let got = applied(IndicatorKind::EfficiencyRatio, &[1.0, 3.0, 2.0, 3.0, 3.0, 3.0]);
        // Steps 1, 2, 1, 1, 0, 0; two at a time. Distances 1, 3, 1, 0, 1, 0.
        assert_eq!(got, [1.0, 1.0, 1.0 / 3.0, 0.0, 1.0, 0.0]);
    }

    #[test]
    fn the_average_moves_fast_or_slowly() {
        let got = applied(IndicatorKind::AdaptiveAverage, &[9.0, 18.0, 27.0, 36.0]);
        // All steps lead ahead: 4/9 of the distance, from the value before until warm.
        let want = [4.0, 13.0, 22.0, 22.0 + 14.0 * 4.0 / 9.0];
        for (got, want) in got.iter().zip(want) {
            assert!((got - want).abs() < 1e-12, "{got} {want}");
        }
    }
}
