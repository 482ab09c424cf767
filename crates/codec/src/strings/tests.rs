use proptest::prelude::*;

use super::*;

fn to_columns(strings: &[Vec<u8>]) -> (Vec<u32>, Vec<u8>) {
    let mut offsets = vec![0];
    let mut bytes = Vec::new();
    for string in strings {
        bytes.extend_from_slice(string);
        offsets.push(bytes.len() as u32);
    }
    (offsets, bytes)
}

fn columns() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let random = prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..80);
    let few = prop::collection::vec(0u8..5, 0..400).prop_map(|codes| {
        codes.iter().map(|c| format!("status number {c}").into_bytes()).collect::<Vec<_>>()
    });
    let lines = prop::collection::vec((any::<u16>(), any::<u32>()), 0..200).prop_map(|ids| {
        let line = |(a, b): &(u16, u32)| format!("GET /item/{a}/view?session={b} 200 OK");
        ids.iter().map(|id| line(id).into_bytes()).collect::<Vec<_>>()
    });
    let messages =
        prop::collection::vec((0u8..6, any::<u16>(), any::<u32>()), 0..400).prop_map(|ids| {
            let names = ["anna", "ben", "chi\u{f1}o", "d", "e99", ""];
            let message = |(kind, a, b): &(u8, u16, u32)| match kind {
                0 => format!(
                    "user {} logged in from 10.0.{}.{}",
                    names[*a as usize % 6],
                    a % 256,
                    b % 256
                ),
                1 => format!("took {}.{:03}ms, {b:08x} of {}", a / 7, a % 1000, b % 3),
                2 => format!("queue q{}_x is at {:02}:{:02}", a % 9, a % 24, b % 60),
                3 => format!("id 0{b}{b}{b} {}", "long ".repeat(*a as usize % 3)),
                4 if *a < 3000 => format!("rare {}\0 {a}", names[*b as usize % 6].repeat(3)),
                4 => String::new(),
                _ => format!("{a}"),
            };
            ids.iter().map(|id| message(id).into_bytes()).collect::<Vec<_>>()
        });
    let constant = (prop::collection::vec(any::<u8>(), 0..9), 1usize..100)
        .prop_map(|(string, n)| vec![string; n]);
    // One kind, or now and then another one between.
    let ids = (0u8..5, prop::collection::vec((any::<u128>(), prop::bool::weighted(0.002)), 0..300))
        .prop_map(|(kind, ids)| {
            let id = |(id, is_other): &(u128, bool)| match (kind + u8::from(*is_other)) % 5 {
                0 => format!("{id:032x}"),
                1 => format!("{:08X}-{:03X}", id >> 96, id & 0xfff),
                2 => format!("order-{:06}", id % 1_000_000),
                3 => format!("{}{:x}", "long ".repeat(14), id & 15),
                _ => format!("{:x}", id & 0xffff),
            };
            ids.iter().map(|of| id(of).into_bytes()).collect::<Vec<_>>()
        });
    prop_oneof![random, few, lines, messages, constant, ids]
}

/// The strings at some places.
fn decoded(places: &[TextPlace], text: &[u8]) -> Vec<Vec<u8>> {
    let string = |(start, len): &TextPlace| text[*start as usize..][..*len as usize].to_vec();
    places.iter().map(string).collect()
}

/// A page of some strings, and how much text they have.
fn page_of(strings: &[Vec<u8>], effort: Effort) -> (Vec<u8>, usize) {
    let (offsets, bytes) = to_columns(strings);
    let mut page = Vec::new();
    encode_strings(&offsets, &bytes, effort, &mut page);
    (page, bytes.len())
}

/// Any of `n` strings that follow one another.
fn between(ends: (prop::sample::Index, prop::sample::Index), n: usize) -> Range<usize> {
    let (a, b) = (ends.0.index(n + 1), ends.1.index(n + 1));
    a.min(b)..a.max(b)
}

fn effort() -> impl Strategy<Value = Effort> {
    prop_oneof![Just(Effort::Fast), Just(Effort::Hot), Just(Effort::Cold)]
}

proptest! {
    #[test]
    fn strings_round_trip(
        strings in columns(), effort in effort(), from in 0.0f64..1.0, to in 0.0f64..1.0,
    ) {
        let n = strings.len();
        let (offsets, bytes) = to_columns(&strings);
        let mut page = Vec::new();
        encode_strings(&offsets, &bytes, effort, &mut page);
        let (mut places, mut text) = (Vec::new(), Vec::new());
        // As much as there is, as a store says it.
        decode_strings(&page, n, bytes.len(), &mut places, &mut text).unwrap();
        prop_assert_eq!(&decoded(&places, &text), &strings);
        prop_assert!(text.len() <= bytes.len());

        let (a, b) = ((from * n as f64) as usize, (to * n as f64) as usize);
        let range = a.min(b)..a.max(b);
        // Appends to what is there.
        let before = text.len();
        decode_strings_range(&page, n, range.clone(), 1 << 20, &mut places, &mut text).unwrap();
        let joined: Vec<Vec<u8>> = strings.iter().chain(&strings[range.clone()]).cloned().collect();
        prop_assert_eq!(decoded(&places, &text), joined);
        let of_range: usize = strings[range].iter().map(Vec::len).sum();
        prop_assert!(text.len() - before <= of_range);
    }

    #[test]
    fn selected_strings_are_those_of_the_page(
        strings in columns(), effort in effort(), from in any::<(prop::sample::Index, prop::sample::Index)>(),
        bits in prop::collection::vec(prop_oneof![Just(0u64), Just(u64::MAX), any::<u64>()], 7),
    ) {
        let n = strings.len();
        let (page, text_bytes) = page_of(&strings, effort);
        let range = between(from, n);
        let is_selected = |string: &usize| {
            let bit = string - range.start;
            bits[bit / 64] >> (bit % 64) & 1 == 1
        };
        let expected: Vec<Vec<u8>> =
            range.clone().filter(is_selected).map(|string| strings[string].clone()).collect();
        let (mut places, mut text) = (vec![(0, 1)], b"x".to_vec());
        let selected = (range.clone(), &bits[..]);
        decode_selected_strings(&page, n, selected, text_bytes, &mut places, &mut text).unwrap();
        prop_assert_eq!(decoded(&places[1..], &text), expected.clone());
        prop_assert!(text.len() - 1 <= expected.iter().map(Vec::len).sum());
    }

    #[test]
    fn texts_are_found_where_they_are(
        strings in columns(), effort in effort(), from in any::<(prop::sample::Index, prop::sample::Index)>(),
        text in prop_oneof![
            Just(b"number".to_vec()), Just(b"status nu".to_vec()), Just(b"took 1".to_vec()), Just(b"view?s".to_vec()),
            Just(b"OK".to_vec()), Just(b"1 200 OK".to_vec()), Just(b" of 1".to_vec()), Just(b":07".to_vec()), Just(b"/1/v".to_vec()), Just(b" of".to_vec()), Just(b"user ".to_vec()), Just(b"status nu".to_vec()), Just(b"took 1".to_vec()), Just(b"view?s".to_vec()),
            Just(b"OK".to_vec()), Just(b"1 200 OK".to_vec()), Just(b" of 1".to_vec()), Just(b"9".to_vec()), Just(b"er a".to_vec()), Just(b"from 10.0.1".to_vec()),
            Just(b"ms, ".to_vec()), Just(b"na l".to_vec()), Just(b"q3_x".to_vec()), Just(b"\0".to_vec()),
            Just(b"0f".to_vec()), Just(b"A-".to_vec()), Just(b"order-0".to_vec()), Just(b"der-".to_vec()), Just(b"g 0".to_vec()),
            prop::collection::vec(any::<u8>(), 0..3),
        ],
        part in any::<prop::sample::Index>(),
    ) {
        let n = strings.len();
        let (page, _) = page_of(&strings, effort);
        let range = between(from, n);
        let has = |string: &[u8], text: &[u8]| text.is_empty() || string.windows(text.len()).any(|w| w == text);
        let whole = strings.get(range.start).cloned().unwrap_or_default();
        let (head, tail) = whole.split_at(part.index(whole.len() + 1));
        let is_even = |string: &[u8]| string.len().is_multiple_of(2);
        let (has_text, has_whole) = (|string: &[u8]| has(string, &text), |string: &[u8]| has(string, &whole));
        let has_none = |_: &[u8]| panic!("where it is has been said");
        let finders: [TextFinder<'_>; 8] = [
            TextFinder { texts: &[&text], has_text: &has_text, wants: Wants::Having },
            TextFinder { texts: &[&text], has_text: &has_text, wants: Wants::Starting },
            TextFinder { texts: &[&text], has_text: &has_text, wants: Wants::Ending },
            TextFinder { texts: &[&text], has_text: &has_text, wants: Wants::Matching(&is_even) },
            TextFinder { texts: &[&whole], has_text: &has_whole, wants: Wants::Being },
            TextFinder { texts: &[&text, &whole, head], has_text: &has_none, wants: Wants::Being },
            TextFinder { texts: &[head], has_text: &has_none, wants: Wants::Starting },
            TextFinder { texts: &[tail, &whole], has_text: &has_none, wants: Wants::Ending },
        ];
        for finder in finders {
            let is_wanted = |string: &[u8]| match finder.wants {
                Wants::Having => has_text(string),
                Wants::Being => finder.texts.contains(&string),
                Wants::Starting => finder.texts.iter().any(|text| string.starts_with(text)),
                Wants::Ending => finder.texts.iter().any(|text| string.ends_with(text)),
                Wants::Matching(_) => has_text(string) && is_even(string),
            };
            let found = search_strings(&page, n, range.clone(), &finder, 1 << 20).unwrap();
            let Some(found) = found else { continue };
            let mut expected = vec![0u64; range.len().div_ceil(64)];
            for (row, string) in strings[range.clone()].iter().enumerate() {
                expected[row / 64] |= u64::from(is_wanted(string)) << (row % 64);
            }
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn slices_of_larger_columns_encode(strings in columns(), effort in effort()) {
        let (offsets, bytes) = to_columns(&strings);
        let from = strings.len() / 3;
        let mut page = Vec::new();
        encode_strings(&offsets[from..], &bytes, effort, &mut page);
        let (mut places, mut text) = (Vec::new(), Vec::new());
        decode_strings(&page, strings.len() - from, 1 << 20, &mut places, &mut text).unwrap();
        prop_assert_eq!(decoded(&places, &text), strings[from..].to_vec());
    }
}

#[test]
fn the_limit_holds_and_leaves_the_output_alone() {
    let strings: Vec<Vec<u8>> =
        (0..2000).map(|i| format!("some text {}", i * 7919 % 1999).into_bytes()).collect();
    let (offsets, bytes) = to_columns(&strings);
    for effort in [Effort::Fast, Effort::Hot, Effort::Cold] {
        let mut page = Vec::new();
        encode_strings(&offsets, &bytes, effort, &mut page);
        let (mut places, mut text) = (vec![(0, 1)], vec![b'x']);
        let max = bytes.len() - 1;
        let result = decode_strings(&page, 2000, max, &mut places, &mut text);
        assert!(matches!(result, Err(DecodeError::TooManyBytes { .. })), "{effort:?}");
        assert_eq!((places, text), (vec![(0, 1)], vec![b'x']));
    }
}

#[test]
fn blocks_are_read_one_by_one() {
    // More than one block, with strings across the boundary; those with a NUL have no templates.
    let strings: Vec<Vec<u8>> =
        (0..9000).map(|i| format!("{i:09}\0lorem ipsum {i}").into_bytes()).collect();
    let (offsets, bytes) = to_columns(&strings);
    for (effort, name) in [(Effort::Hot, "strings-lz4"), (Effort::Cold, "strings-zstd")] {
        let mut page = Vec::new();
        encode_strings(&offsets, &bytes, effort, &mut page);
        assert_eq!(crate::encoding_name(&page), name);
        for range in [0..1, 3440..3460, 8990..9000, 0..9000] {
            let (mut places, mut text) = (Vec::new(), Vec::new());
            decode_strings_range(&page, 9000, range.clone(), 1 << 20, &mut places, &mut text)
                .unwrap();
            assert_eq!(decoded(&places, &text), strings[range]);
        }
        for part in [2, 50, 9000] {
            let mut bits = vec![0u64; 9000usize.div_ceil(64)];
            (0..9000).filter(|at| at % part > 0).for_each(|at| bits[at / 64] |= 1 << (at % 64));
            let (mut places, mut text) = (Vec::new(), Vec::new());
            let all = (0..9000, &bits[..]);
            decode_selected_strings(&page, 9000, all, 1 << 20, &mut places, &mut text).unwrap();
            let expected = (0..9000).filter(|at| at % part > 0).map(|at| strings[at].clone());
            assert_eq!(decoded(&places, &text), expected.collect::<Vec<_>>());
        }
    }
}

#[test]
fn stretches_of_templates_are_read_one_by_one() {
    let string = |i: usize| format!("job {} took {} ms of {}", i % 7, i * 7919 % 10_007, i % 3);
    let strings: Vec<Vec<u8>> = (0..20_000).map(|i| string(i).into_bytes()).collect();
    let (offsets, bytes) = to_columns(&strings);
    let mut page = Vec::new();
    encode_strings(&offsets, &bytes, Effort::Cold, &mut page);
    assert_eq!(crate::encoding_name(&page), "strings-templates");
    for range in [0..1, 6660..6670, 6667..6667, 5..19_000, 19_999..20_000, 0..20_000] {
        let (mut places, mut text) = (vec![(0, 1)], b"x".to_vec());
        decode_strings_range(&page, 20_000, range.clone(), 1 << 20, &mut places, &mut text)
            .unwrap();
        assert_eq!(decoded(&places[1..], &text), strings[range.clone()]);
        let is_wanted = |string: &[u8]| string.ends_with(b"ms of 1");
        let finder =
            TextFinder { texts: &[b"ms of 1"], has_text: &is_wanted, wants: Wants::Having };
        let found =
            search_strings(&page, 20_000, range.clone(), &finder, 1 << 20).unwrap().unwrap();
        for (row, string) in strings[range.clone()].iter().enumerate() {
            assert_eq!(found[row / 64] >> (row % 64) & 1 == 1, is_wanted(string));
        }
        let too_few = strings[range.clone()].iter().map(Vec::len).sum::<usize>().saturating_sub(1);
        let refused = decode_strings_range(&page, 20_000, range, too_few, &mut places, &mut text);
        assert_eq!(refused.is_err(), too_few > 0);
    }
}

/// Of a stretch of single letters the words are as many as the bytes, and empty strings come on top.
#[test]
fn stretches_with_empty_strings_fit_into_their_text() {
    let message = |i: usize| format!("job {} took {} ms", i % 7, i * 7919 % 10_007);
    let string = |i: usize| match i {
        0..7000 => message(i),
        13_000..13_005 => String::new(),
        // Else the words of all that have no template of their own are alike.
        13_005 => "x;".into(),
        _ => (i % 10).to_string(),
    };
    let strings: Vec<Vec<u8>> = (0..14_000).map(|i| string(i).into_bytes()).collect();
    let (offsets, bytes) = to_columns(&strings);
    let mut page = Vec::new();
    encode_strings(&offsets, &bytes, Effort::Cold, &mut page);
    assert_eq!(crate::encoding_name(&page), "strings-templates");
    let (mut places, mut text) = (Vec::new(), Vec::new());
    decode_strings(&page, strings.len(), bytes.len(), &mut places, &mut text).unwrap();
    assert_eq!(decoded(&places, &text), strings);
}

/// The encoder makes no empty words between pieces; a page may have them.
#[test]
fn texts_are_found_across_empty_words() {
    let texts = |strings: &[&str]| {
        let mut all = Gathered::default();
        strings.iter().for_each(|string| all.push(string.as_bytes()));
        let mut page = Vec::new();
        encode_without_strings(all.strings(), Effort::Fast, &mut page);
        page
    };
    let numbers = |numbers: &[u64]| {
        let mut page = Vec::new();
        encode_u64(numbers, Effort::Fast, &mut page);
        page
    };
    let mut stretch = vec![1];
    put_length_prefixed(&mut stretch, &numbers(&[2]));
    put_length_prefixed(&mut stretch, &texts(&["a", "b", "c"]));
    for words in [["", "x", "", "y"], ["z", "", "", ""]] {
        stretch.push(0);
        put_length_prefixed(&mut stretch, &texts(&words));
    }
    stretch.extend(numbers(&[0; 4]));
    let mut page = vec![id::STRINGS_TEMPLATES];
    put_length_prefixed(&mut page, &stretch);
    let (mut places, mut bytes) = (Vec::new(), Vec::new());
    decode_strings(&page, 4, 100, &mut places, &mut bytes).unwrap();
    let strings = decoded(&places, &bytes);
    assert_eq!(strings, [&b"abzc"[..], b"axbc", b"abc", b"aybc"]);
    for text in [&b"ab"[..], b"bc", b"abc", b"xb", b"zc", b"ac", b"a", b"y"] {
        let has_text = |string: &[u8]| string.windows(text.len()).any(|part| part == text);
        let finder = TextFinder { texts: &[text], has_text: &has_text, wants: Wants::Having };
        let found = search_strings(&page, 4, 0..4, &finder, 100).unwrap().unwrap();
        let expected = (0..4).map(|at| u64::from(has_text(&strings[at])) << at).sum::<u64>();
        assert_eq!(found, [expected], "{text:?}");
    }
}

#[test]
fn documents_are_no_templates() {
    let document = |i: usize| format!("{{\"id\": {i}, \"v\": [{}]}}", "12, 7, ".repeat(300 + i));
    let strings: Vec<Vec<u8>> = (0..100).map(|i| document(i).into_bytes()).collect();
    let (offsets, bytes) = to_columns(&strings);
    let mut page = Vec::new();
    encode_strings(&offsets, &bytes, Effort::Cold, &mut page);
    assert_eq!(crate::encoding_name(&page), "strings-zstd");
}

#[test]
fn codes_outside_a_dictionary_are_damage_to_a_search_as_well() {
    let strings: Vec<String> = (0..200).map(|at| format!("host {}", at % 3)).collect();
    let offsets: Vec<u32> = (0..=200).map(|at| at * 6).collect();
    let mut page = Vec::new();
    encode_strings(&offsets, strings.concat().as_bytes(), Effort::Hot, &mut page);
    assert_eq!(crate::encoding_name(&page), "strings-dictionary");
    let entries = Reader::new(&page[2..]).length_prefixed().unwrap().len();
    let mut damaged = page[..3 + entries].to_vec();
    let codes: Vec<u64> = (0..200).map(|at| if at == 150 { 3 } else { at % 3 }).collect();
    encode_u64(&codes, Effort::Hot, &mut damaged);
    let is_first = |string: &[u8]| string.ends_with(b"0");
    let finder = TextFinder { texts: &[b"0"], has_text: &is_first, wants: Wants::Ending };
    let search = |page: &[u8], range| search_strings(page, 200, range, &finder, 1 << 20);
    for range in [3..200, 10..70, 64..64] {
        let bits = search(&page, range.clone()).unwrap().unwrap();
        let found = (0..range.len()).filter(|at| bits[at / 64] >> (at % 64) & 1 != 0);
        assert!(found.eq((0..range.len()).filter(|at| (at + range.start) % 3 == 0)), "{range:?}");
        let is_damaged = range.contains(&150);
        assert_eq!(search(&damaged, range.clone()).is_err(), is_damaged, "{range:?}");
    }
}
