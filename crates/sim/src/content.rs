//! Everything a store holds, read through its contract.

use std::collections::{BTreeMap, BTreeSet};

use model::{DatabaseId, FieldType, Interrupt, Name, SeriesKey, TagExpr, TimeRange};
use store::testing::{self, Row};
use store::{
    CatalogDocument, MetadataKind, MetadataRequest, NameFilter, Policy, Store, StoreError,
    TimeOrder,
};

use crate::pool::HOSTS;

/// What is looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    pub(crate) policies: Vec<Policy>,
    pub(crate) measurements: Vec<Name>,
    /// Whether the catalog's document is.
    pub(crate) catalog: bool,
}

impl Scope {
    pub(crate) fn databases(&self) -> BTreeSet<DatabaseId> {
        self.policies.iter().map(|policy| policy.database).collect()
    }

    pub(crate) fn add(&mut self, policy: Policy) {
        if !self.policies.iter().any(|p| p.id == policy.id) {
            self.policies.push(policy);
        }
    }

    fn filter(&self) -> NameFilter {
        NameFilter::In(self.measurements.clone())
    }
}

pub(crate) type Fields = Vec<(Name, FieldType)>;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Content {
    pub(crate) catalog: CatalogDocument,
    /// Fields of the measurements that exist.
    pub(crate) fields: BTreeMap<(DatabaseId, Name), Fields>,
    /// Canonical keys.
    pub(crate) series: BTreeMap<DatabaseId, BTreeSet<String>>,
    /// By policy (its number) and measurement, sorted by key and time.
    pub(crate) rows: BTreeMap<(u32, Name), Vec<Row>>,
}

impl Content {
    pub(crate) fn read(store: &dyn Store, scope: &Scope) -> Result<Self, StoreError> {
        let mut content = Self::default();
        if scope.catalog {
            content.catalog = store.catalog()?;
        }
        for database in scope.databases() {
            for measurement in &scope.measurements {
                if let Some(schema) = store.schema(database, measurement, &Interrupt::new())? {
                    let fields = schema.fields.clone();
                    content.fields.insert((database, measurement.clone()), fields);
                }
            }
            let rows = names(store, scope, database, MetadataKind::Series, TagExpr::True)?;
            let keys = rows.into_iter().map(|mut row| row.swap_remove(1));
            content.series.insert(database, keys.collect());
        }
        for policy in &scope.policies {
            for measurement in &scope.measurements {
                let rows = testing::read_all(store, *policy, measurement)?;
                content.rows.insert((policy.id.0, measurement.clone()), rows);
            }
        }
        Ok(content)
    }

    /// How this differs from what is wanted, if it does. `optional` series may be there or not; a
    /// series that is there needs no rows.
    pub(crate) fn difference(&self, want: &Self, optional: &OptionalSeries) -> Option<String> {
        if self.catalog != want.catalog {
            let (got, want) = (self.catalog.version, want.catalog.version);
            return Some(format!("catalog has version {got}, wanted is {want}, or other bytes"));
        }
        for (key, rows) in &want.rows {
            let got = self.rows.get(key).map_or(&[][..], Vec::as_slice);
            if let Some(difference) = rows_difference(got, rows) {
                let (policy, measurement) = key;
                return Some(format!(
                    "rows of policy {policy}, measurement {measurement:?}: {difference}"
                ));
            }
        }
        if self.fields != want.fields {
            return Some(format!(
                "fields of measurements\n  are       {:?}\n  should be {:?}",
                self.fields, want.fields
            ));
        }
        for (database, want) in &want.series {
            let none = BTreeSet::new();
            let got = self.series.get(database).unwrap_or(&none);
            if let Some(missing) = want.difference(got).next() {
                return Some(format!("series {missing} of {database:?} is missing"));
            }
            let extra = |key: &&String| !optional.contains(&(*database, (*key).clone()));
            if let Some(extra) = got.difference(want).find(extra) {
                return Some(format!("series {extra} of {database:?} should not exist"));
            }
        }
        None
    }
}

/// Series that may exist without rows: their rows' write or their delete was not acknowledged.
pub(crate) type OptionalSeries = BTreeSet<(DatabaseId, String)>;

fn rows_difference(got: &[Row], want: &[Row]) -> Option<String> {
    let at = got.iter().zip(want).position(|(got, want)| got != want);
    let at = at.or_else(|| (got.len() != want.len()).then(|| got.len().min(want.len())))?;
    let name = |row: Option<&Row>| row.map_or("nothing".to_owned(), |row| format!("{row:?}"));
    Some(format!(
        "{} of {}, at {at}\n  is        {}\n  should be {}",
        got.len(),
        want.len(),
        name(got.get(at)),
        name(want.get(at))
    ))
}

fn names(
    store: &dyn Store,
    scope: &Scope,
    database: DatabaseId,
    kind: MetadataKind,
    series: TagExpr,
) -> Result<Vec<Vec<String>>, StoreError> {
    let context = testing::unlimited();
    let measurements = scope.filter();
    let request =
        MetadataRequest { database, kind, measurements, series, facts_max: None, context };
    testing::names(store, &request)
}

/// Checks that other ways to ask give the same answers as `content`.
pub(crate) fn check_consistency(
    store: &dyn Store,
    scope: &Scope,
    content: &Content,
) -> Result<(), String> {
    let failed = |e: StoreError| format!("reading failed: {e}");
    for (database, series) in &content.series {
        let keys = series.iter().map(|key| SeriesKey::parse(key.as_bytes()));
        let keys: Vec<SeriesKey> = keys.collect::<Result<_, _>>().map_err(|e| e.to_string())?;
        check_names(store, scope, *database, &keys)?;
    }
    for policy in &scope.policies {
        for measurement in &scope.measurements {
            let rows = &content.rows[&(policy.id.0, measurement.clone())];
            let mut request =
                testing::scan_everything(store, *policy, measurement).map_err(failed)?;
            request.order = TimeOrder::Descending;
            let mut backwards = testing::read(store, &request).map_err(failed)?;
            backwards.reverse();
            backwards.sort_by(|a, b| a.key.cmp(&b.key));
            same_rows("a scan backwards", &backwards, rows)?;
            request.order = TimeOrder::Ascending;
            let Some(middle) = rows.get(rows.len() / 2) else { continue };
            request.time = TimeRange::new(middle.time_ns, TimeRange::ALL.max);
            let later: Vec<Row> =
                rows.iter().filter(|row| row.time_ns >= middle.time_ns).cloned().collect();
            let got = testing::read(store, &request).map_err(failed)?;
            same_rows(&format!("a scan from {}", middle.time_ns), &got, &later)?;
        }
    }
    Ok(())
}

fn same_rows(what: &str, got: &[Row], want: &[Row]) -> Result<(), String> {
    match rows_difference(got, want) {
        Some(difference) => Err(format!("{what} differs from one forwards: {difference}")),
        None => Ok(()),
    }
}

/// Checks every answer about names against the list of series.
fn check_names(
    store: &dyn Store,
    scope: &Scope,
    database: DatabaseId,
    keys: &[SeriesKey],
) -> Result<(), String> {
    let ask = |kind: MetadataKind, series: TagExpr| {
        let what = format!("{kind:?} of {database:?} where {series:?}");
        let rows = names(store, scope, database, kind, series);
        rows.map(|rows| (what, rows)).map_err(|e| format!("reading failed: {e}"))
    };
    let expect = |(what, got): (String, Vec<Vec<String>>), want: BTreeSet<Vec<String>>| {
        if got.iter().eq(&want) {
            return Ok(());
        }
        Err(format!("{what}\n  are       {got:?}\n  should be {want:?}"))
    };
    let text = |parts: &[&Name]| parts.iter().map(ToString::to_string).collect::<Vec<_>>();
    let measurements = keys.iter().map(|key| text(&[&key.measurement])).collect();
    expect(ask(MetadataKind::Measurements, TagExpr::True)?, measurements)?;
    let mut counts: BTreeMap<&Name, usize> = BTreeMap::new();
    keys.iter().for_each(|key| *counts.entry(&key.measurement).or_default() += 1);
    let counts = counts.into_iter().map(|(name, count)| vec![name.to_string(), count.to_string()]);
    expect(ask(MetadataKind::SeriesCounts, TagExpr::True)?, counts.collect())?;
    let tags = || keys.iter().flat_map(|key| key.tags.iter().map(move |tag| (key, tag)));
    let tag_keys = tags().map(|(key, (tag, _))| text(&[&key.measurement, tag])).collect();
    expect(ask(MetadataKind::TagKeys, TagExpr::True)?, tag_keys)?;
    let tag_values =
        tags().map(|(key, (tag, value))| text(&[&key.measurement, tag, value])).collect();
    expect(ask(MetadataKind::TagValues(NameFilter::All), TagExpr::True)?, tag_values)?;
    for host in HOSTS.iter().chain([&""]) {
        let with = keys.iter().filter(|key| key.tag("host") == *host);
        let series = with.map(|key| vec![key.measurement.to_string(), key.to_string()]).collect();
        let expr = TagExpr::Equals("host".into(), (*host).into());
        expect(ask(MetadataKind::Series, expr)?, series)?;
    }
    for measurement in &scope.measurements {
        let schema =
            store.schema(database, measurement, &Interrupt::new()).map_err(|e| e.to_string())?;
        let got = schema.map(|schema| schema.tag_keys.clone()).unwrap_or_default();
        let of_it = tags().filter(|(key, _)| key.measurement == *measurement);
        let want: BTreeSet<Name> = of_it.map(|(_, (tag, _))| tag.clone()).collect();
        if !got.iter().eq(&want) {
            return Err(format!("tag keys of {measurement} are {got:?}, should be {want:?}"));
        }
    }
    Ok(())
}
