//! Rows for tests: written without a wire format, read back whole.
//!
//! A [`Row`] names its series by a raw key in line protocol's notation (`cpu,host=a`), so a test
//! says what it means in one line. Rows that were read back carry the canonical key and their
//! fields sorted by name, and compare bit by bit.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use model::key::{escape, unescape};
use model::{
    Bitmap, Budget, Column, ColumnBatch, DatabaseId, FieldType, Interrupt, Layout, LayoutField,
    LineBatch, LineRow, Name, PolicyId, Scalar, SeriesKey, SeriesRun, TagExpr, TimeRange, Values,
    key_hash, string_slot,
};

use crate::{
    DeleteTarget, MatchingRows, MetadataRequest, Policy, Scan, ScanContext, ScanItem, ScanRequest,
    ScanSlice, Store, StoreError, TimeOrder, WriteOutcome, WriteRequest,
};

/// An hour in nanoseconds.
pub const HOUR_NS: i64 = 3_600_000_000_000;

/// A database's first policy, kept for ever, in partitions of an hour.
pub const POLICY: Policy =
    Policy { database: DatabaseId(1), id: PolicyId(1), partition_ns: HOUR_NS, retention_ns: None };

/// One row of one series.
#[derive(Clone, Debug)]
pub struct Row {
    /// Raw series key: escaped, tags in any order. Canonical in rows that were read.
    pub key: String,
    /// Nanoseconds since 1970-01-01 UTC.
    pub time_ns: i64,
    /// Fields that have a value. Sorted by name in rows that were read.
    pub fields: Vec<(Name, Scalar)>,
}

impl Row {
    /// A row.
    #[must_use]
    pub fn new(key: &str, fields: &[(&str, Scalar)], time_ns: i64) -> Self {
        let fields = fields.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
        Self { key: key.to_owned(), time_ns, fields }
    }
}

/// Floats are equal if their bits are: `-0` is not `0`, and a NaN is itself.
impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        let same_field = |a: &(Name, Scalar), b: &(Name, Scalar)| a.0 == b.0 && same(&a.1, &b.1);
        self.key == other.key
            && self.time_ns == other.time_ns
            && self.fields.len() == other.fields.len()
            && self.fields.iter().zip(&other.fields).all(|(a, b)| same_field(a, b))
    }
}

/// Whether two values are the same bit for bit.
#[must_use]
pub fn same(a: &Scalar, b: &Scalar) -> bool {
    match (a, b) {
        (Scalar::Float(a), Scalar::Float(b)) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}

/// A batch of `rows`, as a wire format would make it.
///
/// # Panics
/// If the rows take more than 4 GiB of text.
#[must_use]
pub fn line_batch(rows: &[Row]) -> LineBatch<'static> {
    let mut text = Vec::new();
    let mut batch = LineBatch::default();
    for row in rows {
        let layout = layout_of(row);
        let known = batch.layouts.iter().position(|l| *l == layout);
        let layout = known.unwrap_or_else(|| {
            batch.layouts.push(layout);
            batch.layouts.len() - 1
        });
        let line_start = offset(text.len());
        let values_start = offset(batch.values.len());
        for (_, value) in &row.fields {
            let slot = slot_of(value, &mut batch.strings);
            batch.values.push(slot);
        }
        text.extend_from_slice(line_of(row).as_bytes());
        batch.rows.push(LineRow {
            key_hash: key_hash(row.key.as_bytes()),
            time_ns: row.time_ns,
            line_start,
            line_len: offset(text.len()) - line_start,
            key_len: offset(row.key.len()),
            layout: offset(layout),
            values_start,
        });
        text.push(b'\n');
    }
    batch.text = text.into();
    batch
}

/// Writes `rows` at the wall clock `now_ns`.
///
/// # Errors
/// What the store says.
pub fn write(
    store: &dyn Store,
    policy: Policy,
    rows: &[Row],
    now_ns: i64,
) -> Result<WriteOutcome, StoreError> {
    store.write(&WriteRequest { policy, batch: &line_batch(rows), now_ns })
}

/// A context without limits.
#[must_use]
pub fn unlimited() -> ScanContext {
    ScanContext { budget: Budget::unlimited(), interrupt: Interrupt::new() }
}

/// A request for every row of a measurement, with every field and tag its schema has.
///
/// # Errors
/// What the store says.
pub fn scan_everything(
    store: &dyn Store,
    policy: Policy,
    measurement: &str,
) -> Result<ScanRequest, StoreError> {
    let schema = store.schema(policy.database, measurement, &Interrupt::new())?.unwrap_or_default();
    Ok(ScanRequest {
        policy,
        measurement: measurement.into(),
        fields: schema.fields.clone(),
        tags: schema.tag_keys.clone(),
        series: TagExpr::True,
        time: TimeRange::ALL,
        filters: Vec::new(),
        order: TimeOrder::Ascending,
        windows: None,
        joins_series: false,
        context: unlimited(),
    })
}

/// Every row of a measurement in one policy, sorted by (key, time).
///
/// # Errors
/// What the store says.
pub fn read_all(
    store: &dyn Store,
    policy: Policy,
    measurement: &str,
) -> Result<Vec<Row>, StoreError> {
    read(store, &scan_everything(store, policy, measurement)?)
}

/// The rows a request without `windows` gives, sorted by key; of one series in the request's order.
///
/// Keys have the tags that were asked for.
///
/// # Errors
/// What the store says.
pub fn read(store: &dyn Store, request: &ScanRequest) -> Result<Vec<Row>, StoreError> {
    let scan = store.scan(request)?;
    let mut rows = read_slice(&*scan, request, &ScanSlice::all())?;
    rows.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(rows)
}

/// The rows of one slice in the order they are handed out.
///
/// # Errors
/// What the store says.
///
/// # Panics
/// If the store hands out summaries.
pub fn read_slice(
    scan: &dyn Scan,
    request: &ScanRequest,
    slice: &ScanSlice,
) -> Result<Vec<Row>, StoreError> {
    let mut cursor = scan.open(slice)?;
    let mut rows = Vec::new();
    while let Some(item) = cursor.next()? {
        let ScanItem::Rows(batch) = item else { panic!("summaries were not asked for") };
        rows.extend(rows_of(scan, request, &batch));
    }
    Ok(rows)
}

/// The rows of a batch; those of several series have no key.
#[must_use]
pub fn rows_of(scan: &dyn Scan, request: &ScanRequest, batch: &ColumnBatch) -> Vec<Row> {
    let (mut rows, mut at) = (Vec::with_capacity(batch.rows), 0);
    for run in &batch.runs {
        let key = match run.series {
            SeriesRun::SEVERAL => String::new(),
            series => series_key(scan, request, series),
        };
        let end = at + run.rows as usize;
        rows.extend((at..end).map(|row| row_at(request, batch, &key, row)));
        at = end;
    }
    rows
}

/// The canonical key of a scan's series, as far as its tags were asked for.
#[must_use]
pub fn series_key(scan: &dyn Scan, request: &ScanRequest, series: u32) -> String {
    let mut tags: Vec<(Name, Name)> = Vec::new();
    for column in &scan.series().tags {
        let value = column.values.get(column.codes[series as usize] as usize);
        if !value.is_empty() {
            tags.push((column.key.clone(), value.into()));
        }
    }
    tags.sort_unstable();
    SeriesKey { measurement: request.measurement.clone(), tags }.to_string()
}

/// The answer to a question about names: one list of texts a row.
///
/// # Errors
/// What the store says.
///
/// # Panics
/// If the answer has a column that is not text.
pub fn names(store: &dyn Store, request: &MetadataRequest) -> Result<Vec<Vec<String>>, StoreError> {
    let mut cursor = store.metadata(request)?;
    let mut rows = Vec::new();
    while let Some(batch) = cursor.next()? {
        assert!(batch.rows > 0, "a part is never empty");
        for row in 0..batch.rows {
            let cell = |column: &Column| match &column.values {
                Values::String(texts) => texts.get(row).to_owned(),
                Values::Dictionary(codes, texts) => texts.get(codes[row] as usize).to_owned(),
                Values::Integer(counts) => counts[row].to_string(),
                other => panic!("names are text and counts integers, not {other:?}"),
            };
            rows.push(batch.columns.iter().map(cell).collect());
        }
    }
    Ok(rows)
}

/// A delete of `rows` of one measurement and policy, as they are: with the values that they have of
/// `fields`, or none. Keys are canonical.
///
/// # Panics
/// If a key is no series key, or a value has another type than its field.
#[must_use]
pub fn matching(
    policy: Policy,
    measurement: &str,
    fields: &[(Name, FieldType)],
    rows: &[Row],
) -> DeleteTarget {
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by(|a, b| (&a.key, a.time_ns).cmp(&(&b.key, b.time_ns)));
    rows.dedup_by(|a, b| (&a.key, a.time_ns) == (&b.key, b.time_ns));
    let (mut series, mut runs) = (Vec::new(), Vec::new());
    for of_series in rows.chunk_by(|a, b| a.key == b.key) {
        runs.push(SeriesRun { series: offset(series.len()), rows: offset(of_series.len()) });
        let key = SeriesKey::parse(of_series[0].key.as_bytes());
        series.push(key.expect("a row was named by no series key"));
    }
    let times = Values::Time(rows.iter().map(|row| row.time_ns).collect());
    let mut columns = vec![Column::new(times)];
    for (name, field_type) in fields {
        let mut column = Column::new(Values::empty(*field_type));
        for row in &rows {
            let value = row.fields.iter().find(|(field, _)| field == name);
            let one = column_of(*field_type, value.map(|(_, value)| value));
            column.extend_from(&one, 0..1);
        }
        columns.push(column);
    }
    let batch = ColumnBatch { rows: rows.len(), runs, columns };
    let named = MatchingRows::new(policy.id, measurement.into(), fields.to_vec(), series, batch);
    DeleteTarget::Matching(Arc::new(named))
}

/// A column of one row.
pub(crate) fn column_of(field_type: FieldType, value: Option<&Scalar>) -> Column {
    let Some(value) = value else {
        let mut column = Column::new(Values::empty(field_type));
        column.extend_missing(1);
        return column;
    };
    assert_eq!(value.field_type(), field_type, "a value of another type");
    Column::new(match value {
        Scalar::Float(v) => Values::Float(vec![*v]),
        Scalar::Integer(v) => Values::Integer(vec![*v]),
        Scalar::Unsigned(v) => Values::Unsigned(vec![*v]),
        Scalar::Boolean(v) => Values::Boolean(Bitmap::filled(1, *v)),
        Scalar::String(v) => Values::String(std::iter::once(&**v).collect()),
    })
}

fn row_at(request: &ScanRequest, batch: &ColumnBatch, key: &str, row: usize) -> Row {
    let mut fields: Vec<(Name, Scalar)> = Vec::new();
    for ((name, _), column) in request.fields.iter().zip(&batch.columns[1..]) {
        if let Some(value) = column.get(row) {
            fields.push((name.clone(), value));
        }
    }
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    Row { key: key.to_owned(), time_ns: batch.times()[row], fields }
}

fn layout_of(row: &Row) -> Layout<'static> {
    let mut end = 0;
    let key = row.key.as_bytes();
    while end < key.len() && key[end] != b',' {
        end += if key[end] == b'\\' { 2 } else { 1 };
    }
    let measurement = unescape(&row.key[..end.min(key.len())], b", ").into_owned();
    let field = |(name, value): &(Name, Scalar)| LayoutField {
        name: Cow::Owned(name.to_string()),
        field_type: value.field_type(),
    };
    Layout { measurement: Cow::Owned(measurement), fields: row.fields.iter().map(field).collect() }
}

fn slot_of(value: &Scalar, strings: &mut Vec<u8>) -> u64 {
    match value {
        Scalar::Float(v) => v.to_bits(),
        Scalar::Integer(v) => v.cast_unsigned(),
        Scalar::Unsigned(v) => *v,
        Scalar::Boolean(v) => u64::from(*v),
        Scalar::String(v) => {
            let start = offset(strings.len());
            strings.extend_from_slice(v.as_bytes());
            string_slot(start, offset(v.len()))
        }
    }
}

/// The row in line protocol.
#[must_use]
pub fn line_of(row: &Row) -> String {
    let mut line = row.key.clone();
    for (at, (name, value)) in row.fields.iter().enumerate() {
        let separator = if at == 0 { ' ' } else { ',' };
        let name = escape(name, b",= ");
        let written = match value {
            Scalar::Float(v) => write!(line, "{separator}{name}={v}"),
            Scalar::Integer(v) => write!(line, "{separator}{name}={v}i"),
            Scalar::Unsigned(v) => write!(line, "{separator}{name}={v}u"),
            Scalar::Boolean(v) => write!(line, "{separator}{name}={v}"),
            Scalar::String(v) => {
                write!(line, "{separator}{name}=\"{}\"", escape(v, b"\"\\"))
            }
        };
        written.expect("BUG: text can always grow");
    }
    write!(line, " {}", row.time_ns).expect("BUG: text can always grow");
    line
}

fn offset(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("a test batch passed 4 GiB")
}

/// The value that the bits of a batch's slot stand for.
pub(crate) fn scalar_of(batch: &LineBatch<'_>, field_type: FieldType, slot: u64) -> Scalar {
    match field_type {
        FieldType::Float => Scalar::Float(f64::from_bits(slot)),
        FieldType::Integer => Scalar::Integer(slot.cast_signed()),
        FieldType::Unsigned => Scalar::Unsigned(slot),
        FieldType::Boolean => Scalar::Boolean(slot != 0),
        FieldType::String => {
            let text = std::str::from_utf8(batch.string(slot));
            Scalar::String(text.expect("BUG: a batch's strings are UTF-8").into())
        }
    }
}
