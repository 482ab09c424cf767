//! Which rows of a batch can be stored, and under which ids.

use std::collections::HashMap;
use std::sync::Arc;

use model::{DatabaseId, FieldType, LineBatch, LineRow, Name, SeriesKey};
use store::{RejectReason, RejectedRow, StoreError, WriteRequest};

use super::Measured;
use crate::error::contended;
use crate::layout::{FIELDS_MAX, Field, TEXT_BYTES_MAX};
use crate::shared::Shared;

/// Times the types of fields are looked at anew because others gave new fields types meanwhile.
const TRIES_MAX: usize = 20;

/// What a batch comes to.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) rejected: Vec<RejectedRow>,
    pub(super) shares: Vec<Share>,
}

/// The rows of one measurement.
#[derive(Debug)]
pub(super) struct Share {
    pub(super) measurement: Measured,
    /// Indexes into the batch's rows.
    pub(super) rows: Vec<u32>,
    /// Ids of their series.
    pub(super) series: Vec<i64>,
}

/// A row's series.
enum Found {
    Known(Measured, i64),
    /// Parsed once for all rows of the batch that have it.
    New(Arc<SeriesKey>),
    Rejected(RejectReason),
}

pub(super) async fn prepare(
    shared: &Shared,
    request: &WriteRequest<'_>,
) -> Result<Prepared, StoreError> {
    let mut found = find_all(shared, request);
    for _ in 0..TRIES_MAX {
        let mut types = Types::load(shared, request.policy.database, request.batch, &found).await?;
        let verdicts = types.judge(request.batch, &found);
        if types.refused_wrongly(shared, request.policy.database).await? {
            found = find_all(shared, request);
            continue;
        }
        if types.register(shared, request.policy.database).await? {
            return types.finish(shared, request, &found, verdicts).await;
        }
    }
    Err(contended("the fields of a measurement"))
}

fn find_all(shared: &Shared, request: &WriteRequest<'_>) -> Vec<Found> {
    let rows = &request.batch.rows;
    let database = request.policy.database;
    let known = shared.known_series.get_all(rows.iter().map(|row| (database, row.key_hash)));
    let mut parsed: HashMap<u128, Result<Arc<SeriesKey>, RejectReason>> = HashMap::new();
    let found = rows.iter().zip(known).map(|(row, known)| {
        let is_old = |kept: i64| row.time_ns < request.now_ns.saturating_sub(kept);
        let is_old = request.policy.retention_ns.is_some_and(is_old);
        match known {
            Some(_) if is_old => Found::Rejected(RejectReason::BeyondRetention),
            Some((measurement, id)) => Found::Known(measurement, id),
            None => {
                let key = parsed.entry(row.key_hash).or_insert_with(|| parse(request, row));
                match key {
                    Err(reason) => Found::Rejected(reason.clone()),
                    Ok(_) if is_old => Found::Rejected(RejectReason::BeyondRetention),
                    Ok(key) => Found::New(Arc::clone(key)),
                }
            }
        }
    });
    found.collect()
}

fn parse(request: &WriteRequest<'_>, row: &LineRow) -> Result<Arc<SeriesKey>, RejectReason> {
    let key = SeriesKey::parse(request.batch.raw_key(row))?;
    if key.tag("time").is_empty() {
        return Ok(Arc::new(key));
    }
    let measurement = &key.measurement;
    Err(RejectReason::ReservedName(format!(
        "invalid tag key: input tag \"time\" on measurement \"{measurement}\" is invalid"
    )))
}

fn text_too_long(batch: &LineBatch<'_>, row: &LineRow) -> Option<RejectReason> {
    let layout = &batch.layouts[row.layout as usize];
    for (field, slot) in layout.fields.iter().zip(batch.row_values(row)) {
        if field.field_type == FieldType::String && batch.string(*slot).len() > TEXT_BYTES_MAX {
            return Some(RejectReason::Limit(format!(
                "the text of field \"{}\" is longer than {TEXT_BYTES_MAX} bytes, the most a cell \
                 of a Kudu table can hold",
                field.name
            )));
        }
    }
    None
}

/// The measurements of a batch and the types of their fields.
struct Types {
    measurements: Vec<OfMeasurement>,
    /// By layout, the index of its measurement.
    of_layout: Vec<Option<usize>>,
}

struct OfMeasurement {
    name: Name,
    known: Option<Measured>,
    new: Vec<(Name, FieldType)>,
    /// Whether a row will be stored.
    used: bool,
    /// Whether a row will not be, because of what is known of the fields.
    refused: bool,
}

impl Types {
    async fn load(
        shared: &Shared,
        database: DatabaseId,
        batch: &LineBatch<'_>,
        found: &[Found],
    ) -> Result<Self, StoreError> {
        let mut types =
            Self { measurements: Vec::new(), of_layout: vec![None; batch.layouts.len()] };
        let mut by_name: HashMap<Name, usize> = HashMap::new();
        for (row, found) in batch.rows.iter().zip(found) {
            let layout = row.layout as usize;
            if matches!(found, Found::Rejected(_)) || types.of_layout[layout].is_some() {
                continue;
            }
            let name = Name::from(&*batch.layouts[layout].measurement);
            let at = match by_name.get(&name) {
                Some(at) => *at,
                None => {
                    let known = match found {
                        Found::Known(measurement, _) => Some(Arc::clone(measurement)),
                        _ => shared.find(database, &name).await?,
                    };
                    by_name.insert(name.clone(), types.measurements.len());
                    let measurement =
                        OfMeasurement { name, known, new: Vec::new(), used: false, refused: false };
                    types.measurements.push(measurement);
                    types.measurements.len() - 1
                }
            };
            types.of_layout[layout] = Some(at);
        }
        Ok(types)
    }

    /// Why each row cannot be stored, if it cannot; collects the new fields of those that can.
    fn judge(&mut self, batch: &LineBatch<'_>, found: &[Found]) -> Vec<Option<RejectReason>> {
        let mut by_layout: Vec<Option<Result<(), RejectReason>>> = vec![None; batch.layouts.len()];
        let mut verdicts = Vec::with_capacity(found.len());
        for (row, found) in batch.rows.iter().zip(found) {
            if let Found::Rejected(reason) = found {
                verdicts.push(Some(reason.clone()));
                continue;
            }
            if let Some(reason) = text_too_long(batch, row) {
                verdicts.push(Some(reason));
                continue;
            }
            let layout = row.layout as usize;
            let Some(measurement) = self.of_layout[layout] else { continue };
            let measurement = &mut self.measurements[measurement];
            let verdict = by_layout[layout]
                .get_or_insert_with(|| measurement.accept(&batch.layouts[layout]))
                .clone();
            measurement.refused |= verdict.is_err();
            verdicts.push(verdict.err());
        }
        verdicts
    }

    /// Whether rows were refused for the sake of a measurement that was dropped meanwhile.
    async fn refused_wrongly(
        &self,
        shared: &Shared,
        database: DatabaseId,
    ) -> Result<bool, StoreError> {
        let mut wrongly = false;
        for measurement in self.measurements.iter().filter(|m| m.refused) {
            let Some(known) = &measurement.known else { continue };
            if shared.lookup(database, &measurement.name, None).await? != Some(known.id) {
                shared.forget(known);
                wrongly = true;
            }
        }
        Ok(wrongly)
    }

    /// Makes measurements and fields known; `false`: a field got another type than was thought.
    async fn register(
        &mut self,
        shared: &Shared,
        database: DatabaseId,
    ) -> Result<bool, StoreError> {
        let mut holds = true;
        for measurement in self.measurements.iter_mut().filter(|m| m.used) {
            let made = match &measurement.known {
                Some(known) => Arc::clone(known),
                None => shared.create(database, &measurement.name).await?,
            };
            measurement.known = Some(Arc::clone(&made));
            if measurement.new.is_empty() {
                continue;
            }
            // A row is refused or stored as a whole: look first whether others gave other types.
            shared.refresh_fields(&made).await?;
            if !measurement.agrees(&made) {
                holds = false;
                continue;
            }
            let unknown = |(name, _): &&(Name, FieldType)| !made.fields.read().contains_key(name);
            let new: Vec<_> = measurement.new.iter().filter(unknown).cloned().collect();
            if !new.is_empty() {
                shared.register_fields(&made, &new).await?;
            }
            holds &= measurement.agrees(&made);
        }
        Ok(holds)
    }

    async fn finish(
        self,
        shared: &Shared,
        request: &WriteRequest<'_>,
        found: &[Found],
        verdicts: Vec<Option<RejectReason>>,
    ) -> Result<Prepared, StoreError> {
        let mut rejected = Vec::new();
        let mut rows_of: Vec<Vec<u32>> = vec![Vec::new(); self.measurements.len()];
        for (at, (row, verdict)) in (0_u32..).zip(request.batch.rows.iter().zip(verdicts)) {
            match (verdict, self.of_layout[row.layout as usize]) {
                (Some(reason), _) => rejected.push(RejectedRow { row: at, reason }),
                (None, Some(measurement)) => rows_of[measurement].push(at),
                (None, None) => {}
            }
        }
        let mut shares = Vec::new();
        for (measurement, rows) in self.measurements.into_iter().zip(rows_of) {
            let Some(known) = measurement.known.filter(|_| !rows.is_empty()) else { continue };
            let series = series_of(shared, request, &known, &rows, found).await?;
            shares.push(Share { measurement: known, rows, series });
        }
        Ok(Prepared { rejected, shares })
    }
}

impl OfMeasurement {
    /// Whether no new field has another type already.
    fn agrees(&self, known: &Measured) -> bool {
        let fields = known.fields.read();
        let is_so = |known: &Field, ty| known.field_type == ty;
        self.new.iter().all(|(name, ty)| fields.get(name).is_none_or(|known| is_so(known, *ty)))
    }

    fn accept(&mut self, layout: &model::Layout<'_>) -> Result<(), RejectReason> {
        let mut new: Vec<(Name, FieldType)> = Vec::new();
        let fields = self.known.as_ref().map(|known| known.fields.read());
        for field in &layout.fields {
            let known = fields.as_ref().and_then(|fields| fields.get(&*field.name));
            let known = known.map(|known| known.field_type);
            let earlier = || self.new.iter().find(|(n, _)| **n == *field.name).map(|(_, ty)| *ty);
            match known.or_else(earlier) {
                Some(existing) if existing != field.field_type => {
                    return Err(RejectReason::FieldTypeConflict {
                        measurement: self.name.clone(),
                        field: (&*field.name).into(),
                        input: field.field_type,
                        existing,
                    });
                }
                Some(_) => {}
                None => new.push(((&*field.name).into(), field.field_type)),
            }
        }
        let count = fields.as_ref().map_or(0, |fields| fields.len()) + self.new.len() + new.len();
        if !new.is_empty() && count > FIELDS_MAX {
            return Err(RejectReason::Limit(format!(
                "measurement \"{}\" would have more than {FIELDS_MAX} fields",
                self.name
            )));
        }
        drop(fields);
        self.new.extend(new);
        self.used = true;
        Ok(())
    }
}

/// Ids of the series of rows, remembered for the next time.
async fn series_of(
    shared: &Shared,
    request: &WriteRequest<'_>,
    measurement: &Measured,
    rows: &[u32],
    found: &[Found],
) -> Result<Vec<i64>, StoreError> {
    let mut ids = Vec::with_capacity(rows.len());
    let mut new: HashMap<u128, usize> = HashMap::new();
    let mut keys: Vec<SeriesKey> = Vec::new();
    // A negative number stands for a key that is resolved below.
    for at in rows {
        let hash = request.batch.rows[*at as usize].key_hash;
        let key = match &found[*at as usize] {
            Found::Known(known, id) if known.id == measurement.id => {
                ids.push(*id);
                continue;
            }
            Found::New(key) => Some(key),
            _ => None,
        };
        let next = keys.len();
        let place = *new.entry(hash).or_insert(next);
        if place == next {
            keys.push(match key {
                Some(key) => SeriesKey::clone(key),
                None => {
                    let raw = request.batch.raw_key(&request.batch.rows[*at as usize]);
                    SeriesKey::parse(raw).map_err(|e| StoreError::Invalid(e.to_string()))?
                }
            });
        }
        ids.push(-1 - place as i64);
    }
    if keys.is_empty() {
        return Ok(ids);
    }
    let resolved = shared.resolve(measurement, &keys).await?;
    for id in ids.iter_mut().filter(|id| **id < 0) {
        *id = resolved[(-1 - *id) as usize];
    }
    for (hash, place) in new {
        let known = (Arc::clone(measurement), resolved[place]);
        shared.known_series.insert((measurement.database, hash), known);
    }
    Ok(ids)
}
