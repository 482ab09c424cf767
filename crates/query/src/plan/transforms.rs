//! Checks of transformations: arguments, and what they may be applied to.

use influxql::{Call, Expr};

use super::fields::{FieldChecks, Place, WindowUse, check_count};
use crate::QueryError;
use crate::exec::expression::MathFunction;
use crate::functions::transform::{
    IndicatorKind, Warmup, extra_windows, indicator_kind, is_forecast, is_transformation,
};

impl FieldChecks {
    /// Checks a call of a transformation.
    pub(super) fn transformation(&mut self, call: &Call, place: &Place) -> Result<(), QueryError> {
        let name = call.name.as_str();
        match name {
            "difference" | "non_negative_difference" | "cumulative_sum" => check_count(call, 1)?,
            "moving_average" => check_moving_average(call)?,
            _ if is_forecast(name) => check_forecast(call)?,
            _ => match indicator_kind(name) {
                Some(kind) => check_indicator(call, kind)?,
                None => check_unit(call)?,
            },
        }
        self.only_selectors = false;
        self.extra_windows = self.extra_windows.max(extra_windows(call));
        self.lead = self.lead.max(lead(call));
        match &call.args[0] {
            Expr::Call(_) if self.windows == WindowUse::None => {
                Err(QueryError::invalid(format!("{name} aggregate requires a GROUP BY interval")))
            }
            Expr::Call(inner) => self.nested(inner, place),
            _ if is_forecast(name) => {
                Err(QueryError::invalid(format!("must use aggregate function with {name}")))
            }
            _ if self.windows == WindowUse::Own => Err(QueryError::invalid(format!(
                "aggregate function required inside the call to {name}"
            ))),
            _ => self.symbol(call, place),
        }
    }

    /// A function inside of a transformation.
    fn nested(&mut self, inner: &Call, place: &Place) -> Result<(), QueryError> {
        if MathFunction::by_name(&inner.name).is_some() {
            return Err(QueryError::invalid(format!("unsupported call: {}", inner.name)));
        }
        if inner.name == "distinct" {
            self.calls += 1;
            return self.distinct(inner, true);
        }
        self.call(inner, place)
    }
}

/// How many windows before the range a call looks at, with what is nested in it.
fn lead(call: &Call) -> u64 {
    let inner = match call.args.first() {
        Some(Expr::Call(inner)) if is_transformation(&inner.name) => lead(inner),
        _ => 0,
    };
    inner + u64::from(extra_windows(call) > 0)
}

fn check_between(call: &Call, min: usize, max: usize) -> Result<(), QueryError> {
    let (name, got) = (&call.name, call.args.len());
    if (min..=max).contains(&got) {
        return Ok(());
    }
    Err(QueryError::invalid(format!(
        "invalid number of arguments for {name}, expected at least {min} but no more than {max}, \
         got {got}"
    )))
}

/// A second argument is a positive duration.
fn check_unit(call: &Call) -> Result<(), QueryError> {
    check_between(call, 1, 2)?;
    match call.args.get(1) {
        None => Ok(()),
        Some(Expr::Duration(ns)) if *ns > 0 => Ok(()),
        Some(arg @ Expr::Duration(_)) => {
            Err(QueryError::invalid(format!("duration argument must be positive, got {arg}")))
        }
        Some(other) => Err(QueryError::invalid(format!(
            "second argument to {} must be a duration, got {}",
            call.name,
            type_name(other)
        ))),
    }
}

fn check_moving_average(call: &Call) -> Result<(), QueryError> {
    check_count(call, 2)?;
    match &call.args[1] {
        Expr::Integer(n) if *n > 1 => Ok(()),
        Expr::Integer(n) => Err(QueryError::invalid(format!(
            "moving_average window must be greater than 1, got {n}"
        ))),
        other => Err(QueryError::invalid(format!(
            "second argument for moving_average must be an integer, got {}",
            type_name(other)
        ))),
    }
}

fn check_forecast(call: &Call) -> Result<(), QueryError> {
    check_count(call, 3)?;
    let name = &call.name;
    let integer = |at: usize, place: &str| match call.args[at] {
        Expr::Integer(n) => Ok(n),
        _ => {
            Err(QueryError::invalid(format!("expected integer argument as {place} arg in {name}")))
        }
    };
    let count = integer(1, "second")?;
    if count <= 0 {
        return Err(QueryError::invalid(format!(
            "second arg to {name} must be greater than 0, got {count}"
        )));
    }
    let season = integer(2, "third")?;
    if season < 0 {
        return Err(QueryError::invalid(format!(
            "third arg to {name} cannot be negative, got {season}"
        )));
    }
    Ok(())
}

fn check_indicator(call: &Call, kind: IndicatorKind) -> Result<(), QueryError> {
    use IndicatorKind as Kind;
    let smooths = !matches!(kind, Kind::EfficiencyRatio | Kind::AdaptiveAverage);
    check_between(call, 2, if smooths { 4 } else { 3 })?;
    let name = &call.name;
    match &call.args[1] {
        Expr::Integer(1..) => {}
        Expr::Integer(_) => {
            return Err(QueryError::invalid(format!(
                "{name} period must be greater than or equal to 1"
            )));
        }
        _ => return Err(QueryError::invalid(format!("{name} period must be an integer"))),
    }
    let least = i64::from(kind == Kind::TripleExponentialDerivative);
    match call.args.get(2) {
        None => {}
        // -1 asks for the default.
        Some(Expr::Integer(n)) if *n >= least || *n == -1 => {}
        Some(Expr::Integer(_)) => {
            return Err(QueryError::invalid(format!(
                "{name} hold period must be greater than or equal to {least}"
            )));
        }
        Some(_) => {
            return Err(QueryError::invalid(format!("{name} hold period must be an integer")));
        }
    }
    let known = match kind {
        Kind::MomentumOscillator => "'none' 'exponential' 'simple'",
        _ => "'exponential' 'simple'",
    };
    match call.args.get(3) {
        None => Ok(()),
        Some(Expr::String(text)) => match Warmup::by_name(text) {
            Some(Warmup::None) if kind != Kind::MomentumOscillator => Err(known),
            Some(_) => Ok(()),
            None => Err(known),
        }
        .map_err(|known| {
            QueryError::invalid(format!("{name} warmup type must be one of: {known}"))
        }),
        Some(_) => Err(QueryError::invalid(format!("{name} warmup type must be a string"))),
    }
}

/// The name of an expression's type in InfluxDB's messages.
fn type_name(expr: &Expr) -> &'static str {
    match expr {
        Expr::VarRef(_) => "*influxql.VarRef",
        Expr::Call(_) => "*influxql.Call",
        Expr::Binary { .. } | Expr::Logical { .. } => "*influxql.BinaryExpr",
        Expr::Paren(_) => "*influxql.ParenExpr",
        Expr::Distinct(_) => "*influxql.Distinct",
        Expr::Wildcard(_) => "*influxql.Wildcard",
        Expr::Regex(_) => "*influxql.RegexLiteral",
        Expr::Number(_) => "*influxql.NumberLiteral",
        Expr::Integer(_) => "*influxql.IntegerLiteral",
        Expr::Unsigned(_) => "*influxql.UnsignedLiteral",
        Expr::String(_) => "*influxql.StringLiteral",
        Expr::Boolean(_) => "*influxql.BooleanLiteral",
        Expr::Duration(_) => "*influxql.DurationLiteral",
        Expr::Time(_) => "*influxql.TimeLiteral",
        _ => "*influxql.nilLiteral",
    }
}
