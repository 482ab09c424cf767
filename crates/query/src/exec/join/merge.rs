//! Pairing rows of one series in order of time.

use std::cmp::Ordering;
use std::ops::Range;

use influxql::JoinKind;
use model::{Interrupt, Reservation};

use super::side::SideRows;
use crate::QueryError;
use crate::exec::column::NO_ROW;

/// Pairs between which the interrupt is looked at.
const PAIRS_UNCHECKED: usize = 1 << 16;

/// Joined rows: the time, and on each side the row's number or [`NO_ROW`].
pub(super) struct Pairs {
    pub times: Vec<i64>,
    pub rows: Vec<Vec<u32>>,
}

impl Pairs {
    /// No rows of `sides` sides.
    pub(super) fn empty(sides: usize) -> Self {
        Self { times: Vec::new(), rows: vec![Vec::new(); sides] }
    }

    /// Adds what is in `more`.
    pub(super) fn append(&mut self, more: Self) {
        self.times.extend(more.times);
        for (rows, more) in self.rows.iter_mut().zip(more.rows) {
            rows.extend(more);
        }
    }

    fn bytes(rows: usize, sides: usize) -> usize {
        rows.saturating_mul(8 + 4 * sides)
    }

    /// Memory of the rows.
    pub(super) fn memory_bytes(&self) -> usize {
        Self::bytes(self.times.len(), self.rows.len())
    }
}

/// The rows of one series, joined.
pub(super) struct Merge<'a> {
    /// The sides with their kinds, and which of their rows.
    pub sides: &'a [(JoinKind, &'a SideRows, Range<usize>)],
    pub ascending: bool,
    pub interrupt: &'a Interrupt,
    /// Memory of all pairs that are held.
    pub memory: &'a mut Reservation,
    /// Memory of those that are held elsewhere.
    pub held_bytes: usize,
}

impl Merge<'_> {
    /// Joins one side after another.
    pub(super) fn run(mut self) -> Result<Pairs, QueryError> {
        let mut pairs = Pairs::empty(1);
        for (at, (kind, side, range)) in self.sides.iter().enumerate() {
            if at == 0 {
                self.reserve(Pairs::bytes(range.len(), 1))?;
                pairs.times.extend(range.clone().map(|at| side.time(at)));
                pairs.rows[0].extend(range.clone().map(|at| side.row(at)));
            } else {
                pairs = self.join(&pairs, *kind, side, range.clone())?;
            }
        }
        Ok(pairs)
    }

    fn reserve(&mut self, more_bytes: usize) -> Result<(), QueryError> {
        let bytes = self.held_bytes.saturating_add(more_bytes);
        if bytes > self.memory.bytes() {
            self.memory.resize(bytes)?;
        }
        Ok(())
    }

    fn join(
        &mut self,
        left: &Pairs,
        kind: JoinKind,
        side: &SideRows,
        right: Range<usize>,
    ) -> Result<Pairs, QueryError> {
        let sides = left.rows.len() + 1;
        let mut out = Pairs::empty(sides);
        let held = left.memory_bytes();
        self.reserve(held + Pairs::bytes(left.times.len() + right.len(), sides))?;
        let (mut i, mut j) = (0, right.start);
        while i < left.times.len() || j < right.end {
            let order = match (left.times.get(i), j < right.end) {
                (Some(a), true) if self.ascending => a.cmp(&side.time(j)),
                (Some(a), true) => side.time(j).cmp(a),
                (Some(_), false) => Ordering::Less,
                (None, _) => Ordering::Greater,
            };
            match order {
                Ordering::Less => {
                    if kind != JoinKind::Inner {
                        out.push(left, i, NO_ROW);
                    }
                    i += 1;
                }
                Ordering::Greater => {
                    if kind == JoinKind::Full {
                        out.push_right(side.time(j), side.row(j));
                    }
                    j += 1;
                }
                Ordering::Equal => {
                    let time = left.times[i];
                    let lefts = left.times[i..].iter().take_while(|t| **t == time).count();
                    let rights = (j..right.end).take_while(|at| side.time(*at) == time).count();
                    let more = Pairs::bytes(lefts.saturating_mul(rights), sides);
                    self.reserve(held.saturating_add(out.memory_bytes()).saturating_add(more))?;
                    for row in i..i + lefts {
                        if rights.saturating_mul(lefts) > PAIRS_UNCHECKED {
                            self.interrupt.check()?;
                        }
                        (j..j + rights).for_each(|at| out.push(left, row, side.row(at)));
                    }
                    (i, j) = (i + lefts, j + rights);
                }
            }
        }
        Ok(out)
    }
}

impl Pairs {
    fn push(&mut self, left: &Self, at: usize, right: u32) {
        self.times.push(left.times[at]);
        let of_left = left.rows.iter().map(|rows| rows[at]);
        for (rows, row) in self.rows.iter_mut().zip(of_left.chain([right])) {
            rows.push(row);
        }
    }

    fn push_right(&mut self, time: i64, row: u32) {
        self.times.push(time);
        let last = self.rows.len() - 1;
        for (at, rows) in self.rows.iter_mut().enumerate() {
            rows.push(if at == last { row } else { NO_ROW });
        }
    }
}
