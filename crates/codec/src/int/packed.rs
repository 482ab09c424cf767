//! Bit-packed pages, decoded straight into the place of their values.
//!
//! Otherwise pages go through a block: cleared, filled, and copied from. For a few hundred rows that takes longer than
//! unpacking them.

use std::ops::Range;

use super::Waypoint;
use super::delta::{GROUP, RESTART_ROWS, read_restart};
use super::scale::multiply;
use crate::{
    encoding::id,
    error::{DecodeError, Result},
    patched::{self, Body, Differences, ExceptionPlace, Plain},
    wire::Reader,
};

/// Of fewer exceptions passing over those before a row takes less than all else.
const PLACED_MIN: u64 = 16;
/// 32 KiB of values.
const IN_PLACE_ROWS_MAX: usize = 4096;

/// A page of bit-packed values or differences; what it has may be scaled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed<'a> {
    /// Base and factor.
    scale: Option<(u64, u64)>,
    is_delta: bool,
    count: usize,
    /// What stands behind the encodings' ids and the scale.
    reader: Reader<'a>,
}

impl<'a> Packed<'a> {
    /// A page of `count` values, at least one, if it is such a one and `rows` of it, which are wanted, fit into the cache of
    /// the first level: of more, all that is done to them is better done block by block.
    #[inline]
    pub(crate) fn of_few(bytes: &'a [u8], count: usize, rows: usize) -> Option<Self> {
        if rows > IN_PLACE_ROWS_MAX { None } else { Self::open(bytes, count) }
    }

    /// The same of any number of rows.
    #[inline]
    pub(crate) fn open(bytes: &'a [u8], count: usize) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let mut id = reader.u8().ok()?;
        let mut scale = None;
        if id == id::INT_SCALED {
            scale = Some((reader.ivarint().ok()?.cast_unsigned(), reader.uvarint().ok()?));
            id = reader.u8().ok()?;
        }
        let is_packed = matches!(id, id::INT_DELTA | id::INT_FOR);
        let is_delta = id == id::INT_DELTA;
        (is_packed && count > 0).then_some(Self { scale, is_delta, count, reader })
    }

    /// Adds some rows, at least one, to `out`: of differences without reading those before a restart or a waypoint, which none
    /// of the rows is before. `bits` gives the bits of values. If that fails, `out` has more values than before, of which none counts.
    pub(crate) fn append<T: Clone + Default>(
        mut self,
        range: Range<usize>,
        waypoint: Waypoint,
        out: &mut Vec<T>,
        bits: fn(&mut [T]) -> &mut [u64],
    ) -> Result<()> {
        let had = out.len();
        out.resize(had + range.len(), T::default());
        let slots = bits(&mut out[had..]);
        if !self.is_delta {
            let body = Body::read_from(self.reader, self.count, waypoint.exceptions)?;
            read_for(body, self.count, range, slots)?;
            if let Some((base, factor)) = self.scale {
                multiply(slots, factor, base);
            }
            return Ok(());
        }
        let restarts = self.reader;
        let (from, start) = self.start(range.start, waypoint)?;
        match self.scale {
            None => self.read_delta(start, range.clone(), from, waypoint.exceptions, slots)?,
            // What is before is scaled already.
            Some((_, factor)) => {
                self.read_delta(0, range.clone(), from, waypoint.exceptions, slots)?;
                multiply(slots, factor, start);
            }
        }
        self.check(restarts, range, slots)
    }

    /// The value of one row, the waypoint's or a later one; `None`: it is not a page of differences.
    pub(crate) fn value_at(mut self, row: usize, waypoint: Waypoint) -> Result<Option<u64>> {
        if !self.is_delta {
            return Ok(None);
        }
        let (from, start) = self.start(row, waypoint)?;
        let (rows, is_last) = (from..row, row + 1 == self.count);
        let (reader, count) = (self.reader, self.count - 1);
        let distance = match Plain::read(reader, count)? {
            Some(plain) => sum_of(plain, rows, is_last)?,
            None => sum_of(Body::read_from(reader, count, waypoint.exceptions)?, rows, is_last)?,
        };
        let factor = self.scale.map_or(1, |(_, factor)| factor);
        Ok(Some(start.wrapping_add(distance.wrapping_mul(factor))))
    }

    /// The last row at or before `row` whose value is known of a page of differences, and its value; the differences are left.
    #[inline]
    fn start(&mut self, row: usize, waypoint: Waypoint) -> Result<(usize, u64)> {
        let restart_row = row / RESTART_ROWS * RESTART_ROWS;
        if restart_row > waypoint.row {
            let restart = read_restart(&mut self.reader, self.count, RESTART_ROWS, restart_row)?;
            return Ok((restart_row, self.scaled(restart.cast_signed())));
        }
        let first = self.reader.ivarint()?;
        self.reader.skip_varints((self.count - 1) / RESTART_ROWS)?;
        Ok((waypoint.row, self.scaled(first).wrapping_add_signed(waypoint.distance)))
    }

    /// Whether something before a row has to be read to read that row.
    pub(crate) fn is_read_in_order(mut self) -> bool {
        self.is_delta || patched::has_exceptions(&mut self.reader)
    }

    /// How far every `rows`th value is from the first, from that on; empty if values are no differences. `None`: the page is
    /// damaged.
    pub(crate) fn distances(mut self, rows: usize) -> Option<Box<[i64]>> {
        debug_assert!(RESTART_ROWS.is_multiple_of(rows) && rows.is_multiple_of(GROUP));
        if !self.is_delta {
            return Some(Box::default());
        }
        let mut restarts = self.reader;
        read_restart(&mut self.reader, self.count, RESTART_ROWS, 0).ok()?;
        let mut body = Body::read(self.reader, self.count - 1).ok()?;
        let factor = self.scale.map_or(1, |(_, factor)| factor);
        let (mut distance, mut restart) = (0u64, 0u64);
        let mut distances = Vec::with_capacity(self.count.div_ceil(rows));
        for row in (0..self.count).step_by(rows) {
            if row > 0 {
                distance = distance.wrapping_add(body.sum(row - rows..row).ok()?);
            }
            if row.is_multiple_of(RESTART_ROWS) {
                let step = restarts.ivarint().ok()?.cast_unsigned();
                restart = if row == 0 { 0 } else { restart.wrapping_add(step) };
                if restart != distance {
                    return None;
                }
            }
            distances.push(distance.wrapping_mul(factor).cast_signed());
        }
        Some(distances.into())
    }

    /// See [`Body::places`]; `None` as well if the page is damaged.
    pub(crate) fn exception_places(mut self, rows: usize) -> Option<Box<[ExceptionPlace]>> {
        let mut values = self.count;
        if self.is_delta {
            read_restart(&mut self.reader, self.count, RESTART_ROWS, 0).ok()?;
            values -= 1;
        }
        Body::read(self.reader, values).ok()?.places(rows, PLACED_MIN).ok()?
    }

    #[inline]
    fn scaled(&self, value: i64) -> u64 {
        let (base, factor) = self.scale.unwrap_or((0, 1));
        value.cast_unsigned().wrapping_mul(factor).wrapping_add(base)
    }

    /// A page that contradicts itself would be read differently from a restart and up to it.
    fn check(&self, mut restarts: Reader<'_>, rows: Range<usize>, values: &[u64]) -> Result<()> {
        if rows.end.div_ceil(RESTART_ROWS) == rows.start / RESTART_ROWS + 1 {
            return Ok(());
        }
        let mut restart = 0i64;
        for row in (0..rows.end).step_by(RESTART_ROWS) {
            restart = restart.wrapping_add(restarts.ivarint()?);
            if row > rows.start && values[row - rows.start] != self.scaled(restart) {
                return Err(DecodeError::Corrupt("a restart differs from the sum before it"));
            }
        }
        Ok(())
    }

    /// Sums of differences, of which that before row `from` is `start`.
    #[inline]
    fn read_delta(
        &self,
        start: u64,
        range: Range<usize>,
        from: usize,
        exceptions: ExceptionPlace,
        slots: &mut [u64],
    ) -> Result<()> {
        match Plain::read(self.reader, self.count - 1)? {
            Some(plain) => read_sums((from, start), plain, self.count, range, slots),
            None => {
                let body = Body::read_from(self.reader, self.count - 1, exceptions)?;
                read_sums((from, start), body, self.count, range, slots)
            }
        }
    }
}

/// The sum of some differences; `is_last`: none may be behind them.
fn sum_of(mut differences: impl Differences, rows: Range<usize>, is_last: bool) -> Result<u64> {
    let are_read = rows.start == 0 || !rows.is_empty();
    let sum = differences.sum(rows)?;
    if is_last && are_read {
        differences.finish()?;
    }
    Ok(sum)
}

fn read_for(
    mut body: Body<'_>,
    count: usize,
    range: Range<usize>,
    slots: &mut [u64],
) -> Result<()> {
    let base = body.base;
    body.read_block(range.start, slots)?;
    if base != 0 {
        slots.iter_mut().for_each(|value| *value = value.wrapping_add(base));
    }
    if range.end == count { body.finish() } else { Ok(()) }
}

/// Reads values that follow one another by differences; of a row, a multiple of eight, the value is known.
#[inline]
fn read_sums(
    (from, mut value): (usize, u64),
    mut differences: impl Differences,
    count: usize,
    range: Range<usize>,
    mut slots: &mut [u64],
) -> Result<()> {
    // The difference that leads to the first row that is left.
    let mut next = from;
    if range.start > from {
        let wanted = range.start - 1;
        let unwanted = wanted % GROUP;
        next = wanted - unwanted;
        value = value.wrapping_add(differences.sum(from..next)?);
        if unwanted > 0 {
            let mut sums = [0; GROUP];
            let sums = &mut sums[..GROUP.min(unwanted + slots.len())];
            value = differences.read_sums(next, value, sums)?;
            let (here, rest) = slots.split_at_mut(sums.len() - unwanted);
            here.copy_from_slice(&sums[unwanted..]);
            (slots, next) = (rest, next + GROUP);
        }
    } else {
        slots[0] = value;
        slots = &mut slots[1..];
    }
    if !slots.is_empty() {
        differences.read_sums(next, value, slots)?;
    }
    // From the last row on there are none that could have been read.
    let are_read = from == 0 || from + 1 < count;
    if range.end == count && are_read { differences.finish() } else { Ok(()) }
}
