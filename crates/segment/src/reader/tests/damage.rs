//! Files that are not what a writer left.

use std::path::Path;

use model::TimeRange;
use proptest::prelude::*;

use crate::format::{HEADER_LEN, MeasurementList, TRAILER_LEN};
use crate::fuzzing::{fuzz_file, fuzz_parts};
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
    for (at, value) in [(8, 2u8), (16, 1)] {
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
/// above it right again.
fn forge(bytes: &mut [u8], in_list: bool, at: usize, value: u8) {
    let trailer_at = bytes.len() - TRAILER_LEN;
    let list_at =
        u64::from_le_bytes(bytes[trailer_at..trailer_at + 8].try_into().unwrap()) as usize;
    let list = MeasurementList::decode(&bytes[list_at..trailer_at], list_at as u64).unwrap();
    if in_list {
        let at = list_at + at % (trailer_at - list_at);
        bytes[at] = value;
    } else {
        let extent = list.entries()[0].directory;
        let (from, to) = (extent.offset as usize, extent.end() as usize);
        bytes[from + at % (to - from)] = value;
        let crc = crc32c::crc32c(&bytes[from..to]).to_le_bytes();
        let old = extent.crc32c.to_le_bytes();
        let held = (list_at..trailer_at - 3).find(|i| bytes[*i..*i + 4] == old).unwrap();
        bytes[held..held + 4].copy_from_slice(&crc);
    }
    let list_crc = crc32c::crc32c(&bytes[list_at..trailer_at]).to_le_bytes();
    bytes[trailer_at + 12..trailer_at + 16].copy_from_slice(&list_crc);
    let crc = crc32c::crc32c(&bytes[trailer_at..trailer_at + 80]).to_le_bytes();
    bytes[trailer_at + 80..trailer_at + 84].copy_from_slice(&crc);
}

proptest! {
    #[test]
    fn lies_with_right_checksums_do_not_panic(
        spec in specs(), in_list in any::<bool>(), at in any::<usize>(), value in any::<u8>(),
    ) {
        let plain = spec.plain();
        prop_assume!(plain.iter().any(|m| !m.rows.is_empty()));
        let (mut bytes, _) = write(&spec, &plain);
        forge(&mut bytes, in_list, at, value);
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
