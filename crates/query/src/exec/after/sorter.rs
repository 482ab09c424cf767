//! The rows of one series, sorted by columns.
//!
//! Rows that are equal stay in the order they came in. Where only the first rows are wanted, the
//! others are let go as soon as there are as many again.

use std::cmp::Ordering;
use std::sync::Arc;

use model::{Column, Reservation, SeriesHeader, Strings, Values};

use crate::QueryError;
use crate::exec::column::{ABSENT, append, take, undictionary};
use crate::exec::stream::Part;
use crate::plan::SortKey;

/// Rows are not let go before there are so many.
const PRUNE_ROWS_MIN: usize = 1 << 13;

/// Gathers rows, then hands them out in order.
pub(super) struct Sorter {
    header: Arc<SeriesHeader>,
    keys: Vec<SortKey>,
    /// The first rows that are wanted, those that OFFSET leaves out included.
    wanted: usize,
    offset: usize,
    columns: Vec<Column>,
    /// The order to hand rows out in, once it is known.
    order: Vec<u32>,
    /// Rows of it that were handed out.
    at: usize,
    held: Reservation,
}

impl Sorter {
    /// No rows yet of a series; `limit` 0 is none.
    pub(super) fn new(
        header: &Arc<SeriesHeader>,
        keys: Vec<SortKey>,
        limit: u64,
        offset: u64,
        held: Reservation,
    ) -> Self {
        let wanted = if limit == 0 { u64::MAX } else { limit.saturating_add(offset) };
        Self {
            header: Arc::clone(header),
            keys,
            wanted: usize::try_from(wanted).unwrap_or(usize::MAX),
            offset: usize::try_from(offset).unwrap_or(usize::MAX),
            columns: Vec::new(),
            order: Vec::new(),
            at: 0,
            held,
        }
    }

    /// Whether these are rows of the same series.
    pub(super) fn is_of(&self, header: &Arc<SeriesHeader>) -> bool {
        Arc::ptr_eq(&self.header, header)
    }

    /// Adds rows.
    pub(super) fn add(&mut self, part: &Part) -> Result<(), QueryError> {
        let columns = 0..part.batch.columns.len();
        let mut columns: Vec<Column> = columns.map(|at| part.column(at).into_owned()).collect();
        columns.iter_mut().for_each(undictionary);
        if self.columns.is_empty() {
            self.columns = columns;
        } else {
            self.columns.iter_mut().zip(&columns).for_each(|(mine, more)| append(mine, more));
        }
        let most = self.wanted.saturating_mul(2).max(PRUNE_ROWS_MIN);
        if self.rows() > most {
            let order = self.sorted();
            self.columns = self.columns.iter().map(|column| take(column, &order)).collect();
        }
        if self.rows() >= ABSENT as usize {
            return Err(QueryError::Limit("too many rows to sort".to_owned()));
        }
        // Sorting takes an order of the rows, and keys that are compared.
        let each_row = 4 + 16 * self.keys.len();
        let values: usize = self.columns.iter().map(|c| c.values.memory_bytes()).sum();
        let bytes = values + self.rows() * each_row;
        if bytes > self.held.bytes() {
            // In steps, so that the budget is not asked for every part.
            self.held.resize(bytes + bytes / 4)?;
        }
        Ok(())
    }

    /// Puts the rows in order; no more are added.
    pub(super) fn finish(mut self) -> Self {
        self.order = self.sorted();
        self.at = self.offset.min(self.order.len());
        self
    }

    /// The next rows in order, at most `rows_max`.
    pub(super) fn next(&mut self, rows_max: usize) -> Option<Part> {
        let to = self.at.saturating_add(rows_max.max(1)).min(self.order.len());
        let rows = &self.order[self.at..to];
        if rows.is_empty() {
            return None;
        }
        let columns = self.columns.iter().map(|column| take(column, rows)).collect();
        self.at = to;
        Some(Part::new(Arc::clone(&self.header), columns))
    }

    fn rows(&self) -> usize {
        self.columns.first().map_or(0, Column::len)
    }

    /// The wanted rows in order.
    fn sorted(&self) -> Vec<u32> {
        let keys: Vec<Key<'_>> = self
            .keys
            .iter()
            .map(|key| Key::new(&self.columns[key.column], key.ascending))
            .collect();
        let compare = |a: &u32, b: &u32| {
            let (a, b) = (*a as usize, *b as usize);
            keys.iter().fold(Ordering::Equal, |order, key| order.then_with(|| key.compare(a, b)))
        };
        let mut order: Vec<u32> = (0..self.rows() as u32).collect();
        if self.wanted < order.len() {
            // Rows that are equal are told apart by their place, as a stable sort would.
            let stable = |a: &u32, b: &u32| compare(a, b).then(a.cmp(b));
            order.select_nth_unstable_by(self.wanted, stable);
            order.truncate(self.wanted);
            order.sort_unstable_by(stable);
        } else {
            order.sort_by(compare);
        }
        order
    }
}

/// A column in a form that is quickly compared.
enum Key<'a> {
    /// Numbers in the order wanted; `None`: no value.
    Ranks(Vec<Option<u64>>),
    Texts {
        column: &'a Column,
        texts: &'a Strings,
        ascending: bool,
    },
}

impl<'a> Key<'a> {
    fn new(column: &'a Column, ascending: bool) -> Self {
        const SIGN: u64 = 1 << 63;
        let integer = |v: i64| v.cast_unsigned() ^ SIGN;
        // Negative floats are the smaller the larger their bits.
        let float = |v: f64| match v.to_bits() {
            bits if bits & SIGN == 0 => bits | SIGN,
            bits => !bits,
        };
        let ranks: Vec<u64> = match &column.values {
            Values::String(texts) => return Self::Texts { column, texts, ascending },
            // What equals counts as equal, though its bits differ.
            Values::Float(v) => v.iter().map(|v| float(v + 0.0)).collect(),
            Values::Integer(v) | Values::Time(v) => v.iter().map(|v| integer(*v)).collect(),
            Values::Unsigned(v) => v.clone(),
            Values::Boolean(v) => (0..v.len()).map(|row| u64::from(v.get(row))).collect(),
            Values::Dictionary(..) => panic!("BUG: texts were taken out of their dictionary"),
        };
        let rank = |(row, rank): (usize, u64)| {
            column.is_valid(row).then_some(if ascending { rank } else { !rank })
        };
        Self::Ranks(ranks.into_iter().enumerate().map(rank).collect())
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        match self {
            Self::Ranks(ranks) => nothing_last(ranks[a], ranks[b]),
            Self::Texts { column, texts, ascending } => {
                let text = |row: usize| column.is_valid(row).then(|| texts.get_bytes(row));
                match (text(a), text(b)) {
                    (Some(a), Some(b)) if !ascending => b.cmp(a),
                    (a, b) => nothing_last(a, b),
                }
            }
        }
    }
}

fn nothing_last<T: Ord>(a: Option<T>, b: Option<T>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => a.cmp(&b),
        (a, b) => a.is_none().cmp(&b.is_none()),
    }
}

#[cfg(test)]
mod tests {
    use model::{Bitmap, Budget};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_rows_of_a_stable_sort(
            cells in prop::collection::vec((prop::option::of(-3i64..3), -2i64..2), 1..60),
            part_rows in 1usize..9,
            (limit, offset) in (0u64..9, 0u64..9),
            (first, second) in (any::<bool>(), any::<bool>()),
        ) {
            let header = Arc::new(SeriesHeader::default());
            let keys = vec![
                SortKey { column: 1, ascending: first },
                SortKey { column: 2, ascending: second },
            ];
            let held = Budget::unlimited().reserve(0).unwrap();
            let mut sorter = Sorter::new(&header, keys, limit, offset, held);
            let mut at = 0;
            for part in cells.chunks(part_rows) {
                let times = (at..at + part.len() as i64).collect();
                at += part.len() as i64;
                let validity: Bitmap = part.iter().map(|cell| cell.0.is_some()).collect();
                let numbers = part.iter().map(|cell| cell.0.unwrap_or(0) as f64).collect();
                let texts: Strings = part.iter().map(|cell| ["a", "b", "c", "d"][(cell.1 + 2) as usize]).collect();
                let columns = vec![
                    Column::new(Values::Time(times)),
                    Column { values: Values::Float(numbers), validity: Some(validity) },
                    Column::new(Values::String(texts)),
                ];
                sorter.add(&Part::new(header.clone(), columns)).unwrap();
            }
            let mut sorter = sorter.finish();
            let mut got: Vec<i64> = Vec::new();
            while let Some(part) = sorter.next(4) {
                prop_assert!(part.rows() <= 4);
                match &part.batch.columns[0].values {
                    Values::Time(times) => got.extend(times),
                    other => panic!("{other:?}"),
                }
            }
            let mut want: Vec<i64> = (0..cells.len() as i64).collect();
            let turn = |order: Ordering, ascending: bool| if ascending { order } else { order.reverse() };
            want.sort_by(|a, b| {
                let (a, b) = (cells[*a as usize], cells[*b as usize]);
                let by_first = match (a.0, b.0) {
                    (Some(a), Some(b)) => turn(a.cmp(&b), first),
                    (a, b) => a.is_none().cmp(&b.is_none()),
                };
                by_first.then(turn(a.1.cmp(&b.1), second))
            });
            let limit = if limit == 0 { usize::MAX } else { limit as usize };
            let want: Vec<i64> = want.into_iter().skip(offset as usize).take(limit).collect();
            prop_assert_eq!(got, want);
        }
    }

    #[test]
    fn many_rows_take_the_memory_of_few() {
        let budget = Budget::new("test", 1 << 20);
        let header = Arc::new(SeriesHeader::default());
        let keys = vec![SortKey { column: 1, ascending: false }];
        let mut sorter = Sorter::new(&header, keys.clone(), 3, 1, budget.reserve(0).unwrap());
        let part = |from: i64| {
            let times: Vec<i64> = (from..from + 1000).collect();
            let values = times.iter().map(|t| (t * 7919) % 1_000_003).collect();
            let columns =
                vec![Column::new(Values::Time(times)), Column::new(Values::Integer(values))];
            Part::new(header.clone(), columns)
        };
        for from in (0..1_000_000).step_by(1000) {
            sorter.add(&part(from)).unwrap();
        }
        let mut sorter = sorter.finish();
        let part_of_few = sorter.next(10).unwrap();
        let mut all: Vec<i64> = (0..1_000_000).map(|t| (t * 7919) % 1_000_003).collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        assert!(
            matches!(&part_of_few.batch.columns[1].values, Values::Integer(v) if v[..] == all[1..4])
        );
        let mut all = Sorter::new(&header, keys, 0, 0, budget.reserve(0).unwrap());
        let refused = (0..1_000_000).step_by(1000).find_map(|from| all.add(&part(from)).err());
        assert!(refused.is_some(), "the budget ends somewhere");
    }
}
