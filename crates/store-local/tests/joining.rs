//! Small partitions that lie side by side become one, and nobody sees it but who asks for partitions.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;

use model::{PolicyId, Scalar, TagExpr, TimeRange};
use platform::{FaultConfig, SimDisk};
use store::reference::ReferenceStore;
use store::testing::{HOUR_NS, POLICY, Row, read, read_all, scan_everything, unlimited, write};
use store::{DeleteRequest, DeleteTarget, NameFilter, Policy, Store, TimeOrder, list_partitions};
use store_local::{Kept, LocalStore};

mod common;
use common::{open, random};

const HOURS: i64 = 100;
/// Kept for so long that two partitions may become one, but no more.
const SHORT: Policy = Policy { id: PolicyId(2), retention_ns: Some(16 * HOUR_NS), ..POLICY };
const UNKNOWN: Policy = Policy { id: PolicyId(3), ..POLICY };

/// Shows where rows differ, not all of them.
fn assert_same(rows: &[Row], expected: &[Row]) {
    let pairs = rows.iter().zip(expected);
    let at = pairs.take_while(|(row, expected)| row == expected).count();
    assert_eq!(rows.get(at), expected.get(at), "row {at} of {}, {}", rows.len(), expected.len());
}

/// A store whose partitions are joined, eight at least, and what it should be like.
struct Pair {
    disk: SimDisk,
    store: Option<LocalStore>,
    model: ReferenceStore,
}

impl Pair {
    fn new() -> Self {
        let disk = SimDisk::new(1, FaultConfig::default());
        let mut pair = Self { disk, store: None, model: ReferenceStore::new() };
        pair.open();
        pair
    }

    fn open(&mut self) {
        let store = open(&self.disk, 16 << 20);
        store.join_partitions(|policy| match policy {
            id if id == POLICY.id => Some(Kept::ForEver),
            id if id == SHORT.id => Some(Kept::ForNs(SHORT.retention_ns.unwrap())),
            _ => None,
        });
        self.store = Some(store);
    }

    fn store(&self) -> &LocalStore {
        self.store.as_ref().unwrap()
    }

    fn stores(&self) -> [&dyn Store; 2] {
        [self.store(), &self.model]
    }

    /// Rows of three series in some of the hours.
    fn write(&self, policy: Policy, hours: impl Iterator<Item = i64>, seed: u64) {
        let row = |(hour, at): (i64, u64)| {
            let number = random(seed + hour as u64 * 64 + at);
            let fields = [
                ("i", Scalar::Integer(number as i64 % 1000)),
                ("f", Scalar::Float(number as f64 / 8.0)),
                ("s", Scalar::String(format!("text {}", number % 7).into())),
            ];
            let some = &fields[number as usize % 3..];
            let key = ["m,host=a", "m,host=b", "m"][at as usize % 3];
            Row::new(key, some, hour * HOUR_NS + (number % 60) as i64 * 60_000_000_000)
        };
        let rows: Vec<Row> =
            hours.flat_map(|hour| (0..7).map(move |at| (hour, at))).map(row).collect();
        for store in self.stores() {
            for rows in rows.chunks(100) {
                write(store, policy, rows, 0).unwrap();
            }
        }
    }

    fn delete(&self, target: &DeleteTarget) {
        for store in self.stores() {
            let target = target.clone();
            store.delete(&DeleteRequest { database: POLICY.database, target }).unwrap();
        }
    }

    /// Compares all rows, in both orders, and those of parts of the time.
    fn check(&self) {
        for policy in [POLICY, SHORT, UNKNOWN] {
            let [rows, expected] = self.stores().map(|s| read_all(s, policy, "m").unwrap());
            assert_same(&rows, &expected);
            for (from, hours) in [(0, 1), (3, 20), (50, 7), (HOURS - 2, 9)] {
                for order in [TimeOrder::Ascending, TimeOrder::Descending] {
                    let [rows, expected] = self.stores().map(|store| {
                        let mut request = scan_everything(store, policy, "m").unwrap();
                        let first = from * HOUR_NS + HOUR_NS / 3;
                        request.time = TimeRange::new(first, first + hours * HOUR_NS);
                        request.order = order;
                        read(store, &request).unwrap()
                    });
                    assert_same(&rows, &expected);
                }
            }
        }
    }

    fn reopen(&mut self) {
        self.store().close().unwrap();
        self.open();
        self.check();
    }

    fn metric(&self, name: &str) -> f64 {
        self.store().metrics().iter().find(|m| m.name == name).unwrap().value
    }

    /// First and last hour of each partition of a policy, by number.
    fn partitions(&self, policy: Policy) -> BTreeMap<u64, (i64, i64)> {
        let listed = list_partitions(self.store(), policy.database, unlimited()).unwrap();
        let of_policy = listed.into_iter().filter(|partition| partition.policy == policy.id);
        let hour = |time: i64| time.div_euclid(HOUR_NS);
        of_policy.map(|p| (p.number, (hour(p.time.min), hour(p.time.max)))).collect()
    }
}

#[test]
fn rows_of_joined_partitions_stay_what_they_are() {
    let mut pair = Pair::new();
    pair.write(POLICY, 0..HOURS, 1);
    pair.write(UNKNOWN, 0..20, 2);
    pair.write(SHORT, 0..20, 3);
    pair.store().flush().unwrap();
    let before = pair.partitions(POLICY);
    assert_eq!(before.len(), HOURS as usize);
    pair.store().settle().unwrap();
    pair.check();

    let joined = pair.partitions(POLICY);
    let mut bounds: Vec<(i64, i64)> = joined.values().copied().collect();
    bounds.sort_unstable();
    assert!(bounds.len() <= 12, "{bounds:?}");
    assert!(bounds.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0), "{bounds:?}");
    assert_eq!(bounds.last(), Some(&(HOURS - 1, HOURS - 1)), "the latest is left alone");
    assert!(joined.iter().all(|(number, b)| before.get(number).is_none_or(|was| was == b)));
    // Nobody knows how long one policy keeps its rows, and the other does not for long enough.
    assert_eq!((pair.partitions(UNKNOWN).len(), pair.partitions(SHORT).len()), (20, 20));
    assert!(pair.metric("partitions_joined_total") >= 88.0);
    pair.reopen();
    assert_eq!(pair.partitions(POLICY), joined);

    // Late rows, some of them over others, go where the others are.
    pair.write(POLICY, (10..40).chain(70..72), 1);
    pair.write(POLICY, (5..50).step_by(3), 4);
    pair.check();
    pair.reopen();
    pair.store().settle().unwrap();
    pair.check();
    assert_eq!(pair.partitions(POLICY), joined);
    pair.reopen();
}

#[test]
fn what_is_deleted_of_joined_partitions_stays_deleted() {
    let mut pair = Pair::new();
    pair.write(POLICY, 0..HOURS, 1);
    pair.store().settle().unwrap();
    let rows = |series, from: i64, to: i64| DeleteTarget::Rows {
        measurements: NameFilter::All,
        series,
        time: TimeRange::new(from * HOUR_NS, to * HOUR_NS - 1),
    };
    pair.delete(&rows(TagExpr::True, 20, 40));
    pair.delete(&rows(TagExpr::Equals("host".into(), "a".into()), 60, 62));
    pair.check();
    pair.reopen();
    // What is without rows of its own partition is written to again.
    pair.write(POLICY, 30..33, 5);
    pair.store().settle().unwrap();
    pair.check();
    pair.reopen();

    // A partition is dropped whole, whatever it was before.
    let last = pair.partitions(POLICY).into_values().min().unwrap().1;
    let partition = DeleteTarget::Partition(POLICY.id, TimeRange::new(0, (last + 1) * HOUR_NS - 1));
    let gone = rows(TagExpr::True, 0, last + 1);
    for (store, target) in pair.stores().into_iter().zip([partition, gone]) {
        store.delete(&DeleteRequest { database: POLICY.database, target }).unwrap();
    }
    pair.check();
    pair.reopen();
    pair.write(POLICY, 10..12, 6);
    pair.store().settle().unwrap();
    pair.check();
    let all = pair.partitions(POLICY);
    let first: Vec<_> = all.values().filter(|(from, _)| *from < last).collect();
    assert_eq!(first, [&(10, 10), &(11, 11)], "new partitions are as long as the policy says");
    pair.reopen();
}

#[test]
fn a_partition_of_which_all_is_deleted_is_left_out() {
    let mut pair = Pair::new();
    pair.write(POLICY, 0..20, 1);
    pair.store().flush().unwrap();
    let time = TimeRange::new(0, 9 * HOUR_NS - 1);
    let (measurements, series) = (NameFilter::All, TagExpr::True);
    pair.delete(&DeleteTarget::Rows { measurements, series, time });
    pair.store().settle().unwrap();
    pair.check();
    let bounds: Vec<_> = pair.partitions(POLICY).into_values().collect();
    assert_eq!(bounds, [(9, 18), (19, 19)]);
    pair.reopen();
    assert_eq!(pair.store().expire(POLICY.database, POLICY.id, 19 * HOUR_NS).unwrap(), 1);
    pair.model.expire(POLICY.database, POLICY.id, 19 * HOUR_NS).unwrap();
    pair.check();
    pair.reopen();
}
