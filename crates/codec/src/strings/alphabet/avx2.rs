//! Writing strings of an alphabet with AVX2, 32 places of a string at once.
//!
//! Sixteen places that follow one another have at most 96 bits: a byte shuffle brings the two bytes around each number into a lane of 16
//! bits, a multiplication moves the number to the lane's highest bits, a shift to its lowest. The number's character is looked up
//! sixteen characters at a time. Numbers that heads have come out of their words in the same way.

use std::arch::x86_64::{
    __m128i, __m256i, _mm_cvtsi32_si128, _mm_loadu_si128, _mm_set_epi64x, _mm256_and_si256,
    _mm256_blendv_epi8, _mm256_broadcastsi128_si256, _mm256_cmpgt_epi8, _mm256_loadu_si256,
    _mm256_mullo_epi16, _mm256_or_si256, _mm256_packus_epi16, _mm256_permute4x64_epi64,
    _mm256_set1_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_slli_epi16,
    _mm256_srl_epi16, _mm256_storeu_si256, _mm256_testz_si256,
};

use super::{CHARACTERS_MAX, OUTSIDE, Parts, Shape, VARIES};
use crate::error::Result;

/// Places, and bytes of a register.
const LANES: usize = 32;
/// Places whose numbers are shifted together.
const HALF: usize = LANES / 2;
/// Bytes of a load.
const LOADED: usize = 16;
/// Says of a byte of a lane that it is none of the load's.
const NOTHING: u8 = 0x80;

/// Appends strings, as the portable loop does; those of a damaged page in vain.
pub(super) fn append(
    shape: &Shape<'_>,
    layout: &Layout,
    parts: Parts<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let added = parts.strings * shape.pattern.len();
    // Registers are written whole: what is too many is written over, or behind the last string.
    out.reserve(added + LANES);
    // SAFETY: the caller dispatches here only when AVX2 was detected; there is room for the strings and a register.
    let are_inside = unsafe {
        let room = out.as_mut_ptr().add(out.len());
        write_strings(shape, layout, parts, room)
    };
    if !are_inside {
        return Err(OUTSIDE);
    }
    // SAFETY: there is room for so many, and all of them were written.
    unsafe { out.set_len(out.len() + added) }
    Ok(())
}

/// Where numbers come from.
#[derive(Clone, Copy)]
enum From {
    /// A word of the head.
    Word(usize),
    /// A packed string, from this byte on.
    Packed(usize),
}

/// What brings numbers of one load to the places of half a register, two bytes each.
struct Source {
    from: From,
    shuffle: [u8; LANES],
}

/// Some places of all strings, as many as half a register has bytes.
struct Half {
    sources: Vec<Source>,
    /// Of each place what moves its number to the highest bits.
    factors: [u16; HALF],
}

/// Some places, as many as a register has bytes.
struct Places {
    halves: [Half; 2],
    common: [u8; LANES],
    varies: [u8; LANES],
}

/// Where the bits of a place's number begin: in a word of the head, or in what is packed.
#[derive(Clone, Copy)]
struct Number {
    word: Option<usize>,
    bit: usize,
}

/// All places of a shape.
pub(super) struct Layout(Vec<Places>);

impl Layout {
    pub(super) fn new(shape: &Shape<'_>) -> Self {
        // By place; none where all strings have the same.
        let mut numbers: Vec<Option<Number>> = vec![None; shape.pattern.len()];
        for word in 0..shape.head_words {
            for (place, shift) in shape.places_of_word(word) {
                numbers[place] = Some(Number { word: Some(word), bit: shift as usize });
            }
        }
        for (place, bit) in shape.packed_places().iter().zip((0..).step_by(shape.width as usize)) {
            numbers[usize::from(*place)] = Some(Number { word: None, bit });
        }
        let places = |(pattern, numbers): (&[u8], &[Option<Number>])| {
            let (low, high) = numbers.split_at(numbers.len().min(HALF));
            let mut places = Places {
                halves: [Half::new(low, shape.width), Half::new(high, shape.width)],
                common: [0; LANES],
                varies: [0; LANES],
            };
            places.common[..pattern.len()].copy_from_slice(pattern);
            for (varies, byte) in places.varies.iter_mut().zip(pattern) {
                *varies = if *byte == VARIES { u8::MAX } else { 0 };
            }
            places
        };
        Self(shape.pattern.chunks(LANES).zip(numbers.chunks(LANES)).map(places).collect())
    }
}

impl Half {
    fn new(numbers: &[Option<Number>], width: u32) -> Self {
        let mut half = Self { sources: Vec::new(), factors: [0; HALF] };
        let there =
            numbers.iter().enumerate().filter_map(|(place, number)| Some((place, (*number)?)));
        for (place, Number { word, bit }) in there {
            let source = half.source(word, bit / 8);
            let first = match source.from {
                From::Word(_) => 0,
                From::Packed(byte) => byte,
            };
            let byte = (bit / 8 - first) as u8;
            source.shuffle[2 * place] = byte;
            source.shuffle[2 * place + 1] =
                if usize::from(byte) + 1 < LOADED { byte + 1 } else { NOTHING };
            half.factors[place] = 1 << (u16::BITS - width - bit as u32 % 8);
        }
        half
    }

    /// The source of a word's numbers, or of packed ones; if there is none, one that begins with this byte.
    fn source(&mut self, word: Option<usize>, byte: usize) -> &mut Source {
        let is_it = |source: &Source| match source.from {
            From::Word(of) => word == Some(of),
            From::Packed(_) => word.is_none(),
        };
        let at = self.sources.iter().position(is_it).unwrap_or_else(|| {
            let from = word.map_or(From::Packed(byte), From::Word);
            self.sources.push(Source { from, shuffle: [NOTHING; LANES] });
            self.sources.len() - 1
        });
        &mut self.sources[at]
    }

    /// The numbers at the places, in 16 bits each.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn numbers(&self, words: &[u64], packed: &[u8], shift: __m128i) -> __m256i {
        let mut all = _mm256_setzero_si256();
        for Source { from, shuffle } in &self.sources {
            let loaded = match *from {
                From::Word(word) => _mm_set_epi64x(0, words[word].cast_signed()),
                From::Packed(byte) => load_some(&packed[byte..]),
            };
            let both = _mm256_broadcastsi128_si256(loaded);
            all = _mm256_or_si256(all, _mm256_shuffle_epi8(both, load(shuffle)));
        }
        // SAFETY: a whole register.
        let factors = unsafe { _mm256_loadu_si256(self.factors.as_ptr().cast()) };
        _mm256_srl_epi16(_mm256_mullo_epi16(all, factors), shift)
    }
}

/// Writes strings one behind the other. Whether all numbers have characters.
///
/// # Safety
/// There is room for the strings and a register more.
#[target_feature(enable = "avx2")]
unsafe fn write_strings(
    shape: &Shape<'_>,
    layout: &Layout,
    parts: Parts<'_>,
    room: *mut u8,
) -> bool {
    let mut characters = [0; CHARACTERS_MAX];
    characters[..shape.alphabet.len()].copy_from_slice(shape.alphabet);
    let alphabet = Alphabet::new(&characters, shape.alphabet.len());
    let shift = _mm_cvtsi32_si128((u16::BITS - shape.width) as i32);
    let stride = shape.stride();
    let last = _mm256_set1_epi8(shape.alphabet.len() as i8 - 1);
    let mut outside = _mm256_setzero_si256();
    for string in 0..parts.strings {
        let words = &parts.words[string * shape.head_words..][..shape.head_words];
        // With what is behind it, which loads may take in.
        let packed = &parts.packed[string * stride..];
        // SAFETY: there is room for the strings up to this.
        let place = unsafe { room.add(string * shape.pattern.len()) };
        for (Places { halves: [low, high], common, varies }, at) in
            layout.0.iter().zip((0..).step_by(LANES))
        {
            let low = low.numbers(words, packed, shift);
            let high = high.numbers(words, packed, shift);
            let numbers = _mm256_packus_epi16(low, high);
            let numbers = _mm256_permute4x64_epi64::<0b11_01_10_00>(numbers);
            let varies = load(varies);
            let beyond = _mm256_and_si256(_mm256_cmpgt_epi8(numbers, last), varies);
            outside = _mm256_or_si256(outside, beyond);
            let text = _mm256_blendv_epi8(load(common), alphabet.characters(numbers), varies);
            // SAFETY: at most a register behind the string's end.
            unsafe { _mm256_storeu_si256(place.add(at).cast(), text) };
        }
    }
    _mm256_testz_si256(outside, outside) == 1
}

/// The characters of numbers.
struct Alphabet {
    /// Sixteen each, twice.
    tables: [__m256i; CHARACTERS_MAX / LOADED],
    len: usize,
}

impl Alphabet {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(characters: &[u8; CHARACTERS_MAX], len: usize) -> Self {
        let table = |at: usize| _mm256_broadcastsi128_si256(load_some(&characters[LOADED * at..]));
        Self { tables: [table(0), table(1), table(2), table(3)], len }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn characters(&self, numbers: __m256i) -> __m256i {
        let [a, b, c, d] = self.tables;
        // The lowest four bits choose; the two above them move to where a blend looks.
        let low = _mm256_shuffle_epi8(a, numbers);
        if self.len <= LOADED {
            return low;
        }
        let is_odd = _mm256_slli_epi16::<3>(numbers);
        let low = _mm256_blendv_epi8(low, _mm256_shuffle_epi8(b, numbers), is_odd);
        if self.len <= 2 * LOADED {
            return low;
        }
        let (c, d) = (_mm256_shuffle_epi8(c, numbers), _mm256_shuffle_epi8(d, numbers));
        let high = _mm256_blendv_epi8(c, d, is_odd);
        _mm256_blendv_epi8(low, high, _mm256_slli_epi16::<2>(numbers))
    }
}

/// A register's bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; LANES]) -> __m256i {
    // SAFETY: a whole register.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// The first sixteen of some bytes; zeros behind them if they are fewer.
#[inline]
#[target_feature(enable = "avx2")]
fn load_some(bytes: &[u8]) -> __m128i {
    if let Some(whole) = bytes.first_chunk::<LOADED>() {
        // SAFETY: a whole register.
        return unsafe { _mm_loadu_si128(whole.as_ptr().cast()) };
    }
    let mut last = [0; LOADED];
    last[..bytes.len()].copy_from_slice(bytes);
    // SAFETY: as above.
    unsafe { _mm_loadu_si128(last.as_ptr().cast()) }
}
