//! The checks InfluxDB makes when it compiles a SELECT, with its texts.

use std::sync::Arc;

use influxql::{
    Call, Expr, Field, Fill, FoldContext, SelectStatement, SortField, Source, reduce,
    split_condition,
};
use model::{MAX_TIME_NS, MIN_TIME_NS, Scalar, TimeRange};

use super::calendar;
use super::dimensions::{self, Every, Interval};
use super::fields::{FieldChecks, WindowUse, check_condition};
use super::join::CompiledJoin;
use super::lower::constant;
use super::widened;
use crate::QueryError;
use crate::exec::expression::MathFunction;
use crate::exec::window::Windows;
use crate::zone::Zone;

/// A SELECT whose structure is sound.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub ascending: bool,
    pub limit: u64,
    pub offset: u64,
    pub series_limit: u64,
    pub series_offset: u64,
    pub range: TimeRange,
    /// Whether the range ends at the present because nobody says where.
    pub is_open: bool,
    /// Times that may be looked at beyond the range.
    pub reach: TimeRange,
    /// How many windows before the range functions look at.
    pub lead: u64,
    pub interval: Option<Interval>,
    pub fill: Fill,
    /// The condition of HAVING.
    pub having: Option<Expr>,
    /// ORDER BY, unless it is about time alone.
    pub order: Vec<SortField>,
    pub zone: Option<Arc<Zone>>,
    /// Selected expressions with constants folded, `time` left out.
    pub fields: Vec<Field>,
    pub time_column: Option<String>,
    /// Dimensions but `time()`.
    pub dimensions: Vec<Expr>,
    /// The condition without times.
    pub condition: Option<Expr>,
    pub sources: Vec<CompiledSource>,
}

/// A source whose structure is sound.
#[derive(Debug)]
pub(crate) enum CompiledSource {
    Measurement(influxql::Measurement),
    Subquery(Box<Compiled>),
    Join(Box<CompiledJoin>),
}

impl Compiled {
    /// Whether this or a subquery ends at the present because nobody says where. Joins are not looked
    /// into.
    pub(crate) fn ends_now(&self) -> bool {
        let inner = |source: &CompiledSource| match source {
            CompiledSource::Subquery(inner) => inner.ends_now(),
            CompiledSource::Measurement(_) | CompiledSource::Join(_) => false,
        };
        self.is_open || self.sources.iter().any(inner)
    }

    /// The times of rows that a source is asked for.
    pub(super) fn source_range(&self) -> TimeRange {
        self.widened(self.lead)
    }

    /// The range, begun some windows earlier.
    fn widened(&self, windows: u64) -> TimeRange {
        widened(self.range, self.windows().as_ref(), windows, self.ascending)
    }

    /// The windows to cut time into.
    pub(crate) fn windows(&self) -> Option<Windows> {
        let interval = self.interval.as_ref()?;
        Some(match interval.every {
            Every::Fixed(ns) => Windows::new(ns, interval.offset_ns, self.zone.clone()),
            Every::Months(months) => Windows::calendar(months, self.zone.clone()),
        })
    }
}

/// Checks a SELECT and what it selects from.
///
/// # Errors
/// [`QueryError::Invalid`] with InfluxDB's text; [`QueryError::Unsupported`] for what comes later.
pub(crate) fn compile(statement: &SelectStatement, now_ns: i64) -> Result<Compiled, QueryError> {
    compile_within(statement, now_ns, None)
}

fn compile_within(
    statement: &SelectStatement,
    now_ns: i64,
    outer: Option<&Compiled>,
) -> Result<Compiled, QueryError> {
    // A subquery without a zone of its own works in UTC, whatever the query around it shows.
    let zone = match &statement.time_zone {
        Some(name) => Some(Arc::new(Zone::load(name)?)),
        None => None,
    };
    let mut compiled = preprocess(statement, now_ns, zone)?;
    let own = if compiled.interval.is_some() { WindowUse::Own } else { WindowUse::None };
    let mut windows = own;
    if let Some(outer) = outer {
        let by_time = !statement.order_by.is_empty() && compiled.order.is_empty();
        if by_time && compiled.ascending != outer.ascending {
            return Err(QueryError::invalid(
                "subqueries must be ordered in the same direction as the query itself",
            ));
        }
        compiled.ascending = outer.ascending;
        compiled.range = compiled.range.intersect(&outer.source_range());
        // Where the query around it ends before, the present does not matter.
        compiled.is_open &= compiled.range.max == now_ns;
        if outer.interval.is_some() && compiled.interval.is_none() {
            compiled.interval.clone_from(&outer.interval);
            windows = WindowUse::Inherited;
        }
    }
    let mut checks = FieldChecks::new(statement.limit, windows);
    let (fields, time_column) = checks.check(statement)?;
    checks.check_together(&compiled, fields.len())?;
    compiled.lead = checks.lead;
    compiled.reach = match outer {
        Some(outer) => outer.reach,
        None => compiled.widened(checks.extra_windows),
    };
    calendar::check(&fields, compiled.interval.as_ref())?;
    compiled.fields = fields;
    compiled.time_column = time_column;
    let is_kept = outer.is_some() || statement.into.is_some() || compiled.having.is_some();
    if is_kept && checks.has_calls() && compiled.fill == Fill::Null {
        // The query around it, HAVING (which is one), or the target would leave the nulls out anyway.
        compiled.fill = Fill::None;
    }
    let mut sources = Vec::with_capacity(statement.sources.len());
    for source in &statement.sources {
        sources.push(compile_source(source, now_ns, &compiled)?);
    }
    compiled.sources = sources;
    Ok(compiled)
}

/// Checks what the SELECT `outer` selects from.
pub(super) fn compile_source(
    source: &Source,
    now_ns: i64,
    outer: &Compiled,
) -> Result<CompiledSource, QueryError> {
    Ok(match source {
        Source::Measurement(measurement) => CompiledSource::Measurement(measurement.clone()),
        Source::SubQuery(inner) => {
            CompiledSource::Subquery(Box::new(compile_within(inner, now_ns, Some(outer))?))
        }
        Source::Join(join) => {
            CompiledSource::Join(Box::new(CompiledJoin::new(join, now_ns, outer)?))
        }
    })
}

/// Time range, condition and dimensions.
fn preprocess(
    statement: &SelectStatement,
    now_ns: i64,
    zone: Option<Arc<Zone>>,
) -> Result<Compiled, QueryError> {
    let utc = influxql::Utc;
    let local: &dyn influxql::TimeZone = match &zone {
        Some(zone) => &**zone,
        None => &utc,
    };
    let (condition, given) = match &statement.condition {
        Some(condition) => split_condition(condition, now_ns, local)?,
        None => (None, influxql::TimeRange::default()),
    };
    if let Some(condition) = &condition {
        check_condition(condition)?;
    }
    let fold = FoldContext { now_ns: None, zone: local };
    let (dimensions, interval) = dimensions::check(statement, &fold, now_ns, local)?;
    let range = TimeRange {
        min: given.min_ns.unwrap_or(MIN_TIME_NS).max(MIN_TIME_NS),
        // Windows must end somewhere: without a bound at the present.
        max: given.max_ns.unwrap_or(if interval.is_some() { now_ns } else { MAX_TIME_NS }),
    };
    Ok(Compiled {
        ascending: statement.time_ascending(),
        limit: statement.limit,
        offset: statement.offset,
        series_limit: statement.series_limit,
        series_offset: statement.series_offset,
        range,
        is_open: given.max_ns.is_none() && interval.is_some(),
        reach: range,
        lead: 0,
        interval,
        fill: statement.fill,
        having: having(statement, now_ns, local)?,
        order: match statement.sorts_by_columns() {
            true => statement.order_by.clone(),
            false => Vec::new(),
        },
        zone,
        fields: Vec::new(),
        time_column: None,
        dimensions,
        condition,
        sources: Vec::new(),
    })
}

/// The condition of HAVING with its constants folded; one that always holds is none.
fn having(
    statement: &SelectStatement,
    now_ns: i64,
    local: &dyn influxql::TimeZone,
) -> Result<Option<Expr>, QueryError> {
    let Some(having) = &statement.having else { return Ok(None) };
    let (condition, time) = split_condition(having, now_ns, local)?;
    if time != influxql::TimeRange::default() {
        return Err(QueryError::invalid("HAVING is about columns and tags, WHERE about time"));
    }
    if let Some(condition) = &condition {
        check_condition(condition)?;
    }
    Ok(condition)
}

/// An expression with mathematical functions of numbers replaced by their values.
fn fold_calls(expr: Expr) -> Expr {
    match expr {
        Expr::Binary { op, lhs, rhs } => Expr::binary(op, fold_calls(*lhs), fold_calls(*rhs)),
        Expr::Paren(inner) => Expr::Paren(Box::new(fold_calls(*inner))),
        Expr::Call(Call { name, args }) => {
            let folded = args.into_iter().map(fold_calls);
            let args: Vec<_> = folded.map(|arg| reduce(arg, &FoldContext::default())).collect();
            let constants = || args.iter().map(constant).collect::<Option<Vec<_>>>();
            let value = MathFunction::by_name(&name).zip(constants());
            match value.and_then(|(function, values)| function.of_constants(&values)) {
                Some(Scalar::Float(value)) => Expr::Number(value),
                Some(Scalar::Integer(value)) => Expr::Integer(value),
                Some(Scalar::Unsigned(value)) => Expr::Unsigned(value),
                _ => Expr::Call(Call { name, args }),
            }
        }
        other => other,
    }
}

/// A selected expression with its constants folded.
pub(crate) fn fold_field(field: &Field) -> Field {
    let expr = fold_calls(reduce(field.expr.clone(), &FoldContext::default()));
    Field { expr: reduce(expr, &FoldContext::default()), alias: field.alias.clone() }
}
