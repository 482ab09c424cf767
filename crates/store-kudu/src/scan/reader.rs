//! Rows of a piece from the tables they are in: of the wide one as they come, of the narrow one put
//! together from their values, of both merged by series and time.

use std::cmp::Ordering;
use std::ops::Range;

use kudu_client::Scanner;
use model::{Column, TimeRange};
use store::StoreError;

use super::View;
use super::decode::{Block, decode};
use super::narrow::NarrowReader;
use super::stream::{Piece, builder};

/// Reads a stretch of a piece in the order of series and time.
pub(super) struct Reader<'a> {
    view: &'a View,
    piece: &'a Piece,
    wide: Option<Scanner>,
    narrow: Option<NarrowReader<'a>>,
    heads: [Option<Head>; 2],
}

/// A block, and how far it is read.
struct Head {
    block: Block,
    at: usize,
}

impl Head {
    fn key(&self, at: usize) -> (i64, i64) {
        (self.block.series_at(at), self.block.times[at])
    }

    fn rows(&self) -> usize {
        self.block.rows()
    }
}

/// Rows of two blocks that come one after another; of both as many, or of one none.
type Run = [Range<usize>; 2];

impl<'a> Reader<'a> {
    /// `limit`: rows of the wide table that are enough, unless there are others.
    pub(super) fn open(
        view: &'a View,
        piece: &'a Piece,
        time: TimeRange,
        limit: Option<u64>,
    ) -> Result<Self, StoreError> {
        let narrow = view.narrow.as_ref();
        let narrow = narrow.map(|narrow| NarrowReader::open(view, narrow, piece, time));
        let narrow = narrow.transpose()?;
        let wide = view.table.as_ref().map(|table| {
            let mut scan = builder(view, table, piece, time);
            if let Some(limit) = limit.filter(|_| narrow.is_none()) {
                scan = scan.limit(limit);
            }
            scan.open().map_err(|error| view.failed(error))
        });
        Ok(Self { view, piece, wide: wide.transpose()?, narrow, heads: [None, None] })
    }

    /// The next rows, and how many were read for them.
    pub(super) async fn next(&mut self) -> Result<Option<(usize, Block)>, StoreError> {
        let Some(narrow) = &mut self.narrow else { return self.next_wide().await };
        if self.wide.is_none() {
            return Ok(narrow.next().await?.map(|block| (block.rows(), block)));
        }
        let next = self.merged().await?;
        Ok(next.map(|block| (block.rows(), block)))
    }

    async fn next_wide(&mut self) -> Result<Option<(usize, Block)>, StoreError> {
        let Some(scanner) = &mut self.wide else { return Ok(None) };
        let batch = scanner.next().await.map_err(|error| self.view.failed(error))?;
        let Some(batch) = batch else {
            self.view.ended(scanner).await?;
            return Ok(None);
        };
        Ok(Some((batch.rows(), decode(self.view, self.piece, &batch)?)))
    }

    async fn merged(&mut self) -> Result<Option<Block>, StoreError> {
        for at in 0..2 {
            while self.heads[at].as_ref().is_none_or(|head| head.at == head.rows()) {
                let next = match (at, &mut self.narrow) {
                    (0, _) => self.next_wide().await?.map(|(_, block)| block),
                    (_, Some(narrow)) => narrow.next().await?,
                    (_, None) => None,
                };
                self.heads[at] = next.map(|block| Head { block, at: 0 });
                if self.heads[at].is_none() {
                    break;
                }
            }
        }
        let [wide, narrow] = &mut self.heads;
        if let (Some(wide), Some(narrow)) = (&mut *wide, &mut *narrow) {
            let runs = runs(wide, narrow);
            return Ok(Some(combine(self.view, [&wide.block, &narrow.block], &runs)));
        }
        let only = wide.take().or_else(|| narrow.take());
        Ok(only.map(|Head { mut block, at }| {
            block.skip(at);
            block
        }))
    }
}

/// Reads two blocks until one is at its end.
fn runs(wide: &mut Head, narrow: &mut Head) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    while wide.at < wide.rows() && narrow.at < narrow.rows() {
        let order = wide.key(wide.at).cmp(&narrow.key(narrow.at));
        let next = |head: &mut Head, is_in: bool| {
            let from = head.at;
            head.at += usize::from(is_in);
            from..head.at
        };
        let run = [next(wide, order != Ordering::Greater), next(narrow, order != Ordering::Less)];
        match runs.last_mut() {
            Some([a, b]) if [is_none(a), is_none(b)] == [is_none(&run[0]), is_none(&run[1])] => {
                a.end = run[0].end;
                b.end = run[1].end;
            }
            _ => runs.push(run),
        }
    }
    runs
}

fn is_none(rows: &Range<usize>) -> bool {
    rows.start == rows.end
}

fn combine(view: &View, blocks: [&Block; 2], runs: &[Run]) -> Block {
    let mut block = Block::empty(&blocks[0].columns);
    for run in runs {
        let from = usize::from(is_none(&run[0]));
        block.extend_keys(blocks[from], run[from].clone());
    }
    for (index, column) in block.columns.iter_mut().enumerate() {
        let from = usize::from(view.columns.get(index).is_some_and(Option::is_none));
        let Some(source) = blocks[from].columns.get(index) else { continue };
        *column = gather(source, runs, from);
    }
    block
}

fn gather(source: &Column, runs: &[Run], from: usize) -> Column {
    let mut column = Column::new(source.values.none_like());
    for run in runs {
        match is_none(&run[from]) {
            true => column.extend_missing(run[1 - from].len()),
            false => column.extend_from(source, run[from].clone()),
        }
    }
    column
}

#[cfg(test)]
mod tests {
    use model::Values;

    use super::*;

    #[test]
    fn rows_of_both_tables_are_joined() {
        let head = |keys: &[(i64, i64)]| {
            let mut block = Block::empty(&[]);
            block.extend_keys(&Block::of(keys), 0..keys.len());
            Head { block, at: 0 }
        };
        let (mut wide, mut narrow) =
            (head(&[(1, 1), (1, 2), (1, 3), (2, 0)]), head(&[(1, 0), (1, 2), (1, 3), (1, 4)]));
        let all = runs(&mut wide, &mut narrow);
        assert_eq!(all, [[0..0, 0..1], [0..1, 1..1], [1..3, 1..3], [3..3, 3..4]]);
        assert_eq!((wide.at, narrow.at), (3, 4));
        let column = gather(&Column::new(Values::Integer(vec![10, 20, 30, 40])), &all, 1);
        assert_eq!(column.values, Values::Integer(vec![10, 0, 20, 30, 40]));
        assert!(!column.is_valid(1) && column.is_valid(2));
    }
}
