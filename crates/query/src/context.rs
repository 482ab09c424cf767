//! What a statement needs to run besides its text.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use catalog::{Catalog, Privilege, User};
use model::{Budget, DatabaseId, Interrupt, MeasurementSchema};
use store::{ScanContext, Store, StoreError};

use crate::{ContinuousStatus, QueryError, QueryRegistry};

/// Everything a statement may use.
#[derive(Clone, Debug)]
pub struct QueryContext {
    /// Where the rows are.
    pub store: Arc<dyn Store>,
    /// Databases and policies.
    pub catalog: Arc<Catalog>,
    /// Database of names without one.
    pub database: Option<String>,
    /// Retention policy of names without one; `None`: the database's default.
    pub policy: Option<String>,
    /// The value of `now()`.
    pub now_ns: i64,
    /// Rows of one [`model::ResultBatch`] at most where functions make them, at least 1. Rows without
    /// functions come as they were read.
    pub batch_rows: usize,
    /// Memory the statement may take.
    pub budget: Budget,
    /// When to stop.
    pub interrupt: Interrupt,
    /// Configured limits.
    pub limits: QueryLimits,
    /// Threads a heavy query may use, at least 1.
    pub threads: usize,
    /// Whether statements that change something are refused.
    pub read_only: bool,
    /// Who asks. `None`: nobody in particular, who sees every database.
    pub user: Option<Arc<User>>,
    /// Sizes that decide between ways of doing the same thing.
    pub tuning: QueryTuning,
    /// Points read so far, for `max-select-point`. One counter a statement.
    pub points_read: Arc<AtomicU64>,
    /// The queries that are being executed, for the statements that show and end them.
    pub queries: Arc<QueryRegistry>,
    /// What continuous queries have done, for the statement that shows it.
    pub continuous: Arc<ContinuousStatus>,
}

/// Limits of SELECT statements; 0 switches one off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryLimits {
    /// Points read.
    pub max_select_point: u64,
    /// Series read.
    pub max_select_series: u64,
    /// Windows of `GROUP BY time()`.
    pub max_select_buckets: u64,
}

/// Sizes that decide between ways of doing the same thing. The answer never depends on them; the
/// defaults are measured, others serve tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryTuning {
    /// Cells (rows times functions) from which several threads share the work.
    pub parallel_cells: u64,
    /// Rows that are read and put in order together, about.
    pub gather_rows: u64,
    /// Rows of the first slice of time that a query with LIMIT reads, at least.
    pub first_slice_rows: u64,
    /// Series with fewer rows share pages, which are read as wholes faster than cut by time.
    pub slice_series_rows: u64,
    /// Of so many series, or more, the first rows with a condition may be those of a few that come first.
    pub first_series: usize,
    /// Slots (groups times windows) that are laid out as a grid at most.
    pub grid_slots: usize,
    /// Bytes of state that groups worked on together may take.
    pub state_bytes: u64,
    /// Rows that functions which keep values read before results are made of them, about, if there are so many groups: what is
    /// kept of them fits into a processor's cache, and few blocks that series share are read for two such parts.
    pub kept_rows: u64,
    /// Rows that such functions read of some windows before results are made of them, about.
    pub window_rows: u64,
    /// Of each series so many at least: a piece of a page is decoded for each part of time.
    pub window_series_rows: u64,
    /// Rows from which a greatest or least value is known from summaries before its time is looked for.
    pub extreme_rows: u64,
    /// With more rows a series it is looked for series by series.
    pub extreme_series_rows: u64,
    /// With so many rows for each point of a selector, or more, other columns are read of the points, once these are known: about as
    /// many texts are decoded in the time that a row takes to find.
    pub beside_rows: u64,
}

impl Default for QueryTuning {
    fn default() -> Self {
        Self {
            parallel_cells: 1 << 22,
            gather_rows: 1 << 17,
            first_slice_rows: 1 << 12,
            slice_series_rows: 1 << 6,
            first_series: 1 << 11,
            grid_slots: 1 << 22,
            state_bytes: 256 << 20,
            kept_rows: 1 << 18,
            window_rows: 1 << 16,
            window_series_rows: 1 << 10,
            extreme_rows: 1 << 16,
            extreme_series_rows: 1 << 13,
            beside_rows: 1 << 11,
        }
    }
}

impl QueryContext {
    /// A context without limits, for one statement.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, catalog: Arc<Catalog>, now_ns: i64) -> Self {
        Self {
            store,
            catalog,
            database: None,
            policy: None,
            now_ns,
            batch_rows: 10_000,
            budget: Budget::unlimited(),
            interrupt: Interrupt::new(),
            limits: QueryLimits::default(),
            threads: 1,
            read_only: false,
            user: None,
            tuning: QueryTuning::default(),
            points_read: Arc::default(),
            queries: Arc::default(),
            continuous: Arc::default(),
        }
    }

    /// Whether who asks may know that a database is there.
    pub(crate) fn sees(&self, database: DatabaseId) -> bool {
        let may = |user: &Arc<User>, privilege| user.may(privilege, Some(database));
        let user = self.user.as_ref();
        user.is_none_or(|user| may(user, Privilege::Read) || may(user, Privilege::Write))
    }

    /// What is known of a measurement; see [`Store::schema`].
    pub(crate) fn schema(
        &self,
        database: DatabaseId,
        measurement: &str,
    ) -> Result<Option<Arc<MeasurementSchema>>, StoreError> {
        self.store.schema(database, measurement, &self.interrupt)
    }

    /// The limits that reads of the store obey.
    pub(crate) fn scan_context(&self) -> ScanContext {
        ScanContext { budget: self.budget.clone(), interrupt: self.interrupt.clone() }
    }

    /// Counts points that were read.
    pub(crate) fn count_points(&self, rows: usize) -> Result<(), QueryError> {
        let limit = self.limits.max_select_point;
        if limit == 0 {
            return Ok(());
        }
        let rows = rows as u64;
        let read = self.points_read.fetch_add(rows, Ordering::Relaxed).saturating_add(rows);
        if read > limit {
            // The spelling is InfluxDB's.
            return Err(QueryError::Limit(format!(
                "max-select-point limit exceeed: ({read}/{limit})"
            )));
        }
        Ok(())
    }
}
