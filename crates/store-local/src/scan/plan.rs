//! What a scan reads: the partitions of a pinned view, fields, series, and the hints of the request.

use std::sync::Arc;

use model::{FieldFilter, FieldType, Name, TimeRange};
use parking_lot::Mutex;
use roaring::RoaringTreemap;
use store::{ScanRequest, SummaryParts, TimeOrder, Windows};

use super::filter::FilterColumns;
use super::series_list::SeriesList;
use super::shared_block::CELLS_OF_A_SERIES;
use super::{gathered, length, partition_extent};
use crate::memtable::{FieldPlaces, Memtable, Pin};
use crate::rows::{FieldNo, NO_FIELD};
use crate::schema::Measurement;
use crate::view::Partition;

/// What a scan reads.
#[derive(Debug)]
pub(crate) struct ScanPlan {
    pub(crate) measurement: Arc<Measurement>,
    /// Partitions with rows of the time range, ascending.
    pub(crate) partitions: Vec<Arc<Partition>>,
    pub(crate) fields: Vec<(Name, FieldType)>,
    pub(crate) field_numbers: Arc<[(FieldNo, FieldType)]>,
    pub(crate) time: TimeRange,
    pub(crate) filters: Vec<FieldFilter>,
    /// For each filter the places of its fields among `fields`.
    pub(super) filter_columns: Vec<FilterColumns>,
    pub(crate) order: TimeOrder,
    pub(crate) windows: Option<Windows>,
    /// Whether it does not matter which series a row is of.
    pub(super) joins_series: bool,
    /// What the active memtables of `partitions` had when the scan was opened.
    pins: Vec<(Arc<Memtable>, Pin)>,
    /// Where memtables have the fields, as far as it was asked for: with many layouts of rows it takes a while.
    places: Mutex<Vec<(Arc<Memtable>, Arc<FieldPlaces>)>>,
    /// The matching series, ascending.
    pub(crate) series: SeriesList,
    /// Series that were asked for, also those that were left out as they have no rows in the time.
    pub(crate) series_named: u64,
    /// Series that the measurement has in all.
    pub(crate) series_total: u64,
}

impl ScanPlan {
    /// What a request reads.
    pub(crate) fn new(
        request: &ScanRequest,
        measurement: Arc<Measurement>,
        partitions: Vec<Arc<Partition>>,
        series: SeriesList,
        (series_named, series_total): (u64, u64),
    ) -> Self {
        let number = |field: &(Name, FieldType)| numbered(&measurement, field);
        let place = |wanted: &Name| request.fields.iter().position(|(name, _)| name == wanted);
        Self {
            pins: pins_of(&partitions),
            places: Mutex::default(),
            field_numbers: request.fields.iter().map(number).collect(),
            measurement,
            partitions,
            fields: request.fields.clone(),
            time: request.time,
            filter_columns: request
                .filters
                .iter()
                .map(|filter| FilterColumns::of(filter, place))
                .collect(),
            filters: request.filters.clone(),
            order: request.order,
            windows: request.windows,
            joins_series: request.joins_series,
            series,
            series_named,
            series_total,
        }
    }

    /// The same where it only matters whether there are rows, whichever series they are of, and whatever filters say of them.
    pub(super) fn of_any_row(&self) -> Self {
        Self {
            measurement: Arc::clone(&self.measurement),
            partitions: self.partitions.clone(),
            fields: self.fields.clone(),
            field_numbers: Arc::clone(&self.field_numbers),
            filters: Vec::new(),
            filter_columns: Vec::new(),
            windows: None,
            joins_series: true,
            pins: self.pins.clone(),
            places: Mutex::default(),
            series: self.series.clone(),
            ..*self
        }
    }

    /// About how many rows each series has in some partitions.
    pub(super) fn rows_each(&self, partitions: &[Arc<Partition>]) -> u64 {
        self.rows_each_within(partitions, TimeRange::ALL)
    }

    /// About how many of these lie within a time.
    pub(super) fn rows_each_within(&self, partitions: &[Arc<Partition>], within: TimeRange) -> u64 {
        let extents = partitions.iter().filter_map(|p| partition_extent(p, &self.measurement));
        let rows = extents.map(|(time, rows)| {
            let part = length(&time.intersect(&within)).max(0.0) / length(&time);
            (rows as f64 * part) as u64
        });
        rows.sum::<u64>() / self.series_total.max(1)
    }

    /// How many series are read together, if they have so few rows each; less than that, if a `few` are enough.
    pub(super) fn series_at_once(&self, rows_each: u64, few: Option<u64>) -> Option<usize> {
        let columns = self.fields.len() + 1;
        let cells_each = rows_each.saturating_mul(columns as u64);
        let series = gathered::series_at_once(rows_each, columns);
        series.filter(|_| few.is_none() || cells_each <= CELLS_OF_A_SERIES as u64)
    }

    /// Whether of values it matters only whether they are there.
    pub(super) fn only_counts(&self) -> bool {
        let counts = |windows: Windows| windows.parts == SummaryParts::default();
        self.filters.is_empty() && self.windows.is_some_and(counts)
    }

    pub(super) fn pin_of(&self, table: &Arc<Memtable>) -> Pin {
        let pin = self.pins.iter().find(|(pinned, _)| Arc::ptr_eq(pinned, table));
        pin.expect("BUG: every active memtable of a plan is pinned").1
    }

    /// Where the rows of a memtable have the fields. Those of an active one were pinned when the plan was made, before this.
    pub(super) fn places_of(&self, table: &Arc<Memtable>) -> Arc<FieldPlaces> {
        // Held while they are found: whoever else needs them waits, and does not find them again.
        let mut known = self.places.lock();
        if let Some((_, places)) = known.iter().find(|(known, _)| Arc::ptr_eq(known, table)) {
            return Arc::clone(places);
        }
        let places = Arc::new(table.places(self.measurement.no, &self.field_numbers));
        known.push((Arc::clone(table), Arc::clone(&places)));
        places
    }

    /// Every field of some series, over all time.
    pub(crate) fn whole(
        measurement: &Arc<Measurement>,
        partitions: Vec<Arc<Partition>>,
        series: &RoaringTreemap,
    ) -> Self {
        Self::of_fields(measurement, partitions, &measurement.fields, series)
    }

    /// Some fields of some series, over all time.
    pub(crate) fn of_fields(
        measurement: &Arc<Measurement>,
        partitions: Vec<Arc<Partition>>,
        fields: &[(Name, FieldType)],
        series: &RoaringTreemap,
    ) -> Self {
        Self {
            pins: pins_of(&partitions),
            places: Mutex::default(),
            partitions,
            fields: fields.to_vec(),
            field_numbers: fields.iter().map(|field| numbered(measurement, field)).collect(),
            time: TimeRange::ALL,
            filters: Vec::new(),
            filter_columns: Vec::new(),
            order: TimeOrder::Ascending,
            windows: None,
            joins_series: false,
            series: SeriesList::of(series),
            series_named: series.len(),
            series_total: series.len(),
            measurement: Arc::clone(measurement),
        }
    }
}

/// The number and the type of a field. One that does not exist, or exists with another type, has no
/// values.
fn numbered(measurement: &Measurement, (name, wanted): &(Name, FieldType)) -> (FieldNo, FieldType) {
    let known = measurement.field(name).filter(|(_, t)| t == wanted);
    (known.map_or(NO_FIELD, |(no, _)| no), *wanted)
}

fn pins_of(partitions: &[Arc<Partition>]) -> Vec<(Arc<Memtable>, Pin)> {
    let active = partitions.iter().filter_map(|p| p.active.as_ref());
    active.map(|table| (Arc::clone(table), table.pin())).collect()
}
