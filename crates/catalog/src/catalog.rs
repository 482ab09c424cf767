//! The catalog of one store: snapshots out, changes in.
//!
//! Invariants
//! - A published snapshot is what the store had when it was published; versions only grow.
//! - A name is gone before its rows are: the drop is in the document first, with an orphan that
//!   stays there until the store has removed the rows. Whoever opens the store next goes on.
//! - An id is never given twice, so a late removal cannot reach rows of a later database.

#[cfg(test)]
mod tests;
mod users;

use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use store::{CatalogDocument, DeleteRequest, DeleteTarget, Store, SwapOutcome};

use crate::draft::Draft;
use crate::rules::PolicySpec;
use crate::state::{Orphan, Subscription};
use crate::{CatalogError, CatalogState, document};

/// What configuration says of the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatalogOptions {
    /// Whether a database that is created without a policy gets `autogen`.
    pub retention_autocreate: bool,
}

impl Default for CatalogOptions {
    fn default() -> Self {
        Self { retention_autocreate: true }
    }
}

/// The catalog of one store. Other handles of the same store may change it as well.
#[derive(Debug)]
pub struct Catalog {
    store: Arc<dyn Store>,
    options: CatalogOptions,
    state: ArcSwap<CatalogState>,
    /// Held while a change is made: two of one process need not race for the store's slot.
    changing: Mutex<()>,
}

impl Catalog {
    /// Reads the catalog, and finishes drops that were interrupted.
    ///
    /// # Errors
    /// [`CatalogError::Document`], [`CatalogError::Store`].
    pub fn open(store: Arc<dyn Store>) -> Result<Self, CatalogError> {
        Self::open_with(store, CatalogOptions::default())
    }

    /// As [`Catalog::open`].
    ///
    /// # Errors
    /// As [`Catalog::open`].
    pub fn open_with(store: Arc<dyn Store>, options: CatalogOptions) -> Result<Self, CatalogError> {
        let state = document::decode(&store.catalog()?)?;
        let state = ArcSwap::from_pointee(state);
        let catalog = Self { store, options, state, changing: Mutex::new(()) };
        catalog.finish_drops()?;
        Ok(catalog)
    }

    /// The catalog as this process last saw it.
    #[must_use]
    pub fn snapshot(&self) -> Arc<CatalogState> {
        self.state.load_full()
    }

    /// Takes over what other handles of the store have changed.
    ///
    /// # Errors
    /// [`CatalogError::Document`], [`CatalogError::Store`].
    pub fn refresh(&self) -> Result<Arc<CatalogState>, CatalogError> {
        let _changing = self.changing.lock();
        self.publish_document(&self.store.catalog()?)?;
        Ok(self.snapshot())
    }

    /// Creates a database, with a default policy. An existing one is left as it is if `policy` is
    /// absent or describes its default policy.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn create_database(
        &self,
        name: &str,
        policy: Option<&PolicySpec>,
    ) -> Result<(), CatalogError> {
        self.change(|draft| draft.create_database(name, policy, &self.options))
    }

    /// Drops a database with its rows. A missing one is success.
    ///
    /// # Errors
    /// [`CatalogError::Store`]. If only the rows could not be removed, the name is gone all the
    /// same and the rows go at the next drop or opening.
    pub fn drop_database(&self, name: &str) -> Result<(), CatalogError> {
        self.change(|draft| {
            draft.drop_database(name);
            Ok(())
        })?;
        self.finish_drops()
    }

    /// Creates a policy, `spec` with a name. An existing one is left as it is if it is the same.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn create_policy(
        &self,
        database: &str,
        spec: &PolicySpec,
        make_default: bool,
    ) -> Result<(), CatalogError> {
        self.change(|draft| draft.create_policy(database, spec, make_default))
    }

    /// Changes the policy that `spec` names to what else it says.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn alter_policy(
        &self,
        database: &str,
        spec: &PolicySpec,
        make_default: bool,
    ) -> Result<(), CatalogError> {
        self.change(|draft| draft.alter_policy(database, spec, make_default))
    }

    /// Drops a policy with its rows. A missing one is success; so is the default one, and
    /// unqualified reads and writes fail from then on.
    ///
    /// # Errors
    /// As [`Catalog::drop_database`].
    pub fn drop_policy(&self, database: &str, name: &str) -> Result<(), CatalogError> {
        self.change(|draft| draft.drop_policy(database, name))?;
        self.finish_drops()
    }

    /// Keeps a continuous query; `text` is the statement that creates it, with all names complete.
    /// The same again is success.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn create_continuous_query(
        &self,
        database: &str,
        name: &str,
        text: &str,
    ) -> Result<(), CatalogError> {
        self.change(|draft| draft.create_continuous_query(database, name, text))
    }

    /// Forgets a continuous query. A missing one is success.
    ///
    /// # Errors
    /// [`CatalogError::Document`], [`CatalogError::Store`].
    pub fn drop_continuous_query(&self, database: &str, name: &str) -> Result<(), CatalogError> {
        self.change(|draft| draft.drop_continuous_query(database, name))
    }

    /// Keeps a subscription of a policy.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn create_subscription(
        &self,
        database: &str,
        policy: &str,
        subscription: &Subscription,
    ) -> Result<(), CatalogError> {
        self.change(|draft| draft.create_subscription(database, policy, subscription))
    }

    /// Forgets a subscription.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn drop_subscription(
        &self,
        database: &str,
        policy: &str,
        name: &str,
    ) -> Result<(), CatalogError> {
        self.change(|draft| draft.drop_subscription(database, policy, name))
    }

    /// Has the store remove what dropped names have left behind.
    fn finish_drops(&self) -> Result<(), CatalogError> {
        for orphan in &self.snapshot().orphans {
            self.store.delete(&removal_of(*orphan))?;
            self.change(|draft| {
                draft.forget(*orphan);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Makes a change to a copy and swaps it in; starts again if somebody else was faster.
    fn change(
        &self,
        work: impl Fn(&mut Draft) -> Result<(), CatalogError>,
    ) -> Result<(), CatalogError> {
        let _changing = self.changing.lock();
        loop {
            let before = self.snapshot();
            let mut draft = Draft::of(&before);
            work(&mut draft)?;
            let Some(after) = draft.finish(before.version + 1) else { return Ok(()) };
            match self.store.swap_catalog(before.version, &document::encode(&after))? {
                SwapOutcome::Swapped(version) => {
                    assert_eq!(version, after.version, "BUG: a swap counts the version up by one");
                    self.state.store(Arc::new(after));
                    return Ok(());
                }
                SwapOutcome::Conflict(newer) => self.publish_document(&newer)?,
            }
        }
    }

    fn publish_document(&self, stored: &CatalogDocument) -> Result<(), CatalogError> {
        if stored.version != self.snapshot().version {
            self.state.store(Arc::new(document::decode(stored)?));
        }
        Ok(())
    }
}

fn removal_of(orphan: Orphan) -> DeleteRequest {
    let target = orphan.policy.map_or(DeleteTarget::Database, DeleteTarget::Policy);
    DeleteRequest { database: orphan.database, target }
}
