use proptest::prelude::*;

use super::*;

const HEADER: FileHeader = FileHeader { sequence: 3, base: Lsn(5000), previous_end: Lsn(4000) };

/// The bytes of the page's hex listings: a header, then a record.
fn listings() -> Vec<Vec<u8>> {
    let page = include_str!("../../../../docs/formats/wal.md");
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let line = |line: &str| {
        let digits = line.split('|').next().unwrap().replace(' ', "");
        digits.as_bytes().chunks(2).map(byte).collect::<Vec<u8>>()
    };
    let blocks = page.split("```hex\n").skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap().lines().flat_map(line).collect())
        .collect()
}

#[test]
fn the_examples_in_the_documents_are_what_is_written() {
    let record = RecordHeader {
        is_fill: false,
        payload_bytes: 5,
        payload_crc: crc32c(b"hello"),
        durable_back: 0,
    };
    let record = [&record.encode(Lsn(5000))[..], b"hello"].concat();
    let header = HEADER.encode()[..FILE_HEADER_BYTES].to_vec();
    assert_eq!(listings(), [header, record]);
}

/// The worked example of docs/formats/wal.md. These bytes never change.
#[test]
fn the_documented_bytes() {
    let header = HEADER.encode();
    let copy: [u8; FILE_HEADER_BYTES] = [
        0x4e, 0x59, 0x41, 0x4c, 0x41, 0x57, 0x41, 0x4c, 1, 0, 0, 0, 0, 0, 0, 0, //
        0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, //
        0x88, 0x13, 0, 0, 0, 0, 0, 0, 0xa0, 0x0f, 0, 0, 0, 0, 0, 0, //
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xb8, 0xec, 0x8e, 0x56,
    ];
    // As written before there were fills; and since.
    let read = FileHeader::decode(&copy, 3).unwrap();
    assert_eq!((read.header, read.damaged_copy), (HEADER, Some(SECOND_COPY as u64)));
    let mut with_fills = copy;
    with_fills[AT_INCOMPATIBLE] = 1;
    with_fills[AT_HEADER_CRC..].copy_from_slice(&[0x87, 0xc8, 0xdf, 0x36]);
    let copy = with_fills;
    let mut expected = [0; DATA_START];
    expected[..FILE_HEADER_BYTES].copy_from_slice(&copy);
    expected[SECOND_COPY..SECOND_COPY + FILE_HEADER_BYTES].copy_from_slice(&copy);
    assert_eq!(header, expected);
    let record = RecordHeader {
        is_fill: false,
        payload_bytes: 5,
        payload_crc: crc32c(b"hello"),
        durable_back: 0,
    };
    let expected = [5, 0, 0, 0, 0x4c, 0xbb, 0x71, 0x9a, 0, 0, 0, 0, 0x89, 0x01, 0xc0, 0x7e];
    assert_eq!(record.encode(Lsn(5000)), expected);
}

#[test]
fn a_header_survives_the_loss_of_one_copy() {
    let good = HEADER.encode();
    let decode = |bytes: &[u8]| FileHeader::decode(bytes, 3);
    assert_eq!(decode(&good), Ok(ReadHeader { header: HEADER, damaged_copy: None }));
    for at in 0..DATA_START {
        for bit in 0..8 {
            let mut bytes = good;
            bytes[at] ^= 1 << bit;
            let read = decode(&bytes).unwrap();
            assert_eq!(read.header, HEADER);
            let expected = match at {
                0..FILE_HEADER_BYTES => Some(0),
                at if (SECOND_COPY..SECOND_COPY + FILE_HEADER_BYTES).contains(&at) => Some(512),
                _ => None,
            };
            assert_eq!(read.damaged_copy, expected);
            bytes[(at + SECOND_COPY) % DATA_START] ^= 1 << bit;
            assert_eq!(decode(&bytes).is_ok(), expected.is_none());
        }
    }
    for len in 0..SECOND_COPY + FILE_HEADER_BYTES {
        let read = decode(&good[..len]);
        assert_eq!(read.is_ok(), len >= FILE_HEADER_BYTES, "{len}");
    }
    assert!(matches!(FileHeader::decode(&good, 4), Err(HeaderError::Damaged(_))));
}

#[test]
fn impossible_positions_are_damage() {
    for (base, previous_end) in [(10, 11), (Lsn::MAX.0 + 1, 0), (u64::MAX, u64::MAX)] {
        let header = FileHeader { sequence: 3, base: Lsn(base), previous_end: Lsn(previous_end) };
        let decoded = FileHeader::decode(&header.encode(), 3);
        assert!(matches!(decoded, Err(HeaderError::Damaged(_))), "{decoded:?}");
    }
}

/// A header with some bytes replaced and the checksums made right again.
pub(crate) fn patched(header: &FileHeader, at: usize, patch: &[u8]) -> [u8; DATA_START] {
    let mut bytes = header.encode();
    for copy in [0, SECOND_COPY] {
        bytes[copy + at..copy + at + patch.len()].copy_from_slice(patch);
        let crc = crc32c(&bytes[copy..copy + AT_HEADER_CRC]);
        bytes[copy + AT_HEADER_CRC..copy + FILE_HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    }
    bytes
}

#[test]
fn later_versions_and_unknown_needs_are_refused_and_hints_are_not() {
    let decode = |at, patch: &[u8]| FileHeader::decode(&patched(&HEADER, at, patch), 3);
    for (at, patch) in [(AT_VERSION, [2, 0, 0, 0]), (AT_INCOMPATIBLE, [0, 0, 0, 0x80])] {
        assert!(matches!(decode(at, &patch), Err(HeaderError::Unsupported(_))));
    }
    assert_eq!(decode(AT_COMPATIBLE, &[1, 2, 3, 4]).unwrap().header, HEADER);
}

proptest! {
    #[test]
    fn record_headers_come_back_and_only_at_their_position(
        start in 0..Lsn::MAX.0,
        is_fill: bool,
        payload_bytes in 0..=RECORD_BYTES_MAX as u32,
        payload_crc: u32,
        back: u32,
        other in 0..Lsn::MAX.0,
        bit in 0..128usize,
    ) {
        let durable_back = u64::from(back).min(start) as u32;
        let header = RecordHeader { is_fill, payload_bytes, payload_crc, durable_back };
        let mut bytes = header.encode(Lsn(start));
        let decode = |bytes: &_, at| RecordHeader::decode(bytes, Lsn(at), RECORD_BYTES_MAX);
        prop_assert_eq!(decode(&bytes, start), Some(header));
        if other != start && (other ^ start) <= u64::from(u32::MAX) {
            prop_assert_eq!(decode(&bytes, other), None, "a checksum tells all such positions apart");
        }
        if payload_bytes > 0 {
            let too_long = payload_bytes as usize - 1;
            prop_assert_eq!(RecordHeader::decode(&bytes, Lsn(start), too_long), None);
        }
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(decode(&bytes, start), None);
    }

    #[test]
    fn no_bytes_make_a_header_panic(bytes: Vec<u8>, sequence: u64, at in 0..100usize, patch: u64) {
        let _ = FileHeader::decode(&bytes, sequence);
        let at = at.min(AT_HEADER_CRC - 8);
        let _ = FileHeader::decode(&patched(&HEADER, at, &patch.to_le_bytes()), 3);
    }
}
