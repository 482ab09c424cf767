use proptest::prelude::*;

use super::*;
use crate::{Waypoints, encoding_name};

fn shapes() -> impl Strategy<Value = Vec<f64>> {
    let special = prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        Just(-0.0),
        Just(0.0),
        Just(f64::NAN),
        Just(f64::from_bits(0x7ff8_dead_beef_0001)),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(f64::MIN_POSITIVE / 3.0),
        (-1_000_000i64..1_000_000).prop_map(|m| m as f64 / 100.0),
    ];
    let decimals = (0i32..10, prop::collection::vec((-99_999i64..99_999, 0u8..40), 0..2500))
        .prop_map(|(digits, values)| {
            let power = 10f64.powi(digits);
            values
                .iter()
                .map(|(m, odd)| if *odd == 0 { 1.0 / (*m as f64) } else { *m as f64 / power })
                .collect::<Vec<_>>()
        });
    // Decimals with one kind of stray among them.
    let stray = prop_oneof![
        Just(f64::NAN),
        Just(f64::from_bits(0xfff8_0000_0000_0001)),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(-0.0),
        Just(1e300),
        any::<f64>(),
    ];
    let strays = (stray, prop::collection::vec(0usize..1500, 0..4), 13usize..1500).prop_map(
        |(stray, positions, n)| {
            let mut values: Vec<f64> =
                (0..n).map(|i| (i as f64 * 0.7).sin().mul_add(100.0, 0.5).round() / 10.0).collect();
            for position in positions {
                values[position % n] = stray;
            }
            values
        },
    );
    // Decimals with noise in the last bits.
    let noisy = prop::collection::vec((-9_999i64..9_999, 0u64..3), 13..800).prop_map(|values| {
        let noisy = |(m, ulps): &(i64, u64)| {
            f64::from_bits((*m as f64 / 1000.0).to_bits().wrapping_add(*ulps))
        };
        values.iter().map(noisy).collect()
    });
    let singles = prop::collection::vec(any::<f32>().prop_map(f64::from), 0..300);
    let waves = (0.0f64..9.0, 0usize..1500)
        .prop_map(|(phase, n)| (0..n).map(|i| (phase + i as f64 / 99.0).sin()).collect());
    prop_oneof![prop::collection::vec(special, 0..300), decimals, strays, noisy, singles, waves]
}

fn effort() -> impl Strategy<Value = Effort> {
    prop_oneof![Just(Effort::Fast), Just(Effort::Hot), Just(Effort::Cold)]
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|v| v.to_bits()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn floats_round_trip(
        values in shapes(), effort in effort(), from in 0.0f64..1.0, to in 0.0f64..1.0,
    ) {
        let n = values.len();
        let mut page = Vec::new();
        encode_f64(&values, effort, &mut page);
        prop_assert!(page.len() <= 2 + 8 * n, "{}", encoding_name(&page));
        let mut out = Vec::new();
        decode_f64(&page, n, &mut out).unwrap();
        prop_assert_eq!(bits(&out), bits(&values), "{}", encoding_name(&page));
        let (a, b) = ((from * n as f64) as usize, (to * n as f64) as usize);
        for range in [a.min(b)..a.max(b), a..n, n..n] {
            let mut out = Vec::new();
            decode_f64_range(&page, n, range.clone(), &mut out).unwrap();
            prop_assert_eq!(bits(&out), bits(&values[range.clone()]));
            if let Some(value) = values.get(range.start) {
                prop_assert_eq!(float_at(&page, n, range.start).unwrap(), value.to_bits());
            }
        }
    }

    #[test]
    fn any_rows_are_found_from_what_is_kept(
        steps in prop::collection::vec(0i64..5000, 0..9000), digits in 0i32..9, effort in effort(),
        apart in 30usize..900,
        ends in prop::collection::vec(any::<(prop::sample::Index, prop::sample::Index)>(), 20),
    ) {
        let mut sum = 0;
        let values: Vec<f64> = steps.iter().enumerate().map(|(at, step)| {
            // Counters that are far from each other.
            sum = if at.is_multiple_of(apart) { step * 1_000_000 } else { sum + step };
            sum as f64 / 10f64.powi(digits)
        }).collect();
        let (n, mut page) = (values.len(), Vec::new());
        encode_f64(&values, effort, &mut page);
        let kept = Waypoints::of_f64(&page, n);
        prop_assert!(kept.is_none() || Waypoints::help_f64(&page, n));
        for (a, b) in ends.into_iter().map(|(a, b)| (a.index(n + 1), b.index(n + 1))) {
            let range = a.min(b)..a.max(b);
            let waypoint = kept.as_ref().map(|kept| kept.before(range.start)).unwrap_or_default();
            let mut out = vec![1.5];
            decode_f64_from(&page, n, range.clone(), waypoint, &mut out).unwrap();
            prop_assert_eq!(bits(&out[1..]), bits(&values[range]), "{:?}", waypoint);
        }
    }

    #[test]
    fn damage_never_panics(
        values in shapes(), effort in effort(), at in any::<prop::sample::Index>(), bit in 0u32..8,
        cut in any::<prop::sample::Index>(),
    ) {
        let mut page = Vec::new();
        encode_f64(&values, effort, &mut page);
        let mut out = Vec::new();
        let truncated = decode_f64(&page[..cut.index(page.len())], values.len(), &mut out);
        prop_assert!(truncated.is_err() && out.is_empty());
        let index = at.index(page.len());
        page[index] ^= 1 << bit;
        if decode_f64(&page, values.len(), &mut out).is_ok() {
            prop_assert_eq!(out.len(), values.len());
        }
    }

    #[test]
    fn order_survives_the_map(a in any::<f64>(), b in any::<f64>()) {
        let mut mapped = [0; 2];
        to_ordered(&[a.to_bits(), b.to_bits()], &mut mapped);
        if a < b {
            prop_assert!((mapped[0] as i64) < mapped[1] as i64);
        }
        from_ordered(&mut mapped);
        prop_assert_eq!(mapped, [a.to_bits(), b.to_bits()]);
    }
}

#[test]
fn each_shape_gets_its_encoding() {
    let page = |values: &[f64]| {
        let mut page = Vec::new();
        encode_f64(values, Effort::Hot, &mut page);
        page
    };
    let cents: Vec<f64> = (0..1000).map(|i| f64::from(i * 7919 % 5000) / 100.0).collect();
    let got = page(&cents);
    assert_eq!(encoding_name(&got), "float-decimal");
    assert!(got.len() <= 1000 * 13 / 8 + 16, "{} bytes", got.len());

    // Noise in the last bit costs a bit or two, not the mantissa.
    let noisy: Vec<f64> = cents
        .iter()
        .enumerate()
        .map(|(i, v)| f64::from_bits(v.to_bits() + (i as u64 * 7 % 3)))
        .collect();
    let got = page(&noisy);
    assert_eq!(encoding_name(&got), "float-decimal");
    assert!(got.len() <= 1000 * 16 / 8 + 40, "{} bytes", got.len());

    // Single precision widened: the low 29 bits are zero, which the integer page scales away.
    let singles: Vec<f64> =
        (0..1000).map(|i| f64::from(1.0 + (i as f32 * 0.37).sin() / 3.0)).collect();
    let got = page(&singles);
    assert_eq!(encoding_name(&got), "float-bits");
    assert!(got.len() < 1000 * 7 / 2, "{} bytes", got.len());
}

#[test]
fn decimals_are_exact_or_none() {
    proptest!(|(values in shapes())| {
        if let Some((digits, integers)) = to_decimals(&values) {
            let mut bits: Vec<u64> = integers.into_iter().map(|integer| integer as u64).collect();
            from_decimals(digits, &mut bits).unwrap();
            prop_assert_eq!(&bits, as_bits(&values));
        }
    });
    let mut tenths: Vec<f64> = (0..5000).map(|at| f64::from(at) / 10.0).collect();
    assert_eq!(to_decimals(&tenths), Some((1, (0..5000).collect())));
    for stray in [f64::NAN, f64::INFINITY, -0.0, 0.1 + 0.2, 1e300] {
        tenths[4321] = stray;
        assert_eq!(to_decimals(&tenths), None, "{stray}");
    }
    assert!(from_decimals(23, &mut []).is_err());
}
