//! Series: keys become ids, and tags find series.
//!
//! `series` has a row for each key, inserted by whoever meets it first. `tags` has a row for each tag
//! of each series, with the key, so that one tight scan answers a condition on a tag. A series is
//! marked complete when its tags are in; a daemon that meets an incomplete one puts them in itself.

use std::collections::HashMap;

use kudu_client::{Cells, Operation, Predicate, ReadMode, RowBatch, Scanner};
use model::{Name, SeriesKey, TagExpr};
use store::StoreError;

use crate::error::{cluster, contended, unintelligible};
use crate::layout::{Hash, SERIES_ID, hash, tag_hash};
use crate::measurement::Measurement;
use crate::shared::Shared;

/// Bytes of an answer while series are listed.
const BATCH_BYTES: u32 = 256 << 10;
/// Keys looked up by one scan, and rows of one request.
const CHUNK: usize = 256;
/// Values of a tag that the tag index is asked for.
const VALUES_MAX: usize = 200;
/// Tries to find or make series while others do.
const TRIES_MAX: usize = 20;

/// A series.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) id: i64,
    pub(crate) key: SeriesKey,
}

impl Series {
    /// Memory it takes, bytes, about.
    pub(crate) fn memory_bytes(&self) -> usize {
        let text: usize = self.key.tags.iter().map(|(k, v)| k.len() + v.len() + 64).sum();
        text + 64
    }
}

impl Shared {
    /// Ids of series, made where they are missing.
    pub(crate) async fn resolve(
        &self,
        measurement: &Measurement,
        keys: &[SeriesKey],
    ) -> Result<Vec<i64>, StoreError> {
        let mut ids = Vec::with_capacity(keys.len());
        for chunk in keys.chunks(CHUNK) {
            ids.extend(self.resolve_chunk(measurement, chunk).await?);
        }
        Ok(ids)
    }

    async fn resolve_chunk(
        &self,
        measurement: &Measurement,
        keys: &[SeriesKey],
    ) -> Result<Vec<i64>, StoreError> {
        let texts: Vec<String> = keys.iter().map(ToString::to_string).collect();
        let hashes: Vec<Hash> = texts.iter().map(|text| hash(text.as_bytes())).collect();
        for _ in 0..TRIES_MAX {
            let found = self.look_up(measurement.id, &hashes).await?;
            let missing: Vec<usize> =
                (0..keys.len()).filter(|at| !found.contains_key(&hashes[*at])).collect();
            if missing.is_empty() {
                let incomplete = |at: &usize| !found[&hashes[*at]].1;
                let unfinished: Vec<usize> = (0..keys.len()).filter(incomplete).collect();
                self.complete(measurement, keys, &texts, &hashes, &found, &unfinished).await?;
                return Ok(hashes.iter().map(|hash| found[hash].0).collect());
            }
            self.insert(measurement, &missing, &texts, &hashes).await?;
        }
        Err(contended("the series table"))
    }

    /// Ids by hash of the key, and whether their tags are in.
    async fn look_up(
        &self,
        measurement: i64,
        hashes: &[Hash],
    ) -> Result<HashMap<Hash, (i64, bool)>, StoreError> {
        let list = Predicate::in_list("key_hash", hashes.iter().map(Hash::as_slice));
        let scan = self
            .series
            .scan()
            .columns(["key_hash", SERIES_ID, "complete"])
            .filter(Predicate::equal("measurement_id", measurement))
            .filter(list)
            .read_mode(ReadMode::Snapshot(None));
        let mut scanner = scan.open().map_err(cluster)?;
        let mut found = HashMap::new();
        while let Some(batch) = scanner.next().await.map_err(cluster)? {
            let rows = batch.column(1).i64s().zip(batch.column(2).bools()).enumerate();
            for (row, (id, complete)) in rows {
                let key = Hash::try_from(batch.column(0).bytes(row));
                let key = key.map_err(|_| unintelligible(self.series.name(), "a damaged hash"))?;
                found.insert(key, (id, complete));
            }
        }
        Ok(found)
    }

    /// Inserts series; those that somebody else inserts first stay theirs.
    async fn insert(
        &self,
        measurement: &Measurement,
        missing: &[usize],
        texts: &[String],
        hashes: &[Hash],
    ) -> Result<(), StoreError> {
        let mut distinct: HashMap<Hash, usize> = HashMap::new();
        for at in missing {
            distinct.entry(hashes[*at]).or_insert(*at);
        }
        let mut chosen: Vec<usize> = distinct.into_values().collect();
        // Neighbouring keys get neighbouring ids.
        chosen.sort_unstable_by(|a, b| texts[*a].cmp(&texts[*b]));
        let ids = {
            let mut block = measurement.series_ids.lock().await;
            block.take(&self.registry, measurement.id, chosen.len()).await?
        };
        let owners = vec![measurement.id; chosen.len()];
        let key_hashes: Vec<&[u8]> = chosen.iter().map(|at| hashes[*at].as_slice()).collect();
        let keys: Vec<&[u8]> = chosen.iter().map(|at| texts[*at].as_bytes()).collect();
        let batch = RowBatch::new(Operation::Insert, chosen.len())
            .column(0, Cells::Int64(&owners))
            .column(1, Cells::Slices(&key_hashes))
            .column(2, Cells::Int64(&ids))
            .column(3, Cells::Slices(&keys));
        let outcome = self.series.write(&batch).await.map_err(cluster)?;
        if let Some(error) = outcome.row_errors.iter().find(|error| !error.is_already_present()) {
            let message = &error.message;
            return Err(StoreError::Io(format!("Kudu refuses a series: {message}")));
        }
        self.metrics.series_created.add((chosen.len() - outcome.row_errors.len()) as u64);
        Ok(())
    }

    /// Puts the tags of new series in, then marks them.
    async fn complete(
        &self,
        measurement: &Measurement,
        keys: &[SeriesKey],
        texts: &[String],
        hashes: &[Hash],
        found: &HashMap<Hash, (i64, bool)>,
        unfinished: &[usize],
    ) -> Result<(), StoreError> {
        if unfinished.is_empty() {
            return Ok(());
        }
        let (mut tag_hashes, mut ids, mut owners_of) = (Vec::new(), Vec::new(), Vec::new());
        for at in unfinished {
            for (key, value) in &keys[*at].tags {
                tag_hashes.push(tag_hash(key, value));
                ids.push(found[&hashes[*at]].0);
                owners_of.push(texts[*at].as_bytes());
            }
        }
        if !ids.is_empty() {
            let owners = vec![measurement.id; ids.len()];
            let tag_hashes: Vec<&[u8]> = tag_hashes.iter().map(Hash::as_slice).collect();
            let batch = RowBatch::new(Operation::Upsert, ids.len())
                .column(0, Cells::Int64(&owners))
                .column(1, Cells::Slices(&tag_hashes))
                .column(2, Cells::Int64(&ids))
                .column(3, Cells::Slices(&owners_of));
            all_applied(&self.tags.write(&batch).await.map_err(cluster)?)?;
        }
        self.register_tag_keys(measurement, unfinished.iter().map(|at| &keys[*at])).await?;
        let owners = vec![measurement.id; unfinished.len()];
        let key_hashes: Vec<&[u8]> = unfinished.iter().map(|at| hashes[*at].as_slice()).collect();
        let complete = vec![true; unfinished.len()];
        let batch = RowBatch::new(Operation::UpdateIgnore, unfinished.len())
            .column(0, Cells::Int64(&owners))
            .column(1, Cells::Slices(&key_hashes))
            .column(4, Cells::Bool(&complete));
        all_applied(&self.series.write(&batch).await.map_err(cluster)?)
    }

    /// Begins to list the series of a measurement that satisfy a condition, in no order.
    pub(crate) fn list_series(
        &self,
        measurement: i64,
        expr: &TagExpr,
        moment: u64,
    ) -> Result<Listing, StoreError> {
        if matches!(expr, TagExpr::False) {
            return Ok(Listing { scanner: None, expr: TagExpr::False });
        }
        let scan = match indexed(expr) {
            Some(tags) => self
                .tags
                .scan()
                .filter(Predicate::in_list("tag_hash", tags.iter().map(Hash::as_slice))),
            None => self.series.scan(),
        };
        let scan = scan
            .columns([SERIES_ID, "key"])
            .filter(Predicate::equal("measurement_id", measurement))
            .read_mode(ReadMode::Snapshot(Some(moment)))
            .fault_tolerant()
            .batch_bytes(BATCH_BYTES);
        let scanner = Some(scan.open().map_err(cluster)?);
        Ok(Listing { scanner, expr: expr.clone() })
    }
}

/// Series that satisfy a condition, part by part.
#[derive(Debug)]
pub(crate) struct Listing {
    scanner: Option<Scanner>,
    expr: TagExpr,
}

impl Listing {
    /// The next ones, `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Series>>, StoreError> {
        let Some(scanner) = &mut self.scanner else { return Ok(None) };
        let Some(batch) = scanner.next().await.map_err(cluster)? else { return Ok(None) };
        let mut found = Vec::new();
        for (row, id) in batch.column(0).i64s().enumerate() {
            let key = SeriesKey::parse(batch.column(1).bytes(row)).map_err(|e| {
                unintelligible("of series", &format!("the key of series {id}: {e}"))
            })?;
            if self.expr.evaluate(&|tag: &str| key.tag(tag)) {
                found.push(Series { id, key });
            }
        }
        Ok(Some(found))
    }

    /// Ids of the next ones, ascending: about so many, fewer only at the end. Nothing: there are none.
    pub(crate) async fn next_ids(&mut self, about: usize) -> Result<Vec<i64>, StoreError> {
        let mut ids = Vec::new();
        while ids.len() < about
            && let Some(found) = self.next().await?
        {
            ids.extend(found.into_iter().map(|series| series.id));
        }
        ids.sort_unstable();
        Ok(ids)
    }
}

/// Tags of which every series that satisfies `expr` has one, if the index should be asked. Of
/// several such lists the shortest.
fn indexed(expr: &TagExpr) -> Option<Vec<Hash>> {
    match expr {
        TagExpr::Equals(key, value) if !value.is_empty() => Some(vec![tag_hash(key, value)]),
        TagExpr::In(key, values) => {
            let usable = values.len() <= VALUES_MAX && values.iter().all(|v| !v.is_empty());
            let hashes = |key: &Name| values.iter().map(|value| tag_hash(key, value)).collect();
            usable.then(|| hashes(key))
        }
        TagExpr::And(parts) => parts.iter().filter_map(indexed).min_by_key(Vec::len),
        _ => None,
    }
}

fn all_applied(outcome: &kudu_client::WriteOutcome) -> Result<(), StoreError> {
    match outcome.row_errors.first() {
        None => Ok(()),
        Some(error) => Err(StoreError::Io(format!("Kudu refuses a row: {}", error.message))),
    }
}
