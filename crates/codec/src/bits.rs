//! Pages of booleans, and validity.
//!
//! In memory bits are 64-bit words, least significant first; bits past the count are ignored when
//! encoding and zero when decoded. Encodings: all the same (one byte), the positions of the few that
//! differ, lengths of runs, or plain bits, whichever is the smallest.

#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::{
    encoding::id,
    error::{DecodeError, Result, check_range},
    kernels::{copy_bits, count_ones_prefix, set_bit_range},
    wire::{Reader, put_uvarint, uvarint_len},
};

/// Appends the first `count` bits of `words` as one page.
///
/// # Panics
/// If `words` is shorter than `count` bits, or `count` above [`crate::PAGE_COUNT_MAX`].
pub fn encode_bool(words: &[u64], count: usize, out: &mut Vec<u8>) {
    assert!(count <= crate::PAGE_COUNT_MAX, "BUG: a page of {count} bits");
    assert!(words.len() >= count.div_ceil(64), "BUG: fewer words than {count} bits need");
    let ones = count_ones_prefix(words, count);
    if ones == 0 || ones == count {
        out.push(if ones == 0 { id::BITS_ZEROS } else { id::BITS_ONES });
        return;
    }
    let plain_len = count.div_ceil(8);
    let minority = ones.min(count - ones);
    let n_runs = count_changes(words, count) + 1;
    let start = out.len();
    // A position or a length takes at least a byte; do not try what cannot win.
    if minority.min(n_runs) < plain_len {
        if minority <= n_runs {
            encode_sparse(words, count, ones > count - ones, minority, out);
        } else {
            encode_runs(words, count, n_runs, out);
        }
        if out.len() - start <= plain_len {
            return;
        }
        out.truncate(start);
    }
    out.push(id::BITS_PLAIN);
    for word in &words[..count / 64] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    if !count.is_multiple_of(64) {
        let last = words[count / 64] & ((1 << (count % 64)) - 1);
        out.extend_from_slice(&last.to_le_bytes()[..(count % 64).div_ceil(8)]);
    }
}

/// Appends a validity bitmap as one page: booleans, where set means that there is a value.
///
/// # Panics
/// As [`encode_bool`].
pub fn encode_validity(words: &[u64], count: usize, out: &mut Vec<u8>) {
    encode_bool(words, count, out);
}

/// Appends the `count` bits of a page to `out`, as `count / 64` words, rounded up.
///
/// `out` is left as it was on error.
pub fn decode_bool(bytes: &[u8], count: usize, out: &mut Vec<u64>) -> Result<()> {
    decode_bool_range(bytes, count, 0..count, out)
}

/// Appends the given rows of a page of `count` bits: row `range.start` is bit 0 of the first word.
///
/// `out` is left as it was on error.
pub fn decode_bool_range(
    bytes: &[u8],
    count: usize,
    range: Range<usize>,
    out: &mut Vec<u64>,
) -> Result<()> {
    check_range(&range, count)?;
    let before = out.len();
    out.resize(before + range.len().div_ceil(64), 0);
    decode(bytes, count, range, &mut out[before..]).inspect_err(|_| out.truncate(before))
}

/// As [`decode_bool`].
pub fn decode_validity(bytes: &[u8], count: usize, out: &mut Vec<u64>) -> Result<()> {
    decode_bool(bytes, count, out)
}

/// As [`decode_bool_range`].
pub fn decode_validity_range(
    bytes: &[u8],
    count: usize,
    range: Range<usize>,
    out: &mut Vec<u64>,
) -> Result<()> {
    decode_bool_range(bytes, count, range, out)
}

/// Places where a bit differs from the one before it.
fn count_changes(words: &[u64], count: usize) -> usize {
    let mut changes = 0;
    let mut previous = words[0] & 1;
    for (i, &word) in words[..count.div_ceil(64)].iter().enumerate() {
        let differs = word ^ (word << 1 | previous);
        let bits = count - i * 64;
        let differs = if bits < 64 { differs & ((1 << bits) - 1) } else { differs };
        changes += differs.count_ones() as usize;
        previous = word >> 63;
    }
    changes
}

/// Layout: the majority bit, the number of others, the distance of each from the position after the
/// previous one.
fn encode_sparse(words: &[u64], count: usize, majority: bool, minority: usize, out: &mut Vec<u8>) {
    out.push(id::BITS_SPARSE);
    out.push(u8::from(majority));
    out.reserve(uvarint_len(minority as u64) + minority);
    put_uvarint(out, minority as u64);
    let flip = if majority { u64::MAX } else { 0 };
    let mut next = 0;
    for (i, &word) in words[..count.div_ceil(64)].iter().enumerate() {
        let mut rest = word ^ flip;
        while rest != 0 {
            let position = i * 64 + rest.trailing_zeros() as usize;
            if position >= count {
                break;
            }
            put_uvarint(out, (position - next) as u64);
            next = position + 1;
            rest &= rest - 1;
        }
    }
}

/// Layout: the first bit, the number of runs, the length minus one of every run but the last.
fn encode_runs(words: &[u64], count: usize, n_runs: usize, out: &mut Vec<u8>) {
    out.push(id::BITS_RUNS);
    out.push((words[0] & 1) as u8);
    put_uvarint(out, n_runs as u64);
    let mut start = 0;
    for _ in 1..n_runs {
        let end = run_end(words, count, start);
        put_uvarint(out, (end - start - 1) as u64);
        start = end;
    }
}

/// The first position after `start` whose bit differs from the one at `start`.
fn run_end(words: &[u64], count: usize, start: usize) -> usize {
    let flip = if words[start / 64] >> (start % 64) & 1 == 1 { u64::MAX } else { 0 };
    let mut word = (words[start / 64] ^ flip) & (u64::MAX << (start % 64));
    let mut index = start / 64;
    while word == 0 && (index + 1) * 64 < count {
        index += 1;
        word = words[index] ^ flip;
    }
    (index * 64 + word.trailing_zeros() as usize).min(count)
}

/// `out` is all zero.
fn decode(bytes: &[u8], count: usize, range: Range<usize>, out: &mut [u64]) -> Result<()> {
    let mut reader = Reader::new(bytes);
    match reader.u8()? {
        id::BITS_ZEROS => reader.finish(),
        id::BITS_ONES => {
            reader.finish()?;
            set_bit_range(out, 0..range.len());
            Ok(())
        }
        id::BITS_PLAIN => {
            let bytes = reader.take(count.div_ceil(8))?;
            reader.finish()?;
            decode_plain(bytes, range, out);
            Ok(())
        }
        id::BITS_SPARSE => decode_sparse(reader, count, range, out),
        id::BITS_RUNS => decode_runs(reader, count, range, out),
        id => Err(DecodeError::WrongEncoding { id, expected: "booleans" }),
    }
}

fn decode_plain(bytes: &[u8], range: Range<usize>, out: &mut [u64]) {
    let from = range.start / 8;
    let mut words = Vec::with_capacity(range.len() / 64 + 2);
    for chunk in bytes[from..range.end.div_ceil(8).max(from)].chunks(8) {
        let mut word = [0u8; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        words.push(u64::from_le_bytes(word));
    }
    copy_bits(&words, range.start % 8, range.len(), out);
}

fn read_bit(reader: &mut Reader<'_>) -> Result<bool> {
    match reader.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(DecodeError::Corrupt("a bit that is neither 0 nor 1")),
    }
}

fn decode_sparse(
    mut reader: Reader<'_>,
    count: usize,
    range: Range<usize>,
    out: &mut [u64],
) -> Result<()> {
    let majority = read_bit(&mut reader)?;
    let minority = reader.uvarint()?;
    if majority {
        set_bit_range(out, 0..range.len());
    }
    let mut next = 0;
    for _ in 0..minority {
        let gap = reader.uvarint()?;
        if gap >= (count - next) as u64 {
            return Err(DecodeError::Corrupt("bit position past the end"));
        }
        let position = next + gap as usize;
        next = position + 1;
        if range.contains(&position) {
            let bit = position - range.start;
            out[bit / 64] ^= 1 << (bit % 64);
        }
    }
    reader.finish()
}

fn decode_runs(
    mut reader: Reader<'_>,
    count: usize,
    range: Range<usize>,
    out: &mut [u64],
) -> Result<()> {
    let mut value = read_bit(&mut reader)?;
    let n_runs = reader.uvarint()?;
    if n_runs == 0 {
        return Err(DecodeError::Corrupt("number of runs"));
    }
    let mut start = 0;
    for run in 1..=n_runs {
        let end = if run == n_runs {
            count
        } else {
            let length = reader.uvarint()?;
            if length >= (count - start) as u64 {
                return Err(DecodeError::Corrupt("run past the end"));
            }
            start + length as usize + 1
        };
        let (from, to) = (start.max(range.start), end.min(range.end));
        if value && from < to {
            set_bit_range(out, from - range.start..to - range.start);
        }
        value = !value;
        start = end;
    }
    reader.finish()
}
