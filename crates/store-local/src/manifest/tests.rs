use model::{DatabaseId, FieldType, PolicyId, SeriesId, TimeRange};
use platform::SystemDisk;

use super::*;
use crate::rows::{FieldNo, MeasurementNo};
use crate::schema::SchemaChange;
use crate::tombstone::{HiddenSeries, RowSet, Tombstone};

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
    let (policy, measurement, series) = (None, Some("m".into()), HiddenSeries::All);
    let time = TimeRange::new(1, 2);
    Arc::new(Tombstone { id, database: DatabaseId(1), policy, measurement, series, time })
}

fn row_tombstone(id: u64) -> Arc<Tombstone> {
    let rows = RowSet::new(vec![(SeriesId(3), vec![1, 2, 4])]);
    let time = rows.time();
    let (policy, series) = (Some(PolicyId(2)), HiddenSeries::Rows(rows));
    Arc::new(Tombstone { policy, series, time, ..(*tombstone(id)).clone() })
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
        Edit::AddTombstone(row_tombstone(3), vec![5, 7]),
        Edit::RemoveSegment(6),
        Edit::Flushed { policy: PolicyId(2), partition: TimeRange::new(0, 99), before: Lsn(70) },
        Edit::LogStart(Lsn(60)),
        Edit::NextMeasurement(MeasurementNo(9)),
        Edit::Catalog { version: 4, bytes: b"catalog".to_vec() },
        Edit::NextIds { segment: 20, tombstone: 30 },
        Edit::Partition { policy: PolicyId(2), partition: TimeRange::new(0, 99), number: 1 },
        Edit::Partition { policy: PolicyId(2), partition: TimeRange::new(100, 199), number: 3 },
        Edit::PartitionGone(3),
        Edit::NextPartition(3),
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
    assert_eq!(state.tombstones.len(), 2, "nothing has tombstone 2 any more");
    let mut again = ManifestState::default();
    again.apply(&Edit::AddSegment(segment(99))).unwrap();
    state.snapshot().iter().for_each(|e| again.apply(e).unwrap());
    assert_eq!(format!("{:?}", again.snapshot()), format!("{:?}", state.snapshot()));
    assert_eq!((again.next_segment, again.next_tombstone), (20, 30));
    assert_eq!((again.partitions.len(), again.last_partition), (1, 3));
    assert_eq!(again.schema.next_measurement(), MeasurementNo(9));
}

/// Found by fuzzing: nobody had the tombstone any more, and it stayed.
#[test]
fn a_segment_that_replaces_another_has_its_own_tombstones() {
    let mut state = ManifestState::default();
    let [add, again] = [segment(5), segment(5)].map(Edit::AddSegment);
    for edit in [add, Edit::AddTombstone(tombstone(1), vec![5]), again] {
        state.apply(&edit).unwrap();
    }
    assert!(state.tombstones.is_empty());
}

#[test]
fn ids_that_nobody_gives_are_refused() {
    let mut state = ManifestState::default();
    assert!(state.apply(&Edit::AddSegment(segment(u64::MAX))).is_err());
    assert!(state.apply(&Edit::AddTombstone(tombstone(u64::MAX), Vec::new())).is_err());
    assert!(state.apply(&Edit::NextIds { segment: 1, tombstone: u64::MAX }).is_err());
    assert!(state.apply(&Edit::AddSegment(segment(1 << 61))).is_ok());
    let partition = |number| {
        let partition = TimeRange::new(0, 99);
        Edit::Partition { policy: PolicyId(2), partition, number }
    };
    assert!(state.apply(&partition(0)).is_err() && state.apply(&partition(u64::MAX)).is_err());
    assert!(state.apply(&Edit::NextPartition(0)).is_err());
    assert!(state.apply(&Edit::NextPartition(u64::MAX)).is_err());
    assert!(state.apply(&Edit::PartitionGone(7)).is_err());
    let schema = |no| SchemaChange::Measurement {
        no: MeasurementNo(no),
        database: DatabaseId(1),
        name: "m".into(),
    };
    assert!(state.apply(&Edit::Schema(schema(u32::MAX))).is_err());
    assert!(state.apply(&Edit::Schema(schema(u32::MAX - 1))).is_ok());
}

#[test]
fn positions_never_go_back() {
    let mut state = ManifestState::default();
    let flushed = |before| {
        let partition = TimeRange::new(0, 99);
        Edit::Flushed { policy: PolicyId(2), partition, before: Lsn(before) }
    };
    let before =
        |state: &ManifestState| state.flushed.get(&(PolicyId(2), 0)).map(|(_, before)| before.0);
    // Replay freezes a memtable for a delete at 40 that the partition's segments outlived.
    [flushed(70), flushed(40)].iter().for_each(|edit| state.apply(edit).unwrap());
    assert_eq!(before(&state), Some(70), "what is between would be replayed over later segments");
    [Edit::LogStart(Lsn(60)), Edit::LogStart(Lsn(50))].iter().for_each(|e| state.apply(e).unwrap());
    assert_eq!((state.log_start, before(&state)), (Some(Lsn(60)), Some(70)));
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

#[test]
fn the_example_in_the_documents_is_what_is_written() {
    let listings =
        crate::documented::listings(include_str!("../../../../docs/formats/manifest.md"));
    let no = MeasurementNo(2);
    let series = HiddenSeries::Some([7].into_iter().collect());
    let stone = Tombstone {
        id: 4,
        database: DatabaseId(1),
        policy: None,
        measurement: Some("cpu".into()),
        series,
        time: TimeRange::new(1000, 1999),
    };
    let snapshot = vec![
        Edit::Snapshot,
        Edit::Schema(SchemaChange::Measurement { no, database: DatabaseId(1), name: "cpu".into() }),
        Edit::Schema(SchemaChange::Field {
            measurement: no,
            no: FieldNo(0),
            name: "idle".into(),
            field_type: FieldType::Integer,
        }),
        Edit::NextMeasurement(MeasurementNo(3)),
        Edit::AddSegment(SegmentMeta {
            id: 5,
            database: DatabaseId(1),
            policy: PolicyId(3),
            partition: TimeRange::new(0, 3_599_999_999_999),
            sequence: 258,
            cold: false,
            bytes: 1000,
            rows: 3,
            time: TimeRange::new(1000, 2000),
            series: (SeriesId(7), SeriesId(8)),
            tombstones: Vec::new(),
        }),
        Edit::AddTombstone(Arc::new(stone), vec![5]),
        Edit::LogStart(Lsn(300)),
        Edit::Flushed {
            policy: PolicyId(3),
            partition: TimeRange::new(0, 3_599_999_999_999),
            before: Lsn(400),
        },
        Edit::Catalog { version: 1, bytes: b"{}".to_vec() },
        Edit::NextIds { segment: 6, tombstone: 5 },
    ];
    let change = vec![Edit::RemoveSegment(5)];
    let rows = RowSet::new(vec![(SeriesId(7), vec![1000, 2000]), (SeriesId(8), vec![1500])]);
    let stone = Tombstone {
        id: 5,
        database: DatabaseId(1),
        policy: Some(PolicyId(3)),
        measurement: Some("cpu".into()),
        time: rows.time(),
        series: HiddenSeries::Rows(rows),
    };
    let hidden = vec![Edit::AddTombstone(Arc::new(stone), vec![6])];
    let numbers = vec![
        Edit::PartitionGone(1),
        Edit::Partition {
            policy: PolicyId(3),
            partition: TimeRange::new(0, 3_599_999_999_999),
            number: 2,
        },
        Edit::NextPartition(3),
    ];
    assert_eq!(listings.len(), 4);
    for (edits, listed) in [snapshot, change, numbers, hidden].into_iter().zip(listings) {
        assert_eq!(
            encode_edits(&edits),
            listed,
            "what is written changed. Manifests of users must stay readable: give the new layout a \
             new kind, keep the old one and its listing"
        );
        assert_eq!(decode_edits(&listed), Ok(edits));
    }
}
