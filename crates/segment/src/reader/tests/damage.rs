//! Files that are not what a writer left.

use std::path::Path;

use model::TimeRange;
use proptest::prelude::*;

use crate::format::{Extent, HEADER_LEN, MeasurementList, TRAILER_LEN};
use crate::fuzzing::{fuzz_file, fuzz_parts};
use crate::reader::column::{self, PageShape};
use crate::testing::{ALL_SERIES, PlainMeasurement, open, read, regular, specs, write};
use crate::{SegmentError, SegmentReader};

fn all_rows(reader: &SegmentReader, m: &PlainMeasurement) -> Result<bool, SegmentError> {
    Ok(read(reader, &m.name, ALL_SERIES, TimeRange::ALL)? == m.rows)
}

/// The offset that an error about damage names.
fn offset_of(error: &SegmentError) -> u64 {
    match error {
        SegmentError::Corrupt { path, offset, detail } => {
            assert_eq!(path, Path::new("test.seg"));
            assert!(!detail.is_empty());
            *offset
        }
        SegmentError::Unsupported { .. } => 0,
        other => panic!("not a report of damage: {other}"),
    }
}

/// A small file with several types, missing values, windows and series.
fn small() -> (Vec<u8>, Vec<PlainMeasurement>) {
    let (mut spec, mut plain) = regular(40, 2, 10);
    spec.options.block_rows_max = 30;
    spec.options.window_rows_min = Some(4);
    let types = spec.clone();
    let types = crate::testing::Spec { seed: 3, measurements: vec![(5, 25), (3, 9)], ..types };
    plain.extend(types.plain().into_iter().zip(["n1", "n2"]).map(|(mut m, name)| {
        m.name = name.into();
        m
    }));
    (write(&spec, &plain).0, plain)
}

#[test]
fn every_flipped_bit_is_noticed_and_never_gives_other_rows() {
    let (bytes, plain) = small();
    assert!(open(bytes.clone()).unwrap().verify().errors.is_empty());
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let reader = match open(damaged) {
            Ok(reader) => reader,
            Err(error) => {
                offset_of(&error);
                continue;
            }
        };
        let errors = reader.verify().errors;
        assert!(!errors.is_empty(), "bit {bit} was not missed");
        for error in errors {
            assert!(offset_of(&error) <= (bit / 8) as u64, "bit {bit}: {error}");
        }
        for measurement in &plain {
            match all_rows(&reader, measurement) {
                Ok(same) => assert!(same, "bit {bit}"),
                Err(error) => assert!(offset_of(&error) <= (bit / 8) as u64, "bit {bit}: {error}"),
            }
        }
    }
}

#[test]
fn a_file_cut_short_is_refused() {
    let (bytes, _) = small();
    for len in 0..bytes.len() {
        let error = open(bytes[..len].to_vec()).expect_err("it has no trailer");
        assert!(error.is_corrupt(), "{error}");
    }
}

#[test]
fn damage_to_a_page_leaves_the_rest_readable() {
    let (mut bytes, plain) = small();
    let reader = open(bytes.clone()).unwrap();
    let block = &super::blocks(&reader, "m0")[1];
    let page = block.page(1).unwrap().extent;
    bytes[page.offset as usize + 1] ^= 0x10;
    let reader = open(bytes).unwrap();
    assert_eq!(reader.verify().errors.len(), 1);
    let mut column = model::Column::new(model::Values::empty(model::FieldType::Integer));
    let error = reader.column(block, 1, 0..block.rows(), &mut column).unwrap_err();
    assert_eq!(offset_of(&error), page.offset);
    assert!(error.to_string().starts_with("test.seg is damaged at offset"), "{error}");
    let block = &super::blocks(&reader, "m0")[1];
    reader.column(block, 0, 0..block.rows(), &mut column).unwrap();
    assert_eq!(column.len(), block.rows());
    assert!(all_rows(&reader, &plain[1]).unwrap());
}

#[test]
fn a_segment_of_a_later_version_is_refused_as_such() {
    let (bytes, _) = small();
    for (at, value) in [(8, 2u8), (16, 16)] {
        let mut later = bytes.clone();
        later[at] = value;
        let crc = crc32c::crc32c(&later[..HEADER_LEN - 4]);
        later[HEADER_LEN - 4..HEADER_LEN].copy_from_slice(&crc.to_le_bytes());
        let error = open(later).unwrap_err();
        assert!(matches!(error, SegmentError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("newer version"), "{error}");
    }
    let mut compatible = bytes;
    compatible[12] = 1;
    let crc = crc32c::crc32c(&compatible[..HEADER_LEN - 4]);
    compatible[HEADER_LEN - 4..HEADER_LEN].copy_from_slice(&crc.to_le_bytes());
    assert!(open(compatible).unwrap().verify().errors.is_empty());
}

/// Changes a byte of the directory of the first measurement, or of the list, and makes all checksums
/// above it right again. Says where the byte is in the file; `None` if there are fewer.
fn forge(bytes: &mut [u8], in_list: bool, at: usize, change: impl Fn(u8) -> u8) -> Option<usize> {
    let trailer_at = bytes.len() - TRAILER_LEN;
    let list_at =
        u64::from_le_bytes(bytes[trailer_at..trailer_at + 8].try_into().unwrap()) as usize;
    let list = MeasurementList::decode(&bytes[list_at..trailer_at], list_at as u64).unwrap();
    let extent = list.entries()[0].directory;
    let (from, to) = match in_list {
        true => (list_at, trailer_at),
        false => (extent.offset as usize, extent.end() as usize),
    };
    let place = Some(from + at).filter(|place| *place < to)?;
    bytes[place] = change(bytes[place]);
    if !in_list {
        replace_crc(bytes, extent, list_at..trailer_at);
    }
    let list_crc = crc32c::crc32c(&bytes[list_at..trailer_at]).to_le_bytes();
    bytes[trailer_at + 12..trailer_at + 16].copy_from_slice(&list_crc);
    let crc = crc32c::crc32c(&bytes[trailer_at..trailer_at + 80]).to_le_bytes();
    bytes[trailer_at + 80..trailer_at + 84].copy_from_slice(&crc);
    Some(place)
}

/// Makes the checksum of a changed part right where it is written down, which is somewhere in `held`.
fn replace_crc(bytes: &mut [u8], extent: Extent, mut held: std::ops::Range<usize>) {
    let (from, to) = (extent.offset as usize, extent.end() as usize);
    let crc = crc32c::crc32c(&bytes[from..to]).to_le_bytes();
    let old = extent.crc32c.to_le_bytes();
    let at = held.find(|i| bytes[*i..*i + 4] == old).unwrap();
    bytes[at..at + 4].copy_from_slice(&crc);
}

#[test]
fn verification_notices_changed_values_by_their_summaries() {
    let (mut spec, plain) = regular(40, 2, 10);
    spec.options.block_rows_max = 30;
    spec.options.window_rows_min = Some(4);
    // Bounds of bounded summaries can be other ones for the same values.
    spec.options.effort = codec::Effort::Hot;
    let (bytes, _) = write(&spec, &plain);
    let reader = open(bytes.clone()).unwrap();
    let block = &super::blocks(&reader, "m0")[1];
    let page = *block.page(0).unwrap();
    let directory = reader.measurements().unwrap().get("m0").unwrap().directory;
    for part in [page.extent, page.windows.unwrap()] {
        for place in part.offset..part.end() {
            let mut forged = bytes.clone();
            forged[place as usize] ^= 1;
            replace_crc(&mut forged, part, directory.offset as usize..directory.end() as usize);
            forge(&mut forged, false, 0, |byte| byte).unwrap();
            let errors = open(forged).unwrap().verify().errors;
            assert!(!errors.is_empty(), "byte {place} of {part:?}");
        }
    }
}

#[test]
fn a_page_with_other_values_than_its_directory_says_is_refused() {
    let mut page = Vec::new();
    let mut validity = Vec::new();
    codec::encode_validity(&[0b1011], 4, &mut validity);
    crate::input::put_bytes(&mut page, &validity);
    codec::encode_i64(&[1, 2, 3], codec::Effort::Hot, &mut page);
    for (count, good) in [(3, true), (2, false), (1, false)] {
        let mut out = model::Column::new(model::Values::Integer(Vec::new()));
        let shape = PageShape { rows: 4, count };
        assert_eq!(column::decode(&page, shape, 0..1, &mut out).is_ok(), good);
    }
}

#[test]
fn verification_notices_every_lie_of_a_directory() {
    let (mut spec, plain) = regular(40, 2, 10);
    spec.options.block_rows_max = 30;
    spec.options.window_rows_min = Some(4);
    let (bytes, _) = write(&spec, &plain);
    for in_list in [false, true] {
        for at in 0..400 {
            let mut forged = bytes.clone();
            let Some(place) = forge(&mut forged, in_list, at, |byte| byte.wrapping_add(1)) else {
                break;
            };
            // Names can be anything.
            let in_name = |name: &[u8]| {
                bytes[place - 1..].starts_with(name) || bytes[place..].starts_with(name)
            };
            if [b"f0", b"f1", b"m0"].into_iter().any(|name| in_name(name)) {
                continue;
            }
            let errors = open(forged).unwrap().verify().errors;
            assert!(!errors.is_empty(), "byte {at} of the directory or list ({in_list})");
        }
    }
}

#[test]
fn header_and_trailer_must_be_of_one_segment() {
    let (mut bytes, _) = small();
    bytes[..HEADER_LEN].copy_from_slice(&crate::format::encode_header(77));
    assert!(open(bytes).unwrap_err().is_corrupt());
}

proptest! {
    #[test]
    fn lies_with_right_checksums_do_not_panic(
        spec in specs(), in_list in any::<bool>(), at in prop_oneof![0usize..100, 0usize..2000], value in any::<u8>(),
    ) {
        let plain = spec.plain();
        if plain.iter().all(|m| m.rows.is_empty()) {
            return Ok(());
        }
        let (mut bytes, _) = write(&spec, &plain);
        if forge(&mut bytes, in_list, at, |_| value).is_none() {
            return Ok(());
        }
        let reader = open(bytes).unwrap();
        drop(reader.verify());
        for measurement in &plain {
            drop(all_rows(&reader, measurement));
        }
    }

    #[test]
    fn any_bytes_are_refused(data in prop::collection::vec(any::<u8>(), 0..300)) {
        fuzz_file(&data);
        prop_assert!(open(data).is_err());
    }

    #[test]
    fn any_part_is_decoded_or_refused(data in prop::collection::vec(any::<u8>(), 0..120)) {
        fuzz_parts(&data);
    }

    #[test]
    fn any_small_numbers_are_decoded_or_refused(
        data in prop::collection::vec(0u8..10, 0..80)
    ) {
        fuzz_parts(&data);
    }
}
