//! Writing strings of an alphabet with AVX-512, 64 places of a string at once.
//!
//! Eight places that follow one another have at most 48 bits, which are in the eight bytes from where the first of them is: a
//! byte shuffle brings these into a lane, a shift for each byte of the lane its character's number into it. The number's
//! character is looked up in a register. Of places that heads have a shift brings the number out of the head, which each lane has.

use std::arch::x86_64::{
    __m512i, _mm512_and_si512, _mm512_cmpge_epu8_mask, _mm512_loadu_si512, _mm512_mask_blend_epi8,
    _mm512_mask_multishift_epi64_epi8, _mm512_mask_storeu_epi8, _mm512_maskz_loadu_epi8,
    _mm512_multishift_epi64_epi8, _mm512_permutexvar_epi8, _mm512_set1_epi8, _mm512_set1_epi64,
};
use std::iter;
use std::mem::MaybeUninit;

use super::{CHARACTERS_MAX, OUTSIDE, Parts, Shape, VARIES};
use crate::error::Result;

/// Places, and bytes of a register.
const LANES: usize = 64;

/// Appends strings, as the portable loop does; those of a damaged page in vain.
pub(super) fn append(
    shape: &Shape<'_>,
    parts @ (_, packed): Parts<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let (length, stride) = (shape.pattern.len(), shape.stride());
    let added = packed.len() / stride * length;
    out.reserve(added);
    let room = &mut out.spare_capacity_mut()[..added];
    let mut next = 0;
    let mut are_outside = false;
    for start in (0..length).step_by(LANES) {
        let places = start..length.min(start + LANES);
        let part = Part::new(shape, places.start, places.end, &mut next);
        // SAFETY: the caller dispatches here only when AVX-512 with VBMI was detected.
        are_outside |= unsafe { write_part(shape, &part, parts, room) };
    }
    if are_outside {
        return Err(OUTSIDE);
    }
    // SAFETY: there is room for so many, and all of them were written: each part's places of all strings.
    unsafe { out.set_len(out.len() + added) }
    Ok(())
}

/// Some places of all strings, at most as many as a register has bytes.
struct Part {
    start: usize,
    end: usize,
    /// Where the bytes of a packed string are that have them.
    bytes: (usize, usize),
    /// Of each byte of a lane which of these it gets, and where in the lane, or the head, each place's number begins.
    shuffle: [u8; LANES],
    shift: [u8; LANES],
    /// What all strings have, the places that vary, and those of them that heads have.
    common: [u8; LANES],
    varies: u64,
    of_head: u64,
}

impl Part {
    /// `next` is the number of the first place that varies of those from `start` on, and then of those behind the part.
    fn new(shape: &Shape<'_>, start: usize, end: usize, next: &mut usize) -> Self {
        let width = shape.width as usize;
        let bit_of = |number: usize| number.saturating_sub(shape.head_places) * width;
        let first_byte = bit_of(*next) / 8;
        let mut part = Self {
            start,
            end,
            bytes: (first_byte, shape.stride().min(first_byte + LANES)),
            shuffle: [0; LANES],
            shift: [0; LANES],
            common: [0; LANES],
            varies: 0,
            of_head: 0,
        };
        part.common[..end - start].copy_from_slice(&shape.pattern[start..end]);
        for lane in (0..end - start).step_by(8) {
            let from = bit_of(*next) / 8;
            for at in 0..8 {
                // Bytes behind the string's last are not used, whatever they are.
                part.shuffle[lane + at] = (from - first_byte + at).min(LANES - 1) as u8;
            }
            for place in lane..(lane + 8).min(end - start) {
                if shape.pattern[start + place] == VARIES {
                    part.varies |= 1 << place;
                    part.shift[place] = if *next < shape.head_places {
                        part.of_head |= 1 << place;
                        ((shape.head_places - 1 - *next) * width) as u8
                    } else {
                        (bit_of(*next) - from * 8) as u8
                    };
                    *next += 1;
                }
            }
        }
        part
    }
}

/// Writes the part's places of all strings to their place in `room`. Whether there was a number that no character has.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn write_part(
    shape: &Shape<'_>,
    part: &Part,
    (heads, packed): Parts<'_>,
    room: &mut [MaybeUninit<u8>],
) -> bool {
    let mut characters = [0; CHARACTERS_MAX];
    characters[..shape.alphabet.len()].copy_from_slice(shape.alphabet);
    let load = |bytes: &[u8; LANES]| -> __m512i {
        // SAFETY: a whole register.
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    };
    let (shuffle, shift) = (load(&part.shuffle), load(&part.shift));
    let (common, characters) = (load(&part.common), load(&characters));
    let mask = _mm512_set1_epi8((1i8 << shape.width) - 1);
    let behind = _mm512_set1_epi8(shape.alphabet.len() as i8);
    let of_places = low_bits(part.end - part.start);
    let of_bytes = low_bits(part.bytes.1 - part.bytes.0);
    let strings = room.chunks_exact_mut(shape.pattern.len());
    let mut outside = 0;
    let heads = heads.iter().copied().chain(iter::repeat(0));
    for ((string, packed), head) in strings.zip(packed.chunks_exact(shape.stride())).zip(heads) {
        let (string, packed) =
            (&mut string[part.start..part.end], &packed[part.bytes.0..part.bytes.1]);
        // SAFETY: the mask names the bytes of the slice.
        let bytes = unsafe { _mm512_maskz_loadu_epi8(of_bytes, packed.as_ptr().cast()) };
        let lanes = _mm512_permutexvar_epi8(shuffle, bytes);
        let numbers = _mm512_multishift_epi64_epi8(shift, lanes);
        let head = _mm512_set1_epi64(head.cast_signed());
        let numbers = _mm512_mask_multishift_epi64_epi8(numbers, part.of_head, shift, head);
        let numbers = _mm512_and_si512(numbers, mask);
        outside |= _mm512_cmpge_epu8_mask(numbers, behind);
        let text = _mm512_permutexvar_epi8(numbers, characters);
        let text = _mm512_mask_blend_epi8(part.varies, common, text);
        // SAFETY: as above.
        unsafe { _mm512_mask_storeu_epi8(string.as_mut_ptr().cast(), of_places, text) };
    }
    outside & part.varies != 0
}

/// So many of the low bits, at most 64.
fn low_bits(n: usize) -> u64 {
    if n == 64 { u64::MAX } else { (1 << n) - 1 }
}
