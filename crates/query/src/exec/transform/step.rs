//! One transformation with what it keeps between batches.

use model::{Interrupt, Interrupted, Values};

use super::Batch;
use crate::functions::transform::averages::Averages;
use crate::functions::transform::changes::{Previous, elapsed};
use crate::functions::transform::holt_winters::forecast;
use crate::functions::transform::kaufman::Kaufman;
use crate::functions::transform::momentum::Momentum;
use crate::functions::transform::sums::{Moving, accumulate};
use crate::functions::transform::{HoltWinters, Indicator, IndicatorKind, Transform};

/// Length of a unit where neither the call nor the query says another.
const UNIT_NS: i64 = 1_000_000_000;

/// State of one kind for each type of number; of the types of a pipeline only one is used.
#[derive(Debug, Default)]
pub(crate) struct Numbers<F, I, U> {
    float: F,
    integer: I,
    unsigned: U,
}

type Previouses = Numbers<Previous<f64>, Previous<i64>, Previous<u64>>;
type Movings = Numbers<Moving<f64>, Moving<i64>, Moving<u64>>;

/// A transformation at some point.
#[derive(Debug)]
pub(crate) enum Step {
    Derivative { before: Previouses, unit_ns: i64, non_negative: bool },
    Difference { before: Previouses, non_negative: bool },
    Elapsed { before: Option<i64>, unit_ns: i64 },
    CumulativeSum(Numbers<f64, i64, u64>),
    MovingAverage { last: Movings, window: u64 },
    Indicator { state: IndicatorState, hold: u64 },
    HoltWinters { arguments: HoltWinters, every_ns: i64, times: Vec<i64>, values: Vec<f64> },
}

/// The state of a function of technical analysis.
#[derive(Debug)]
pub(crate) enum IndicatorState {
    Averages(Averages),
    Momentum(Momentum),
    Kaufman(Kaufman),
}

impl Step {
    /// The transformation at its beginning, in a query with windows of `every_ns`.
    pub(crate) fn new(transform: &Transform, every_ns: Option<i64>) -> Self {
        match *transform {
            Transform::Derivative { unit_ns, non_negative } => Self::Derivative {
                before: Numbers::default(),
                unit_ns: unit_ns.or(every_ns).unwrap_or(UNIT_NS),
                non_negative,
            },
            Transform::Difference { non_negative } => {
                Self::Difference { before: Numbers::default(), non_negative }
            }
            Transform::Elapsed { unit_ns } => Self::Elapsed { before: None, unit_ns },
            Transform::CumulativeSum => Self::CumulativeSum(Numbers::default()),
            Transform::MovingAverage { window } => {
                Self::MovingAverage { last: Numbers::default(), window }
            }
            Transform::Indicator(indicator) => {
                let (state, hold) = IndicatorState::new(&indicator);
                Self::Indicator { state, hold: indicator.hold.unwrap_or(hold) }
            }
            Transform::HoltWinters(arguments) => Self::HoltWinters {
                arguments,
                every_ns: every_ns.unwrap_or(UNIT_NS),
                times: Vec::new(),
                values: Vec::new(),
            },
        }
    }

    /// What becomes of the next points. Types that a step does not take were refused by the plan.
    pub(crate) fn apply(&mut self, batch: Batch) -> Batch {
        let Batch { times, mut values } = batch;
        let (times, values) = match self {
            Self::Derivative { before, unit_ns, non_negative } => {
                let (unit, positive) = (*unit_ns, *non_negative);
                let (times, values) = match &values {
                    Values::Float(v) => before.float.derivative(&times, v, unit, positive),
                    Values::Integer(v) => before.integer.derivative(&times, v, unit, positive),
                    Values::Unsigned(v) => before.unsigned.derivative(&times, v, unit, positive),
                    _ => (Vec::new(), Vec::new()),
                };
                (times, Values::Float(values))
            }
            Self::Difference { before, non_negative } => match &values {
                Values::Float(v) => {
                    let (times, v) = before.float.difference(&times, v, *non_negative);
                    (times, Values::Float(v))
                }
                Values::Integer(v) => {
                    let (times, v) = before.integer.difference(&times, v, *non_negative);
                    (times, Values::Integer(v))
                }
                Values::Unsigned(v) => {
                    let (times, v) = before.unsigned.difference(&times, v, *non_negative);
                    (times, Values::Unsigned(v))
                }
                _ => (Vec::new(), Values::Float(Vec::new())),
            },
            Self::Elapsed { before, unit_ns } => {
                let (times, values) = elapsed(before, &times, *unit_ns);
                (times, Values::Integer(values))
            }
            Self::CumulativeSum(sum) => {
                match &mut values {
                    Values::Float(v) => accumulate(&mut sum.float, v),
                    Values::Integer(v) => accumulate(&mut sum.integer, v),
                    Values::Unsigned(v) => accumulate(&mut sum.unsigned, v),
                    _ => {}
                }
                (times, values)
            }
            Self::MovingAverage { last, window } => {
                let (times, values) = match &values {
                    Values::Float(v) => last.float.averages(&times, v, *window),
                    Values::Integer(v) => last.integer.averages(&times, v, *window),
                    Values::Unsigned(v) => last.unsigned.averages(&times, v, *window),
                    _ => (Vec::new(), Vec::new()),
                };
                (times, Values::Float(values))
            }
            Self::Indicator { state, hold } => {
                let mut values = floats(values);
                state.apply(&mut values);
                let held = (*hold).min(values.len() as u64) as usize;
                *hold -= held as u64;
                // A change from zero has no measure.
                let (times, values): (Vec<i64>, Vec<f64>) = std::iter::zip(times, values)
                    .skip(held)
                    .filter(|(_, value)| !value.is_infinite())
                    .unzip();
                (times, Values::Float(values))
            }
            Self::HoltWinters { times: known, values: points, .. } => {
                known.extend_from_slice(&times);
                points.append(&mut floats(values));
                (Vec::new(), Values::Float(Vec::new()))
            }
        };
        Batch { times, values }
    }

    /// What was kept until all points are known.
    pub(crate) fn finish(&mut self, interrupt: &Interrupt) -> Result<Option<Batch>, Interrupted> {
        let Self::HoltWinters { arguments, every_ns, times, values } = self else {
            return Ok(None);
        };
        let (times, values) = forecast(arguments, times, values, *every_ns, interrupt)?;
        Ok(Some(Batch { times, values: Values::Float(values) }))
    }

    /// Bytes of memory taken.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Self::MovingAverage { last, .. } => {
                let Numbers { float, integer, unsigned } = last;
                float.memory_bytes() + integer.memory_bytes() + unsigned.memory_bytes()
            }
            Self::Indicator { state, .. } => match state {
                IndicatorState::Averages(_) => 0,
                IndicatorState::Momentum(state) => state.memory_bytes(),
                IndicatorState::Kaufman(state) => state.memory_bytes(),
            },
            // The forecast holds the points once more, and its own.
            Self::HoltWinters { arguments, times, values, .. } => {
                let known = times.capacity() * 8 + values.capacity() * 16;
                known.saturating_add(arguments.count.saturating_mul(24))
            }
            _ => 0,
        }
    }
}

impl IndicatorState {
    /// The state at the beginning, and the leading points without a result.
    fn new(indicator: &Indicator) -> (Self, u64) {
        match indicator.kind {
            IndicatorKind::EfficiencyRatio | IndicatorKind::AdaptiveAverage => {
                (Self::Kaufman(Kaufman::new(indicator)), indicator.period)
            }
            IndicatorKind::RelativeStrength | IndicatorKind::MomentumOscillator => {
                let hold = Momentum::default_hold(indicator);
                (Self::Momentum(Momentum::new(indicator)), hold)
            }
            _ => (Self::Averages(Averages::new(indicator)), Averages::default_hold(indicator)),
        }
    }

    fn apply(&mut self, values: &mut [f64]) {
        match self {
            Self::Averages(state) => state.apply(values),
            Self::Momentum(state) => state.apply(values),
            Self::Kaufman(state) => state.apply(values),
        }
    }
}

fn floats(values: Values) -> Vec<f64> {
    match values {
        Values::Float(values) => values,
        Values::Integer(values) => values.into_iter().map(|v| v as f64).collect(),
        Values::Unsigned(values) => values.into_iter().map(|v| v as f64).collect(),
        _ => Vec::new(),
    }
}
