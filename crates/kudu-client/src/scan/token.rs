//! Parts of a scan that can be carried elsewhere.
//!
//! The bytes are this client's own format, not that of Kudu's other clients.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use prost::Message;

use super::builder::{ReadMode, ReplicaSelection, ScanBuilder, Spec};
use super::scanner::Scanner;
use crate::client::Client;
use crate::error::Error;
use crate::proto::{PredicateMessage, TableIdentifier};
use crate::prune::KeyRange;

/// Version of the serialised form.
const VERSION: u32 = 1;

/// One part of a scan: the rows of one tablet.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanToken {
    message: Arc<TokenMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct TokenMessage {
    #[prost(uint32, required, tag = "1")]
    version: u32,
    #[prost(bytes = "bytes", required, tag = "2")]
    table_id: Bytes,
    #[prost(string, required, tag = "3")]
    table_name: String,
    #[prost(string, repeated, tag = "4")]
    projection: Vec<String>,
    #[prost(message, repeated, tag = "5")]
    predicates: Vec<PredicateMessage>,
    #[prost(bytes = "vec", required, tag = "6")]
    lower: Vec<u8>,
    #[prost(bytes = "vec", required, tag = "7")]
    upper: Vec<u8>,
    #[prost(uint64, optional, tag = "8")]
    limit: Option<u64>,
    /// 0: latest, 1: snapshot, 2: one's own writes.
    #[prost(uint32, required, tag = "9")]
    read_mode: u32,
    #[prost(uint64, optional, tag = "10")]
    snapshot: Option<u64>,
    #[prost(bool, required, tag = "11")]
    any_replica: bool,
    #[prost(bool, required, tag = "12")]
    fault_tolerant: bool,
    #[prost(uint32, required, tag = "13")]
    batch_bytes: u32,
    #[prost(bool, required, tag = "14")]
    cache_blocks: bool,
    #[prost(uint64, required, tag = "15")]
    timeout_ms: u64,
    #[prost(uint64, required, tag = "16")]
    timestamp: u64,
}

impl ScanToken {
    pub(crate) fn new(builder: &ScanBuilder, part: KeyRange) -> Result<Self, Error> {
        let (spec, _) = builder.resolve()?;
        let table = &builder.table().inner;
        let (read_mode, snapshot) = match spec.read_mode {
            ReadMode::Latest => (0, None),
            ReadMode::Snapshot(timestamp) => (1, timestamp),
            ReadMode::YourWrites => (2, None),
        };
        let message = TokenMessage {
            version: VERSION,
            table_id: table.id.clone(),
            table_name: table.name.clone(),
            projection: spec.projection.into_iter().map(|column| column.name).collect(),
            predicates: spec.predicates,
            lower: part.lower,
            upper: part.upper,
            limit: builder.row_limit(),
            read_mode,
            snapshot,
            any_replica: spec.replicas == ReplicaSelection::Any,
            fault_tolerant: spec.fault_tolerant,
            batch_bytes: spec.batch_bytes,
            cache_blocks: spec.cache_blocks,
            timeout_ms: u64::try_from(spec.timeout.as_millis()).unwrap_or(u64::MAX),
            timestamp: table.client.last_timestamp(),
        };
        Ok(Self { message: Arc::new(message) })
    }

    /// The token as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.message.encode_to_vec()
    }

    /// Reads what [`ScanToken::to_bytes`] has written.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`]: it was something else, or another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let message = TokenMessage::decode(bytes)
            .map_err(|e| Error::invalid(format!("this is no scan token: {e}")))?;
        if message.version != VERSION {
            let version = message.version;
            return Err(Error::invalid(format!("scan token of unknown version {version}")));
        }
        Ok(Self { message: Arc::new(message) })
    }

    /// Starts the scan of this part.
    ///
    /// # Errors
    /// [`Error::TableNotFound`]; [`Error::SchemaChanged`]: a column is gone.
    pub async fn open(&self, client: &Client) -> Result<Scanner, Error> {
        let message = &self.message;
        let id = TableIdentifier { table_id: Some(message.table_id.clone()), table_name: None };
        let table = client.open(id, &message.table_name).await?;
        let columns = message.projection.iter().map(|name| {
            let column = table.schema().columns().iter().find(|c| c.name == *name);
            column.cloned().ok_or_else(|| Error::SchemaChanged {
                table: message.table_name.clone(),
                message: format!("column {name} is gone"),
            })
        });
        let read_mode = match message.read_mode {
            0 => ReadMode::Latest,
            1 => ReadMode::Snapshot(message.snapshot),
            2 => ReadMode::YourWrites,
            other => return Err(Error::invalid(format!("scan token with read mode {other}"))),
        };
        let replicas = match message.any_replica {
            true => ReplicaSelection::Any,
            false => ReplicaSelection::Leader,
        };
        let spec = Spec {
            projection: columns.collect::<Result<_, _>>()?,
            predicates: message.predicates.clone(),
            read_mode,
            replicas,
            fault_tolerant: message.fault_tolerant,
            batch_bytes: message.batch_bytes,
            cache_blocks: message.cache_blocks,
            timeout: Duration::from_millis(message.timeout_ms),
        };
        client.observe_timestamp(message.timestamp);
        let part = KeyRange { lower: message.lower.clone(), upper: message.upper.clone() };
        Ok(Scanner::new(table, spec, vec![part], message.limit))
    }
}
