//! The statements of one request, executed one after another into one answer.
//!
//! All were parsed before any is executed; after one that fails, the others are not.

use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{Interrupt, Reservation, ResultBatch};
use query::{Answer, Cost, Prepared, QueryContext, QueryError, QueryLimits, Registered};
use render::{Encoder, ZoneOffset};

use super::gate::Need;
use super::kinds::{changes, get_warning};
use super::request::QueryRequest;
use crate::app::App;
use crate::own;

/// A light answer is at most so large, bytes, and takes at most so long, or it is not light.
const LIGHT_BYTES_MAX: usize = 256 << 10;
const LIGHT_TIME_MAX: Duration = Duration::from_millis(20);

/// Rows that are rendered in one step: enough to forget what a step costs, few enough to stay in a
/// cache.
const STEP_ROWS_MAX: usize = 4096;

/// Bytes after which no further series is begun in a step.
const STEP_BYTES_MAX: usize = 64 << 10;

/// Where an execution is.
#[derive(Debug)]
pub(crate) struct Execution {
    app: Arc<App>,
    request: QueryRequest,
    context: QueryContext,
    encoder: Encoder,
    /// The statement that is being executed, or will be next.
    at: usize,
    state: State,
    has_failed: bool,
    /// What the encoder holds is counted as the query's.
    held: Option<Reservation>,
    /// The entry among the queries that can be shown and killed.
    _registered: Registered,
}

#[derive(Debug)]
enum State {
    /// Between statements.
    Next,
    /// Planned; waits for a processor.
    Planned(Box<Prepared>),
    /// Its rows are being pulled and rendered.
    Running(Box<Running>),
    /// All is said.
    Ended,
}

#[derive(Debug)]
struct Running {
    answer: Answer,
    /// Rows that were pulled, and the first that is not rendered.
    batch: Option<(ResultBatch, usize)>,
}

/// What one step of an execution brought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// More bytes, maybe.
    Went,
    /// The next step needs this first.
    Needs(Need),
    Ended,
}

impl Execution {
    pub(crate) fn new(app: &Arc<App>, request: QueryRequest) -> Self {
        let config = &app.config;
        let interrupt = match config.query_timeout {
            Duration::ZERO => Interrupt::new(),
            timeout => Interrupt::with_deadline(Instant::now() + timeout),
        };
        let chunk_rows = request.options.chunk_rows.map_or(STEP_ROWS_MAX, Into::into);
        let (store, catalog) = (Arc::clone(&app.store), Arc::clone(&app.catalog));
        let context = QueryContext {
            database: request.database.clone(),
            policy: request.policy.clone(),
            batch_rows: chunk_rows.min(STEP_ROWS_MAX),
            user: request.user.clone(),
            budget: app.queries.budget(),
            interrupt,
            limits: QueryLimits {
                max_select_point: config.max_select_point,
                max_select_series: config.max_select_series,
                max_select_buckets: config.max_select_buckets,
            },
            queries: Arc::clone(&app.registry),
            continuous: Arc::clone(&app.continuous),
            ..QueryContext::new(store, catalog, app.clock.now_ns())
        };
        let registered = app.registry.enter(
            Arc::clone(&request.statements),
            request.database.clone(),
            context.interrupt.clone(),
        );
        let encoder = Encoder::new(request.options);
        let app = Arc::clone(app);
        Self {
            app,
            request,
            context,
            encoder,
            at: 0,
            state: State::Next,
            has_failed: false,
            held: None,
            _registered: registered,
        }
    }

    pub(crate) fn interrupt(&self) -> &Interrupt {
        &self.context.interrupt
    }

    /// Whether the answer tells of an error.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    pub(crate) fn is_chunked(&self) -> bool {
        self.request.options.chunk_rows.is_some()
    }

    /// Executes what is light; then says what it needs for the rest, if there is one.
    pub(crate) fn advance_light(&mut self) -> Option<Need> {
        let start = Instant::now();
        loop {
            match self.step(None) {
                Step::Ended => return None,
                Step::Needs(need) => return Some(need),
                Step::Went => {}
            }
            let large = self.encoder.buffered_bytes() > LIGHT_BYTES_MAX;
            if large || start.elapsed() > LIGHT_TIME_MAX {
                return Some(Need::Processor);
            }
        }
    }

    /// Goes on by a little, with what is there for it: nothing but the thread that serves
    /// connections if `has` is `None`.
    pub(crate) fn step(&mut self, has: Option<Need>) -> Step {
        match std::mem::replace(&mut self.state, State::Next) {
            State::Ended => {
                self.state = State::Ended;
                Step::Ended
            }
            State::Next => self.begin(has),
            State::Planned(prepared) if has == Some(Need::Processor) => self.run(*prepared),
            State::Planned(prepared) => {
                self.state = State::Planned(prepared);
                Step::Needs(Need::Processor)
            }
            State::Running(running) => self.go_on(running),
        }
    }

    /// Plans the next statement, and starts it if it may.
    fn begin(&mut self, has: Option<Need>) -> Step {
        let Some(statement) = self.request.statements.get(self.at) else {
            self.encoder.end();
            self.state = State::Ended;
            return Step::Went;
        };
        if has.is_none() && (changes(statement) || own::is_own(statement)) {
            return Step::Needs(Need::Thread);
        }
        self.app.metrics.statements.add(1);
        if let Some(answer) = own::answer(&self.app, statement) {
            self.encoder.begin_statement_in(self.id(), None, answer.documents());
            self.state = State::Running(Box::new(Running { answer, batch: None }));
            return Step::Went;
        }
        self.context.points_read = Arc::default();
        self.context.threads = self.app.queries.threads(has == Some(Need::Processor));
        match query::prepare(statement, &self.context) {
            Err(error) => {
                self.encoder.begin_statement(self.id(), None);
                self.fail(&error)
            }
            Ok(prepared) if prepared.cost() == Cost::Heavy && has != Some(Need::Processor) => {
                self.state = State::Planned(Box::new(prepared));
                Step::Needs(Need::Processor)
            }
            Ok(prepared) => self.run(prepared),
        }
    }

    fn run(&mut self, prepared: Prepared) -> Step {
        match prepared.run() {
            Err(error) => {
                self.encoder.begin_statement(self.id(), None);
                self.fail(&error)
            }
            Ok(answer) => {
                let zone = answer.zone().cloned();
                let zone = zone.map(|zone| ZoneOffset::new(move |at_ns| zone.offset_s(at_ns)));
                self.encoder.begin_statement_in(self.id(), zone, answer.documents());
                let statement = &self.request.statements[self.at];
                if let Some(text) = get_warning(statement).filter(|_| self.request.is_get) {
                    self.encoder.message("warning", &text);
                }
                for message in answer.messages() {
                    self.encoder.message(message.level, &message.text);
                }
                self.state = State::Running(Box::new(Running { answer, batch: None }));
                Step::Went
            }
        }
    }

    /// Renders some rows, after it has pulled more if there are none: of one series, or of as many as are there
    /// unless the client wants each soon.
    fn go_on(&mut self, mut running: Box<Running>) -> Step {
        let mut rows = 0;
        loop {
            if self.encoder.is_full() {
                return self.end_statement();
            }
            let (batch, from) = match running.batch.take() {
                Some(pulled) => pulled,
                None => match running.answer.next() {
                    Ok(Some(batch)) => {
                        let from = batch.rows.start;
                        (batch, from)
                    }
                    Ok(None) => return self.end_statement(),
                    Err(error) => return self.fail(&error),
                },
            };
            let to = batch.rows.end.min(from + STEP_ROWS_MAX);
            self.encoder.rows(&batch, from..to);
            if let Err(error) = self.count_memory() {
                return self.fail(&error);
            }
            running.batch = (to < batch.rows.end).then_some((batch, to));
            // A series may have no rows, and counts all the same.
            rows += 1.max(to - from);
            let is_much = rows >= STEP_ROWS_MAX || self.buffered_bytes() >= STEP_BYTES_MAX;
            let is_next_wanted = running.answer.is_ready() && !self.is_chunked();
            if is_much || running.batch.is_some() || !is_next_wanted {
                self.state = State::Running(running);
                return Step::Went;
            }
        }
    }

    fn end_statement(&mut self) -> Step {
        self.encoder.end_statement();
        self.at += 1;
        Step::Went
    }

    /// Ends the statement that was begun with an error, and leaves out those behind it.
    fn fail(&mut self, error: &QueryError) -> Step {
        self.has_failed = true;
        self.app.metrics.statements_failed.add(1);
        let statement = &self.request.statements[self.at];
        if matches!(error, QueryError::Store(_)) {
            tracing::error!("a statement failed: {error}: {statement}");
        } else {
            tracing::debug!("a statement failed: {error}: {statement}");
        }
        let behind = self.request.statements.len() - self.at - 1;
        let behind = u32::try_from(behind).unwrap_or(u32::MAX);
        self.encoder.fail_statement(&error.to_string(), behind);
        self.at = self.request.statements.len();
        Step::Went
    }

    fn id(&self) -> u32 {
        u32::try_from(self.at).unwrap_or(u32::MAX)
    }

    /// Counts what the encoder holds.
    fn count_memory(&mut self) -> Result<(), QueryError> {
        let bytes = self.encoder.buffered_bytes();
        match &mut self.held {
            Some(held) => held.resize(bytes)?,
            // What a light answer may hold anyway is not worth counting.
            None if bytes <= LIGHT_BYTES_MAX => {}
            None => self.held = Some(self.context.budget.reserve(bytes)?),
        }
        Ok(())
    }

    pub(crate) fn buffered_bytes(&self) -> usize {
        self.encoder.buffered_bytes()
    }

    /// The bytes that can be sent.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.encoder.take()
    }
}

/// The answer to a request that is not executed, for a reason that is told as its statement's.
pub(crate) fn only_error(request: &QueryRequest, text: &str) -> Vec<u8> {
    let mut encoder = Encoder::new(request.options);
    encoder.begin_statement(0, None);
    encoder.fail_statement(text, 0);
    encoder.end();
    encoder.take()
}
