//! The master's service.

use bytes::Bytes;
use prost::Message;

use super::{
    ColumnSchemaOut, ExtraConfigs, HashSchema, HostPort, PartitionSchemaMessage, RowOperations,
    SchemaIn, SchemaOut, ServiceError, SignedToken,
};

pub(crate) const MASTER_SERVICE: &str = "kudu.master.MasterService";

/// Values of `required_feature_flags` of calls to a master.
pub(crate) mod master_feature {
    pub(crate) const RANGE_PARTITION_BOUNDS: u32 = 1;
    pub(crate) const ADD_DROP_RANGE_PARTITIONS: u32 = 2;
    pub(crate) const IGNORE_OPERATIONS: u32 = 7;
    pub(crate) const RANGE_SPECIFIC_HASH_SCHEMA: u32 = 8;
    pub(crate) const UPSERT_IGNORE: u32 = 9;
    pub(crate) const IMMUTABLE_COLUMN_ATTRIBUTE: u32 = 10;
}

/// A server's part in a group of replicas.
pub(crate) mod role {
    pub(crate) const FOLLOWER: i32 = 0;
    pub(crate) const LEADER: i32 = 1;
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct TableIdentifier {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(crate) table_id: Option<Bytes>,
    #[prost(string, optional, tag = "2")]
    pub(crate) table_name: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ConnectToMasterResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) error: Option<ServiceError>,
    #[prost(int32, optional, tag = "2")]
    pub(crate) role: Option<i32>,
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub(crate) ca_cert_der: Vec<Vec<u8>>,
    #[prost(message, optional, tag = "4")]
    pub(crate) authn_token: Option<SignedToken>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) master_addrs: Vec<HostPort>,
    #[prost(string, optional, tag = "8")]
    pub(crate) cluster_id: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ListTablesRequest {
    #[prost(string, optional, tag = "1")]
    pub(crate) name_filter: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ListedTable {
    #[prost(bytes = "bytes", required, tag = "1")]
    pub(crate) id: Bytes,
    #[prost(string, required, tag = "2")]
    pub(crate) name: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ListTablesResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) error: Option<ServiceError>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) tables: Vec<ListedTable>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct TableRequest {
    #[prost(message, required, tag = "1")]
    pub(crate) table: TableIdentifier,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetTableSchemaResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) error: Option<ServiceError>,
    #[prost(message, optional, tag = "2")]
    pub(crate) schema: Option<SchemaIn>,
    #[prost(int32, optional, tag = "3")]
    pub(crate) num_replicas: Option<i32>,
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub(crate) table_id: Option<Bytes>,
    #[prost(message, optional, tag = "5")]
    pub(crate) partition_schema: Option<PartitionSchemaMessage>,
    #[prost(string, optional, tag = "7")]
    pub(crate) table_name: Option<String>,
    #[prost(message, optional, tag = "8")]
    pub(crate) authz_token: Option<SignedToken>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CreateTableRequest {
    #[prost(string, required, tag = "1")]
    pub(crate) name: String,
    #[prost(message, required, tag = "2")]
    pub(crate) schema: SchemaOut,
    #[prost(int32, optional, tag = "4")]
    pub(crate) num_replicas: Option<i32>,
    #[prost(message, optional, tag = "6")]
    pub(crate) split_rows_range_bounds: Option<RowOperations>,
    #[prost(message, optional, tag = "7")]
    pub(crate) partition_schema: Option<PartitionSchemaMessage>,
    #[prost(map = "string, string", tag = "9")]
    pub(crate) extra_configs: ExtraConfigs,
    #[prost(string, optional, tag = "13")]
    pub(crate) comment: Option<String>,
    #[prost(bool, optional, tag = "14")]
    pub(crate) allow_empty_partition: Option<bool>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct CreateTableResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) error: Option<ServiceError>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(crate) table_id: Option<Bytes>,
}

/// Answer of IsCreateTableDone and IsAlterTableDone.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct IsDoneResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) error: Option<ServiceError>,
    #[prost(bool, optional, tag = "3")]
    pub(crate) done: Option<bool>,
}

/// Values of `AlterStep::kind`.
pub(crate) mod alter_step {
    pub(crate) const ADD_COLUMN: i32 = 1;
    pub(crate) const DROP_COLUMN: i32 = 2;
    pub(crate) const RENAME_COLUMN: i32 = 3;
    pub(crate) const ADD_RANGE_PARTITION: i32 = 5;
    pub(crate) const DROP_RANGE_PARTITION: i32 = 6;
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct AddColumnStep {
    #[prost(message, required, tag = "1")]
    pub(crate) schema: ColumnSchemaOut,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct DropColumnStep {
    #[prost(string, required, tag = "1")]
    pub(crate) name: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct RenameColumnStep {
    #[prost(string, required, tag = "1")]
    pub(crate) old_name: String,
    #[prost(string, required, tag = "2")]
    pub(crate) new_name: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct CustomHashSchema {
    #[prost(message, repeated, tag = "1")]
    pub(crate) hash_schema: Vec<HashSchema>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct AddRangePartitionStep {
    #[prost(message, optional, tag = "1")]
    pub(crate) range_bounds: Option<RowOperations>,
    #[prost(message, optional, tag = "3")]
    pub(crate) custom_hash_schema: Option<CustomHashSchema>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct DropRangePartitionStep {
    #[prost(message, optional, tag = "1")]
    pub(crate) range_bounds: Option<RowOperations>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct AlterStep {
    #[prost(int32, optional, tag = "1")]
    pub(crate) kind: Option<i32>,
    #[prost(message, optional, tag = "2")]
    pub(crate) add_column: Option<AddColumnStep>,
    #[prost(message, optional, tag = "3")]
    pub(crate) drop_column: Option<DropColumnStep>,
    #[prost(message, optional, tag = "4")]
    pub(crate) rename_column: Option<RenameColumnStep>,
    #[prost(message, optional, tag = "5")]
    pub(crate) add_range_partition: Option<AddRangePartitionStep>,
    #[prost(message, optional, tag = "6")]
    pub(crate) drop_range_partition: Option<DropRangePartitionStep>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AlterTableRequest {
    #[prost(message, required, tag = "1")]
    pub(crate) table: TableIdentifier,
    #[prost(message, repeated, tag = "2")]
    pub(crate) alter_schema_steps: Vec<AlterStep>,
    #[prost(string, optional, tag = "3")]
    pub(crate) new_table_name: Option<String>,
    #[prost(message, optional, tag = "4")]
    pub(crate) schema: Option<SchemaOut>,
}

/// An answer of which only the error matters.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ErrorOnlyResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) error: Option<ServiceError>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct DeleteTableRequest {
    #[prost(message, required, tag = "1")]
    pub(crate) table: TableIdentifier,
    #[prost(uint32, optional, tag = "3")]
    pub(crate) reserve_seconds: Option<u32>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct GetTableLocationsRequest {
    #[prost(message, required, tag = "1")]
    pub(crate) table: TableIdentifier,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub(crate) partition_key_start: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "4")]
    pub(crate) partition_key_end: Option<Vec<u8>>,
    #[prost(uint32, optional, tag = "5")]
    pub(crate) max_returned_locations: Option<u32>,
    #[prost(bool, optional, tag = "7")]
    pub(crate) intern_ts_infos_in_response: Option<bool>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct TabletServerInfo {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(crate) permanent_uuid: Option<Bytes>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) rpc_addresses: Vec<HostPort>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ReplicaMessage {
    #[prost(message, optional, tag = "1")]
    pub(crate) ts_info: Option<TabletServerInfo>,
    #[prost(int32, optional, tag = "2")]
    pub(crate) role: Option<i32>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct InternedReplica {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) ts_info_idx: Option<u32>,
    #[prost(int32, optional, tag = "2")]
    pub(crate) role: Option<i32>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct PartitionMessage {
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(crate) partition_key_start: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub(crate) partition_key_end: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct TabletLocations {
    #[prost(bytes = "bytes", required, tag = "1")]
    pub(crate) tablet_id: Bytes,
    #[prost(message, repeated, tag = "4")]
    pub(crate) replicas: Vec<ReplicaMessage>,
    #[prost(message, optional, tag = "6")]
    pub(crate) partition: Option<PartitionMessage>,
    #[prost(message, repeated, tag = "7")]
    pub(crate) interned_replicas: Vec<InternedReplica>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct GetTableLocationsResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) error: Option<ServiceError>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) tablet_locations: Vec<TabletLocations>,
    #[prost(uint32, optional, tag = "3")]
    pub(crate) ttl_millis: Option<u32>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) ts_infos: Vec<TabletServerInfo>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct NodeInstance {
    #[prost(bytes = "vec", required, tag = "1")]
    pub(crate) permanent_uuid: Vec<u8>,
    #[prost(int64, required, tag = "2")]
    pub(crate) instance_seqno: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ServerRegistration {
    #[prost(message, repeated, tag = "1")]
    pub(crate) rpc_addresses: Vec<HostPort>,
    #[prost(string, optional, tag = "3")]
    pub(crate) software_version: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ListedTabletServer {
    #[prost(message, required, tag = "1")]
    pub(crate) instance_id: NodeInstance,
    #[prost(message, optional, tag = "2")]
    pub(crate) registration: Option<ServerRegistration>,
    #[prost(int32, optional, tag = "3")]
    pub(crate) millis_since_heartbeat: Option<i32>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ListTabletServersResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) error: Option<ServiceError>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) servers: Vec<ListedTabletServer>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct GetTableStatisticsResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) error: Option<ServiceError>,
    #[prost(int64, optional, tag = "2")]
    pub(crate) on_disk_size: Option<i64>,
    #[prost(int64, optional, tag = "3")]
    pub(crate) live_row_count: Option<i64>,
}
