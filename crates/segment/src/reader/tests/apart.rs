//! Texts that are wanted one here and one there, again and again, come from pieces that are kept in place of the page, if these
//! are not too large.

use std::sync::Arc;

use model::{Bitmap, Column, FieldType, SeriesId, Values};

use super::blocks;
use crate::WriterOptions;
use crate::reader::SegmentReader;
use crate::reader::thaw::LOOKS_BEFORE;
use crate::testing::{Cell, PlainMeasurement, Rng, write};

const ROWS: usize = 20_000;

/// A text in each row, or in most.
fn texts(text: impl Fn(&mut Rng) -> String, are_all_there: bool) -> PlainMeasurement {
    let mut rng = Rng(62);
    let mut cell = |row: usize| match !are_all_there && row.is_multiple_of(9) {
        true => Cell::Missing,
        false => Cell::Text(text(&mut rng)),
    };
    let row = |row: usize| (SeriesId(1 + row as u64 / 5), row as i64 * 1_000_000, vec![cell(row)]);
    PlainMeasurement {
        name: "m0".into(),
        fields: vec![("page".into(), FieldType::String)],
        rows: (0..ROWS).map(row).collect(),
    }
}

/// The bytes of the cache after each of several looks at a page, for other rows each time.
fn bytes_kept(plain: &PlainMeasurement) -> Vec<u64> {
    let (mut spec, _) = crate::testing::regular(ROWS, 1, 10);
    spec.measurements[0] = (1, ROWS);
    spec.options = WriterOptions { window_rows_min: None, ..WriterOptions::cold(3) };
    let cache = Arc::new(platform::PageCache::new(8 << 20));
    let plain = std::slice::from_ref(plain);
    let file = Arc::new(crate::memory::MemoryFile::new("test.seg", write(&spec, plain).0));
    let reader = SegmentReader::over(file, Arc::clone(&cache)).unwrap();
    let block = &blocks(&reader, "m0")[0];
    assert!(block.rows() > 10_000);
    let mut rng = Rng(1);
    let mut kept = Vec::new();
    for look in 0..LOOKS_BEFORE as usize + 4 {
        let rows = 100..block.rows() - look;
        let mut bits = vec![0u64; rows.len().div_ceil(64)];
        (0..12).map(|_| rng.below(rows.len())).for_each(|row| bits[row / 64] |= 1 << (row % 64));
        let selected = Bitmap::from_words(bits, rows.len());
        let mut found = Column::new(Values::empty(FieldType::String));
        let places: Vec<_> =
            selected.ones().map(|row| rows.start + row..rows.start + row + 1).collect();
        if !reader.selected_texts(block, 0, (rows.clone(), &selected), &mut found).unwrap() {
            assert_eq!(found.len(), 0);
            let fields = [(Some(0), FieldType::String)];
            reader.columns(block, &places, &fields, std::slice::from_mut(&mut found)).unwrap();
        }
        let expected = places.iter().map(|place| plain[0].rows[place.start].2[0].clone());
        let found = (0..found.len()).map(|at| crate::testing::cell_at(&found, at));
        assert!(found.eq(expected), "look {look}");
        kept.push(cache.stats().bytes_used);
    }
    kept
}

#[test]
fn texts_here_and_there_come_from_pieces_that_are_kept() {
    for are_all_there in [true, false] {
        let page =
            |rng: &mut Rng| format!("/p/{}/{}", rng.below(3000), ["a", "b", "c"][rng.below(3)]);
        let kept = bytes_kept(&texts(page, are_all_there));
        let (before, behind) = kept.split_at(LOOKS_BEFORE as usize);
        assert!(before.windows(2).all(|two| two[0] == two[1]), "{kept:?}");
        assert!(behind[0] > before[0] + 100_000, "{kept:?}");
        assert!(behind.windows(2).all(|two| two[0] == two[1]), "{kept:?}");
    }
}

#[test]
fn texts_of_a_dictionary_or_much_larger_than_their_page_are_not_kept() {
    let kind =
        |rng: &mut Rng| ["click", "buy", "", "back"][[0, 0, 0, 1, 2, 3][rng.below(6)]].into();
    for are_all_there in [true, false] {
        let kept = bytes_kept(&texts(kind, are_all_there));
        assert!(kept.windows(2).all(|two| two[0] == two[1]), "{kept:?}");
    }
    let line = |rng: &mut Rng| {
        format!(
            "the worker of queue number {} has {}",
            rng.below(100_000),
            "nothing to do; ".repeat(9)
        )
    };
    let kept = bytes_kept(&texts(line, true));
    assert!(kept.windows(2).all(|two| two[0] == two[1]), "{kept:?}");
}
