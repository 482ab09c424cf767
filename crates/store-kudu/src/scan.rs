//! Scans: series are resolved and one moment of the cluster is taken when a scan is made; tables are
//! read as of that moment whenever a cursor is opened.
//!
//! How: docs of `plan` (which pieces), `stream` (one piece forwards), `gather` (many ranges at once),
//! `backward` (one series backwards), `cursor` (pieces to items).

mod backward;
mod cursor;
mod decode;
mod gather;
mod narrow;
mod plan;
mod reader;
mod stream;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kudu_client::{Error, Predicate, Scanner, Table, Value};
use model::{
    CompareOp, FieldFilter, FieldType, Name, Operand, Reservation, Scalar, Strings, TimeRange,
};
use store::{
    ExtentPart, Policy, Scan, ScanCursor, ScanRequest, ScanSlice, ScanStats, SeriesTable,
    StoreError, TagColumn,
};

use self::cursor::KuduCursor;
use self::narrow::NarrowView;
use crate::data::{DataTable, check_type};
use crate::dead::BYTES_PER_LOOK;
use crate::error::cluster;
use crate::gone::Owner;
use crate::layout::{Field, Kind, Place, column_name, column_type, is_sharing};
use crate::measurement::State;
use crate::ranges::united;
use crate::series::Series;
use crate::shared::Shared;

/// A scan.
pub(crate) struct KuduScan {
    view: Arc<View>,
    table: SeriesTable,
    _held: Reservation,
}

/// What all cursors of a scan share.
pub(crate) struct View {
    shared: Arc<Shared>,
    request: ScanRequest,
    /// The table with a column a field, where one of these is asked for.
    table: Option<Table>,
    /// The narrow table, likewise.
    narrow: Option<NarrowView>,
    pins: Vec<Pin>,
    /// What is remembered of the tables.
    data: Vec<Arc<DataTable>>,
    moment: u64,
    /// By ordinal: bucket and id, ascending.
    series: Vec<(u32, i64)>,
    /// The measurement's id.
    measurement: i64,
    /// Registered ranges that the request's time touches.
    registered: Vec<TimeRange>,
    /// Stretches of time that may have rows, ascending, within the request's time.
    ranges: Vec<TimeRange>,
    /// By field asked for, its column; `None`: it has none.
    columns: Vec<Option<String>>,
    predicates: Vec<Predicate>,
    /// Rows a range may have, roughly.
    rows_per_range: u64,
    rows: AtomicU64,
    bytes: AtomicU64,
    scanned: AtomicU64,
}

/// Keeps a table from being dropped by this handle.
struct Pin {
    shared: Arc<Shared>,
    id: String,
}

impl Pin {
    fn new(shared: &Arc<Shared>, table: &Table) -> Self {
        shared.pins.pin(&table.id());
        Self { shared: Arc::clone(shared), id: table.id() }
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        if let Some(name) = self.shared.pins.unpin(&self.id) {
            let client = self.shared.client.clone();
            self.shared.handle.spawn(async move {
                if let Err(error) = client.delete_table(&name).await {
                    tracing::warn!("cannot drop table {name}: {error}");
                }
            });
        }
    }
}

impl KuduScan {
    pub(crate) async fn new(
        shared: &Arc<Shared>,
        request: &ScanRequest,
    ) -> Result<Self, StoreError> {
        shared.metrics.scans.add(1);
        let moment = shared.now().await?;
        let mut held = request.context.budget.reserve(0)?;
        let mut view = View {
            shared: Arc::clone(shared),
            request: request.clone(),
            table: None,
            narrow: None,
            pins: Vec::new(),
            data: Vec::new(),
            moment,
            series: Vec::new(),
            measurement: 0,
            registered: Vec::new(),
            ranges: Vec::new(),
            columns: Vec::new(),
            predicates: Vec::new(),
            rows_per_range: 1,
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            scanned: AtomicU64::new(0),
        };
        let found = view.resolve(&mut held).await?;
        let keys: Vec<&Series> = found.iter().collect();
        let table = series_table(&keys, &request.tags)?;
        let bytes: usize =
            table.tags.iter().map(|t| t.codes.len() * 4 + t.values.memory_bytes()).sum();
        drop(found);
        held.resize(bytes + view.series.len() * 16)?;
        Ok(Self { view: Arc::new(view), table, _held: held })
    }
}

impl View {
    /// What an error of the data table means; one that is gone or changed is opened anew next time.
    fn failed(&self, error: Error) -> StoreError {
        let is_other = matches!(error, Error::TableNotFound { .. } | Error::SchemaChanged { .. });
        for data in self.data.iter().filter(|_| is_other) {
            data.release();
            data.forget();
        }
        match error {
            Error::TableNotFound { table } => StoreError::Io(format!(
                "table {table} of the Kudu cluster is gone: its measurement, policy or database was \
                 dropped while it was read, or the table by hand; ask again"
            )),
            error => cluster(error),
        }
    }

    fn owner(&self) -> Owner<'_> {
        let Policy { database, id: policy, .. } = self.request.policy;
        let measurement = &self.request.measurement;
        Owner { database, policy, measurement, id: self.measurement }
    }

    /// A scanner is at its end: complains if it missed rows that nobody has dropped properly.
    async fn ended(&self, scanner: &Scanner) -> Result<(), StoreError> {
        match scanner.has_lost_rows() {
            true => self.shared.refuse_missing(self.owner(), self.registered.clone()).await,
            false => Ok(()),
        }
    }

    /// Finds series, table and ranges; the series come in the order of ordinals.
    async fn resolve(&mut self, held: &mut Reservation) -> Result<Vec<Series>, StoreError> {
        let (shared, request) = (Arc::clone(&self.shared), self.request.clone());
        let (database, policy) = (request.policy.database, request.policy.id);
        let now = Some(self.moment);
        let moment = self.moment;
        let read = async |id| {
            held.resize(0)?;
            tokio::try_join!(
                shared.state_and_dead(id, now),
                remembered_or_open(&shared, &request, id, Kind::Wide),
                list(&shared, id, &request, moment, held),
            )
        };
        let read = shared.lookup_and(database, &request.measurement, now, read);
        let Some((id, ((mut state, mut dead), mut table, mut found))) = read.await? else {
            return Ok(Vec::new());
        };
        let is_narrow = |(name, field_type): &(Name, FieldType)| {
            let field = state.fields.get(name).filter(|field| field.field_type == *field_type);
            field.map(|field| field.place != Place::Column)
        };
        let kinds: Vec<Option<bool>> = request.fields.iter().map(is_narrow).collect();
        if !kinds.contains(&Some(false)) {
            table = None;
        }
        if table.as_ref().is_some_and(|(table, _)| lacks_columns(table, &state, &request)) {
            table = open_data(&shared, &request, id, Kind::Wide).await?;
        }
        let narrow = match kinds.contains(&Some(true)) {
            true => remembered_or_open(&shared, &request, id, Kind::Narrow).await?,
            false => None,
        };
        let time = request.time.intersect(&TimeRange::ALL);
        let registered = state.ranges.remove(&policy).unwrap_or_default();
        // What is over may go at any time.
        let oldest_ns = request.policy.retention_ns.map(|kept| {
            i64::try_from(u128::from(moment >> 12) * 1000).unwrap_or(i64::MAX).saturating_sub(kept)
        });
        let is_over = |range: &TimeRange| oldest_ns.is_some_and(|oldest| range.max < oldest);
        let touched = registered.iter().filter(|range| !range.intersect(&time).is_empty());
        let touched = touched.filter(|range| !is_over(range));
        (self.measurement, self.registered) = (id, touched.copied().collect());
        if kinds.iter().any(Option::is_some) {
            let opened = [&table, &narrow].into_iter().flatten().map(|(table, _)| table);
            let opened: Vec<&Table> = opened.collect();
            shared.refuse_lost(self.owner(), &self.registered, &opened).await?;
        }
        let ranges = united(registered);
        let all_ranges = ranges.len();
        self.ranges = ranges.iter().map(|r| r.intersect(&time)).filter(|r| !r.is_empty()).collect();
        let remembered = shared.remember(database, &request.measurement, id, &state);
        for (kind, opened) in [(Kind::Wide, table), (Kind::Narrow, narrow)] {
            let Some((table, pin)) = opened else { continue };
            // Where its tablets are is remembered as long as somebody holds it.
            let data = remembered.table(policy, kind);
            data.hold(&table);
            self.data.push(data);
            self.pins.push(pin);
            match kind {
                Kind::Wide => self.table = Some(table),
                Kind::Narrow => self.narrow = Some(self.narrow_view(table, id, &state)?),
            }
        }
        let first = self.table.clone().or_else(|| Some(self.narrow.as_ref()?.table.clone()));
        let Some(table) = first else { return Ok(Vec::new()) };
        if self.ranges.is_empty() || !self.choose_columns(&state)? {
            return Ok(Vec::new());
        }
        if dead.is_cut() {
            held.grow(found.len() * BYTES_PER_LOOK)?;
            let ids = found.iter().map(|series| series.id).collect();
            dead = shared.dead_among(id, ids, moment).await?;
        }
        found.retain(|series| !dead.contains(series.id));
        let bucket = |series: Series| {
            let values = [Value::from(id), Value::from(series.id)];
            let values = &values[usize::from(!is_sharing(id))..];
            let bucket = table.hash_bucket(values).map_err(cluster)?;
            Ok((bucket, series))
        };
        let mut placed: Vec<(u32, Series)> =
            found.into_iter().map(bucket).collect::<Result<_, StoreError>>()?;
        placed.sort_unstable_by_key(|(bucket, series)| (*bucket, series.id));
        self.series = placed.iter().map(|(bucket, series)| (*bucket, series.id)).collect();
        self.estimate(&table, &state, all_ranges).await?;
        Ok(placed.into_iter().map(|(_, series)| series).collect())
    }

    fn narrow_view(
        &self,
        table: Table,
        measurement: i64,
        state: &State,
    ) -> Result<NarrowView, StoreError> {
        let number = |(index, (name, field_type)): (usize, &(Name, FieldType))| {
            let field = state.fields.get(name).filter(|field| field.field_type == *field_type)?;
            match field.place {
                Place::Narrow(number) => Some((number, index)),
                Place::Column => None,
            }
        };
        let mut fields: Vec<(i32, usize)> =
            self.request.fields.iter().enumerate().filter_map(number).collect();
        fields.sort_unstable();
        let mut types: Vec<FieldType> = Vec::new();
        for (_, index) in &fields {
            let field_type = match self.request.fields[*index].1 {
                // The bits of both are in the same column.
                FieldType::Unsigned => FieldType::Integer,
                other => other,
            };
            if !types.contains(&field_type) {
                types.push(field_type);
            }
        }
        let buckets = |table: &Table| {
            let dimensions = table.partition_schema().hash_dimensions();
            dimensions.iter().map(|d| (d.buckets, d.seed)).collect::<Vec<_>>()
        };
        let is_aligned = self.table.as_ref().is_none_or(|wide| buckets(wide) == buckets(&table));
        Ok(NarrowView { table, measurement, fields, types, is_aligned })
    }

    /// `false`: no row has what is asked for.
    fn choose_columns(&mut self, state: &State) -> Result<bool, StoreError> {
        // The column of a field, if it has one.
        let data = self.data.iter().find(|data| data.kind() == Kind::Wide).cloned();
        let only_policy = state.ranges.is_empty();
        let table = self.table.clone();
        let column = |field: &Name, field_type: FieldType| {
            let is_wide =
                |known: &&Field| known.field_type == field_type && known.place == Place::Column;
            let known = state.fields.get(field).filter(is_wide);
            let (Some(table), Some(_)) = (&table, known) else { return Ok(None) };
            let name = column_name(field);
            let Some(at) = table.schema().find(&name) else {
                data.as_ref().map_or(Ok(()), |data| data.miss_column(&name, only_policy))?;
                return Ok(None);
            };
            check_type(table.name(), &name, table.schema().columns()[at].data_type, field_type)?;
            Ok::<_, StoreError>(Some(name))
        };
        for (field, field_type) in &self.request.fields {
            self.columns.push(column(field, *field_type)?);
        }
        let mut there = self.columns.iter().flatten();
        match (there.next(), there.next()) {
            (None, _) => self.table = None,
            (Some(only), None) => self.predicates.push(Predicate::is_not_null(only)),
            _ => {}
        }
        if self.table.is_none() && self.narrow.is_none() {
            return Ok(false);
        }
        for filter in &self.request.filters {
            let known = state.fields.get(&filter.field).map(|known| known.field_type);
            let field_type = match &filter.operand {
                Operand::Constant(constant) => Some(constant.field_type()),
                Operand::Field(_) => known,
                Operand::Text(_) => Some(FieldType::String),
            };
            for field in filter.fields() {
                let has_type = |known: &&Field| Some(known.field_type) == field_type;
                let Some(known) = state.fields.get(field).filter(has_type) else {
                    return Ok(false);
                };
                // Rows are put together from two tables before they can be looked at.
                if self.narrow.is_some() || known.place != Place::Column {
                    continue;
                }
                match column(field, known.field_type)? {
                    None => return Ok(false),
                    Some(name) => self.predicates.push(predicate(&name, filter)),
                }
            }
        }
        Ok(true)
    }

    async fn estimate(
        &mut self,
        table: &Table,
        state: &State,
        ranges: usize,
    ) -> Result<(), StoreError> {
        // A row of a narrow table is a value.
        let fields = match Kind::of(table) {
            Kind::Wide => 1,
            Kind::Narrow => state.fields.len().max(1) as u64,
        };
        let statistics = self.shared.statistics(table).await? / fields;
        let rows = u128::from(statistics) * self.series.len() as u128;
        let per_series = rows / u128::from(state.series_end.max(1).unsigned_abs());
        let per_range = per_series / ranges.max(1) as u128;
        self.rows_per_range = u64::try_from(per_range).unwrap_or(u64::MAX).max(1);
        Ok(())
    }
}

/// Whether the table was opened before a field that is asked for got its column, or one of its type.
fn lacks_columns(table: &Table, state: &State, request: &ScanRequest) -> bool {
    let fields = request.fields.iter().map(|(field, _)| field);
    let mut asked = fields.chain(request.filters.iter().flat_map(FieldFilter::fields));
    let columns = table.schema().columns();
    asked.any(|field| {
        let known = state.fields.get(field).filter(|known| known.place == Place::Column);
        let found = table.schema().find(&column_name(field)).and_then(|at| columns.get(at));
        known.is_some_and(|known| {
            found.is_none_or(|found| found.data_type != column_type(known.field_type))
        })
    })
}

/// The table as it was opened before, if it was. A table keeps its name for life, and no other gets
/// it: names are made of ids.
async fn remembered_or_open(
    shared: &Arc<Shared>,
    request: &ScanRequest,
    measurement: i64,
    kind: Kind,
) -> Result<Option<(Table, Pin)>, StoreError> {
    if is_sharing(measurement) && kind == Kind::Wide {
        return Ok(None);
    }
    let Policy { database, id: policy, .. } = request.policy;
    let known = shared.measurements.get(&(database, request.measurement.clone()));
    let known = known.filter(|known| known.id == measurement);
    match known.and_then(|known| known.table(policy, kind).opened()) {
        Some(table) => {
            let pin = Pin::new(shared, &table);
            Ok(Some((table, pin)))
        }
        None => open_data(shared, request, measurement, kind).await,
    }
}

async fn open_data(
    shared: &Arc<Shared>,
    request: &ScanRequest,
    measurement: i64,
    kind: Kind,
) -> Result<Option<(Table, Pin)>, StoreError> {
    let Policy { database, id: policy, .. } = request.policy;
    let name = shared.names.data(kind, database, policy, measurement, &request.measurement);
    match shared.client.open_table(&name).await {
        Ok(table) => {
            let pin = Pin::new(shared, &table);
            Ok(Some((table, pin)))
        }
        Err(Error::TableNotFound { .. }) => Ok(None),
        Err(error) => Err(cluster(error)),
    }
}

/// The series of a request, dead ones among them.
async fn list(
    shared: &Shared,
    measurement: i64,
    request: &ScanRequest,
    moment: u64,
    held: &mut Reservation,
) -> Result<Vec<Series>, StoreError> {
    let mut found = Vec::new();
    let mut listing = shared.list_series(measurement, &request.series, moment)?;
    while let Some(some) = listing.next().await? {
        held.grow(some.iter().map(Series::memory_bytes).sum())?;
        found.extend(some);
    }
    Ok(found)
}

/// A filter as far as servers can apply it: never stricter.
fn predicate(column: &str, filter: &FieldFilter) -> Predicate {
    // Columns are not compared with one another there, nor are texts looked for.
    let Operand::Constant(constant) = &filter.operand else {
        return Predicate::is_not_null(column);
    };
    let value = match constant {
        // A zero of either sign is the same number.
        Scalar::Float(v) if !v.is_nan() => Value::Double(v + 0.0),
        Scalar::Integer(v) => Value::from(*v),
        Scalar::Unsigned(v) if filter.op == CompareOp::Equal => Value::from(v.cast_signed()),
        Scalar::String(v) => Value::from(&**v),
        Scalar::Boolean(v) if filter.op == CompareOp::Equal => Value::Bool(*v),
        _ => return Predicate::is_not_null(column),
    };
    match filter.op {
        CompareOp::Equal => Predicate::equal(column, value),
        CompareOp::NotEqual => Predicate::is_not_null(column),
        CompareOp::Less => Predicate::less(column, value),
        CompareOp::LessOrEqual => Predicate::less_or_equal(column, value),
        CompareOp::Greater => Predicate::greater(column, value),
        CompareOp::GreaterOrEqual => Predicate::greater_or_equal(column, value),
    }
}

impl Scan for KuduScan {
    fn series(&self) -> &SeriesTable {
        &self.table
    }

    fn extent(&self) -> Vec<ExtentPart> {
        let rows = self.view.rows_per_range;
        self.view.ranges.iter().map(|time| ExtentPart { time: *time, rows }).collect()
    }

    fn open(&self, slice: &ScanSlice) -> Result<Box<dyn ScanCursor>, StoreError> {
        self.view.request.context.interrupt.check()?;
        Ok(Box::new(KuduCursor::open(&self.view, slice)?))
    }

    fn stats(&self) -> ScanStats {
        ScanStats {
            sources: self.view.ranges.len() as u64,
            pages_read: self.view.scanned.load(Ordering::Relaxed),
            bytes_read: self.view.bytes.load(Ordering::Relaxed),
            rows: self.view.rows.load(Ordering::Relaxed),
            ..ScanStats::default()
        }
    }
}

/// The tags asked for, column by column.
fn series_table(series: &[&Series], tags: &[Name]) -> Result<SeriesTable, StoreError> {
    let column = |key: &Name| {
        let mut values: Vec<&str> = series.iter().map(|s| s.key.tag(key)).collect();
        values.sort_unstable();
        values.dedup();
        let code = |s: &&Series| values.partition_point(|v| *v < s.key.tag(key)) as u32;
        let codes = series.iter().map(code).collect();
        let values: Strings = values.iter().copied().collect();
        TagColumn { key: key.clone(), codes, values: Arc::new(values) }
    };
    let len = u32::try_from(series.len());
    let len = len.map_err(|_| StoreError::Invalid("more than 4294967295 series".to_owned()))?;
    Ok(SeriesTable::new(len, tags.iter().map(column).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_never_become_stricter() {
        let filter = |op, value| {
            let operand = Operand::Constant(value);
            FieldFilter { field: "f".into(), op, operand }
        };
        let any = Predicate::is_not_null("f");
        let nan = filter(CompareOp::Less, Scalar::Float(f64::NAN));
        assert_eq!(predicate("f", &nan), any);
        let large = filter(CompareOp::Less, Scalar::Unsigned(1));
        assert_eq!(predicate("f", &large), any);
        let operand = Operand::Field("g".into());
        let fields = FieldFilter { operand, ..large };
        assert_eq!(predicate("f", &fields), any);
        let not = filter(CompareOp::NotEqual, Scalar::Integer(1));
        assert_eq!(predicate("f", &not), any);
        let zero = filter(CompareOp::LessOrEqual, Scalar::Float(-0.0));
        assert_eq!(predicate("f", &zero), Predicate::less_or_equal("f", 0.0));
    }
}
