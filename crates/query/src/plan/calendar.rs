//! Functions that need windows of one length, where windows are calendar months.

use influxql::{Call, Expr, Field};

use super::dimensions::{Every, Interval};
use crate::QueryError;
use crate::functions::transform::is_forecast;

/// Refuses functions that have no meaning over windows of different lengths.
///
/// # Errors
/// [`QueryError::Invalid`], naming the function.
pub(crate) fn check(fields: &[Field], interval: Option<&Interval>) -> Result<(), QueryError> {
    if !matches!(interval, Some(Interval { every: Every::Months(_), .. })) {
        return Ok(());
    }
    let calls = fields.iter().flat_map(|field| influxql::visit::calls(&field.expr));
    calls.into_iter().try_for_each(check_call)
}

fn check_call(call: &Call) -> Result<(), QueryError> {
    let name = call.name.as_str();
    if is_forecast(name) {
        return Err(QueryError::invalid(format!(
            "{name}() needs windows of one length, and calendar months are not"
        )));
    }
    let rate = matches!(name, "derivative" | "non_negative_derivative");
    // Its unit is the length of the windows, if no other is given.
    if rate && !matches!(call.args.get(1), Some(Expr::Duration(_))) {
        return Err(QueryError::invalid(format!(
            "{name}() needs a unit where windows are calendar months"
        )));
    }
    Ok(())
}
