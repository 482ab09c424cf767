//! The bytes of format version 1, as the format page shows them.

use platform::{FaultConfig, SimDisk};

use super::*;

const PAGE: &str = include_str!("../../../../../docs/formats/series-index.md");

/// The bytes of the page's hex listings: a run, then a manifest.
fn listings() -> Vec<Vec<u8>> {
    let blocks = PAGE.split("```hex\n").skip(1);
    let hex = blocks.map(|block| block.split("```").next().unwrap());
    let byte = |text: &str| u8::from_str_radix(text, 16).unwrap();
    hex.map(|hex| hex.split_whitespace().map(byte).collect()).collect()
}

fn keys() -> Vec<SeriesKey> {
    let texts = ["cpu,dc=a,host=h1", "cpu,dc=a,host=h2"];
    texts.iter().map(|text| SeriesKey::parse(text.as_bytes()).unwrap()).collect()
}

fn files() -> [std::path::PathBuf; 2] {
    ["0000000001.run", "MANIFEST"].map(|name| Path::new("/golden").join(name))
}

fn open_on(disk: &SimDisk) -> SeriesIndex {
    let options = SeriesOptions::new(7, cache());
    SeriesIndex::open(Arc::new(disk.clone()), Path::new("/golden"), options).unwrap()
}

#[test]
fn the_bytes_are_those_of_the_format_page() {
    let disk = SimDisk::new(1, FaultConfig::default());
    let index = open_on(&disk);
    index.create_batch(DatabaseId(1), &keys()).unwrap();
    index.flush().unwrap();
    for (path, listed) in files().iter().zip(listings()) {
        assert_eq!(
            disk.contents()[path],
            listed,
            "{}: what is written changed. Old files must stay readable: give the new layout a new \
             version or feature bit, keep the old listing and its test, and describe both",
            path.display()
        );
    }
}

#[test]
fn files_of_version_1_are_read_and_merged() {
    let disk = SimDisk::new(1, FaultConfig::default());
    disk.create_dir_all(Path::new("/golden")).unwrap();
    for (path, bytes) in files().iter().zip(listings()) {
        disk.create(path).unwrap().write_at(&bytes, 0).unwrap();
    }
    let index = open_on(&disk);
    let mut model = Model::default();
    for (key, id) in keys().iter().zip(1..) {
        model.created(DatabaseId(1), key, (SeriesId(id), true));
    }
    check(&index, &model, &[TagExpr::Equals("host".into(), "h2".into())]);
    for n in 3..6u32 {
        let key = SeriesKey::parse(format!("cpu,dc=a,host=h{n}").as_bytes()).unwrap();
        model.created(DatabaseId(1), &key, index.create(DatabaseId(1), &key).unwrap());
        index.flush().unwrap();
    }
    assert!(index.merge_step().unwrap());
    assert_eq!(index.run_count(), 1);
    check(&index, &model, &[TagExpr::Equals("host".into(), "h2".into())]);
}
