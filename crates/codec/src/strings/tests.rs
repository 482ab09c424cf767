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
    let constant = (prop::collection::vec(any::<u8>(), 0..9), 1usize..100)
        .prop_map(|(string, n)| vec![string; n]);
    prop_oneof![random, few, lines, constant]
}

/// The strings at some places.
fn decoded(places: &[TextPlace], text: &[u8]) -> Vec<Vec<u8>> {
    let string = |(start, len): &TextPlace| text[*start as usize..][..*len as usize].to_vec();
    places.iter().map(string).collect()
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
        decode_strings(&page, n, 1 << 20, &mut places, &mut text).unwrap();
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
    // More than one block, with strings across the boundary.
    let strings: Vec<Vec<u8>> =
        (0..9000).map(|i| format!("{i:09} lorem ipsum dolor sit amet").into_bytes()).collect();
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
    }
}
