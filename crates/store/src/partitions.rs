//! The partitions of a database, as what a store says of them is read.

use model::{DatabaseId, PolicyId, TagExpr, TimeRange, Values};

use crate::{MetadataKind, MetadataRequest, NameFilter, ScanContext, Store, StoreError};

/// A partition as a store lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedPartition {
    /// Its number, of all databases its own.
    pub number: u64,
    /// The policy it is of.
    pub policy: PolicyId,
    /// Its bounds.
    pub time: TimeRange,
}

/// The partitions of a database, by policy and time: see [`MetadataKind::Partitions`].
///
/// # Errors
/// [`StoreError`]; also if what the store lists cannot be read.
pub fn list_partitions(
    store: &dyn Store,
    database: DatabaseId,
    context: ScanContext,
) -> Result<Vec<ListedPartition>, StoreError> {
    let request = MetadataRequest {
        database,
        kind: MetadataKind::Partitions,
        measurements: NameFilter::All,
        series: TagExpr::True,
        facts_max: None,
        context,
    };
    let mut cursor = store.metadata(&request)?;
    let mut all = Vec::new();
    while let Some(batch) = cursor.next()? {
        for row in 0..batch.rows {
            let cell = |at: usize| match batch.columns.get(at).map(|column| &column.values) {
                Some(Values::String(texts)) => texts.get(row),
                _ => "",
            };
            let listed = || {
                let time = TimeRange::new(cell(2).parse().ok()?, cell(3).parse().ok()?);
                let policy = PolicyId(cell(1).parse().ok()?);
                Some(ListedPartition { number: cell(0).parse().ok()?, policy, time })
            };
            let unreadable =
                || StoreError::Io("the store lists partitions that nobody can read".into());
            all.push(listed().ok_or_else(unreadable)?);
        }
    }
    Ok(all)
}
