//! What the numbers of operations stand for.

use model::{
    DatabaseId, FieldType, MAX_TIME_NS, MIN_TIME_NS, Name, PolicyId, Scalar, TagExpr, TimeRange,
};
use store::testing::{self, Row as StoreRow};
use store::{DeleteTarget, NameFilter, Policy, Store, StoreError, list_partitions};

use crate::operation::Row;

/// The times of a policy's partitions, as a store lists them.
pub(crate) fn partitions(
    store: &dyn Store,
    database: DatabaseId,
    policy: PolicyId,
) -> Result<Vec<TimeRange>, StoreError> {
    let listed = list_partitions(store, database, testing::unlimited())?.into_iter();
    Ok(listed.filter(|partition| partition.policy == policy).map(|p| p.time).collect())
}

pub(crate) const HOUR_NS: i64 = 3_600_000_000_000;
/// Time 0 of operations: the start of an hour.
const START_NS: i64 = 1_500_001_200_000_000_000;
/// Steps of an hour.
pub(crate) const STEPS: u16 = 64;
/// Hours that operations know.
pub(crate) const HOURS: u16 = 8;
/// The wall clock of every write: the retention of policy 1 ends after the third hour.
pub(crate) const NOW_NS: i64 = START_NS + 7 * HOUR_NS;
const RETENTION_NS: i64 = 4 * HOUR_NS;

/// Raw and plain names.
const MEASUREMENTS: [(&str, &str); 3] = [("m", "m"), ("cpu\\ load", "cpu load"), ("z", "z")];
pub(crate) const HOSTS: [&str; 4] = ["a", "b", "web-10", "x,y=z w"];
const TAGS: [&str; 8] = [
    "",
    ",host=a",
    ",host=b",
    ",host=web-10",
    ",host=x\\,y\\=z\\ w",
    ",dc=1",
    ",host=a,dc=1",
    ",dc=2,host=b",
];
/// Numbers of series that are not the same.
pub(crate) const SERIES: u8 = (MEASUREMENTS.len() * TAGS.len()) as u8;
/// Numbers of measurements that are not the same.
pub(crate) const MEASUREMENT_COUNT: u8 = MEASUREMENTS.len() as u8;
/// Bits of a row's fields.
const FIELDS: [(&str, FieldType); 7] = [
    ("f", FieldType::Float),
    ("i", FieldType::Integer),
    ("u", FieldType::Unsigned),
    ("s", FieldType::String),
    ("b", FieldType::Boolean),
    ("x", FieldType::Integer),
    // Of another type than the one before: whoever comes second is refused.
    ("x", FieldType::Float),
];

/// The plain names of all measurements.
pub(crate) fn measurements() -> impl Iterator<Item = &'static str> {
    MEASUREMENTS.iter().map(|(_, plain)| *plain)
}

pub(crate) fn measurement(number: u8) -> &'static str {
    MEASUREMENTS[usize::from(number) % MEASUREMENTS.len()].1
}

pub(crate) fn host(number: u8) -> &'static str {
    HOSTS[usize::from(number) % HOSTS.len()]
}

/// A database; `generation` counts those that were dropped before, whose ids are never used again.
pub(crate) fn database(number: u8, generation: u32) -> DatabaseId {
    DatabaseId(generation * 2 + u32::from(number % 2) + 1)
}

/// The database that a policy is of.
pub(crate) fn database_of(policy: u8) -> u8 {
    u8::from(policy % 3 == 2)
}

/// A policy; `generation` is its database's.
pub(crate) fn policy(number: u8, generation: u32) -> Policy {
    let number = number % 3;
    Policy {
        database: database(database_of(number), generation),
        id: PolicyId(generation * 3 + u32::from(number) + 1),
        partition_ns: if number == 2 { 3 * HOUR_NS } else { HOUR_NS },
        retention_ns: (number == 1).then_some(RETENTION_NS),
    }
}

/// The number of a policy, whatever its generation.
pub(crate) fn policy_number(id: u32) -> u8 {
    ((id - 1) % 3) as u8
}

pub(crate) fn time_ns(time: u16) -> i64 {
    let (hour, step) = (i64::from(time / STEPS % HOURS), i64::from(time % STEPS));
    START_NS + hour * HOUR_NS + step * (HOUR_NS / i64::from(STEPS))
}

pub(crate) fn time_range(times: Option<(u16, u16)>) -> TimeRange {
    let Some((a, b)) = times else { return TimeRange::ALL };
    let (a, b) = (time_ns(a), time_ns(b));
    TimeRange::new(a.min(b), a.max(b))
}

pub(crate) fn delete_rows(
    only: Option<u8>,
    with_host: Option<u8>,
    times: Option<(u16, u16)>,
) -> DeleteTarget {
    DeleteTarget::Rows {
        measurements: only.map_or(NameFilter::All, |m| NameFilter::In(vec![measurement(m).into()])),
        series: with_host.map_or(TagExpr::True, |h| TagExpr::Equals("host".into(), host(h).into())),
        time: time_range(times),
    }
}

/// Of rows that are there, those that `DeleteMatching` names.
pub(crate) fn delete_matching(
    policy: Policy,
    measurement: &str,
    there: &[StoreRow],
    (fields, one_in, stale): (u8, u8, bool),
) -> DeleteTarget {
    let mut named: Vec<StoreRow> = there.iter().step_by(one_in.max(1).into()).cloned().collect();
    if stale {
        for at in (0..named.len()).step_by(2) {
            named[at].fields = named[(at + 1) % named.len()].fields.clone();
        }
    }
    // What has another type in these rows is not compared.
    let fits = |name: &str, field_type| {
        let mut values = named.iter().flat_map(|row| &row.fields).filter(|(n, _)| **n == *name);
        values.all(|(_, value)| value.field_type() == field_type)
    };
    let mut compared: Vec<(Name, FieldType)> = Vec::new();
    for (bit, (name, field_type)) in FIELDS.iter().enumerate() {
        let twice = compared.iter().any(|(known, _)| **known == **name);
        if fields >> bit & 1 == 1 && !twice && fits(name, *field_type) {
            compared.push(((*name).into(), *field_type));
        }
    }
    testing::matching(policy, measurement, &compared, &named)
}

/// The rows of a bulk write.
pub(crate) fn bulk(first: Row, rows: u16, spread: bool) -> Vec<StoreRow> {
    let rows = (0..rows).map(|at| {
        let value = first.value.wrapping_add(u32::from(at));
        let mut row = store_row(&Row { value, ..first });
        row.time_ns += i64::from(at) * 1_000_000_000;
        if spread {
            row.key.push_str(&format!(",id={}", value % 10_000));
        }
        row
    });
    rows.collect()
}

/// A row as stores take it.
pub(crate) fn store_row(row: &Row) -> StoreRow {
    let series = usize::from(row.series);
    let (raw, _) = MEASUREMENTS[series / TAGS.len() % MEASUREMENTS.len()];
    let key = format!("{raw}{}", TAGS[series % TAGS.len()]);
    let mut fields: Vec<(&str, Scalar)> = Vec::new();
    for (bit, (name, field_type)) in FIELDS.iter().enumerate() {
        let twice = fields.last().is_some_and(|(last, _)| last == name);
        if row.fields >> bit & 1 == 1 && !twice {
            fields.push((name, scalar(*field_type, row.value.wrapping_add(bit as u32))));
        }
    }
    if fields.is_empty() {
        fields.push(("i", scalar(FieldType::Integer, row.value)));
    }
    // The first and the last time there can be: partitions there are cut.
    let time_ns = match row.time {
        u16::MAX => MAX_TIME_NS,
        0xfffe => MIN_TIME_NS,
        time => time_ns(time),
    };
    StoreRow::new(&key, &fields, time_ns)
}

fn scalar(field_type: FieldType, value: u32) -> Scalar {
    let odd = value.is_multiple_of(17);
    let signed = i64::from(value) - 1000;
    match field_type {
        FieldType::Float if odd => {
            let odd = [f64::NAN, f64::INFINITY, -0.0, f64::MAX, 5e-324];
            Scalar::Float(odd[(value / 17) as usize % odd.len()])
        }
        FieldType::Float => Scalar::Float(signed as f64 / 8.0),
        FieldType::Integer if odd => {
            Scalar::Integer([i64::MIN, i64::MAX, 0][(value / 17) as usize % 3])
        }
        FieldType::Integer => Scalar::Integer(signed),
        FieldType::Unsigned => Scalar::Unsigned(if odd { u64::MAX } else { u64::from(value) }),
        FieldType::String if odd => Scalar::String("".into()),
        FieldType::String => Scalar::String(format!("text {} \u{20ac}", value % 50).into()),
        FieldType::Boolean => Scalar::Boolean(value % 2 == 1),
    }
}
