//! Continuous queries: how they are created and shown, and when they are to be run over what.
//!
//! A schedule is pure: what to run follows from the query, the present, and when it ran last. A
//! query runs on the grid of its EVERY; each run computes the windows that ended since, or with FOR
//! those of some time back. Windows missed while nobody ran it are not made up for beyond that.
//!
//! Not here: the clock that runs them (see `server`), where they are kept (see `catalog`).

use influxql::{
    BinaryOp, CreateContinuousQuery, DimensionError, Expr, LogicalOp, Measurement, Params,
    SelectStatement, Source, Statement, VarRef, parse_statement,
};

use crate::answer::{header, text_column};
use crate::exec::stream::Part;
use crate::exec::window::Windows;
use crate::plan::{Every, compile};
use crate::{Answer, QueryContext, QueryError};

/// Creates a continuous query.
pub(crate) fn create(
    create: &CreateContinuousQuery,
    context: &QueryContext,
) -> Result<(), QueryError> {
    let mut complete = create.clone();
    complete_names(&mut complete.select, &create.database, context)?;
    let text = Statement::CreateContinuousQuery(complete).to_string();
    context.catalog.create_continuous_query(&create.database, &create.name, &text)?;
    Ok(())
}

/// Gives every measurement its database and policy: those of the request, or else `own`.
fn complete_names(
    select: &mut SelectStatement,
    own: &str,
    context: &QueryContext,
) -> Result<(), QueryError> {
    if let Some(target) = &mut select.into {
        complete_name(&mut target.database, &mut target.retention_policy, own, context)?;
    }
    select.sources.iter_mut().try_for_each(|source| complete_source(source, own, context))
}

fn complete_source(
    source: &mut Source,
    own: &str,
    context: &QueryContext,
) -> Result<(), QueryError> {
    match source {
        Source::SubQuery(inner) => complete_names(inner, own, context),
        Source::Measurement(Measurement { database, retention_policy, .. }) => {
            complete_name(database, retention_policy, own, context)
        }
        Source::Join(join) => {
            let mut sides = join.sides_mut();
            sides.try_for_each(|side| complete_source(&mut side.source, own, context))
        }
    }
}

fn complete_name(
    database: &mut Option<String>,
    policy: &mut Option<String>,
    own: &str,
    context: &QueryContext,
) -> Result<(), QueryError> {
    let is_missing = |name: &Option<String>| name.as_ref().is_none_or(String::is_empty);
    if is_missing(database) {
        *database = Some(context.database.as_deref().unwrap_or(own).to_owned());
    }
    let name = database.as_deref().unwrap_or(own);
    let snapshot = context.catalog.snapshot();
    let missing = || QueryError::invalid(format!("database not found: {name}"));
    let found = snapshot.database(name).ok_or_else(missing)?;
    if is_missing(policy) {
        *policy = Some(found.default_policy.to_string());
    }
    Ok(())
}

/// Runs SHOW CONTINUOUS QUERIES: a series for each database.
pub(crate) fn show(context: &QueryContext) -> Answer {
    let catalog = context.catalog.snapshot();
    let part = |database: &std::sync::Arc<catalog::Database>| {
        let queries = database.continuous_queries.iter();
        let columns = vec![
            text_column(queries.clone().map(|query| &*query.name)),
            text_column(queries.map(|query| &*query.text)),
        ];
        Part::new(header(&database.name, &["name", "query"]), columns)
    };
    Answer::ready(catalog.databases().iter().map(part).collect())
}

/// When a continuous query is to be run.
#[derive(Debug)]
pub struct ContinuousSchedule {
    select: SelectStatement,
    windows: Windows,
    offset_ns: i64,
    every_ns: i64,
    for_ns: i64,
    every: Windows,
}

/// One run of a continuous query.
#[derive(Clone, Debug, PartialEq)]
pub struct ContinuousRun {
    /// When it was due, on the query's grid: what the next run follows.
    pub ran_ns: i64,
    /// What to execute; `None`: no window has ended.
    pub statement: Option<Statement>,
}

impl ContinuousSchedule {
    /// The schedule of the query that `text` creates; `None`: it has no windows and is never run.
    ///
    /// # Errors
    /// [`QueryError::Invalid`] if the text is no such statement, or its SELECT cannot be run.
    pub fn parse(text: &str, now_ns: i64) -> Result<Option<Self>, QueryError> {
        let statement = parse_statement(text, &Params::new())
            .map_err(|error| QueryError::invalid(error.to_string()))?;
        let Statement::CreateContinuousQuery(create) = statement else {
            return Err(QueryError::invalid("not a continuous query"));
        };
        let compiled = compile(&create.select, now_ns)?;
        let Some(interval) = &compiled.interval else { return Ok(None) };
        let Every::Fixed(length_ns) = interval.every else {
            return Err(QueryError::invalid(DimensionError::Calendar.to_string()));
        };
        let or = |given: i64, default: i64| if given > 0 { given } else { default };
        let every_ns = or(create.resample_every_ns, length_ns);
        Ok(Some(Self {
            windows: Windows::new(length_ns, 0, compiled.zone.clone()),
            offset_ns: interval.offset_ns,
            every_ns,
            for_ns: or(create.resample_for_ns, length_ns.max(every_ns)),
            every: Windows::new(every_ns, 0, compiled.zone.clone()),
            select: *create.select,
        }))
    }

    /// The run that is due at `now_ns`, after one at `last_ns` or as the first; `None`: none is.
    #[must_use]
    pub fn due(&self, last_ns: Option<i64>, now_ns: i64) -> Option<ContinuousRun> {
        let due_ns = last_ns.map_or(now_ns, |last| last.saturating_add(self.every_ns));
        if due_ns > now_ns {
            return None;
        }
        let length_ns = self.windows.every_ns;
        let aligned = |windows: &Windows, time: i64| {
            let start = windows.at(time.saturating_sub(self.offset_ns)).start;
            start.saturating_add(self.offset_ns)
        };
        let first = due_ns.saturating_add(length_ns).saturating_sub(self.for_ns).saturating_sub(1);
        let shortest = self.every_ns.min(length_ns);
        let last = now_ns.saturating_add(length_ns).saturating_sub(shortest);
        let start_ns = aligned(&self.windows, first);
        let end_ns = aligned(&self.windows, last);
        let statement = (end_ns > start_ns).then(|| self.over(start_ns, end_ns));
        Some(ContinuousRun { ran_ns: aligned(&self.every, now_ns), statement })
    }

    /// The SELECT over the times from `start_ns` to before `end_ns`.
    fn over(&self, start_ns: i64, end_ns: i64) -> Statement {
        let mut select = self.select.clone();
        let bound = |op: BinaryOp, time: i64| Expr::Binary {
            op,
            lhs: Box::new(Expr::VarRef(VarRef::new("time"))),
            rhs: Box::new(Expr::Integer(time)),
        };
        let mut terms = match select.condition.take() {
            None => Vec::new(),
            Some(Expr::Logical { op: LogicalOp::And, terms }) => terms,
            Some(other) => vec![Expr::Paren(Box::new(other))],
        };
        terms.extend([bound(BinaryOp::GtEq, start_ns), bound(BinaryOp::Lt, end_ns)]);
        select.condition = Some(Expr::Logical { op: LogicalOp::And, terms });
        Statement::Select(Box::new(select))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000_000_000;
    const HOUR: i64 = 60 * MINUTE;

    fn schedule(resample: &str, group: &str) -> ContinuousSchedule {
        let text = format!(
            "CREATE CONTINUOUS QUERY q ON d {resample} BEGIN SELECT mean(v) INTO d.p.t FROM d.p.m \
             WHERE host = 'a' GROUP BY {group} END"
        );
        ContinuousSchedule::parse(&text, 0).unwrap().unwrap()
    }

    /// Start and end of what is run, in minutes, and when it is said to have run.
    fn range(run: &ContinuousRun) -> (Option<(i64, i64)>, i64) {
        let bounds = run.statement.as_ref().map(|statement| {
            let Statement::Select(select) = statement else { panic!("{statement}") };
            let Some(Expr::Logical { terms, .. }) = &select.condition else { panic!("{select:?}") };
            let bound = |at: usize| match &terms[at] {
                Expr::Binary { rhs, .. } => match **rhs {
                    Expr::Integer(ns) => ns / MINUTE,
                    _ => panic!("{terms:?}"),
                },
                _ => panic!("{terms:?}"),
            };
            assert_eq!(terms.len(), 3);
            (bound(1), bound(2))
        });
        (bounds, run.ran_ns / MINUTE)
    }

    #[test]
    fn the_window_that_ended_is_computed() {
        let plain = schedule("", "time(1h)");
        let run = plain.due(None, 10 * HOUR + 5 * MINUTE).unwrap();
        assert_eq!(range(&run), (None, 600), "none has ended since");
        assert_eq!(plain.due(Some(10 * HOUR), 11 * HOUR - 1), None);
        let run = plain.due(Some(10 * HOUR), 11 * HOUR + MINUTE).unwrap();
        assert_eq!(range(&run), (Some((600, 660)), 660));
        // Nobody ran it for a while: the windows since the one that was due.
        let run = plain.due(Some(10 * HOUR), 14 * HOUR).unwrap();
        assert_eq!(range(&run), (Some((600, 840)), 840));
    }

    #[test]
    fn every_below_the_window_computes_the_open_one_again() {
        let often = schedule("RESAMPLE EVERY 10m", "time(1h)");
        let run = often.due(Some(10 * HOUR), 10 * HOUR + 10 * MINUTE).unwrap();
        assert_eq!(range(&run), (Some((600, 660)), 610));
        assert_eq!(often.due(Some(10 * HOUR + 10 * MINUTE), 10 * HOUR + 19 * MINUTE), None);
    }

    #[test]
    fn every_and_for_above_the_window_compute_several() {
        let run = schedule("RESAMPLE EVERY 2h", "time(1h)").due(Some(8 * HOUR), 10 * HOUR).unwrap();
        assert_eq!(range(&run), (Some((480, 600)), 600));
        let run = schedule("RESAMPLE FOR 3h", "time(1h)").due(Some(9 * HOUR), 10 * HOUR).unwrap();
        assert_eq!(range(&run), (Some((420, 600)), 600));
    }

    #[test]
    fn offsets_move_the_grid() {
        let moved = schedule("", "time(1h, 15m)");
        let run = moved.due(Some(9 * HOUR + 15 * MINUTE), 10 * HOUR + 16 * MINUTE).unwrap();
        assert_eq!(range(&run), (Some((555, 615)), 615));
    }

    #[test]
    fn without_windows_it_never_runs() {
        let text = "CREATE CONTINUOUS QUERY q ON d BEGIN SELECT v INTO d.p.t FROM d.p.m END";
        assert!(ContinuousSchedule::parse(text, 0).unwrap().is_none());
        assert!(ContinuousSchedule::parse("SHOW DATABASES", 0).is_err());
    }
}
