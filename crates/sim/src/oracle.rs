//! What a store may hold: the reference model, in as many worlds as there is uncertainty.
//!
//! An operation that was acknowledged happened in every world. One that failed, or that a crash
//! interrupted, splits each world into one for each thing that may have become of it. When the store
//! was opened again, the worlds that differ from it are ruled out; if none is left, the store is
//! wrong. Where the store is looked at while it lives no world is ruled out, because what a failed
//! operation left may be visible now and gone after a crash.
//!
//! What a failed operation may leave, the strongest the engine promises:
//! - a write: nothing; or some of the definitions its rows need, in order (each layout of measurement
//!   and fields whole), without rows; or all of its rows. Where memtables may have been flushed before
//!   the log was durable (threads flush while others write, or the log found no room), its rows are
//!   whole in each partition, not over all: a torn write;
//! - a delete of rows: those of some of the measurements, ascending by name; of a measurement or a
//!   database: nothing, its rows, or all;
//! - an expiry, a delete of a policy or of named rows, a swap of the catalog: all or nothing;
//! - series of a failed write or delete may exist without rows.

mod torn;

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{DatabaseId, FieldType, Interrupt, Name, PolicyId, Scalar, TagExpr, TimeRange};
use store::reference::ReferenceStore;
use store::testing::{self, Row};
use store::{
    DeleteRequest, DeleteTarget, MetadataKind, MetadataRequest, NameFilter, Policy, Store,
    StoreError, SwapOutcome, WriteOutcome,
};

use crate::content::{Content, OptionalSeries, Scope};
use crate::pool::{self, NOW_NS};

/// What changes a model.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Write(Policy, Arc<[Row]>),
    /// Measurements and fields come to be as if these rows were written, without rows.
    Define(Policy, Arc<[Row]>),
    Delete(DeleteRequest),
    Expire(DatabaseId, PolicyId, i64),
    SwapCatalog(u64, Arc<[u8]>),
}

/// What a model says to an action.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    Write(WriteOutcome),
    /// Partitions dropped, and whether series went with them.
    Expired(u64, bool),
    Swap(SwapOutcome),
    None,
}

/// One thing that may be the case.
#[derive(Debug)]
struct World {
    actions: Vec<Action>,
    /// Which of them are writes that may have been torn, ascending.
    torn: Vec<usize>,
    model: ReferenceStore,
}

/// What a failed write may have left, the strongest that can be promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Definitions at most.
    NoRows,
    /// No row or all.
    NoneOrAll,
    /// In each partition no row or all.
    NoneOrAllByPartition,
}

/// Splits of a world at most; more failed operations than that are not followed.
const WORLDS_MAX: usize = 256;

/// Worlds whose difference from a wrong store is shown.
const WORLDS_SHOWN: usize = 4;

/// The worlds there may be.
#[derive(Debug)]
pub(crate) struct Oracle {
    worlds: Vec<World>,
    pub(crate) scope: Scope,
    optional: OptionalSeries,
}

impl Oracle {
    /// One world in which nothing happened yet.
    pub(crate) fn new(scope: Scope) -> Self {
        Self { worlds: vec![World::of(Vec::new())], scope, optional: OptionalSeries::new() }
    }

    /// The rows of a measurement, in one of the worlds.
    pub(crate) fn rows(&self, policy: Policy, measurement: &str) -> Vec<Row> {
        let world = self.worlds.first().expect("BUG: there is always a world");
        testing::read_all(&world.model, policy, measurement).expect("BUG: the model answers")
    }

    /// Whether another operation of unknown outcome can be followed.
    pub(crate) fn has_room(&self) -> bool {
        self.worlds.len() <= WORLDS_MAX / 32
    }

    /// An acknowledged action. Worlds that would have answered otherwise are ruled out, unless
    /// `proves` is false: the answer was given without anything becoming durable.
    pub(crate) fn certain(
        &mut self,
        action: &Action,
        accepts: impl Fn(&Answer) -> bool,
        proves: bool,
    ) -> Result<(), String> {
        let answers: Vec<Answer> = self.worlds.iter().map(|world| world.model_do(action)).collect();
        let accepted: Vec<bool> = answers.iter().map(accepts).collect();
        if !accepted.contains(&true) {
            return Err(format!("the answer should be {:?}", answers[0]));
        }
        let mut accepted = accepted.into_iter();
        if proves {
            self.worlds.retain(|_| accepted.next() == Some(true));
        }
        self.worlds.iter_mut().for_each(|world| world.actions.push(action.clone()));
        Ok(())
    }

    /// A write that failed.
    pub(crate) fn uncertain_write(&mut self, policy: Policy, rows: &[Row], left: Left) {
        self.make_optional(policy.database, rows);
        self.split(|world| {
            let mut ways: Vec<Vec<Action>> = vec![Vec::new()];
            let mut defined: Vec<Row> = Vec::new();
            for row in world.new_layouts(policy, rows) {
                defined.push(row);
                ways.push(vec![Action::Define(policy, defined.as_slice().into())]);
            }
            if left != Left::NoRows {
                ways.push(vec![Action::Write(policy, rows.into())]);
            }
            ways
        });
        if left == Left::NoneOrAllByPartition {
            for world in &mut self.worlds {
                if matches!(world.actions.last(), Some(Action::Write(_, last)) if **last == *rows) {
                    world.torn.push(world.actions.len() - 1);
                }
            }
        }
    }

    /// A delete that failed.
    pub(crate) fn uncertain_delete(&mut self, request: &DeleteRequest) {
        self.make_all_optional(request.database);
        let delete = |target| Action::Delete(DeleteRequest { database: request.database, target });
        let rows_of = |measurements, time| {
            let series = TagExpr::True;
            delete(DeleteTarget::Rows { measurements, series, time })
        };
        let all = Action::Delete(request.clone());
        match &request.target {
            DeleteTarget::Rows { measurements, series, time } => {
                let mut ways = vec![Vec::new()];
                let mut names: Vec<Name> = self.scope.measurements.clone();
                names.retain(|name| measurements.accepts(name));
                names.sort_unstable();
                for at in 1..=names.len() {
                    let measurements = NameFilter::In(names[..at].to_vec());
                    let (series, time) = (series.clone(), *time);
                    ways.push(vec![delete(DeleteTarget::Rows { measurements, series, time })]);
                }
                self.split(|_| ways.clone());
            }
            DeleteTarget::Measurement(name) => {
                let rows = rows_of(NameFilter::In(vec![name.clone()]), TimeRange::ALL);
                self.split(|_| vec![vec![], vec![rows.clone()], vec![all.clone()]]);
            }
            DeleteTarget::Database => {
                let rows = rows_of(NameFilter::All, TimeRange::ALL);
                self.split(|_| vec![vec![], vec![rows.clone()], vec![all.clone()]]);
            }
            DeleteTarget::Policy(_) | DeleteTarget::Partition(..) | DeleteTarget::Matching(_) => {
                self.split(|_| vec![vec![], vec![all.clone()]]);
            }
        }
    }

    /// An expiry or a swap of the catalog that failed.
    pub(crate) fn uncertain(&mut self, action: &Action) {
        if let Action::Expire(database, ..) = action {
            self.make_all_optional(*database);
        }
        self.split(|_| vec![vec![], vec![action.clone()]]);
    }

    /// Compares `content` with what every world holds. `settled`: the store was opened since
    /// anything failed, so worlds that differ are not the case.
    pub(crate) fn check(&mut self, content: &Content, settled: bool) -> Result<(), String> {
        let mut differences = Vec::with_capacity(self.worlds.len());
        for world in &self.worlds {
            let want = Content::read(&world.model, &self.scope).map_err(|e| e.to_string())?;
            differences.push(content.difference(&want, &self.optional));
        }
        let mut chosen = differences.iter().position(Option::is_none);
        if chosen.is_none() {
            let torn = self.worlds.iter().filter_map(|world| world.torn_as(content, &self.scope));
            let fits = |world: &World| {
                let want = Content::read(&world.model, &self.scope);
                want.is_ok_and(|want| content.difference(&want, &self.optional).is_none())
            };
            if let Some(world) = torn.into_iter().find(fits) {
                chosen = Some(self.worlds.len());
                self.worlds.push(world);
            }
        }
        let Some(chosen) = chosen else {
            let count = differences.len();
            let shown = differences.into_iter().flatten().take(WORLDS_SHOWN);
            let list: Vec<String> = shown.map(|difference| format!("\n- {difference}")).collect();
            return Err(format!("the content is that of none of {count} worlds:{}", list.concat()));
        };
        if settled {
            // Those that are left hold the same: one of them will do.
            self.worlds.swap(0, chosen);
            self.worlds.truncate(1);
            self.worlds[0].torn.clear();
            let there = |(database, key): &(DatabaseId, String)| {
                content.series.get(database).is_some_and(|keys| keys.contains(key))
            };
            self.optional.retain(there);
        }
        Ok(())
    }

    /// Whether rows of a measurement are what some world holds.
    pub(crate) fn check_rows(
        &self,
        policy: Policy,
        measurement: &str,
        rows: &[Row],
    ) -> Result<(), String> {
        let same = |world: &World| {
            testing::read_all(&world.model, policy, measurement).is_ok_and(|want| want == rows)
        };
        if self.worlds.iter().any(same) {
            return Ok(());
        }
        Err(format!(
            "{measurement:?} of {policy:?} has {} rows, not those of any world",
            rows.len()
        ))
    }

    /// Forgets what happened last: what a correct store then holds is no world's any more.
    #[cfg(test)]
    pub(crate) fn forget_last(&mut self) {
        for world in &mut self.worlds {
            world.actions.pop().expect("nothing happened");
            *world = World::of(std::mem::take(&mut world.actions));
        }
    }

    fn split(&mut self, ways: impl Fn(&World) -> Vec<Vec<Action>>) {
        let mut worlds = Vec::new();
        for world in &self.worlds {
            for way in ways(world) {
                let actions = [world.actions.as_slice(), way.as_slice()].concat();
                worlds.push(World { torn: world.torn.clone(), ..World::of(actions) });
            }
        }
        assert!(worlds.len() <= WORLDS_MAX, "BUG: too many worlds");
        self.worlds = worlds;
    }

    fn make_optional(&mut self, database: DatabaseId, rows: &[Row]) {
        let keys = rows.iter().filter_map(|row| model::SeriesKey::parse(row.key.as_bytes()).ok());
        self.optional.extend(keys.map(|key| (database, key.to_string())));
    }

    fn make_all_optional(&mut self, database: DatabaseId) {
        for world in &self.worlds {
            let keys = world.series(database).into_iter().map(|key| (database, key));
            self.optional.extend(keys);
        }
    }
}

impl World {
    fn of(actions: Vec<Action>) -> Self {
        let mut world =
            Self { actions: Vec::new(), torn: Vec::new(), model: ReferenceStore::new() };
        for action in &actions {
            world.model_do(action);
        }
        world.actions = actions;
        world
    }

    fn model_do(&self, action: &Action) -> Answer {
        let answer = self.try_do(action);
        answer.expect("BUG: the model neither fails nor is closed")
    }

    fn try_do(&self, action: &Action) -> Result<Answer, StoreError> {
        Ok(match action {
            Action::Write(policy, rows) => {
                Answer::Write(testing::write(&self.model, *policy, rows, NOW_NS)?)
            }
            Action::Define(policy, rows) => {
                self.define(*policy, rows)?;
                Answer::None
            }
            Action::Delete(request) => {
                match request.target {
                    DeleteTarget::Partition(policy, time) => {
                        self.drop_within(request.database, policy, time)?;
                    }
                    _ => self.model.delete(request)?,
                }
                Answer::None
            }
            Action::Expire(database, policy, before_ns) => {
                let before = self.series(*database);
                let dropped = self.model.expire(*database, *policy, *before_ns)?;
                Answer::Expired(dropped, before != self.series(*database))
            }
            Action::SwapCatalog(expected, bytes) => {
                Answer::Swap(self.model.swap_catalog(*expected, bytes)?)
            }
        })
    }

    /// Drops a partition of the store: what became of several is several here.
    fn drop_within(
        &self,
        database: DatabaseId,
        policy: PolicyId,
        time: TimeRange,
    ) -> Result<(), StoreError> {
        for partition in pool::partitions(&self.model, database, policy)? {
            if time.covers(&partition) {
                let target = DeleteTarget::Partition(policy, partition);
                self.model.delete(&DeleteRequest { database, target })?;
            }
        }
        Ok(())
    }

    /// Canonical keys of a database's series.
    fn series(&self, database: DatabaseId) -> Vec<String> {
        let request = MetadataRequest {
            database,
            kind: MetadataKind::Series,
            measurements: NameFilter::All,
            series: TagExpr::True,
            facts_max: None,
            context: testing::unlimited(),
        };
        let rows = testing::names(&self.model, &request).expect("BUG: the model answers");
        rows.into_iter().map(|mut row| row.swap_remove(1)).collect()
    }

    /// Rows of a series and policy of their own are written and deleted: types stay.
    fn define(&self, policy: Policy, rows: &[Row]) -> Result<(), StoreError> {
        let elsewhere = Policy { id: PolicyId(u32::MAX), retention_ns: None, ..policy };
        let kept = |row: &&Row| !is_too_old(policy, row);
        let planted = |row: &Row| Row { key: format!("{},planted=1", row.key), ..row.clone() };
        let planted: Vec<Row> = rows.iter().filter(kept).map(planted).collect();
        testing::write(&self.model, elsewhere, &planted, NOW_NS)?;
        self.model.delete(&DeleteRequest {
            database: policy.database,
            target: DeleteTarget::Rows {
                measurements: NameFilter::All,
                series: TagExpr::Equals("planted".into(), "1".into()),
                time: TimeRange::ALL,
            },
        })
    }

    /// The rows that define something new, in the order in which that is defined.
    fn new_layouts(&self, policy: Policy, rows: &[Row]) -> Vec<Row> {
        let mut known: BTreeMap<(Name, Name), FieldType> = BTreeMap::new();
        let mut new = Vec::new();
        for row in rows.iter().filter(|row| !is_too_old(policy, row)) {
            let measurement = measurement_of(&row.key);
            let schema = self.model.schema(policy.database, &measurement, &Interrupt::new());
            let schema = schema.expect("BUG: the model answers").unwrap_or_default();
            let key = |field: &Name| (measurement.clone(), field.clone());
            let type_of =
                |field: &Name| schema.field_type(field).or_else(|| known.get(&key(field)).copied());
            let conflicts = |(field, value): &(Name, Scalar)| {
                type_of(field).is_some_and(|known| known != value.field_type())
            };
            // It is refused, and defines nothing.
            if row.fields.iter().any(conflicts) {
                continue;
            }
            let before = known.len();
            for (field, value) in &row.fields {
                if schema.field_type(field).is_none() {
                    known.entry(key(field)).or_insert(value.field_type());
                }
            }
            if known.len() > before {
                new.push(row.clone());
            }
        }
        new
    }
}

/// Whether the policy refuses a row.
fn is_too_old(policy: Policy, row: &Row) -> bool {
    policy.retention_ns.is_some_and(|kept| row.time_ns < NOW_NS.saturating_sub(kept))
}

fn measurement_of(key: &str) -> Name {
    model::SeriesKey::parse(key.as_bytes()).expect("BUG: keys are right").measurement
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool;

    #[test]
    fn a_row_that_is_refused_defines_nothing() {
        let row = |fields: &[(&str, Scalar)], time| Row::new("z", fields, time);
        let (float, integer) = (("x", Scalar::Float(1.5)), ("i", Scalar::Integer(2)));
        let rows = [
            row(std::slice::from_ref(&float), 1),
            row(&[integer.clone(), ("x", Scalar::Integer(3))], 2),
            row(&[integer, float], 3),
        ];
        let new = World::of(Vec::new()).new_layouts(pool::policy(0, 0), &rows);
        assert_eq!(new, [rows[0].clone(), rows[2].clone()]);
    }
}
