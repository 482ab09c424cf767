//! What an answer rests on, so that it can be given again as long as all of that is the same.
//!
//! An answer rests on the catalog (names, policies, who may do what), on the schemas of its
//! measurements and on the rows of some policies within some time. Statements whose answers rest on
//! more have no basis: those that read the clock or draw lots, that change something, that look for
//! measurements, or join them.
//!
//! Invariants
//! - Everything is noted before the statement is executed. An answer goes with its basis only if that
//!   still holds afterwards: then nothing changed meanwhile.
//! - Where a basis holds, there was one moment since the question at which all of it was as noted:
//!   each part that is as it was has been so all the time.

use std::sync::Arc;

use catalog::Catalog;
use influxql::{Expr, MeasurementName, SelectStatement, Source, Statement, visit};
use model::{DatabaseId, Interrupt, MeasurementSchema, Name, PolicyId, TimeRange};
use store::{Revision, Store, StoreError};

use crate::names::policies;
use crate::plan::{self, Select, compile};
use crate::presence::is_only_policy;
use crate::{QueryContext, QueryError};

/// What the answer to a statement rests on.
#[derive(Debug)]
pub struct Basis {
    /// Version of the catalog.
    catalog: u64,
    schemas: Vec<(DatabaseId, Name, Arc<MeasurementSchema>)>,
    rows: Vec<(PolicyId, TimeRange, Revision)>,
    interrupt: Interrupt,
}

impl Basis {
    /// What the answer to `statement` rests on if it is executed from now on; `None`: on more than can
    /// be noted.
    ///
    /// # Errors
    /// Those of planning it.
    pub fn of(statement: &Statement, context: &QueryContext) -> Result<Option<Self>, QueryError> {
        let Statement::Select(select) = statement else { return Ok(None) };
        // Whether the store can tell of rows it does of any.
        let can_tell = context.store.revision(PolicyId(0), TimeRange::EMPTY)?.is_some();
        if select.into.is_some() || !is_repeatable(select) || !can_tell {
            return Ok(None);
        }
        let mut basis = Self {
            catalog: context.catalog.snapshot().version(),
            schemas: Vec::new(),
            rows: Vec::new(),
            interrupt: Interrupt::new(),
        };
        let compiled = compile(select, context.now_ns)?;
        if compiled.ends_now() {
            return Ok(None);
        }
        let plan = plan::resolve(&compiled, context)?;
        Ok(basis.note(select, &plan, context)?.then_some(basis))
    }

    /// Notes what one SELECT reads; whether it reads nothing else.
    fn note(
        &mut self,
        select: &SelectStatement,
        plan: &Select,
        context: &QueryContext,
    ) -> Result<bool, QueryError> {
        // A measurement that does not exist is not in the plan: it may come to be.
        if plan.sources.is_empty() || plan.sources.len() != select.sources.len() {
            return Ok(false);
        }
        for (source, planned) in select.sources.iter().zip(&plan.sources) {
            let noted = match (source, planned) {
                (Source::Measurement(_), plan::Source::Measurement(found)) => {
                    let database = found.policy.database;
                    let Some(schema) = context.schema(database, &found.name)? else {
                        return Ok(false);
                    };
                    self.schemas.push((database, found.name.clone(), schema));
                    if is_only_policy(&found.policy, context) {
                        self.note_rows(found.policy.id, plan.read_range(), context)?
                    } else {
                        // Which fields and tags belong to one policy shows in the rows of all.
                        let all = policies(database, context);
                        let mut all = all.iter().map(|p| (p.id, TimeRange::ALL));
                        all.try_fold(true, |so_far, (policy, time)| {
                            Ok::<_, QueryError>(so_far && self.note_rows(policy, time, context)?)
                        })?
                    }
                }
                (Source::SubQuery(inner), plan::Source::Subquery(found)) => {
                    self.note(inner, &found.select, context)?
                }
                _ => false,
            };
            if !noted {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn note_rows(
        &mut self,
        policy: PolicyId,
        time: TimeRange,
        context: &QueryContext,
    ) -> Result<bool, StoreError> {
        let revision = context.store.revision(policy, time)?;
        self.rows.extend(revision.map(|revision| (policy, time, revision)));
        Ok(revision.is_some())
    }

    /// Whether all of it is still the same. A store that cannot tell has changed.
    #[must_use]
    pub fn holds(&self, store: &dyn Store, catalog: &Catalog) -> bool {
        let same_rows = |(policy, time, noted): &(PolicyId, TimeRange, Revision)| {
            store.revision(*policy, *time).is_ok_and(|now| now == Some(*noted))
        };
        let same_schema = |(database, name, noted): &(DatabaseId, Name, Arc<MeasurementSchema>)| {
            let now = store.schema(*database, name, &self.interrupt);
            now.is_ok_and(|now| now.is_some_and(|now| Arc::ptr_eq(&now, noted) || now == *noted))
        };
        catalog.snapshot().version() == self.catalog
            && self.rows.iter().all(same_rows)
            && self.schemas.iter().all(same_schema)
    }
}

/// Whether a SELECT names what it reads, and says the same at any time.
fn is_repeatable(select: &SelectStatement) -> bool {
    let says_now = |expr: &Expr| {
        visit::any(expr, &mut |e| match e {
            Expr::Call(call) => ["now", "sample"].iter().any(|n| call.name.eq_ignore_ascii_case(n)),
            _ => false,
        })
    };
    let fields = select.fields.iter().map(|field| &field.expr);
    let conditions = select.condition.iter().chain(&select.having);
    let mut expressions = fields.chain(conditions).chain(&select.dimensions);
    let names_it = |source: &Source| match source {
        Source::Measurement(measurement) => matches!(measurement.name, MeasurementName::Name(_)),
        Source::SubQuery(inner) => is_repeatable(inner),
        Source::Join(_) => false,
    };
    !expressions.any(says_now) && select.sources.iter().all(names_it)
}
