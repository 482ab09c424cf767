//! Drives every decoder and encoder with arbitrary bytes: a fuzz target is one call.

use std::ops::Range;

use crate::kernels::Comparison;
use crate::{
    COMPARED_ROWS_MAX, ComparedBits, DecodeError, Effort, ExceptionPlaces, Marks, NumbersOut,
    PageComparison, PagePart, RESTART_ROWS, TextFinder, TextPlace, Wants, Waypoint, Waypoints,
    compare_page_f64, compare_page_i64, compare_pages_i64, decode_bool, decode_bool_range,
    decode_f64, decode_f64_from, decode_f64_range, decode_i64, decode_i64_from, decode_i64_range,
    decode_selected_strings, decode_strings, decode_strings_range, decode_together, decode_u64,
    decode_u64_range, decode_validity, decode_validity_range, encode_bool, encode_f64, encode_i64,
    encode_strings, encode_u64, encode_validity, float_at, integer_at, integer_from, restarts_i64,
    search_strings,
};

/// Most text that a page of strings may decode to here.
const TEXT_BYTES_MAX: usize = 1 << 16;

/// Decodes `data` as a page of every type; its first bytes pick the count and the range.
///
/// Decoders may refuse; they may not panic, and they may not allocate out of proportion to the
/// count. Whatever is accepted must have the number of values asked for, and a range must be what
/// the whole page has there.
#[doc(hidden)]
pub fn fuzz_decode(data: &[u8]) {
    let Some((&[count_low, count_high, from, to], page)) = data.split_first_chunk::<4>() else {
        return;
    };
    let count = usize::from(u16::from_le_bytes([count_low, count_high]));
    let from = count * usize::from(from) / 255;
    let to = count * usize::from(to) / 255;
    let range = from.min(to)..from.max(to);
    decode_numbers(page, count, &range);
    decode_bits(page, count, &range);
    decode_text(page, count, &range);
}

/// Runs a decoder on an empty buffer.
fn decoded<T>(
    decode: impl FnOnce(&mut Vec<T>) -> Result<(), DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let mut out = Vec::new();
    decode(&mut out).map(|()| out)
}

/// What a page has in `range`, decoded alone, must be what is there when it is decoded whole.
fn check_range<T: PartialEq + std::fmt::Debug>(
    whole: &Result<Vec<T>, DecodeError>,
    part: &Result<Vec<T>, DecodeError>,
    count: usize,
    range: &Range<usize>,
) {
    if let Ok(part) = part {
        assert_eq!(part.len(), range.len(), "BUG: wrong number of values in a range");
    }
    if let Ok(whole) = whole {
        assert_eq!(whole.len(), count, "BUG: wrong number of values");
        let part = part.as_ref().expect("BUG: a good page has a bad range");
        assert_eq!(part, &whole[range.clone()], "BUG: a range differs from the whole");
    }
}

/// A page that is compared as it is packed must say what its values do.
fn compare_integers(
    page: &[u8],
    count: usize,
    range: &Range<usize>,
    whole: &Result<Vec<i64>, DecodeError>,
) {
    let scalar = whole.as_ref().ok().and_then(|whole| whole.get(range.start)).map_or(0, |v| *v);
    let less = compare_page_i64(page, count, Comparison::Less, scalar);
    let same = compare_pages_i64(page, page, count, Comparison::Equal);
    let Ok(whole) = whole else { return };
    if let Some(bits) = less.expect("BUG: a good page is not compared") {
        let holds = |(at, value): (usize, &i64)| bit(&bits, at) == (*value < scalar);
        assert!(whole.iter().enumerate().all(holds), "BUG: a page compares as others do");
    }
    if let Some(mut compared) = PageComparison::of_i64(page, count, Comparison::Less, scalar) {
        let rows = range.start / 8 * 8..range.end.min(range.start / 8 * 8 + COMPARED_ROWS_MAX);
        if rows.start < rows.end {
            let bits = compared.compare(rows.clone()).expect("BUG: a good page is not compared");
            let holds = |(at, value): (usize, &i64)| bit(&bits, at) == (*value < scalar);
            let are = whole[rows].iter().enumerate().all(holds);
            assert!(are, "BUG: rows of a page compare as others do");
        }
    }
    if let Some(bits) = same.expect("BUG: a good page is not compared") {
        assert!((0..count).all(|at| bit(&bits, at)), "BUG: a page differs from itself");
    }
}

/// The same of floats, whose bits these are.
fn compare_floats(page: &[u8], count: usize, whole: &Result<Vec<u64>, DecodeError>) {
    let scalar = count as f64 / 8.0;
    let less = compare_page_f64(page, count, Comparison::Less, scalar);
    let Ok(whole) = whole else { return };
    if let Some(bits) = less.expect("BUG: a good page is not compared") {
        let is_less = |value: &u64| f64::from_bits(*value) < scalar;
        let holds = |(at, value): (usize, &u64)| bit(&bits, at) == is_less(value);
        assert!(whole.iter().enumerate().all(holds), "BUG: a page compares as others do");
    }
}

fn bit(bits: &ComparedBits, at: usize) -> bool {
    bits[at / 64] >> (at % 64) & 1 == 1
}

fn decode_numbers(page: &[u8], count: usize, range: &Range<usize>) {
    let whole = decoded(|out| decode_i64(page, count, out));
    let part = decoded(|out| decode_i64_range(page, count, range.clone(), out));
    check_range(&whole, &part, count, range);

    let places = ExceptionPlaces::of_i64(page, count);
    let exceptions_at = |row| places.as_ref().map(|places| places.before(row)).unwrap_or_default();
    if let (Ok(whole), Some(row)) = (&whole, range.clone().next()) {
        let found = integer_at(page, count, row).expect("BUG: a good page has a bad row");
        assert_eq!(found, whole[row].cast_unsigned(), "BUG: a row differs from the whole");
        for before in [row / 2, row].map(|row| row / 8 * 8) {
            let distance = whole[before].wrapping_sub(whole[0]);
            let waypoint = Waypoint { row: before, distance, exceptions: exceptions_at(before) };
            let found = integer_from(page, count, row, waypoint);
            let found = found.expect("BUG: a good page has a bad row");
            assert_eq!(found, whole[row].cast_unsigned(), "BUG: a row differs from a waypoint on");
            let part = decoded(|out| decode_i64_from(page, count, range.clone(), waypoint, out));
            let part = part.expect("BUG: a good page has a bad range");
            assert_eq!(part, &whole[range.clone()], "BUG: a range differs from a waypoint on");
        }
    } else {
        // Of a damaged page the row may be good.
        let _ = integer_at(page, count, range.start);
        let row = range.start / 2 / 8 * 8;
        let waypoint = Waypoint { row, distance: 1, exceptions: exceptions_at(row) };
        let _ = decoded(|out| decode_i64_from(page, count, range.clone(), waypoint, out));
    }

    if let Some(kept) = Waypoints::of_i64(page, count) {
        let from = kept.before(range.start);
        let part = decoded(|out| decode_i64_from(page, count, range.clone(), from, out));
        check_range(&whole, &part, count, range);
    }

    if let (Some(restarts), Ok(whole)) = (restarts_i64(page, count), &whole) {
        let rows: Vec<i64> = whole.iter().step_by(RESTART_ROWS).copied().collect();
        assert_eq!(restarts, rows, "BUG: a restart differs from the whole");
    }

    compare_integers(page, count, range, &whole);

    let whole = decoded(|out| decode_u64(page, count, out));
    let part = decoded(|out| decode_u64_range(page, count, range.clone(), out));
    check_range(&whole, &part, count, range);

    let (mut first, mut second, mut passed) = (Vec::new(), Vec::new(), Vec::new());
    let mut parts = [(range.clone(), &mut first), (0..count, &mut second)]
        .map(|(range, out)| PagePart::new(page, count, range, NumbersOut::U64(out)));
    parts[1].passed = Some(&mut passed);
    let together = decode_together(&mut parts);
    assert_eq!(together.is_ok(), whole.is_ok(), "BUG: a page depends on what is beside it");
    check_range(&whole, &together.map(|()| first).map_err(|(_, e)| e), count, range);

    // Marks of a damaged page lead somewhere or nowhere.
    let marks = Marks::new(count);
    marks.add(&passed);
    let part = decoded(|out| {
        let mut part = PagePart::new(page, count, range.clone(), NumbersOut::U64(out));
        part.from = marks.before(range.start);
        decode_together(&mut [part]).map_err(|(_, e)| e)
    });
    check_range(&whole, &part, count, range);

    let bits = |values: Vec<f64>| values.into_iter().map(f64::to_bits).collect::<Vec<_>>();
    let whole = decoded(|out| decode_f64(page, count, out)).map(bits);
    let part = decoded(|out| decode_f64_range(page, count, range.clone(), out)).map(bits);
    check_range(&whole, &part, count, range);
    if let Some(kept) = Waypoints::of_f64(page, count) {
        let from = kept.before(range.start);
        let part = decoded(|out| decode_f64_from(page, count, range.clone(), from, out)).map(bits);
        check_range(&whole, &part, count, range);
    }
    compare_floats(page, count, &whole);
    let found = float_at(page, count, range.start);
    if let (Ok(whole), Some(row)) = (&whole, range.clone().next()) {
        assert_eq!(found, Ok(whole[row]), "BUG: a row differs from the whole");
    }
}

fn decode_bits(page: &[u8], count: usize, range: &Range<usize>) {
    // One byte a bit, so that ranges need no shifting.
    let spread = |words: Vec<u64>, len: usize| {
        assert_eq!(words.len(), len.div_ceil(64), "BUG: wrong number of words");
        let past_end =
            words.last().is_some_and(|w| !len.is_multiple_of(64) && w >> (len % 64) != 0);
        assert!(!past_end, "BUG: bits behind the last one");
        (0..len).map(|at| words[at / 64] >> (at % 64) & 1 == 1).collect::<Vec<_>>()
    };
    let whole = decoded(|out| decode_bool(page, count, out)).map(|w| spread(w, count));
    let part = decoded(|out| decode_bool_range(page, count, range.clone(), out));
    check_range(&whole, &part.map(|w| spread(w, range.len())), count, range);

    let whole = decoded(|out| decode_validity(page, count, out)).map(|w| spread(w, count));
    let part = decoded(|out| decode_validity_range(page, count, range.clone(), out));
    check_range(&whole, &part.map(|w| spread(w, range.len())), count, range);
}

fn string_at((start, len): TextPlace, bytes: &[u8]) -> &[u8] {
    &bytes[start as usize..start as usize + len as usize]
}

fn decode_text(page: &[u8], count: usize, range: &Range<usize>) {
    let spread = |places: &[TextPlace], bytes: &[u8]| {
        assert!(bytes.len() <= TEXT_BYTES_MAX, "BUG: limit exceeded");
        assert!(bytes.is_empty() || !places.is_empty(), "BUG: loose text");
        places.iter().map(|place| string_at(*place, bytes).to_vec()).collect::<Vec<_>>()
    };
    let (mut places, mut bytes) = (Vec::new(), Vec::new());
    let whole = decode_strings(page, count, TEXT_BYTES_MAX, &mut places, &mut bytes);
    let whole = whole.map(|()| spread(&places, &bytes));
    let (mut places, mut bytes) = (Vec::new(), Vec::new());
    let part =
        decode_strings_range(page, count, range.clone(), TEXT_BYTES_MAX, &mut places, &mut bytes);
    check_range(&whole, &part.map(|()| spread(&places, &bytes)), count, range);
    let selected = vec![0x5555_0f0f_ffff_0010; range.len().div_ceil(64)];
    let (mut places, mut bytes) = (Vec::new(), Vec::new());
    let wanted = (range.clone(), &selected[..]);
    let some =
        decode_selected_strings(page, count, wanted, TEXT_BYTES_MAX, &mut places, &mut bytes);
    if let (Ok(whole), Ok(())) = (&whole, some) {
        let is_wanted = |row: &usize| selected[row / 64] >> (row % 64) & 1 == 1;
        let strings = (0..range.len()).filter(is_wanted).map(|row| &whole[range.start + row]);
        assert!(strings.eq(&spread(&places, &bytes)), "BUG: other strings than were wanted");
    }
    if let Ok(whole) = &whole {
        let wanted = whole.get(range.start).map_or(&b"a"[..], |string| &string[string.len() / 2..]);
        search_text(page, &whole[range.clone()], count, range, wanted);
    } else {
        search_text(page, &[], count, range, b"a");
    }
}

/// What a page says of a text must be what its strings say; they are none if it is damaged.
fn search_text(page: &[u8], strings: &[Vec<u8>], count: usize, range: &Range<usize>, text: &[u8]) {
    let has_text = |string: &[u8]| text.is_empty() || string.windows(text.len()).any(|w| w == text);
    let is_odd = |string: &[u8]| string.len() % 2 == 1;
    let all =
        [Wants::Having, Wants::Being, Wants::Starting, Wants::Ending, Wants::Matching(&is_odd)];
    for wants in all {
        let finder = TextFinder { texts: &[text], has_text: &has_text, wants };
        let found = search_strings(page, count, range.clone(), &finder, TEXT_BYTES_MAX);
        let Ok(Some(found)) = found else { continue };
        for (row, string) in strings.iter().enumerate() {
            let holds = found[row / 64] >> (row % 64) & 1 == 1;
            let wanted = match wants {
                Wants::Having => has_text(string),
                Wants::Being => string == text,
                Wants::Starting => string.starts_with(text),
                Wants::Ending => string.ends_with(text),
                Wants::Matching(_) => has_text(string) && is_odd(string),
            };
            assert_eq!(holds, wanted, "BUG: a text is found elsewhere than it is");
        }
    }
}

/// Encodes `data` as values of every type, with the effort that its first byte picks; what is
/// decoded again must be what was encoded.
#[doc(hidden)]
pub fn fuzz_round_trip(data: &[u8]) {
    let Some((&[effort, shape], data)) = data.split_first_chunk::<2>() else { return };
    let effort = [Effort::Fast, Effort::Hot, Effort::Cold][usize::from(effort) % 3];
    round_trip_numbers(&numbers(data, shape), effort);
    round_trip_bits(data);
    round_trip_text(data, effort);
}

/// Numbers in the manner of `shape`: as the bytes say, small, small steps, or runs.
fn numbers(data: &[u8], shape: u8) -> Vec<i64> {
    match shape % 4 {
        0 => data.chunks_exact(8).map(|c| i64::from_le_bytes(c.try_into().expect("8"))).collect(),
        1 => data.iter().map(|byte| i64::from(*byte as i8) * i64::from(shape)).collect(),
        2 => data
            .iter()
            .scan(i64::from(shape) << 40, |sum, byte| {
                *sum = sum.wrapping_add(i64::from(*byte as i8));
                Some(*sum)
            })
            .collect(),
        _ => data
            .chunks_exact(2)
            .flat_map(|c| std::iter::repeat_n(i64::from(c[0]), usize::from(c[1])))
            .collect(),
    }
}

fn round_trip_numbers(values: &[i64], effort: Effort) {
    let mut page = Vec::new();
    encode_i64(values, effort, &mut page);
    let again = decoded(|out| decode_i64(&page, values.len(), out));
    assert_eq!(again.as_deref(), Ok(values), "BUG: integers changed");

    let unsigned: Vec<u64> = values.iter().map(|v| *v as u64).collect();
    page.clear();
    encode_u64(&unsigned, effort, &mut page);
    let again = decoded(|out| decode_u64(&page, values.len(), out));
    assert_eq!(again, Ok(unsigned.clone()), "BUG: unsigned integers changed");

    // Bit patterns, and decimals.
    for floats in [
        unsigned.iter().map(|bits| f64::from_bits(*bits)).collect::<Vec<_>>(),
        values.iter().map(|v| *v as f64 / 1000.0).collect(),
    ] {
        page.clear();
        encode_f64(&floats, effort, &mut page);
        let again = decoded(|out| decode_f64(&page, floats.len(), out));
        let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(again.map(|v| bits(&v)), Ok(bits(&floats)), "BUG: floats changed");
    }
}

fn round_trip_bits(data: &[u8]) {
    let words: Vec<u64> =
        data.chunks_exact(8).map(|c| u64::from_le_bytes(c.try_into().expect("8"))).collect();
    let count = words.len() * 64;
    let mut page = Vec::new();
    encode_bool(&words, count, &mut page);
    assert_eq!(decoded(|out| decode_bool(&page, count, out)).as_ref(), Ok(&words), "BUG: bits");
    page.clear();
    encode_validity(&words, count, &mut page);
    assert_eq!(decoded(|out| decode_validity(&page, count, out)), Ok(words), "BUG: validity");
}

fn round_trip_text(data: &[u8], effort: Effort) {
    let text = String::from_utf8_lossy(data);
    let (mut offsets, mut bytes) = (vec![0u32], Vec::new());
    for string in text.split('\n') {
        bytes.extend_from_slice(string.as_bytes());
        offsets.push(u32::try_from(bytes.len()).expect("BUG: a fuzzer's input is small"));
    }
    let mut page = Vec::new();
    encode_strings(&offsets, &bytes, effort, &mut page);
    let (mut places, mut decoded) = (Vec::new(), Vec::new());
    let count = offsets.len() - 1;
    decode_strings(&page, count, bytes.len(), &mut places, &mut decoded)
        .expect("BUG: a page that was just made is refused");
    assert!(
        places
            .iter()
            .map(|place| string_at(*place, &decoded))
            .eq(text.split('\n').map(str::as_bytes)),
        "BUG: strings changed"
    );
}
