//! What measurements there are and which fields they have.
//!
//! Kept in memory whole: it grows with distinct names, not with series or rows. Readers take an
//! immutable [`Measurement`]; a change replaces it. Whoever changes the schema logs the change
//! before anybody can use it (see `write::define`).

use std::sync::Arc;

use hashbrown::HashMap;
use model::{DatabaseId, FieldType, MeasurementSchema, Name};
use parking_lot::RwLock;
use store::NameFilter;

use crate::rows::{FieldNo, MeasurementNo};

/// Most fields a measurement can have.
pub(crate) const FIELDS_MAX: usize = 65_536;

/// One measurement as it is now.
#[derive(Debug)]
pub(crate) struct Measurement {
    pub(crate) no: MeasurementNo,
    pub(crate) database: DatabaseId,
    pub(crate) name: Name,
    /// Fields by number.
    pub(crate) fields: Vec<(Name, FieldType)>,
    by_name: HashMap<Name, FieldNo>,
}

impl Measurement {
    /// Number and type of a field.
    pub(crate) fn field(&self, name: &str) -> Option<(FieldNo, FieldType)> {
        let no = *self.by_name.get(name)?;
        Some((no, self.fields[no.0 as usize].1))
    }

    /// Name and type of a field.
    pub(crate) fn field_by_no(&self, no: FieldNo) -> &(Name, FieldType) {
        &self.fields[no.0 as usize]
    }
}

/// A change of the schema: logged, and kept in the manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SchemaChange {
    /// A measurement came to be.
    Measurement { no: MeasurementNo, database: DatabaseId, name: Name },
    /// A field came to be.
    Field { measurement: MeasurementNo, no: FieldNo, name: Name, field_type: FieldType },
    /// A measurement is gone with its fields.
    Drop(MeasurementNo),
}

/// The schema of every database.
#[derive(Debug, Default)]
pub(crate) struct SchemaRegistry {
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    by_name: HashMap<DatabaseId, HashMap<Name, MeasurementNo>>,
    by_no: HashMap<MeasurementNo, Entry>,
    next_no: u32,
}

#[derive(Debug)]
struct Entry {
    measurement: Arc<Measurement>,
    /// What the layers above see of it; made when asked for.
    shown: Option<Arc<MeasurementSchema>>,
    /// Counts changes of its tag keys while nothing is shown.
    epoch: u64,
}

impl SchemaRegistry {
    /// A measurement by name.
    pub(crate) fn find(&self, database: DatabaseId, name: &str) -> Option<Arc<Measurement>> {
        let state = self.state.read();
        let no = state.by_name.get(&database)?.get(name)?;
        Some(Arc::clone(&state.by_no[no].measurement))
    }

    /// A measurement by number.
    pub(crate) fn get(&self, no: MeasurementNo) -> Option<Arc<Measurement>> {
        self.state.read().by_no.get(&no).map(|entry| Arc::clone(&entry.measurement))
    }

    /// The measurements of a database, sorted by name.
    pub(crate) fn of_database(&self, database: DatabaseId) -> Vec<Arc<Measurement>> {
        let state = self.state.read();
        let mut all: Vec<_> = state
            .by_name
            .get(&database)
            .into_iter()
            .flat_map(|names| names.values())
            .map(|no| Arc::clone(&state.by_no[no].measurement))
            .collect();
        all.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Those of them that a filter accepts, sorted by name: the ones it names are looked up.
    pub(crate) fn accepted(
        &self,
        database: DatabaseId,
        filter: &NameFilter,
    ) -> Vec<Arc<Measurement>> {
        let NameFilter::In(names) = filter else {
            let mut all = self.of_database(database);
            all.retain(|measurement| filter.accepts(&measurement.name));
            return all;
        };
        let mut named: Vec<_> = names.iter().filter_map(|name| self.find(database, name)).collect();
        named.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        named.dedup_by(|a, b| a.name == b.name);
        named
    }

    /// The number that the next measurement gets.
    pub(crate) fn next_measurement(&self) -> MeasurementNo {
        MeasurementNo(self.state.read().next_no)
    }

    /// Makes a change known. Changes that were made before are left as they are, so that a log can
    /// be replayed over a manifest that has a part of it. `false` if a change before this one is
    /// missing, or its number is never given: nothing is changed then.
    pub(crate) fn apply(&self, change: &SchemaChange) -> bool {
        let mut state = self.state.write();
        match change {
            SchemaChange::Measurement { no, database, name } => {
                state.add_measurement(*no, *database, name)
            }
            SchemaChange::Field { measurement, no, name, field_type } => {
                state.add_field(*measurement, *no, name, *field_type)
            }
            SchemaChange::Drop(no) => {
                state.drop_measurement(*no);
                true
            }
        }
    }

    /// The changes that make an empty schema this one.
    pub(crate) fn dump(&self) -> (MeasurementNo, Vec<SchemaChange>) {
        let state = self.state.read();
        let mut numbers: Vec<_> = state.by_no.keys().copied().collect();
        numbers.sort_unstable();
        let mut changes = Vec::new();
        for no in numbers {
            let measurement = &state.by_no[&no].measurement;
            changes.push(SchemaChange::Measurement {
                no,
                database: measurement.database,
                name: Arc::clone(&measurement.name),
            });
            for (at, (name, field_type)) in measurement.fields.iter().enumerate() {
                changes.push(SchemaChange::Field {
                    measurement: no,
                    no: FieldNo(at as u32),
                    name: Arc::clone(name),
                    field_type: *field_type,
                });
            }
        }
        (MeasurementNo(state.next_no), changes)
    }

    /// Numbers below `next` are not given again.
    pub(crate) fn reserve(&self, next: MeasurementNo) {
        let mut state = self.state.write();
        state.next_no = state.next_no.max(next.0);
    }

    /// What the layers above see of a measurement; `tag_keys` tells its tag keys if nobody asked
    /// since they last changed.
    pub(crate) fn shown<E>(
        &self,
        measurement: &Measurement,
        tag_keys: impl FnOnce() -> Result<Vec<Name>, E>,
    ) -> Result<Arc<MeasurementSchema>, E> {
        let epoch = match self.state.read().by_no.get(&measurement.no) {
            Some(Entry { shown: Some(shown), .. }) => return Ok(Arc::clone(shown)),
            entry => entry.map(|e| e.epoch),
        };
        let tag_keys = tag_keys()?;
        let mut state = self.state.write();
        let Some(entry) = state.by_no.get_mut(&measurement.no) else {
            return Ok(Arc::new(shown_of(measurement, tag_keys)));
        };
        let shown = Arc::new(shown_of(&entry.measurement, tag_keys));
        // Keys that changed while they were being read may not be among them: not kept then.
        if epoch == Some(entry.epoch) {
            entry.shown = Some(Arc::clone(&shown));
        }
        Ok(shown)
    }

    /// Forgets what is shown of a measurement if it lacks one of `tag_keys` (series with new keys
    /// came to be), or in any case if `tag_keys` is `None` (series went away). Called after the
    /// series index has changed.
    pub(crate) fn tag_keys_changed(&self, no: MeasurementNo, tag_keys: Option<&[(Name, Name)]>) {
        let complete = |shown: &Arc<MeasurementSchema>| {
            tag_keys.is_some_and(|tags| tags.iter().all(|(key, _)| shown.has_tag(key)))
        };
        let nothing_new = {
            let state = self.state.read();
            state.by_no.get(&no).and_then(|e| e.shown.as_ref()).is_some_and(complete)
        };
        if nothing_new {
            return;
        }
        if let Some(entry) = self.state.write().by_no.get_mut(&no) {
            entry.shown = None;
            entry.epoch += 1;
        }
    }
}

fn shown_of(measurement: &Measurement, tag_keys: Vec<Name>) -> MeasurementSchema {
    let mut fields = measurement.fields.clone();
    fields.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    MeasurementSchema { fields, tag_keys }
}

impl State {
    /// Whether the number is one that can be given.
    fn add_measurement(&mut self, no: MeasurementNo, database: DatabaseId, name: &Name) -> bool {
        if no.0 < self.next_no && !self.by_no.contains_key(&no) {
            return true; // Dropped since.
        }
        let Some(next) = no.0.checked_add(1) else { return false };
        self.next_no = self.next_no.max(next);
        if self.by_no.contains_key(&no) {
            return true;
        }
        // If the name is taken, the drop of what had it was lost with a damaged part of the log.
        let taken = self.by_name.get(&database).and_then(|names| names.get(name)).copied();
        taken.into_iter().for_each(|other| self.drop_measurement(other));
        let measurement = Arc::new(Measurement {
            no,
            database,
            name: Arc::clone(name),
            fields: Vec::new(),
            by_name: HashMap::new(),
        });
        self.by_name.entry(database).or_default().insert(Arc::clone(name), no);
        self.by_no.insert(no, Entry { measurement, shown: None, epoch: 0 });
        true
    }

    /// Whether the fields with lower numbers are there.
    fn add_field(
        &mut self,
        measurement: MeasurementNo,
        no: FieldNo,
        name: &Name,
        t: FieldType,
    ) -> bool {
        // It was dropped since, or never came to be.
        let Some(entry) = self.by_no.get_mut(&measurement) else {
            return measurement.0 < self.next_no;
        };
        let known = entry.measurement.fields.len();
        if no.0 as usize != known {
            return (no.0 as usize) < known;
        }
        let mut fields = entry.measurement.fields.clone();
        let mut by_name = entry.measurement.by_name.clone();
        fields.push((Arc::clone(name), t));
        by_name.insert(Arc::clone(name), no);
        entry.measurement = Arc::new(Measurement {
            no: measurement,
            database: entry.measurement.database,
            name: Arc::clone(&entry.measurement.name),
            fields,
            by_name,
        });
        entry.shown = None;
        true
    }

    fn drop_measurement(&mut self, no: MeasurementNo) {
        let Some(entry) = self.by_no.remove(&no) else { return };
        let measurement = entry.measurement;
        if let Some(names) = self.by_name.get_mut(&measurement.database) {
            names.remove(&measurement.name);
            if names.is_empty() {
                self.by_name.remove(&measurement.database);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(no: u32, name: &str, field_type: FieldType) -> SchemaChange {
        let measurement = MeasurementNo(0);
        SchemaChange::Field { measurement, no: FieldNo(no), name: name.into(), field_type }
    }

    fn measurement(no: u32, name: &str) -> SchemaChange {
        let no = MeasurementNo(no);
        SchemaChange::Measurement { no, database: DatabaseId(1), name: name.into() }
    }

    #[test]
    fn measurements_are_those_that_a_filter_accepts() {
        let schema = SchemaRegistry::default();
        for (no, name) in (0..).zip(["b", "c", "a", "d"]) {
            assert!(schema.apply(&measurement(no, name)));
        }
        let names = |filter: &NameFilter| -> Vec<String> {
            let found = schema.accepted(DatabaseId(1), filter);
            found.iter().map(|measurement| measurement.name.to_string()).collect()
        };
        let some = NameFilter::In(["d", "none", "a", "d"].map(Name::from).to_vec());
        assert_eq!(names(&some), ["a", "d"]);
        assert_eq!(names(&NameFilter::Not(Box::new(some))), ["b", "c"]);
        assert_eq!(names(&NameFilter::All), ["a", "b", "c", "d"]);
        assert!(schema.accepted(DatabaseId(2), &NameFilter::In(vec!["a".into()])).is_empty());
    }

    #[test]
    fn a_dump_replays_to_the_same_schema_and_replaying_twice_changes_nothing() {
        let schema = SchemaRegistry::default();
        let changes = [
            measurement(0, "m"),
            field(0, "z", FieldType::Float),
            field(1, "a", FieldType::Integer),
            measurement(1, "gone"),
            SchemaChange::Drop(MeasurementNo(1)),
        ];
        assert!(changes.iter().all(|c| schema.apply(c)));
        assert!(changes.iter().all(|c| schema.apply(c)));
        let (next, dump) = schema.dump();
        assert_eq!((next, dump.len()), (MeasurementNo(2), 3));
        let again = SchemaRegistry::default();
        again.reserve(next);
        // A manifest is loaded into an empty registry before its numbers are reserved.
        let fresh = SchemaRegistry::default();
        assert!(dump.iter().all(|c| fresh.apply(c)));
        fresh.reserve(next);
        assert_eq!(fresh.dump(), schema.dump());
        assert_eq!(fresh.next_measurement(), MeasurementNo(2));
        let found = fresh.find(DatabaseId(1), "m").unwrap();
        assert_eq!(found.field("a"), Some((FieldNo(1), FieldType::Integer)));
        assert!(fresh.find(DatabaseId(2), "m").is_none());
        assert!(fresh.find(DatabaseId(1), "gone").is_none());
    }

    #[test]
    fn changes_that_others_are_missing_before_change_nothing() {
        let schema = SchemaRegistry::default();
        assert!(schema.apply(&measurement(0, "m")));
        assert!(!schema.apply(&field(1, "z", FieldType::Float)));
        assert_eq!(schema.dump().1.len(), 1);
        // The drop of the first was lost.
        assert!(schema.apply(&measurement(3, "m")));
        assert_eq!(schema.find(DatabaseId(1), "m").unwrap().no, MeasurementNo(3));
        assert_eq!(schema.dump().1.len(), 1);
    }

    #[test]
    fn what_is_shown_follows_fields_and_tags() {
        let schema = SchemaRegistry::default();
        schema.apply(&measurement(0, "m"));
        schema.apply(&field(0, "z", FieldType::Float));
        let m = schema.find(DatabaseId(1), "m").unwrap();
        let show = |tags: &[&str]| {
            let tags = tags.iter().map(|t| (*t).into()).collect();
            schema.shown(&m, || Ok::<_, ()>(tags)).unwrap()
        };
        assert!(show(&["host"]).has_tag("host"));
        schema.tag_keys_changed(MeasurementNo(0), Some(&[("host".into(), "a".into())]));
        assert!(!show(&["host", "rack"]).has_tag("rack"), "nothing new: not asked again");
        schema.tag_keys_changed(MeasurementNo(0), Some(&[("rack".into(), "a".into())]));
        assert!(show(&["host", "rack"]).has_tag("rack"));
        schema.apply(&field(1, "a", FieldType::Integer));
        assert_eq!(show(&[]).field_type("a"), Some(FieldType::Integer));
        schema.tag_keys_changed(MeasurementNo(0), None);
        assert!(show(&[]).tag_keys.is_empty());
    }
}
