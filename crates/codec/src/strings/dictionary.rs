//! Strings as codes into a dictionary of the distinct ones, in order of first occurrence.
//!
//! Layout: the number of entries (uvarint), the length of the nested page of the entries (uvarint),
//! that page (plain or compressed), an integer page of codes.

use std::ops::Range;

use hashbrown::HashMap;

use super::{Output, Strings, decode as decode_page, encode_plain_or_blocks};
use crate::{
    encoding::{Effort, id},
    error::{DecodeError, Result},
    int::{decode_u64_range, encode_u64},
    wire::{Reader, put_length_prefixed, put_uvarint},
};

/// Strings looked at before giving up on a column of mostly distinct strings.
const TRIAL: usize = 1024;

/// A page, unless too many strings are distinct for a dictionary to be of use.
pub(super) fn encode(strings: Strings<'_>, effort: Effort) -> Option<Vec<u8>> {
    let mut codes = Vec::with_capacity(strings.len());
    let mut code_of: HashMap<&[u8], u64> = HashMap::new();
    let mut entries = Entries::default();
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
    let entries = Strings { offsets: &entries.offsets, bytes: &entries.bytes };
    encode_plain_or_blocks(entries, effort, &mut nested);
    put_length_prefixed(&mut out, &nested);
    encode_u64(&codes, effort, &mut out);
    Some(out)
}

struct Entries {
    offsets: Vec<u32>,
    bytes: Vec<u8>,
}

impl Default for Entries {
    fn default() -> Self {
        Self { offsets: vec![0], bytes: Vec::new() }
    }
}

impl Entries {
    fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.offsets.push(self.bytes.len() as u32);
    }
}

pub(super) fn decode(
    mut reader: Reader<'_>,
    count: usize,
    range: Range<usize>,
    output: &mut Output<'_>,
) -> Result<()> {
    let n_entries = reader.uvarint()?;
    if n_entries == 0 || n_entries > count as u64 {
        return Err(DecodeError::Corrupt("number of dictionary entries"));
    }
    let n_entries = n_entries as usize;
    let (mut entries, mut text) = (Vec::new(), Vec::new());
    let mut into_entries =
        Output { places: &mut entries, bytes: &mut text, max_bytes: output.max_bytes };
    let nested = reader.length_prefixed()?;
    decode_page(nested, n_entries, 0..n_entries, false, &mut into_entries)?;

    let mut codes = Vec::new();
    decode_u64_range(reader.rest(), count, range, &mut codes)?;
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
