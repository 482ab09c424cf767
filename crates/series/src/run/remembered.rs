//! Directory entries that were asked for last: every query asks for one, and most ask for the same few.
//!
//! A run never changes, so what was read of it stays true. An entry keeps the page it stands in from being given back;
//! there are so few places that this does not count.

use std::sync::Arc;

use model::DatabaseId;
use parking_lot::RwLock;

use super::directory::Entry;
use super::file::Page;
use crate::block::BlockRef;

const PLACES: usize = 4;

/// An entry of the directory, and where it stands.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) block: BlockRef,
    pub(super) page: Page,
    pub(super) entry: Entry,
}

impl Found {
    /// Of bytes that were checked to be text.
    pub(super) fn text(&self, range: &std::ops::Range<usize>) -> &str {
        std::str::from_utf8(&self.page[range.clone()]).expect("BUG: names were checked when read")
    }
}

/// The last entry of each place that names fall on.
#[derive(Debug, Default)]
pub(super) struct Remembered([RwLock<Option<Arc<Found>>>; PLACES]);

impl Remembered {
    /// The entry of a measurement, if it is there.
    pub(super) fn find(&self, database: DatabaseId, name: &str) -> Option<Arc<Found>> {
        let place = self.place(database, name).read();
        let found = place.as_ref()?;
        let found_name = &found.page[found.entry.name.clone()];
        let is_it = found.entry.database == database && found_name == name.as_bytes();
        is_it.then(|| Arc::clone(found))
    }

    /// Keeps an entry in place of another.
    pub(super) fn keep(&self, found: &Arc<Found>) {
        let (database, name) = (found.entry.database, found.text(&found.entry.name));
        *self.place(database, name).write() = Some(Arc::clone(found));
    }

    fn place(&self, database: DatabaseId, name: &str) -> &RwLock<Option<Arc<Found>>> {
        let mix = |all: u64, byte| all.wrapping_mul(31).wrapping_add(u64::from(byte));
        let mixed = name.bytes().fold(u64::from(database.0), mix);
        &self.0[(mixed % PLACES as u64) as usize]
    }
}
