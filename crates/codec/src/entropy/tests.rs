use proptest::prelude::*;

use super::rans::Table;
use super::streams::Stream;
use super::symbols::{DIRECT, Split, join, split};
use super::*;
use crate::bit_stream::{BitReader, BitWriter};
use crate::error::DecodeError;
use crate::simd::SimdLevel;
use crate::wire::unzigzag;

/// How many symbols there are: those below 16, and below 32, have ways of their own.
fn modulus() -> impl Strategy<Value = u8> {
    prop_oneof![1u8..=16, 17u8..=32, 33u8..=255]
}

proptest! {
    #[test]
    fn numbers_split_and_join(value: u64, bits in 0u32..64) {
        let value = value >> bits;
        let Split { symbol, raw_width, raw_value } = split(value);
        prop_assert_eq!(raw_width, symbols::raw_width(symbol));
        let mut writer = BitWriter::default();
        writer.put(5, 3);
        writer.put(raw_value, raw_width);
        let bytes = writer.finish();
        let mut reader = BitReader::new(&bytes, 0);
        prop_assert_eq!(reader.get(3), 5);
        let mut out = [0];
        join(&[symbol], &mut reader, &mut out).unwrap();
        prop_assert_eq!(zigzag(out[0] as i64), value);
        prop_assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn symbols_round_trip(
        all in prop::collection::vec(
            (prop::collection::vec(0u8..=255, 1..600), modulus(), any::<prop::sample::Index>()), 1..7
        ),
    ) {
        let all: Vec<_> = all.iter().map(|(symbols, modulus, wanted)| {
            let symbols: Vec<u8> = symbols.iter().map(|s| s % modulus).collect();
            (coded(&symbols), wanted.index(symbols.len() + 1), symbols)
        }).collect();
        for level in SimdLevel::available() {
            let mut outs: Vec<_> = all.iter().map(|(_, wanted, _)| vec![0; *wanted]).collect();
            let streams = outs.iter_mut().zip(&all).map(|(out, ((table, stream), _, symbols))| {
                ((), started(table, stream, symbols.len(), out))
            });
            streams::decode_at(level, &mut streams.collect::<Vec<_>>(), |(), e| panic!("{e}"));
            for (out, (_, wanted, symbols)) in outs.iter().zip(&all) {
                prop_assert_eq!(out, &symbols[..*wanted]);
            }
        }
    }

    #[test]
    fn any_place_that_was_passed_leads_on(
        symbols in prop::collection::vec(0u8..=255, 1..3000), modulus in modulus(), n in 1usize..5,
    ) {
        let symbols: Vec<u8> = symbols.iter().map(|s| s % modulus).collect();
        let (table, stream) = coded(&symbols);
        let mut expected: Option<Vec<streams::Place>> = None;
        for level in SimdLevel::available() {
            let mut outs = vec![vec![0; symbols.len()]; n];
            let mut passed = vec![Vec::new(); n];
            let streams = outs.iter_mut().zip(&mut passed).map(|(out, passed)| {
                let mut stream = started(&table, &stream, symbols.len(), out);
                stream.note(passed);
                ((), stream)
            });
            streams::decode_at(level, &mut streams.collect::<Vec<_>>(), |(), e| panic!("{e}"));
            for passed in &passed {
                // In the end, which has no words, nothing is noted.
                let before_end = symbols.len() - usize::from(stream[0]);
                prop_assert_eq!(passed.len(), before_end / marks::MARK_SYMBOLS);
                prop_assert_eq!(&*expected.get_or_insert_with(|| passed.clone()), passed);
            }
            for (at, place) in passed[0].iter().enumerate() {
                let from = (at + 1) * marks::MARK_SYMBOLS;
                let mut rest = vec![0; symbols.len() - from];
                let (left, out) = (rest.len(), &mut rest);
                let stream = Stream::new(&table, Layout::Tight, &stream, Some(place), left, out);
                streams::decode_at(level, &mut [((), stream.unwrap())], |(), e| panic!("{e}"));
                prop_assert_eq!(&rest, &symbols[from..]);
            }
        }
    }

    #[test]
    fn damage_is_the_same_whatever_is_beside_it(
        at in any::<prop::sample::Index>(), bit in 0u8..8, cut in any::<prop::sample::Index>(), place in 0usize..3,
    ) {
        let symbols: Vec<u8> = (0..4000u32).map(|i| (i * i / 7 % 5) as u8).collect();
        let (table, stream) = coded(&symbols);
        let mut words = Reader::new(&stream[1..]);
        rans::read_states(&mut words).unwrap();
        let mut flipped = stream.clone();
        flipped[stream.len() - 1 - at.index(words.remaining())] ^= 1 << bit;
        let short = &stream[..stream.len() - 2 * (1 + cut.index(words.remaining() / 2))];
        let bytes = |i| if i == place { &flipped } else if i == 3 { short } else { &stream[..] };
        let mut alone = vec![vec![0; symbols.len()]; 4];
        let mut expected = Vec::new();
        for (i, out) in alone.iter_mut().enumerate() {
            let mut one = [(i, started(&table, bytes(i), symbols.len(), out))];
            streams::decode_at(SimdLevel::Portable, &mut one, |i, e| expected.push((i, e)));
        }
        let is_short = |e: &DecodeError| matches!(e, DecodeError::Truncated { .. });
        prop_assert!(expected.iter().any(|(i, e)| *i == 3 && is_short(e)));
        for level in SimdLevel::available() {
            let mut outs = vec![vec![0; symbols.len()]; 4];
            let streams = outs.iter_mut().enumerate();
            let streams = streams.map(|(i, out)| (i, started(&table, bytes(i), symbols.len(), out)));
            let mut failed = Vec::new();
            streams::decode_at(level, &mut streams.collect::<Vec<_>>(), |i, e| failed.push((i, e)));
            failed.sort_by_key(|(i, _)| *i);
            prop_assert_eq!(&failed, &expected);
            for i in (0..4).filter(|i| !expected.iter().any(|(at, _)| at == i)) {
                prop_assert_eq!(&outs[i], &alone[i]);
            }
        }
    }
}

#[test]
fn a_damaged_stream_is_noticed() {
    let symbols: Vec<u8> = (0..4000u32).map(|i| (i * i / 7 % 5) as u8).collect();
    let (table, mut stream) = coded(&symbols);
    let at = stream.len() / 2;
    stream[at] ^= 1;
    let mut out = vec![0; symbols.len()];
    let mut failed = false;
    let mut one = [((), started(&table, &stream, symbols.len(), &mut out))];
    streams::decode(&mut one, |(), _| failed = true);
    assert!(failed, "one flipped bit went unnoticed");
}

/// The head of a stream of `count` symbols, of which as many are to be decoded as `out` has room for.
fn started<'a>(table: &'a Table, stream: &'a [u8], count: usize, out: &'a mut [u8]) -> Stream<'a> {
    Stream::new(table, Layout::Tight, stream, None, count, out).unwrap()
}

/// Symbols as they are coded, and the table for that.
fn coded(symbols: &[u8]) -> (Box<Table>, Vec<u8>) {
    let histogram = counts(symbols);
    let frequencies = Frequencies::normalize(&histogram).rounded(symbols.len());
    let mut header = Vec::new();
    frequencies.write(symbols.len(), &mut header);
    let mut stream = Vec::new();
    rans::encode(symbols, &frequencies, &mut stream);
    for level in SimdLevel::available() {
        let mut same = Vec::new();
        rans::encode_at(level, symbols, &frequencies, &mut same);
        assert_eq!(same, stream, "{level:?}");
    }
    // What the head takes beside what it holds is a number and places of bits; it has room for a few symbols.
    let expected = (frequencies.cost_bits(&histogram) / 8).max(2 * 8) as usize + 1 + 4;
    assert!(stream.len() <= expected + 8, "{} for {expected}", stream.len());
    (Table::new(&Frequencies::read(&mut Reader::new(&header), symbols.len()).unwrap()), stream)
}

fn counts(symbols: &[u8]) -> [u32; N_SYMBOLS_MAX] {
    let mut histogram = [0u32; N_SYMBOLS_MAX];
    for symbol in symbols {
        histogram[*symbol as usize] += 1;
    }
    histogram
}

proptest! {
    #[test]
    fn frequencies_are_read_as_they_were_rounded(
        mut histogram in prop::collection::vec(
            prop_oneof![3 => Just(0u32), 2 => 1u32..5, 2 => 0u32..100, 1 => 0u32..1 << 24],
            N_SYMBOLS_MAX,
        ),
        n_symbols in 1usize..=N_SYMBOLS_MAX,
        behind in 0usize..9,
        count in 512usize..1 << 20,
    ) {
        histogram[n_symbols..].fill(0);
        histogram[n_symbols - 1] += 1;
        let histogram: [u32; N_SYMBOLS_MAX] = histogram.try_into().unwrap();
        let exact = Frequencies::normalize(&histogram);
        let rounded = exact.rounded(count);
        prop_assert_eq!(rounded.each().iter().map(|f| u32::from(*f)).sum::<u32>(), rans::PROBABILITY_ONE);
        for (exact, rounded) in exact.each().iter().zip(rounded.each()) {
            prop_assert!(exact.abs_diff(*rounded) <= exact / 5, "{} for {}", rounded, exact);
        }
        let mut header = Vec::new();
        rounded.write(count, &mut header);
        let len = header.len();
        header.resize(len + behind, 0xff);
        let mut reader = Reader::new(&header);
        let read = Frequencies::read(&mut reader, count).unwrap();
        prop_assert_eq!((read.each(), reader.remaining()), (rounded.each(), behind));
    }
}

#[test]
fn symbols_add_up() {
    let symbols: Vec<u8> = (0..10_000u32).map(|i| (i * i % 16) as u8).chain([1; 9000]).collect();
    let mut numbers = vec![0; symbols.len()];
    symbols::join_small(&symbols, &mut numbers);
    assert_eq!(symbols::sum_small(&symbols), numbers.iter().copied().fold(0, u64::wrapping_add));
}

proptest! {
    #[test]
    fn every_level_joins_the_same_numbers(
        numbers in prop::collection::vec(
            prop_oneof![3 => 0u64..DIRECT, 3 => 0u64..1 << 30, 1 => any::<u64>()],
            0..200,
        ),
        cut in 0usize..40,
    ) {
        let mut raw = BitWriter::default();
        let mut split_off = Vec::new();
        for number in &numbers {
            let split = split(*number);
            raw.put(split.raw_value, split.raw_width);
            split_off.push(split.symbol);
        }
        let bytes = raw.finish();
        for level in SimdLevel::available() {
            let mut joined = vec![0; numbers.len()];
            symbols::join_all_at(level, &split_off, &bytes, 0, &mut joined);
            let wanted: Vec<u64> = numbers.iter().map(|n| unzigzag(*n) as u64).collect();
            prop_assert_eq!(joined, wanted, "{:?}", level);
            // Damage shows, and is no panic.
            let short = &bytes[..bytes.len() - cut.min(bytes.len())];
            let mut reader = BitReader::new(short, 0);
            let outcome = join(&split_off, &mut reader, &mut vec![0; numbers.len()]);
            prop_assert_eq!(outcome.is_err(), short.len() < bytes.len());
        }
    }
}
