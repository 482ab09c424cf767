//! An open table: its schema as it was when it was opened, and where its tablets are.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::client::Client;
use crate::cluster::locations::{Locations, Stretch, Tablet, WHOLE};
use crate::error::Error;
use crate::proto::{GetTableSchemaResponse, SchemaOut, SignedToken, TableIdentifier, WriteRequest};
use crate::retry::{Attempts, Reaction};
use crate::rpc::Endpoint;
use crate::schema::{PartitionSchema, RangePartition, Schema, Value, key, ranges_of};

/// An open table. Clones share everything.
///
/// The schema is that of the moment of opening. After somebody has altered the table, writes and
/// scans of columns that stayed go on; open it again to see the new ones. So are the hash dimensions:
/// after somebody has added a range with hash dimensions of its own, open the table again, or scans
/// whose conditions hit that range miss rows of it (writes to it are refused).
#[derive(Clone, Debug)]
pub struct Table {
    pub(crate) inner: Arc<TableInner>,
}

#[derive(Debug)]
pub(crate) struct TableInner {
    pub(crate) client: Client,
    pub(crate) id: Bytes,
    pub(crate) name: String,
    pub(crate) schema: Schema,
    /// The schema as writes carry it.
    pub(crate) reference: SchemaOut,
    /// The same as the field of a write's message.
    pub(crate) encoded_reference: Bytes,
    pub(crate) partition: PartitionSchema,
    pub(crate) locations: Arc<Locations>,
    replicas: i32,
    authorization: Mutex<Option<SignedToken>>,
}

/// A copy of a tablet, as the leading master tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Identity of its server; see [`TabletServer::uuid`](crate::TabletServer::uuid).
    pub server_uuid: String,
    /// Where that server listens, `host:port`.
    pub address: String,
    /// Whether it counts where a majority is needed. One that is still being filled does not.
    pub is_voter: bool,
    /// Whether it leads, as far as the master has heard: a server that died may still be named.
    pub is_leader: bool,
}

impl TableInner {
    /// The stretch of a partition key; see [`Locations::find`].
    pub(crate) async fn find(
        &self,
        key: &[u8],
        since: Instant,
        prefetch: Option<u32>,
        attempts: &mut Attempts,
    ) -> Result<Stretch, Error> {
        let masters = &self.client.inner.masters;
        let found = self.locations.find(key, since, prefetch, masters, attempts).await;
        found.map_err(|error| self.named(error))
    }

    /// The error with the table's name: its locations know it by its id only.
    fn named(&self, error: Error) -> Error {
        match error {
            Error::TableNotFound { .. } => Error::TableNotFound { table: self.name.clone() },
            other => other,
        }
    }
}

impl Table {
    pub(crate) fn new(
        client: Client,
        answer: GetTableSchemaResponse,
        shown: &str,
    ) -> Result<Self, Error> {
        let missing = |what: &str| Error::protocol("master", format!("table without {what}"));
        let (schema, ids) = Schema::from_message(answer.schema.ok_or_else(|| missing("schema"))?)?;
        let partition = answer.partition_schema.unwrap_or_default();
        let partition = PartitionSchema::from_message(&partition, &schema, &ids)?;
        let id = answer.table_id.ok_or_else(|| missing("id"))?;
        let reference = schema.reference();
        let inner = TableInner {
            encoded_reference: WriteRequest::schema_field(&reference).into(),
            reference,
            schema,
            partition,
            locations: client.locations(&id),
            name: answer.table_name.unwrap_or_else(|| shown.to_owned()),
            replicas: answer.num_replicas.unwrap_or(1),
            authorization: Mutex::new(answer.authz_token),
            client,
            id,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Name when it was opened.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Id: stays the same when the table is renamed, differs when it is made anew.
    #[must_use]
    pub fn id(&self) -> String {
        String::from_utf8_lossy(&self.inner.id).into_owned()
    }

    /// The columns.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.inner.schema
    }

    /// How it is cut into tablets.
    #[must_use]
    pub fn partition_schema(&self) -> &PartitionSchema {
        &self.inner.partition
    }

    /// The bucket of the first hash dimension that rows with these values of its columns are in.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`]: there is no such dimension, it has other columns, or ranges have
    /// hash dimensions of their own.
    pub fn hash_bucket(&self, values: &[Value]) -> Result<u32, Error> {
        let partition = &self.inner.partition;
        let dimension = partition.hash.first().filter(|_| partition.custom.is_empty());
        let dimension = dimension.filter(|d| d.columns.len() == values.len());
        let Some(dimension) = dimension else {
            return Err(Error::invalid("the table has no such hash dimension for all of its rows"));
        };
        let mut encoded = Vec::new();
        for (i, (index, value)) in dimension.columns.iter().zip(values).enumerate() {
            let Some(column) = self.inner.schema.columns().get(*index) else { continue };
            value.check(column.data_type, &column.name)?;
            key::push_value(&mut encoded, value, column.data_type, i + 1 == values.len());
        }
        Ok(key::bucket(&encoded, dimension.seed, dimension.buckets))
    }

    /// Copies of each tablet.
    #[must_use]
    pub fn replicas(&self) -> i32 {
        self.inner.replicas
    }

    /// The client it was opened with.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.inner.client
    }

    /// The range partitions as they are now, ascending.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn range_partitions(&self) -> Result<Vec<RangePartition>, Error> {
        let operation = format!("ranges of table {}", self.inner.name);
        let mut attempts = self.inner.client.attempts(operation, None);
        self.ranges(&mut attempts).await
    }

    pub(crate) async fn ranges(
        &self,
        attempts: &mut Attempts,
    ) -> Result<Vec<RangePartition>, Error> {
        let inner = &self.inner;
        inner.locations.clear();
        let tablets = self.tablets_from(&[], Instant::now(), attempts).await?;
        let bounds = tablets.iter().map(|t| (t.start.as_ref(), t.end.as_ref()));
        ranges_of(&inner.partition, &inner.schema, bounds)
    }

    /// Of each value of the range column, whether a range partition holds rows with it. One that was
    /// found within the last minutes is believed to be there still, unless a scan or
    /// [`Table::range_partitions`] has found out; that there is none is always asked for.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`]: the table has not one range column, or it is of another type.
    /// Others.
    pub async fn have_ranges(&self, values: &[Value]) -> Result<Vec<bool>, Error> {
        let inner = &self.inner;
        let [column] = inner.partition.range.as_slice() else {
            return Err(Error::invalid("the table has not one range column"));
        };
        let column = inner.schema.columns().get(*column);
        let column = column.ok_or_else(|| Error::invalid("the table has no range column"))?;
        let operation = format!("partitions of table {}", inner.name);
        let mut attempts = inner.client.attempts(operation, None);
        let since = Instant::now();
        let mut found = Vec::with_capacity(values.len());
        for value in values {
            value.check(column.data_type, &column.name)?;
            let mut range_key = Vec::new();
            key::push_value(&mut range_key, value, column.data_type, true);
            // Of the first bucket: all have the same ranges.
            let mut key = vec![0; inner.partition.dimensions_at(&range_key).len() * 4];
            key.extend(range_key);
            let stretch = inner.find(&key, since, Some(WHOLE), &mut attempts).await?;
            found.push(stretch.tablet.is_some());
        }
        Ok(found)
    }

    /// Address (`host:port`) of the leader of each tablet, in the order of partition keys, as the
    /// master tells. Empty where it knows none.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn tablet_leaders(&self) -> Result<Vec<String>, Error> {
        let tablets = self.tablets_now().await?;
        let leaders = tablets.iter().map(|tablet| tablet.named_leader());
        Ok(leaders.map(|endpoint| endpoint.map_or_else(String::new, |e| e.to_string())).collect())
    }

    /// The copies of each tablet, in the order of partition keys, as the master tells. Copies on
    /// servers that it has not heard of since it was started are left out.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn tablet_replicas(&self) -> Result<Vec<Vec<Replica>>, Error> {
        let shown = |replica: crate::cluster::locations::Replica| Replica {
            server_uuid: String::from_utf8_lossy(&replica.server).into_owned(),
            address: replica.endpoint.to_string(),
            is_voter: replica.is_voter,
            is_leader: replica.is_leader,
        };
        let tablets = self.tablets_now().await?;
        Ok(tablets.iter().map(|t| t.replicas().into_iter().map(shown).collect()).collect())
    }

    async fn tablets_now(&self) -> Result<Vec<Arc<Tablet>>, Error> {
        let operation = format!("tablets of table {}", self.inner.name);
        let mut attempts = self.inner.client.attempts(operation, None);
        self.inner.locations.clear();
        self.tablets_from(&[], Instant::now(), &mut attempts).await
    }

    async fn tablets_from(
        &self,
        start: &[u8],
        since: Instant,
        attempts: &mut Attempts,
    ) -> Result<Vec<Arc<Tablet>>, Error> {
        let inner = &self.inner;
        let mut tablets = Vec::new();
        let mut cursor = start.to_vec();
        loop {
            let stretch = inner.find(&cursor, since, Some(WHOLE), attempts).await?;
            tablets.extend(stretch.tablet);
            if stretch.end.is_empty() {
                return Ok(tablets);
            }
            cursor = stretch.end.to_vec();
        }
    }

    pub(crate) fn identifier(&self) -> TableIdentifier {
        TableIdentifier { table_id: Some(self.inner.id.clone()), table_name: None }
    }

    pub(crate) fn authorization(&self) -> Option<SignedToken> {
        self.inner.authorization.lock().clone()
    }

    async fn renew_authorization(&self, attempts: &mut Attempts) -> Result<(), Error> {
        let client = &self.inner.client;
        let answer = client.table_schema(self.identifier(), &self.inner.name, attempts).await?;
        *self.inner.authorization.lock() = answer.authz_token;
        Ok(())
    }

    /// Does what a failed attempt on a tablet asks for, and waits where that is due.
    pub(crate) async fn react(
        &self,
        reaction: Reaction,
        tablet: &Arc<Tablet>,
        endpoint: &Endpoint,
        attempts: &mut Attempts,
    ) -> Result<(), Error> {
        match reaction {
            Reaction::Wait => attempts.back_off().await,
            Reaction::OtherReplica | Reaction::ServerFailed => {
                tablet.demote(endpoint);
                Ok(())
            }
            Reaction::Relocate => {
                self.inner.locations.forget(tablet);
                attempts.back_off().await
            }
            Reaction::NewAuthorization => {
                self.renew_authorization(attempts).await?;
                attempts.back_off().await
            }
            Reaction::NewAuthentication => {
                self.inner.client.inner.masters.renew_authentication(attempts).await?;
                attempts.back_off().await
            }
            Reaction::ScannerGone(message) => Err(Error::ScanInterrupted(message)),
            Reaction::Fail(error) => Err(error),
        }
    }
}
