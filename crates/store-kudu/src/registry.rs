//! The registry: small facts that all daemons share, in one table keyed by (owner, space, key).
//!
//! The owner is 0 (the whole store), a measurement's id, or a database; a space is a kind of fact.
//! What may be made by one daemon only is inserted: the row that is there first holds.

use kudu_client::{
    Bits, Cells, Missing, Operation, Predicate, ReadMode, RowBatch, ScanBatch, Scanner, Table,
};
use model::DatabaseId;
use store::StoreError;

use crate::error::{cluster, unintelligible};

/// Kinds of facts. The numbers are in the table: never change them.
pub(crate) mod space {
    /// Of the store: `number` is the version of the layout.
    pub(crate) const FORMAT: i8 = 0;
    /// Of the store: key is a version of the catalog, latest first; `data` says where its parts are.
    pub(crate) const CATALOG: i8 = 1;
    /// Of the store: a part of a version of the catalog in `data`.
    pub(crate) const CATALOG_PART: i8 = 2;
    /// Of a database: key is the hash of a measurement's name, `number` its id, `text` its name.
    pub(crate) const MEASUREMENT: i8 = 4;
    /// Of a measurement: key is the hash of a field's name, `number` its type, `text` its name;
    /// `data` is its number if its values are in the narrow table.
    pub(crate) const FIELD: i8 = 5;
    /// Of a measurement: key is the hash of a tag key, `text` the tag key.
    pub(crate) const TAG_KEY: i8 = 6;
    /// Of a measurement: key is policy, first and last time of a range.
    pub(crate) const RANGE: i8 = 7;
    /// Of the store or a measurement: key is the first of a block of ids, the last block first;
    /// `number` is the one behind the block.
    pub(crate) const IDS: i8 = 8;
    /// Of a measurement: key is a series and a token; `number` is 1 once it is known to be dead.
    pub(crate) const DEAD: i8 = 9;
    /// Of a measurement: numbers of fields, in blocks like ids.
    pub(crate) const FIELD_NUMBERS: i8 = 11;
    /// Of a measurement: key is a token, `number` when it was set, microseconds: there while ranges
    /// are dropped of which series are not marked yet.
    pub(crate) const DROPPING: i8 = 12;
    /// Of the partitions: key is database, policy, first and last time, `number` the partition's.
    pub(crate) const PARTITION: i8 = 10;
}

/// Owner of what belongs to the whole store.
pub(crate) const STORE: i64 = 0;
/// Owner of the numbers of partitions.
pub(crate) const PARTITIONS: i64 = i64::MIN;
/// Rows of a request.
const CHUNK: usize = 500;
/// Bytes of an answer.
const BATCH_BYTES: u32 = 256 << 10;

/// Owner of what belongs to a database. Measurements count from 1.
pub(crate) fn owner_of(database: DatabaseId) -> i64 {
    -i64::from(database.0) - 1
}

/// A number as a key that sorts as numbers do.
pub(crate) fn ordered(number: i64) -> [u8; 8] {
    (number ^ i64::MIN).to_be_bytes()
}

/// The number of a key.
pub(crate) fn number_of(key: &[u8]) -> Option<i64> {
    let bytes = key.get(..8)?.try_into().ok()?;
    Some(i64::from_be_bytes(bytes) ^ i64::MIN)
}

/// A fact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) space: i8,
    pub(crate) key: Vec<u8>,
    pub(crate) number: Option<i64>,
    pub(crate) text: Option<String>,
    pub(crate) data: Option<Vec<u8>>,
}

impl Entry {
    pub(crate) fn new(space: i8, key: impl Into<Vec<u8>>) -> Self {
        Self { space, key: key.into(), ..Self::default() }
    }

    pub(crate) fn number(mut self, number: i64) -> Self {
        self.number = Some(number);
        self
    }

    pub(crate) fn text(mut self, text: &str) -> Self {
        self.text = Some(text.to_owned());
        self
    }

    pub(crate) fn data(mut self, data: Vec<u8>) -> Self {
        self.data = Some(data);
        self
    }
}

/// The table.
#[derive(Clone, Debug)]
pub(crate) struct Registry {
    pub(crate) table: Table,
}

/// Which entries of an owner.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which<'a> {
    /// All of a space.
    Space(i8),
    /// Those of a space with a key from the first to before the second.
    Within(i8, &'a [u8], &'a [u8]),
    /// All of the spaces from the first to the last.
    Spaces(i8, i8),
    /// One.
    Key(i8, &'a [u8]),
}

impl Registry {
    /// Entries in the order of their keys, as of a moment; `None`: now.
    pub(crate) async fn read(
        &self,
        owner: i64,
        which: Which<'_>,
        moment: Option<u64>,
    ) -> Result<Vec<Entry>, StoreError> {
        let mut entries = Vec::new();
        let mut reading = self.open(owner, which, moment, None)?;
        while let Some(some) = reading.next().await? {
            entries.extend(some);
        }
        Ok(entries)
    }

    /// The first entry of a space.
    pub(crate) async fn first(&self, owner: i64, space: i8) -> Result<Option<Entry>, StoreError> {
        let first = self.open(owner, Which::Space(space), None, Some(1))?.next().await?;
        Ok(first.and_then(|entries| entries.into_iter().next()))
    }

    /// Begins to read entries in the order of their keys, as of a moment; `None`: now.
    pub(crate) fn open(
        &self,
        owner: i64,
        which: Which<'_>,
        moment: Option<u64>,
        limit: Option<u64>,
    ) -> Result<Entries, StoreError> {
        let mut scan = self
            .table
            .scan()
            .columns(["space", "key", "number", "text", "data"])
            .filter(Predicate::equal("owner", owner))
            .read_mode(ReadMode::Snapshot(moment))
            .fault_tolerant()
            .batch_bytes(BATCH_BYTES);
        scan = match which {
            Which::Space(space) => scan.filter(Predicate::equal("space", i32::from(space))),
            Which::Spaces(first, last) => scan
                .filter(Predicate::greater_or_equal("space", i32::from(first)))
                .filter(Predicate::less_or_equal("space", i32::from(last))),
            Which::Within(space, first, end) => scan
                .filter(Predicate::equal("space", i32::from(space)))
                .filter(Predicate::greater_or_equal("key", first))
                .filter(Predicate::less("key", end)),
            Which::Key(space, key) => scan
                .filter(Predicate::equal("space", i32::from(space)))
                .filter(Predicate::equal("key", key)),
        };
        if let Some(limit) = limit {
            scan = scan.limit(limit);
        }
        Ok(Entries { scanner: scan.open().map_err(cluster)? })
    }

    /// Removes all entries of an owner in some spaces, part by part.
    pub(crate) async fn clear(&self, owner: i64, which: Which<'_>) -> Result<(), StoreError> {
        let mut reading = self.open(owner, which, None, None)?;
        while let Some(entries) = reading.next().await? {
            self.delete(owner, &entries).await?;
        }
        Ok(())
    }

    /// Inserts entries; says of each whether it is there now by this call.
    pub(crate) async fn insert(
        &self,
        owner: i64,
        entries: &[Entry],
    ) -> Result<Vec<bool>, StoreError> {
        let mut inserted = vec![true; entries.len()];
        for (chunk, flags) in entries.chunks(CHUNK).zip(inserted.chunks_mut(CHUNK)) {
            let outcome = self.write(Operation::Insert, owner, chunk).await?;
            for error in outcome.row_errors {
                if !error.is_already_present() {
                    return Err(self.refused(&error));
                }
                if let Some(flag) = flags.get_mut(error.row) {
                    *flag = false;
                }
            }
        }
        Ok(inserted)
    }

    /// Inserts one entry; says whether it is there now by this call.
    pub(crate) async fn insert_one(&self, owner: i64, entry: Entry) -> Result<bool, StoreError> {
        Ok(self.insert(owner, &[entry]).await? == [true])
    }

    /// Sets entries, whether they are there or not.
    pub(crate) async fn upsert(&self, owner: i64, entries: &[Entry]) -> Result<(), StoreError> {
        self.strictly(Operation::Upsert, owner, entries).await
    }

    /// Sets entries that are still there.
    pub(crate) async fn update(&self, owner: i64, entries: &[Entry]) -> Result<(), StoreError> {
        self.strictly(Operation::UpdateIgnore, owner, entries).await
    }

    /// Removes entries, of which only the keys count.
    pub(crate) async fn delete(&self, owner: i64, entries: &[Entry]) -> Result<(), StoreError> {
        self.strictly(Operation::DeleteIgnore, owner, entries).await
    }

    async fn strictly(
        &self,
        operation: Operation,
        owner: i64,
        entries: &[Entry],
    ) -> Result<(), StoreError> {
        for chunk in entries.chunks(CHUNK) {
            let outcome = self.write(operation, owner, chunk).await?;
            if let Some(error) = outcome.row_errors.first() {
                return Err(self.refused(error));
            }
        }
        Ok(())
    }

    fn refused(&self, error: &kudu_client::RowError) -> StoreError {
        StoreError::Io(format!("Kudu refuses a row of {}: {}", self.table.name(), error.message))
    }

    async fn write(
        &self,
        operation: Operation,
        owner: i64,
        entries: &[Entry],
    ) -> Result<kudu_client::WriteOutcome, StoreError> {
        let owners = vec![owner; entries.len()];
        let spaces: Vec<i8> = entries.iter().map(|e| e.space).collect();
        let keys: Vec<&[u8]> = entries.iter().map(|e| e.key.as_slice()).collect();
        let numbers: Vec<i64> = entries.iter().map(|e| e.number.unwrap_or(0)).collect();
        let texts: Vec<&[u8]> =
            entries.iter().map(|e| e.text.as_deref().unwrap_or_default().as_bytes()).collect();
        let data: Vec<&[u8]> =
            entries.iter().map(|e| e.data.as_deref().unwrap_or_default()).collect();
        let has_number = bits(entries, |e| e.number.is_some());
        let has_text = bits(entries, |e| e.text.is_some());
        let has_data = bits(entries, |e| e.data.is_some());
        let mut batch = RowBatch::new(operation, entries.len())
            .column(0, Cells::Int64(&owners))
            .column(1, Cells::Int8(&spaces))
            .column(2, Cells::Slices(&keys));
        if operation != Operation::DeleteIgnore {
            let unset = Missing::Unset;
            batch = batch
                .column_where(3, Cells::Int64(&numbers), Bits(&has_number), unset)
                .column_where(4, Cells::Slices(&texts), Bits(&has_text), unset)
                .column_where(5, Cells::Slices(&data), Bits(&has_data), unset);
        }
        self.table.write(&batch).await.map_err(cluster)
    }
}

/// Entries that are being read, part by part.
#[derive(Debug)]
pub(crate) struct Entries {
    scanner: Scanner,
}

impl Entries {
    /// The next ones, `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Entry>>, StoreError> {
        let batch = self.scanner.next().await.map_err(cluster)?;
        batch.as_ref().map(entries_of).transpose()
    }
}

fn entries_of(batch: &ScanBatch) -> Result<Vec<Entry>, StoreError> {
    let [space, key, number, text, data] = [0, 1, 2, 3, 4].map(|at| batch.column(at));
    let mut entries = Vec::with_capacity(batch.rows());
    for (row, (space, number_of)) in space.i8s().zip(number.i64s()).enumerate() {
        let text_of = text.is_valid(row).then(|| std::str::from_utf8(text.bytes(row)));
        let text_of = text_of.transpose().map_err(|_| unintelligible("registry", "no UTF-8"))?;
        entries.push(Entry {
            space,
            key: key.bytes(row).to_vec(),
            number: number.is_valid(row).then_some(number_of),
            text: text_of.map(str::to_owned),
            data: data.is_valid(row).then(|| data.bytes(row).to_vec()),
        });
    }
    Ok(entries)
}

fn bits(entries: &[Entry], is_set: impl Fn(&Entry) -> bool) -> Vec<u8> {
    let mut bits = vec![0_u8; entries.len().div_ceil(8)];
    for (at, entry) in entries.iter().enumerate() {
        if let Some(byte) = bits.get_mut(at / 8) {
            *byte |= u8::from(is_set(entry)) << (at % 8);
        }
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_numbers() {
        let numbers = [i64::MIN, -1, 0, 1, i64::MAX];
        assert!(numbers.map(ordered).is_sorted());
        assert!(numbers.iter().all(|n| number_of(&ordered(*n)) == Some(*n)));
        assert_eq!(number_of(b"short"), None);
        assert_eq!(owner_of(DatabaseId(0)), -1);
    }
}
