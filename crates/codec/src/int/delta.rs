//! Pages of differences from the previous value.
//!
//! Layout: the first value, a *restart* for every `RESTART_ROWS` further rows (its difference from
//! the previous restart, so that a range in the middle needs no running sum from the start), then
//! the bit-packed body of `count - 1` differences.

use std::ops::Range;

use super::Sink;
use crate::{
    encoding::id,
    error::{DecodeError, Result},
    patched::{self, Body, Differences, Plan},
    simd::multiversion,
    wire::{Reader, put_ivarint},
};

/// Rows between two rows whose values are stored.
pub(crate) const RESTART_ROWS: usize = 4096;
/// Differences that begin at a whole byte.
pub(super) const GROUP: usize = 8;

multiversion! {
    /// `target[i] = values[i + 1] - values[i]`; `values` is one longer than `target`.
    pub(crate) fn differences / differences_at(values: &[u64], target: &mut [u64]) {
        let (previous, next) = (&values[..target.len()], &values[1..target.len() + 1]);
        for ((slot, a), b) in target.iter_mut().zip(previous).zip(next) {
            *slot = b.wrapping_sub(*a);
        }
    }
}

/// The first value and the restarts of a page that has at least one value.
pub(crate) fn write_restarts(values: &[u64], rows: usize, out: &mut Vec<u8>) {
    let mut previous = 0u64;
    for value in values.iter().step_by(rows) {
        put_ivarint(out, value.wrapping_sub(previous) as i64);
        previous = *value;
    }
}

/// The value at the last restart at or before row `row`.
pub(crate) fn read_restart(
    reader: &mut Reader<'_>,
    count: usize,
    rows: usize,
    row: usize,
) -> Result<u64> {
    let mut sum = 0u64;
    let mut wanted = 0;
    for index in 0..count.div_ceil(rows) {
        sum = sum.wrapping_add(reader.ivarint()? as u64);
        if index == row / rows {
            wanted = sum;
        }
    }
    Ok(wanted)
}

/// All restarts of a page.
pub(super) fn restarts(reader: &mut Reader<'_>, count: usize) -> Result<Vec<u64>> {
    // A restart takes a byte at least: no more is made room for than there may be.
    let mut all = Vec::with_capacity(count.div_ceil(RESTART_ROWS).min(reader.remaining()));
    let mut sum = 0u64;
    for _ in 0..count.div_ceil(RESTART_ROWS) {
        sum = sum.wrapping_add(reader.ivarint()? as u64);
        all.push(sum);
    }
    Ok(all)
}

/// Returns whether the page stayed within `bytes_max`; if not, `out` is as it was.
pub(super) fn encode(values: &[u64], plan: &Plan, bytes_max: usize, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    out.push(id::INT_DELTA);
    write_restarts(values, RESTART_ROWS, out);
    let done = patched::encode(values.len() - 1, plan, bytes_max, out, |first, block| {
        differences(&values[first..first + block.len() + 1], block);
    });
    if !done {
        out.truncate(start);
    }
    done
}

pub(super) fn decode(
    mut reader: Reader<'_>,
    count: usize,
    range: Range<usize>,
    block: &mut [u64],
    sink: &mut Sink<'_>,
) -> Result<()> {
    let restart_row = range.start / RESTART_ROWS * RESTART_ROWS;
    let mut restarts = reader;
    let mut carry = read_restart(&mut reader, count, RESTART_ROWS, restart_row)?;
    let mut restart = read_restart(&mut restarts, restart_row + 1, RESTART_ROWS, restart_row)?;
    let mut next_restart_row = restart_row + RESTART_ROWS;
    let mut body = Body::read(reader, count - 1)?;
    // What stands between is added up, but written nowhere.
    let mut row = range.start / GROUP * GROUP;
    if row > restart_row {
        carry = carry.wrapping_add(body.sum(restart_row..row)?);
    }
    // The first row is known without its difference. It joins a block that is eight rows short, so
    // that all further blocks begin at a whole byte of the packed stream.
    let mut known = 1;
    while row < range.end {
        let rows = (block.len() - known * 7).min(range.end - row);
        let block = &mut block[..rows];
        block[0] = carry;
        let sums = &mut block[known..];
        carry = body.read_sums(row + known - 1, carry, sums)?;
        // A page that contradicts itself would be read differently from a restart and up to it.
        while row + rows > next_restart_row {
            restart = restart.wrapping_add(restarts.ivarint()? as u64);
            if block[next_restart_row - row] != restart {
                return Err(DecodeError::Corrupt("a restart differs from the sum before it"));
            }
            next_restart_row += RESTART_ROWS;
        }
        let wanted = range.start.saturating_sub(row).min(rows);
        if wanted < rows {
            sink(&mut block[wanted..]);
        }
        row += rows;
        known = 0;
    }
    if range.end == count { body.finish() } else { Ok(()) }
}
