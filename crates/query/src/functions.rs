//! The functions of InfluxQL: names, arguments, types. What they compute over values is in the
//! modules below; how values reach them is the business of `exec`.
//!
//! Functions of the points of other functions are a matter of their own: see [`transform`].

pub(crate) mod deviation;
pub(crate) mod integral;
pub(crate) mod rank;
pub(crate) mod ranked;
pub(crate) mod transform;
pub(crate) mod values;

use influxql::{Call, Expr};
use model::FieldType;

use crate::QueryError;

/// A function with its constant arguments.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Function {
    Count,
    CountDistinct,
    Distinct,
    /// Area under the curve in units of this many nanoseconds.
    Integral {
        unit_ns: i64,
    },
    Mean,
    Median,
    Mode,
    Spread,
    Stddev,
    Sum,
    Bottom(Ranked),
    First,
    Last,
    Max,
    Min,
    /// The value at this percentage of the sorted values.
    Percentile(f64),
    /// So many values drawn at random.
    Sample(usize),
    Top(Ranked),
    /// Every value: what transformations of a field work on.
    Values,
}

/// The arguments of `top()` and `bottom()`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ranked {
    /// How many values.
    pub count: usize,
    /// Names between the field and the count: one value for each of their combinations.
    pub by: Vec<String>,
}

impl Function {
    /// The function of a call that was checked before; its argument is no wildcard any more.
    pub(crate) fn of(call: &Call) -> Self {
        match call.name.as_str() {
            "count" if matches!(call.args[0], Expr::Call(_) | Expr::Distinct(_)) => {
                Self::CountDistinct
            }
            "count" => Self::Count,
            "distinct" => Self::Distinct,
            "integral" => Self::Integral {
                unit_ns: match call.args.get(1) {
                    Some(Expr::Duration(ns)) => *ns,
                    _ => 1_000_000_000,
                },
            },
            "mean" => Self::Mean,
            "median" => Self::Median,
            "mode" => Self::Mode,
            "spread" => Self::Spread,
            "stddev" => Self::Stddev,
            "sum" => Self::Sum,
            "bottom" => Self::Bottom(Ranked::of(call)),
            "first" => Self::First,
            "last" => Self::Last,
            "max" => Self::Max,
            "min" => Self::Min,
            "percentile" => Self::Percentile(match call.args[1] {
                Expr::Integer(p) => p as f64,
                Expr::Number(p) => p,
                _ => panic!("BUG: the percentage was checked"),
            }),
            "sample" => Self::Sample(count_of(&call.args[1])),
            "top" => Self::Top(Ranked::of(call)),
            name => panic!("BUG: {name}() was checked"),
        }
    }

    /// The name in messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Count | Self::CountDistinct => "count",
            Self::Distinct => "distinct",
            Self::Integral { .. } => "integral",
            Self::Mean => "mean",
            Self::Median => "median",
            Self::Mode => "mode",
            Self::Spread => "spread",
            Self::Stddev => "stddev",
            Self::Sum => "sum",
            Self::Bottom(_) => "bottom",
            Self::First => "first",
            Self::Last => "last",
            Self::Max => "max",
            Self::Min => "min",
            Self::Percentile(_) => "percentile",
            Self::Sample(_) => "sample",
            Self::Top(_) => "top",
            Self::Values => "values",
        }
    }

    /// The type of the result for fields of type `input`.
    ///
    /// # Errors
    /// If the function takes no such fields.
    pub(crate) fn result_type(&self, input: FieldType) -> Result<FieldType, QueryError> {
        let accepts = match self {
            Self::Count
            | Self::CountDistinct
            | Self::Distinct
            | Self::Mode
            | Self::First
            | Self::Last
            | Self::Sample(_)
            | Self::Values => true,
            Self::Min | Self::Max => input != FieldType::String,
            _ => input.is_numeric(),
        };
        if !accepts {
            let name = self.name();
            return Err(QueryError::invalid(format!(
                "unsupported {name} iterator type: *query.{input}InterruptIterator"
            )));
        }
        Ok(match self {
            Self::Count | Self::CountDistinct => FieldType::Integer,
            _ if self.has_fixed_type() => FieldType::Float,
            _ => input,
        })
    }

    /// Whether the type of the result does not depend on that of the field.
    pub(crate) fn has_fixed_type(&self) -> bool {
        matches!(
            self,
            Self::Count
                | Self::CountDistinct
                | Self::Integral { .. }
                | Self::Mean
                | Self::Median
                | Self::Stddev
        )
    }

    /// Whether the result is one of the values, with its time.
    pub(crate) fn is_selector(&self) -> bool {
        matches!(
            self,
            Self::Min
                | Self::Max
                | Self::First
                | Self::Last
                | Self::Percentile(_)
                | Self::Sample(_)
                | Self::Top(_)
                | Self::Bottom(_)
        )
    }

    /// Whether rows keep the times of their points even in windows.
    pub(crate) fn keeps_times(&self) -> bool {
        matches!(self, Self::Sample(_) | Self::Top(_) | Self::Bottom(_))
    }

    /// Whether empty windows get rows.
    pub(crate) fn is_filled(&self) -> bool {
        let has_gaps = matches!(self, Self::Distinct | Self::Integral { .. } | Self::Values);
        !self.keeps_times() && !has_gaps
    }

    /// Whether empty windows have a number of points all the same: none.
    pub(crate) fn is_count(&self) -> bool {
        matches!(self, Self::Count | Self::CountDistinct)
    }

    /// The tags (or fields) that become columns behind the result.
    pub(crate) fn column_args(&self) -> &[String] {
        match self {
            Self::Top(ranked) | Self::Bottom(ranked) => &ranked.by,
            _ => &[],
        }
    }
}

impl Ranked {
    fn of(call: &Call) -> Self {
        let last = call.args.len() - 1;
        let by = call.args[1..last].iter().filter_map(|arg| match arg {
            Expr::VarRef(var) => Some(var.name.clone()),
            _ => None,
        });
        Self { count: count_of(&call.args[last]), by: by.collect() }
    }
}

fn count_of(arg: &Expr) -> usize {
    match arg {
        Expr::Integer(n) => usize::try_from(*n).unwrap_or(usize::MAX),
        _ => panic!("BUG: the count was checked"),
    }
}

/// The name of the field that a checked call is about.
pub(crate) fn argument(call: &Call) -> Option<&Expr> {
    match call.args.first()? {
        Expr::Call(inner) => inner.args.first(),
        other => Some(other),
    }
}
