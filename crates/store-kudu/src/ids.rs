//! Numbers that no two daemons give: blocks of them are reserved in the registry.
//!
//! A scope (the store for measurements, a measurement for its series and fields) has its blocks as entries, the
//! last one first: the key is the first number, the value the one behind the block. A block begins
//! where the one before ends, so whoever is first to insert a beginning has all of the block,
//! whatever size others wanted. Entries are never removed: a beginning that could be inserted again
//! would be given twice. What a daemon has not used of its block is lost when it stops.

use store::StoreError;

use crate::error::{contended, unintelligible};
use crate::registry::{Entry, Registry, number_of, ordered, space};

/// Numbers of the first block a daemon reserves in a scope.
const BLOCK_MIN: i64 = 64;
/// Numbers of the largest block.
const BLOCK_MAX: i64 = 4096;
/// Tries to reserve a block while others reserve theirs.
const TRIES_MAX: usize = 200;

/// Numbers a daemon may give: from `next` to `end`, not included.
#[derive(Debug, Default)]
pub(crate) struct Block {
    next: i64,
    end: i64,
    /// Numbers of the block reserved last.
    size: i64,
}

impl Block {
    /// Takes `count` numbers, ascending.
    pub(crate) async fn take(
        &mut self,
        registry: &Registry,
        scope: i64,
        count: usize,
    ) -> Result<Vec<i64>, StoreError> {
        let mut taken = Vec::with_capacity(count);
        while taken.len() < count {
            if self.next == self.end {
                let wanted = i64::try_from(count - taken.len()).unwrap_or(BLOCK_MAX);
                self.reserve(registry, scope, wanted).await?;
            }
            taken.push(self.next);
            self.next += 1;
        }
        Ok(taken)
    }

    async fn reserve(
        &mut self,
        registry: &Registry,
        scope: i64,
        wanted: i64,
    ) -> Result<(), StoreError> {
        let size = (self.size * 2).max(wanted).clamp(BLOCK_MIN, BLOCK_MAX);
        let start = reserve(registry, scope, space::IDS, size).await?;
        *self = Self { next: start, end: start + size, size };
        Ok(())
    }
}

/// Reserves `size` numbers of a sequence; gives the first.
pub(crate) async fn reserve(
    registry: &Registry,
    scope: i64,
    sequence: i8,
    size: i64,
) -> Result<i64, StoreError> {
    for _ in 0..TRIES_MAX {
        let last = registry.first(scope, sequence).await?;
        let start = match last {
            None => 1,
            Some(entry) => end_of(&entry, registry.table.name())?,
        };
        let entry = Entry::new(sequence, ordered(-start)).number(start + size);
        if registry.insert_one(scope, entry).await? {
            return Ok(start);
        }
    }
    Err(contended("a sequence of numbers"))
}

/// The number behind the block that an entry stands for.
pub(crate) fn end_of(entry: &Entry, table: &str) -> Result<i64, StoreError> {
    let start = number_of(&entry.key).map(i64::wrapping_neg);
    match (start, entry.number) {
        (Some(start), Some(end)) if 0 < start && start < end => Ok(end),
        _ => Err(unintelligible(table, "a damaged id block")),
    }
}
