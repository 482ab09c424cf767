use proptest::prelude::*;

use super::*;

/// The definition, one bit at a time.
fn reference_pack(values: &[u64], width: u32) -> Vec<u8> {
    let mut out = vec![0u8; packed_len(values.len(), width)];
    for (i, value) in values.iter().enumerate() {
        for b in 0..width as usize {
            let bit = i * width as usize + b;
            out[bit / 8] |= ((value >> b & 1) as u8) << (bit % 8);
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn every_level_equals_the_definition(
        width in 0u32..=64,
        raw in prop::collection::vec(any::<u64>(), 0..300),
        first in 0usize..40,
        spare in 0usize..80,
    ) {
        let values: Vec<u64> = raw.iter().map(|v| v & low_mask(width)).collect();
        let expected = reference_pack(&values, width);
        for level in SimdLevel::available() {
            let mut packed = vec![0xaa; 3];
            pack_at(level, &values, width, &mut packed);
            prop_assert_eq!(&packed[3..], &expected[..], "pack {:?}", level);

            let first = first.min(values.len());
            let mut stream = expected.clone();
            stream.resize(expected.len() + spare, 0xff);
            let mut out = vec![7u64; values.len() - first];
            unpack_at(level, &stream, first, width, &mut out);
            prop_assert_eq!(&out[..], &values[first..], "unpack {:?}", level);
        }
    }

    #[test]
    fn running_sums_are_sums(
        width in 0u32..=64,
        raw in prop::collection::vec(any::<u64>(), 0..300),
        first in 0usize..5,
        start: u64,
        step: u64,
    ) {
        let values: Vec<u64> = raw.iter().map(|v| v & low_mask(width)).collect();
        let stream = reference_pack(&values, width);
        let first = (first * 8).min(values.len());
        let mut sum = start;
        let expected: Vec<u64> = values[first..]
            .iter()
            .map(|v| {
                sum = sum.wrapping_add(*v).wrapping_add(step);
                sum
            })
            .collect();
        for level in SimdLevel::available() {
            let mut out = vec![7u64; values.len() - first];
            let last = unpack_running_at(level, &stream, first, width, &mut out, start, step);
            prop_assert_eq!(&out, &expected, "{:?}", level);
            prop_assert_eq!(last, sum);
        }
    }

    #[test]
    fn sums_are_sums(
        width in 0u32..=64,
        raw in prop::collection::vec(any::<u64>(), 0..300),
        n in any::<prop::sample::Index>(),
    ) {
        let values: Vec<u64> = raw.iter().map(|v| v & low_mask(width)).collect();
        let stream = reference_pack(&values, width);
        let n = n.index(values.len() + 1);
        let expected = values[..n].iter().fold(0u64, |sum, v| sum.wrapping_add(*v));
        for level in SimdLevel::available() {
            prop_assert_eq!(sum_at(level, &stream, n, width), expected, "{:?}", level);
        }
    }

    #[test]
    fn blocks_of_eight_join(width in 0u32..=64, raw in prop::collection::vec(any::<u64>(), 24..60)) {
        let values: Vec<u64> = raw.iter().map(|v| v & low_mask(width)).collect();
        let mut joined = Vec::new();
        pack(&values[..16], width, &mut joined);
        pack(&values[16..], width, &mut joined);
        prop_assert_eq!(joined, reference_pack(&values, width));
    }
}

#[test]
fn the_largest_sum() {
    for width in [24, 25] {
        let stream = reference_pack(&vec![low_mask(width); 5000], width);
        for (level, n) in SimdLevel::available().into_iter().flat_map(|l| [(l, 4096), (l, 5000)]) {
            assert_eq!(sum_at(level, &stream, n, width), n as u64 * low_mask(width), "{level:?}");
        }
    }
}

#[test]
fn a_short_stream_is_refused() {
    assert_eq!(check_packed(&[0; 4], 8, 4), Ok(()));
    assert_eq!(check_packed(&[0; 3], 8, 4), Err(DecodeError::Truncated { needed: 1 }));
    assert!(matches!(check_packed(&[0; 99], 1, 65), Err(DecodeError::Corrupt(_))));
}
