use std::sync::OnceLock;

use model::SeriesKey;
use platform::SystemDisk;
use proptest::prelude::*;

use super::*;
use crate::index::SeriesOptions;

/// A run of a few hundred series of several shapes.
fn sample() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let cache = Arc::new(PageCache::new(1 << 20));
        let disk = Arc::new(SystemDisk);
        let index = SeriesIndex::open(disk, dir.path(), SeriesOptions::new(1, cache)).unwrap();
        for n in 0..400u32 {
            let rack = if n % 3 == 0 { String::new() } else { format!(",rack={}", n % 5) };
            let text = format!("m{},host=h{n}{rack}", n % 3);
            let key = SeriesKey::parse(text.as_bytes()).unwrap();
            index.create(DatabaseId(1 + n % 2), &key).unwrap();
        }
        index.flush().unwrap();
        let run = dir.path().join("0000000001.run");
        std::fs::read(run).unwrap()
    })
}

#[test]
fn an_intact_run_is_queried() {
    query_run(sample());
}

/// The largest id of all: there is none behind it.
#[test]
fn what_fuzzing_found() {
    postings(b"\x03\x04\xf9\xff\xff\xff\xff\xff\xff\xff\xff\x01\0\0\0\0");
    let mut set = Vec::new();
    put_set(&RoaringTreemap::from_iter([u64::MAX]), &mut set);
    assert!(read_set(&mut Reader::new(&set)).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn damage_never_panics(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::weighted(0.1, any::<prop::sample::Index>()),
    ) {
        let mut bytes = sample().to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            // Keep the trailer, or nothing further in would be looked at.
            let cut = cut.index(bytes.len() - 40);
            bytes.drain(cut..cut + 7);
        }
        query_run(&bytes);
    }

    /// The meta block steers everything else: damage it more often than its size deserves.
    #[test]
    fn a_damaged_meta_block_never_panics(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = sample().to_vec();
        let trailer = bytes.len() - 28;
        let meta = u64::from_le_bytes(bytes[trailer..trailer + 8].try_into().unwrap()) as usize;
        let at = meta + at.index(trailer - meta);
        bytes[at] = byte;
        query_run(&bytes);
    }

    #[test]
    fn arbitrary_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        query_run(&bytes);
    }
}
