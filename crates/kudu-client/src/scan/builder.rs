//! What a scan is to read, and how.

use std::collections::HashSet;
use std::time::Duration;

use tokio::time::Instant;

use super::scanner::Scanner;
use super::token::ScanToken;
use crate::error::Error;
use crate::predicate::{Predicate, normalise, to_message};
use crate::proto::PredicateMessage;
use crate::prune::{KeyRange, prune, within_bucket};
use crate::schema::Column;
use crate::table::Table;

/// Size of answers asked for when nothing else is said, bytes.
const BATCH_BYTES: u32 = 1 << 20;

/// Which rows a scan sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadMode {
    /// What the replica asked has applied. A leader has applied everything acknowledged, except for
    /// the first moments after it was elected; [`ReadMode::YourWrites`] waits then.
    #[default]
    Latest,
    /// The table at one moment: what was written with a timestamp below this one. `None`: now.
    Snapshot(Option<u64>),
    /// At least what this client has written and read so far, from any replica.
    YourWrites,
}

/// Which replicas are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplicaSelection {
    /// Leaders.
    #[default]
    Leader,
    /// Whichever.
    Any,
}

/// What does not change over a scan.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) projection: Vec<Column>,
    pub(crate) predicates: Vec<PredicateMessage>,
    pub(crate) read_mode: ReadMode,
    pub(crate) replicas: ReplicaSelection,
    pub(crate) fault_tolerant: bool,
    pub(crate) batch_bytes: u32,
    pub(crate) cache_blocks: bool,
    /// Limit for each answer with all its attempts.
    pub(crate) timeout: Duration,
}

/// A scan in the making: begin with [`Table::scan`].
#[derive(Clone, Debug)]
#[must_use]
pub struct ScanBuilder {
    table: Table,
    projection: Option<Vec<String>>,
    predicates: Vec<Predicate>,
    limit: Option<u64>,
    bucket: Option<u32>,
    read_mode: ReadMode,
    replicas: ReplicaSelection,
    fault_tolerant: bool,
    batch_bytes: u32,
    cache_blocks: bool,
    timeout: Duration,
}

impl Table {
    /// Begins a scan of all rows and columns.
    pub fn scan(&self) -> ScanBuilder {
        ScanBuilder {
            projection: None,
            predicates: Vec::new(),
            limit: None,
            bucket: None,
            read_mode: ReadMode::default(),
            replicas: ReplicaSelection::default(),
            fault_tolerant: false,
            batch_bytes: BATCH_BYTES,
            cache_blocks: true,
            timeout: self.client().inner.config.operation_timeout,
            table: self.clone(),
        }
    }
}

impl ScanBuilder {
    /// Reads these columns, in this order. No columns at all counts rows: batches have a number of
    /// rows and nothing else.
    pub fn columns<S: AsRef<str>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.projection = Some(names.into_iter().map(|name| name.as_ref().to_owned()).collect());
        self
    }

    /// Reads rows that satisfy this condition, too.
    pub fn filter(mut self, predicate: Predicate) -> Self {
        self.predicates.push(predicate);
        self
    }

    /// Reads at most so many rows.
    pub fn limit(mut self, rows: u64) -> Self {
        self.limit = Some(rows);
        self
    }

    /// Reads rows of this bucket of the first hash dimension only; see [`Table::hash_bucket`].
    pub fn bucket(mut self, bucket: u32) -> Self {
        self.bucket = Some(bucket);
        self
    }

    /// Which rows are seen.
    pub fn read_mode(mut self, mode: ReadMode) -> Self {
        self.read_mode = mode;
        self
    }

    /// Which replicas are asked.
    pub fn replicas(mut self, selection: ReplicaSelection) -> Self {
        self.replicas = selection;
        self
    }

    /// Goes on at another replica where a server fails in the middle of a tablet. Rows of a tablet
    /// come in the order of the primary key then, which costs the servers some work. Needs
    /// [`ReadMode::Snapshot`].
    pub fn fault_tolerant(mut self) -> Self {
        self.fault_tolerant = true;
        self
    }

    /// About how many bytes an answer should have (1 MiB; servers send 8 MiB at most).
    pub fn batch_bytes(mut self, bytes: u32) -> Self {
        self.batch_bytes = bytes.max(1);
        self
    }

    /// Keeps what is read out of the servers' caches: for large scans that are not repeated.
    pub fn bypass_cache(mut self) -> Self {
        self.cache_blocks = false;
        self
    }

    /// Longest wait for an answer with all its attempts.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }

    /// Starts the scan. Nothing is sent before the first batch is asked for.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`]: what was asked for makes no sense.
    pub fn open(self) -> Result<Scanner, Error> {
        let (spec, ranges) = self.resolve()?;
        Ok(Scanner::new(self.table, spec, ranges, self.limit))
    }

    /// Cuts the scan into one part for each tablet that may have rows, to be read in parallel or
    /// elsewhere. A limit holds for each part; a snapshot without timestamp is each part's own, so
    /// give a timestamp to read one moment.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`], or the master cannot say where the tablets are.
    pub async fn tokens(self) -> Result<Vec<ScanToken>, Error> {
        let (_, ranges) = self.resolve()?;
        let table = &self.table.inner;
        let operation = format!("tablets of table {}", table.name);
        let mut attempts = table.client.attempts(operation, Some(self.timeout));
        let since = Instant::now();
        let mut tokens = Vec::new();
        for range in ranges {
            let mut cursor = range.lower.clone();
            loop {
                let masters = &table.client.inner.masters;
                let wanted = Some(crate::cluster::locations::WHOLE);
                let found =
                    table.locations.find(&cursor, since, wanted, masters, &mut attempts).await?;
                let end = found.end.to_vec();
                let ends = end.is_empty() || (!range.upper.is_empty() && end >= range.upper);
                let upper = if ends { range.upper.clone() } else { end.clone() };
                if found.tablet.is_some() {
                    let part = KeyRange { lower: cursor, upper };
                    tokens.push(ScanToken::new(&self, part)?);
                }
                if ends {
                    break;
                }
                cursor = end;
            }
        }
        Ok(tokens)
    }

    pub(crate) fn resolve(&self) -> Result<(Spec, Vec<KeyRange>), Error> {
        let table = &self.table.inner;
        let schema = &table.schema;
        let projection = match &self.projection {
            None => schema.columns().to_vec(),
            Some(names) => {
                let mut seen = HashSet::new();
                if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
                    return Err(Error::invalid(format!("column {twice} is asked for twice")));
                }
                let columns = names.iter().map(|name| {
                    let index = schema.index(name)?;
                    Ok(schema.columns()[index].clone())
                });
                columns.collect::<Result<_, Error>>()?
            }
        };
        if self.fault_tolerant && !matches!(self.read_mode, ReadMode::Snapshot(_)) {
            return Err(Error::invalid("a fault-tolerant scan must read a snapshot"));
        }
        let tests = normalise(&self.predicates, schema)?;
        let mut ranges = if self.limit == Some(0) {
            Vec::new()
        } else {
            prune(schema, &table.partition, &tests)
        };
        if let Some(bucket) = self.bucket {
            ranges = within_bucket(ranges, bucket);
        }
        let predicates = tests.iter().map(|(i, test)| to_message(&schema.columns()[*i], test));
        let spec = Spec {
            projection,
            predicates: predicates.collect(),
            read_mode: self.read_mode,
            replicas: self.replicas,
            fault_tolerant: self.fault_tolerant,
            batch_bytes: self.batch_bytes,
            cache_blocks: self.cache_blocks,
            timeout: self.timeout,
        };
        Ok((spec, ranges))
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    pub(crate) fn row_limit(&self) -> Option<u64> {
        self.limit
    }
}
