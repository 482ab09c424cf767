//! What a damaged log leaves without meaning.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use model::{FieldType, SeriesId};
use store::StoreError;

use crate::engine::Engine;
use crate::error::series_error;
use crate::rows::{FieldNo, RowBatch, RowLayout};

/// Leaves out rows of series, measurements and fields that are not known, because the record that
/// defines them is lost: their numbers will be given to others. Returns how many.
pub(super) fn leave_out(engine: &Engine, batch: &mut RowBatch<'_>) -> Result<u64, StoreError> {
    let is_defined = |layout: &RowLayout| {
        engine.schema.get(layout.measurement).is_some_and(|measurement| {
            let is = |(no, field_type): &(FieldNo, FieldType)| {
                measurement.fields.get(no.0 as usize).is_some_and(|(_, t)| t == field_type)
            };
            layout.fields.iter().all(is)
        })
    };
    let layouts: Vec<bool> = batch.layouts.iter().map(is_defined).collect();
    let mut series: HashMap<SeriesId, bool> = HashMap::new();
    for row in &batch.rows {
        if let Entry::Vacant(entry) = series.entry(row.series) {
            let key = engine.index.key(row.series).map_err(series_error)?;
            entry.insert(key.is_some_and(|(database, _)| database == batch.database));
        }
    }
    let before = batch.rows.len();
    batch.rows.retain(|row| layouts[row.layout as usize] && series[&row.series]);
    // Memtables take note of every field of a layout.
    for (layout, defined) in batch.layouts.iter_mut().zip(layouts) {
        if !defined {
            layout.fields.clear();
        }
    }
    Ok((before - batch.rows.len()) as u64)
}
