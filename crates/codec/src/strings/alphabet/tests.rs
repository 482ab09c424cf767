use proptest::prelude::*;

use super::super::Gathered;
use super::super::search::{TextFinder, Wants};
use super::search::Sought;
use super::*;

/// What stands behind the encoding's id.
fn page_of(strings: &[String]) -> Option<Vec<u8>> {
    let mut all = Gathered::default();
    strings.iter().for_each(|string| all.push(string.as_bytes()));
    let of_level = |level| {
        encode_at(level, all.strings(), Effort::Cold).map(|encoded| encoded.page[1..].to_vec())
    };
    let page = of_level(SimdLevel::Portable);
    for level in SimdLevel::available() {
        assert_eq!(of_level(level), page, "{level:?}");
    }
    page
}

fn owned(strings: &[&str]) -> Vec<String> {
    strings.iter().map(|string| (*string).to_owned()).collect()
}

/// As many characters, which ascend.
fn alphabet(characters: usize) -> Vec<char> {
    ('+'..='~').take(characters).collect()
}

proptest! {
    #[test]
    fn every_level_appends_what_was_packed(
        // What all have, or characters of an alphabet.
        places in prop::collection::vec(prop::option::of("[!-~]"), 1..200),
        characters in 2usize..65,
        of_strings in prop::collection::vec(prop::collection::vec(any::<u8>(), 200), 2..40),
        // So many of the first places count the strings, in binary, over and over.
        (counting, digits) in (prop_oneof![Just(0), 1usize..200], 1usize..9),
    ) {
        let alphabet = alphabet(characters);
        let character = |(at, common): (usize, &Option<String>), picked: &Vec<u8>| match common {
            Some(common) => common.clone(),
            None => alphabet[picked[at] as usize % alphabet.len()].to_string(),
        };
        let string = |(number, mut picked): (usize, Vec<u8>)| {
            let digits = (0..counting).map(|at| (number >> (at % digits) & 1) as u8);
            picked.iter_mut().zip(digits).for_each(|(picked, digit)| *picked = digit);
            places.iter().enumerate().map(|place| character(place, &picked)).collect()
        };
        let strings: Vec<String> = of_strings.into_iter().enumerate().map(string).collect();
        let Some(page) = page_of(&strings) else {
            prop_assert!(strings.windows(2).all(|pair| pair[0] == pair[1]));
            return Ok(());
        };
        let page = Page::read(Reader::new(&page), strings.len()).unwrap();
        let all = Wanted::all(0..strings.len());
        let words = page.heads.of(&all).unwrap();
        prop_assert_eq!(words.len(), strings.len() * page.shape.head_words);
        let parts = Parts { strings: strings.len(), words: &words, packed: page.packed };
        for level in SimdLevel::available() {
            let mut out = b"before".to_vec();
            Writer::at(level, &page.shape).append(parts, &mut out).unwrap();
            let expected = format!("before{}", strings.concat());
            prop_assert_eq!(str::from_utf8(&out).unwrap(), expected, "{:?}", level);
        }
        for string in &strings {
            // All of it, its beginning and its end.
            for part in [0..string.len(), 0..string.len() / 3, string.len() / 2..string.len()] {
                let text = &string[part.clone()];
                let sought = Sought::new(&page.shape, text.as_bytes(), part.start).unwrap();
                let mut bits = sought.find(page.packed, strings.len());
                for (word, of_head) in sought.words.iter().enumerate() {
                    of_head.keep(&page.heads.word(word, &all).unwrap(), &mut bits);
                }
                let are = strings.iter().map(|other| &other[part.clone()] == text);
                let expected = are.rev().fold(0, |bits, is| bits << 1 | u64::from(is));
                prop_assert_eq!(bits[0], expected, "{:?}", part);
            }
        }
    }

    #[test]
    fn every_level_notices_what_is_outside_of_the_alphabet(
        pattern in prop::collection::vec(prop_oneof![Just(VARIES), Just(b'x')], 1..150),
        characters in 2usize..65,
        bytes in prop::collection::vec(any::<u8>(), 1..500),
        (head_words, word) in (0usize..4, any::<u64>()),
    ) {
        let alphabet: Vec<u8> = alphabet(characters).into_iter().map(|character| character as u8).collect();
        let Ok(mut shape) = Shape::new(&pattern, &alphabet) else { return Ok(()) };
        shape.head_words = head_words.min(shape.places.len().div_ceil(shape.word_places()));
        let stride = shape.stride();
        let strings = bytes.len().checked_div(stride).unwrap_or(40);
        let words: Vec<u64> = (0..shape.head_words * strings).map(|at| word.rotate_left(at as u32)).collect();
        let parts = Parts { strings, words: &words, packed: &bytes[..strings * stride] };
        let of_level = |level| {
            let mut out = Vec::new();
            Writer::at(level, &shape).append(parts, &mut out).map(|()| out)
        };
        let expected = of_level(SimdLevel::Portable);
        for level in SimdLevel::available() {
            prop_assert_eq!(&of_level(level), &expected, "{:?}", level);
        }
    }
}

#[test]
fn strings_of_other_kinds_are_refused() {
    let is_made = |strings: &[&str]| page_of(&owned(strings)).is_some();
    assert!(is_made(&["id 0a", "id b9"]));
    assert!(is_made(&["idx", "Idy"]), "any characters, if they are few");
    assert!(is_made(&["\u{e9}x", "\u{ea}y", "\u{e9}y"]), "of eight bits, too");
    assert!(!is_made(&["id 0a", "id 0ab"]), "of other lengths");
    assert!(!is_made(&["\0 0a", "\0 0b"]), "which is what a place that varies looks like");
    assert!(!is_made(&["ab", "ab"]), "which do not differ");
    assert!(!is_made(&["", ""]));
    let digits = |digit: char| digit.to_string().repeat(LENGTH_MAX + 1);
    assert!(!is_made(&[&digits('0'), &digits('1')]), "too long");
    let of_many = |characters: u8| {
        let strings = (0..characters).map(|at| format!("-{}", char::from(b' ' + at)));
        page_of(&strings.collect::<Vec<_>>())
    };
    assert!(of_many(64).is_some());
    assert!(of_many(65).is_none());
}

/// The first 64 strings say nothing of a place which the others vary in.
#[test]
fn characters_of_places_that_vary_late_are_known() {
    let mut strings: Vec<String> = (0..150).map(|at| format!("{}z", at % 10)).collect();
    strings[140] = "0y".into();
    let page = page_of(&strings).unwrap();
    assert_eq!(page[..17], [b"\x02\0\0\x0c", &b"0123456789yz\x01"[..]].concat());
    let page = Page::read(Reader::new(&page), 150).unwrap();
    let mut out = Vec::new();
    let words = page.heads.of(&Wanted::all(0..150)).unwrap();
    let parts = Parts { strings: 150, words: &words, packed: page.packed };
    Writer::new(&page.shape, 150).append(parts, &mut out).unwrap();
    assert_eq!(str::from_utf8(&out).unwrap(), strings.concat());
}

#[test]
fn texts_that_are_not_of_the_shape_are_not_found() {
    let shape = Shape::new(b"id-\0\0\0", b"0123456789abcdef").unwrap();
    let found = |text: &str, at| {
        Sought::new(&shape, text.as_bytes(), at).map(|sought| sought.find(&[0x9a, 0x0f], 1)[0])
    };
    assert_eq!(found("id-a9f", 0), Some(1));
    assert_eq!(found("id-a9e", 0), Some(0));
    for text in ["id-a9F", "id_a9f", "id-a9f0", "id-g9f"] {
        assert_eq!(found(text, 0), None, "{text:?}");
    }
    assert_eq!(found("9f", 4), Some(1));
    assert_eq!(found("af", 4), Some(0));
    assert_eq!(found("9f", 5), None);
}

/// `UUIDv7`s of a second each.
fn ids_of_times(count: u64) -> Vec<String> {
    let noise = |at: u64, salt: u64| (at + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
    let id = |at: u64| {
        let time = format!("{:012x}", 1_800_000_000_000 + at * 1000 + noise(at, 0) % 1000);
        let (a, b) = (noise(at, 7) & 0xfff, noise(at, 77));
        format!("{}-{}-7{a:03x}-{:x}{:03x}-{b:012x}", &time[..8], &time[8..], 8 + at % 4, a ^ 0x5a5)
    };
    (0..count).map(id).collect()
}

#[test]
fn what_begins_with_a_time_has_heads() {
    let strings = ids_of_times(1000);
    let bytes = page_of(&strings).unwrap();
    // Less than thirty bits in place of 64, and as many as all places have behind these.
    assert!(bytes.len() < 1000 * (4 + 8), "{} bytes", bytes.len());
    let page = Page::read(Reader::new(&bytes), strings.len()).unwrap();
    assert_eq!(page.shape.head_words, 1);
    assert!(page.heads.of(&Wanted::all(0..1000)).unwrap().is_sorted());
    let ids: Vec<String> = (0..1000)
        .map(|at| format!("{:08x}c0ffee{:04x}{at:06x}", 0x6900_0000 + at, at % 7))
        .collect();
    let page = page_of(&ids).unwrap();
    assert!(page.len() < 4000, "{} bytes, of a time, a process and what it counts", page.len());
    let page = Page::read(Reader::new(&page), ids.len()).unwrap();
    assert_eq!(page.packed, []);
    let noise: Vec<String> = strings.iter().map(|id| id.chars().rev().collect()).collect();
    let page = page_of(&noise).unwrap();
    let page = Page::read(Reader::new(&page), noise.len()).unwrap();
    assert_eq!(page.shape.head_words, 0, "which ends with a time");
    // Texts that are told by heads alone, by what is packed alone, and by both.
    let is_same = |text: &str, wants: Wants<'_>, of: &dyn Fn(&str) -> bool| {
        let has_text = |bytes: &[u8]| str::from_utf8(bytes).unwrap().contains(text);
        let finder = TextFinder { texts: &[text.as_bytes()], has_text: &has_text, wants };
        let bits = search(Reader::new(&bytes), 1000, 100..900, &finder).unwrap();
        let found = (0..800).filter(|at| bits[at / 64] >> (at % 64) & 1 != 0);
        let expected = (0..800).filter(|at| of(&strings[at + 100]));
        assert!(found.eq(expected), "{text}");
    };
    let id = strings[321].as_str();
    is_same(id, Wants::Being, &|other| other == id);
    for at in [3, 11, 20, 30] {
        is_same(&id[..at], Wants::Starting, &|other| other.starts_with(&id[..at]));
        is_same(&id[at..], Wants::Ending, &|other| other.ends_with(&id[at..]));
        is_same(&id[at..at + 3], Wants::Having, &|other| other.contains(&id[at..at + 3]));
    }
}

#[test]
fn damage_is_told() {
    let page = page_of(&owned(&["a0", "a1", "a2"])).unwrap();
    assert_eq!(page, [2, b'a', VARIES, 3, b'0', b'1', b'2', 0, 0, 1, 2]);
    let read = |page: &[u8], count| Page::read(Reader::new(page), count).map(|_| ());
    assert_eq!(read(&page, 3), Ok(()));
    assert_eq!(read(&page, 2), Err(DecodeError::TrailingBytes(1)));
    assert_eq!(read(&page, 4), Err(DecodeError::Truncated { needed: 1 }));
    let corrupt = |page: &[u8]| matches!(read(page, 3), Err(DecodeError::Corrupt(_)));
    assert!(corrupt(&[1, b'a', 2, b'0', b'1', 0, 0, 0, 0]), "nothing varies");
    assert!(corrupt(&[0, 2, b'0', b'1', 0, 0, 0, 0]));
    assert!(corrupt(&[1, VARIES, 1, b'0', 0, 0, 0, 0]), "one character");
    assert!(corrupt(&[1, VARIES, 2, b'1', b'0', 0, 0, 0, 0]), "characters that do not ascend");
    assert!(corrupt(&[1, VARIES, 2, b'0', b'1', 2, 1, 0, 1, 0]), "more words than places");
    assert!(corrupt(&[0x81, 2, VARIES]));
    let damaged = [2, b'a', VARIES, 3, b'0', b'1', b'2', 0, 0, 4, 2];
    let damaged = Page::read(Reader::new(&damaged), 3).unwrap();
    assert!(matches!(damaged.strings(0..2), Err(DecodeError::Corrupt(_))), "an unused bit is set");
    assert_eq!(damaged.strings(2..3), Ok(&[2][..]));
    // Words have four bits.
    let mut page = vec![2, VARIES, VARIES, 3, b'0', b'1', b'2', 1];
    let mut heads = Vec::new();
    crate::int::encode_u64(&[1, 16, 1], Effort::Cold, &mut heads);
    put_length_prefixed(&mut page, &heads);
    let read = Page::read(Reader::new(&page), 3).unwrap();
    let words = read.heads.of(&Wanted::all(0..3));
    assert!(matches!(words, Err(DecodeError::Corrupt(_))), "a word is too long");
}
