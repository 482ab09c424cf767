use proptest::prelude::*;

use super::*;

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
        let mut reader = BitReader::new(&bytes);
        prop_assert_eq!(reader.get(3), 5);
        let mut out = [0];
        join(&[symbol], &mut reader, &mut out).unwrap();
        prop_assert_eq!(zigzag(out[0] as i64), value);
        prop_assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn symbols_round_trip(symbols in prop::collection::vec(0u8..=255, 1..600), modulus in 1u8..=255) {
        let symbols: Vec<u8> = symbols.iter().map(|s| s % modulus).collect();
        let mut histogram = [0u32; N_SYMBOLS_MAX];
        for symbol in &symbols {
            histogram[*symbol as usize] += 1;
        }
        let frequencies = Frequencies::normalize(&histogram);
        let mut header = Vec::new();
        frequencies.write(&mut header);
        let stream = rans::encode(&symbols, &frequencies);
        let table = Frequencies::read(&mut Reader::new(&header)).unwrap().into_table();
        let mut decoder = SymbolDecoder::new(&table, &stream).unwrap();
        let mut out = vec![0; symbols.len()];
        let split_at = symbols.len() / 16 * 8;
        decoder.read(&mut out[..split_at]).unwrap();
        decoder.read(&mut out[split_at..]).unwrap();
        prop_assert_eq!(&out, &symbols);
        prop_assert_eq!(decoder.finish(), Ok(()));
        let expected = frequencies.cost_bits(&histogram) as usize / 8 + rans::STATE_BYTES;
        prop_assert!(stream.len() <= expected + 8, "{} for {expected}", stream.len());
    }
}

#[test]
fn a_damaged_stream_is_noticed() {
    let symbols: Vec<u8> = (0..4000u32).map(|i| (i * i / 7 % 5) as u8).collect();
    let mut histogram = [0u32; N_SYMBOLS_MAX];
    for symbol in &symbols {
        histogram[*symbol as usize] += 1;
    }
    let frequencies = Frequencies::normalize(&histogram);
    let mut stream = rans::encode(&symbols, &frequencies);
    let table = frequencies.into_table();
    let at = stream.len() / 2;
    stream[at] ^= 1;
    let mut decoder = SymbolDecoder::new(&table, &stream).unwrap();
    let mut out = vec![0; symbols.len()];
    let result = decoder.read(&mut out).and_then(|()| decoder.finish());
    assert!(result.is_err(), "one flipped bit went unnoticed");
}
