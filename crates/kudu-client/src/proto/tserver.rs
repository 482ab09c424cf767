//! The tablet server's service.

use bytes::Bytes;
use prost::Message;

use super::{
    AppStatus, ColumnSchemaOut, PredicateMessage, RowOperations, SchemaOut, ServiceError,
    SignedToken,
};

pub(crate) const TABLET_SERVICE: &str = "kudu.tserver.TabletServerService";

/// Values of `required_feature_flags` of calls to a tablet server.
pub(crate) mod tablet_feature {
    pub(crate) const COLUMN_PREDICATES: u32 = 1;
    pub(crate) const COLUMNAR_LAYOUT: u32 = 5;
}

/// Value of `NewScanRequest::row_format_flags`: columns instead of rows.
pub(crate) const COLUMNAR_LAYOUT: u64 = 2;

/// Values of `NewScanRequest::read_mode`.
pub(crate) mod read_mode {
    pub(crate) const LATEST: i32 = 1;
    pub(crate) const AT_SNAPSHOT: i32 = 2;
    pub(crate) const YOUR_WRITES: i32 = 3;
}

/// Values of `NewScanRequest::order_mode`.
pub(crate) mod order_mode {
    pub(crate) const UNORDERED: i32 = 1;
    pub(crate) const ORDERED: i32 = 2;
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct WriteRequest {
    #[prost(bytes = "bytes", required, tag = "1")]
    pub(crate) tablet_id: Bytes,
    #[prost(message, optional, tag = "2")]
    pub(crate) schema: Option<SchemaOut>,
    #[prost(message, optional, tag = "3")]
    pub(crate) row_operations: Option<RowOperations>,
    #[prost(fixed64, optional, tag = "5")]
    pub(crate) propagated_timestamp: Option<u64>,
    #[prost(message, optional, tag = "6")]
    pub(crate) authz_token: Option<SignedToken>,
}

impl WriteRequest {
    /// The field `schema` as it is sent: it may be behind the others of an encoded message.
    pub(crate) fn schema_field(schema: &SchemaOut) -> Vec<u8> {
        let mut out = Vec::new();
        prost::encoding::message::encode(2, schema, &mut out);
        out
    }
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct PerRowError {
    #[prost(int32, required, tag = "1")]
    pub(crate) row_index: i32,
    #[prost(message, required, tag = "2")]
    pub(crate) error: AppStatus,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct WriteResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) error: Option<ServiceError>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) per_row_errors: Vec<PerRowError>,
    #[prost(fixed64, optional, tag = "3")]
    pub(crate) timestamp: Option<u64>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct NewScanRequest {
    #[prost(bytes = "bytes", required, tag = "1")]
    pub(crate) tablet_id: Bytes,
    #[prost(uint64, optional, tag = "2")]
    pub(crate) limit: Option<u64>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) projected_columns: Vec<ColumnSchemaOut>,
    #[prost(int32, optional, tag = "5")]
    pub(crate) read_mode: Option<i32>,
    #[prost(fixed64, optional, tag = "6")]
    pub(crate) snap_timestamp: Option<u64>,
    #[prost(fixed64, optional, tag = "7")]
    pub(crate) propagated_timestamp: Option<u64>,
    #[prost(bool, optional, tag = "10")]
    pub(crate) cache_blocks: Option<bool>,
    #[prost(int32, optional, tag = "11")]
    pub(crate) order_mode: Option<i32>,
    #[prost(bytes = "bytes", optional, tag = "12")]
    pub(crate) last_primary_key: Option<Bytes>,
    #[prost(message, repeated, tag = "13")]
    pub(crate) column_predicates: Vec<PredicateMessage>,
    #[prost(uint64, optional, tag = "14")]
    pub(crate) row_format_flags: Option<u64>,
    #[prost(message, optional, tag = "15")]
    pub(crate) authz_token: Option<SignedToken>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ScanRequest {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(crate) scanner_id: Option<Bytes>,
    #[prost(message, optional, tag = "2")]
    pub(crate) new_scan_request: Option<NewScanRequest>,
    #[prost(uint32, optional, tag = "3")]
    pub(crate) call_seq_id: Option<u32>,
    #[prost(uint32, optional, tag = "4")]
    pub(crate) batch_size_bytes: Option<u32>,
    #[prost(bool, optional, tag = "5")]
    pub(crate) close_scanner: Option<bool>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ColumnarColumn {
    #[prost(int32, optional, tag = "1")]
    pub(crate) data_sidecar: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub(crate) varlen_data_sidecar: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(crate) non_null_bitmap_sidecar: Option<i32>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ColumnarRowBlock {
    #[prost(message, repeated, tag = "1")]
    pub(crate) columns: Vec<ColumnarColumn>,
    #[prost(int64, optional, tag = "2")]
    pub(crate) num_rows: Option<i64>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ScanResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) error: Option<ServiceError>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(crate) scanner_id: Option<Bytes>,
    #[prost(bool, optional, tag = "3")]
    pub(crate) has_more_results: Option<bool>,
    #[prost(message, optional, tag = "5")]
    pub(crate) columnar_data: Option<ColumnarRowBlock>,
    #[prost(fixed64, optional, tag = "6")]
    pub(crate) snap_timestamp: Option<u64>,
    #[prost(bytes = "bytes", optional, tag = "7")]
    pub(crate) last_primary_key: Option<Bytes>,
    #[prost(fixed64, optional, tag = "9")]
    pub(crate) propagated_timestamp: Option<u64>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ScannerKeepAliveRequest {
    #[prost(bytes = "bytes", required, tag = "1")]
    pub(crate) scanner_id: Bytes,
}
