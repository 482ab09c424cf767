//! Functions that work on the points of another function, or of a field, in order: each point gives
//! at most one, and may depend on those before it.
//!
//! What is here: names, arguments, types, and how far before the range a function looks. What they
//! compute is in the modules below, a column at a time, with state that passes from one batch to the
//! next. `exec::transform` feeds them.

pub(crate) mod averages;
pub(crate) mod changes;
pub(crate) mod holt_winters;
pub(crate) mod kaufman;
pub(crate) mod momentum;
pub(crate) mod sums;

use influxql::{Call, Expr};
use model::FieldType;

use crate::QueryError;

/// A transformation with its constant arguments.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Transform {
    /// Change per unit; without a unit that of the window, or a second.
    Derivative { unit_ns: Option<i64>, non_negative: bool },
    /// Change from the point before.
    Difference { non_negative: bool },
    /// Time since the point before.
    Elapsed { unit_ns: i64 },
    /// Sum of all points so far.
    CumulativeSum,
    /// Mean of the last points.
    MovingAverage { window: u64 },
    /// One of technical analysis.
    Indicator(Indicator),
    /// A forecast by exponential smoothing.
    HoltWinters(HoltWinters),
}

/// A function of technical analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Indicator {
    pub kind: IndicatorKind,
    /// Points that count.
    pub period: u64,
    /// Leading points without a result; `None`: those until the function is warm.
    pub hold: Option<u64>,
    pub warmup: Warmup,
}

/// Which function of technical analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndicatorKind {
    ExponentialAverage,
    DoubleExponentialAverage,
    TripleExponentialAverage,
    TripleExponentialDerivative,
    RelativeStrength,
    EfficiencyRatio,
    AdaptiveAverage,
    MomentumOscillator,
}

/// What stands for points that are not there yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Warmup {
    Exponential,
    Simple,
    /// No smoothing at all.
    None,
}

/// The arguments of `holt_winters()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HoltWinters {
    /// Points to forecast.
    pub count: usize,
    /// Points of a season; fewer than two: there is no season.
    pub season: usize,
    /// Whether the fit of the known points is given as well.
    pub with_fit: bool,
}

/// What a call computes its points of.
pub(crate) enum Leaf<'a> {
    /// A field, point by point.
    Field(&'a Expr),
    /// Another function.
    Call(&'a Call),
}

/// Whether `name` is a transformation.
pub(crate) fn is_transformation(name: &str) -> bool {
    is_change(name) || matches!(name, "cumulative_sum" | "moving_average") || {
        indicator_kind(name).is_some() || is_forecast(name)
    }
}

/// Whether `name` is `holt_winters()` or its variant.
pub(crate) fn is_forecast(name: &str) -> bool {
    matches!(name, "holt_winters" | "holt_winters_with_fit")
}

fn is_change(name: &str) -> bool {
    matches!(
        name,
        "derivative"
            | "non_negative_derivative"
            | "difference"
            | "non_negative_difference"
            | "elapsed"
    )
}

/// The function of technical analysis called `name`.
pub(crate) fn indicator_kind(name: &str) -> Option<IndicatorKind> {
    Some(match name {
        "exponential_moving_average" => IndicatorKind::ExponentialAverage,
        "double_exponential_moving_average" => IndicatorKind::DoubleExponentialAverage,
        "triple_exponential_moving_average" => IndicatorKind::TripleExponentialAverage,
        "triple_exponential_derivative" => IndicatorKind::TripleExponentialDerivative,
        "relative_strength_index" => IndicatorKind::RelativeStrength,
        "kaufmans_efficiency_ratio" => IndicatorKind::EfficiencyRatio,
        "kaufmans_adaptive_moving_average" => IndicatorKind::AdaptiveAverage,
        "chande_momentum_oscillator" => IndicatorKind::MomentumOscillator,
        _ => return None,
    })
}

/// Windows before the range that results of `call` may be made of, at most.
pub(crate) fn extra_windows(call: &Call) -> u64 {
    let period = || match call.args.get(1) {
        Some(Expr::Integer(n)) => n.unsigned_abs(),
        _ => 0,
    };
    match call.name.as_str() {
        name if is_change(name) => 1,
        "moving_average" => period(),
        name if indicator_kind(name).is_some() => period(),
        _ => 0,
    }
}

/// Takes a checked call apart: its transformations, innermost first, and what they work on.
pub(crate) fn split(call: &Call) -> (Vec<Transform>, Leaf<'_>) {
    let mut transforms = Vec::new();
    let mut call = call;
    loop {
        let Some(transform) = Transform::of(call) else {
            transforms.reverse();
            return (transforms, Leaf::Call(call));
        };
        transforms.push(transform);
        match &call.args[0] {
            Expr::Call(inner) => call = inner,
            field => {
                transforms.reverse();
                return (transforms, Leaf::Field(field));
            }
        }
    }
}

impl Transform {
    /// The outermost transformation of a checked call.
    fn of(call: &Call) -> Option<Self> {
        let unit_ns = match call.args.get(1) {
            Some(Expr::Duration(ns)) => Some(*ns),
            _ => None,
        };
        let count = |at: usize| match call.args.get(at) {
            Some(Expr::Integer(n)) => u64::try_from(*n).ok(),
            _ => None,
        };
        let warmup = match call.args.get(3) {
            Some(Expr::String(text)) => Warmup::by_name(text),
            _ => None,
        };
        let name = call.name.as_str();
        Some(match name {
            "derivative" => Self::Derivative { unit_ns, non_negative: false },
            "non_negative_derivative" => Self::Derivative { unit_ns, non_negative: true },
            "difference" => Self::Difference { non_negative: false },
            "non_negative_difference" => Self::Difference { non_negative: true },
            "elapsed" => Self::Elapsed { unit_ns: unit_ns.unwrap_or(1) },
            "cumulative_sum" => Self::CumulativeSum,
            "moving_average" => Self::MovingAverage { window: count(1).unwrap_or(1).max(1) },
            "holt_winters" | "holt_winters_with_fit" => Self::HoltWinters(HoltWinters {
                count: count(1).unwrap_or(0).try_into().unwrap_or(usize::MAX),
                season: count(2).unwrap_or(0).try_into().unwrap_or(usize::MAX),
                with_fit: name == "holt_winters_with_fit",
            }),
            _ => {
                let kind = indicator_kind(name)?;
                let default = match kind {
                    IndicatorKind::MomentumOscillator => Warmup::None,
                    _ => Warmup::Exponential,
                };
                Self::Indicator(Indicator {
                    kind,
                    period: count(1).unwrap_or(1).max(1),
                    hold: count(2),
                    warmup: warmup.unwrap_or(default),
                })
            }
        })
    }

    /// The name in the language.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Derivative { non_negative: true, .. } => "non_negative_derivative".to_owned(),
            Self::Difference { non_negative: true } => "non_negative_difference".to_owned(),
            Self::HoltWinters(HoltWinters { with_fit: false, .. }) => "holt_winters".to_owned(),
            Self::HoltWinters(_) => "holt_winters_with_fit".to_owned(),
            other => other.title().replace(' ', "_"),
        }
    }

    /// The name that InfluxDB's message about types has.
    fn title(&self) -> &'static str {
        match self {
            Self::Derivative { .. } => "derivative",
            Self::Difference { .. } => "difference",
            // The message about a forecast of text names the wrong function.
            Self::Elapsed { .. } | Self::HoltWinters(_) => "elapsed",
            Self::CumulativeSum => "cumulative sum",
            Self::MovingAverage { .. } => "moving average",
            Self::Indicator(indicator) => match indicator.kind {
                IndicatorKind::ExponentialAverage => "exponential moving average",
                IndicatorKind::DoubleExponentialAverage => "double exponential moving average",
                IndicatorKind::TripleExponentialAverage => "triple exponential moving average",
                IndicatorKind::TripleExponentialDerivative => "triple exponential derivative",
                IndicatorKind::RelativeStrength => "relative strength index",
                IndicatorKind::EfficiencyRatio => "kaufmans efficiency ratio",
                IndicatorKind::AdaptiveAverage => "kaufmans adaptive moving average",
                IndicatorKind::MomentumOscillator => "chande momentum oscillator",
            },
        }
    }

    /// The type of the results for points of type `input`.
    ///
    /// # Errors
    /// If there is no such transformation of these.
    pub(crate) fn result_type(&self, input: FieldType) -> Result<FieldType, QueryError> {
        if !input.is_numeric() && !matches!(self, Self::Elapsed { .. }) {
            let title = self.title();
            return Err(QueryError::invalid(format!(
                "unsupported {title} iterator type: *query.{input}InterruptIterator"
            )));
        }
        Ok(match self {
            Self::Difference { .. } | Self::CumulativeSum => input,
            Self::Elapsed { .. } => FieldType::Integer,
            _ => FieldType::Float,
        })
    }

    /// Whether the type of the result does not depend on that of the points.
    pub(crate) fn has_fixed_type(&self) -> bool {
        !matches!(self, Self::Difference { .. } | Self::CumulativeSum)
    }

    /// Whether the window before the range is looked at, so that the first one has a result.
    pub(crate) fn looks_back(&self) -> bool {
        !matches!(self, Self::CumulativeSum | Self::HoltWinters(_))
    }
}

impl Warmup {
    /// The warm-up called `name`.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "exponential" => Self::Exponential,
            "simple" => Self::Simple,
            "none" => Self::None,
            _ => return None,
        })
    }
}
