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
use crate::retry::{Attempts, status};
use crate::schema::{
    Column, HashDimension, PartitionSchema, RangePartition, Schema, hash_to_message,
};
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
            let may_be_done = matches!(
                error.status.code,
                status::ALREADY_PRESENT | status::INVALID_ARGUMENT | status::NOT_FOUND
            );
            let is_done = reply.repeated && may_be_done && self.is_done(&mut attempts).await?;
            if !is_done {
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

    /// After a repeated request: whether an attempt before has made all of the changes.
    async fn is_done(&self, attempts: &mut Attempts) -> Result<bool, Error> {
        let inner = &self.table.inner;
        let (client, id) = (&inner.client, self.table.identifier());
        client.wait_until_done("IsAlterTableDone", id.clone(), &inner.name, attempts).await?;
        let answer = client.table_schema(id, &inner.name, attempts).await?;
        let table = Table::new(client.clone(), answer, &inner.name)?;
        let ranges = match self.changes_ranges() {
            true => table.ranges(attempts).await?,
            false => Vec::new(),
        };
        let is_named = self.new_name.as_ref().is_none_or(|name| table.name() == name);
        let partition = table.partition_schema();
        let is_made = |change: &Change| is_made(change, table.schema(), partition, &ranges);
        Ok(is_named && self.steps.iter().all(is_made))
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

/// Whether a table is as it is after a change.
fn is_made(
    change: &Change,
    schema: &Schema,
    partition: &PartitionSchema,
    ranges: &[RangePartition],
) -> bool {
    let same = |a: &Column, b: &Column| {
        (a.data_type, a.nullable, a.immutable) == (b.data_type, b.nullable, b.immutable)
    };
    match change {
        Change::AddColumn(column) => {
            let found = schema.find(&column.name).and_then(|at| schema.columns().get(at));
            found.is_some_and(|found| same(found, column))
        }
        Change::DropColumn(name) => schema.find(name).is_none(),
        Change::RenameColumn(old, new) => schema.find(old).is_none() && schema.find(new).is_some(),
        Change::AddRange(range, hash) => {
            let has_hash = |hash: &Vec<HashDimension>| {
                partition.custom.iter().any(|custom| same_dimensions(&custom.hash, hash))
            };
            ranges.contains(range) && hash.as_ref().is_none_or(has_hash)
        }
        Change::DropRange(range) => !ranges.contains(range),
    }
}

/// Whether rows are spread in the same way. Masters tell the columns in an order of their own.
pub(super) fn same_dimensions(a: &[HashDimension], b: &[HashDimension]) -> bool {
    let sorted = |dimension: &HashDimension| {
        let mut columns = dimension.columns.clone();
        columns.sort_unstable();
        (columns, dimension.buckets, dimension.seed)
    };
    a.iter().map(sorted).eq(b.iter().map(sorted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::DataType;

    #[test]
    fn a_repeated_change_counts_as_made_only_if_it_is() {
        let columns = vec![
            Column::new("time", DataType::Int64),
            Column::new("usage", DataType::Double).nullable(),
        ];
        let schema = Schema::new(columns, 1).unwrap();
        let partition = PartitionSchema::default();
        let ranges = [RangePartition::between(0_i64, 10_i64)];
        let made = |change: Change| is_made(&change, &schema, &partition, &ranges);
        let column = |name: &str, ty| Change::AddColumn(Column::new(name, ty).nullable());
        assert!(made(column("usage", DataType::Double)));
        assert!(!made(column("usage", DataType::Int64)), "somebody else's, of another type");
        assert!(!made(column("more", DataType::Double)));
        assert!(made(Change::DropColumn("more".to_owned())));
        assert!(!made(Change::DropColumn("usage".to_owned())));
        assert!(made(Change::RenameColumn("old".to_owned(), "usage".to_owned())));
        assert!(made(Change::AddRange(ranges[0].clone(), None)));
        assert!(!made(Change::AddRange(RangePartition::between(0_i64, 5_i64), None)));
        assert!(!made(Change::DropRange(ranges[0].clone())));
        let hash = vec![HashDimension { columns: vec![0], buckets: 2, seed: 0 }];
        assert!(!made(Change::AddRange(ranges[0].clone(), Some(hash))));
    }

    #[test]
    fn dimensions_are_the_same_in_any_order_of_columns() {
        let hash = |columns: &[usize], buckets| {
            vec![HashDimension { columns: columns.to_vec(), buckets, seed: 0 }]
        };
        assert!(same_dimensions(&hash(&[0, 1], 2), &hash(&[1, 0], 2)));
        assert!(!same_dimensions(&hash(&[0, 1], 2), &hash(&[0, 1], 3)));
        assert!(!same_dimensions(&hash(&[0], 2), &[]));
    }
}
