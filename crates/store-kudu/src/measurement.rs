//! Measurements: names become ids that are never used again, fields get types that never change.
//!
//! What is remembered here may be out of date in one way only: the measurement may have been dropped,
//! and made anew with another id. Reads look its name up first; writes do afterwards.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{
    DatabaseId, FieldType, MeasurementSchema, Name, PolicyId, Reservation, SeriesKey, TagExpr,
    TimeRange,
};
use parking_lot::{Mutex, RwLock};
use store::StoreError;
use tokio::sync::Mutex as AsyncMutex;

use crate::data::DataTable;
use crate::dead::{Dead, STRETCHES_MAX};
use crate::error::{contended, unintelligible};
use crate::gone::Owner;
use crate::ids::{Block, end_of, reserve};
use crate::layout::{Field, Kind, Place, hash, is_sharing, sharing};
use crate::registry::{Entry, STORE, Which, number_of, ordered, owner_of, space};
use crate::series::Series;
use crate::shared::Shared;

/// Tries to make a measurement while others make and drop it.
const TRIES_MAX: usize = 20;
/// Series whose marks are looked for first, to learn the tag keys of those with rows: as many as are
/// looked for each by itself.
const LOOKED_AT_FIRST: usize = STRETCHES_MAX;
/// How long it is remembered that a database has many tables.
const FULL_TTL: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Measurement {
    pub(crate) database: DatabaseId,
    pub(crate) name: Name,
    pub(crate) id: i64,
    /// Fields known so far; there may be more.
    pub(crate) fields: RwLock<HashMap<Name, Field>>,
    /// Tag keys that are known to be registered.
    pub(crate) tag_keys: Mutex<HashSet<Name>>,
    pub(crate) tables: Mutex<HashMap<(PolicyId, Kind), Arc<DataTable>>>,
    pub(crate) series_ids: AsyncMutex<Block>,
}

/// What the registry says about a measurement.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) fields: BTreeMap<Name, Field>,
    pub(crate) tag_keys: Vec<Name>,
    /// Ranges that may have rows, by policy and first time.
    pub(crate) ranges: BTreeMap<PolicyId, Vec<TimeRange>>,
    /// Series ids lie below this.
    pub(crate) series_end: i64,
}

impl Measurement {
    fn new(database: DatabaseId, name: Name, id: i64) -> Self {
        Self {
            database,
            name,
            id,
            fields: RwLock::default(),
            tag_keys: Mutex::default(),
            tables: Mutex::default(),
            series_ids: AsyncMutex::default(),
        }
    }

    pub(crate) fn table(&self, policy: PolicyId, kind: Kind) -> Arc<DataTable> {
        let mut tables = self.tables.lock();
        Arc::clone(tables.entry((policy, kind)).or_insert_with(|| Arc::new(DataTable::new(kind))))
    }

    /// Looks at the tables of a policy anew when they are needed next.
    pub(crate) fn forget_tables(&self, policy: PolicyId) {
        let tables = self.tables.lock();
        tables.iter().filter(|((of, _), _)| *of == policy).for_each(|(_, table)| table.forget());
    }

    pub(crate) fn owner(&self, policy: PolicyId) -> Owner<'_> {
        Owner { database: self.database, policy, measurement: &self.name, id: self.id }
    }

    /// Whether all fields known so far are in the same table.
    pub(crate) fn has_one_table(&self) -> bool {
        let fields = self.fields.read();
        let wide = fields.values().filter(|field| field.place == Place::Column).count();
        wide == 0 || wide == fields.len()
    }

    fn learn(&self, state: &State) {
        let fields = state.fields.iter().map(|(name, field)| (name.clone(), *field));
        self.fields.write().extend(fields);
        self.tag_keys.lock().extend(state.tag_keys.iter().cloned());
    }
}

impl State {
    fn learn(&mut self, entry: &Entry, table: &str) -> Result<(), StoreError> {
        match (entry.space, &entry.text) {
            (space::FIELD, Some(name)) => {
                let field = registered_field(entry)
                    .ok_or_else(|| unintelligible(table, "a damaged field"))?;
                self.fields.insert(name.as_str().into(), field);
            }
            (space::TAG_KEY, Some(name)) => self.tag_keys.push(name.as_str().into()),
            (space::RANGE, _) => {
                let (policy, range) = registered_range(entry)
                    .ok_or_else(|| unintelligible(table, "a damaged range"))?;
                self.ranges.entry(policy).or_default().push(range);
            }
            (space::IDS, _) => self.series_end = self.series_end.max(end_of(entry, table)?),
            _ => {}
        }
        Ok(())
    }
}

/// The key of a range's entry.
pub(crate) fn range_entry(policy: PolicyId, range: TimeRange) -> Entry {
    let mut key = policy.0.to_be_bytes().to_vec();
    key.extend(ordered(range.min));
    key.extend(ordered(range.max));
    Entry::new(space::RANGE, key)
}

/// Policy and range of a range's entry; `None`: it is damaged.
pub(crate) fn registered_range(entry: &Entry) -> Option<(PolicyId, TimeRange)> {
    let (policy, times) = entry.key.split_at_checked(4)?;
    let policy = PolicyId(u32::from_be_bytes(policy.try_into().ok()?));
    let (first, last) = times.split_at_checked(8)?;
    Some((policy, TimeRange::new(number_of(first)?, number_of(last)?)))
}

/// Type and place of a field's entry; `None`: it is damaged.
fn registered_field(entry: &Entry) -> Option<Field> {
    let field_type = FieldType::from_code(u8::try_from(entry.number?).ok()?)?;
    let place = match &entry.data {
        None => Place::Column,
        Some(data) => Place::Narrow(i32::from_be_bytes(data.as_slice().try_into().ok()?)),
    };
    Some(Field { field_type, place })
}

fn used_up(measurement: &Measurement) -> StoreError {
    StoreError::Invalid(format!(
        "measurement \"{}\" has no number left for a field",
        measurement.name
    ))
}

impl Shared {
    /// The id a name has at a moment; `None` for the moment: now.
    pub(crate) async fn lookup(
        &self,
        database: DatabaseId,
        name: &str,
        moment: Option<u64>,
    ) -> Result<Option<i64>, StoreError> {
        let key = hash(name.as_bytes());
        let which = Which::Key(space::MEASUREMENT, &key);
        let found = self.registry.read(owner_of(database), which, moment).await?;
        Ok(found.first().and_then(|entry| entry.number))
    }

    /// The id a name has at a moment, and what `read` finds out by it. Where the id is remembered,
    /// both are asked for at once.
    pub(crate) async fn lookup_and<T>(
        &self,
        database: DatabaseId,
        name: &Name,
        moment: Option<u64>,
        mut read: impl AsyncFnMut(i64) -> Result<T, StoreError>,
    ) -> Result<Option<(i64, T)>, StoreError> {
        let remembered = self.measurements.get(&(database, name.clone())).map(|known| known.id);
        let guess = async {
            match remembered {
                Some(id) => Some(read(id).await),
                None => None,
            }
        };
        let (id, guess) = tokio::join!(self.lookup(database, name, moment), guess);
        let Some(id) = id? else { return Ok(None) };
        let found = match guess.filter(|_| remembered == Some(id)) {
            Some(found) => found?,
            None => read(id).await?,
        };
        Ok(Some((id, found)))
    }

    /// Names and ids of a database's measurements.
    pub(crate) async fn measurements_of(
        &self,
        database: DatabaseId,
        moment: Option<u64>,
    ) -> Result<Vec<(Name, i64)>, StoreError> {
        let which = Which::Space(space::MEASUREMENT);
        let entries = self.registry.read(owner_of(database), which, moment).await?;
        let named = entries.into_iter().filter_map(|e| Some((Name::from(e.text?), e.number?)));
        let mut named: Vec<(Name, i64)> = named.collect();
        named.sort_unstable();
        Ok(named)
    }

    /// What the registry says about a measurement at a moment; `None`: now.
    pub(crate) async fn state(&self, id: i64, moment: Option<u64>) -> Result<State, StoreError> {
        let which = Which::Spaces(space::FIELD, space::IDS);
        let mut state = State::default();
        for entry in self.registry.read(id, which, moment).await? {
            state.learn(&entry, self.registry.table.name())?;
        }
        state.tag_keys.sort_unstable();
        Ok(state)
    }

    /// The same, and the first marks of series without rows, by one scan.
    pub(crate) async fn state_and_dead(
        &self,
        id: i64,
        moment: Option<u64>,
    ) -> Result<(State, Dead), StoreError> {
        let (mut state, mut dead) = (State::default(), Dead::default());
        let which = Which::Spaces(space::FIELD, space::DEAD);
        let mut reading = self.registry.open(id, which, moment, None)?;
        while !dead.is_cut()
            && let Some(entries) = reading.next().await?
        {
            for entry in entries {
                match entry.space {
                    space::DEAD => dead.learn(&entry),
                    _ => state.learn(&entry, self.registry.table.name())?,
                }
            }
        }
        state.tag_keys.sort_unstable();
        Ok((state, dead))
    }

    /// A measurement that is remembered or registered.
    pub(crate) async fn find(
        &self,
        database: DatabaseId,
        name: &Name,
    ) -> Result<Option<Arc<Measurement>>, StoreError> {
        if let Some(known) = self.measurements.get(&(database, name.clone())) {
            return Ok(Some(known));
        }
        match self.lookup(database, name, None).await? {
            Some(id) => self.load(database, name, id).await.map(Some),
            None => Ok(None),
        }
    }

    /// The measurement with this id, with its fields.
    async fn load(
        &self,
        database: DatabaseId,
        name: &Name,
        id: i64,
    ) -> Result<Arc<Measurement>, StoreError> {
        let state = self.state(id, None).await?;
        Ok(self.remember(database, name, id, &state))
    }

    /// The measurement of a state that was just read.
    pub(crate) fn remember(
        &self,
        database: DatabaseId,
        name: &Name,
        id: i64,
        state: &State,
    ) -> Arc<Measurement> {
        let key = (database, name.clone());
        if let Some(known) = self.measurements.get(&key).filter(|known| known.id == id) {
            return known;
        }
        let fresh = Arc::new(Measurement::new(database, name.clone(), id));
        fresh.learn(state);
        self.measurements.insert(key, Arc::clone(&fresh));
        fresh
    }

    /// A measurement that exists now; made if nobody else has.
    pub(crate) async fn create(
        &self,
        database: DatabaseId,
        name: &Name,
    ) -> Result<Arc<Measurement>, StoreError> {
        for _ in 0..TRIES_MAX {
            if let Some(found) = self.find(database, name).await? {
                return Ok(found);
            }
            let id = {
                let mut block = self.measurement_ids.lock().await;
                block.take(&self.registry, STORE, 1).await?
            };
            let Some(mut id) = id.first().copied() else { continue };
            if self.has_many_tables(database).await? {
                id = sharing(id);
            }
            let key = hash(name.as_bytes());
            let entry = Entry::new(space::MEASUREMENT, key).number(id).text(name);
            if self.registry.insert_one(owner_of(database), entry).await? {
                return self.load(database, name, id).await;
            }
        }
        Err(contended("the measurement"))
    }

    /// Whether so many measurements of a database have tables of their own, about, that further ones
    /// share one.
    async fn has_many_tables(&self, database: DatabaseId) -> Result<bool, StoreError> {
        let seen = self.full_databases.get(&database);
        if seen.is_some_and(|seen| seen.elapsed() < FULL_TTL) {
            return Ok(true);
        }
        let measurements = self.measurements_of(database, None).await?;
        let own = measurements.iter().filter(|(_, id)| !is_sharing(*id)).count();
        let is_full = own >= self.tables as usize;
        if is_full {
            self.full_databases.insert(database, Instant::now());
        }
        Ok(is_full)
    }

    /// Forgets a measurement and its series.
    pub(crate) fn forget(&self, measurement: &Measurement) {
        self.forget_where(|known| known.id == measurement.id);
    }

    pub(crate) fn forget_where(&self, gone: impl Fn(&Measurement) -> bool) {
        self.measurements.retain(|_, known| !gone(known));
        self.known_series.retain(|_, (known, _)| !gone(known));
    }

    /// Learns the fields that others have given types.
    pub(crate) async fn refresh_fields(&self, measurement: &Measurement) -> Result<(), StoreError> {
        let state = self.state(measurement.id, None).await?;
        measurement.fields.write().extend(state.fields);
        Ok(())
    }

    /// Gives new fields their types and places. Where somebody else was first, that holds: the
    /// measurement knows afterwards. Fields have numbers that no two of a measurement share, so
    /// that those with a column never are too many for a table, whoever makes them.
    pub(crate) async fn register_fields(
        &self,
        measurement: &Measurement,
        fields: &[(Name, FieldType)],
    ) -> Result<(), StoreError> {
        let count = i64::try_from(fields.len()).unwrap_or(i64::MAX);
        let first = reserve(&self.registry, measurement.id, space::FIELD_NUMBERS, count).await?;
        let (mut entries, mut made) = (Vec::new(), Vec::new());
        for (number, (name, field_type)) in (first..).zip(fields) {
            let key = hash(name.as_bytes());
            let entry = Entry::new(space::FIELD, key).number(i64::from(*field_type as u8));
            let mut entry = entry.text(name);
            let mut place = Place::Column;
            if is_sharing(measurement.id) || number > i64::from(self.columns) {
                let number = i32::try_from(number).map_err(|_| used_up(measurement))?;
                entry = entry.data(number.to_be_bytes().to_vec());
                place = Place::Narrow(number);
            }
            entries.push(entry);
            made.push((name.clone(), Field { field_type: *field_type, place }));
        }
        let inserted = self.registry.insert(measurement.id, &entries).await?;
        if inserted.iter().all(|new| *new) {
            measurement.fields.write().extend(made);
        } else {
            self.refresh_fields(measurement).await?;
        }
        Ok(())
    }

    /// Makes tag keys known.
    pub(crate) async fn register_tag_keys<'a>(
        &self,
        measurement: &Measurement,
        keys: impl Iterator<Item = &'a SeriesKey>,
    ) -> Result<(), StoreError> {
        let mut new: HashSet<Name> = HashSet::new();
        {
            let known = measurement.tag_keys.lock();
            for (key, _) in keys.flat_map(|key| key.tags.iter()) {
                if !known.contains(key) {
                    new.insert(key.clone());
                }
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        let entry = |key: &Name| Entry::new(space::TAG_KEY, hash(key.as_bytes())).text(key);
        let entries: Vec<Entry> = new.iter().map(entry).collect();
        self.registry.upsert(measurement.id, &entries).await?;
        measurement.tag_keys.lock().extend(new);
        Ok(())
    }

    /// What is known of a measurement to those above.
    pub(crate) async fn schema(
        &self,
        database: DatabaseId,
        name: &str,
    ) -> Result<Option<MeasurementSchema>, StoreError> {
        // A server's own present is after all that it has acknowledged: no common moment is needed.
        let read = async |id| self.state_and_dead(id, None).await;
        let found = self.lookup_and(database, &Name::from(name), None, read).await?;
        let Some((id, (state, mut dead))) = found else { return Ok(None) };
        let tag_keys = match dead.is_empty() {
            true => state.tag_keys.clone(),
            false => {
                let now = self.now().await?;
                let mut held = self.work.reserve(0)?;
                self.live_tag_keys(id, &state, &mut dead, now, &mut held).await?
            }
        };
        let fields = state.fields.into_iter().map(|(name, field)| (name, field.field_type));
        Ok(Some(MeasurementSchema { fields: fields.collect(), tag_keys }))
    }

    /// Tag keys of series that have rows. Where there are many marks, `dead` is completed only if a few
    /// series do not show all keys: every query asks for them.
    pub(crate) async fn live_tag_keys(
        &self,
        id: i64,
        state: &State,
        dead: &mut Dead,
        moment: u64,
        held: &mut Reservation,
    ) -> Result<Vec<Name>, StoreError> {
        if dead.is_empty() {
            return Ok(state.tag_keys.clone());
        }
        let mut keys: BTreeSet<Name> = BTreeSet::new();
        let all = state.tag_keys.len();
        let mut listing = self.list_series(id, &TagExpr::True, moment)?;
        while let Some(found) = listing.next().await? {
            if dead.is_cut() {
                let few = found.get(..LOOKED_AT_FIRST).unwrap_or(&found);
                let ids = few.iter().map(|series| series.id).collect();
                learn_keys(few, &self.dead_among(id, ids, moment).await?, &mut keys);
                if keys.len() == all {
                    break;
                }
                self.complete_dead(id, dead, moment, held).await?;
            }
            learn_keys(&found, dead, &mut keys);
            if keys.len() == all {
                break;
            }
        }
        Ok(keys.into_iter().collect())
    }
}

fn learn_keys(series: &[Series], dead: &Dead, keys: &mut BTreeSet<Name>) {
    for series in series.iter().filter(|series| !dead.contains(series.id)) {
        for (key, _) in series.key.tags.iter() {
            if !keys.contains(key) {
                keys.insert(key.clone());
            }
        }
    }
}
