//! How a table is cut into tablets: hash buckets times ranges.
//!
//! A partition key is a big-endian `u32` bucket per hash dimension, then the range columns encoded
//! as a key. The order of columns within a dimension is the one the master reports, which need not
//! be the one the table was created with.

use super::row::decode;
use super::{Bounds, Schema, Value, key};
use crate::error::Error;
use crate::proto::{
    ColumnIdentifier, HashSchema, PartitionSchemaMessage, RangeSchema, RowOperations, operation,
};

/// Columns whose hash decides the bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashDimension {
    /// Indexes of the columns.
    pub columns: Vec<usize>,
    /// Number of buckets, at least 2.
    pub buckets: u32,
    /// Start value of the hash.
    pub seed: u32,
}

/// A range of rows that tablets are made for: `lower` is inclusive, `upper` exclusive.
///
/// Values belong to the range columns in their order; columns left out at the end mean their least
/// value, and no values at all mean no bound.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RangePartition {
    /// First row.
    pub lower: Vec<Value>,
    /// First row beyond.
    pub upper: Vec<Value>,
}

impl RangePartition {
    /// A range on a single column.
    #[must_use]
    pub fn between(lower: impl Into<Value>, upper: impl Into<Value>) -> Self {
        Self { lower: vec![lower.into()], upper: vec![upper.into()] }
    }

    /// Everything.
    #[must_use]
    pub fn unbounded() -> Self {
        Self::default()
    }

    /// As an operation pair for the master.
    pub(crate) fn encode(
        &self,
        schema: &Schema,
        range_columns: &[usize],
    ) -> Result<RowOperations, Error> {
        let mut bounds = Bounds::default();
        self.encode_into(schema, range_columns, &mut bounds)?;
        Ok(bounds.into_message())
    }

    /// As one of several pairs.
    pub(crate) fn encode_into(
        &self,
        schema: &Schema,
        range_columns: &[usize],
        bounds: &mut Bounds,
    ) -> Result<(), Error> {
        let bound = |values: &[Value]| {
            if values.len() > range_columns.len() {
                return Err(Error::invalid(format!(
                    "bound with {} values, but the table has {} range columns",
                    values.len(),
                    range_columns.len()
                )));
            }
            let cells = range_columns.iter().zip(values);
            cells
                .map(|(index, value)| {
                    let column = column(schema, *index)?;
                    value.check(column.data_type, &column.name)?;
                    Ok((*index, value.clone()))
                })
                .collect::<Result<Vec<_>, Error>>()
        };
        bounds.push(schema, &bound(&self.lower)?, &bound(&self.upper)?);
        Ok(())
    }
}

/// A range with buckets of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CustomRange {
    /// Range part of the first partition key.
    pub(crate) lower: Vec<u8>,
    /// Range part of the first partition key beyond; empty: no bound.
    pub(crate) upper: Vec<u8>,
    pub(crate) hash: Vec<HashDimension>,
}

/// How a table is cut into tablets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionSchema {
    pub(crate) hash: Vec<HashDimension>,
    pub(crate) range: Vec<usize>,
    /// Ascending.
    pub(crate) custom: Vec<CustomRange>,
}

impl PartitionSchema {
    /// The hash dimensions of ranges that have none of their own.
    #[must_use]
    pub fn hash_dimensions(&self) -> &[HashDimension] {
        &self.hash
    }

    /// Indexes of the range columns.
    #[must_use]
    pub fn range_columns(&self) -> &[usize] {
        &self.range
    }

    /// The dimensions that hold for a range key.
    pub(crate) fn dimensions_at(&self, range_key: &[u8]) -> &[HashDimension] {
        let after = self.custom.partition_point(|c| c.lower.as_slice() <= range_key);
        match after.checked_sub(1).and_then(|i| self.custom.get(i)) {
            Some(c) if c.upper.is_empty() || range_key < c.upper.as_slice() => &c.hash,
            _ => &self.hash,
        }
    }

    /// Length of the hash part of a partition key; the same for all ranges.
    pub(crate) fn hash_bytes(&self) -> usize {
        self.hash.len() * 4
    }

    /// As the master wants it when the table is created: columns by name.
    pub(crate) fn to_message(&self, schema: &Schema) -> Result<PartitionSchemaMessage, Error> {
        Ok(PartitionSchemaMessage {
            hash_schema: hash_to_message(&self.hash, schema)?,
            // Always sent, since a table without it is partitioned on its primary key.
            range_schema: Some(RangeSchema { columns: identifiers(&self.range, schema)? }),
            custom_hash_schema_ranges: Vec::new(),
        })
    }

    pub(crate) fn from_message(
        message: &PartitionSchemaMessage,
        schema: &Schema,
        ids: &[u32],
    ) -> Result<Self, Error> {
        let range = message.range_schema.as_ref().map_or(&[][..], |r| &r.columns);
        let range: Vec<usize> = resolve(range, schema, ids)?;
        let mut partition = Self {
            hash: hash_from_message(&message.hash_schema, schema, ids)?,
            range,
            custom: Vec::new(),
        };
        for custom in &message.custom_hash_schema_ranges {
            let bounds = custom.range_bounds.clone().unwrap_or_default();
            let (lower, upper) = decode_bounds(&bounds, schema, &partition.range)
                .ok_or_else(|| Error::invalid("master reports range bounds that make no sense"))?;
            let hash = hash_from_message(&custom.hash_schema, schema, ids)?;
            if hash.len() != partition.hash.len() {
                return Err(Error::invalid("ranges with different numbers of hash dimensions"));
            }
            partition.custom.push(CustomRange { lower, upper, hash });
        }
        partition.custom.sort_by(|a, b| a.lower.cmp(&b.lower));
        Ok(partition)
    }
}

/// The ranges among partition key bounds of tablets, each once, ascending.
pub(crate) fn ranges_of<'a>(
    partition: &PartitionSchema,
    schema: &Schema,
    tablets: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) -> Result<Vec<RangePartition>, Error> {
    let hash_bytes = partition.hash_bytes();
    let mut ranges: Vec<(&[u8], Option<&[u8]>)> = Vec::new();
    for (start, end) in tablets {
        let lower = start.get(hash_bytes..).unwrap_or_default();
        // Without an upper bound the end is the next bucket's prefix, or nothing at all. Without a
        // lower bound servers before 1.17 leave zeros of the bucket at the end of the start out.
        let mut bucket = start.get(..hash_bytes).unwrap_or(start).to_vec();
        bucket.resize(hash_bytes, 0);
        let same_bucket = end.get(..hash_bytes) == Some(&bucket);
        let upper = if same_bucket { end.get(hash_bytes..) } else { None };
        ranges.push((lower, upper.filter(|u| !u.is_empty())));
    }
    ranges.sort_unstable();
    ranges.dedup();
    let damaged = || Error::invalid("master reports a partition key that makes no sense");
    ranges
        .into_iter()
        .map(|(lower, upper)| {
            Ok(RangePartition {
                lower: decode_range_key(lower, partition, schema).ok_or_else(damaged)?,
                upper: decode_range_key(upper.unwrap_or_default(), partition, schema)
                    .ok_or_else(damaged)?,
            })
        })
        .collect()
}

fn decode_range_key(
    mut bytes: &[u8],
    partition: &PartitionSchema,
    schema: &Schema,
) -> Option<Vec<Value>> {
    if bytes.is_empty() {
        return Some(Vec::new());
    }
    let last = partition.range.len().checked_sub(1)?;
    let columns = partition.range.iter().enumerate();
    columns
        .map(|(i, index)| {
            key::take_value(&mut bytes, schema.columns().get(*index)?.data_type, i == last)
        })
        .collect()
}

/// Both bounds as range keys; `None`: not a pair of bounds.
fn decode_bounds(
    message: &RowOperations,
    schema: &Schema,
    range: &[usize],
) -> Option<(Vec<u8>, Vec<u8>)> {
    let rows = decode(schema, message)?;
    let [(lower_kind, lower), (upper_kind, upper)] = rows.as_slice() else { return None };
    let lower_exclusive = *lower_kind == operation::EXCLUSIVE_RANGE_LOWER_BOUND;
    let upper_inclusive = *upper_kind == operation::INCLUSIVE_RANGE_UPPER_BOUND;
    Some((
        bound_key(lower, schema, range, lower_exclusive)?,
        bound_key(upper, schema, range, upper_inclusive)?,
    ))
}

/// Nothing set: no bound, an empty key. `next`: the key after the one given.
fn bound_key(
    cells: &[Option<Value>],
    schema: &Schema,
    range: &[usize],
    next: bool,
) -> Option<Vec<u8>> {
    let mut values = Vec::with_capacity(range.len());
    let mut any = false;
    for index in range {
        let data_type = schema.columns().get(*index)?.data_type;
        let value = cells.get(*index)?.clone();
        any |= value.is_some();
        values.push((value.unwrap_or_else(|| Value::least(data_type)), data_type));
    }
    if !any {
        return Some(Vec::new());
    }
    if next && !crate::prune::increment(&mut values) {
        return Some(Vec::new());
    }
    let mut out = Vec::new();
    let last = values.len().saturating_sub(1);
    for (i, (value, data_type)) in values.iter().enumerate() {
        key::push_value(&mut out, value, *data_type, i == last);
    }
    Some(out)
}

fn column(schema: &Schema, index: usize) -> Result<&super::Column, Error> {
    schema.columns().get(index).ok_or_else(|| Error::invalid(format!("no column {index}")))
}

fn identifiers(columns: &[usize], schema: &Schema) -> Result<Vec<ColumnIdentifier>, Error> {
    let named = columns.iter().map(|index| {
        let name = Some(column(schema, *index)?.name.clone());
        Ok(ColumnIdentifier { id: None, name })
    });
    named.collect()
}

pub(crate) fn hash_to_message(
    hash: &[HashDimension],
    schema: &Schema,
) -> Result<Vec<HashSchema>, Error> {
    let dimensions = hash.iter().map(|dimension| {
        Ok(HashSchema {
            columns: identifiers(&dimension.columns, schema)?,
            num_buckets: i32::try_from(dimension.buckets)
                .map_err(|_| Error::invalid("too many hash buckets"))?,
            seed: Some(dimension.seed),
        })
    });
    dimensions.collect()
}

fn hash_from_message(
    hash: &[HashSchema],
    schema: &Schema,
    ids: &[u32],
) -> Result<Vec<HashDimension>, Error> {
    let dimensions = hash.iter().map(|dimension| {
        Ok(HashDimension {
            columns: resolve(&dimension.columns, schema, ids)?,
            buckets: u32::try_from(dimension.num_buckets)
                .ok()
                .filter(|n| *n > 0)
                .ok_or_else(|| Error::invalid("hash dimension without buckets"))?,
            seed: dimension.seed.unwrap_or(0),
        })
    });
    dimensions.collect()
}

fn resolve(
    columns: &[ColumnIdentifier],
    schema: &Schema,
    ids: &[u32],
) -> Result<Vec<usize>, Error> {
    let resolved = columns.iter().map(|identifier| {
        let by_id = identifier
            .id
            .and_then(|id| u32::try_from(id).ok())
            .and_then(|id| ids.iter().position(|known| *known == id));
        by_id
            .or_else(|| schema.find(identifier.name.as_deref()?))
            .ok_or_else(|| Error::invalid("partition on a column that the table does not have"))
    });
    resolved.collect()
}
