//! Series of few rows over many ranges of time: their rows are read range by range, all series of a
//! range by one call, kept in memory, and handed over series by series. Read one series after another
//! they would cost a call for each series in each range.

use std::ops::Range;

use model::TimeRange;
use store::StoreError;
use tokio::sync::mpsc;

use super::View;
use super::decode::Block;
use super::reader::Reader;
use super::stream::{Handed, Piece, forward};

pub(super) async fn gather(
    view: &View,
    piece: &Piece,
    bytes_max: usize,
    sender: &mpsc::Sender<Handed>,
) -> Result<(), StoreError> {
    let (Some(first), Some(last)) = (piece.times.first(), piece.times.last()) else {
        return Ok(());
    };
    if let Some(rows) = collect(view, piece, bytes_max).await? {
        if let Some(mut block) = rows {
            block.keep(&in_order(&block));
            // Nobody may be listening any more.
            let _ = sender.send(Ok(Some(block))).await;
        }
        return Ok(());
    }
    // They have more rows than was thought.
    let whole = TimeRange::new(first.min, last.max);
    for id in &*piece.ids {
        let one = Piece { ids: [*id].into(), sparse: false, times: vec![whole], ..piece.clone() };
        forward(view, &one, sender).await?;
        if sender.is_closed() {
            break;
        }
    }
    Ok(())
}

/// All rows, range by range; `None`: they are too many.
async fn collect(
    view: &View,
    piece: &Piece,
    bytes_max: usize,
) -> Result<Option<Option<Block>>, StoreError> {
    let mut all: Option<Block> = None;
    for time in &piece.times {
        let mut reader = Reader::open(view, piece, *time, None)?;
        while let Some((_, block)) = reader.next().await? {
            match &mut all {
                Some(all) => all.append(&block),
                None => all = Some(block),
            }
            if all.as_ref().is_some_and(|all| all.memory_bytes() > bytes_max) {
                return Ok(None);
            }
        }
    }
    Ok(Some(all.filter(|block| block.rows() > 0)))
}

/// Rows that follow each other, in the order of series and time. The ranges came in the order of time.
fn in_order(block: &Block) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut start = 0;
    for at in 1..=block.rows() {
        if at == block.rows() || block.series_at(at) != block.series_at(start) {
            runs.push(start..at);
            start = at;
        }
    }
    runs.sort_by_key(|run| block.series_at(run.start));
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_series_are_put_together() {
        let keys = [(1, 1), (1, 2), (3, 1), (1, 7), (2, 7), (3, 8)];
        let mut block = Block::empty(&[]);
        block.extend_keys(&Block::of(&keys), 0..keys.len());
        let order = in_order(&block);
        block.keep(&order);
        let mut sorted = keys;
        sorted.sort_unstable();
        let found: Vec<(i64, i64)> =
            (0..block.rows()).map(|row| (block.series_at(row), block.times[row])).collect();
        assert_eq!(found, sorted);
    }
}
