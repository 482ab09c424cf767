//! Pages of runs of equal values: one nested page of the run values, one of the run lengths.

use std::ops::Range;

use super::{Nesting, Sink, decode_page, encode_page, with_block};
use crate::{
    encoding::{Effort, id},
    error::{DecodeError, Result},
    wire::{Reader, put_length_prefixed, put_uvarint},
};

/// A page has at most one run for this many values: shorter runs decode slower than they save, and
/// it bounds the memory a damaged page can ask for.
pub(super) const RUN_LENGTH_MIN: usize = 4;

/// `n_runs` is a hint for the memory to reserve.
pub(super) fn encode(values: &[u64], n_runs: usize, effort: Effort, out: &mut Vec<u8>) {
    let mut run_values = Vec::with_capacity(n_runs);
    let mut run_lengths: Vec<i64> = Vec::with_capacity(n_runs);
    for run in values.chunk_by(|a, b| a == b) {
        run_values.push(run[0] as i64);
        run_lengths.push(run.len() as i64);
    }
    out.push(id::INT_RUNS);
    put_uvarint(out, run_values.len() as u64);
    let mut nested = Vec::new();
    encode_page(&run_values, effort, Nesting::Runs, &mut nested);
    put_length_prefixed(out, &nested);
    encode_page(&run_lengths, effort, Nesting::Runs, out);
}

pub(super) fn decode(
    mut reader: Reader<'_>,
    count: usize,
    range: Range<usize>,
    block: &mut [u64],
    sink: &mut Sink<'_>,
) -> Result<()> {
    let n_runs = reader.uvarint()?;
    if n_runs == 0 || n_runs > (count / RUN_LENGTH_MIN) as u64 {
        return Err(DecodeError::Corrupt("number of runs"));
    }
    let n_runs = n_runs as usize;
    let read_nested = |page: &[u8]| -> Result<Vec<u64>> {
        let mut values = Vec::with_capacity(n_runs);
        with_block(n_runs, |block| {
            decode_page(page, n_runs, 0..n_runs, Nesting::Runs, block, None, &mut |block| {
                values.extend_from_slice(block);
            })
        })?;
        Ok(values)
    };
    let run_values = read_nested(reader.length_prefixed()?)?;
    let run_lengths = read_nested(reader.rest())?;
    let mut total = 0u64;
    for &length in &run_lengths {
        total = total.saturating_add(length);
        if length == 0 || total > count as u64 {
            return Err(DecodeError::Corrupt("run lengths do not add up"));
        }
    }
    if total != count as u64 {
        return Err(DecodeError::Corrupt("run lengths do not add up"));
    }
    emit(&run_values, &run_lengths, range, block, sink);
    Ok(())
}

/// Writes out the runs that meet `range`; the lengths have been checked.
fn emit(
    run_values: &[u64],
    run_lengths: &[u64],
    range: Range<usize>,
    block: &mut [u64],
    sink: &mut Sink<'_>,
) {
    let mut filled = 0;
    let mut run_start = 0;
    for (value, length) in run_values.iter().zip(run_lengths) {
        let run = run_start..run_start + *length as usize;
        run_start = run.end;
        let mut rows = run.end.min(range.end).saturating_sub(run.start.max(range.start));
        while rows > 0 {
            let part = rows.min(block.len() - filled);
            block[filled..filled + part].fill(*value);
            filled += part;
            rows -= part;
            if filled == block.len() {
                sink(block);
                filled = 0;
            }
        }
        if run.end >= range.end {
            break;
        }
    }
    if filled > 0 {
        sink(&mut block[..filled]);
    }
}
