use proptest::prelude::*;

use super::*;

fn to_words(bits: &[bool]) -> Vec<u64> {
    let mut words = vec![0u64; bits.len().div_ceil(64)];
    for (i, _) in bits.iter().enumerate().filter(|(_, b)| **b) {
        words[i / 64] |= 1 << (i % 64);
    }
    words
}

fn shapes() -> impl Strategy<Value = Vec<bool>> {
    let random = prop::collection::vec(any::<bool>(), 0..500);
    let sparse = (prop::collection::vec(0usize..3000, 0..9), 1usize..3000, any::<bool>()).prop_map(
        |(holes, count, majority)| {
            let mut bits = vec![majority; count];
            for hole in holes {
                bits[hole % count] = !majority;
            }
            bits
        },
    );
    let runs = prop::collection::vec((any::<bool>(), 1usize..400), 1..12)
        .prop_map(|runs| runs.iter().flat_map(|(b, n)| vec![*b; *n]).collect());
    prop_oneof![random, sparse, runs]
}

proptest! {
    #[test]
    fn bits_round_trip(bits in shapes(), from in 0.0f64..1.0, to in 0.0f64..1.0, garbage: u64) {
        let expected = to_words(&bits);
        let mut words = expected.clone();
        if let Some(last) = words.last_mut() && bits.len() % 64 != 0 {
            *last |= garbage << (bits.len() % 64);
        }
        let mut page = Vec::new();
        encode_bool(&words, bits.len(), &mut page);
        prop_assert!(page.len() <= 1 + bits.len().div_ceil(8));
        let mut out = vec![42];
        decode_bool(&page, bits.len(), &mut out).unwrap();
        prop_assert_eq!(&out[1..], &expected[..]);

        let a = (from * bits.len() as f64) as usize;
        let b = (to * bits.len() as f64) as usize;
        let range = a.min(b)..a.max(b);
        let mut out = Vec::new();
        decode_validity_range(&page, bits.len(), range.clone(), &mut out).unwrap();
        prop_assert_eq!(out, to_words(&bits[range]));
    }
}

#[test]
fn all_set_and_few_holes_cost_a_few_bytes() {
    let mut page = Vec::new();
    encode_validity(&[u64::MAX; 1024], 65_536, &mut page);
    assert_eq!(page, [id::BITS_ONES]);
    let mut words = [u64::MAX; 1024];
    words[3] = !1;
    words[900] = !(1 << 40);
    page.clear();
    encode_validity(&words, 65_536, &mut page);
    assert!(page.len() <= 8, "{page:?}");
}

#[test]
fn long_runs_are_cheap() {
    let mut words = [0u64; 1024];
    words[100..700].fill(u64::MAX);
    let mut page = Vec::new();
    encode_bool(&words, 65_536, &mut page);
    assert!(page.len() <= 9, "{page:?}");
}
