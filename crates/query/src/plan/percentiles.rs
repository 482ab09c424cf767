//! `percentiles(field, p, ...)`: a column for each percentage, each as `percentile()` has it.

use std::borrow::Cow;

use influxql::{Call, Expr, Field};

use crate::QueryError;

const NAME: &str = "percentiles";

/// The fields with every `percentiles()` replaced by as many `percentile()`.
///
/// # Errors
/// [`QueryError::Invalid`] where it is not used as a field by itself, or for wrong arguments.
pub(crate) fn expanded(fields: &[Field]) -> Result<Cow<'_, [Field]>, QueryError> {
    let mentions = |expr: &Expr| influxql::visit::calls(expr).iter().any(|c| c.name == NAME);
    if !fields.iter().any(|field| mentions(&field.expr)) {
        return Ok(Cow::Borrowed(fields));
    }
    let mut all = Vec::with_capacity(fields.len() + 2);
    for field in fields {
        match &field.expr {
            Expr::Call(call) if call.name == NAME && !call.args.iter().any(mentions) => {
                expand(call, field.alias.as_deref(), &mut all)?;
            }
            expr if mentions(expr) => {
                return Err(QueryError::invalid(format!(
                    "{NAME}() gives several columns and cannot be part of an expression"
                )));
            }
            _ => all.push(field.clone()),
        }
    }
    Ok(Cow::Owned(all))
}

fn expand(call: &Call, alias: Option<&str>, all: &mut Vec<Field>) -> Result<(), QueryError> {
    let [of, percentages @ ..] = call.args.as_slice() else { return Err(count(0)) };
    if percentages.is_empty() {
        return Err(count(1));
    }
    let name = alias.unwrap_or(NAME);
    for percentage in percentages {
        let text = match percentage {
            Expr::Integer(n) => n.to_string(),
            Expr::Number(n) => n.to_string(),
            _ => {
                return Err(QueryError::invalid(format!("expected float argument in {NAME}()")));
            }
        };
        let args = vec![of.clone(), percentage.clone()];
        let expr = Expr::Call(Call { name: "percentile".to_owned(), args });
        all.push(Field { expr, alias: Some(format!("{name}_{text}")) });
    }
    Ok(())
}

fn count(got: usize) -> QueryError {
    QueryError::invalid(format!(
        "invalid number of arguments for {NAME}, expected at least 2, got {got}"
    ))
}
