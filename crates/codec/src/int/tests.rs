use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;
use crate::bitpack::low_mask;
use crate::encoding_name;
use crate::kernels::Comparison;
use crate::simd::SimdLevel;

/// A generator that needs no crate: the same numbers on every machine.
fn noise(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) ^ (*seed << 20)
}

fn encoded(values: &[i64], effort: Effort) -> Vec<u8> {
    let mut page = Vec::new();
    encode_i64(values, effort, &mut page);
    page
}

fn check(values: &[i64], effort: Effort, ranges: &[Range<usize>]) -> Vec<u8> {
    let page = encoded(values, effort);
    let mut out = vec![-1];
    decode_i64(&page, values.len(), &mut out).unwrap();
    assert_eq!(&out[1..], values, "{effort:?} {}", encoding_name(&page));
    let places = ExceptionPlaces::of_i64(&page, values.len());
    let kept = Waypoints::of_i64(&page, values.len());
    assert!(kept.is_none() || Waypoints::help_i64(&page, values.len()));
    for range in ranges {
        let mut out = Vec::new();
        decode_i64_range(&page, values.len(), range.clone(), &mut out).unwrap();
        assert_eq!(&out, &values[range.clone()], "{range:?} {}", encoding_name(&page));
        if let Some(value) = values.get(range.start) {
            let found = integer_at(&page, values.len(), range.start).unwrap();
            assert_eq!(found, value.cast_unsigned(), "{} {}", range.start, encoding_name(&page));
            let mut from: Vec<Waypoint> =
                kept.iter().map(|kept| kept.before(range.start)).collect();
            for row in [range.start / 2, range.start].map(|row| row / 8 * 8) {
                let distance = values[row].wrapping_sub(values[0]);
                let exceptions = places.as_ref().map(|places| places.before(row));
                let exceptions = exceptions.unwrap_or_default();
                from.push(Waypoint { row, distance, exceptions });
            }
            for waypoint in from {
                let name = || format!("{waypoint:?} {range:?} {}", encoding_name(&page));
                let found = integer_from(&page, values.len(), range.start, waypoint).unwrap();
                assert_eq!(found, value.cast_unsigned(), "{}", name());
                let mut out = vec![-1];
                decode_i64_from(&page, values.len(), range.clone(), waypoint, &mut out).unwrap();
                assert_eq!(out, [&[-1], &values[range.clone()]].concat(), "{}", name());
                let mut unsigned = Vec::new();
                decode_u64_from(&page, values.len(), range.clone(), waypoint, &mut unsigned)
                    .unwrap();
                assert_eq!(as_i64(&unsigned), &values[range.clone()], "{}", name());
            }
        }
    }
    page
}

fn effort() -> impl Strategy<Value = Effort> {
    prop_oneof![Just(Effort::Fast), Just(Effort::Hot), Just(Effort::Cold)]
}

/// Sequences of all the shapes that encodings exist for, at sizes around their boundaries.
fn shapes() -> impl Strategy<Value = Vec<i64>> {
    let size = prop_oneof![0usize..70, 500usize..1100, 4000usize..4200, 16_300usize..16_500];
    (size, 0u32..10, any::<i64>(), 0u32..64, any::<u64>()).prop_map(
        |(n, shape, base, shift, mut seed)| {
            let mut walk = base;
            (0..n)
                .map(|i| {
                    let random = noise(&mut seed);
                    let small = (random >> shift) as i64;
                    match shape {
                        0 => random as i64,
                        1 => base.wrapping_add(small),
                        2 => base.wrapping_add((i as i64).wrapping_mul(small | 1)),
                        3 => {
                            walk = walk.wrapping_add((random % 9) as i64 - 4);
                            walk
                        }
                        // Rare outliers.
                        4 if random.is_multiple_of(50) => small,
                        4 => base.wrapping_add((random % 7) as i64),
                        // Runs.
                        5 => {
                            if random.is_multiple_of(40) {
                                walk = small;
                            }
                            walk
                        }
                        // A grid of seconds.
                        6 => (i as i64 % 6) * 600_000_000_000 + 1_700_000_000_000_000_000,
                        7 => {
                            walk = walk.wrapping_add(10_000_000_000 * (1 + (random % 3) as i64));
                            walk
                        }
                        // A regular sequence with gaps.
                        8 => {
                            let gap = if random.is_multiple_of(300) { small } else { 0 };
                            walk = walk.wrapping_add(1000).wrapping_add(gap);
                            walk
                        }
                        _ => base,
                    }
                })
                .collect()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn integers_round_trip(
        values in shapes(), effort in effort(), from in 0.0f64..1.0, to in 0.0f64..1.0,
    ) {
        let n = values.len();
        let (a, b) = ((from * n as f64) as usize, (to * n as f64) as usize);
        let last = n.saturating_sub(1);
        let ranges =
            [a.min(b)..a.max(b), a..a, n..n, a..n, 0..b, a..(a + 1).min(n), last..n, last / 8 * 8..n];
        let page = check(&values, effort, &ranges);
        prop_assert!(page.len() <= 1 + 8 * n.max(1) + 2, "{} bytes", page.len());
    }

    #[test]
    fn damage_never_panics(
        values in shapes(), effort in effort(), at in any::<prop::sample::Index>(),
        bit in 0u32..8, cut in any::<prop::sample::Index>(), wrong_count in 0usize..20_000,
    ) {
        let page = encoded(&values, effort);
        let n = values.len();
        let mut out = Vec::new();
        let mut flipped = page.clone();
        flipped[at.index(page.len())] ^= 1 << bit;
        // Accepting other values is the checksum's business; sizes and limits are ours.
        if decode_i64(&flipped, n, &mut out).is_ok() {
            prop_assert_eq!(out.len(), n);
        }
        out.clear();
        let truncated = decode_i64(&page[..cut.index(page.len())], n, &mut out);
        prop_assert!(truncated.is_err() && out.is_empty());
        if decode_i64(&page, wrong_count, &mut out).is_ok() {
            prop_assert_eq!(out.len(), wrong_count);
        }
        prop_assert!(out.capacity() <= 2 * n.max(wrong_count).max(4));
    }

    #[test]
    fn unsigned_is_the_same_bits(values in prop::collection::vec(any::<u64>(), 0..200)) {
        let (mut page, mut out) = (Vec::new(), Vec::new());
        encode_u64(&values, Effort::Hot, &mut page);
        decode_u64(&page, values.len(), &mut out).unwrap();
        prop_assert_eq!(out, values);
    }

    #[test]
    fn visiting_is_decoding(values in shapes(), effort in effort()) {
        let page = encoded(&values, effort);
        let mut seen = Vec::new();
        visit_i64(&page, values.len(), 0..values.len(), |block| {
            assert!((1..=BLOCK).contains(&block.len()));
            seen.extend_from_slice(block);
        }).unwrap();
        prop_assert_eq!(seen, values);
    }
}

/// Counters that are far from each other, one behind the other, some of which jump.
fn counters() -> impl Strategy<Value = Vec<i64>> {
    (any::<u64>(), 1usize..400, 1usize..40, 1u64..1 << 30).prop_map(
        |(mut seed, rows, counters, step)| {
            let mut value = 0;
            let next = |at: usize| {
                let random = noise(&mut seed);
                if at.is_multiple_of(rows) || random.is_multiple_of(200) {
                    value = (random >> 8) as i64;
                }
                value += (noise(&mut seed) % step) as i64;
                value
            };
            (0..rows * counters).map(next).collect()
        },
    )
}

proptest! {
    #[test]
    fn any_rows_are_found_from_what_is_kept(
        values in counters(), effort in effort(), unit in prop::sample::select(vec![1i64, 1000]),
        ends in prop::collection::vec(any::<(prop::sample::Index, prop::sample::Index)>(), 20),
    ) {
        let values: Vec<i64> = values.iter().map(|value| value.wrapping_mul(unit)).collect();
        let end = |at: prop::sample::Index| at.index(values.len() + 1);
        let ranges: Vec<_> =
            ends.into_iter().map(|(a, b)| end(a).min(end(b))..end(a).max(end(b))).collect();
        check(&values, effort, &ranges);
    }
}

proptest! {
    #[test]
    fn long_pages_are_compared_as_they_are_packed(
        seed: u64, rows in 1usize..3000, width in 1u32..30, base in -1000i64..1000, out in 20u64..400,
        comparison in prop::sample::select(Comparison::ALL.to_vec()),
        scalar in prop_oneof![Just(None), any::<prop::sample::Index>().prop_map(Some)],
        parts in prop::collection::vec(0usize..COMPARED_ROWS_MAX, 1..9),
    ) {
        let mut seed = seed | 1;
        let values: Vec<i64> = (0..rows).map(|_| {
            let random = noise(&mut seed);
            let value = base.wrapping_add((random >> (64 - width)) as i64);
            // Far out, now and then, on either side.
            if random.is_multiple_of(out) { value.wrapping_mul(random as i64) } else { value }
        }).collect();
        let scalar = scalar.map_or(base + 5, |at| values[at.index(rows)]);
        let page = encoded(&values, Effort::Hot);
        let Some(mut compared) = PageComparison::of_i64(&page, rows, comparison, scalar) else {
            prop_assert!(encoding_name(&page) != "int-for" || base > i64::MAX - (1 << 31));
            return Ok(());
        };
        let mut from = 0;
        for len in parts {
            let part = from..rows.min(from + len);
            let mut expected = ComparedBits::default();
            for (at, value) in values[part.clone()].iter().enumerate() {
                expected[at / 64] |= u64::from(comparison.holds(value.cmp(&scalar))) << (at % 64);
            }
            prop_assert_eq!(compared.compare(part.clone()).unwrap(), expected, "{:?}", part);
            // As unsigned numbers, if those of the page are no more than the greatest of them.
            let unsigned = scalar.cast_unsigned();
            if let Some(mut page) = PageComparison::of_u64(&page, rows, comparison, unsigned) {
                let found = page.compare(part.clone()).unwrap();
                for (at, value) in values[part.clone()].iter().enumerate() {
                    let holds = comparison.holds(value.cast_unsigned().cmp(&unsigned));
                    prop_assert_eq!(found[at / 64] >> (at % 64) & 1 == 1, holds, "{:?}", part);
                }
            }
            // Some are passed over.
            from = rows.min((part.end + 60) / 8 * 8);
            if from == rows { break; }
        }
    }
}

#[test]
fn each_shape_gets_its_encoding() {
    let mut seed = 7;
    let walk: Vec<i64> = (0..20_000)
        .scan(50i64, |v, _| {
            *v += [-2, -1, -1, 0, 0, 0, 0, 1, 1, 2][(noise(&mut seed) % 10) as usize];
            Some(*v)
        })
        .collect();
    let cases: [(&str, Effort, Vec<i64>); 9] = [
        ("int-constant", Effort::Hot, vec![-5; 100]),
        ("int-constant", Effort::Fast, vec![i64::MIN]),
        ("int-regular", Effort::Hot, (0..100).map(|i| 1_700_000_000 + 10 * i).collect()),
        ("int-scaled", Effort::Hot, (0..100).map(|i| i % 6 * 600_000_000_000).collect()),
        ("int-for", Effort::Hot, (0..500).map(|i| i * 7919 % 251).collect()),
        ("int-runs", Effort::Hot, (0..2000).map(|i| i / 100 * 7919 % 251).collect()),
        ("int-delta", Effort::Hot, walk.clone()),
        ("int-delta-tight", Effort::Cold, walk),
        (
            "int-raw",
            Effort::Hot,
            (0..99).map(|_| (noise(&mut seed) ^ noise(&mut seed).rotate_left(29)) as i64).collect(),
        ),
    ];
    for (name, effort, values) in cases {
        let page = check(&values, effort, &[]);
        assert_eq!(encoding_name(&page), name, "{} bytes", page.len());
    }
}

#[test]
fn interleaved_short_series_cost_three_bits() {
    let start = 1_700_000_000_000_000_000;
    let values: Vec<i64> = (0..6000).map(|i| start + i % 6 * 600_000_000_000).collect();
    let page = check(&values, Effort::Hot, &[]);
    assert!(page.len() <= 6000 * 3 / 8 + 24, "{} bytes", page.len());
}

#[test]
fn small_pages_have_small_overhead() {
    let page = check(&(0..10).map(|i| i * 37 % 16).collect::<Vec<_>>(), Effort::Hot, &[]);
    assert!(page.len() <= 8, "{} bytes", page.len());
}

#[test]
fn two_distant_values_are_raw() {
    let page = check(&[-5_192_801_587_047_514_689, -2_226_946_835_671_124_216], Effort::Fast, &[]);
    assert_eq!(encoding_name(&page), "int-raw");
}

#[test]
fn nesting_is_bounded() {
    // A scaled page in a scaled page in a scaled page ...
    let mut page = Vec::new();
    for _ in 0..100_000 {
        page.extend_from_slice(&[id::INT_SCALED, 0, 1]);
    }
    let result = decode_i64(&page, 10, &mut Vec::new());
    assert_eq!(result, Err(DecodeError::Corrupt("pages nested too deep")));
}

#[test]
fn impossible_requests_are_refused() {
    let page = encoded(&[1, 2, 4], Effort::Hot);
    let mut out = Vec::new();
    assert!(matches!(
        decode_i64(&page, crate::PAGE_COUNT_MAX + 1, &mut out),
        Err(DecodeError::CountTooLarge { .. })
    ));
    assert!(matches!(
        decode_i64_range(&page, 3, 2..4, &mut out),
        Err(DecodeError::RangeOutOfBounds { .. })
    ));
    assert!(matches!(
        decode_i64(&[0x20, 0], 3, &mut out),
        Err(DecodeError::WrongEncoding { id: 0x20, .. })
    ));
    assert_eq!(decode_i64(&[], 3, &mut out), Err(DecodeError::Truncated { needed: 1 }));
}

#[test]
fn restarts_are_values_of_their_rows() {
    for (step, count) in [(1, 9000), (1000, 20_000), (1, 4096), (7, 4097), (1, 1)] {
        let mut value = 1_700_000_000_000_000_000;
        let values: Vec<i64> = (0..count)
            .map(|at| {
                value += (1 + at * at % 97 + (at % 501) * (at % 3)) * step;
                value
            })
            .collect();
        let page = encoded(&values, Effort::Hot);
        let want: Vec<i64> = values.iter().step_by(RESTART_ROWS).copied().collect();
        let restarts = restarts_i64(&page, values.len());
        assert!(count < 4096 || restarts.is_some(), "{step} {count}");
        assert!(restarts.is_none_or(|restarts| restarts == want), "{step} {count}");
        // Cut short it says nothing, and nothing is read behind it.
        (0..page.len().min(40)).for_each(|end| drop(restarts_i64(&page[..end], values.len())));
    }
    assert_eq!(restarts_i64(&encoded(&[5, 5, 5], Effort::Hot), 3), None);
    assert_eq!(restarts_i64(&[], 3), None);
}

#[test]
fn regular_pages_say_so() {
    let page = |values: &[i64]| encoded(values, Effort::Hot);
    assert_eq!(regular_i64(&page(&[7, 17, 27, 37])), Some((7, 10)));
    assert_eq!(regular_i64(&page(&[i64::MAX, i64::MAX - 3, i64::MAX - 6])), Some((i64::MAX, -3)));
    assert_eq!(regular_i64(&page(&[1, 2, 4])), None);
    let mut long = page(&[7, 17, 27]);
    long.push(0);
    assert_eq!(regular_i64(&long), None);
    assert_eq!(regular_i64(&[]), None);
}

/// The bits that `holds` says, as words.
fn bits_of(values: &[i64], holds: impl Fn(&i64) -> bool) -> ComparedBits {
    let mut bits = ComparedBits::default();
    for at in (0..values.len()).filter(|at| holds(&values[*at])) {
        bits[at / 64] |= 1 << (at % 64);
    }
    bits
}

proptest! {
    #[test]
    fn packed_values_compare_as_decoded_ones(
        values in shapes(),
        rows in 0usize..=COMPARED_ROWS_MAX,
        effort in effort(),
        beside in any::<prop::sample::Index>(),
        distance in prop_oneof![-2i64..=2, any::<i64>()],
    ) {
        let values = &values[..rows.min(values.len())];
        let page = encoded(values, effort);
        let scalar = values.get(beside.index(values.len().max(1))).map_or(0, |v| v.wrapping_add(distance));
        for comparison in Comparison::ALL {
            let signed = bits_of(values, |v| comparison.holds(v.cmp(&scalar)));
            let unsigned = |v: i64| v.cast_unsigned();
            let of_bits = bits_of(values, |v| comparison.holds(unsigned(*v).cmp(&unsigned(scalar))));
            for level in SimdLevel::available() {
                let page = (&page[..], values.len());
                let found = compare::compare(level, page, comparison, scalar.into(), &compare::SIGNED).unwrap();
                prop_assert!(found.is_none_or(|found| found == signed), "{:?} {:?}", level, comparison);
                let scalar = unsigned(scalar).into();
                let found = compare::compare(level, page, comparison, scalar, &compare::UNSIGNED).unwrap();
                prop_assert!(found.is_none_or(|found| found == of_bits), "{:?} {:?}", level, comparison);
            }
        }
    }
}

proptest! {
    #[test]
    fn packed_pages_compare_as_decoded_ones(
        a in shapes(),
        b in shapes(),
        rows in 1usize..=COMPARED_ROWS_MAX,
        close in prop::option::of((any::<u64>(), 0u32..22)),
        effort in effort(),
    ) {
        let rows = rows.min(a.len()).min(b.len());
        let a = &a[..rows];
        let mut b = b[..rows].to_vec();
        // Mostly others are near.
        if let Some((mut seed, bits)) = close {
            b = a.iter().map(|v| v.wrapping_add((noise(&mut seed) & low_mask(bits)) as i64 - (1 << bits >> 1))).collect();
        }
        let pages = (encoded(a, effort), encoded(&b, Effort::Fast));
        for comparison in Comparison::ALL {
            let holds = |holds: &dyn Fn(i64, i64) -> Ordering| {
                let mut bits = ComparedBits::default();
                for at in (0..rows).filter(|at| comparison.holds(holds(a[*at], b[*at]))) {
                    bits[at / 64] |= 1 << (at % 64);
                }
                bits
            };
            for level in SimdLevel::available() {
                let pages = (&pages.0[..], &pages.1[..], rows);
                let found = compare::compare_pair(level, pages, comparison, &compare::SIGNED).unwrap();
                let expected = holds(&|a, b| a.cmp(&b));
                prop_assert!(found.is_none_or(|found| found == expected), "{:?} {:?}", level, comparison);
                let found = compare::compare_pair(level, pages, comparison, &compare::UNSIGNED).unwrap();
                let expected = holds(&|a, b| a.cast_unsigned().cmp(&b.cast_unsigned()));
                prop_assert!(found.is_none_or(|found| found == expected), "{:?} {:?}", level, comparison);
            }
        }
    }
}

#[test]
fn what_gauges_are_is_compared_as_it_is_packed() {
    let apart: Vec<i64> = (0..COMPARED_ROWS_MAX as i64).map(|i| i * 37 % 101).collect();
    let walk: Vec<i64> = (0..300).map(|i: i64| 50 + i / 3 - i % 2).collect();
    for values in [&apart, &walk] {
        let page = encoded(values, Effort::Fast);
        let name = encoding_name(&page);
        let found = compare_page_i64(&page, values.len(), Comparison::Greater, 90).unwrap();
        assert_eq!(found, Some(bits_of(values, |v| *v > 90)), "{name}");
        let other = encoded(&values.iter().rev().copied().collect::<Vec<_>>(), Effort::Fast);
        let found = compare_pages_i64(&page, &other, values.len(), Comparison::Less).unwrap();
        let reversed = |at: usize| values[values.len() - 1 - at];
        let expected: Vec<i64> =
            (0..values.len()).map(|at| i64::from(values[at] < reversed(at))).collect();
        assert_eq!(found, Some(bits_of(&expected, |v| *v == 1)), "{name}");
        let longer = [page.clone(), vec![0]].concat();
        let error = compare_page_i64(&longer, values.len(), Comparison::Greater, 90);
        assert!(error.is_err(), "{name}: a byte too many");
    }
    assert_eq!(compare_page_u64(&[], 0, Comparison::Less, 1).unwrap(), None);
    let long: Vec<i64> = (0..=COMPARED_ROWS_MAX as i64).map(|i| i % 7).collect();
    let page = encoded(&long, Effort::Fast);
    assert_eq!(compare_page_i64(&page, long.len(), Comparison::Less, 1).unwrap(), None);
}
