//! Times that keep a step for long: those of several series one after the other, or with gaps.
//!
//! They are a few *lines*, of each the row it begins at, the time there and the step. Rows are found, and times told, by
//! calculation, as where all have one step (`regular`); what differs is that the line is looked for.
//!
//! Invariants
//! - Lines ascend by their first row, the first begins at row 0; each has a row at least.
//! - Within a line times ascend, and none is out of 64 bits. A line may go on from one series to the next.

use std::ops::Range;

use model::TimeRange;

/// Rows a line has at least, on average: a line takes 24 bytes of memory.
const ROWS_A_LINE: usize = 32;

#[derive(Clone, Copy, Debug)]
struct Line {
    row: usize,
    first: i64,
    /// Above 0, of one row as well.
    step: u64,
}

impl Line {
    fn at(&self, row: usize) -> i64 {
        self.first.wrapping_add_unsigned(((row - self.row) as u64).wrapping_mul(self.step))
    }
}

/// The times of the rows of a block.
#[derive(Debug)]
pub(in crate::reader) struct Lines {
    lines: Box<[Line]>,
    rows: usize,
}

impl Lines {
    /// `None` if there are too many lines to be worth it.
    pub(in crate::reader) fn of(times: &[i64]) -> Option<Self> {
        let mut lines = Vec::new();
        let mut row = 0;
        while row < times.len() {
            if lines.len() == times.len() / ROWS_A_LINE {
                return None;
            }
            let step = match times[row..] {
                [first, second, ..] if first < second => second.abs_diff(first),
                _ => 1,
            };
            lines.push(Line { row, first: times[row], step });
            let goes_on = |pair: &[i64]| {
                pair[0].checked_add_unsigned(step).is_some_and(|next| next == pair[1])
            };
            let rest = times[row..].windows(2);
            row += 1 + rest.take_while(|pair| goes_on(pair)).count();
        }
        Some(Self { lines: lines.into(), rows: times.len() })
    }

    /// Bytes of memory beside itself.
    pub(in crate::reader) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.lines)
    }

    /// The time of a row.
    pub(in crate::reader) fn at(&self, row: usize) -> i64 {
        self.lines[self.line_of(row)].at(row)
    }

    /// Adds the times of some rows to `out`.
    pub(in crate::reader) fn append(&self, rows: Range<usize>, out: &mut Vec<i64>) {
        if rows.is_empty() {
            return;
        }
        let mut row = rows.start;
        for line in self.line_of(row)..self.lines.len() {
            let (end, line) = (self.end_of(line).min(rows.end), self.lines[line]);
            // Sums of steps are made side by side, products are not.
            let mut next = line.at(row);
            out.extend((row..end).map(|_| {
                let time = next;
                next = next.wrapping_add_unsigned(line.step);
                time
            }));
            row = end;
            if row == rows.end {
                break;
            }
        }
    }

    /// The rows inside `time` among `rows` of one series.
    pub(in crate::reader) fn rows_in(&self, rows: &Range<usize>, time: TimeRange) -> Range<usize> {
        if rows.is_empty() {
            return rows.clone();
        }
        let lines = self.line_of(rows.start)..self.line_of(rows.end - 1) + 1;
        let not_before = |time: i64| {
            // The times of the lines behind the first ascend with them.
            let behind = &self.lines[lines.start + 1..lines.end];
            let at = lines.start + behind.partition_point(|line| line.first < time);
            let line = self.lines[at];
            let distance = if time <= line.first { 0 } else { time.abs_diff(line.first) };
            let steps = usize::try_from(distance.div_ceil(line.step)).unwrap_or(usize::MAX);
            let end = self.end_of(at).min(rows.end);
            line.row.saturating_add(steps).clamp(line.row.max(rows.start), end)
        };
        let start = not_before(time.min);
        let end = time.max.checked_add(1).map_or(rows.end, not_before);
        start..end.max(start)
    }

    fn line_of(&self, row: usize) -> usize {
        assert!(row < self.rows, "BUG: the time of row {row} of {}", self.rows);
        self.lines.partition_point(|line| line.row <= row) - 1
    }

    fn end_of(&self, line: usize) -> usize {
        self.lines.get(line + 1).map_or(self.rows, |next| next.row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Series of lines, one after the other: of each the time it begins at, and lines as gap, step and rows.
    fn series() -> impl Strategy<Value = Vec<(i64, Vec<(u32, u32, usize)>)>> {
        let start = prop_oneof![-500i64..500, Just(i64::MIN), Just(i64::MAX - 60_000)];
        let line = (1u32..30, 1u32..20, 1usize..150);
        prop::collection::vec((start, prop::collection::vec(line, 1..4)), 1..6)
    }

    fn times_of(start: i64, lines: &[(u32, u32, usize)]) -> Vec<i64> {
        let mut time = start;
        let mut times = Vec::new();
        for (gap, step, rows) in lines {
            time += i64::from(*gap);
            for row in 0..*rows {
                time += if row > 0 { i64::from(*step) } else { 0 };
                times.push(time);
            }
        }
        times
    }

    proptest! {
        #[test]
        fn rows_are_found_and_times_told_by_calculation(
            series in series(),
            one in any::<prop::sample::Index>(),
            part in any::<[prop::sample::Index; 2]>(),
            ends in prop::collection::vec((any::<prop::sample::Index>(), -3i64..3), 2),
            anywhere in prop::option::of(any::<[i64; 2]>()),
        ) {
            let of_series: Vec<Vec<i64>> =
                series.iter().map(|(start, lines)| times_of(*start, lines)).collect();
            let times = of_series.concat();
            let Some(lines) = Lines::of(&times) else {
                let breaks = times.windows(3).filter(|t| t[1].wrapping_sub(t[0]) != t[2].wrapping_sub(t[1])).count();
                prop_assert!(2 * breaks + 2 > times.len() / ROWS_A_LINE, "few lines, not taken");
                return Ok(());
            };
            let told: Vec<i64> = (0..times.len()).map(|row| lines.at(row)).collect();
            prop_assert_eq!(&told, &times);

            let one = one.index(of_series.len());
            let before: usize = of_series[..one].iter().map(Vec::len).sum();
            let [a, b] = part.map(|at| before + at.index(of_series[one].len() + 1));
            let rows = a.min(b)..a.max(b);
            let mut appended = vec![7];
            lines.append(rows.clone(), &mut appended);
            prop_assert_eq!(&appended[1..], &times[rows.clone()]);

            let near = |(at, by): (prop::sample::Index, i64)| of_series[one][at.index(of_series[one].len())].saturating_add(by);
            let [a, b] = anywhere.unwrap_or([near(ends[0]), near(ends[1])]);
            let time = TimeRange { min: a.min(b), max: a.max(b) };
            let inside = |row: &usize| time.min <= times[*row] && times[*row] <= time.max;
            let wanted: Vec<usize> = rows.clone().filter(inside).collect();
            let found = lines.rows_in(&rows, time);
            prop_assert!(found.start >= rows.start && found.end <= rows.end);
            prop_assert_eq!(found.collect::<Vec<usize>>(), wanted);
        }
    }

    #[test]
    fn times_of_many_steps_are_not_lines() {
        let times: Vec<i64> = (0..1000).map(|row| row * row).collect();
        assert!(Lines::of(&times).is_none());
        assert!(Lines::of(&[1, 2, 3]).is_none(), "for three rows it is not worth it");
    }

    #[test]
    fn a_line_ends_where_the_next_time_would_be_out_of_range() {
        let mut times: Vec<i64> = (0..64).map(|row| i64::MAX - 63 * 10 + row * 10).collect();
        times.extend((0..64).map(|row| i64::MIN + 9 + row * 10));
        let lines = Lines::of(&times).expect("two lines");
        assert_eq!((0..128).map(|row| lines.at(row)).collect::<Vec<i64>>(), times);
    }
}
