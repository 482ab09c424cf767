//! Writing and packing strings of an alphabet with AVX-512, 64 places of a string at once.
//!
//! To write: eight places that follow one another have at most 48 bits, which are in the eight bytes from where the first of them is: a
//! byte shuffle brings these into a lane, a shift for each byte of the lane its character's number into it. The number's
//! character is looked up in a register. Of places that heads have a shift brings the number out of the head, which each lane has.
//!
//! To pack: each byte's number is looked up in two registers, and the bits of eight numbers at a time are put side by side.

use std::arch::x86_64::{
    __m512i, _mm512_and_si512, _mm512_cmpge_epu8_mask, _mm512_loadu_si512, _mm512_mask_blend_epi8,
    _mm512_mask_multishift_epi64_epi8, _mm512_mask_storeu_epi8, _mm512_maskz_loadu_epi8,
    _mm512_movepi8_mask, _mm512_multishift_epi64_epi8, _mm512_permutex2var_epi8,
    _mm512_permutexvar_epi8, _mm512_set1_epi8, _mm512_set1_epi64, _mm512_storeu_si512,
    _mm512_test_epi8_mask, _pext_u64,
};
use std::mem::MaybeUninit;

use super::{CHARACTERS_MAX, LENGTH_MAX, OUTSIDE, Parts, Shape, VARIES};
use crate::error::Result;

/// Places, and bytes of a register.
const LANES: usize = 64;

/// All places of a shape.
pub(super) struct Layout(Vec<Part>);

impl Layout {
    pub(super) fn new(shape: &Shape<'_>) -> Self {
        let length = shape.pattern.len();
        let mut next = 0;
        let part = |start| Part::new(shape, start, length.min(start + LANES), &mut next);
        Self((0..length).step_by(LANES).map(part).collect())
    }
}

/// Appends strings, as the portable loop does; those of a damaged page in vain.
pub(super) fn append(
    shape: &Shape<'_>,
    layout: &Layout,
    parts: Parts<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let added = parts.strings * shape.pattern.len();
    out.reserve(added);
    let room = &mut out.spare_capacity_mut()[..added];
    let mut are_outside = false;
    for part in &layout.0 {
        // SAFETY: the caller dispatches here only when AVX-512 with VBMI was detected.
        are_outside |= unsafe { write_part(shape, part, parts, room) };
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
    /// What all strings have, and the places that vary.
    common: [u8; LANES],
    varies: u64,
    /// The words of heads that have some of these places, and which.
    words: Vec<(usize, u64)>,
}

impl Part {
    /// `next` is the number of the first place that varies of those from `start` on, and then of those behind the part.
    fn new(shape: &Shape<'_>, start: usize, end: usize, next: &mut usize) -> Self {
        let width = shape.width as usize;
        let head_places = shape.head_places();
        let bit_of = |number: usize| number.saturating_sub(head_places) * width;
        let first_byte = bit_of(*next) / 8;
        let mut part = Self {
            start,
            end,
            bytes: (first_byte, shape.stride().min(first_byte + LANES)),
            shuffle: [0; LANES],
            shift: [0; LANES],
            common: [0; LANES],
            varies: 0,
            words: Vec::new(),
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
                    if *next >= head_places {
                        part.shift[place] = (bit_of(*next) - from * 8) as u8;
                    }
                    *next += 1;
                }
            }
        }
        part.add_words(shape);
        part
    }

    /// Adds what the places need that heads have.
    fn add_words(&mut self, shape: &Shape<'_>) {
        for word in 0..shape.head_words {
            let mut places = 0;
            for (place, shift) in shape.places_of_word(word) {
                if (self.start..self.end).contains(&place) {
                    places |= 1 << (place - self.start);
                    self.shift[place - self.start] = shift as u8;
                }
            }
            if places != 0 {
                self.words.push((word, places));
            }
        }
    }
}

/// Writes the part's places of all strings to their place in `room`. Whether there was a number that no character has.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn write_part(
    shape: &Shape<'_>,
    part: &Part,
    parts: Parts<'_>,
    room: &mut [MaybeUninit<u8>],
) -> bool {
    let mut characters = [0; CHARACTERS_MAX];
    characters[..shape.alphabet.len()].copy_from_slice(shape.alphabet);
    let (shuffle, shift) = (load(&part.shuffle), load(&part.shift));
    let (common, characters) = (load(&part.common), load(&characters));
    let mask = _mm512_set1_epi8((1i8 << shape.width) - 1);
    let behind = _mm512_set1_epi8(shape.alphabet.len() as i8);
    let of_places = low_bits(part.end - part.start);
    let stride = shape.stride();
    let mut outside = 0;
    for (at, string) in room.chunks_exact_mut(shape.pattern.len()).enumerate() {
        let (words, packed) = parts.of(at, shape, stride);
        let string = &mut string[part.start..part.end];
        let bytes = load_some(&packed[part.bytes.0..part.bytes.1]);
        let lanes = _mm512_permutexvar_epi8(shuffle, bytes);
        let mut numbers = _mm512_multishift_epi64_epi8(shift, lanes);
        for (word, places) in &part.words {
            let word = _mm512_set1_epi64(words[*word].cast_signed());
            numbers = _mm512_mask_multishift_epi64_epi8(numbers, *places, shift, word);
        }
        let numbers = _mm512_and_si512(numbers, mask);
        outside |= _mm512_cmpge_epu8_mask(numbers, behind);
        let text = _mm512_permutexvar_epi8(numbers, characters);
        let text = _mm512_mask_blend_epi8(part.varies, common, text);
        // SAFETY: the mask names the bytes of the slice.
        unsafe { _mm512_mask_storeu_epi8(string.as_mut_ptr().cast(), of_places, text) };
    }
    outside & part.varies != 0
}

/// Whether strings have known bytes alone where they differ. "No" may be said of bytes of eight bits.
pub(super) fn are_all_known(text: &[u8], differ: &[u8], known: &[bool; 256]) -> bool {
    let known = known.map(|is_known| if is_known { u8::MAX } else { 0 });
    // SAFETY: the caller dispatches here only when AVX-512 with VBMI was detected.
    unsafe { have_all_known(text, differ, &known) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn have_all_known(text: &[u8], differ: &[u8], known: &[u8; 256]) -> bool {
    let (low, high) = registers(known);
    let varies = |places: &[u8]| {
        places.iter().rev().fold(0u64, |bits, differ| bits << 1 | u64::from(*differ != 0))
    };
    let parts: Vec<u64> = differ.chunks(LANES).map(varies).collect();
    let mut are_unknown = 0;
    for string in text.chunks_exact(differ.len()) {
        for (part, varies) in string.chunks(LANES).zip(&parts) {
            let bytes = load_some(part);
            let known = _mm512_permutex2var_epi8(low, bytes, high);
            let are_known = _mm512_test_epi8_mask(known, known) & !_mm512_movepi8_mask(bytes);
            are_unknown |= varies & !are_known;
        }
    }
    are_unknown == 0
}

/// Eight places of a string.
struct Lane {
    start: usize,
    /// The bits of numbers that are packed, and how many.
    bits: u64,
    count: u32,
}

/// Appends strings packed, as the portable loop does. Characters have seven bits.
pub(super) fn pack(text: &[u8], shape: &Shape<'_>, page: &mut Vec<u8>) {
    let of_number = (1u64 << shape.width) - 1;
    let mut lanes: Vec<Lane> = Vec::new();
    for place in shape.packed_places() {
        let (start, at) = (usize::from(*place) / 8 * 8, place % 8);
        if lanes.last().is_none_or(|lane| lane.start != start) {
            lanes.push(Lane { start, bits: 0, count: 0 });
        }
        if let Some(lane) = lanes.last_mut() {
            lane.bits |= of_number << (8 * at);
            lane.count += shape.width;
        }
    }
    let strings = text.len() / shape.pattern.len();
    let start = page.len();
    let end = start + strings * shape.stride();
    // Words are written whole.
    page.resize(end + size_of::<u64>(), 0);
    // SAFETY: the caller dispatches here only when AVX-512 with VBMI, and before it BMI2, was detected.
    unsafe { pack_strings(text, shape, &lanes, &mut page[start..]) };
    page.truncate(end);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,bmi2")]
fn pack_strings(text: &[u8], shape: &Shape<'_>, lanes: &[Lane], room: &mut [u8]) {
    let (low, high) = registers(&shape.numbers());
    let mut numbers = [0u8; LENGTH_MAX];
    let strings = text.chunks_exact(shape.pattern.len());
    for (string, at) in strings.zip((0..).step_by(shape.stride())) {
        for (part, numbers) in string.chunks(LANES).zip(numbers.chunks_exact_mut(LANES)) {
            let of_part = _mm512_permutex2var_epi8(low, load_some(part), high);
            // SAFETY: a whole register.
            unsafe { _mm512_storeu_si512(numbers.as_mut_ptr().cast(), of_part) };
        }
        let (mut word, mut filled, mut at) = (0u64, 0, at);
        for lane in lanes {
            let eight = numbers[lane.start..].first_chunk().expect("BUG: lanes are within strings");
            // With those before at most 55 bits.
            word |= _pext_u64(u64::from_le_bytes(*eight), lane.bits) << filled;
            filled += lane.count;
            room[at..at + size_of::<u64>()].copy_from_slice(&word.to_le_bytes());
            at += (filled / 8) as usize;
            (word, filled) = (word >> (filled / 8 * 8), filled % 8);
        }
    }
}

/// The first 128 bytes.
#[target_feature(enable = "avx512f")]
fn registers(bytes: &[u8; 256]) -> (__m512i, __m512i) {
    // SAFETY: two whole registers, of four.
    unsafe {
        let first = bytes.as_ptr().cast::<__m512i>();
        (_mm512_loadu_si512(first), _mm512_loadu_si512(first.add(1)))
    }
}

/// A register's bytes.
#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8; LANES]) -> __m512i {
    // SAFETY: a whole register.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// At most so many, and zeros behind them.
#[target_feature(enable = "avx512f,avx512bw")]
fn load_some(bytes: &[u8]) -> __m512i {
    // SAFETY: the mask names the bytes of the slice.
    unsafe { _mm512_maskz_loadu_epi8(low_bits(bytes.len()), bytes.as_ptr().cast()) }
}

/// So many of the low bits, at most 64.
fn low_bits(n: usize) -> u64 {
    if n == 64 { u64::MAX } else { (1 << n) - 1 }
}
