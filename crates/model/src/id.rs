//! Identifiers. Each is a newtype so that one can never stand for another.

/// A database, for its whole life. Given by the catalog, 1 upwards, never used again: a dropped
/// and re-created database has another id, so late cleaning can never touch new data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatabaseId(pub u32);

/// A retention policy, unique over all databases. Given by the catalog, never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyId(pub u32);

/// A series inside one store. Dense, counted up, never used again, and never leaves the store
/// that gave it: another store numbers the same series differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesId(pub u64);
