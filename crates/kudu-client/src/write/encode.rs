//! Rows from columns into the buffers that are sent, each into the buffer of its tablet: one pass
//! over the rows, nothing allocated for a value or a row.
//!
//! Layout of a row: operation, a bit per column that is set, a bit per column that is NULL (only if
//! the schema has nullable columns), values in schema order; text as offset and length into a
//! second buffer.

use std::sync::Arc;

use tokio::time::Instant;

use super::batch::{BatchColumn, Cells, Missing, RowBatch};
use crate::cluster::locations::{Stretch, Tablet, place_of};
use crate::error::Error;
use crate::schema::{PartitionSchema, Schema, key};

/// A request is closed when it has so many bytes. Servers gain nothing from larger ones, and one
/// near their limit cannot be replicated.
const CHUNK_BYTES: usize = 1 << 20;

/// Rows of one request.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    pub(crate) rows: Vec<u8>,
    pub(crate) indirect: Vec<u8>,
    /// For each row its index in the batch.
    pub(crate) numbers: Vec<u32>,
}

impl Chunk {
    fn bytes(&self) -> usize {
        self.rows.len() + self.indirect.len()
    }
}

/// Rows of one tablet, to be sent one request after another.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) tablet: Arc<Tablet>,
    pub(crate) chunks: Vec<Chunk>,
}

/// Where the rows went.
#[derive(Debug, Default)]
pub(crate) struct Routed {
    pub(crate) groups: Vec<Group>,
    /// Rows whose tablet is not known.
    pub(crate) unknown: Vec<u32>,
    /// Partition key of the first of them.
    pub(crate) unknown_key: Vec<u8>,
    /// Rows that belong to no tablet.
    pub(crate) uncovered: Vec<u32>,
}

/// A batch that is being encoded.
#[derive(Debug)]
pub(crate) struct Encoder<'a> {
    operation: u8,
    /// In schema order.
    columns: Vec<BatchColumn<'a>>,
    /// Position among `columns` by index in the schema.
    positions: Vec<Option<usize>>,
    partition: &'a PartitionSchema,
    /// Bits of the columns that are given, as if all had values.
    is_set: Vec<u8>,
    null_bytes: usize,
    row_bytes_max: usize,
}

/// Buffers used again for each row.
#[derive(Debug, Default)]
struct Scratch {
    key: Vec<u8>,
    range: Vec<u8>,
    hashed: Vec<u8>,
}

impl<'a> Encoder<'a> {
    pub(crate) fn new(
        batch: &RowBatch<'a>,
        schema: &Schema,
        partition: &'a PartitionSchema,
    ) -> Result<Self, Error> {
        batch.check(schema)?;
        let mut columns = batch.columns.clone();
        columns.sort_by_key(|c| c.index);
        let mut positions = vec![None; schema.columns().len()];
        let mut is_set = vec![0; schema.columns().len().div_ceil(8)];
        let mut row_bytes_max = 1 + 2 * is_set.len();
        for (position, column) in columns.iter().enumerate() {
            positions[column.index] = Some(position);
            is_set[column.index / 8] |= 1 << (column.index % 8);
            row_bytes_max += 16;
        }
        let null_bytes = if schema.has_nullable() { is_set.len() } else { 0 };
        let operation = batch.operation.number();
        Ok(Self { operation, columns, positions, partition, is_set, null_bytes, row_bytes_max })
    }

    /// Encodes `rows`, appending to `routed`. Gaps are believed if they were learned after `since`.
    pub(crate) fn route(
        &self,
        rows: impl Iterator<Item = u32>,
        known: &[Stretch],
        since: Instant,
        routed: &mut Routed,
    ) {
        let now = Instant::now();
        let mut scratch = Scratch::default();
        let mut group_of: Vec<Option<usize>> = vec![None; known.len()];
        let mut last = 0;
        for number in rows {
            let row = number as usize;
            self.partition_key(row, &mut scratch);
            let place = match known.get(last) {
                Some(stretch) if stretch.contains(&scratch.key) => Some(last),
                _ => place_of(known, &scratch.key),
            };
            let believed = place.filter(|i| known[*i].is_believed(since, now));
            let Some(place) = believed else {
                if routed.unknown.is_empty() {
                    routed.unknown_key.clone_from(&scratch.key);
                }
                routed.unknown.push(number);
                continue;
            };
            last = place;
            let Some(tablet) = &known[place].tablet else {
                routed.uncovered.push(number);
                continue;
            };
            let group = *group_of[place].get_or_insert_with(|| {
                routed.groups.push(Group { tablet: Arc::clone(tablet), chunks: Vec::new() });
                routed.groups.len() - 1
            });
            self.push_row(row, number, &mut routed.groups[group].chunks);
        }
    }

    fn partition_key(&self, row: usize, scratch: &mut Scratch) {
        let Scratch { key, range, hashed } = scratch;
        range.clear();
        self.push_key(&self.partition.range, row, range);
        key.clear();
        for dimension in self.partition.dimensions_at(range) {
            hashed.clear();
            self.push_key(&dimension.columns, row, hashed);
            let bucket = key::bucket(hashed, dimension.seed, dimension.buckets);
            key.extend_from_slice(&bucket.to_be_bytes());
        }
        key.extend_from_slice(range);
    }

    fn push_key(&self, indexes: &[usize], row: usize, out: &mut Vec<u8>) {
        for (i, index) in indexes.iter().enumerate() {
            let Some(position) = self.positions.get(*index).copied().flatten() else { continue };
            let is_last = i + 1 == indexes.len();
            match self.columns[position].cells {
                Cells::Int8(v) => key::push_int(out, v[row].into(), 1),
                Cells::Int16(v) => key::push_int(out, v[row].into(), 2),
                Cells::Int32(v) => key::push_int(out, v[row].into(), 4),
                Cells::Int64(v) => {
                    out.extend_from_slice(&(v[row] ^ i64::MIN).to_be_bytes());
                }
                Cells::Int128(v) => key::push_int(out, v[row], 16),
                Cells::Bytes { offsets, data } => {
                    key::push_bytes(out, bytes_at(offsets, data, row), is_last);
                }
                Cells::Slices(v) => key::push_bytes(out, v[row], is_last),
                // Never in a key.
                Cells::Bool(_) | Cells::Float(_) | Cells::Double(_) => {}
            }
        }
    }

    fn push_row(&self, row: usize, number: u32, chunks: &mut Vec<Chunk>) {
        if chunks.last().is_none_or(|chunk| chunk.bytes() >= CHUNK_BYTES) {
            chunks.push(Chunk::default());
        }
        let Some(Chunk { rows, indirect, numbers }) = chunks.last_mut() else { return };
        numbers.push(number);
        rows.reserve(self.row_bytes_max);
        rows.push(self.operation);
        let is_set_at = rows.len();
        rows.extend_from_slice(&self.is_set);
        let is_null_at = rows.len();
        rows.resize(is_null_at + self.null_bytes, 0);
        for column in &self.columns {
            if let Some((present, missing)) = column.present
                && !present.get(row)
            {
                let bit = 1 << (column.index % 8);
                match missing {
                    Missing::Unset => rows[is_set_at + column.index / 8] &= !bit,
                    Missing::Null => rows[is_null_at + column.index / 8] |= bit,
                }
                continue;
            }
            match column.cells {
                Cells::Bool(v) => rows.push(u8::from(v[row])),
                Cells::Int8(v) => rows.extend_from_slice(&v[row].to_le_bytes()),
                Cells::Int16(v) => rows.extend_from_slice(&v[row].to_le_bytes()),
                Cells::Int32(v) => rows.extend_from_slice(&v[row].to_le_bytes()),
                Cells::Int64(v) => rows.extend_from_slice(&v[row].to_le_bytes()),
                Cells::Int128(v) => rows.extend_from_slice(&v[row].to_le_bytes()),
                Cells::Float(v) => rows.extend_from_slice(&v[row].to_le_bytes()),
                Cells::Double(v) => rows.extend_from_slice(&v[row].to_le_bytes()),
                Cells::Bytes { offsets, data } => {
                    push_text(bytes_at(offsets, data, row), rows, indirect);
                }
                Cells::Slices(v) => push_text(v[row], rows, indirect),
            }
        }
    }
}

fn push_text(text: &[u8], rows: &mut Vec<u8>, indirect: &mut Vec<u8>) {
    rows.extend_from_slice(&(indirect.len() as u64).to_le_bytes());
    rows.extend_from_slice(&(text.len() as u64).to_le_bytes());
    indirect.extend_from_slice(text);
}

fn bytes_at<'a>(offsets: &[u32], data: &'a [u8], row: usize) -> &'a [u8] {
    &data[offsets[row] as usize..offsets[row + 1] as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Column, DataType, HashDimension};
    use crate::write::{Bits, Operation};

    fn table() -> (Schema, PartitionSchema) {
        let schema = Schema::new(
            vec![
                Column::new("series", DataType::Int32),
                Column::new("ts", DataType::UnixtimeMicros),
                Column::new("usage", DataType::Double).nullable(),
                Column::new("host", DataType::String).nullable(),
            ],
            2,
        );
        (schema.unwrap(), PartitionSchema::default())
    }

    fn encode(batch: &RowBatch<'_>) -> Result<Chunk, Error> {
        let (schema, partition) = table();
        let encoder = Encoder::new(batch, &schema, &partition)?;
        let mut chunks = Vec::new();
        for row in 0..batch.rows {
            encoder.push_row(row, row as u32, &mut chunks);
        }
        Ok(chunks.pop().unwrap())
    }

    /// The bytes a server accepted and gave back.
    #[test]
    fn golden_row() {
        let batch = RowBatch::new(Operation::Upsert, 1)
            .column(3, Cells::Slices(&[b"ab"]))
            .column(0, Cells::Int32(&[7]))
            .column(1, Cells::Int64(&[1000]))
            .column_where(2, Cells::Double(&[1.0]), Bits(&[0]), Missing::Null);
        let chunk = encode(&batch).unwrap();
        let mut expected = vec![5, 0x0f, 0x04, 7, 0, 0, 0, 0xe8, 3, 0, 0, 0, 0, 0, 0];
        expected.extend([0; 8]);
        expected.extend([2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(chunk.rows, expected);
        assert_eq!(chunk.indirect, b"ab");
    }

    #[test]
    fn unset_cells_leave_no_trace() {
        let batch = RowBatch::new(Operation::Upsert, 1)
            .column(0, Cells::Int32(&[8]))
            .column(1, Cells::Int64(&[-1]))
            .column_where(2, Cells::Double(&[9.0]), Bits(&[0]), Missing::Unset);
        let chunk = encode(&batch).unwrap();
        let expected = [5, 0x03, 0, 8, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255];
        assert_eq!(chunk.rows, expected);
    }

    #[test]
    fn batches_that_would_confuse_a_server_are_refused() {
        let key = || {
            RowBatch::new(Operation::Upsert, 1)
                .column(0, Cells::Int32(&[7]))
                .column(1, Cells::Int64(&[1]))
        };
        assert!(encode(&key()).is_ok());
        let absent = Bits(&[0]);
        let double = Cells::Double(&[1.0]);
        for (bad, why) in [
            (RowBatch::new(Operation::Upsert, 1).column(0, Cells::Int32(&[7])), "no key"),
            (key().column(2, Cells::Int64(&[7])), "wrong type"),
            (key().column(2, Cells::Double(&[])), "too few values"),
            (key().column(9, double), "no such column"),
            (key().column(2, double).column(2, double), "twice"),
            (key().column_where(2, double, Bits(&[]), Missing::Null), "too few bits"),
            (key().column(3, Cells::Bytes { offsets: &[0, 3], data: b"ab" }), "offsets"),
            (key().column(3, Cells::Bytes { offsets: &[], data: b"ab" }), "no offsets"),
            (
                RowBatch::new(Operation::Upsert, 1)
                    .column_where(0, Cells::Int32(&[7]), absent, Missing::Unset)
                    .column(1, Cells::Int64(&[1])),
                "key without value",
            ),
        ] {
            assert!(matches!(encode(&bad), Err(Error::InvalidArgument(_))), "{why}");
        }
    }

    /// Two columns in one dimension, another in a second one: vectors from Kudu's documentation of
    /// the format.
    #[test]
    fn partition_key_vectors() {
        let columns = vec![
            Column::new("a", DataType::Int32),
            Column::new("b", DataType::String),
            Column::new("c", DataType::String),
        ];
        let schema = Schema::new(columns, 3).unwrap();
        let dimension = |columns, seed| HashDimension { columns, buckets: 32, seed };
        let partition = PartitionSchema {
            hash: vec![dimension(vec![0, 1], 0), dimension(vec![2], 42)],
            range: vec![0, 1, 2],
            custom: Vec::new(),
        };
        let b: [&[u8]; 4] = [b"", b"", b"b", b"b"];
        let c: [&[u8]; 4] = [b"", b"", b"c", b"c"];
        let batch = RowBatch::new(Operation::Insert, 4)
            .column(0, Cells::Int32(&[0, 1, 0, 1]))
            .column(1, Cells::Slices(&b))
            .column(2, Cells::Slices(&c));
        let encoder = Encoder::new(&batch, &schema, &partition).unwrap();
        let mut scratch = Scratch::default();
        let mut buckets = Vec::new();
        for row in 0..4 {
            encoder.partition_key(row, &mut scratch);
            buckets.push((scratch.key[3], scratch.key[7]));
        }
        assert_eq!(buckets, [(0, 0x14), (5, 0x14), (0x1a, 0x1d), (0, 0x1d)]);
        encoder.partition_key(2, &mut scratch);
        assert_eq!(scratch.key[8..], [0x80, 0, 0, 0, 0x62, 0, 0, 0x63]);
    }
}
