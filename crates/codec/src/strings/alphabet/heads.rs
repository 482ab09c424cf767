//! The first characters of strings as numbers: those of identifiers that begin with a time (`ULID`, `UUIDv7`, `ObjectId`, `KSUID`)
//! ascend with it, so that an integer page has fewer bits for them, and a compressor as well.
//!
//! A number is what its characters' numbers are put together, the first one in the highest bits: in order as the strings are.

use std::ops::Range;

use super::{Shape, Strings};
use crate::encoding::Effort;
use crate::error::{DecodeError, Result};
use crate::int::{decode_u64_range, encode_u64};
use crate::wire::Reader;

/// So many strings tell whether heads are worth it: those that are noise are not all looked at.
const SAMPLED: usize = 128;

/// How many of the places that vary heads have, and a page of these, if that is shorter than to pack them.
pub(super) fn encode(
    strings: Strings<'_>,
    shape: &Shape<'_>,
    effort: Effort,
) -> Option<(usize, Vec<u8>)> {
    let places = (u64::BITS / shape.width) as usize;
    if places >= shape.places.len() {
        // Where no noise follows, it is no time that they begin with.
        return None;
    }
    let numbers = shape.numbers();
    let head = |string: &[u8]| {
        let number = |place: &u16| u64::from(numbers[string[usize::from(*place)] as usize]);
        let of_places = shape.places[..places].iter().map(number);
        of_places.fold(0, |head, number| head << shape.width | number)
    };
    let page_if_short = |count: usize| {
        let heads: Vec<u64> = strings.iter().take(count).map(head).collect();
        let mut page = Vec::new();
        encode_u64(&heads, effort, &mut page);
        let packed = heads.len() * places * shape.width as usize / 8;
        (page.len() < packed * 7 / 8).then_some(page)
    };
    let page = page_if_short(SAMPLED)?;
    if strings.len() <= SAMPLED {
        return Some((places, page));
    }
    page_if_short(strings.len()).map(|page| (places, page))
}

/// The heads of a page's strings, encoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heads<'a> {
    /// Nothing if strings have none.
    page: &'a [u8],
    count: usize,
    /// Bits of a head.
    bits: u32,
}

impl<'a> Heads<'a> {
    pub(super) fn read(reader: &mut Reader<'a>, shape: &Shape<'_>, count: usize) -> Result<Self> {
        let bits = shape.head_places as u64 * u64::from(shape.width);
        if bits > u64::from(u64::BITS) || shape.head_places >= shape.places.len() {
            return Err(DecodeError::Corrupt("how many places heads have"));
        }
        let page = if bits > 0 { reader.length_prefixed()? } else { &[] };
        Ok(Self { page, count, bits: bits as u32 })
    }

    /// The heads of some strings; none if strings have none.
    pub(super) fn of(&self, strings: Range<usize>) -> Result<Vec<u64>> {
        let mut heads = Vec::new();
        if self.bits > 0 {
            decode_u64_range(self.page, self.count, strings, &mut heads)?;
            if heads.iter().any(|head| head.checked_shr(self.bits).unwrap_or(0) != 0) {
                return Err(DecodeError::Corrupt("a head of more bits than it has"));
            }
        }
        Ok(heads)
    }
}
