//! Creating tables.

use std::collections::HashMap;
use std::time::Duration;

use super::alter::same_dimensions;
use crate::client::{Client, master_error};
use crate::cluster::master::MasterReply;
use crate::error::Error;
use crate::proto::{CreateTableRequest, CreateTableResponse, TableIdentifier, master_feature};
use crate::retry::{Attempts, status};
use crate::schema::{Bounds, HashDimension, PartitionSchema, RangePartition, Schema};
use crate::table::Table;

/// A table to be created.
#[derive(Clone, Debug)]
#[must_use]
pub struct TableSpec {
    name: String,
    schema: Schema,
    hash: Vec<(Vec<String>, u32, u32)>,
    range: Vec<String>,
    ranges: Option<Vec<RangePartition>>,
    replicas: Option<i32>,
    comment: Option<String>,
    configuration: HashMap<String, String>,
    timeout: Option<Duration>,
}

impl TableSpec {
    /// A table of one tablet, with as many copies as the cluster makes by default.
    pub fn new(name: &str, schema: Schema) -> Self {
        Self {
            name: name.to_owned(),
            schema,
            hash: Vec::new(),
            range: Vec::new(),
            ranges: None,
            replicas: None,
            comment: None,
            configuration: HashMap::new(),
            timeout: None,
        }
    }

    /// Spreads rows over `buckets` by the hash of these columns of the key.
    pub fn hash(self, columns: &[&str], buckets: u32) -> Self {
        self.hash_seeded(columns, buckets, 0)
    }

    /// Like [`TableSpec::hash`], with a start value for the hash.
    pub fn hash_seeded(mut self, columns: &[&str], buckets: u32, seed: u32) -> Self {
        self.hash.push((columns.iter().map(|c| (*c).to_owned()).collect(), buckets, seed));
        self
    }

    /// Cuts the table into ranges of these columns of the key. Without a call of
    /// [`TableSpec::ranges`] there is one range for all rows.
    pub fn range(mut self, columns: &[&str]) -> Self {
        self.range = columns.iter().map(|c| (*c).to_owned()).collect();
        self
    }

    /// The ranges the table starts with. None at all needs Kudu 1.18; before, the server makes one
    /// for all rows, which has to be dropped before others can be added.
    pub fn ranges(mut self, ranges: impl IntoIterator<Item = RangePartition>) -> Self {
        self.ranges = Some(ranges.into_iter().collect());
        self
    }

    /// Copies of each tablet: odd, and not more than there are tablet servers.
    pub fn replicas(mut self, replicas: i32) -> Self {
        self.replicas = Some(replicas);
        self
    }

    /// Free text.
    pub fn comment(mut self, comment: &str) -> Self {
        self.comment = Some(comment.to_owned());
        self
    }

    /// Sets a configuration of the table, such as `kudu.table.history_max_age_sec`.
    pub fn configuration(mut self, key: &str, value: &str) -> Self {
        self.configuration.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Longest time until the table is ready.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    fn partition(&self) -> Result<PartitionSchema, Error> {
        let indexes = |names: &[String]| -> Result<Vec<usize>, Error> {
            names.iter().map(|name| self.schema.index(name)).collect()
        };
        let hash = self.hash.iter().map(|(columns, buckets, seed)| {
            Ok(HashDimension { columns: indexes(columns)?, buckets: *buckets, seed: *seed })
        });
        Ok(PartitionSchema {
            hash: hash.collect::<Result<_, Error>>()?,
            range: indexes(&self.range)?,
            custom: Vec::new(),
        })
    }

    fn request(&self) -> Result<CreateTableRequest, Error> {
        let partition = self.partition()?;
        let bounds = match self.ranges.as_deref() {
            None | Some([]) => None,
            Some(ranges) => {
                let mut bounds = Bounds::default();
                for range in ranges {
                    range.encode_into(&self.schema, &partition.range, &mut bounds)?;
                }
                Some(bounds.into_message())
            }
        };
        Ok(CreateTableRequest {
            name: self.name.clone(),
            schema: self.schema.definition()?,
            num_replicas: self.replicas,
            split_rows_range_bounds: bounds,
            partition_schema: Some(partition.to_message(&self.schema)?),
            extra_configs: self.configuration.clone(),
            comment: self.comment.clone(),
            allow_empty_partition: self.ranges.as_ref().map(Vec::is_empty),
        })
    }
}

impl Client {
    /// Creates a table, waits until all its tablets are there, and opens it.
    ///
    /// # Errors
    /// [`Error::TableExists`] and others.
    pub async fn create_table(&self, spec: &TableSpec) -> Result<Table, Error> {
        let operation = format!("creating table {}", spec.name);
        let mut attempts = self.attempts(operation, spec.timeout);
        let request = spec.request()?;
        let mut features = Vec::new();
        if request.split_rows_range_bounds.is_some() {
            features.push(master_feature::RANGE_PARTITION_BOUNDS);
        }
        if spec.schema.columns().iter().any(|c| c.immutable) {
            features.push(master_feature::IMMUTABLE_COLUMN_ATTRIBUTE);
        }
        let reply: MasterReply<CreateTableResponse> =
            self.inner.masters.call("CreateTable", &request, &features, &mut attempts).await?;
        let name = TableIdentifier { table_id: None, table_name: Some(spec.name.clone()) };
        let id = match reply.answer {
            Ok(answer) => match answer.table_id {
                Some(id) => TableIdentifier { table_id: Some(id), table_name: None },
                None => name,
            },
            Err(error) if reply.repeated && error.status.code == status::ALREADY_PRESENT => {
                self.is_as_specified(spec, &name, &mut attempts).await?;
                name
            }
            Err(error) => return Err(master_error("CreateTable", &spec.name, &error)),
        };
        self.wait_until_done("IsCreateTableDone", id.clone(), &spec.name, &mut attempts).await?;
        let answer = self.table_schema(id, &spec.name, &mut attempts).await?;
        Table::new(self.clone(), answer, &spec.name)
    }

    /// Whether the table that exists is the one an attempt before has made.
    async fn is_as_specified(
        &self,
        spec: &TableSpec,
        name: &TableIdentifier,
        attempts: &mut Attempts,
    ) -> Result<(), Error> {
        let answer = self.table_schema(name.clone(), &spec.name, attempts).await?;
        let found = Table::new(self.clone(), answer, &spec.name)?;
        let id = found.identifier();
        self.wait_until_done("IsCreateTableDone", id, &spec.name, attempts).await?;
        let same_columns = found.schema().reference() == spec.schema.reference();
        let wanted = spec.partition()?;
        let same_range = found.partition_schema().range_columns() == wanted.range_columns();
        let same_hash = same_dimensions(&found.partition_schema().hash, &wanted.hash);
        let ranges = found.ranges(attempts).await?;
        let wanted_ranges = spec.ranges.clone().unwrap_or_else(|| vec![RangePartition::default()]);
        let same_ranges = ranges.len() == wanted_ranges.len()
            && wanted_ranges.iter().all(|range| ranges.contains(range));
        if same_columns && same_range && same_hash && same_ranges {
            return Ok(());
        }
        Err(Error::TableExists { table: spec.name.clone() })
    }
}
