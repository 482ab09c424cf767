//! Counts the values of every field on both sides.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use crate::http::Client;
use crate::influx::{ident, small_rows};
use crate::source::{Layout, Slice};

/// Counts by field.
type Counts = BTreeMap<String, u64>;

/// Compares one measurement; the differences, and the number of values on the source.
///
/// # Errors
/// A server cannot be asked.
pub(super) fn compare(
    from: &mut Client,
    to: &mut Client,
    place: (&str, &str),
    layout: &Layout,
    slices: &[Slice],
) -> Result<(Vec<String>, u64)> {
    let (Some(first), Some(last)) = (slices.first(), slices.last()) else {
        return Ok((Vec::new(), 0));
    };
    let whole = Slice { first_ns: first.first_ns, last_ns: last.last_ns };
    let name = &layout.measurement;
    // Over several shards a source counts only values of one of a field's types.
    let parts = if layout.mixed().next().is_some() { slices } else { &[whole] };
    let mut there = Counts::new();
    for part in parts {
        for (field, count) in counts(from, place, name, *part)? {
            *there.entry(field).or_default() += count;
        }
    }
    let here = counts(to, place, name, whole)?;
    let mut differences = Vec::new();
    for (field, expected) in &there {
        let names = layout.names_of(field).iter();
        let found: u64 = names.filter_map(|name| here.get(name)).sum();
        if found != *expected {
            let (db, policy) = place;
            differences.push(format!(
                "{db}.{policy}.{name}, field {field:?}: {expected} values on the source, {found} here"
            ));
        }
    }
    Ok((differences, there.values().sum()))
}

fn counts(client: &mut Client, place: (&str, &str), name: &str, slice: Slice) -> Result<Counts> {
    let (db, policy) = place;
    let from = format!("{}.{}.{}", ident(db), ident(policy), ident(name));
    let statement = format!("SELECT count(*::field) FROM {from} WHERE {}", slice.condition());
    let mut counts = Counts::new();
    for row in small_rows(client, db, &statement)? {
        for (column, count) in row {
            if let Some(field) = column.strip_prefix("count_") {
                counts.insert(field.to_owned(), count.parse().context("not a count")?);
            }
        }
    }
    Ok(counts)
}
