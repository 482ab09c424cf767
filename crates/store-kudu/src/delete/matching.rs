//! Deletes of rows that are named one by one, as far as they still have the values named with them.
//!
//! The rows are read again, compared here, and removed by their keys. What is named is bounded
//! (`MatchingRows::ROWS_MAX`); what is read besides is held against the memory for such work.
//!
//! Kudu has no conditional delete:
//! what another client writes to a row between the two goes with the row. docs/kudu.md says so.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use model::{Budget, DatabaseId, Interrupt, Name, SeriesKey, TagExpr, TimeRange};
use store::{
    Comparison, MatchingRows, Policy, Scan, ScanContext, ScanItem, ScanRequest, ScanSlice, Store,
    StoreError, TimeOrder,
};

use crate::kudu_store::KuduStore;
use crate::layout::Kind;
use crate::series::Series;
use crate::shared::Shared;

/// Values of a tag that series are looked for by.
const VALUES_MAX: usize = 200;

/// The times of rows, by series.
type Rows<'a> = Vec<(&'a SeriesKey, Vec<i64>)>;

impl KuduStore {
    pub(crate) fn delete_matching(
        &self,
        database: DatabaseId,
        named: &MatchingRows,
    ) -> Result<(), StoreError> {
        let Some(schema) = self.schema(database, named.measurement(), &Interrupt::new())? else {
            return Ok(());
        };
        let budget = self.with(|_, shared| Ok(shared.work.clone()))?;
        let request = request(database, named, &schema.tag_keys, budget);
        let rows = if named.fields().is_empty() {
            compare(None, named, &request)?
        } else {
            compare(Some(&*self.scan(&request)?), named, &request)?
        };
        self.with(|runtime, shared| runtime.wait(shared.delete_named(database, named, &rows)))
    }
}

/// Reads what is named, and little besides.
fn request(
    database: DatabaseId,
    named: &MatchingRows,
    tags: &[Name],
    budget: Budget,
) -> ScanRequest {
    // Nothing is made for a policy that is only read.
    let policy =
        Policy { database, id: named.policy(), partition_ns: i64::MAX, retention_ns: None };
    let mut asked: BTreeSet<Name> = tags.iter().cloned().collect();
    asked.extend(named.runs().flat_map(|(key, _)| key.tags.iter().map(|(tag, _)| tag.clone())));
    ScanRequest {
        policy,
        measurement: named.measurement().clone(),
        fields: named.fields().to_vec(),
        tags: asked.into_iter().collect(),
        series: series_of(named),
        time: bounds(named.times()),
        filters: Vec::new(),
        order: TimeOrder::Ascending,
        windows: None,
        joins_series: false,
        context: ScanContext { budget, interrupt: Interrupt::new() },
    }
}

/// The first and the last of some times.
fn bounds(times: &[i64]) -> TimeRange {
    match (times.iter().min(), times.iter().max()) {
        (Some(first), Some(last)) => TimeRange::new(*first, *last),
        _ => TimeRange::EMPTY,
    }
}

/// What all named series have in common: one of few values of a tag that each of them has.
fn series_of(named: &MatchingRows) -> TagExpr {
    let mut values: HashMap<&Name, (usize, BTreeSet<&Name>)> = HashMap::new();
    let mut series = 0;
    for (key, _) in named.runs() {
        series += 1;
        for (tag, value) in &key.tags {
            let (count, of_tag) = values.entry(tag).or_default();
            *count += 1;
            of_tag.insert(value);
        }
    }
    let usable = values
        .into_iter()
        .filter(|(_, (count, of_tag))| *count == series && of_tag.len() <= VALUES_MAX);
    let list = |(tag, (_, of_tag)): (&Name, (usize, BTreeSet<&Name>))| {
        TagExpr::In(tag.clone(), of_tag.into_iter().cloned().collect())
    };
    let mut parts: Vec<TagExpr> = usable.map(list).collect();
    match parts.len() {
        0 => TagExpr::True,
        1 => parts.remove(0),
        _ => TagExpr::And(parts),
    }
}

/// The rows that have the values they were named with. Of series that the scan does not have, those
/// that were named without values.
fn compare<'a>(
    scan: Option<&dyn Scan>,
    named: &'a MatchingRows,
    request: &ScanRequest,
) -> Result<Rows<'a>, StoreError> {
    let mut comparisons: Vec<(&SeriesKey, Comparison<'a>)> =
        named.runs().map(|(key, range)| (key, named.compare(range))).collect();
    if let Some(scan) = scan.filter(|scan| scan.series().len > 0) {
        let known: HashMap<&SeriesKey, usize> =
            comparisons.iter().enumerate().map(|(at, (key, _))| (*key, at)).collect();
        let place = |ordinal| known.get(&key_of(scan, request, ordinal)).map(|at| (ordinal, *at));
        let places: HashMap<u32, usize> = (0..scan.series().len).filter_map(place).collect();
        let mut wanted: Vec<u32> = places.keys().copied().collect();
        wanted.sort_unstable();
        let slice = ScanSlice { series: Some(wanted.into()), ..ScanSlice::all() };
        let mut cursor = scan.open(&slice)?;
        while let Some(item) = cursor.next()? {
            let ScanItem::Rows(batch) = item else { continue };
            let mut start = 0;
            for run in &batch.runs {
                let rows = start..start + run.rows as usize;
                start = rows.end;
                let Some(at) = places.get(&run.series) else { continue };
                let columns = batch.columns.get(1..).unwrap_or_default();
                comparisons[*at].1.see(&batch.times()[rows.clone()], columns, rows.start);
            }
        }
    }
    Ok(comparisons.into_iter().map(|(key, comparison)| (key, comparison.finish())).collect())
}

/// The key of a scan's series.
fn key_of(scan: &dyn Scan, request: &ScanRequest, ordinal: u32) -> SeriesKey {
    let tags = scan.series().tags.iter().filter_map(|column| {
        let value = column.values.get(column.codes[ordinal as usize] as usize);
        (!value.is_empty()).then(|| (column.key.clone(), Name::from(value)))
    });
    SeriesKey { measurement: request.measurement.clone(), tags: tags.collect() }
}

impl Shared {
    /// Removes rows by their keys.
    async fn delete_named(
        &self,
        database: DatabaseId,
        named: &MatchingRows,
        rows: &Rows<'_>,
    ) -> Result<(), StoreError> {
        self.metrics.deletes.add(1);
        let name = named.measurement();
        let rows: HashMap<&SeriesKey, &[i64]> = rows
            .iter()
            .filter(|(_, times)| !times.is_empty())
            .map(|(key, times)| (*key, times.as_slice()))
            .collect();
        let Some(measurement) = self.lookup(database, name, None).await? else { return Ok(()) };
        if rows.is_empty() {
            return Ok(());
        }
        let now = self.now().await?;
        let mut listing = self.list_series(measurement, &series_of(named), now)?;
        let mut found: BTreeMap<i64, &[i64]> = BTreeMap::new();
        while let Some(listed) = listing.next().await? {
            let times_of = |s: &Series| rows.get(&s.key).map(|times| (s.id, *times));
            found.extend(listed.iter().filter_map(times_of));
        }
        let ids: Vec<i64> = found.keys().copied().collect();
        let time = rows.values().fold(TimeRange::EMPTY, |all, times| all.union(&bounds(times)));
        let policy = named.policy();
        let data = [Kind::Wide, Kind::Narrow]
            .map(|kind| self.names.data(kind, database, policy, measurement, name));
        let mut touched = BTreeSet::new();
        for table in self.tables_of(database, measurement).await? {
            if data.iter().any(|name| table.name() == name) {
                let some = Some(ids.as_slice());
                let is_wanted = |series, time| {
                    found.get(&series).is_some_and(|times| times.binary_search(&time).is_ok())
                };
                let removed =
                    self.delete_from(&table, measurement, some, time, now, is_wanted).await?;
                touched.extend(removed);
            }
        }
        let touched: Vec<i64> = touched.into_iter().collect();
        self.mark_dead(database, measurement, &touched).await
    }
}
