//! Names and schemas of the tables. docs/kudu.md is normative.

use kudu_client::{Column, DataType, Encoding, Predicate, ScanBuilder, Schema, Table};
use model::{DatabaseId, FieldType, PolicyId};
use sha2::{Digest, Sha256};
use store::StoreError;

use crate::error::cluster;

/// Version of the layout. Another version is refused. 2: blocks of ids are keyed by their first one,
/// ranges by both ends, fields say where their values are.
pub(crate) const FORMAT: i64 = 2;
/// Most fields of a measurement that have a column of their own: a table has at most 300 columns.
pub(crate) const COLUMNS_MAX: u32 = 290;
/// Most fields a measurement may have.
pub(crate) const FIELDS_MAX: usize = 65_536;
/// Longest text in a field: a cell has at most 64 KiB.
pub(crate) const TEXT_BYTES_MAX: usize = 65_536;
/// Size of a block of a column before it is encoded. A server decodes whole blocks, and most reads are
/// of few rows: with blocks of its own choice (256 KiB), the last row of each of 100 series cost it 400
/// ms, with these 52 ms. Reads of whole series cost the same.
const BLOCK_BYTES: i32 = 16 << 10;
/// Longest field name that a column is called by as it is.
const COLUMN_NAME_BYTES_MAX: usize = 200;
/// What columns begin with that are not called by their field's name.
const HASHED: &str = "field:";

/// The name of the table of measurements that share one.
const SHARED: &str = "shared";
pub(crate) const SERIES_ID: &str = "series_id";
pub(crate) const TIME: &str = "time";
pub(crate) const MEASUREMENT_ID: &str = "measurement_id";
pub(crate) const FIELD_ID: &str = "field_id";
/// Columns of a narrow table's key, which no other data table has as many of.
pub(crate) const NARROW_KEY: usize = 4;

/// Numbers of measurements from here on: they share one narrow table a policy. The number below it is
/// given once, as all are.
const SHARING: i64 = 1 << 40;

/// Whether a measurement has no tables of its own.
pub(crate) fn is_sharing(measurement: i64) -> bool {
    measurement >= SHARING
}

/// The number of a measurement that has no tables of its own.
pub(crate) fn sharing(number: i64) -> i64 {
    number.saturating_add(SHARING)
}

/// Kinds of data tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// A row for all fields of a time, a column each.
    Wide,
    /// A row for each value.
    Narrow,
}

impl Kind {
    /// The kind of a data table.
    pub(crate) fn of(table: &Table) -> Self {
        match table.schema().key().len() {
            NARROW_KEY => Self::Narrow,
            _ => Self::Wide,
        }
    }
}

/// Where the values of a field are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a column of its own.
    Column,
    /// In the narrow table, under this number.
    Narrow(i32),
}

/// A field of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) field_type: FieldType,
    pub(crate) place: Place,
}

/// A name that tables are keyed by: names may be longer than a key can be.
pub(crate) type Hash = [u8; 16];

/// The first 128 bits of SHA-256.
pub(crate) fn hash(bytes: &[u8]) -> Hash {
    let digest = Sha256::digest(bytes);
    let mut out = Hash::default();
    out.iter_mut().zip(digest.as_slice()).for_each(|(to, from)| *to = *from);
    out
}

/// The hash of a tag: no two tags run together to the same bytes.
pub(crate) fn tag_hash(key: &str, value: &str) -> Hash {
    let length = (key.len() as u64).to_le_bytes();
    hash(&[&length, key.as_bytes(), value.as_bytes()].concat())
}

/// The column of a field.
pub(crate) fn column_name(field: &str) -> String {
    let as_it_is = field.len() <= COLUMN_NAME_BYTES_MAX
        && !field.is_empty()
        && !field.contains('\0')
        && !field.starts_with(HASHED)
        && field != SERIES_ID
        && field != TIME;
    if as_it_is {
        return field.to_owned();
    }
    let digits: Vec<String> = hash(field.as_bytes()).iter().map(|b| format!("{b:02x}")).collect();
    format!("{HASHED}{}", digits.concat())
}

/// The type of a field's column. Unsigned values are kept as the signed ones with the same bits.
pub(crate) fn column_type(field_type: FieldType) -> DataType {
    match field_type {
        FieldType::Float => DataType::Double,
        FieldType::Integer | FieldType::Unsigned => DataType::Int64,
        FieldType::String => DataType::String,
        FieldType::Boolean => DataType::Bool,
    }
}

/// Names of tables.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    pub(crate) prefix: String,
}

impl Names {
    /// What all names begin with.
    pub(crate) fn own(&self) -> String {
        format!("{}.", self.prefix)
    }

    pub(crate) fn registry(&self) -> String {
        format!("{}.registry", self.prefix)
    }

    pub(crate) fn series(&self) -> String {
        format!("{}.series", self.prefix)
    }

    pub(crate) fn tags(&self) -> String {
        format!("{}.tags", self.prefix)
    }

    /// What the names of a database's data tables begin with.
    pub(crate) fn of_database(&self, database: DatabaseId) -> String {
        format!("{}.db{}.", self.prefix, database.0)
    }

    pub(crate) fn of_policy(&self, database: DatabaseId, policy: PolicyId) -> String {
        format!("{}rp{}.", self.of_database(database), policy.0)
    }

    /// A data table of a measurement: `name` is there for people.
    pub(crate) fn data(
        &self,
        kind: Kind,
        database: DatabaseId,
        policy: PolicyId,
        measurement: i64,
        name: &str,
    ) -> String {
        if is_sharing(measurement) && kind == Kind::Narrow {
            return format!("{}{SHARED}", self.of_policy(database, policy));
        }
        let legal = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
        let label: String = name.chars().take(40).map(legal).collect();
        let kind = match kind {
            Kind::Wide => 'm',
            Kind::Narrow => 'n',
        };
        format!("{}{kind}{measurement}.{label}", self.of_policy(database, policy))
    }

    /// The measurement that a data table belongs to.
    pub(crate) fn measurement_of(&self, table: &str) -> Option<i64> {
        let rest = table.strip_prefix(&self.prefix)?.strip_prefix(".db")?;
        rest.split('.').nth(2)?.strip_prefix(['m', 'n'])?.parse().ok()
    }

    /// Whether a data table of a database is the one that measurements share in some policy.
    pub(crate) fn is_shared(&self, database: DatabaseId, table: &str) -> bool {
        let rest = table.strip_prefix(&self.of_database(database));
        let mut parts = rest.unwrap_or_default().split('.');
        parts.next().is_some_and(|p| p.starts_with("rp")) && parts.next() == Some(SHARED)
    }

    /// What the names of tables begin with that are kept for scans which began before they went.
    pub(crate) fn dropped(&self) -> String {
        format!("{}.dropped.", self.prefix)
    }
}

/// A column of any table here.
fn column(name: &str, data_type: DataType) -> Column {
    Column::new(name, data_type).block_bytes(BLOCK_BYTES)
}

/// Columns `owner`, `space`, `key` (the key), `number`, `text`, `data`.
pub(crate) fn registry_schema() -> Result<Schema, StoreError> {
    let columns = vec![
        column("owner", DataType::Int64),
        column("space", DataType::Int8),
        column("key", DataType::Binary),
        column("number", DataType::Int64).nullable(),
        column("text", DataType::String).nullable(),
        column("data", DataType::Binary).nullable(),
    ];
    Schema::new(columns, 3).map_err(cluster)
}

/// Columns `measurement_id`, `key_hash` (the key), `series_id`, `key`, `complete`.
pub(crate) fn series_schema() -> Result<Schema, StoreError> {
    let columns = vec![
        column("measurement_id", DataType::Int64),
        column("key_hash", DataType::Binary),
        column(SERIES_ID, DataType::Int64).nullable(),
        column("key", DataType::String).nullable(),
        column("complete", DataType::Bool).nullable(),
    ];
    Schema::new(columns, 2).map_err(cluster)
}

/// Columns `measurement_id`, `tag_hash`, `series_id` (the key), `key`.
pub(crate) fn tags_schema() -> Result<Schema, StoreError> {
    let columns = vec![
        column("measurement_id", DataType::Int64),
        column("tag_hash", DataType::Binary),
        column(SERIES_ID, DataType::Int64),
        column("key", DataType::String).nullable(),
    ];
    Schema::new(columns, 3).map_err(cluster)
}

/// A field's column.
pub(crate) fn field_column(name: &str, field_type: FieldType) -> Column {
    let column = column(name, column_type(field_type)).nullable();
    match field_type {
        FieldType::Float | FieldType::Integer | FieldType::Unsigned => {
            column.encoding(Encoding::BitShuffle)
        }
        FieldType::String => column.encoding(Encoding::Dictionary),
        FieldType::Boolean => column.encoding(Encoding::RunLength),
    }
}

/// The key columns of a data table and those of some fields.
pub(crate) fn data_schema(fields: &[(&str, FieldType)]) -> Result<Schema, StoreError> {
    let mut columns = vec![
        column(SERIES_ID, DataType::Int64).encoding(Encoding::BitShuffle),
        column(TIME, DataType::Int64).encoding(Encoding::BitShuffle),
    ];
    columns.extend(fields.iter().map(|(column, ty)| field_column(column, *ty)));
    Schema::new(columns, 2).map_err(cluster)
}

/// Key columns and values of a narrow table: of the value columns, one is set in each row.
pub(crate) fn narrow_schema() -> Result<Schema, StoreError> {
    let key = |name, data_type, encoding| column(name, data_type).encoding(encoding);
    let columns = vec![
        key(MEASUREMENT_ID, DataType::Int64, Encoding::RunLength),
        key(SERIES_ID, DataType::Int64, Encoding::RunLength),
        key(TIME, DataType::Int64, Encoding::BitShuffle),
        key(FIELD_ID, DataType::Int32, Encoding::BitShuffle),
        field_column("float", FieldType::Float),
        field_column("integer", FieldType::Integer),
        field_column("text", FieldType::String),
        field_column("boolean", FieldType::Boolean),
    ];
    Schema::new(columns, NARROW_KEY).map_err(cluster)
}

/// The column of a narrow table that has values of this type.
pub(crate) fn narrow_column(field_type: FieldType) -> &'static str {
    match field_type {
        FieldType::Float => "float",
        FieldType::Integer | FieldType::Unsigned => "integer",
        FieldType::String => "text",
        FieldType::Boolean => "boolean",
    }
}

/// A scan of a measurement's rows in one of its data tables.
pub(crate) fn rows_of(table: &Table, measurement: i64) -> ScanBuilder {
    match Kind::of(table) {
        Kind::Wide => table.scan(),
        Kind::Narrow => table.scan().filter(Predicate::equal(MEASUREMENT_ID, measurement)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_called_by_their_fields_where_that_is_possible() {
        assert_eq!(column_name("usage user"), "usage user");
        for odd in ["", "time", "series_id", "a\0b", "field:00", &"f".repeat(300)] {
            let name = column_name(odd);
            assert!(name.starts_with(HASHED) && name.len() == 38, "{odd}: {name}");
        }
        assert_ne!(column_name("time"), column_name("series_id"));
    }

    #[test]
    fn tables_say_whose_they_are() {
        let names = Names { prefix: "p".to_owned() };
        for (kind, expected) in
            [(Kind::Wide, "p.db3.rp4.m17.cpu_load__"), (Kind::Narrow, "p.db3.rp4.n17.cpu_load__")]
        {
            let table = names.data(kind, DatabaseId(3), PolicyId(4), 17, "cpu.load \u{e9}");
            assert_eq!(table, expected);
            assert_eq!(names.measurement_of(&table), Some(17));
        }
        let shared = names.data(Kind::Narrow, DatabaseId(3), PolicyId(4), sharing(17), "cpu");
        assert_eq!((shared.as_str(), names.measurement_of(&shared)), ("p.db3.rp4.shared", None));
        assert!(
            names.is_shared(DatabaseId(3), &shared) && !names.is_shared(DatabaseId(4), &shared)
        );
        assert!(!names.is_shared(DatabaseId(3), "p.db3.rp4.m1.shared"));
        assert_eq!(names.measurement_of("p.registry"), None);
        assert_eq!(names.measurement_of("p.dropped.1.m17"), None);
        assert_ne!(tag_hash("a", "bc"), tag_hash("ab", "c"));
    }
}
