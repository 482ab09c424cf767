//! Records of the write-ahead log. docs/formats/log-records.md is normative.
//!
//! What is new (series, measurements, fields) is logged before the rows that use it.
//!
//! Not here: rows (see `rows`).

mod apart;
mod rows;

use model::{DatabaseId, Name, PolicyId, SeriesId, TimeRange};
use roaring::RoaringTreemap;

use crate::bytes::{Malformed, PutBytes, Reader};
use crate::rows::{FieldNo, MeasurementNo, RowBatch};
use crate::schema::SchemaChange;
use crate::tombstone::{Tombstone, put_treemap, read_treemap};
use crate::write::links::Links;

/// Kinds of records. Written to disk: never change a number.
mod kind {
    pub(super) const ROWS: u8 = 1;
    pub(super) const SERIES: u8 = 2;
    pub(super) const SCHEMA: u8 = 3;
    pub(super) const DELETE: u8 = 4;
    pub(super) const DROP_PARTITIONS: u8 = 5;
    pub(super) const REMOVE_SERIES: u8 = 6;
    pub(super) const REMOVE_DATABASE: u8 = 7;
    pub(super) const DROP_PARTITION: u8 = 8;
    pub(super) const DELETE_ROWS: u8 = 9;
    pub(super) const ROWS_APART: u8 = 10;
}

/// A series that came to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeriesDefinition {
    pub(crate) series: SeriesId,
    /// The canonical key.
    pub(crate) key: Name,
}

/// What one record says.
#[derive(Debug)]
pub(crate) enum Record<'a> {
    /// Rows were written.
    Rows(RowBatch<'a>),
    /// Series came to be.
    Series(DatabaseId, Vec<SeriesDefinition>),
    /// Measurements and fields came to be or went away.
    Schema(Vec<SchemaChange>),
    /// Rows written before are gone.
    Delete(Tombstone),
    /// Partitions of a policy that end before a time are gone. `None`: of all policies.
    DropPartitions { database: DatabaseId, policy: Option<PolicyId>, before_ns: i64 },
    /// The partition of a policy that has exactly these bounds is gone.
    DropPartition { database: DatabaseId, policy: PolicyId, time: TimeRange },
    /// Series ceased to exist.
    RemoveSeries(DatabaseId, RoaringTreemap),
    /// All series of a database with ids below this ceased to exist.
    RemoveDatabase(DatabaseId, SeriesId),
}

impl Record<'_> {
    /// The record's bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Rows(batch) => return Self::encode_rows(batch, &Links::of(&batch.rows)),
            Self::Series(database, definitions) => {
                out.put_u8(kind::SERIES);
                out.put_varint(u64::from(database.0));
                out.put_varint(definitions.len() as u64);
                for definition in definitions {
                    out.put_varint(definition.series.0);
                    out.put_block(definition.key.as_bytes());
                }
            }
            Self::Schema(changes) => {
                out.put_u8(kind::SCHEMA);
                put_schema_changes(changes, &mut out);
            }
            Self::Delete(tombstone) => {
                out.put_u8(if tombstone.is_of_rows() { kind::DELETE_ROWS } else { kind::DELETE });
                tombstone.encode(&mut out);
            }
            Self::DropPartitions { database, policy, before_ns } => {
                out.put_u8(kind::DROP_PARTITIONS);
                out.put_varint(u64::from(database.0));
                out.put_varint(policy.map_or(0, |p| u64::from(p.0) + 1));
                out.put_i64(*before_ns);
            }
            Self::DropPartition { database, policy, time } => {
                out.put_u8(kind::DROP_PARTITION);
                out.put_varint(u64::from(database.0));
                out.put_varint(u64::from(policy.0));
                out.put_time_range(*time);
            }
            Self::RemoveSeries(database, series) => {
                out.put_u8(kind::REMOVE_SERIES);
                out.put_varint(u64::from(database.0));
                put_treemap(series, &mut out);
            }
            Self::RemoveDatabase(database, below) => {
                out.put_u8(kind::REMOVE_DATABASE);
                out.put_varint(u64::from(database.0));
                out.put_varint(below.0);
            }
        }
        out
    }

    /// The bytes of a record of rows, linked so.
    pub(crate) fn encode_rows(batch: &RowBatch<'_>, links: &Links) -> Vec<u8> {
        // About a byte a value, without text.
        let mut out = Vec::with_capacity(64 + batch.values.len() + batch.strings.len());
        out.put_u8(if rows::are_apart(links) { kind::ROWS_APART } else { kind::ROWS });
        rows::encode(batch, links, &mut out);
        out
    }

    /// Reads a record.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Record<'static>, Malformed> {
        Self::decode_bounded(bytes, rows::ROWS_MAX)
    }

    /// Reads a record of at most `rows_max` rows.
    pub(crate) fn decode_bounded(
        bytes: &[u8],
        rows_max: u64,
    ) -> Result<Record<'static>, Malformed> {
        let mut reader = Reader::new(bytes, "log record");
        let record = match reader.u8()? {
            kind::ROWS => Record::Rows(rows::decode(&mut reader, false, rows_max)?),
            kind::ROWS_APART => Record::Rows(rows::decode(&mut reader, true, rows_max)?),
            kind::SERIES => {
                let database = DatabaseId(reader.u32()?);
                let count = reader.count(2)?;
                let definitions = (0..count).map(|_| {
                    Ok(SeriesDefinition { series: SeriesId(reader.varint()?), key: reader.name()? })
                });
                Record::Series(database, definitions.collect::<Result<_, Malformed>>()?)
            }
            kind::SCHEMA => Record::Schema(read_schema_changes(&mut reader)?),
            kind::DELETE => Record::Delete(Tombstone::decode(&mut reader, false)?),
            kind::DELETE_ROWS => Record::Delete(Tombstone::decode(&mut reader, true)?),
            kind::DROP_PARTITIONS => Record::DropPartitions {
                database: DatabaseId(reader.u32()?),
                policy: match reader.u32()? {
                    0 => None,
                    n => Some(PolicyId(n - 1)),
                },
                before_ns: reader.i64()?,
            },
            kind::DROP_PARTITION => Record::DropPartition {
                database: DatabaseId(reader.u32()?),
                policy: PolicyId(reader.u32()?),
                time: reader.time_range()?,
            },
            kind::REMOVE_SERIES => {
                Record::RemoveSeries(DatabaseId(reader.u32()?), read_treemap(&mut reader)?)
            }
            kind::REMOVE_DATABASE => {
                Record::RemoveDatabase(DatabaseId(reader.u32()?), SeriesId(reader.varint()?))
            }
            _ => return Err(Malformed("log record, of a kind that this version does not know")),
        };
        reader.finish()?;
        Ok(record)
    }
}

/// Adds changes of the schema, with their number before them.
pub(crate) fn put_schema_changes(changes: &[SchemaChange], out: &mut Vec<u8>) {
    out.put_varint(changes.len() as u64);
    for change in changes {
        match change {
            SchemaChange::Measurement { no, database, name } => {
                out.put_u8(0);
                out.put_varint(u64::from(no.0));
                out.put_varint(u64::from(database.0));
                out.put_block(name.as_bytes());
            }
            SchemaChange::Field { measurement, no, name, field_type } => {
                out.put_u8(1);
                out.put_varint(u64::from(measurement.0));
                out.put_varint(u64::from(no.0));
                out.put_block(name.as_bytes());
                out.put_u8(*field_type as u8);
            }
            SchemaChange::Drop(no) => {
                out.put_u8(2);
                out.put_varint(u64::from(no.0));
            }
        }
    }
}

/// Reads changes of the schema.
pub(crate) fn read_schema_changes(reader: &mut Reader<'_>) -> Result<Vec<SchemaChange>, Malformed> {
    let count = reader.count(2)?;
    let mut changes = Vec::with_capacity(count);
    for _ in 0..count {
        changes.push(match reader.u8()? {
            0 => SchemaChange::Measurement {
                no: MeasurementNo(reader.u32()?),
                database: DatabaseId(reader.u32()?),
                name: reader.name()?,
            },
            1 => SchemaChange::Field {
                measurement: MeasurementNo(reader.u32()?),
                no: FieldNo(reader.u32()?),
                name: reader.name()?,
                field_type: reader.field_type()?,
            },
            2 => SchemaChange::Drop(MeasurementNo(reader.u32()?)),
            _ => return Err(reader.malformed()),
        });
    }
    Ok(changes)
}

#[cfg(test)]
mod tests;
