//! Pages of few rows, decoded straight into the place of their values.
//!
//! Other pages go through a block: cleared, filled, and copied from. For a few hundred rows that takes longer than
//! unpacking them.

use std::ops::Range;

use super::delta::{RESTART_ROWS, read_restart};
use crate::{
    encoding::id,
    error::Result,
    patched::{Body, Differences, Plain},
    wire::Reader,
};

/// Bit-packed values that begin at a whole byte.
const GROUP: usize = 8;

/// Whether [`append`] takes a page: one that is bit-packed, without restarts.
pub(crate) fn is_short(bytes: &[u8], count: usize) -> bool {
    (1..=RESTART_ROWS).contains(&count)
        && matches!(bytes.first(), Some(&(id::INT_DELTA | id::INT_FOR)))
}

/// Adds rows of a page that [`is_short`], at least one, to `out`. `bits` gives the bits of values. If that fails,
/// `out` has more values than before, of which none counts.
pub(crate) fn append<T: Clone + Default>(
    bytes: &[u8],
    count: usize,
    range: Range<usize>,
    out: &mut Vec<T>,
    bits: fn(&mut [T]) -> &mut [u64],
) -> Result<()> {
    let had = out.len();
    out.resize(had + range.len(), T::default());
    let slots = bits(&mut out[had..]);
    let mut reader = Reader::new(bytes);
    if reader.u8()? == id::INT_DELTA {
        read_delta(reader, count, range, slots)
    } else {
        read_for(reader, count, range, slots)
    }
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

fn read_delta(
    mut reader: Reader<'_>,
    count: usize,
    range: Range<usize>,
    slots: &mut [u64],
) -> Result<()> {
    let first = read_restart(&mut reader, count, RESTART_ROWS, 0)?;
    match Plain::read(reader, count - 1)? {
        Some(plain) => read_sums(first, plain, count, range, slots),
        None => read_sums(first, Body::read(reader, count - 1)?, count, range, slots),
    }
}

/// Reads values whose first is `value`, and which the others follow by differences.
#[inline]
fn read_sums(
    mut value: u64,
    mut differences: impl Differences,
    count: usize,
    range: Range<usize>,
    mut slots: &mut [u64],
) -> Result<()> {
    // The difference that leads to the first row that is left.
    let mut next = 0;
    if let Some(wanted) = range.start.checked_sub(1) {
        let unwanted = wanted % GROUP;
        next = wanted - unwanted;
        value = value.wrapping_add(differences.sum(0..next)?);
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
    if range.end == count { differences.finish() } else { Ok(()) }
}
