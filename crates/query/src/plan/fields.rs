//! Checks of selected expressions and of functions in conditions.

use influxql::{Call, Expr, Field, Fill, SelectStatement};

use super::compile::{Compiled, fold_field};
use super::percentiles;
use crate::QueryError;
use crate::exec::expression::MathFunction;
use crate::functions::transform::is_transformation;

/// What the selected expressions have in common, gathered while each is checked.
#[derive(Debug)]
pub(crate) struct FieldChecks {
    limit: u64,
    /// Whether there are windows: the query's own, or those of the query around it.
    pub(super) windows: WindowUse,
    pub(super) calls: usize,
    pub(super) only_selectors: bool,
    has_distinct: bool,
    has_plain: bool,
    ranked: Option<String>,
    /// Windows before the range that functions may look at, over all functions and in one.
    pub(super) extra_windows: u64,
    pub(super) lead: u64,
}

/// Whose windows a query has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WindowUse {
    None,
    Own,
    Inherited,
}

/// Where in an expression a check is.
pub(super) struct Place {
    /// Cleared inside arithmetic, where wildcards cannot be expanded.
    pub(super) wildcards: bool,
}

impl FieldChecks {
    pub(crate) fn new(limit: u64, windows: WindowUse) -> Self {
        Self {
            limit,
            windows,
            calls: 0,
            only_selectors: true,
            has_distinct: false,
            has_plain: false,
            ranked: None,
            extra_windows: 0,
            lead: 0,
        }
    }

    /// Whether any function is called.
    pub(crate) fn has_calls(&self) -> bool {
        self.calls > 0
    }

    /// Checks each selected expression; gives them folded and without `time`, and the alias of
    /// `time`.
    pub(crate) fn check(
        &mut self,
        statement: &SelectStatement,
    ) -> Result<(Vec<Field>, Option<String>), QueryError> {
        let mut fields = Vec::with_capacity(statement.fields.len());
        let mut time_column = None;
        for field in &*percentiles::expanded(&statement.fields)? {
            if let Expr::VarRef(var) = &field.expr
                && var.name == "time"
            {
                if field.alias.is_some() {
                    time_column.clone_from(&field.alias);
                }
                continue;
            }
            let field = fold_field(field);
            self.expression(&field.expr, &mut Place { wildcards: true })?;
            fields.push(field);
        }
        Ok((fields, time_column))
    }

    /// Checks that the selected expressions fit together.
    pub(crate) fn check_together(
        &self,
        compiled: &Compiled,
        fields: usize,
    ) -> Result<(), QueryError> {
        if fields == 0 {
            return Err(QueryError::invalid("at least 1 non-time field must be queried"));
        }
        if let Some(ranked) = self.ranked.as_ref().filter(|_| self.calls > 1) {
            return Err(combined(ranked));
        }
        if self.calls == 0 {
            match compiled.fill {
                Fill::None => {
                    return Err(QueryError::invalid("fill(none) must be used with a function"));
                }
                Fill::Linear => {
                    return Err(QueryError::invalid("fill(linear) must be used with a function"));
                }
                _ => {}
            }
            if self.windows == WindowUse::Own {
                return Err(QueryError::invalid(
                    "GROUP BY requires at least one aggregate function",
                ));
            }
        }
        if self.has_distinct && (self.calls != 1 || self.has_plain) {
            return Err(QueryError::invalid(
                "aggregate function distinct() cannot be combined with other functions or fields",
            ));
        }
        if self.has_plain && !self.only_selectors {
            return Err(QueryError::invalid(
                "mixing aggregate and non-aggregate queries is not supported",
            ));
        }
        if self.has_plain && self.calls > 1 {
            return Err(QueryError::invalid(
                "mixing multiple selector functions with tags or fields is not supported",
            ));
        }
        Ok(())
    }

    fn expression(&mut self, expr: &Expr, place: &mut Place) -> Result<(), QueryError> {
        match expr {
            Expr::VarRef(_) => {
                self.has_plain = true;
                Ok(())
            }
            Expr::Wildcard(_) if !place.wildcards => {
                Err(QueryError::invalid("unable to use wildcard in a binary expression"))
            }
            Expr::Regex(_) if !place.wildcards => {
                Err(QueryError::invalid("unable to use regex in a binary expression"))
            }
            Expr::Wildcard(_) | Expr::Regex(_) => {
                self.has_plain = true;
                Ok(())
            }
            Expr::Call(call) => match MathFunction::by_name(&call.name) {
                Some(function) => self.math(call, function, place),
                None => self.call(call, place),
            },
            Expr::Distinct(_) => {
                self.calls += 1;
                self.has_distinct = true;
                self.only_selectors = false;
                Ok(())
            }
            Expr::Binary { lhs, rhs, .. } => {
                place.wildcards = false;
                if lhs.is_literal() && rhs.is_literal() {
                    return Err(QueryError::invalid(
                        "cannot perform a binary expression on two literals",
                    ));
                }
                for side in [lhs, rhs] {
                    if !side.is_literal() {
                        self.expression(side, place)?;
                    }
                }
                Ok(())
            }
            Expr::Paren(inner) => self.expression(inner, place),
            _ => Err(QueryError::invalid("field must contain at least one variable")),
        }
    }

    fn math(
        &mut self,
        call: &Call,
        function: MathFunction,
        place: &mut Place,
    ) -> Result<(), QueryError> {
        check_count(call, function.arity())?;
        for arg in &call.args {
            if !arg.is_literal() || matches!(arg, Expr::Regex(_)) {
                self.expression(arg, place)?;
            }
        }
        Ok(())
    }

    pub(super) fn call(&mut self, call: &Call, place: &Place) -> Result<(), QueryError> {
        self.calls += 1;
        match call.name.as_str() {
            "percentile" => {
                check_count(call, 2)?;
                if !matches!(call.args[1], Expr::Integer(_) | Expr::Number(_)) {
                    return Err(QueryError::invalid("expected float argument in percentile()"));
                }
                self.symbol(call, place)
            }
            "sample" => {
                check_count(call, 2)?;
                match call.args[1] {
                    Expr::Integer(n) if n <= 0 => Err(QueryError::invalid(format!(
                        "sample window must be greater than 1, got {n}"
                    ))),
                    Expr::Integer(_) => self.symbol(call, place),
                    _ => Err(QueryError::invalid("expected integer argument in sample()")),
                }
            }
            "distinct" => self.distinct(call, false),
            "top" | "bottom" => self.ranked(call),
            "integral" => self.integral(call, place),
            name if is_transformation(name) => self.transformation(call, place),
            _ => self.simple(call, place),
        }
    }

    fn simple(&mut self, call: &Call, place: &Place) -> Result<(), QueryError> {
        match call.name.as_str() {
            "max" | "min" | "first" | "last" => {}
            "count" | "sum" | "mean" | "median" | "mode" | "stddev" | "spread" => {
                self.only_selectors = false;
            }
            name => return Err(QueryError::invalid(format!("undefined function {name}()"))),
        }
        check_count(call, 1)?;
        match &call.args[0] {
            Expr::Call(inner) if call.name == "count" && inner.name == "distinct" => {
                self.distinct(inner, true)
            }
            Expr::Distinct(_) if call.name == "count" => Ok(()),
            _ => self.symbol(call, place),
        }
    }

    /// The first argument must name fields.
    pub(super) fn symbol(&mut self, call: &Call, place: &Place) -> Result<(), QueryError> {
        let name = &call.name;
        match &call.args[0] {
            Expr::VarRef(_) => Ok(()),
            Expr::Wildcard(_) if !place.wildcards => {
                Err(QueryError::invalid(format!("unsupported expression with wildcard: {name}()")))
            }
            Expr::Regex(_) if !place.wildcards => Err(QueryError::invalid(format!(
                "unsupported expression with regex field: {name}()"
            ))),
            Expr::Wildcard(_) | Expr::Regex(_) => {
                // It may become several functions.
                self.only_selectors = false;
                Ok(())
            }
            _ => Err(QueryError::invalid(format!("expected field argument in {name}()"))),
        }
    }

    pub(super) fn distinct(&mut self, call: &Call, nested: bool) -> Result<(), QueryError> {
        match call.args.as_slice() {
            [] => Err(QueryError::invalid("distinct function requires at least one argument")),
            [Expr::VarRef(_)] => {
                self.has_distinct |= !nested;
                self.only_selectors = false;
                Ok(())
            }
            [_] => Err(QueryError::invalid("expected field argument in distinct()")),
            _ => Err(QueryError::invalid("distinct function can only have one argument")),
        }
    }

    fn integral(&mut self, call: &Call, place: &Place) -> Result<(), QueryError> {
        let got = call.args.len();
        if !(1..=2).contains(&got) {
            return Err(QueryError::invalid(format!(
                "invalid number of arguments for integral, expected at least 1 but no more than 2, \
                 got {got}"
            )));
        }
        match call.args.get(1) {
            None => {}
            Some(Expr::Duration(ns)) if *ns > 0 => {}
            Some(arg @ Expr::Duration(_)) => {
                return Err(QueryError::invalid(format!(
                    "duration argument must be positive, got {arg}"
                )));
            }
            Some(_) => return Err(QueryError::invalid("second argument must be a duration")),
        }
        self.only_selectors = false;
        self.symbol(call, place)
    }

    fn ranked(&mut self, call: &Call) -> Result<(), QueryError> {
        if let Some(other) = &self.ranked {
            return Err(combined(other));
        }
        let (name, got) = (&call.name, call.args.len());
        if got < 2 {
            return Err(QueryError::invalid(format!(
                "invalid number of arguments for {name}, expected at least 2, got {got}"
            )));
        }
        let Expr::Integer(count) = call.args[got - 1] else {
            return Err(QueryError::invalid(format!(
                "expected integer as last argument in {name}(), found {}",
                call.args[got - 1]
            )));
        };
        if count <= 0 {
            return Err(QueryError::invalid(format!(
                "limit ({count}) in {name} function must be at least 1"
            )));
        }
        if self.limit > 0 && count.unsigned_abs() > self.limit {
            return Err(QueryError::invalid(format!(
                "limit ({count}) in {name} function can not be larger than the LIMIT ({}) in the \
                 select statement",
                self.limit
            )));
        }
        if !matches!(call.args[0], Expr::VarRef(_)) {
            return Err(QueryError::invalid(format!(
                "expected first argument to be a field in {name}(), found {}",
                call.args[0]
            )));
        }
        for arg in &call.args[1..got - 1] {
            if !matches!(arg, Expr::VarRef(_)) {
                return Err(QueryError::invalid(format!(
                    "only fields or tags are allowed in {name}(), found {arg}"
                )));
            }
            self.has_plain = true;
        }
        self.ranked = Some(name.clone());
        Ok(())
    }
}

fn combined(ranked: &str) -> QueryError {
    QueryError::invalid(format!(
        "selector function {ranked}() cannot be combined with other functions"
    ))
}

pub(super) fn check_count(call: &Call, expected: usize) -> Result<(), QueryError> {
    let got = call.args.len();
    if got == expected {
        return Ok(());
    }
    Err(QueryError::invalid(format!(
        "invalid number of arguments for {}, expected {expected}, got {got}",
        call.name
    )))
}

/// Checks the functions of a condition: mathematical ones only.
pub(crate) fn check_condition(expr: &Expr) -> Result<(), QueryError> {
    if let Expr::Call(call) = expr {
        let Some(function) = MathFunction::by_name(&call.name) else {
            return Err(QueryError::invalid(format!("invalid function call in condition: {expr}")));
        };
        // InfluxDB knows two arguments of these two only, here.
        let two = matches!(function, MathFunction::Atan2 | MathFunction::Pow);
        check_count(call, if two { 2 } else { 1 })?;
    }
    influxql::visit::children(expr).try_for_each(check_condition)
}
