use model::{DatabaseId, FieldType, PolicyId, SeriesId, TimeRange};
use platform::SystemDisk;

use super::*;
use crate::rows::{FieldNo, MeasurementNo};
use crate::schema::SchemaChange;
use crate::tombstone::Tombstone;

fn segment(id: u64) -> SegmentMeta {
    SegmentMeta {
        id,
        database: DatabaseId(1),
        policy: PolicyId(2),
        partition: TimeRange::new(0, 99),
        sequence: id,
        cold: id % 2 == 1,
        bytes: 1000,
        rows: 10,
        time: TimeRange::new(1, 5),
        series: (SeriesId(3), SeriesId(4)),
        tombstones: Vec::new(),
    }
}

fn tombstone(id: u64) -> Arc<Tombstone> {
    let (policy, measurement, series) = (None, Some("m".into()), None);
    let time = TimeRange::new(1, 2);
    Arc::new(Tombstone { id, database: DatabaseId(1), policy, measurement, series, time })
}

/// Edits of every kind, in an order that makes sense.
fn edits() -> Vec<Edit> {
    let no = MeasurementNo(3);
    vec![
        Edit::Schema(SchemaChange::Measurement { no, database: DatabaseId(1), name: "m".into() }),
        Edit::Schema(SchemaChange::Field {
            measurement: no,
            no: FieldNo(0),
            name: "f".into(),
            field_type: FieldType::Boolean,
        }),
        Edit::AddSegment(segment(5)),
        Edit::AddSegment(segment(6)),
        Edit::AddSegment(segment(7)),
        Edit::AddTombstone(tombstone(1), vec![5, 6]),
        Edit::AddTombstone(tombstone(2), vec![6]),
        Edit::RemoveSegment(6),
        Edit::Flushed { policy: PolicyId(2), partition: TimeRange::new(0, 99), before: Lsn(70) },
        Edit::LogStart(Lsn(60)),
        Edit::NextMeasurement(MeasurementNo(9)),
        Edit::Catalog { version: 4, bytes: b"catalog".to_vec() },
        Edit::NextIds { segment: 20, tombstone: 30 },
    ]
}

#[test]
fn edits_come_back_and_damaged_ones_are_refused() {
    let bytes = encode_edits(&edits());
    assert_eq!(decode_edits(&bytes), Ok(edits()));
    for cut in 0..bytes.len() {
        assert!(decode_edits(&bytes[..cut]).is_err());
    }
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        let _ = decode_edits(&damaged);
    }
}

#[test]
fn a_snapshot_says_what_the_edits_said() {
    let mut state = ManifestState::default();
    edits().iter().for_each(|e| state.apply(e).unwrap());
    assert_eq!(state.segments.len(), 2);
    assert_eq!(state.tombstones.len(), 1, "nothing has tombstone 2 any more");
    let mut again = ManifestState::default();
    again.apply(&Edit::AddSegment(segment(99))).unwrap();
    state.snapshot().iter().for_each(|e| again.apply(e).unwrap());
    assert_eq!(format!("{:?}", again.snapshot()), format!("{:?}", state.snapshot()));
    assert_eq!((again.next_segment, again.next_tombstone), (20, 30));
    assert_eq!(again.schema.next_measurement(), MeasurementNo(9));
}

#[test]
fn survives_reopening_and_snapshots() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Manifest::open(Arc::new(SystemDisk), dir.path(), 4 << 20).unwrap();
    let manifest = open();
    manifest.commit(&edits()).unwrap();
    for version in 5..9 {
        manifest.commit(&[Edit::Catalog { version, bytes: vec![7; 2 << 20] }]).unwrap();
    }
    let before = manifest.read(|s| format!("{:?}", s.snapshot()));
    manifest.close().unwrap();
    let manifest = open();
    assert_eq!(manifest.read(|s| format!("{:?}", s.snapshot())), before);
    assert_eq!(manifest.next_segment_id(), 20);
    assert_eq!(manifest.next_segment_id(), 21);
}

#[test]
fn edits_before_a_snapshot_may_be_of_files_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Manifest::open(Arc::new(SystemDisk), dir.path(), 4 << 10).unwrap();
    let fill = |manifest: &Manifest, version| {
        manifest.commit(&[Edit::Catalog { version, bytes: vec![7; 3 << 10] }]).unwrap();
    };
    let manifest = open();
    manifest.commit(&[Edit::AddSegment(segment(5))]).unwrap();
    fill(&manifest, 1);
    manifest.close().unwrap();
    // The next file begins with an edit of the segment; then comes the snapshot.
    let manifest = open();
    manifest.commit(&[Edit::RemoveSegment(5)]).unwrap();
    (2..5).for_each(|version| fill(&manifest, version));
    let before = manifest.read(|s| format!("{:?}", s.snapshot()));
    manifest.close().unwrap();
    assert_eq!(open().read(|s| format!("{:?}", s.snapshot())), before);
}
