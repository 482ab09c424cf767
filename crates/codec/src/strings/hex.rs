//! Strings of one length that differ in hexadecimal digits only, two digits a byte: identifiers of traces, sessions and
//! commits, digests, addresses.
//!
//! Such digits are noise, of which a compressor makes no less than half a byte each and which it takes long for. Here a string
//! is found by its number, and looked for as it is packed.
//!
//! Layout: the length of a string (uvarint); what is at each of its places: a byte that all strings have there, or [`LOWER`] or
//! [`UPPER`]; then the digits of the strings, one string's after the other's, each string's from a byte on, the first digit of
//! a byte in its high half. A half that is left is zero.

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86;

use std::ops::Range;

use super::search::{TextFinder, Wants};
use super::wanted::Wanted;
use super::{Output, Strings};
use crate::{
    encoding::id,
    error::{DecodeError, Result},
    simd::SimdLevel,
    wire::{Reader, put_uvarint},
};

/// A place of a digit or a letter up to `f`.
const LOWER: u8 = 0;
/// The same with letters up to `F`.
const UPPER: u8 = 1;

/// Longer strings are no identifiers; two of the longest digests in use.
const LENGTH_MAX: usize = 256;

/// Strings between two looks at whether it is worth going on.
const LOOKED_AT_TOGETHER: usize = 64;

/// Of each byte the digit it is, and whether it is one of lower, and of upper case: [`IS_LOWER`], [`IS_UPPER`].
const DIGITS: [u8; 256] = {
    let mut digits = [0; 256];
    let mut digit = 0;
    while digit < 16 {
        let (lower, upper) = (CHARACTERS[0][digit], CHARACTERS[1][digit]);
        digits[lower as usize] |= digit as u8 | IS_LOWER;
        digits[upper as usize] |= digit as u8 | IS_UPPER;
        digit += 1;
    }
    digits
};
const IS_LOWER: u8 = 0x10;
const IS_UPPER: u8 = 0x20;

/// The characters of digits, of lower and of upper case.
const CHARACTERS: [[u8; 16]; 2] = [*b"0123456789abcdef", *b"0123456789ABCDEF"];

/// What [`encode`] made.
pub(super) struct Encoded {
    pub(super) page: Vec<u8>,
    /// Whether there are letters among the digits, which numbers do not have.
    pub(super) has_letters: bool,
}

/// A page, if strings are such ones and differ.
pub(super) fn encode(strings: Strings<'_>) -> Option<Encoded> {
    let (pattern, has_letters) = pattern_of(strings)?;
    let pattern = Pattern::new(&pattern).ok()?;
    let mut page = vec![id::STRINGS_HEX];
    put_uvarint(&mut page, pattern.bytes.len() as u64);
    page.extend_from_slice(pattern.bytes);
    page.reserve(strings.len() * pattern.stride());
    let digit = |string: &[u8], at: &u16| DIGITS[string[usize::from(*at)] as usize] & 15;
    for string in strings.iter() {
        let (pairs, rest) = pattern.places.as_chunks::<2>();
        page.extend(pairs.iter().map(|[high, low]| digit(string, high) << 4 | digit(string, low)));
        page.extend(rest.iter().map(|high| digit(string, high) << 4));
    }
    Some(Encoded { page, has_letters })
}

/// What is at each place of all strings, and whether there are letters among the digits.
fn pattern_of(strings: Strings<'_>) -> Option<(Vec<u8>, bool)> {
    let first = strings.iter().next()?;
    let length = first.len();
    if !(1..=LENGTH_MAX).contains(&length)
        || strings.concatenated().len() != length * strings.len()
        || strings.iter().any(|string| string.len() != length)
    {
        return None;
    }
    // Of each place in which bits strings differ from the first one, and of which cases all of them are.
    let (mut differ, mut are) = ([0u8; LENGTH_MAX], [IS_LOWER | IS_UPPER; LENGTH_MAX]);
    let (differ, are) = (&mut differ[..length], &mut are[..length]);
    for together in strings.concatenated().chunks(length * LOOKED_AT_TOGETHER) {
        for string in together.chunks_exact(length) {
            for (((differ, are), byte), first) in
                differ.iter_mut().zip(&mut *are).zip(string).zip(first)
            {
                *differ |= byte ^ first;
                *are &= DIGITS[*byte as usize];
            }
        }
        if differ.iter().zip(&*are).any(|(differ, are)| *differ != 0 && *are == 0) {
            return None;
        }
    }
    let place = |((differ, are), byte): ((&u8, &u8), &u8)| match (*differ, *are) {
        (0, _) => (*byte > UPPER).then_some(*byte),
        (_, are) if are & IS_LOWER != 0 => Some(LOWER),
        _ => Some(UPPER),
    };
    let pattern = differ.iter().zip(&*are).zip(first).map(place).collect::<Option<Vec<u8>>>()?;
    let is_digits = |(differ, are): (&u8, &u8)| *differ == 0 || *are == IS_LOWER | IS_UPPER;
    let has_letters = !differ.iter().zip(&*are).all(is_digits);
    Some((pattern, has_letters))
}

/// What strings have in common, and where they differ.
struct Pattern<'a> {
    bytes: &'a [u8],
    /// The places of digits.
    places: Vec<u16>,
}

impl<'a> Pattern<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self> {
        let places = (0u16..).zip(bytes).filter(|(_, byte)| **byte <= UPPER).map(|(at, _)| at);
        let places: Vec<u16> = places.collect();
        if places.is_empty() {
            return Err(DecodeError::Corrupt("a page of digits without any"));
        }
        Ok(Self { bytes, places })
    }

    /// Bytes of the digits of a string.
    fn stride(&self) -> usize {
        self.places.len().div_ceil(2)
    }

    /// The digits of strings that have a text at a place, if strings of the pattern can.
    fn pack(&self, text: &[u8], at: usize) -> Option<Digits> {
        let fits = |(byte, pattern): (&u8, &u8)| match *pattern {
            LOWER => DIGITS[*byte as usize] & IS_LOWER != 0,
            UPPER => DIGITS[*byte as usize] & IS_UPPER != 0,
            pattern => *byte == pattern,
        };
        if !text.iter().zip(self.bytes.get(at..at + text.len())?).all(fits) {
            return None;
        }
        let mut digits = Digits { values: vec![0; self.stride()], known: vec![0; self.stride()] };
        for (digit, place) in self.places.iter().enumerate() {
            let Some(byte) = usize::from(*place).checked_sub(at).and_then(|at| text.get(at)) else {
                continue;
            };
            let half = 4 - digit % 2 * 4;
            digits.values[digit / 2] |= (DIGITS[*byte as usize] & 15) << half;
            digits.known[digit / 2] |= 15 << half;
        }
        Some(digits)
    }
}

/// Digits that are looked for, packed.
#[derive(Debug, PartialEq)]
struct Digits {
    values: Vec<u8>,
    /// The bits of those that are; the others may be any.
    known: Vec<u8>,
}

/// A page that was opened.
struct Page<'a> {
    pattern: Pattern<'a>,
    /// The digits of all strings.
    packed: &'a [u8],
}

impl<'a> Page<'a> {
    fn read(mut reader: Reader<'a>, count: usize) -> Result<Self> {
        let length = reader.uvarint()?;
        if length > LENGTH_MAX as u64 {
            return Err(DecodeError::Corrupt("length of strings of digits"));
        }
        let pattern = Pattern::new(reader.take(length as usize)?)?;
        let packed = reader.take(count * pattern.stride())?;
        reader.finish()?;
        Ok(Self { pattern, packed })
    }

    /// The digits of some strings.
    fn digits_of(&self, strings: Range<usize>) -> Result<&'a [u8]> {
        let stride = self.pattern.stride();
        let digits = &self.packed[strings.start * stride..strings.end * stride];
        let has_left = !self.pattern.places.len().is_multiple_of(2);
        if has_left && digits.chunks_exact(stride).any(|of_one| of_one[stride - 1] & 15 != 0) {
            return Err(DecodeError::Corrupt("a digit more than strings have"));
        }
        Ok(digits)
    }
}

/// Decodes the wanted ones of `count` strings.
pub(super) fn decode(
    reader: Reader<'_>,
    count: usize,
    wanted: &Wanted<'_>,
    output: &mut Output<'_>,
) -> Result<()> {
    let page = Page::read(reader, count)?;
    let runs = wanted.runs();
    let (length, had) = (page.pattern.bytes.len(), output.bytes.len());
    let n_wanted = runs.iter().map(Range::len).sum::<usize>();
    output.check(length as u64 * n_wanted as u64)?;
    let place = |string: usize| ((had + string * length) as u32, length as u32);
    output.places.extend((0..n_wanted).map(place));
    output.bytes.reserve(length * n_wanted);
    for run in runs {
        append_at(SimdLevel::detect(), &page.pattern, page.digits_of(run)?, output.bytes);
    }
    Ok(())
}

/// Appends strings.
fn append_at(level: SimdLevel, pattern: &Pattern<'_>, packed: &[u8], out: &mut Vec<u8>) {
    #[cfg(target_arch = "x86_64")]
    if level == SimdLevel::Avx512 && pattern.bytes.len() <= x86::LENGTH_MAX {
        x86::append(pattern, packed, out);
        return;
    }
    let _ = level;
    for packed in packed.chunks_exact(pattern.stride()) {
        let start = out.len();
        out.extend_from_slice(pattern.bytes);
        for (digit, place) in pattern.places.iter().enumerate() {
            let value = packed[digit / 2] >> (4 - digit % 2 * 4) & 15;
            let character = &mut out[start + usize::from(*place)];
            *character = CHARACTERS[usize::from(*character)][usize::from(value)];
        }
    }
}

/// A bit for each string of the range whether it is wanted.
pub(super) fn search(
    reader: Reader<'_>,
    count: usize,
    range: Range<usize>,
    finder: &TextFinder<'_>,
) -> Result<Vec<u64>> {
    // Where a text of a length is in strings of another.
    let place: fn(usize, usize) -> Option<usize> = match finder.wants {
        Wants::Being => |text, string| (text == string).then_some(0),
        Wants::Starting => |_, _| Some(0),
        Wants::Ending => |text, string| string.checked_sub(text),
        // Anywhere.
        Wants::Having | Wants::Matching(_) => return search_text(reader, count, range, finder),
    };
    let page = Page::read(reader, count)?;
    let length = page.pattern.bytes.len();
    let mut bits = vec![0u64; range.len().div_ceil(64)];
    let packed = page.digits_of(range)?;
    for text in finder.texts {
        if let Some(wanted) = place(text.len(), length).and_then(|at| page.pattern.pack(text, at)) {
            find(packed, &wanted, &mut bits);
        }
    }
    Ok(bits)
}

/// The same where strings have to be written to tell.
fn search_text(
    reader: Reader<'_>,
    count: usize,
    range: Range<usize>,
    finder: &TextFinder<'_>,
) -> Result<Vec<u64>> {
    let page = Page::read(reader, count)?;
    let (length, stride) = (page.pattern.bytes.len(), page.pattern.stride());
    let mut text = Vec::new();
    let mut bits = Vec::with_capacity(range.len().div_ceil(64));
    for digits in page.digits_of(range)?.chunks(stride * WRITTEN_TOGETHER) {
        text.clear();
        append_at(SimdLevel::detect(), &page.pattern, digits, &mut text);
        bits.extend(text.chunks(length * 64).map(|strings| {
            // Most texts are in none of them, nor where two meet.
            if !(finder.has_text)(strings) {
                return 0;
            }
            let strings = strings.chunks_exact(length).rev();
            strings.fold(0, |bits, string| bits << 1 | u64::from(finder.wants(string)))
        }));
    }
    Ok(bits)
}

/// Strings that are written to be looked at, a multiple of 64: few enough for a core's cache.
const WRITTEN_TOGETHER: usize = 256;

/// Sets the bits of those of some strings' digits that are `wanted`.
fn find(packed: &[u8], Digits { values, known }: &Digits, bits: &mut [u64]) {
    let stride = values.len();
    // Eight bytes of a string's digits mostly tell: the first ones, or the last.
    let from = if known[0] == 0 { stride.saturating_sub(8) } else { 0 };
    let (value, mask) = (word(&values[from..]), word(&known[from..]));
    let strings = packed.len() / stride;
    for (at, bits) in bits.iter_mut().enumerate() {
        for string in at * 64..strings.min(at * 64 + 64) {
            let digits = &packed[string * stride..];
            if word(&digits[from..]) & mask == value {
                let is_it = digits.iter().zip(known).zip(values).all(|((d, k), v)| d & k == *v);
                *bits |= u64::from(is_it) << (string % 64);
            }
        }
    }
}

/// The first eight of some bytes; zeros behind them if they are fewer.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Gathered;
    use super::*;

    fn gathered(strings: &[String]) -> Gathered {
        let mut all = Gathered::default();
        strings.iter().for_each(|string| all.push(string.as_bytes()));
        all
    }

    /// What stands behind the encoding's id.
    fn page_of(strings: &[String]) -> Option<Vec<u8>> {
        encode(gathered(strings).strings()).map(|encoded| encoded.page[1..].to_vec())
    }

    proptest! {
        #[test]
        fn every_level_writes_what_was_packed(
            // What is common, and digits of lower or of upper case.
            places in prop::collection::vec((0u8..4, "[!-~]"), 1..90),
            digits in prop::collection::vec(any::<[u64; 6]>(), 2..40),
        ) {
            let character = |(at, (kind, common)): (usize, &(u8, String)), digits: &[u64; 6]| {
                let digit = digits[at / 16] >> (at % 16 * 4) & 15;
                match kind {
                    0 | 1 => format!("{digit:x}"),
                    2 => format!("{digit:X}"),
                    _ => common.clone(),
                }
            };
            let string = |digits| places.iter().enumerate().map(|place| character(place, digits)).collect();
            let strings: Vec<String> = digits.iter().map(string).collect();
            let Some(page) = page_of(&strings) else {
                prop_assert!(strings.windows(2).all(|pair| pair[0] == pair[1]));
                return Ok(());
            };
            let page = Page::read(Reader::new(&page), strings.len()).unwrap();
            for level in SimdLevel::available() {
                let mut out = b"before".to_vec();
                append_at(level, &page.pattern, page.packed, &mut out);
                let expected = format!("before{}", strings.concat());
                prop_assert_eq!(str::from_utf8(&out).unwrap(), expected, "{:?}", level);
            }
            for string in &strings {
                // All of it, its beginning and its end.
                for part in [0..string.len(), 0..string.len() / 3, string.len() / 2..string.len()] {
                    let mut bits = [0];
                    let text = &string[part.clone()];
                    let wanted = page.pattern.pack(text.as_bytes(), part.start).unwrap();
                    find(page.packed, &wanted, &mut bits);
                    let are = strings.iter().map(|other| &other[part.clone()] == text);
                    let expected = are.rev().fold(0, |bits, is| bits << 1 | u64::from(is));
                    prop_assert_eq!(bits[0], expected, "{:?}", part);
                }
            }
        }
    }

    #[test]
    fn strings_of_other_kinds_are_refused() {
        let is_made = |strings: &[&str]| {
            page_of(&strings.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()).is_some()
        };
        assert!(is_made(&["id 0a", "id b9"]));
        assert!(is_made(&["id 0A", "id B9"]));
        assert!(is_made(&["id 0a9", "id b9F"]), "another case at another place");
        assert!(!is_made(&["id a9", "id B9"]), "both cases at one place");
        assert!(!is_made(&["id 0a", "id 0ab"]), "of other lengths");
        assert!(!is_made(&["id 0a", "ie 0g"]), "other letters");
        assert!(!is_made(&["\0 0a", "\0 0b"]), "which is what a place of digits looks like");
        assert!(!is_made(&["ab", "ab"]), "which do not differ");
        assert!(!is_made(&["", ""]));
    }

    #[test]
    fn texts_that_are_not_of_the_pattern_are_not_found() {
        let pattern = Pattern::new(b"id-\0\0\x01").unwrap();
        let all = Digits { values: vec![0xa9, 0xf0], known: vec![0xff, 0xf0] };
        assert_eq!(pattern.pack(b"id-a9F", 0), Some(all));
        for text in ["id-a9f", "id-A9F", "id_a9F", "id-a9F0", "id-g9F"] {
            assert_eq!(pattern.pack(text.as_bytes(), 0), None, "{text:?}");
        }
        let end = Digits { values: vec![0x09, 0xf0], known: vec![0x0f, 0xf0] };
        assert_eq!(pattern.pack(b"9F", 4), Some(end));
        assert_eq!(pattern.pack(b"9F", 5), None);
    }

    #[test]
    fn damage_is_told() {
        let page = page_of(&["a0".into(), "a1".into(), "a2".into()]).unwrap();
        assert_eq!(page, [2, b'a', LOWER, 0x00, 0x10, 0x20]);
        let read = |page: &[u8], count| Page::read(Reader::new(page), count).map(|_| ());
        assert_eq!(read(&page, 3), Ok(()));
        let damaged = [2, b'a', LOWER, 0x00, 0x11, 0x20];
        let damaged = Page::read(Reader::new(&damaged), 3).unwrap();
        assert!(matches!(damaged.digits_of(0..2), Err(DecodeError::Corrupt(_))));
        assert_eq!(damaged.digits_of(2..3), Ok(&[0x20][..]));
        assert_eq!(read(&page, 2), Err(DecodeError::TrailingBytes(1)));
        assert_eq!(read(&page, 4), Err(DecodeError::Truncated { needed: 1 }));
        assert!(matches!(read(&[1, b'a'], 3), Err(DecodeError::Corrupt(_))));
        assert!(matches!(read(&[0], 3), Err(DecodeError::Corrupt(_))));
        assert!(matches!(read(&[0x81, 2, 0], 3), Err(DecodeError::Corrupt(_))));
    }
}
