//! Schemas, partitions, encoded rows, predicates.

use std::collections::HashMap;

use bytes::Bytes;
use prost::Message;

#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(crate) struct HostPort {
    #[prost(string, required, tag = "1")]
    pub(crate) host: String,
    #[prost(uint32, required, tag = "2")]
    pub(crate) port: u32,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ColumnTypeAttributes {
    #[prost(int32, optional, tag = "1")]
    pub(crate) precision: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub(crate) scale: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(crate) length: Option<i32>,
}

/// A column as the client sends it. There is deliberately no way to send a column id: the server
/// refuses it nearly everywhere, and a master aborts on some requests that carry one.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ColumnSchemaOut {
    #[prost(string, required, tag = "2")]
    pub(crate) name: String,
    #[prost(int32, required, tag = "3")]
    pub(crate) data_type: i32,
    #[prost(bool, optional, tag = "4")]
    pub(crate) is_key: Option<bool>,
    #[prost(bool, optional, tag = "5")]
    pub(crate) is_nullable: Option<bool>,
    #[prost(bytes = "vec", optional, tag = "6")]
    pub(crate) read_default_value: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "8")]
    pub(crate) encoding: Option<i32>,
    #[prost(int32, optional, tag = "9")]
    pub(crate) compression: Option<i32>,
    #[prost(int32, optional, tag = "10")]
    pub(crate) block_bytes: Option<i32>,
    #[prost(message, optional, tag = "11")]
    pub(crate) type_attributes: Option<ColumnTypeAttributes>,
    #[prost(string, optional, tag = "12")]
    pub(crate) comment: Option<String>,
    #[prost(bool, optional, tag = "13")]
    pub(crate) immutable: Option<bool>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct SchemaOut {
    #[prost(message, repeated, tag = "1")]
    pub(crate) columns: Vec<ColumnSchemaOut>,
}

/// A column as the master reports it.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ColumnSchemaIn {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) id: Option<u32>,
    #[prost(string, required, tag = "2")]
    pub(crate) name: String,
    #[prost(int32, required, tag = "3")]
    pub(crate) data_type: i32,
    #[prost(bool, optional, tag = "4")]
    pub(crate) is_key: Option<bool>,
    #[prost(bool, optional, tag = "5")]
    pub(crate) is_nullable: Option<bool>,
    #[prost(bytes = "vec", optional, tag = "6")]
    pub(crate) read_default_value: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "7")]
    pub(crate) write_default_value: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "8")]
    pub(crate) encoding: Option<i32>,
    #[prost(int32, optional, tag = "9")]
    pub(crate) compression: Option<i32>,
    #[prost(int32, optional, tag = "10")]
    pub(crate) block_bytes: Option<i32>,
    #[prost(message, optional, tag = "11")]
    pub(crate) type_attributes: Option<ColumnTypeAttributes>,
    #[prost(string, optional, tag = "12")]
    pub(crate) comment: Option<String>,
    #[prost(bool, optional, tag = "13")]
    pub(crate) immutable: Option<bool>,
    #[prost(bool, optional, tag = "14")]
    pub(crate) is_auto_incrementing: Option<bool>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct SchemaIn {
    #[prost(message, repeated, tag = "1")]
    pub(crate) columns: Vec<ColumnSchemaIn>,
}

/// A column by id (as the master reports it) or by name (as the client sends it).
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ColumnIdentifier {
    #[prost(int32, optional, tag = "1")]
    pub(crate) id: Option<i32>,
    #[prost(string, optional, tag = "2")]
    pub(crate) name: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct HashSchema {
    #[prost(message, repeated, tag = "1")]
    pub(crate) columns: Vec<ColumnIdentifier>,
    #[prost(int32, required, tag = "2")]
    pub(crate) num_buckets: i32,
    #[prost(uint32, optional, tag = "3")]
    pub(crate) seed: Option<u32>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct RangeSchema {
    #[prost(message, repeated, tag = "1")]
    pub(crate) columns: Vec<ColumnIdentifier>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct RangeWithHashSchema {
    #[prost(message, optional, tag = "1")]
    pub(crate) range_bounds: Option<RowOperations>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) hash_schema: Vec<HashSchema>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct PartitionSchemaMessage {
    #[prost(message, repeated, tag = "1")]
    pub(crate) hash_schema: Vec<HashSchema>,
    #[prost(message, optional, tag = "2")]
    pub(crate) range_schema: Option<RangeSchema>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) custom_hash_schema_ranges: Vec<RangeWithHashSchema>,
}

/// Encoded rows; see `write::encode`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct RowOperations {
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(crate) rows: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub(crate) indirect_data: Option<Bytes>,
}

/// Values of the operation byte in `RowOperations`.
pub(crate) mod operation {
    pub(crate) const RANGE_LOWER_BOUND: u8 = 6;
    pub(crate) const RANGE_UPPER_BOUND: u8 = 7;
    pub(crate) const EXCLUSIVE_RANGE_LOWER_BOUND: u8 = 8;
    pub(crate) const INCLUSIVE_RANGE_UPPER_BOUND: u8 = 9;
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct RangePredicate {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub(crate) lower: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(crate) upper: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct EqualityPredicate {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub(crate) value: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct InListPredicate {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(crate) values: Vec<Vec<u8>>,
}

/// What a column must satisfy: the name and exactly one of the others.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct PredicateMessage {
    #[prost(string, optional, tag = "1")]
    pub(crate) column: Option<String>,
    #[prost(message, optional, tag = "2")]
    pub(crate) range: Option<RangePredicate>,
    #[prost(message, optional, tag = "3")]
    pub(crate) equality: Option<EqualityPredicate>,
    #[prost(message, optional, tag = "4")]
    pub(crate) is_not_null: Option<super::Empty>,
    #[prost(message, optional, tag = "5")]
    pub(crate) in_list: Option<InListPredicate>,
    #[prost(message, optional, tag = "6")]
    pub(crate) is_null: Option<super::Empty>,
}

/// Configuration of a table that goes along with creating and altering it.
pub(crate) type ExtraConfigs = HashMap<String, String>;
