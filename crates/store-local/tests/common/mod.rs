//! What the tests share: stores that nothing happens in but what a test does.
#![allow(dead_code, reason = "each test binary uses a part")]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use model::{CompareOp, FieldFilter, Operand, Scalar};
use platform::SimDisk;
use store::testing::{self, Row, write};
use store::{Policy, Scan, ScanRequest, ScanSlice};
use store_local::{LocalStore, StoreOptions};

/// A store in `/store` without threads of its own, the same in every run.
pub(crate) fn options(memory_bytes: usize) -> StoreOptions {
    StoreOptions {
        maintenance_threads: 0,
        hash_seed: Some(1),
        // However slow a test is.
        in_memory_max: Duration::from_secs(86_400),
        ..StoreOptions::new("/store", memory_bytes)
    }
}

/// Opens the store on `disk`.
pub(crate) fn open(disk: &SimDisk, memory_bytes: usize) -> LocalStore {
    LocalStore::open(Arc::new(disk.clone()), options(memory_bytes)).unwrap()
}

/// A number that looks like one by chance, the same for the same number.
pub(crate) fn random(number: u64) -> u64 {
    let mixed = (number ^ number >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32
}

/// All rows of every so many'th series, by the numbers that end keys like `m,id=0123`.
pub(crate) fn every_series(scan: &dyn Scan, request: &ScanRequest, every: usize) -> ScanSlice {
    let is_wanted = |ordinal: &u32| {
        let key = testing::series_key(scan, request, *ordinal);
        key[5..].parse::<usize>().unwrap().is_multiple_of(every)
    };
    let all = 0..scan.series().len;
    let series = (every > 1).then(|| all.filter(is_wanted).collect::<Vec<u32>>().into());
    ScanSlice { series, ..ScanSlice::all() }
}

/// Writes rows, so many at once, and has them checked when they are flushed, and settled, again and again until pages that are looked
/// at are kept in other forms.
pub(crate) fn at_each_stage(
    store: &LocalStore,
    policy: Policy,
    (rows, at_once): (&[Row], usize),
    mut check: impl FnMut(&str),
) {
    for rows in rows.chunks(at_once) {
        write(store, policy, rows, 0).unwrap();
    }
    store.flush().unwrap();
    check("flushed");
    store.settle().unwrap();
    for time in 0..2 {
        check(&format!("settled, {time}"));
    }
}

/// What a row has in a field.
pub(crate) fn value<'a>(row: &'a Row, field: &str) -> Option<&'a Scalar> {
    row.fields.iter().find(|(name, _)| &**name == field).map(|(_, value)| value)
}

/// The definition of filters.
pub(crate) fn satisfies(row: &Row, filters: &[FieldFilter]) -> bool {
    filters.iter().all(|filter| {
        let Some(left) = value(row, &filter.field) else { return false };
        let right = match &filter.operand {
            Operand::Constant(constant) => Some(constant),
            Operand::Field(other) => value(row, other),
            Operand::Text(pattern) => {
                let Scalar::String(text) = left else { return false };
                return pattern.is_match(text.as_bytes()) == (filter.op == CompareOp::Equal);
            }
        };
        right.and_then(|right| order(left, right)).is_some_and(|order| filter.op.holds(order))
    })
}

fn order(left: &Scalar, right: &Scalar) -> Option<Ordering> {
    match (left, right) {
        (Scalar::Integer(a), Scalar::Integer(b)) => Some(a.cmp(b)),
        (Scalar::Unsigned(a), Scalar::Unsigned(b)) => Some(a.cmp(b)),
        (Scalar::Float(a), Scalar::Float(b)) => a.partial_cmp(b),
        (Scalar::Boolean(a), Scalar::Boolean(b)) => Some(a.cmp(b)),
        (Scalar::String(a), Scalar::String(b)) => Some(a.cmp(b)),
        (Scalar::Integer(a), Scalar::Float(b)) => (*a as f64).partial_cmp(b),
        (Scalar::Float(a), Scalar::Integer(b)) => a.partial_cmp(&(*b as f64)),
        _ => None,
    }
}
