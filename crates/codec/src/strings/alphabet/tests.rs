use proptest::prelude::*;

use super::super::Gathered;
use super::*;

/// What stands behind the encoding's id.
fn page_of(strings: &[String]) -> Option<Vec<u8>> {
    let mut all = Gathered::default();
    strings.iter().for_each(|string| all.push(string.as_bytes()));
    encode(all.strings()).map(|encoded| encoded.page[1..].to_vec())
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
    ) {
        let alphabet = alphabet(characters);
        let character = |(at, common): (usize, &Option<String>), picked: &Vec<u8>| match common {
            Some(common) => common.clone(),
            None => alphabet[picked[at] as usize % alphabet.len()].to_string(),
        };
        let string = |picked| places.iter().enumerate().map(|place| character(place, picked)).collect();
        let strings: Vec<String> = of_strings.iter().map(string).collect();
        let Some(page) = page_of(&strings) else {
            prop_assert!(strings.windows(2).all(|pair| pair[0] == pair[1]));
            return Ok(());
        };
        let page = Page::read(Reader::new(&page), strings.len()).unwrap();
        for level in SimdLevel::available() {
            let mut out = b"before".to_vec();
            append_at(level, &page.shape, page.packed, &mut out).unwrap();
            let expected = format!("before{}", strings.concat());
            prop_assert_eq!(str::from_utf8(&out).unwrap(), expected, "{:?}", level);
        }
        for string in &strings {
            // All of it, its beginning and its end.
            for part in [0..string.len(), 0..string.len() / 3, string.len() / 2..string.len()] {
                let mut bits = [0];
                let text = &string[part.clone()];
                let wanted = page.shape.pack(text.as_bytes(), part.start).unwrap();
                find(page.packed, &wanted, &mut bits);
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
    ) {
        let alphabet: Vec<u8> = alphabet(characters).into_iter().map(|character| character as u8).collect();
        let Ok(shape) = Shape::new(&pattern, &alphabet) else { return Ok(()) };
        let packed = &bytes[..bytes.len() / shape.stride() * shape.stride()];
        let of_level = |level| {
            let mut out = Vec::new();
            append_at(level, &shape, packed, &mut out).map(|()| out)
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
    assert_eq!(page[..16], [b"\x02\0\0\x0c", &b"0123456789yz"[..]].concat());
    let page = Page::read(Reader::new(&page), 150).unwrap();
    let mut out = Vec::new();
    append_at(SimdLevel::detect(), &page.shape, page.packed, &mut out).unwrap();
    assert_eq!(str::from_utf8(&out).unwrap(), strings.concat());
}

#[test]
fn texts_that_are_not_of_the_shape_are_not_found() {
    let shape = Shape::new(b"id-\0\0\0", b"0123456789abcdef").unwrap();
    let all = Packed { bits: vec![0x9a, 0x0f], known: vec![0xff, 0x0f] };
    assert_eq!(shape.pack(b"id-a9f", 0), Some(all));
    for text in ["id-a9F", "id_a9f", "id-a9f0", "id-g9f"] {
        assert_eq!(shape.pack(text.as_bytes(), 0), None, "{text:?}");
    }
    let end = Packed { bits: vec![0x90, 0x0f], known: vec![0xf0, 0x0f] };
    assert_eq!(shape.pack(b"9f", 4), Some(end));
    assert_eq!(shape.pack(b"9f", 5), None);
}

#[test]
fn damage_is_told() {
    let page = page_of(&owned(&["a0", "a1", "a2"])).unwrap();
    assert_eq!(page, [2, b'a', VARIES, 3, b'0', b'1', b'2', 0, 1, 2]);
    let read = |page: &[u8], count| Page::read(Reader::new(page), count).map(|_| ());
    assert_eq!(read(&page, 3), Ok(()));
    assert_eq!(read(&page, 2), Err(DecodeError::TrailingBytes(1)));
    assert_eq!(read(&page, 4), Err(DecodeError::Truncated { needed: 1 }));
    let corrupt = |page: &[u8]| matches!(read(page, 3), Err(DecodeError::Corrupt(_)));
    assert!(corrupt(&[1, b'a', 2, b'0', b'1', 0, 0, 0]), "nothing varies");
    assert!(corrupt(&[0, 2, b'0', b'1', 0, 0, 0]));
    assert!(corrupt(&[1, VARIES, 1, b'0', 0, 0, 0]), "one character");
    assert!(corrupt(&[1, VARIES, 2, b'1', b'0', 0, 0, 0]), "characters that do not ascend");
    assert!(corrupt(&[0x81, 2, VARIES]));
    let damaged = [2, b'a', VARIES, 3, b'0', b'1', b'2', 0, 4, 2];
    let damaged = Page::read(Reader::new(&damaged), 3).unwrap();
    assert!(matches!(damaged.strings(0..2), Err(DecodeError::Corrupt(_))), "an unused bit is set");
    assert_eq!(damaged.strings(2..3), Ok(&[2][..]));
}
