//! Exponential moving averages: one, two or three behind one another, and the change of the triple.
//!
//! Until an average has seen as many points as its period, it warms up: exponentially, with weights
//! as if its period were the points seen so far, or simply, as their mean. With the simple warm-up an
//! average behind another starts when that one is warm, and follows it until then.

use super::{Indicator, IndicatorKind, Warmup};

/// One exponential moving average.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exponential {
    period: u64,
    /// Weight of a new value when warm.
    weight: f64,
    warmup: Warmup,
    /// Values seen while warming up, at most `period`.
    seen: u64,
    average: f64,
}

impl Exponential {
    /// The average over about `period` values.
    pub(crate) fn new(period: u64, warmup: Warmup) -> Self {
        Self::weighted(period, 2.0 / (period as f64 + 1.0), warmup)
    }

    /// An average that warms up for `period` values and gives the next ones the weight `weight`.
    pub(crate) fn weighted(period: u64, weight: f64, warmup: Warmup) -> Self {
        Self { period, weight, warmup, seen: 0, average: 0.0 }
    }

    /// The average with `value`.
    pub(crate) fn add(&mut self, value: f64) -> f64 {
        let seen = self.seen as f64;
        self.average = if self.seen == 0 {
            value
        } else if self.is_warm() {
            self.average + (value - self.average) * self.weight
        } else if self.warmup == Warmup::Simple {
            (self.average * seen + value) / (seen + 1.0)
        } else {
            self.average + (value - self.average) * (2.0 / (seen + 2.0))
        };
        self.seen = (self.seen + 1).min(self.period);
        self.average
    }

    fn is_warm(&self) -> bool {
        self.seen >= self.period
    }
}

/// Averages behind one another.
#[derive(Clone, Debug)]
pub(crate) struct Averages {
    kind: IndicatorKind,
    stages: Vec<Exponential>,
    /// The result before.
    before: f64,
}

impl Averages {
    /// The averages of one of the exponential functions.
    pub(crate) fn new(indicator: &Indicator) -> Self {
        let stages = match indicator.kind {
            IndicatorKind::ExponentialAverage => 1,
            IndicatorKind::DoubleExponentialAverage => 2,
            _ => 3,
        };
        let stage = Exponential::new(indicator.period, indicator.warmup);
        Self { kind: indicator.kind, stages: vec![stage; stages], before: 0.0 }
    }

    /// Leading points without a result, unless it is said how many.
    pub(crate) fn default_hold(indicator: &Indicator) -> u64 {
        let one = indicator.period - 1;
        let stages = match indicator.kind {
            _ if indicator.warmup != Warmup::Simple => 1,
            IndicatorKind::ExponentialAverage => 1,
            IndicatorKind::DoubleExponentialAverage => 2,
            _ => 3,
        };
        let change = u64::from(indicator.kind == IndicatorKind::TripleExponentialDerivative);
        one.saturating_mul(stages).saturating_add(change)
    }

    /// Makes each value the function's result there.
    pub(crate) fn apply(&mut self, values: &mut [f64]) {
        for value in values {
            let mut each = [0.0; 3];
            let mut last = *value;
            let mut fed = true;
            for (stage, out) in self.stages.iter_mut().zip(&mut each) {
                if fed {
                    last = stage.add(last);
                    fed = stage.warmup != Warmup::Simple || stage.is_warm();
                }
                *out = last;
            }
            let [first, second, third] = each;
            *value = match self.kind {
                IndicatorKind::DoubleExponentialAverage => 2.0 * first - second,
                IndicatorKind::TripleExponentialAverage => 3.0 * first - 3.0 * second + third,
                IndicatorKind::TripleExponentialDerivative => {
                    (third / std::mem::replace(&mut self.before, third) - 1.0) * 100.0
                }
                _ => first,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(kind: IndicatorKind, period: u64, warmup: Warmup, values: &[f64]) -> Vec<f64> {
        let mut state = Averages::new(&Indicator { kind, period, hold: None, warmup });
        let mut values = values.to_vec();
        state.apply(&mut values);
        values
    }

    #[test]
    fn exponential_warm_up_grows_its_period() {
        let got = applied(
            IndicatorKind::ExponentialAverage,
            3,
            Warmup::Exponential,
            &[1.5, 3.0, 1.0, 5.0],
        );
        // 1.5; + 1.5 * 2/3; - 1.5 * 1/2; then the weight of period 3: 1/2.
        assert_eq!(got, [1.5, 2.5, 1.75, 3.375]);
    }

    #[test]
    fn simple_warm_up_is_the_mean() {
        let simple = |kind| applied(kind, 3, Warmup::Simple, &[1.5, 2.5, -3.25, 4.0]);
        assert_eq!(simple(IndicatorKind::ExponentialAverage), [1.5, 2.0, 0.25, 2.125]);
        // The second starts with the first warm value, 0.25: then the mean of 0.25 and 2.125.
        assert_eq!(simple(IndicatorKind::DoubleExponentialAverage), [1.5, 2.0, 0.25, 3.0625]);
        // The third follows the second: 3 * 2.125 - 3 * 1.1875 + 1.1875.
        assert_eq!(simple(IndicatorKind::TripleExponentialAverage), [1.5, 2.0, 0.25, 4.0]);
        let change = simple(IndicatorKind::TripleExponentialDerivative);
        assert_eq!(change[2..], [-87.5, 375.0]);
    }

    #[test]
    fn holds_are_the_points_until_all_stages_are_warm() {
        let hold = |kind, warmup| {
            Averages::default_hold(&Indicator { kind, period: 4, hold: None, warmup })
        };
        use IndicatorKind as Kind;
        for (kind, exponential, simple) in [
            (Kind::ExponentialAverage, 3, 3),
            (Kind::DoubleExponentialAverage, 3, 6),
            (Kind::TripleExponentialAverage, 3, 9),
            (Kind::TripleExponentialDerivative, 4, 10),
        ] {
            assert_eq!(hold(kind, Warmup::Exponential), exponential);
            assert_eq!(hold(kind, Warmup::Simple), simple);
        }
    }
}
