//! Altering tables.

use std::time::Duration;

use crate::client::master_error;
use crate::cluster::master::MasterReply;
use crate::error::Error;
use crate::proto::{
    AddColumnStep, AddRangePartitionStep, AlterStep, AlterTableRequest, CustomHashSchema,
    DropColumnStep, DropRangePartitionStep, ErrorOnlyResponse, RenameColumnStep, alter_step,
    master_feature,
};
use crate::retry::status;
use crate::schema::{Column, HashDimension, RangePartition, hash_to_message};
use crate::table::Table;

/// Changes of a table that are made together or not at all: begin with [`Table::alter`].
#[derive(Clone, Debug)]
#[must_use]
pub struct AlterTable {
    table: Table,
    steps: Vec<Change>,
    new_name: Option<String>,
    timeout: Option<Duration>,
}

#[derive(Clone, Debug)]
enum Change {
    AddColumn(Column),
    DropColumn(String),
    RenameColumn(String, String),
    AddRange(RangePartition, Option<Vec<HashDimension>>),
    DropRange(RangePartition),
}

impl Table {
    /// Begins to alter the table.
    pub fn alter(&self) -> AlterTable {
        AlterTable { table: self.clone(), steps: Vec::new(), new_name: None, timeout: None }
    }
}

impl AlterTable {
    /// Adds a column: nullable, or with a default for the rows that exist.
    pub fn add_column(mut self, column: Column) -> Self {
        self.steps.push(Change::AddColumn(column));
        self
    }

    /// Drops a column and what is in it.
    pub fn drop_column(mut self, name: &str) -> Self {
        self.steps.push(Change::DropColumn(name.to_owned()));
        self
    }

    /// Renames a column.
    pub fn rename_column(mut self, name: &str, new_name: &str) -> Self {
        self.steps.push(Change::RenameColumn(name.to_owned(), new_name.to_owned()));
        self
    }

    /// Adds a range of rows with the table's hash dimensions.
    pub fn add_range(mut self, range: RangePartition) -> Self {
        self.steps.push(Change::AddRange(range, None));
        self
    }

    /// Adds a range of rows with hash dimensions of its own, as many as the table has (Kudu 1.17).
    pub fn add_range_with_hash(mut self, range: RangePartition, hash: Vec<HashDimension>) -> Self {
        self.steps.push(Change::AddRange(range, Some(hash)));
        self
    }

    /// Drops a range with exactly these bounds, and its rows.
    pub fn drop_range(mut self, range: RangePartition) -> Self {
        self.steps.push(Change::DropRange(range));
        self
    }

    /// Gives the table another name.
    pub fn rename(mut self, new_name: &str) -> Self {
        self.new_name = Some(new_name.to_owned());
        self
    }

    /// Longest time until all tablets have changed.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Makes the changes, waits until all tablets have them, and opens the table as it is then.
    ///
    /// # Errors
    /// [`Error::AlreadyPresent`]: a column or range exists; nothing was changed. Others.
    pub async fn apply(self) -> Result<Table, Error> {
        let inner = &self.table.inner;
        let client = &inner.client;
        let shown = format!("altering table {}", inner.name);
        let mut attempts = client.attempts(shown, self.timeout);
        let request = self.request()?;
        let masters = &client.inner.masters;
        let reply: MasterReply<ErrorOnlyResponse> =
            masters.call("AlterTable", &request, &self.features(), &mut attempts).await?;
        if let Err(error) = reply.answer {
            let own = reply.repeated
                && match error.status.code {
                    status::ALREADY_PRESENT => true,
                    status::INVALID_ARGUMENT => self.dropped_ranges_are_gone().await?,
                    _ => false,
                };
            if !own {
                return Err(master_error("AlterTable", &inner.name, &error));
            }
        }
        let id = self.table.identifier();
        client.wait_until_done("IsAlterTableDone", id.clone(), &inner.name, &mut attempts).await?;
        if self.changes_ranges() {
            inner.locations.clear();
        }
        let answer = client.table_schema(id, &inner.name, &mut attempts).await?;
        Table::new(client.clone(), answer, &inner.name)
    }

    /// After a repeated request: whether the first one has dropped all ranges it was to drop.
    async fn dropped_ranges_are_gone(&self) -> Result<bool, Error> {
        let left = self.table.range_partitions().await?;
        let mut dropped = self.steps.iter().filter_map(|step| match step {
            Change::DropRange(range) => Some(range),
            _ => None,
        });
        Ok(dropped.clone().next().is_some() && dropped.all(|range| !left.contains(range)))
    }

    fn changes_ranges(&self) -> bool {
        self.steps.iter().any(|s| matches!(s, Change::AddRange(..) | Change::DropRange(_)))
    }

    fn features(&self) -> Vec<u32> {
        let mut features = Vec::new();
        if self.changes_ranges() {
            features.push(master_feature::ADD_DROP_RANGE_PARTITIONS);
        }
        if self.steps.iter().any(|s| matches!(s, Change::AddRange(_, Some(_)))) {
            features.push(master_feature::RANGE_SPECIFIC_HASH_SCHEMA);
        }
        if self.steps.iter().any(|s| matches!(s, Change::AddColumn(c) if c.immutable)) {
            features.push(master_feature::IMMUTABLE_COLUMN_ATTRIBUTE);
        }
        features
    }

    fn request(&self) -> Result<AlterTableRequest, Error> {
        if self.steps.is_empty() && self.new_name.is_none() {
            return Err(Error::invalid("nothing to alter"));
        }
        let inner = &self.table.inner;
        let steps = self.steps.iter().map(|change| self.step(change));
        Ok(AlterTableRequest {
            table: self.table.identifier(),
            alter_schema_steps: steps.collect::<Result<_, _>>()?,
            new_table_name: self.new_name.clone(),
            // Needed to read the bounds; the message has no place for column ids.
            schema: self.changes_ranges().then(|| inner.reference.clone()),
            new_extra_configs: Default::default(),
        })
    }

    fn step(&self, change: &Change) -> Result<AlterStep, Error> {
        let schema = &self.table.inner.schema;
        let range_columns = &self.table.inner.partition.range;
        let mut step = AlterStep::default();
        step.kind = Some(match change {
            Change::AddColumn(column) => {
                step.add_column = Some(AddColumnStep { schema: column.definition(false)? });
                alter_step::ADD_COLUMN
            }
            Change::DropColumn(name) => {
                step.drop_column = Some(DropColumnStep { name: name.clone() });
                alter_step::DROP_COLUMN
            }
            Change::RenameColumn(old, new) => {
                let (old_name, new_name) = (old.clone(), new.clone());
                step.rename_column = Some(RenameColumnStep { old_name, new_name });
                alter_step::RENAME_COLUMN
            }
            Change::AddRange(range, hash) => {
                let custom_hash_schema = match hash {
                    Some(hash) => {
                        Some(CustomHashSchema { hash_schema: hash_to_message(hash, schema)? })
                    }
                    None => None,
                };
                let range_bounds = Some(range.encode(schema, range_columns)?);
                step.add_range_partition =
                    Some(AddRangePartitionStep { range_bounds, custom_hash_schema });
                alter_step::ADD_RANGE_PARTITION
            }
            Change::DropRange(range) => {
                let range_bounds = Some(range.encode(schema, range_columns)?);
                step.drop_range_partition = Some(DropRangePartitionStep { range_bounds });
                alter_step::DROP_RANGE_PARTITION
            }
        });
        Ok(step)
    }
}
