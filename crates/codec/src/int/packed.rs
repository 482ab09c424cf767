//! Bit-packed pages, decoded straight into the place of their values.
//!
//! Otherwise pages go through a block: cleared, filled, and copied from. For a few hundred rows that takes longer than
//! unpacking them.

use std::ops::Range;

use super::Waypoint;
use super::delta::{RESTART_ROWS, read_restart};
use super::scale::multiply;
use crate::{
    encoding::id,
    error::Result,
    patched::{Body, Differences, Plain},
    wire::Reader,
};

/// Bit-packed values that begin at a whole byte.
const GROUP: usize = 8;

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
    /// A page of `count` values, at least one, if it is such a one and has so few that what stands before some of them is added
    /// up soon.
    #[inline]
    pub(crate) fn short(bytes: &'a [u8], count: usize) -> Option<Self> {
        if count > RESTART_ROWS { None } else { Self::open(bytes, count) }
    }

    /// The same of any number of values.
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

    /// Adds some rows, at least one, to `out`: of differences without reading those before a waypoint, which none of the rows
    /// is before. `bits` gives the bits of values. If that fails, `out` has more values than before, of which none counts.
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
            read_for(self.reader, self.count, range, slots)?;
            if let Some((base, factor)) = self.scale {
                multiply(slots, factor, base);
            }
            return Ok(());
        }
        let start = self.first()?.wrapping_add_signed(waypoint.distance);
        match self.scale {
            None => self.read_delta(start, range, waypoint.row, slots),
            // The distance is of what is scaled already.
            Some((_, factor)) => {
                self.read_delta(0, range, waypoint.row, slots)?;
                multiply(slots, factor, start);
                Ok(())
            }
        }
    }

    /// The value of one row, the waypoint's or a later one; `None`: it is not a page of differences.
    pub(crate) fn value_at(mut self, row: usize, waypoint: Waypoint) -> Result<Option<u64>> {
        if !self.is_delta {
            return Ok(None);
        }
        let start = self.first()?.wrapping_add_signed(waypoint.distance);
        let (rows, is_last) = (waypoint.row..row, row + 1 == self.count);
        let (reader, count) = (self.reader, self.count - 1);
        let distance = match Plain::read(reader, count)? {
            Some(plain) => sum_of(plain, rows, is_last)?,
            None => sum_of(Body::read(reader, count)?, rows, is_last)?,
        };
        let factor = self.scale.map_or(1, |(_, factor)| factor);
        Ok(Some(start.wrapping_add(distance.wrapping_mul(factor))))
    }

    /// The first value of a page of differences; these are left.
    #[inline]
    fn first(&mut self) -> Result<u64> {
        let first = read_restart(&mut self.reader, self.count, RESTART_ROWS, 0)?;
        Ok(match self.scale {
            None => first,
            Some((base, factor)) => first.wrapping_mul(factor).wrapping_add(base),
        })
    }

    /// Sums of differences, of which that before row `from` is `start`.
    #[inline]
    fn read_delta(
        self,
        start: u64,
        range: Range<usize>,
        from: usize,
        slots: &mut [u64],
    ) -> Result<()> {
        match Plain::read(self.reader, self.count - 1)? {
            Some(plain) => read_sums((from, start), plain, self.count, range, slots),
            None => {
                let body = Body::read(self.reader, self.count - 1)?;
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
    reader: Reader<'_>,
    count: usize,
    range: Range<usize>,
    slots: &mut [u64],
) -> Result<()> {
    let mut body = Body::read(reader, count)?;
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
