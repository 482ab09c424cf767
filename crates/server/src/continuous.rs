//! Runs continuous queries when they are due, one at a time.
//!
//! When each ran last is known to this process only: after a start each is due at once, and computes
//! what its schedule says for the present.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use influxql::Statement;
use model::{DatabaseId, Interrupt, Name};
use query::{ContinuousSchedule, ContinuousWork, LastRun, QueryContext, QueryError, QueryLimits};

use crate::app::App;

/// What is remembered of a continuous query.
#[derive(Debug)]
struct Known {
    text: Name,
    /// `None`: it cannot be run, or is never due.
    schedule: Option<ContinuousSchedule>,
    ran_ns: Option<i64>,
}

/// The continuous queries that were seen, by database and name.
type AllKnown = HashMap<(DatabaseId, Name), Known>;

/// Looks for continuous queries that are due every so often, for ever. 0: never.
pub(crate) async fn run(app: Arc<App>) {
    let interval = app.config.continuous_query_interval;
    if interval == Duration::ZERO {
        return std::future::pending().await;
    }
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut known = AllKnown::new();
    loop {
        ticks.tick().await;
        let catalog = app.catalog.snapshot();
        if catalog.databases().iter().all(|database| database.continuous_queries.is_empty()) {
            known.clear();
            app.continuous.retain(|_, _| false);
            continue;
        }
        let worker = Arc::clone(&app);
        let looked = tokio::task::spawn_blocking(move || {
            worker.run_due(&mut known);
            known
        });
        known = match looked.await {
            Ok(known) => known,
            Err(failed) => {
                tracing::error!("continuous queries failed by a bug: {failed}");
                AllKnown::new()
            }
        };
    }
}

impl App {
    /// Runs what is due.
    fn run_due(self: &Arc<Self>, known: &mut AllKnown) {
        let catalog = self.catalog.snapshot();
        known.retain(|(id, name), _| {
            let database = catalog.databases().iter().find(|database| database.id == *id);
            database.is_some_and(|d| d.continuous_queries.iter().any(|q| q.name == *name))
        });
        self.continuous.retain(|id, name| known.contains_key(&(id, name.clone())));
        for database in catalog.databases() {
            for query in &database.continuous_queries {
                let now_ns = self.clock.now_ns();
                let key = (database.id, query.name.clone());
                let state = known.entry(key).or_insert_with(|| Known::new(&query.text, now_ns));
                if state.text != query.text {
                    *state = Known::new(&query.text, now_ns);
                    self.continuous.forget(database.id, &query.name);
                }
                let Some(schedule) = &state.schedule else { continue };
                let Some(run) = schedule.due(state.ran_ns, now_ns) else { continue };
                state.ran_ns = Some(run.ran_ns);
                self.continuous.due(database.id, &query.name, schedule.next_ns(run.ran_ns));
                let Some(work) = run.work else { continue };
                let began = Instant::now();
                let outcome = self.run_continuous(&database.name, &work, now_ns);
                self.metrics.continuous_queries.add(1);
                // A query that fails is run again when it is due again.
                if let Err(error) = &outcome {
                    self.metrics.continuous_query_failures.add(1);
                    let (database, name) = (&*database.name, &*query.name);
                    tracing::error!(database, name, "a continuous query failed: {error}");
                }
                let last = LastRun {
                    at_ns: now_ns,
                    start_ns: work.start_ns,
                    end_ns: work.end_ns,
                    took: began.elapsed(),
                    outcome: outcome.map_err(|error| error.to_string()),
                };
                self.continuous.ran(database.id, &query.name, last);
            }
        }
    }

    fn run_continuous(
        self: &Arc<Self>,
        database: &str,
        work: &ContinuousWork,
        now_ns: i64,
    ) -> Result<u64, QueryError> {
        let interrupt = Interrupt::new();
        let (store, catalog) = (Arc::clone(&self.store), Arc::clone(&self.catalog));
        let context = QueryContext {
            database: Some(database.to_owned()),
            budget: self.queries.budget(),
            interrupt: interrupt.clone(),
            limits: QueryLimits {
                max_select_point: self.config.max_select_point,
                max_select_series: self.config.max_select_series,
                max_select_buckets: self.config.max_select_buckets,
            },
            queries: Arc::clone(&self.registry),
            ..QueryContext::new(store, catalog, now_ns)
        };
        // Ends with the server, and by KILL QUERY.
        let id = self.queries.remember(&interrupt);
        let statements: Arc<[Statement]> = Arc::new([work.statement()]);
        let place = self.registry.enter(statements, context.database.clone(), interrupt);
        let ran = work.run(&context);
        drop(place);
        self.queries.forget(id);
        ran
    }
}

impl Known {
    fn new(text: &Name, now_ns: i64) -> Self {
        let schedule = ContinuousSchedule::parse(text, now_ns).unwrap_or_else(|error| {
            tracing::error!("a continuous query cannot be run: {error}: {text}");
            None
        });
        Self { text: text.clone(), schedule, ran_ns: None }
    }
}
