//! Strings as codes into a dictionary of the distinct ones, in order of first occurrence.
//!
//! Layout: the number of entries (uvarint), the length of the nested page of the entries (uvarint),
//! that page (one without pages of strings in it), an integer page of codes.

use std::ops::Range;

use hashbrown::HashMap;

use super::wanted::Wanted;
use super::{
    Gathered, Nesting, Output, Strings, TextFinder, TextPlace, decode as decode_page,
    encode_without_strings,
};
use crate::{
    encoding::{Effort, id},
    error::{DecodeError, Result},
    int::{decode as decode_ints, decode_u64_range, encode_u64},
    simd::multiversion,
    wire::{Reader, put_length_prefixed, put_uvarint},
};

/// Strings looked at before giving up on a column of mostly distinct strings.
const TRIAL: usize = 1024;

/// A page, unless too many strings are distinct for a dictionary to be of use.
pub(super) fn encode(strings: Strings<'_>, effort: Effort) -> Option<Vec<u8>> {
    let mut codes = Vec::with_capacity(strings.len());
    let mut code_of: HashMap<&[u8], u64> = HashMap::new();
    let mut entries = Gathered::default();
    for (row, string) in strings.iter().enumerate() {
        let next = code_of.len() as u64;
        let code = *code_of.entry(string).or_insert_with(|| {
            entries.push(string);
            next
        });
        codes.push(code);
        if row + 1 == TRIAL && code_of.len() > TRIAL * 3 / 4 {
            return None;
        }
    }
    if code_of.len() > strings.len() / 2 {
        return None;
    }
    let mut out = vec![id::STRINGS_DICTIONARY];
    put_uvarint(&mut out, code_of.len() as u64);
    let mut nested = Vec::new();
    encode_without_strings(entries.strings(), effort, &mut nested);
    put_length_prefixed(&mut out, &nested);
    encode_u64(&codes, effort, &mut out);
    Some(out)
}

/// The strings of a dictionary.
struct Entries {
    entries: Vec<TextPlace>,
    text: Vec<u8>,
}

impl Entries {
    fn decode(reader: &mut Reader<'_>, count: usize, max_bytes: usize) -> Result<Self> {
        let n_entries = reader.uvarint()?;
        if n_entries == 0 || n_entries > count as u64 {
            return Err(DecodeError::Corrupt("number of dictionary entries"));
        }
        let n_entries = n_entries as usize;
        let (mut entries, mut text) = (Vec::new(), Vec::new());
        let mut into_entries = Output { places: &mut entries, bytes: &mut text, max_bytes };
        let nested = reader.length_prefixed()?;
        let all = Wanted::all(0..n_entries);
        decode_page(nested, n_entries, &all, Nesting::Innermost, &mut into_entries)?;
        Ok(Self { entries, text })
    }
}

/// A bit for each string of the range whether it is wanted.
pub(super) fn search(
    mut reader: Reader<'_>,
    count: usize,
    range: Range<usize>,
    finder: &TextFinder<'_>,
    max_bytes: usize,
) -> Result<Vec<u64>> {
    let Entries { entries, text } = Entries::decode(&mut reader, count, max_bytes)?;
    let is_wanted =
        |(start, len): &TextPlace| finder.wants(&text[*start as usize..][..*len as usize]);
    let found: Vec<u8> = entries.iter().map(|entry| is_wanted(entry).into()).collect();
    let mut bits = vec![0u64; range.len().div_ceil(64)];
    let (mut row, mut are_outside) = (0, false);
    decode_ints(reader.rest(), count, range, None, &mut |codes| {
        are_outside |= look_up(codes, &found, row, &mut bits);
        row += codes.len();
    })?;
    if are_outside {
        return Err(DecodeError::Corrupt("code outside the dictionary"));
    }
    Ok(bits)
}

multiversion! {
    /// Sets the bits from one on of those codes that are `found`. Whether there was another code than these have.
    fn look_up / look_up_at(codes: &[u64], found: &[u8], from: usize, bits: &mut [u64]) -> bool {
        let (mut row, mut rest, mut most) = (from, codes, 0);
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(64 - row % 64));
            // Put together in a register: what is in memory would be waited for with each string.
            let mut word = 0;
            for (code, at) in now.iter().zip(0..) {
                most = most.max(*code);
                word |= u64::from(found.get(*code as usize).copied().unwrap_or(0)) << at;
            }
            bits[row / 64] |= word << (row % 64);
            row += now.len();
            rest = later;
        }
        most >= found.len() as u64
    }
}

pub(super) fn decode(
    mut reader: Reader<'_>,
    count: usize,
    wanted: &Wanted<'_>,
    output: &mut Output<'_>,
) -> Result<()> {
    let Entries { mut entries, text } = Entries::decode(&mut reader, count, output.max_bytes)?;
    let mut codes = Vec::new();
    decode_u64_range(reader.rest(), count, wanted.range(), &mut codes)?;
    wanted.keep(&mut codes);
    let mut total = 0u64;
    for &code in &codes {
        let Some((_, len)) = entries.get(code as usize) else {
            return Err(DecodeError::Corrupt("code outside the dictionary"));
        };
        total += u64::from(*len);
    }
    output.check(total)?;
    output.places.reserve(codes.len());
    if text.len() as u64 <= total {
        let base = output.bytes.len() as u32;
        output.bytes.extend_from_slice(&text);
        entries.iter_mut().for_each(|(start, _)| *start += base);
        output.places.extend(codes.iter().map(|code| entries[*code as usize]));
        return Ok(());
    }
    // A few strings of many: the others are not wanted.
    for &code in &codes {
        let (start, len) = entries[code as usize];
        output.places.push((output.bytes.len() as u32, len));
        output.bytes.extend_from_slice(&text[start as usize..start as usize + len as usize]);
    }
    Ok(())
}
