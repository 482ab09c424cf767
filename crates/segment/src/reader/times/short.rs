//! The rows of a short time, of whichever series of a block.

use std::sync::Arc;

use model::TimeRange;

use super::Times;
use super::kept::{KeptTimes, Learned};
use crate::SegmentError;
use crate::directory::Block;
use crate::reader::SegmentReader;
use crate::reader::source::Kind;

/// To tell the time of one row takes as long as decoding so many together, about: of more rows all times are decoded.
const TOLD_PART: usize = 64;

/// Rows of a block within a short time, ascending, and the time of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShortTime {
    /// The rows.
    pub rows: Vec<u32>,
    /// Their times.
    pub times: Vec<i64>,
}

impl SegmentReader {
    /// The rows of a block within a time, of whichever series, if they are found without decoding all times: of a block of several series
    /// with irregular times that was asked several times, in a short part of its time.
    ///
    /// # Errors
    /// If the disk fails or the page is damaged.
    pub fn short_time(
        &self,
        block: &Block,
        time: TimeRange,
    ) -> Result<Option<ShortTime>, SegmentError> {
        let Some((of_block, rows)) = Listed::open(self, block, time)? else { return Ok(None) };
        let mut found = ShortTime::default();
        for row in rows.all() {
            let at = of_block.at(row as usize)?;
            if time.contains(at) {
                found.rows.push(row);
                found.times.push(at);
            }
        }
        Ok(Some(found))
    }

    /// The rows alone, for which fewer times are told.
    ///
    /// # Errors
    /// As [`Self::short_time`].
    pub fn short_time_rows(
        &self,
        block: &Block,
        time: TimeRange,
    ) -> Result<Option<Vec<u32>>, SegmentError> {
        let Some((of_block, Listed { inside, ends })) = Listed::open(self, block, time)? else {
            return Ok(None);
        };
        let mut rows = inside;
        for row in ends {
            if time.contains(of_block.at(row as usize)?) {
                rows.push(row);
            }
        }
        rows.sort_unstable();
        Ok(Some(rows))
    }
}

/// Rows near a time.
#[derive(Default)]
struct Listed {
    /// Those that are within it.
    inside: Vec<u32>,
    /// Others, that may be.
    ends: Vec<u32>,
}

impl Listed {
    /// The rows of a block near a time, if they are listed by time and few, and what tells the time of each.
    fn open<'a>(
        reader: &'a SegmentReader,
        block: &'a Block,
        time: TimeRange,
    ) -> Result<Option<(Times<'a>, Self)>, SegmentError> {
        // If rows come evenly, no more of them are near than their times are told one by one of.
        let is_short = time.is_short_part(&block.time(), TOLD_PART);
        if !reader.keep_pages || block.has_one_series() || !is_short {
            return Ok(None);
        }
        let (source, extent) = (&reader.shared.source, &block.entry().times);
        let kept = source.cached::<KeptTimes>(Kind::KeptTimes, extent);
        // What tells the time of one row comes first. Rows that follow a line are found by calculation, or are at the same times.
        let is_irregular = |kept: &Arc<KeptTimes>| {
            kept.learned().is_some_and(|learned| !matches!(learned, Learned::Lines(_)))
        };
        let Some(kept) = kept.filter(is_irregular) else { return Ok(None) };
        let times = Times::open(reader, block)?;
        if kept.touch_short() {
            let mut all = Vec::with_capacity(block.rows());
            times.decode(0..block.rows(), &mut all)?;
            let bytes = kept.list_by_time(&all);
            if bytes > 0 {
                source.grew(Kind::KeptTimes, extent, &kept, bytes);
            }
        }
        let Some(by_time) = kept.by_time() else { return Ok(None) };
        let near = by_time.near(time);
        if near.len() * TOLD_PART > block.rows() {
            return Ok(None);
        }
        let rows = |rows: &[u16]| rows.iter().map(|row| u32::from(*row)).collect::<Vec<_>>();
        let listed = Self { inside: rows(near.inside), ends: rows(&near.ends.concat()) };
        Ok(Some((times, listed)))
    }

    /// All of them, ascending.
    fn all(self) -> Vec<u32> {
        let mut all = self.inside;
        all.extend(self.ends);
        all.sort_unstable();
        all
    }
}

#[cfg(test)]
mod tests {
    use codec::Effort;
    use model::{FieldType, SeriesId};

    use super::*;
    use crate::testing::{ALL_SERIES, Cell, PlainMeasurement, PlainRow, Rng, regular, write};

    const SERIES: u64 = 800;
    const SPAN: usize = 1 << 40;

    /// Short series in one block, at any times.
    fn rows() -> Vec<PlainRow> {
        let mut rng = Rng(7);
        let mut rows = Vec::new();
        for series in 1..=SERIES {
            let mut times: Vec<i64> =
                (0..1 + rng.below(12)).map(|_| rng.below(SPAN) as i64).collect();
            times.sort_unstable();
            times.dedup();
            rows.extend(times.iter().map(|at| (SeriesId(series), *at, vec![Cell::Number(series)])));
        }
        rows
    }

    fn reader(effort: Effort, rows: Vec<PlainRow>) -> (SegmentReader, Arc<platform::PageCache>) {
        let (mut spec, _) = regular(rows.len(), 1, 10);
        spec.measurements[0] = (1, rows.len());
        spec.options.effort = effort;
        let fields = vec![("f".into(), FieldType::Integer)];
        let plain = [PlainMeasurement { name: "m0".into(), fields, rows }];
        let cache = Arc::new(platform::PageCache::new(8 << 20));
        let file = Arc::new(crate::memory::MemoryFile::new("test.seg", write(&spec, &plain).0));
        (SegmentReader::over(file, Arc::clone(&cache)).unwrap(), cache)
    }

    fn only_block(reader: &SegmentReader) -> Block {
        let directory = reader.directory("m0").unwrap().unwrap();
        let mut blocks = reader.blocks(&directory, &ALL_SERIES, TimeRange::ALL);
        let block = blocks.next().unwrap().unwrap();
        assert!(blocks.next().is_none(), "series share one block");
        block
    }

    #[test]
    fn rows_of_short_times_are_all_that_are_there() {
        for effort in [Effort::Hot, Effort::Cold] {
            let rows = rows();
            let times: Vec<i64> = rows.iter().map(|row| row.1).collect();
            let (reader, cache) = reader(effort, rows);
            let block = only_block(&reader);
            let mut rng = Rng(3);
            let mut next = || rng.below(SPAN) as i64;
            // Rows of long times are not listed, however often they are asked for.
            for _ in 0..20 {
                assert_eq!(reader.short_time_rows(&block, block.time()).unwrap(), None);
            }
            let middle = TimeRange::new(SPAN as i64 / 2, SPAN as i64 / 2 + 1);
            let (mut all, mut looks) = (Vec::new(), 0);
            while reader.short_time(&block, middle).unwrap().is_none() {
                assert!(looks < 20, "asked often enough");
                looks += 1;
                // Whoever reads everything once keeps nothing.
                let streaming = reader.streaming();
                assert_eq!(streaming.short_time(&block, middle).unwrap(), None);
                all.clear();
                reader.times(&block, 0..block.rows(), &mut all).unwrap();
            }
            assert!(looks > 2, "{effort:?} after {looks}");
            assert_eq!(all, times);
            let bytes = cache.stats().bytes_used;
            for _ in 0..500 {
                let from = next();
                let time = TimeRange::new(from, from + next() / 400);
                let Some(found) = reader.short_time(&block, time).unwrap() else { continue };
                let inside = |(_, at): &(u32, &i64)| time.contains(**at);
                let expected: (Vec<u32>, Vec<i64>) = (0u32..).zip(&times).filter(inside).unzip();
                assert_eq!(
                    reader.short_time_rows(&block, time).unwrap().as_ref(),
                    Some(&found.rows)
                );
                assert_eq!((found.rows, found.times), expected);
            }
            for ends in [
                (times[9], times[9]),
                (-5, -1),
                (i64::MIN, block.time().min),
                (block.time().max, i64::MAX),
            ] {
                let time = TimeRange::new(ends.0, ends.1);
                let found = reader.short_time(&block, time).unwrap().unwrap();
                assert!(found.rows.len() == times.iter().filter(|at| time.contains(**at)).count());
            }
            assert_eq!(reader.short_time(&block, block.time()).unwrap(), None, "no short time");
            assert_eq!(cache.stats().bytes_used, bytes, "nothing is left to do");
        }
    }

    #[test]
    fn rows_that_follow_lines_are_not_listed() {
        let row =
            |at: i64| (SeriesId(1 + at as u64 / 50), at % 50 * 1_000_000, vec![Cell::Number(1)]);
        for effort in [Effort::Hot, Effort::Cold] {
            let (reader, _) = reader(effort, (0..5000).map(row).collect());
            let block = only_block(&reader);
            let mut all = Vec::new();
            for _ in 0..20 {
                all.clear();
                reader.times(&block, 0..block.rows(), &mut all).unwrap();
                let time = TimeRange::new(7_000_000, 7_000_000);
                assert_eq!(reader.short_time_rows(&block, time).unwrap(), None, "{effort:?}");
            }
        }
    }
}
