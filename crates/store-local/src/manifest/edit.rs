//! Edits of the manifest and their bytes. docs/formats/manifest.md is normative.

use std::sync::Arc;

use model::{DatabaseId, PolicyId, SeriesId, TimeRange};
use wal::Lsn;

use crate::bytes::{Malformed, PutBytes, Reader};
use crate::rows::MeasurementNo;
use crate::schema::SchemaChange;
use crate::tombstone::Tombstone;
use crate::write::{put_schema_changes, read_schema_changes};

/// A segment file as the manifest knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SegmentMeta {
    /// Names the file; counted up, never used again.
    pub(crate) id: u64,
    pub(crate) database: DatabaseId,
    pub(crate) policy: PolicyId,
    /// The partition whose rows it holds.
    pub(crate) partition: TimeRange,
    /// Of two segments of one partition the one with the greater sequence holds later writes.
    pub(crate) sequence: u64,
    /// Whether it was written for keeping: big pages, tightest encodings.
    pub(crate) cold: bool,
    /// Bytes of the file.
    pub(crate) bytes: u64,
    pub(crate) rows: u64,
    /// First and last time of its rows.
    pub(crate) time: TimeRange,
    /// First and last series of its rows.
    pub(crate) series: (SeriesId, SeriesId),
    /// Tombstones that hide some of its rows, by id, ascending.
    pub(crate) tombstones: Vec<u64>,
}

/// One change of the manifest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Edit {
    /// A segment is part of the view.
    AddSegment(SegmentMeta),
    /// A segment is no longer part of the view.
    RemoveSegment(u64),
    /// Rows of the named segments are hidden.
    AddTombstone(Arc<Tombstone>, Vec<u64>),
    /// Every row of a partition that the log has before this position is in segments.
    Flushed { policy: PolicyId, partition: TimeRange, before: Lsn },
    /// The log is not needed before this position.
    LogStart(Lsn),
    /// The schema changed.
    Schema(SchemaChange),
    /// Measurement numbers below this one were given.
    NextMeasurement(MeasurementNo),
    /// The catalog's document.
    Catalog { version: u64, bytes: Vec<u8> },
    /// Segment and tombstone ids below these were given.
    NextIds { segment: u64, tombstone: u64 },
    /// A partition has this number.
    Partition { policy: PolicyId, partition: TimeRange, number: u64 },
    /// The partition of this number is gone.
    PartitionGone(u64),
    /// Numbers of partitions below this one were given.
    NextPartition(u64),
    /// Everything said before is void; what follows in this record is all there is.
    Snapshot,
}

impl Edit {
    /// The edits that add a segment of which these tombstones hide rows.
    pub(crate) fn added(meta: &SegmentMeta, tombstones: &[Arc<Tombstone>]) -> Vec<Self> {
        let hides = |stone: &Arc<Tombstone>| Self::AddTombstone(Arc::clone(stone), vec![meta.id]);
        let add = std::iter::once(Self::AddSegment(meta.clone()));
        add.chain(tombstones.iter().map(hides)).collect()
    }
}

/// Kinds of edits. Written to disk: never change a number.
mod kind {
    pub(super) const ADD_SEGMENT: u8 = 1;
    pub(super) const REMOVE_SEGMENT: u8 = 2;
    pub(super) const ADD_TOMBSTONE: u8 = 3;
    pub(super) const FLUSHED: u8 = 4;
    pub(super) const LOG_START: u8 = 5;
    pub(super) const SCHEMA: u8 = 6;
    pub(super) const NEXT_MEASUREMENT: u8 = 7;
    pub(super) const CATALOG: u8 = 8;
    pub(super) const NEXT_IDS: u8 = 9;
    pub(super) const SNAPSHOT: u8 = 10;
    pub(super) const PARTITION: u8 = 11;
    pub(super) const PARTITION_GONE: u8 = 12;
    pub(super) const NEXT_PARTITION: u8 = 13;
    pub(super) const ADD_ROW_TOMBSTONE: u8 = 14;
}

/// The bytes of a record: edits that count together or not at all.
pub(crate) fn encode_edits(edits: &[Edit]) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_varint(edits.len() as u64);
    for edit in edits {
        encode(edit, &mut out);
    }
    out
}

/// Reads what [`encode_edits`] wrote.
pub(crate) fn decode_edits(bytes: &[u8]) -> Result<Vec<Edit>, Malformed> {
    let mut reader = Reader::new(bytes, "manifest record");
    let count = reader.count(1)?;
    let edits = (0..count).map(|_| decode(&mut reader)).collect::<Result<_, _>>()?;
    reader.finish()?;
    Ok(edits)
}

fn encode(edit: &Edit, out: &mut Vec<u8>) {
    match edit {
        Edit::AddSegment(meta) => {
            out.put_u8(kind::ADD_SEGMENT);
            encode_segment(meta, out);
        }
        Edit::RemoveSegment(id) => {
            out.put_u8(kind::REMOVE_SEGMENT);
            out.put_varint(*id);
        }
        Edit::AddTombstone(tombstone, segments) => {
            let of_rows = tombstone.is_of_rows();
            out.put_u8(if of_rows { kind::ADD_ROW_TOMBSTONE } else { kind::ADD_TOMBSTONE });
            tombstone.encode(out);
            put_ids(segments, out);
        }
        Edit::Flushed { policy, partition, before } => {
            out.put_u8(kind::FLUSHED);
            out.put_varint(u64::from(policy.0));
            out.put_time_range(*partition);
            out.put_varint(before.0);
        }
        Edit::LogStart(lsn) => {
            out.put_u8(kind::LOG_START);
            out.put_varint(lsn.0);
        }
        Edit::Schema(change) => {
            out.put_u8(kind::SCHEMA);
            put_schema_changes(std::slice::from_ref(change), out);
        }
        Edit::NextMeasurement(no) => {
            out.put_u8(kind::NEXT_MEASUREMENT);
            out.put_varint(u64::from(no.0));
        }
        Edit::Catalog { version, bytes } => {
            out.put_u8(kind::CATALOG);
            out.put_varint(*version);
            out.put_block(bytes);
        }
        Edit::NextIds { segment, tombstone } => {
            out.put_u8(kind::NEXT_IDS);
            out.put_varint(*segment);
            out.put_varint(*tombstone);
        }
        Edit::Snapshot => out.put_u8(kind::SNAPSHOT),
        Edit::Partition { policy, partition, number } => {
            out.put_u8(kind::PARTITION);
            out.put_varint(u64::from(policy.0));
            out.put_time_range(*partition);
            out.put_varint(*number);
        }
        Edit::PartitionGone(number) => {
            out.put_u8(kind::PARTITION_GONE);
            out.put_varint(*number);
        }
        Edit::NextPartition(number) => {
            out.put_u8(kind::NEXT_PARTITION);
            out.put_varint(*number);
        }
    }
}

fn decode(reader: &mut Reader<'_>) -> Result<Edit, Malformed> {
    Ok(match reader.u8()? {
        kind::ADD_SEGMENT => Edit::AddSegment(decode_segment(reader)?),
        kind::REMOVE_SEGMENT => Edit::RemoveSegment(reader.varint()?),
        kind::ADD_TOMBSTONE => {
            Edit::AddTombstone(Arc::new(Tombstone::decode(reader, false)?), read_ids(reader)?)
        }
        kind::ADD_ROW_TOMBSTONE => {
            Edit::AddTombstone(Arc::new(Tombstone::decode(reader, true)?), read_ids(reader)?)
        }
        kind::FLUSHED => Edit::Flushed {
            policy: PolicyId(reader.u32()?),
            partition: reader.time_range()?,
            before: Lsn(reader.varint()?),
        },
        kind::LOG_START => Edit::LogStart(Lsn(reader.varint()?)),
        kind::SCHEMA => {
            let mut changes = read_schema_changes(reader)?;
            let change = changes.pop().ok_or(reader.malformed())?;
            if !changes.is_empty() {
                return Err(reader.malformed());
            }
            Edit::Schema(change)
        }
        kind::NEXT_MEASUREMENT => Edit::NextMeasurement(MeasurementNo(reader.u32()?)),
        kind::CATALOG => {
            Edit::Catalog { version: reader.varint()?, bytes: reader.block()?.to_vec() }
        }
        kind::NEXT_IDS => Edit::NextIds { segment: reader.varint()?, tombstone: reader.varint()? },
        kind::SNAPSHOT => Edit::Snapshot,
        kind::PARTITION => Edit::Partition {
            policy: PolicyId(reader.u32()?),
            partition: reader.time_range()?,
            number: reader.varint()?,
        },
        kind::PARTITION_GONE => Edit::PartitionGone(reader.varint()?),
        kind::NEXT_PARTITION => Edit::NextPartition(reader.varint()?),
        _ => return Err(reader.malformed()),
    })
}

fn encode_segment(meta: &SegmentMeta, out: &mut Vec<u8>) {
    out.put_varint(meta.id);
    out.put_varint(u64::from(meta.database.0));
    out.put_varint(u64::from(meta.policy.0));
    out.put_time_range(meta.partition);
    out.put_varint(meta.sequence);
    out.put_u8(u8::from(meta.cold));
    out.put_varint(meta.bytes);
    out.put_varint(meta.rows);
    out.put_time_range(meta.time);
    out.put_varint(meta.series.0.0);
    out.put_varint(meta.series.1.0);
    put_ids(&meta.tombstones, out);
}

fn decode_segment(reader: &mut Reader<'_>) -> Result<SegmentMeta, Malformed> {
    Ok(SegmentMeta {
        id: reader.varint()?,
        database: DatabaseId(reader.u32()?),
        policy: PolicyId(reader.u32()?),
        partition: reader.time_range()?,
        sequence: reader.varint()?,
        cold: reader.u8()? != 0,
        bytes: reader.varint()?,
        rows: reader.varint()?,
        time: reader.time_range()?,
        series: (SeriesId(reader.varint()?), SeriesId(reader.varint()?)),
        tombstones: read_ids(reader)?,
    })
}

fn put_ids(ids: &[u64], out: &mut Vec<u8>) {
    out.put_varint(ids.len() as u64);
    ids.iter().for_each(|id| out.put_varint(*id));
}

fn read_ids(reader: &mut Reader<'_>) -> Result<Vec<u64>, Malformed> {
    let count = reader.count(1)?;
    (0..count).map(|_| reader.varint()).collect()
}
