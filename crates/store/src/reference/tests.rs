use model::{CompareOp, FieldFilter, FieldType, Interrupt, Operand, Scalar, TagExpr, TimeRange};

use super::*;
use crate::testing::{self, HOUR_NS, POLICY, Row, read_all, scan_everything};
use crate::{
    DeleteTarget, MetadataKind, NameFilter, Policy, RejectReason, ScanItem, ScanSlice,
    SummaryParts, TimeOrder, Windows,
};

fn row(key: &str, field: &str, value: i64, time_ns: i64) -> Row {
    Row::new(key, &[(field, Scalar::Integer(value))], time_ns)
}

fn filled(rows: &[Row]) -> ReferenceStore {
    let store = ReferenceStore::new();
    let outcome = testing::write(&store, POLICY, rows, 0).unwrap();
    assert_eq!(outcome.rejected, []);
    assert_eq!(outcome.rows_written, rows.len() as u64);
    store
}

#[test]
fn merges_rows_field_by_field_and_the_last_write_wins() {
    let store = filled(&[row("m,b=2,a=1", "x", 1, 5), row("m,a=1,b=2", "y", 2, 5)]);
    testing::write(&store, POLICY, &[row("m,a=1,b=2", "x", 3, 5)], 0).unwrap();
    let merged = [("x", Scalar::Integer(3)), ("y", Scalar::Integer(2))];
    assert_eq!(read_all(&store, POLICY, "m").unwrap(), [Row::new("m,a=1,b=2", &merged, 5)]);
}

#[test]
fn refuses_rows_one_by_one_and_leaves_no_trace_of_them() {
    let store = filled(&[row("m", "x", 1, 5)]);
    let float = [("new", Scalar::Integer(1)), ("x", Scalar::Float(1.0))];
    let rows = [
        Row::new("m", &float, 5),
        row("m,a", "x", 1, 5),
        row("m,time=1", "x", 1, 5),
        row("m", "x", 7, 6),
        row("other,t=1", "x", 7, -1),
    ];
    let kept = Policy { retention_ns: Some(HOUR_NS), ..POLICY };
    let outcome = testing::write(&store, kept, &rows, HOUR_NS).unwrap();
    let texts: Vec<String> =
        outcome.rejected.iter().map(|r| format!("{} {}", r.row, r.reason)).collect();
    assert_eq!(
        texts,
        [
            "0 field type conflict: input field \"x\" on measurement \"m\" is type float, already \
             exists as type integer",
            "1 missing tag value",
            "2 invalid tag key: input tag \"time\" on measurement \"m\" is invalid",
            "4 points beyond retention policy",
        ]
    );
    assert_eq!(outcome.rejected[3].reason, RejectReason::BeyondRetention);
    let schema = store.schema(POLICY.database, "m", &Interrupt::new()).unwrap().unwrap();
    assert_eq!(schema.fields, [("x".into(), FieldType::Integer)]);
    assert_eq!(store.schema(POLICY.database, "other", &Interrupt::new()).unwrap(), None);
    assert_eq!(read_all(&store, POLICY, "m").unwrap(), [row("m", "x", 1, 5), row("m", "x", 7, 6)]);
}

#[test]
fn scans_obey_order_limit_slices_and_filters() {
    let options = ReferenceOptions { item_rows: 2, filters: true, ..Default::default() };
    let store = ReferenceStore::with_options(options);
    let rows: Vec<Row> = (0..6).map(|t| row(&format!("m,h={}", t % 2), "x", t, t)).collect();
    testing::write(&store, POLICY, &rows, 0).unwrap();
    let mut request = scan_everything(&store, POLICY, "m").unwrap();
    request.order = TimeOrder::Descending;
    let times = |request: &ScanRequest| -> Vec<i64> {
        let scan = store.scan(request).unwrap();
        let two = ScanSlice::rows_per_series(2);
        let mut rows = testing::read_slice(&*scan, request, &two).unwrap();
        rows.sort_by(|a, b| a.key.cmp(&b.key));
        rows.iter().map(|r| r.time_ns).collect()
    };
    assert_eq!(times(&request), [4, 2, 5, 3]);
    let operand = Operand::Constant(Scalar::Integer(3));
    request.filters = vec![FieldFilter { field: "x".into(), op: CompareOp::LessOrEqual, operand }];
    assert_eq!(times(&request), [2, 0, 3, 1]);
    let scan = store.scan(&request).unwrap();
    let slice = ScanSlice {
        series: Some([1].into()),
        time: TimeRange::new(2, 9),
        ..ScanSlice::rows_per_series(2)
    };
    let rows = testing::read_slice(&*scan, &request, &slice).unwrap();
    assert_eq!(rows, [row("m,h=1", "x", 3, 3)]);
    request.series = TagExpr::Equals("h".into(), "0".into());
    assert_eq!(times(&request), [2, 0]);
}

#[test]
fn summaries_count_every_row_once() {
    let rows: Vec<Row> = (0..40).map(|t| row(&format!("m,h={}", t % 3), "x", t * t, t)).collect();
    for summaries in [SummaryMode::Never, SummaryMode::Always, SummaryMode::Mixed] {
        let store =
            ReferenceStore::with_options(ReferenceOptions { summaries, ..Default::default() });
        testing::write(&store, POLICY, &rows, 0).unwrap();
        let mut request = scan_everything(&store, POLICY, "m").unwrap();
        let parts = SummaryParts { sum: true, ..Default::default() };
        request.windows = Some(Windows { every_ns: Some(7), offset_ns: 3, parts });
        let scan = store.scan(&request).unwrap();
        let mut cursor = scan.open(&ScanSlice::all()).unwrap();
        let (mut total, mut count, mut kinds) = (0, 0, [0, 0]);
        while let Some(item) = cursor.next().unwrap() {
            match item {
                ScanItem::Rows(batch) => {
                    let model::Values::Integer(values) = &batch.columns[1].values else { panic!() };
                    total += values.iter().sum::<i64>();
                    count += batch.rows as u64;
                    kinds[0] += 1;
                }
                ScanItem::Summaries(batch) => {
                    let field = &batch.fields[0];
                    let model::Values::Integer(sums) = &field.sums else { panic!() };
                    for (at, span) in batch.spans.iter().enumerate() {
                        assert_eq!(
                            (span.min_time - 3).div_euclid(7),
                            (span.max_time - 3).div_euclid(7)
                        );
                        total += sums[at];
                        count += field.counts[at];
                        kinds[1] += 1;
                    }
                }
            }
        }
        assert_eq!((total, count), ((0..40).map(|t| t * t).sum(), 40));
        assert_eq!(kinds[0] > 0, summaries != SummaryMode::Always);
        assert_eq!(kinds[1] > 0, summaries != SummaryMode::Never);
    }
}

#[test]
fn expiry_drops_whole_partitions_with_the_bounds_they_were_made_with() {
    let store = filled(&[row("m,h=1", "x", 1, 0), row("m,h=2", "x", 1, HOUR_NS + 1)]);
    let longer = Policy { partition_ns: 4 * HOUR_NS, ..POLICY };
    testing::write(&store, longer, &[row("m,h=3", "x", 1, 3 * HOUR_NS)], 0).unwrap();
    let expire = |before| store.expire(POLICY.database, POLICY.id, before).unwrap();
    assert_eq!(expire(HOUR_NS - 1), 0);
    assert_eq!(expire(HOUR_NS), 1);
    assert_eq!(expire(4 * HOUR_NS - 1), 1);
    assert_eq!(expire(4 * HOUR_NS), 1);
    assert_eq!(read_all(&store, POLICY, "m").unwrap(), []);
    let schema = store.schema(POLICY.database, "m", &Interrupt::new()).unwrap().unwrap();
    assert_eq!((schema.fields.len(), schema.tag_keys.len()), (1, 0));
}

#[test]
fn deletes_remove_series_without_rows_and_keep_types() {
    let store = filled(&[row("m,h=1", "x", 1, 0), row("m,h=2", "x", 1, 5)]);
    let delete = |target| {
        store.delete(&DeleteRequest { database: POLICY.database, target }).unwrap();
    };
    delete(DeleteTarget::Rows {
        measurements: NameFilter::All,
        series: TagExpr::True,
        time: TimeRange::new(0, 4),
    });
    let request = MetadataRequest {
        database: POLICY.database,
        kind: MetadataKind::Series,
        measurements: NameFilter::All,
        series: TagExpr::True,
        facts_max: None,
        context: testing::unlimited(),
    };
    assert_eq!(testing::names(&store, &request).unwrap(), [["m", "m,h=2"]]);
    delete(DeleteTarget::Measurement("m".into()));
    assert_eq!(store.schema(POLICY.database, "m", &Interrupt::new()).unwrap(), None);
}

#[test]
fn the_catalog_slot_swaps_only_what_was_read() {
    let store = ReferenceStore::new();
    assert_eq!(store.catalog().unwrap(), CatalogDocument::default());
    assert_eq!(store.swap_catalog(0, b"a").unwrap(), SwapOutcome::Swapped(1));
    let now = CatalogDocument { version: 1, bytes: b"a".to_vec() };
    assert_eq!(store.swap_catalog(0, b"b").unwrap(), SwapOutcome::Conflict(now.clone()));
    assert_eq!(store.catalog().unwrap(), now);
}

#[test]
fn limits_and_close_are_obeyed() {
    let store = filled(&[row("m", "x", 1, 0)]);
    let mut request = scan_everything(&store, POLICY, "m").unwrap();
    request.context.budget = model::Budget::new("query-memory", 3);
    let scan = store.scan(&request).unwrap();
    let mut cursor = scan.open(&ScanSlice::all()).unwrap();
    assert!(matches!(cursor.next(), Err(StoreError::OverBudget(_))));
    request.context.interrupt = Interrupt::new();
    request.context.interrupt.cancel();
    assert!(matches!(store.scan(&request).err(), Some(StoreError::Interrupted(_))));
    store.close().unwrap();
    assert!(matches!(store.catalog(), Err(StoreError::Closed)));
}
