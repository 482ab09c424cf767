//! When a continuous query is to be run over what: a pure function of the query, the present, and
//! when it ran last.
//!
//! A query runs on the grid of its EVERY; each run computes the windows that ended since, or with FOR
//! those of some time back. Windows missed while nobody ran it are not made up for beyond that, unless
//! somebody asks for them ([`ContinuousSchedule::past`]).

use influxql::{
    BinaryOp, DimensionError, Expr, LogicalOp, Params, SelectStatement, Statement, TimeRange,
    VarRef, parse_statement,
};

use crate::exec::window::Windows;
use crate::plan::{Every, compile};
use crate::{QueryContext, QueryError, into};

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
    /// What to compute; `None`: no window has ended.
    pub work: Option<ContinuousWork>,
}

/// Windows to compute, those from `start_ns` to before `end_ns`.
#[derive(Clone, Debug, PartialEq)]
pub struct ContinuousWork {
    /// Start of the first window; `None`: that of the first row.
    pub start_ns: Option<i64>,
    /// End of the last window.
    pub end_ns: i64,
    select: Box<SelectStatement>,
}

impl ContinuousWork {
    /// What to execute.
    #[must_use]
    pub fn statement(&self) -> Statement {
        Statement::Select(self.select.clone())
    }

    /// Computes the windows and writes them; gives the number of rows written.
    ///
    /// # Errors
    /// As of the SELECT INTO that it is.
    pub fn run(&self, context: &QueryContext) -> Result<u64, QueryError> {
        let target = self.select.into.as_ref();
        let target = target.ok_or_else(|| QueryError::invalid("a continuous query needs INTO"))?;
        into::copy(&self.select, target, context)
    }
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
        let due_ns = last_ns.map_or(now_ns, |last| self.next_ns(last));
        if due_ns > now_ns {
            return None;
        }
        let length_ns = self.windows.every_ns;
        let first = due_ns.saturating_add(length_ns).saturating_sub(self.for_ns).saturating_sub(1);
        let shortest = self.every_ns.min(length_ns);
        let last = now_ns.saturating_add(length_ns).saturating_sub(shortest);
        let start_ns = self.aligned(&self.windows, first);
        let end_ns = self.aligned(&self.windows, last);
        let work = (end_ns > start_ns).then(|| self.over(Some(start_ns), end_ns));
        Some(ContinuousRun { ran_ns: self.aligned(&self.every, now_ns), work })
    }

    /// The windows that have ended and hold one of the times; `None`: there is none.
    #[must_use]
    pub fn past(&self, time: TimeRange, now_ns: i64) -> Option<ContinuousWork> {
        let start_ns = time.min_ns.map(|time| self.aligned(&self.windows, time));
        let ended_ns = self.aligned(&self.windows, now_ns);
        let wanted_ns = time.max_ns.map_or(ended_ns, |last| {
            let window = self.windows.at(last.saturating_sub(self.offset_ns));
            window.end.saturating_add(self.offset_ns)
        });
        let end_ns = wanted_ns.min(ended_ns);
        let is_some = start_ns.is_none_or(|start| start < end_ns);
        is_some.then(|| self.over(start_ns, end_ns))
    }

    /// When it is due after it ran last.
    #[must_use]
    pub fn next_ns(&self, ran_ns: i64) -> i64 {
        ran_ns.saturating_add(self.every_ns)
    }

    /// Time between two runs.
    pub(crate) fn every_ns(&self) -> i64 {
        self.every_ns
    }

    /// Time that a run computes.
    pub(crate) fn for_ns(&self) -> i64 {
        self.for_ns
    }

    fn aligned(&self, windows: &Windows, time: i64) -> i64 {
        let start = windows.at(time.saturating_sub(self.offset_ns)).start;
        start.saturating_add(self.offset_ns)
    }

    /// The SELECT over the times from `start_ns` to before `end_ns`.
    fn over(&self, start_ns: Option<i64>, end_ns: i64) -> ContinuousWork {
        let mut select = Box::new(self.select.clone());
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
        terms.extend(start_ns.map(|start| bound(BinaryOp::GtEq, start)));
        terms.push(bound(BinaryOp::Lt, end_ns));
        select.condition = Some(match <[Expr; 1]>::try_from(terms) {
            Ok([only]) => only,
            Err(terms) => Expr::Logical { op: LogicalOp::And, terms },
        });
        ContinuousWork { start_ns, end_ns, select }
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
        let bounds = run.work.as_ref().map(|work| {
            let select = &work.select;
            let Some(Expr::Logical { terms, .. }) = &select.condition else { panic!("{select:?}") };
            let bound = |at: usize| match &terms[at] {
                Expr::Binary { rhs, .. } => match **rhs {
                    Expr::Integer(ns) => ns / MINUTE,
                    _ => panic!("{terms:?}"),
                },
                _ => panic!("{terms:?}"),
            };
            assert_eq!(terms.len(), 3);
            assert_eq!(
                (work.start_ns.unwrap(), work.end_ns),
                (bound(1) * MINUTE, bound(2) * MINUTE)
            );
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
    fn the_past_is_computed_in_whole_windows_that_ended() {
        let moved = schedule("", "time(1h, 15m)");
        let now = 100 * HOUR;
        let past = |min: Option<i64>, max: Option<i64>| {
            let work = moved.past(TimeRange { min_ns: min, max_ns: max }, now)?;
            let minutes = (work.start_ns.map(|start| start / MINUTE), work.end_ns / MINUTE);
            Some((minutes, work.statement().to_string()))
        };
        let (minutes, text) = past(Some(10 * HOUR), Some(12 * HOUR)).unwrap();
        assert_eq!(minutes, (Some(9 * 60 + 15), 12 * 60 + 15));
        assert!(
            text.contains("WHERE (host = 'a') AND time >= 33300000000000 AND time < "),
            "{text}"
        );
        // The edges of a window.
        let edges = past(Some(10 * HOUR + 15 * MINUTE), Some(11 * HOUR + 15 * MINUTE - 1));
        assert_eq!(edges.unwrap().0, (Some(615), 675));
        // What has not ended is not computed.
        assert_eq!(past(Some(98 * HOUR), None).unwrap().0, (Some(97 * 60 + 15), 99 * 60 + 15));
        assert_eq!(past(Some(98 * HOUR), Some(i64::MAX)).unwrap().0.1, 99 * 60 + 15);
        assert_eq!(past(Some(99 * HOUR + 15 * MINUTE), None), None);
        assert_eq!(past(Some(200 * HOUR), Some(300 * HOUR)), None);
        // From the first row on.
        let (minutes, text) = past(None, Some(0)).unwrap();
        assert_eq!(minutes, (None, 15));
        assert!(!text.contains(">="), "{text}");
    }

    #[test]
    fn without_windows_it_never_runs() {
        let text = "CREATE CONTINUOUS QUERY q ON d BEGIN SELECT v INTO d.p.t FROM d.p.m END";
        assert!(ContinuousSchedule::parse(text, 0).unwrap().is_none());
        assert!(ContinuousSchedule::parse("SHOW DATABASES", 0).is_err());
    }
}
