//! The values of some tags for given series, as columns of codes.
//!
//! Of a run, tags are either looked up series by series, or gathered by walking all values of the
//! tag with their lists of series: whichever is estimated to be cheaper.

use std::sync::Arc;

use hashbrown::HashMap;
use model::{Budget, DatabaseId, Name, Reservation, Strings};
use roaring::RoaringTreemap;

use crate::error::SeriesResult;
use crate::index::SeriesIndex;
use crate::mem::MemMeasurementView;
use crate::part::MeasurementPart;
use crate::posting::Posting;
use crate::ranks::IdRanks;
use crate::run::{Run, RunMeasurement, TupleState, ValueWalk};

/// Cost of looking up the tags of one series, in units of walking past one value.
const LOOKUP_COST: u64 = 16;

/// Values are accounted for in portions of this size.
const RESERVED_AT_ONCE_BYTES: usize = 64 << 10;

/// One tag of some series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagCodes {
    /// For each series an index into `values`.
    pub codes: Vec<u32>,
    /// The distinct values, sorted bytewise; `""` is one of them if a series lacks the tag.
    pub values: Strings,
}

/// Columns being gathered: codes name entries of `pool`, which are not sorted yet.
struct Columns {
    columns: Vec<Column>,
    budget: Budget,
    held: Reservation,
}

#[derive(Default)]
struct Column {
    codes: Vec<u32>,
    /// Values part by part; entry 0 is `""`.
    pool: Strings,
    /// Taken from the budget in larger portions.
    unreserved_bytes: usize,
}

impl SeriesIndex {
    /// The values that the series `ids` of a measurement have for each of `keys`: one column a key,
    /// in each the series in ascending order of their ids.
    ///
    /// # Errors
    /// [`crate::SeriesError`] if a run cannot be read or `budget` is spent.
    pub fn tag_columns(
        &self,
        database: DatabaseId,
        measurement: &str,
        ids: &RoaringTreemap,
        keys: &[Name],
        budget: &Budget,
    ) -> SeriesResult<Vec<TagCodes>> {
        let mut columns = Columns::new(ids.len(), keys.len(), budget)?;
        let ranks = IdRanks::new(ids);
        let view = {
            let state = self.state.read();
            if let Some(part) = state.active.measurement(database, measurement) {
                columns.add_memory(part, &state.active, ids, &ranks, keys)?;
            }
            Arc::clone(&state.view)
        };
        for mem in &view.sealed {
            if let Some(part) = mem.measurement(database, measurement) {
                columns.add_memory(part, mem, ids, &ranks, keys)?;
            }
        }
        for run in &view.runs {
            let here = ids & run.ids();
            if !here.is_empty()
                && let Some(part) = run.measurement(database, measurement)?
            {
                columns.add_run(run, &part, &here, &ranks, keys)?;
            }
        }
        columns.finish()
    }
}

impl Columns {
    fn new(series: u64, keys: usize, budget: &Budget) -> SeriesResult<Self> {
        let series = usize::try_from(series).unwrap_or(usize::MAX);
        // The ranks of the ids, and a code a key.
        let bytes = series.saturating_mul(12 + 4 * keys);
        let held = budget.reserve(bytes)?;
        let column = || Column {
            codes: vec![0; series],
            pool: std::iter::once("").collect(),
            unreserved_bytes: 0,
        };
        let columns = (0..keys).map(|_| column()).collect();
        Ok(Self { columns, budget: budget.clone(), held })
    }

    fn add_memory(
        &mut self,
        part: MemMeasurementView<'_>,
        mem: &crate::mem::Mem,
        ids: &RoaringTreemap,
        ranks: &IdRanks,
        keys: &[Name],
    ) -> SeriesResult<()> {
        let numbers: Vec<_> = keys.iter().map(|key| part.find_key(key)).collect();
        let mut known: Vec<HashMap<&str, u32>> = vec![HashMap::new(); keys.len()];
        let mut tags = Vec::new();
        let few = ids.len() < mem.len() as u64;
        let mut here: Box<dyn Iterator<Item = u64>> = if few {
            Box::new(ids.iter().filter(|id| mem.contains_id(*id)))
        } else {
            Box::new(mem.ids().filter(|id| ids.contains(*id)))
        };
        here.try_for_each(|id| {
            part.tags_of(id, &numbers, &mut tags);
            let row = ranks.position(id).expect("BUG: an id of the set has a rank") as usize;
            for (at, value) in tags.iter().enumerate() {
                let Some(value) = value else { continue };
                let column = &mut self.columns[at];
                let code = match known[at].get(value) {
                    Some(code) => *code,
                    None => {
                        let code = column.push(value, &mut self.held)?;
                        known[at].insert(value, code);
                        code
                    }
                };
                column.codes[row] = code;
            }
            Ok(())
        })
    }

    fn add_run(
        &mut self,
        run: &Run,
        part: &RunMeasurement<'_>,
        here: &RoaringTreemap,
        ranks: &IdRanks,
        keys: &[Name],
    ) -> SeriesResult<()> {
        let numbers = keys.iter().enumerate();
        let numbers = numbers.filter_map(|(at, key)| Some((at, part.find_key(key)?)));
        let numbers: Vec<(usize, u32)> = numbers.collect();
        // Walking reads every series' place in a list once more for every key.
        let values = numbers.iter().map(|(_, key)| part.value_count(*key)).sum::<u64>();
        let walk_cost = values + numbers.len() as u64 * part.series_count() / 16;
        if here.len().saturating_mul(LOOKUP_COST) < walk_cost {
            return self.look_up(run, part, here, ranks, &numbers);
        }
        for (at, key) in numbers {
            self.columns[at].walk(run, part, key, here, ranks, &mut self.held)?;
        }
        Ok(())
    }

    /// Reads the tags series by series.
    fn look_up(
        &mut self,
        run: &Run,
        part: &RunMeasurement<'_>,
        here: &RoaringTreemap,
        ranks: &IdRanks,
        numbers: &[(usize, u32)],
    ) -> SeriesResult<()> {
        let mut state = TupleState::default();
        // (term, row) of each key.
        let mut cells: Vec<Vec<(u32, u32)>> = vec![Vec::new(); numbers.len()];
        let cells_bytes = usize::try_from(here.len()).unwrap_or(usize::MAX);
        let _cells = self.budget.reserve(cells_bytes.saturating_mul(8 * numbers.len()))?;
        for id in here {
            if run.tuple_of(id, &mut state)?.is_none() {
                continue;
            }
            let row = ranks.position(id).expect("BUG: an id of the set has a rank");
            for ((_, key), cells) in numbers.iter().zip(&mut cells) {
                let range = part.key_terms(*key);
                let at = state.tuple.partition_point(|term| *term < range.start);
                if let Some(term) = state.tuple.get(at).filter(|term| range.contains(term)) {
                    cells.push((*term, row));
                }
            }
        }
        let mut value = String::new();
        for ((at, _), mut cells) in numbers.iter().zip(cells) {
            let column = &mut self.columns[*at];
            cells.sort_unstable();
            for same in cells.chunk_by(|a, b| a.0 == b.0) {
                value.clear();
                run.push_value(same[0].0, &mut value)?;
                let code = column.push(&value, &mut self.held)?;
                same.iter().for_each(|(_, row)| column.codes[*row as usize] = code);
            }
        }
        Ok(())
    }

    fn finish(self) -> SeriesResult<Vec<TagCodes>> {
        Ok(self.columns.into_iter().map(Column::finish).collect())
    }
}

impl Column {
    fn push(&mut self, value: &str, held: &mut Reservation) -> SeriesResult<u32> {
        self.unreserved_bytes += value.len() + 16;
        if self.unreserved_bytes >= RESERVED_AT_ONCE_BYTES {
            held.grow(std::mem::take(&mut self.unreserved_bytes))?;
        }
        self.pool.push(value);
        Ok(self.pool.len() as u32 - 1)
    }

    /// Gathers the tag by walking its values.
    fn walk(
        &mut self,
        run: &Run,
        part: &RunMeasurement<'_>,
        key: u32,
        here: &RoaringTreemap,
        ranks: &IdRanks,
        held: &mut Reservation,
    ) -> SeriesResult<()> {
        let mut walk = ValueWalk::new(run, part.key_terms(key));
        let mut posting = Posting::default();
        // Usually every series of the measurement is wanted, so that none has to be looked for.
        let whole = here.len() == part.series_count();
        let mut rows = Vec::new();
        while walk.advance()? {
            walk.load_posting(&mut posting)?;
            rows.clear();
            let add = |id| rows.extend(ranks.position(id));
            if whole {
                posting.for_each(add);
            } else {
                posting.for_each_in(here, add);
            }
            if !rows.is_empty() {
                let code = self.push(walk.text()?, held)?;
                rows.iter().for_each(|row| self.codes[*row as usize] = code);
            }
        }
        Ok(())
    }

    /// Sorts the values and makes the codes name the sorted ones.
    fn finish(mut self) -> TagCodes {
        let mut used = vec![false; self.pool.len()];
        self.codes.iter().for_each(|code| used[*code as usize] = true);
        let mut order: Vec<u32> = (0..self.pool.len() as u32).collect();
        order.retain(|at| used[*at as usize]);
        // The pool consists of a few sorted stretches, which this sort makes use of.
        order
            .sort_by(|a, b| self.pool.get_bytes(*a as usize).cmp(self.pool.get_bytes(*b as usize)));
        let mut values = Strings::new();
        let mut numbers = vec![0; self.pool.len()];
        for at in order {
            let value = self.pool.get(at as usize);
            let last = values.len().checked_sub(1);
            if last.is_none_or(|last| values.get_bytes(last) != value.as_bytes()) {
                values.push(value);
            }
            numbers[at as usize] = values.len() as u32 - 1;
        }
        self.codes.iter_mut().for_each(|code| *code = numbers[*code as usize]);
        TagCodes { codes: self.codes, values }
    }
}
