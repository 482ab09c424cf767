//! One series from its last row to its first. Servers read forwards only, so windows of time are read
//! from the latest to the earliest, each forwards and then turned round. A window is as long as is
//! likely to hold a block's worth of rows, going by what the windows before it held. The first one
//! ends at the latest time that this handle has met in the table, or else at the present.

use model::TimeRange;
use store::StoreError;
use tokio::sync::mpsc;

use super::View;
use super::decode::Block;
use super::reader::Reader;
use super::stream::{Handed, Piece, rows_wanted};

/// Rows that a window should have.
const WINDOW_ROWS: u64 = 4096;
/// Rows of a window at most: it is read again in halves if there are more.
const WINDOW_ROWS_MAX: u64 = 4 * WINDOW_ROWS;
/// The first window's share of its stretch.
const FIRST_SHARE: i128 = 256;
/// The same where a few rows are wanted.
const FIRST_SHARE_OF_FEW: i128 = 8192;
/// What counts as a few rows.
const FEW_ROWS: u64 = 16;
/// Answers' worth of memory that a window may take: it is read again in halves if it has more.
const WINDOW_ANSWERS_MAX: usize = 3;
/// How much longer a window gets after an empty one.
const GROWTH: i128 = 8;

pub(super) async fn backward(
    view: &View,
    piece: &Piece,
    sender: &mpsc::Sender<Handed>,
) -> Result<(), StoreError> {
    let mut left = rows_wanted(view, piece);
    let now_ns = i64::try_from(u128::from(view.moment >> 12) * 1000).unwrap_or(i64::MAX);
    let latest_ns = view.data.first().and_then(|data| data.latest_ns()).unwrap_or(now_ns);
    for (stretch, is_likely) in stretches(&piece.times, latest_ns) {
        let rows = left.unwrap_or(WINDOW_ROWS).min(WINDOW_ROWS);
        let mut windows = Windows::new(stretch, is_likely, rows);
        while let Some(window) = windows.next() {
            if left == Some(0) {
                return Ok(());
            }
            let Some(block) = read(view, piece, window).await? else {
                windows.halve();
                continue;
            };
            let rows = block.as_ref().map_or(0, Block::rows);
            windows.done(rows as u64);
            let Some(mut block) = block else { continue };
            if let (Some(data), Some(last)) = (view.data.first(), block.times.last()) {
                data.met(*last);
            }
            if let Some(any) = &piece.with_any {
                block.keep_with_any(any);
            }
            if let Some(left) = &mut left {
                block.keep_last(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= block.rows() as u64;
            }
            block.reverse();
            if block.rows() > 0 && sender.send(Ok(Some(block))).await.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The rows of a window; `None`: they are too many.
async fn read(
    view: &View,
    piece: &Piece,
    window: TimeRange,
) -> Result<Option<Option<Block>>, StoreError> {
    let mut reader = Reader::open(view, piece, window, Some(WINDOW_ROWS_MAX + 1))?;
    let (mut seen, mut bytes) = (0, 0);
    let bytes_max = WINDOW_ANSWERS_MAX * piece.batch_bytes as usize;
    let mut all: Option<Block> = None;
    while let Some((rows, block)) = reader.next().await? {
        seen += rows as u64;
        // A window of one moment has one row.
        if seen > WINDOW_ROWS_MAX {
            return Ok(None);
        }
        bytes += block.memory_bytes();
        if bytes > bytes_max && window.min < window.max {
            return Ok(None);
        }
        match &mut all {
            Some(all) => all.append(&block),
            None => all = Some(block),
        }
    }
    Ok(Some(all.filter(|block| block.rows() > 0)))
}

/// The stretches of time from the last to the first, cut at the latest time that is likely to have
/// rows, and whether they are likely to have some.
fn stretches(times: &[TimeRange], latest_ns: i64) -> Vec<(TimeRange, bool)> {
    let mut stretches = Vec::new();
    for time in times.iter().rev() {
        if time.contains(latest_ns) && latest_ns < time.max {
            stretches.push((TimeRange::new(latest_ns + 1, time.max), false));
            stretches.push((TimeRange::new(time.min, latest_ns), true));
        } else {
            stretches.push((*time, true));
        }
    }
    stretches
}

/// Windows of a stretch of time, from its end to its start.
struct Windows {
    stretch: TimeRange,
    /// Last time not read yet; before the stretch: none is left.
    end: i128,
    length: i128,
    rows_wanted: u64,
}

impl Windows {
    fn new(stretch: TimeRange, is_likely: bool, rows_wanted: u64) -> Self {
        let whole = i128::from(stretch.max) - i128::from(stretch.min) + 1;
        let share = match rows_wanted {
            _ if !is_likely => 1,
            0..=FEW_ROWS => FIRST_SHARE_OF_FEW,
            _ => FIRST_SHARE,
        };
        let length = (whole / share).max(1);
        Self { stretch, end: stretch.max.into(), length, rows_wanted }
    }

    fn next(&self) -> Option<TimeRange> {
        let first = i128::from(self.stretch.min);
        if self.end < first {
            return None;
        }
        let start = (self.end - self.length + 1).max(first);
        let bound = |t: i128| i64::try_from(t).ok();
        Some(TimeRange::new(bound(start)?, bound(self.end)?))
    }

    /// The window had this many rows.
    fn done(&mut self, rows: u64) {
        self.end -= self.length;
        self.length = match rows {
            0 => self.length.saturating_mul(GROWTH),
            rows => {
                let fitting = self.length * i128::from(self.rows_wanted) / i128::from(rows);
                fitting.clamp(1, self.length.saturating_mul(GROWTH))
            }
        };
    }

    /// The window had too many rows.
    fn halve(&mut self) {
        self.length = (self.length / 2).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_hold_every_time_once() {
        for (min, max) in [(0, 0), (-5, 1_000_000), (i64::MIN + 2, i64::MAX - 1), (7, 300)] {
            for rows in [0, 1, 5000, u64::MAX] {
                let mut windows = Windows::new(TimeRange::new(min, max), rows > 0, 10);
                let mut before = i128::from(max) + 1;
                for step in 0..2000 {
                    let Some(window) = windows.next() else { break };
                    assert_eq!(i128::from(window.max) + 1, before);
                    if step % 7 == 3 {
                        windows.halve();
                        continue;
                    }
                    before = window.min.into();
                    windows.done(if step > 20 { 0 } else { rows });
                }
                assert_eq!(before, i128::from(min), "{min} {max} {rows}");
            }
        }
    }

    #[test]
    fn the_present_cuts() {
        let times = [TimeRange::new(0, 9), TimeRange::new(10, 19)];
        let cut = [
            (TimeRange::new(13, 19), false),
            (TimeRange::new(10, 12), true),
            (TimeRange::new(0, 9), true),
        ];
        assert_eq!(stretches(&times, 12), cut);
        assert_eq!(stretches(&times, 19), [(times[1], true), (times[0], true)]);
        assert_eq!(stretches(&times, -7), [(times[1], true), (times[0], true)]);
    }
}
