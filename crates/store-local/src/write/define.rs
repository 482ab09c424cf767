//! Making what is new: measurements, fields, series.
//!
//! Everything here happens under the `define` lock, and a definition is in the log before anybody
//! else can find it: whatever record uses a number, the record that defines it comes before.

use std::sync::Arc;

use model::{DatabaseId, Layout, SeriesId, SeriesKey, TagExpr};
use roaring::RoaringTreemap;
use store::{RejectReason, StoreError};

use super::record::{Record, SeriesDefinition};
use super::resolver::KeyHash;
use crate::engine::Engine;
use crate::error::{series_error, wal_error};
use crate::rows::{FieldNo, MeasurementNo, RowLayout};
use crate::schema::{FIELDS_MAX, SchemaChange};

/// Finds or makes a layout's measurement and fields.
pub(super) fn layout(
    engine: &Engine,
    database: DatabaseId,
    layout: &Layout<'_>,
) -> Result<Result<RowLayout, RejectReason>, StoreError> {
    let mut definitions = engine.define.lock();
    let known = engine.schema.find(database, &layout.measurement);
    let mut changes = Vec::new();
    let measurement = known.as_ref().map_or_else(|| engine.schema.next_measurement(), |m| m.no);
    if known.is_none() {
        remove_left_over(engine, database, &layout.measurement)?;
        changes.push(SchemaChange::Measurement {
            no: measurement,
            database,
            name: (*layout.measurement).into(),
        });
    }
    let mut next_field = known.as_ref().map_or(0, |m| m.fields.len());
    let mut fields = Vec::with_capacity(layout.fields.len());
    for field in &layout.fields {
        match known.as_ref().and_then(|m| m.field(&field.name)) {
            Some((no, existing)) if existing == field.field_type => fields.push((no, existing)),
            Some((_, existing)) => {
                return Ok(Err(RejectReason::FieldTypeConflict {
                    measurement: (*layout.measurement).into(),
                    field: (*field.name).into(),
                    input: field.field_type,
                    existing,
                }));
            }
            None => {
                let no = FieldNo(next_field as u32);
                next_field += 1;
                changes.push(SchemaChange::Field {
                    measurement,
                    no,
                    name: (*field.name).into(),
                    field_type: field.field_type,
                });
                fields.push((no, field.field_type));
            }
        }
    }
    if next_field > FIELDS_MAX {
        let reason = format!(
            "measurement \"{}\" would have more than {FIELDS_MAX} fields",
            layout.measurement
        );
        return Ok(Err(RejectReason::Limit(reason)));
    }
    if !changes.is_empty() {
        let bytes = Record::Schema(changes.clone()).encode();
        engine.wal.append(&[&bytes]).map_err(wal_error)?;
        for change in &changes {
            engine.schema.apply(change);
        }
        definitions.schema.extend(changes);
    }
    Ok(Ok(RowLayout { measurement, fields }))
}

/// Makes the series of a measurement that does not exist cease to exist. A crash leaves some if the
/// index was flushed and neither the log nor the manifest got to say that their measurement came to
/// be; they have no rows, and must not show once there is a measurement of that name.
fn remove_left_over(
    engine: &Engine,
    database: DatabaseId,
    measurement: &str,
) -> Result<(), StoreError> {
    let found = engine.index.select(database, measurement, &TagExpr::True);
    let left_over = found.map_err(series_error)?;
    if left_over.is_empty() {
        return Ok(());
    }
    engine.index.remove(&left_over);
    let bytes = Record::RemoveSeries(database, left_over).encode();
    engine.wal.append(&[&bytes]).map(drop).map_err(wal_error)
}

/// Finds or makes series. Their measurements exist.
pub(super) fn series(
    engine: &Engine,
    database: DatabaseId,
    keys: &[(KeyHash, SeriesKey)],
) -> Result<Vec<SeriesId>, StoreError> {
    let series_keys: Vec<SeriesKey> = keys.iter().map(|(_, key)| key.clone()).collect();
    let definitions = engine.define.lock();
    let made = engine.index.create_batch(database, &series_keys).map_err(series_error)?;
    log_new(engine, database, &series_keys, &made)?;
    for ((hash, key), (series, new)) in keys.iter().zip(&made) {
        if *new {
            let measurement = measurement_of(engine, database, key);
            engine.schema.tag_keys_changed(measurement, Some(&key.tags));
        }
        engine.resolver.insert(*hash, *series);
    }
    drop(definitions);
    Ok(made.into_iter().map(|(series, _)| series).collect())
}

/// Reads a raw key; or why no row can have it.
pub(super) fn parse_key(raw: &[u8]) -> Result<SeriesKey, RejectReason> {
    let key = SeriesKey::parse(raw)?;
    if key.tags.iter().any(|(name, _)| &**name == "time") {
        return Err(RejectReason::ReservedName(format!(
            "invalid tag key: input tag \"time\" on measurement \"{}\" is invalid",
            key.measurement
        )));
    }
    Ok(key)
}

fn measurement_of(engine: &Engine, database: DatabaseId, key: &SeriesKey) -> MeasurementNo {
    let found = engine.schema.find(database, &key.measurement);
    found.expect("BUG: layouts are resolved before series").no
}

/// Logs the series that were just made; unmakes them if that fails, so that no later row can use a
/// series that the log does not have.
fn log_new(
    engine: &Engine,
    database: DatabaseId,
    keys: &[SeriesKey],
    made: &[(SeriesId, bool)],
) -> Result<(), StoreError> {
    let new: Vec<SeriesDefinition> = keys
        .iter()
        .zip(made)
        .filter(|(_, (_, new))| *new)
        .map(|(key, (series, _))| SeriesDefinition {
            series: *series,
            key: Arc::from(key.to_string()),
        })
        .collect();
    if new.is_empty() {
        return Ok(());
    }
    let ids: RoaringTreemap = new.iter().map(|d| d.series.0).collect();
    engine.metrics.series_created.add(new.len() as u64);
    let bytes = Record::Series(database, new).encode();
    if let Err(error) = engine.wal.append(&[&bytes]) {
        engine.index.remove(&ids);
        return Err(wal_error(error));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use model::{FieldType, LayoutField};
    use platform::{FaultConfig, SimDisk};

    use super::*;
    use crate::StoreOptions;

    #[test]
    fn a_new_measurement_has_no_series_yet() {
        let disk = Arc::new(SimDisk::new(1, FaultConfig::default()));
        let options = StoreOptions::new("/data", 16 << 20);
        let (engine, _) = crate::recover::open(disk, options).unwrap();
        // As after a crash between the flush of the index and the manifest's edit.
        let key = SeriesKey::parse(b"m,h=a").unwrap();
        engine.index.create(DatabaseId(1), &key).unwrap();
        let wanted = Layout {
            measurement: "m".into(),
            fields: vec![LayoutField { name: "f".into(), field_type: FieldType::Float }],
        };
        for _ in 0..2 {
            layout(&engine, DatabaseId(1), &wanted).unwrap().unwrap();
        }
        let live = |engine: &Engine| {
            engine.index.select(DatabaseId(1), "m", &TagExpr::True).unwrap().len()
        };
        assert_eq!(live(&engine), 0);
        let made = series(&engine, DatabaseId(1), &[(KeyHash::new(DatabaseId(1), 7), key)]);
        assert_eq!((made.unwrap().len(), live(&engine)), (1, 1));
        layout(&engine, DatabaseId(1), &wanted).unwrap().unwrap();
        assert_eq!(live(&engine), 1, "a measurement that exists keeps its series");
    }
}
