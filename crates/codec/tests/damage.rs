//! Arbitrary and damaged bytes never panic a decoder and never make it allocate without bound.

use codec::{Effort, fuzzing::fuzz_decode};
use proptest::prelude::*;

/// A sound page of some type to damage, and its count.
fn page(kind: u8, n: usize, seed: u64, effort: Effort) -> Vec<u8> {
    let mut out = Vec::new();
    let noise = |i: usize| (i as u64 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let integers: Vec<i64> = match kind % 4 {
        0 => (0..n).map(|i| noise(i) as i64).collect(),
        1 => (0..n).map(|i| (noise(i) % 10) as i64 + i as i64).collect(),
        2 => (0..n).map(|i| noise(i / 50) as i64).collect(),
        _ => (0..n).map(|i| (noise(i) & noise(i + 1) & 0xff) as i64 * 1000).collect(),
    };
    match kind / 4 % 4 {
        0 => codec::encode_i64(&integers, effort, &mut out),
        1 => {
            let floats: Vec<f64> = integers.iter().map(|v| *v as f64 / 100.0).collect();
            codec::encode_f64(&floats, effort, &mut out);
        }
        2 => {
            let words: Vec<u64> = integers.iter().map(|v| *v as u64).collect();
            codec::encode_bool(&words, n, &mut out);
        }
        _ => {
            let mut offsets = vec![0];
            let mut bytes = Vec::new();
            for value in integers.iter().take(300) {
                let number = match kind {
                    // An alphabet, where all are such, with heads or without.
                    64..96 => format!("id-{value:016x}"),
                    96..128 => {
                        format!("id-{value:016x}-{:04x}", value.wrapping_mul(0x9e37_79b9) as u16)
                    }
                    _ => value.to_string(),
                };
                bytes.extend_from_slice(number.as_bytes());
                if kind >= 128 {
                    // Templates, where they pay.
                    let name = ["one", "two", "three"][number.len() % 3];
                    bytes.extend_from_slice(format!(" ms of {name}, {number} left").as_bytes());
                }
                offsets.push(bytes.len() as u32);
            }
            codec::encode_strings(&offsets, &bytes, effort, &mut out);
        }
    }
    out
}

#[test]
fn pages_that_contradict_themselves_are_refused() {
    // 9224 equal steps, but the restarts at rows 4096 and 8192 say otherwise.
    let page = [0x04, 0x03, 0x24, 0x00, 0x01, 0x00];
    let (mut whole, mut part) = (Vec::new(), Vec::new());
    assert!(codec::decode_i64(&page, 0x2408, &mut whole).is_err());
    assert!(codec::decode_i64_range(&page, 0x2408, 4629..6113, &mut part).is_ok());
    fuzz_decode(&[&[0x08, 0x24, 0x80, 0xa9][..], &page].concat());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn arbitrary_bytes(head in any::<[u8; 4]>(), id in 0u8..0x70, rest in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut data = head.to_vec();
        data.push(id);
        data.extend_from_slice(&rest);
        fuzz_decode(&data);
    }

    #[test]
    fn damaged_pages(
        kind: u8, n in 0usize..3000, seed: u64, level in 0u8..3, from: u8, to: u8,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let effort = [Effort::Fast, Effort::Hot, Effort::Cold][usize::from(level)];
        let mut data = (n as u16).to_le_bytes().to_vec();
        data.extend_from_slice(&[from, to]);
        data.extend_from_slice(&page(kind, n, seed, effort));
        for (at, value) in damage {
            // Headers are short and decide the most: damage them as often as the rest.
            let len = if value % 2 == 0 { data.len().min(24) } else { data.len() };
            let index = 4 + at.index(len - 4);
            data[index] ^= value;
        }
        if let Some(cut) = cut {
            data.truncate(cut.index(data.len()));
        }
        fuzz_decode(&data);
    }
}
