//! The worked examples of docs/formats/encodings.md are what is written, and what is read.

#![allow(clippy::unwrap_used)]

use codec::Effort;

/// The bytes of the example that follows the line `title`.
fn listed(title: &str) -> Vec<u8> {
    let page = include_str!("../../../docs/formats/encodings.md");
    let (_, from) = page.split_once(&format!("\n    {title}\n")).unwrap();
    let line = from.lines().next().unwrap();
    line.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// Whether an encoder writes `page` at some effort.
fn is_written(page: &[u8], encode: impl Fn(Effort, &mut Vec<u8>)) -> bool {
    [Effort::Fast, Effort::Hot, Effort::Cold].into_iter().any(|effort| {
        let mut out = Vec::new();
        encode(effort, &mut out);
        out == page
    })
}

fn check_integers(values: &[i64]) {
    let text: Vec<String> = values.iter().map(ToString::to_string).collect();
    let page = listed(&format!("values {}", text.join(" ")));
    assert!(is_written(&page, |effort, out| codec::encode_i64(values, effort, out)), "{values:?}");
    let mut out = Vec::new();
    codec::decode_i64(&page, values.len(), &mut out).unwrap();
    assert_eq!(out, values);
}

#[test]
fn integers() {
    check_integers(&[3, 17, 9, 4, 12, 3, 30, 8, 21, 5]);
    check_integers(&[10, 12, 11, 13, 12, 14, 13, 15, 1000, 1001]);
}

#[test]
fn floats() {
    let values = [20.1, 20.3, 20.2, 20.2, 20.4, 20.1];
    let page = listed("values 20.1 20.3 20.2 20.2 20.4 20.1");
    assert!(is_written(&page, |effort, out| codec::encode_f64(&values, effort, out)));
    let mut out = Vec::new();
    codec::decode_f64(&page, values.len(), &mut out).unwrap();
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&out), bits(&values));
}

#[test]
fn bits() {
    let page = listed("bits 137 and 704 of 1000");
    let mut words = vec![0u64; 16];
    words[137 / 64] |= 1 << (137 % 64);
    words[704 / 64] |= 1 << (704 % 64);
    let mut out = Vec::new();
    codec::encode_bool(&words, 1000, &mut out);
    assert_eq!(out, page);
    let mut out = Vec::new();
    codec::decode_bool(&page, 1000, &mut out).unwrap();
    assert_eq!(out, words);
}

#[test]
fn strings() {
    let page = listed("values \"a\", \"\", and \"c\" NUL U+00E9 in UTF-8");
    let (offsets, bytes) = (vec![0u32, 1, 1, 5], "ac\0\u{e9}".as_bytes().to_vec());
    assert!(is_written(&page, |effort, out| codec::encode_strings(&offsets, &bytes, effort, out)));
    let (mut places, mut text) = (Vec::new(), Vec::new());
    codec::decode_strings(&page, 3, 100, &mut places, &mut text).unwrap();
    assert_eq!((places, text), (vec![(0, 1), (1, 0), (1, 4)], bytes));
}

#[test]
fn alphabets() {
    let page = listed("values \"rack-ab\", \"rack-ca\", \"rack-bb\", \"rack-cc\"");
    let (offsets, bytes) = ([0u32, 7, 14, 21, 28], b"rack-abrack-carack-bbrack-cc");
    assert!(is_written(&page, |effort, out| codec::encode_strings(&offsets, bytes, effort, out)));
    let (mut places, mut text) = (Vec::new(), Vec::new());
    codec::decode_strings(&page, 4, 100, &mut places, &mut text).unwrap();
    assert_eq!((places, &text[..]), (vec![(0, 7), (7, 7), (14, 7), (21, 7)], &bytes[..]));
}

#[test]
fn templates() {
    let strings: Vec<String> =
        (0..64).map(|i| format!("disk {} is {i:02} % full", i % 2)).collect();
    let page = listed(
        "values \"disk 0 is 00 % full\", \"disk 1 is 01 % full\" and so on to \"disk 1 is 63 % full\"",
    );
    let (mut offsets, mut bytes) = (vec![0u32], Vec::new());
    for string in &strings {
        bytes.extend_from_slice(string.as_bytes());
        offsets.push(bytes.len() as u32);
    }
    let mut written = Vec::new();
    codec::encode_strings(&offsets, &bytes, Effort::Cold, &mut written);
    let hex: Vec<String> = written.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(written, page, "{}", hex.join(" "));
    let (mut places, mut text) = (Vec::new(), Vec::new());
    codec::decode_strings(&page, 64, 2000, &mut places, &mut text).unwrap();
    assert_eq!(text, bytes);
}
