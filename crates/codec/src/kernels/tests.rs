use proptest::prelude::*;

use super::*;
use crate::simd::SimdLevel;

fn bits_to_words(bits: &[bool]) -> Vec<u64> {
    let mut words = vec![0u64; bits.len().div_ceil(64)];
    for (i, _) in bits.iter().enumerate().filter(|(_, b)| **b) {
        words[i / 64] |= 1 << (i % 64);
    }
    words
}

/// Values with repeats and special cases, and a mask with dense and empty words.
fn masked_words() -> impl Strategy<Value = (Vec<u64>, Vec<bool>)> {
    let value = prop_oneof![
        any::<u64>(),
        0u64..5,
        Just(f64::NAN.to_bits()),
        Just((-0.0f64).to_bits()),
        Just(f64::INFINITY.to_bits()),
        (-100.0f64..100.0).prop_map(f64::to_bits),
    ];
    (prop::collection::vec(value, 0..300), prop_oneof![Just(0.0), Just(1.0), 0.0f64..1.0])
        .prop_flat_map(|(values, p)| {
            let n = values.len();
            (Just(values), prop::collection::vec(prop::bool::weighted(p), n))
        })
}

fn floats(values: &[u64]) -> Vec<f64> {
    values.iter().map(|v| f64::from_bits(*v)).collect()
}

/// The extremes by definition; `less` is false when either is NaN.
fn reference_extremes<T: Copy + PartialEq>(
    values: &[T],
    set: &[bool],
    less: impl Fn(T, T) -> bool,
    valid: impl Fn(T) -> bool,
) -> Option<(usize, usize)> {
    let mut found: Option<(usize, usize)> = None;
    for (i, &v) in values.iter().enumerate().filter(|(i, v)| set[*i] && valid(**v)) {
        let (min, max) = found.unwrap_or((i, i));
        found = Some((
            if less(v, values[min]) { i } else { min },
            if less(values[max], v) { i } else { max },
        ));
    }
    found
}

proptest! {
    #[test]
    fn sums((words, set) in masked_words()) {
        let mask = bits_to_words(&set);
        let all = vec![true; words.len()];
        let ints: Vec<i64> = words.iter().map(|v| *v as i64).collect();
        let reference = |set: &[bool]| {
            words.iter().zip(set).filter(|(_, s)| **s).fold(0u64, |a, (v, _)| a.wrapping_add(*v))
        };
        let values = floats(&words);
        let portable = sum::sum_f64_at(SimdLevel::Portable, &values);
        let portable_masked = sum::sum_f64_masked_at(SimdLevel::Portable, &values, &mask);
        for level in SimdLevel::available() {
            prop_assert_eq!(sum::sum_u64_at(level, &words), reference(&all));
            prop_assert_eq!(sum::sum_i64_at(level, &ints), reference(&all) as i64);
            prop_assert_eq!(sum::sum_u64_masked_at(level, &words, &mask), reference(&set));
            // NaN payloads of sums are the hardware's business.
            let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
            prop_assert!(same(sum::sum_f64_at(level, &values), portable));
            prop_assert!(same(sum::sum_f64_masked_at(level, &values, &mask), portable_masked));
        }
        prop_assert_eq!(sum_i64_masked(&ints, &mask), reference(&set) as i64);
        let mut running = ints.clone();
        prop_assert_eq!(prefix_sum_i64(&mut running, 7), (reference(&all) as i64).wrapping_add(7));
    }

    #[test]
    fn float_sums_are_sums(values in prop::collection::vec(-1000i32..1000, 0..300)) {
        // Small integers add exactly in any order.
        let values: Vec<f64> = values.iter().map(|v| f64::from(*v)).collect();
        prop_assert_eq!(sum_f64(&values), values.iter().sum::<f64>());
        let mask = bits_to_words(&values.iter().map(|v| *v > 0.0).collect::<Vec<_>>());
        prop_assert_eq!(
            sum_f64_masked(&values, &mask), values.iter().filter(|v| **v > 0.0).sum::<f64>()
        );
    }

    #[test]
    fn extremes((words, set) in masked_words()) {
        let mask = bits_to_words(&set);
        let all = vec![true; words.len()];
        let ints: Vec<i64> = words.iter().map(|v| *v as i64).collect();
        let values = floats(&words);
        for level in SimdLevel::available() {
            for (set, masked) in [(&all, false), (&set, true)] {
                let got = if masked {
                    extremes::min_max_u64_masked_at(level, &words, &mask)
                } else {
                    extremes::min_max_u64_at(level, &words)
                };
                let expected = reference_extremes(&words, set, |a, b| a < b, |_| true);
                prop_assert_eq!(got.map(|m| (m.min_index, m.max_index)), expected);

                let got = if masked {
                    extremes::min_max_i64_masked_at(level, &ints, &mask)
                } else {
                    extremes::min_max_i64_at(level, &ints)
                };
                let expected = reference_extremes(&ints, set, |a, b| a < b, |_| true);
                prop_assert_eq!(got.map(|m| (m.min_index, m.max_index)), expected);
                prop_assert!(got.is_none_or(|m| m.min == ints[m.min_index]));

                let got = if masked {
                    extremes::min_max_f64_masked_at(level, &values, &mask)
                } else {
                    extremes::min_max_f64_at(level, &values)
                };
                let expected =
                    reference_extremes(&values, set, |a, b| a < b, |v: f64| !v.is_nan());
                prop_assert_eq!(got.map(|m| (m.min_index, m.max_index)), expected);
                prop_assert!(
                    got.is_none_or(|m| m.max.to_bits() == values[m.max_index].to_bits())
                );
            }
        }
    }

    #[test]
    fn comparisons((words, _) in masked_words(), scalar in 0u64..5, pick in any::<prop::sample::Index>()) {
        let scalar = if words.is_empty() || scalar == 0 { scalar } else { words[pick.index(words.len())] };
        let ints: Vec<i64> = words.iter().map(|v| *v as i64).collect();
        let values = floats(&words);
        let turned: Vec<usize> = (0..words.len()).rev().collect();
        fn holds<T: PartialOrd + Copy>(a: T, comparison: Comparison, b: T) -> bool {
            match comparison {
                Comparison::Equal => a == b,
                Comparison::NotEqual => a != b,
                Comparison::Less => a < b,
                Comparison::LessOrEqual => a <= b,
                Comparison::Greater => a > b,
                Comparison::GreaterOrEqual => a >= b,
            }
        }
        for c in [
            Comparison::Equal, Comparison::NotEqual, Comparison::Less, Comparison::LessOrEqual,
            Comparison::Greater, Comparison::GreaterOrEqual,
        ] {
            prop_assert_eq!(Comparison::of(|order| holds(order as i8, c, 0)), c);
            for level in SimdLevel::available() {
                let mut got = [Vec::new(), Vec::new(), Vec::new()];
                compare::compare_u64_level(level, &words, c, scalar, &mut got[0]);
                compare::compare_i64_level(level, &ints, c, scalar as i64, &mut got[1]);
                let float = f64::from_bits(scalar);
                compare::compare_f64_level(level, &values, c, float, &mut got[2]);
                let expected = [
                    words.iter().map(|v| holds(*v, c, scalar)).collect::<Vec<_>>(),
                    ints.iter().map(|v| holds(*v, c, scalar as i64)).collect(),
                    values.iter().map(|v| holds(*v, c, float)).collect(),
                ];
                for (got, expected) in got.iter().zip(&expected) {
                    prop_assert_eq!(got, &bits_to_words(expected), "{:?} {:?}", c, level);
                }

                fn pairs<T: PartialOrd + Copy>(
                    values: &[T], c: Comparison, turned: &[usize],
                ) -> (Vec<T>, Vec<u64>) {
                    let others: Vec<T> = turned.iter().map(|at| values[*at]).collect();
                    let expected: Vec<bool> =
                        values.iter().zip(&others).map(|(a, b)| holds(*a, c, *b)).collect();
                    (others, bits_to_words(&expected))
                }
                let mut got = [Vec::new(), Vec::new(), Vec::new()];
                let (others, of_words) = pairs(&words, c, &turned);
                compare::compare_pairs_u64_level(level, &words, c, &others, &mut got[0]);
                let (others, of_ints) = pairs(&ints, c, &turned);
                compare::compare_pairs_i64_level(level, &ints, c, &others, &mut got[1]);
                let (others, of_floats) = pairs(&values, c, &turned);
                compare::compare_pairs_f64_level(level, &values, c, &others, &mut got[2]);
                prop_assert_eq!(got, [of_words, of_ints, of_floats], "{:?} {:?}", c, level);
            }
        }
    }

    #[test]
    fn selections((words, set) in masked_words(), from in 0usize..100) {
        let mask = bits_to_words(&set);
        let expected: Vec<u64> =
            words.iter().zip(&set).filter(|(_, s)| **s).map(|(v, _)| *v).collect();
        for level in SimdLevel::available() {
            let mut out = Vec::new();
            select::filter_level(level, &words, &mask, |picked| out.extend_from_slice(picked));
            prop_assert_eq!(&out, &expected, "{:?}", level);
            // What was there before stays.
            select::append_level(level, &words, &mask, |bits| bits, &mut out);
            prop_assert_eq!(&out[expected.len()..], &expected, "{:?}", level);
            prop_assert_eq!(&out[..expected.len()], &expected, "{:?}", level);
        }
        let mut picked = Vec::new();
        filter_f64(&floats(&words), &mask, &mut picked);
        prop_assert!(picked.iter().map(|v| v.to_bits()).eq(expected.iter().copied()));
        let indices: Vec<u32> = set_bits(&mask).map(|i| i as u32).collect();
        let mut gathered = Vec::new();
        gather_u64(&words, &indices, &mut gathered);
        prop_assert_eq!(&gathered, &expected);
        prop_assert_eq!(count_ones(&mask), expected.len());
        let from = from.min(set.len());
        let ones = set[..from].iter().filter(|b| **b).count();
        prop_assert_eq!(count_ones_prefix(&mask, from), ones);
    }

    #[test]
    fn bit_movements(
        a in prop::collection::vec(any::<bool>(), 0..300),
        b in prop::collection::vec(any::<bool>(), 0..300),
        from in 0usize..300,
        len in 0usize..300,
    ) {
        let (words_a, words_b) = (bits_to_words(&a), bits_to_words(&b));
        let mut joined = words_a.clone();
        append_bits(&mut joined, a.len(), &words_b, b.len());
        let both: Vec<bool> = a.iter().chain(&b).copied().collect();
        prop_assert_eq!(&joined, &bits_to_words(&both));

        let from = from.min(a.len());
        let len = len.min(a.len() - from);
        let mut copied = vec![0; len.div_ceil(64)];
        copy_bits(&words_a, from, len, &mut copied);
        prop_assert_eq!(copied, bits_to_words(&a[from..from + len]));

        let mut set = words_a.clone();
        set_bit_range(&mut set, from..from + len);
        let expected: Vec<bool> =
            a.iter().enumerate().map(|(i, b)| *b || (from..from + len).contains(&i)).collect();
        prop_assert_eq!(set, bits_to_words(&expected));

        let mut flipped = words_a.clone();
        not_words(&mut flipped, a.len());
        prop_assert_eq!(flipped, bits_to_words(&a.iter().map(|b| !b).collect::<Vec<_>>()));

        let n = a.len().min(b.len());
        let (a, b) = (&a[..n], &b[..n]);
        let both = |f: fn(bool, bool) -> bool| {
            bits_to_words(&a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect::<Vec<_>>())
        };
        let (start, other) = (bits_to_words(a), bits_to_words(b));
        type Operation = fn(&mut [u64], &[u64]);
        type Reference = fn(bool, bool) -> bool;
        let operations: [(Operation, Reference); 3] = [
            (and_words, |a, b| a & b),
            (or_words, |a, b| a | b),
            (and_not_words, |a, b| a & !b),
        ];
        for (operation, expected) in operations {
            let mut result = start.clone();
            operation(&mut result, &other);
            prop_assert_eq!(result, both(expected));
        }
    }

    #[test]
    fn transposition(n_rows in 0usize..200, n_columns in 1usize..21) {
        let rows: Vec<u64> = (0..n_rows * n_columns).map(|i| i as u64 * 31).collect();
        let mut out = vec![0; rows.len()];
        transpose_u64(&rows, n_columns, &mut out);
        for r in 0..n_rows {
            for c in 0..n_columns {
                prop_assert_eq!(out[c * n_rows + r], rows[r * n_columns + c]);
            }
        }
    }
}
