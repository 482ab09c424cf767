//! Types of names and expressions, found without looking at rows.

use influxql::{BinaryOp, Call, DataType, Expr, VarRef};

use super::Source;
use crate::QueryError;
use crate::exec::expression::MathFunction;
use crate::functions::transform::{indicator_kind, is_forecast};

/// What wins where one name has several types: the lower.
pub(crate) fn precedence(data_type: DataType) -> u8 {
    match data_type {
        DataType::Float => 0,
        DataType::Integer => 1,
        DataType::Unsigned => 2,
        DataType::String => 3,
        DataType::Boolean => 4,
        DataType::Time => 5,
        DataType::Duration => 6,
        DataType::Tag => 7,
        DataType::AnyField => 8,
    }
}

/// The type a name has in the results, of two.
pub(crate) fn stronger(a: Option<DataType>, b: Option<DataType>) -> Option<DataType> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if precedence(b) < precedence(a) { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// The type of `model` as one of the language.
pub(crate) fn data_type(field_type: model::FieldType) -> DataType {
    match field_type {
        model::FieldType::Float => DataType::Float,
        model::FieldType::Integer => DataType::Integer,
        model::FieldType::Unsigned => DataType::Unsigned,
        model::FieldType::String => DataType::String,
        model::FieldType::Boolean => DataType::Boolean,
    }
}

/// The type of stored values, if values of `data_type` can be stored.
pub(crate) fn field_type(data_type: DataType) -> Option<model::FieldType> {
    Some(match data_type {
        DataType::Float => model::FieldType::Float,
        DataType::Integer => model::FieldType::Integer,
        DataType::Unsigned => model::FieldType::Unsigned,
        DataType::String | DataType::Tag => model::FieldType::String,
        DataType::Boolean => model::FieldType::Boolean,
        DataType::Time | DataType::Duration | DataType::AnyField => return None,
    })
}

/// The type of the name `name` over all sources; `None`: none of them has it.
pub(crate) fn of_name(name: &str, sources: &[Source]) -> Option<DataType> {
    sources.iter().fold(None, |found, source| stronger(found, of_name_in(name, source)))
}

fn of_name_in(name: &str, source: &Source) -> Option<DataType> {
    match source {
        Source::Measurement(measurement) => match measurement.schema.field_type(name) {
            Some(field_type) => Some(data_type(field_type)),
            None => measurement.schema.has_tag(name).then_some(DataType::Tag),
        },
        Source::Subquery(inner) => {
            let output = inner.select.outputs.iter().find(|output| output.reference == name);
            match output.and_then(|output| output.data_type) {
                Some(data_type) => Some(data_type),
                None => inner.has_tag(name).then_some(DataType::Tag),
            }
        }
        Source::Join(join) => match join.column(name) {
            Some((_, column)) => Some(column.data_type),
            None => join.has_tag(name).then_some(DataType::Tag),
        },
    }
}

/// `expr` with the type of every name that has none yet.
pub(crate) fn annotate(expr: Expr, sources: &[Source]) -> Expr {
    influxql::visit::rewrite(expr, &mut |expr| match expr {
        Expr::VarRef(VarRef { name, data_type: given @ (None | Some(DataType::AnyField)) })
            if !name.eq_ignore_ascii_case("time") =>
        {
            let data_type = match of_name(&name, sources) {
                // A field was asked for and there is only a tag: the name stays without a type.
                Some(DataType::Tag) if given.is_some() => given,
                found => found,
            };
            Expr::VarRef(VarRef { name, data_type })
        }
        other => other,
    })
}

/// The type of an expression with annotated names; `None` where it cannot be known.
///
/// # Errors
/// [`QueryError::Invalid`] if operands or arguments do not fit.
pub(crate) fn of_expr(expr: &Expr) -> Result<Option<DataType>, QueryError> {
    Ok(match expr {
        Expr::VarRef(var) => var.data_type,
        Expr::Paren(inner) => of_expr(inner)?,
        Expr::Number(_) => Some(DataType::Float),
        Expr::Integer(_) => Some(DataType::Integer),
        Expr::Unsigned(_) => Some(DataType::Unsigned),
        Expr::String(_) => Some(DataType::String),
        Expr::Boolean(_) => Some(DataType::Boolean),
        Expr::Duration(_) => Some(DataType::Duration),
        Expr::Time(_) => Some(DataType::Time),
        Expr::Distinct(_) => None,
        Expr::Call(call) => of_call(call)?,
        Expr::Binary { op, lhs, rhs } => of_binary(*op, lhs, rhs, expr)?,
        _ => None,
    })
}

fn of_call(call: &Call) -> Result<Option<DataType>, QueryError> {
    let Some(function) = MathFunction::by_name(&call.name) else {
        return match call.name.as_str() {
            "mean" | "median" | "integral" | "stddev" => Ok(Some(DataType::Float)),
            "derivative" | "non_negative_derivative" | "moving_average" => {
                Ok(Some(DataType::Float))
            }
            name if is_forecast(name) || indicator_kind(name).is_some() => {
                Ok(Some(DataType::Float))
            }
            "count" | "elapsed" => Ok(Some(DataType::Integer)),
            _ => call.args.first().map_or(Ok(None), of_expr),
        };
    };
    let mut result = DataType::Float;
    for (at, arg) in call.args.iter().enumerate() {
        let Some(found) = of_expr(arg)? else { continue };
        let numeric = matches!(found, DataType::Float | DataType::Integer | DataType::Unsigned);
        if !numeric || (function.needs_float() && found != DataType::Float) {
            let position = if at == 0 { "first" } else { "second" };
            return Err(QueryError::invalid(format!(
                "invalid argument type for the {position} argument in {}(): {}",
                call.name,
                found.as_str()
            )));
        }
        if function.keeps_type() {
            result = found;
        }
    }
    Ok(Some(result))
}

fn of_binary(
    op: BinaryOp,
    lhs: &Expr,
    rhs: &Expr,
    expr: &Expr,
) -> Result<Option<DataType>, QueryError> {
    use DataType::{Integer, Unsigned};
    let (left, right) = (of_expr(lhs)?, of_expr(rhs)?);
    let sign_conflict = match (left, right) {
        (Some(Unsigned), Some(Integer)) => Some((lhs.is_literal(), rhs.is_literal())),
        (Some(Integer), Some(Unsigned)) => Some((rhs.is_literal(), lhs.is_literal())),
        _ => None,
    };
    if let Some((unsigned_is_literal, integer_is_literal)) = sign_conflict {
        let op = op.as_str();
        if unsigned_is_literal {
            return Err(QueryError::invalid(format!(
                "type error: {expr}: cannot use {op} with an integer and unsigned literal"
            )));
        }
        if !integer_is_literal {
            return Err(QueryError::invalid(format!(
                "type error: {expr}: cannot use {op} between an integer and unsigned, an explicit \
                 cast is required"
            )));
        }
    }
    let (Some(left), Some(right)) = (left, right) else { return Ok(left.or(right)) };
    match of_operands(op, left, right) {
        Some(result) => Ok(Some(result)),
        None => Err(QueryError::invalid(format!(
            "type error: {expr}: incompatible types: {} and {}",
            left.as_str(),
            right.as_str()
        ))),
    }
}

fn of_operands(op: BinaryOp, left: DataType, right: DataType) -> Option<DataType> {
    use DataType::{Boolean, Float, Integer, Unsigned};
    let bitwise = matches!(op, BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor);
    match (left, right) {
        (Boolean, Boolean) if bitwise => Some(Boolean),
        (Float, Float | Integer | Unsigned) | (Integer | Unsigned, Float) if !bitwise => {
            Some(Float)
        }
        (Integer, Integer) => Some(Integer),
        (Unsigned, Unsigned | Integer) | (Integer, Unsigned) => Some(Unsigned),
        _ => None,
    }
}
