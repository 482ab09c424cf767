//! Questions about names. Answers are collected and sorted here: names come from several tables in
//! no order. What they take is held against the request's budget.

use std::collections::{BTreeSet, HashMap, HashSet};

use model::{Column, ColumnBatch, Name, Reservation, Strings, TagExpr, Values};
use store::{MetadataCursor, MetadataKind, MetadataRequest, ScanContext, StoreError};

use crate::dead::Dead;
use crate::shared::Shared;

/// Rows of a part of an answer.
const PART_ROWS: usize = 4096;
/// Memory of a name besides its text, bytes, about.
const NAME_BYTES: usize = 64;

/// An answer.
pub(crate) struct Names {
    width: usize,
    rows: std::vec::IntoIter<Vec<Name>>,
    /// By the first name of a row, a last column; without entries there is none.
    counts: HashMap<Name, i64>,
    context: ScanContext,
    _held: Reservation,
    part: Option<Reservation>,
}

impl MetadataCursor for Names {
    fn next(&mut self) -> Result<Option<ColumnBatch>, StoreError> {
        self.context.interrupt.check()?;
        self.part = None;
        let rows: Vec<Vec<Name>> = self.rows.by_ref().take(PART_ROWS).collect();
        if rows.is_empty() {
            return Ok(None);
        }
        let column = |at: usize| {
            let texts: Strings = rows.iter().map(|row| &*row[at]).collect();
            Column::new(Values::String(texts))
        };
        let mut columns: Vec<Column> = (0..self.width).map(column).collect();
        if !self.counts.is_empty() {
            let count = |row: &Vec<Name>| self.counts.get(&row[0]).copied().unwrap_or(0);
            columns.push(Column::new(Values::Integer(rows.iter().map(count).collect())));
        }
        let batch = ColumnBatch { rows: rows.len(), runs: Vec::new(), columns };
        self.part = Some(self.context.budget.reserve(batch.memory_bytes())?);
        Ok(Some(batch))
    }
}

/// Names that are being collected.
struct Collected {
    rows: BTreeSet<Vec<Name>>,
    /// Series of measurements, if these are asked for.
    counts: HashMap<Name, i64>,
    held: Reservation,
}

impl Collected {
    fn add(&mut self, row: Vec<Name>) -> Result<(), StoreError> {
        let bytes: usize = row.iter().map(|name| name.len() + NAME_BYTES).sum();
        if self.rows.insert(row) {
            self.held.grow(bytes)?;
        }
        Ok(())
    }
}

impl Shared {
    pub(crate) async fn names(&self, request: &MetadataRequest) -> Result<Names, StoreError> {
        if matches!(request.kind, MetadataKind::Partitions) {
            let rows = self.partitions(request.database).await?.into_iter();
            let (counts, context) = (HashMap::new(), request.context.clone());
            let held = context.budget.reserve(rows.len() * 4 * NAME_BYTES)?;
            return Ok(Names { width: 4, rows, counts, context, _held: held, part: None });
        }
        let now = self.now().await?;
        let held = request.context.budget.reserve(0)?;
        let mut collected = Collected { rows: BTreeSet::new(), counts: HashMap::new(), held };
        for (name, id) in self.measurements_of(request.database, Some(now)).await? {
            request.context.interrupt.check()?;
            if request.measurements.accepts(&name) {
                let (state, mut dead) = self.state_and_dead(id, Some(now)).await?;
                let mut marks = request.context.budget.reserve(0)?;
                if matches!(
                    (&request.kind, &request.series),
                    (MetadataKind::TagKeys, TagExpr::True)
                ) {
                    let keys = self.live_tag_keys(id, &state, &mut dead, now, &mut marks).await?;
                    for key in keys {
                        collected.add(vec![name.clone(), key])?;
                    }
                    continue;
                }
                self.complete_dead(id, &mut dead, now, &mut marks).await?;
                self.collect(request, &name, (id, &dead), now, &mut collected).await?;
            }
        }
        let width = match request.kind {
            MetadataKind::Measurements | MetadataKind::SeriesCounts => 1,
            MetadataKind::Series | MetadataKind::TagKeys => 2,
            MetadataKind::TagValues(_) => 3,
            MetadataKind::Partitions => 4,
        };
        let Collected { rows, counts, held } = collected;
        let rows: Vec<Vec<Name>> = rows.into_iter().collect();
        let (rows, context) = (rows.into_iter(), request.context.clone());
        Ok(Names { width, rows, counts, context, _held: held, part: None })
    }

    async fn collect(
        &self,
        request: &MetadataRequest,
        name: &Name,
        (id, dead): (i64, &Dead),
        now: u64,
        collected: &mut Collected,
    ) -> Result<(), StoreError> {
        let mut listing = self.list_series(id, &request.series, now)?;
        let mut seen: HashSet<Name> = HashSet::new();
        while let Some(found) = listing.next().await? {
            request.context.interrupt.check()?;
            for series in found.into_iter().filter(|series| !dead.contains(series.id)) {
                let tags = series.key.tags.iter();
                match &request.kind {
                    MetadataKind::Measurements => return collected.add(vec![name.clone()]),
                    // Answered apart.
                    MetadataKind::Partitions => {}
                    MetadataKind::SeriesCounts => {
                        collected.add(vec![name.clone()])?;
                        *collected.counts.entry(name.clone()).or_default() += 1;
                    }
                    MetadataKind::Series => {
                        collected.add(vec![name.clone(), series.key.to_string().into()])?;
                    }
                    MetadataKind::TagKeys => {
                        for (key, _) in tags.filter(|(key, _)| seen.insert(key.clone())) {
                            collected.add(vec![name.clone(), key.clone()])?;
                        }
                    }
                    MetadataKind::TagValues(keys) => {
                        for (key, value) in tags.filter(|(key, _)| keys.accepts(key)) {
                            collected.add(vec![name.clone(), key.clone(), value.clone()])?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}
