//! `relative_strength_index()` and `chande_momentum_oscillator()`: gains against losses.
//!
//! Smoothed, gains and losses are exponential averages, and the first point is a gain from zero. Not
//! smoothed, they are sums over the last changes.

use std::collections::VecDeque;

use super::averages::Exponential;
use super::{Indicator, IndicatorKind, Warmup};

/// Gains and losses so far.
#[derive(Clone, Debug)]
pub(crate) enum Momentum {
    /// Averages of both.
    Smoothed { kind: IndicatorKind, before: f64, gains: Exponential, losses: Exponential },
    /// The last changes, their number at most, and the sums of gains and losses.
    Plain { before: Option<f64>, changes: VecDeque<f64>, period: u64, gains: f64, losses: f64 },
}

impl Momentum {
    /// The state of one of the two functions.
    pub(crate) fn new(indicator: &Indicator) -> Self {
        let Indicator { kind, period, warmup, .. } = *indicator;
        if warmup == Warmup::None {
            let changes = VecDeque::new();
            return Self::Plain { before: None, changes, period, gains: 0.0, losses: 0.0 };
        }
        let average = Exponential::weighted(period.saturating_add(1), 1.0 / period as f64, warmup);
        Self::Smoothed { kind, before: 0.0, gains: average, losses: average }
    }

    /// Leading points without a result, unless it is said how many.
    pub(crate) fn default_hold(indicator: &Indicator) -> u64 {
        indicator.period - u64::from(indicator.warmup == Warmup::None)
    }

    /// Makes each value the function's result there.
    pub(crate) fn apply(&mut self, values: &mut [f64]) {
        match self {
            Self::Smoothed { kind, before, gains, losses } => {
                for value in values {
                    let change = *value - std::mem::replace(before, *value);
                    let up = gains.add(if change > 0.0 { change } else { 0.0 });
                    let down = losses.add(if change < 0.0 { -change } else { 0.0 });
                    *value = match kind {
                        IndicatorKind::RelativeStrength => 100.0 - 100.0 / (1.0 + up / down),
                        _ => 100.0 * ((up - down) / (up + down)),
                    };
                }
            }
            Self::Plain { before, changes, period, gains, losses } => {
                for value in values {
                    let Some(last) = before.replace(*value) else {
                        *value = 0.0;
                        continue;
                    };
                    if changes.len() as u64 == *period
                        && let Some(oldest) = changes.pop_front()
                    {
                        *(if oldest < 0.0 { &mut *losses } else { &mut *gains }) -= oldest.abs();
                    }
                    let change = *value - last;
                    changes.push_back(change);
                    *(if change < 0.0 { &mut *losses } else { &mut *gains }) += change.abs();
                    let both = *gains + *losses;
                    *value = if both == 0.0 { 0.0 } else { 100.0 * ((*gains - *losses) / both) };
                }
            }
        }
    }

    /// Bytes of memory taken.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Self::Smoothed { .. } => 0,
            Self::Plain { changes, .. } => changes.capacity() * 8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(kind: IndicatorKind, period: u64, warmup: Warmup, values: &[f64]) -> Vec<f64> {
        let mut state = Momentum::new(&Indicator { kind, period, hold: None, warmup });
        let mut values = values.to_vec();
        state.apply(&mut values);
        values
    }

    #[test]
    fn plain_sums_of_the_last_changes() {
        let kind = IndicatorKind::MomentumOscillator;
        let got = applied(kind, 2, Warmup::None, &[5.0, 6.0, 3.0, 3.0, 3.0, 4.0]);
        // Changes 1, -3, 0, 0, 1; two at a time.
        assert_eq!(got, [0.0, 100.0, -50.0, -100.0, 0.0, 100.0]);
    }

    #[test]
    fn smoothed_gains_and_losses() {
        let values = [2.0, 4.0, 1.0];
        // Gains 2, 2, 0 and losses 0, 0, 3; their means 4/3 and 1.
        let got = applied(IndicatorKind::RelativeStrength, 2, Warmup::Simple, &values);
        assert_eq!(got[..2], [100.0, 100.0]);
        assert!((got[2] - (100.0 - 100.0 / (1.0 + 4.0 / 3.0))).abs() < 1e-12, "{got:?}");
        let got = applied(IndicatorKind::MomentumOscillator, 2, Warmup::Simple, &values);
        assert!((got[2] - 100.0 * (1.0 / 3.0) / (7.0 / 3.0)).abs() < 1e-12, "{got:?}");
    }
}
