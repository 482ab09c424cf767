//! The dimensions of `GROUP BY`.

use influxql::time::{looks_like_time, parse_time};
use influxql::{Expr, FoldContext, SelectStatement, TimeZone, Timestamp, reduce};

use crate::QueryError;

/// Seconds from 0001-01-01 to 1970-01-01: offsets given as instants count from the former.
const YEAR_ONE_S: i128 = 62_135_596_800;

/// `time(every, offset)`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub every: Every,
    pub offset_ns: i64,
}

/// The length of windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Every {
    /// Nanoseconds, positive.
    Fixed(i64),
    /// Calendar months, at least one.
    Months(u32),
}

/// The dimensions but time, and the interval if there is one.
///
/// # Errors
/// [`QueryError::Invalid`] for what is no dimension.
pub(crate) fn check(
    statement: &SelectStatement,
    fold: &FoldContext<'_>,
    now_ns: i64,
    zone: &dyn TimeZone,
) -> Result<(Vec<Expr>, Option<Interval>), QueryError> {
    let mut names = Vec::new();
    let mut interval = None;
    let mut seen_time = false;
    for dimension in &statement.dimensions {
        match reduce(dimension.clone(), fold) {
            Expr::VarRef(var) if var.is_time() => {
                return Err(QueryError::invalid(
                    "time() is a function and expects at least one argument",
                ));
            }
            Expr::Call(call) => {
                if call.name != "time" {
                    return Err(QueryError::invalid("only time() calls allowed in dimensions"));
                }
                if call.args.is_empty() || call.args.len() > 2 {
                    return Err(QueryError::invalid("time dimension expected 1 or 2 arguments"));
                }
                let every = match call.args[0] {
                    Expr::Duration(ns) => Every::Fixed(ns),
                    Expr::Months(months) => Every::Months(months),
                    _ => {
                        return Err(QueryError::invalid(
                            "time dimension must have duration argument",
                        ));
                    }
                };
                if seen_time {
                    return Err(QueryError::invalid("multiple time dimensions not allowed"));
                }
                seen_time = true;
                if matches!(every, Every::Fixed(..=0) | Every::Months(0)) {
                    // InfluxDB takes such an interval for none.
                    continue;
                }
                let offset_ns = match (call.args.get(1), every) {
                    (Some(arg), Every::Fixed(every_ns)) => offset(arg, every_ns, now_ns, zone)?,
                    (Some(_), Every::Months(_)) => {
                        return Err(QueryError::invalid(
                            "time dimension of calendar months takes no offset",
                        ));
                    }
                    (None, _) => 0,
                };
                interval = Some(Interval { every, offset_ns });
            }
            dimension @ (Expr::VarRef(_) | Expr::Wildcard(_) | Expr::Regex(_)) => {
                names.push(dimension);
            }
            _ => return Err(QueryError::invalid("only time and tag dimensions allowed")),
        }
    }
    Ok((names, interval))
}

fn offset(arg: &Expr, every_ns: i64, now_ns: i64, zone: &dyn TimeZone) -> Result<i64, QueryError> {
    match arg {
        Expr::Duration(ns) => Ok(ns % every_ns),
        Expr::Time(at) => Ok(beyond_grid(*at, every_ns)),
        Expr::Call(call) if call.name != "now" => {
            Err(QueryError::invalid("time dimension offset function must be now()"))
        }
        Expr::Call(call) if !call.args.is_empty() => {
            Err(QueryError::invalid("time dimension offset now() function requires no arguments"))
        }
        Expr::Call(_) => Ok(beyond_grid(Timestamp::from_ns(now_ns), every_ns)),
        Expr::String(text) if looks_like_time(text) => {
            let at = parse_time(text, zone)
                .ok_or_else(|| QueryError::invalid("invalid timestamp string"))?;
            Ok(beyond_grid(at, every_ns))
        }
        _ => Err(QueryError::invalid("time dimension offset must be duration or now()")),
    }
}

/// How far `at` lies behind a grid of `every_ns` that starts in the year 1.
fn beyond_grid(at: Timestamp, every_ns: i64) -> i64 {
    let epoch = Timestamp::from_ns(0);
    let since_epoch = match at.to_ns() {
        Some(ns) => i128::from(ns),
        None => i128::from(at.since_ns(epoch)),
    };
    (since_epoch + YEAR_ONE_S * 1_000_000_000).rem_euclid(i128::from(every_ns)) as i64
}
