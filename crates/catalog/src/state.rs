//! A snapshot of the catalog: what readers look names up in.

use std::collections::HashMap;
use std::sync::Arc;

use model::{DatabaseId, Name, PolicyId};
use store::{CatalogDocument, Policy};

use crate::CatalogError;
use crate::users::User;

/// Databases, policies and users at one moment. Never changes.
#[derive(Clone, Debug, Default)]
pub struct CatalogState {
    pub(crate) version: u64,
    pub(crate) databases: Vec<Arc<Database>>,
    by_name: HashMap<Name, usize>,
    pub(crate) next_database_id: u32,
    pub(crate) next_policy_id: u32,
    pub(crate) orphans: Vec<Orphan>,
    pub(crate) users: Vec<Arc<User>>,
    has_subscriptions: bool,
}

/// What a snapshot is made of.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) databases: Vec<Arc<Database>>,
    pub(crate) next_database_id: u32,
    pub(crate) next_policy_id: u32,
    pub(crate) orphans: Vec<Orphan>,
    pub(crate) users: Vec<Arc<User>>,
}

/// A database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Database {
    /// Never given again.
    pub id: DatabaseId,
    /// What users call it.
    pub name: Name,
    /// Name of the policy that unqualified reads and writes use. There may be none of that name: it
    /// was dropped, or there never was one (empty).
    pub default_policy: Name,
    /// In order of creation.
    pub policies: Vec<PolicyInfo>,
    /// In order of creation.
    pub continuous_queries: Vec<ContinuousQuery>,
}

/// A query that is run again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContinuousQuery {
    /// What users call it; unique in its database.
    pub name: Name,
    /// The statement that creates it, with all names complete.
    pub text: Name,
}

/// A retention policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyInfo {
    /// Never given again; unique over all databases.
    pub id: PolicyId,
    /// What users call it.
    pub name: Name,
    /// How long rows are kept, nanoseconds. `None`: for ever.
    pub duration_ns: Option<i64>,
    /// Length of a partition, nanoseconds.
    pub shard_duration_ns: i64,
    /// How many copies were asked for.
    pub replica_n: u32,
    /// In order of creation.
    pub subscriptions: Vec<Subscription>,
}

/// Somebody who gets a copy of what is written to a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// What users call it; unique in its policy.
    pub name: Name,
    /// Which destinations get a write.
    pub mode: SubscriptionMode,
    /// URLs, at least one.
    pub destinations: Vec<Name>,
}

/// Which destinations of a subscription get a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscriptionMode {
    /// Each of them.
    All,
    /// One, in turn.
    Any,
}

impl SubscriptionMode {
    /// `ALL` or `ANY`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::All => "ALL",
            Self::Any => "ANY",
        }
    }
}

/// Rows in the store that no name leads to any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Orphan {
    pub(crate) database: DatabaseId,
    /// `None`: everything of the database.
    pub(crate) policy: Option<PolicyId>,
}

impl Parts {
    pub(crate) fn empty() -> Self {
        Self {
            databases: Vec::new(),
            next_database_id: 1,
            next_policy_id: 1,
            orphans: Vec::new(),
            users: Vec::new(),
        }
    }
}

impl CatalogState {
    /// Reads the catalog's document, as a store keeps it.
    ///
    /// # Errors
    /// It is damaged, or a later version wrote it.
    pub fn read(document: &CatalogDocument) -> Result<Self, CatalogError> {
        crate::document::decode(document)
    }

    pub(crate) fn new(version: u64, parts: Parts) -> Self {
        let Parts { databases, next_database_id, next_policy_id, orphans, users } = parts;
        let by_name = databases.iter().enumerate().map(|(at, d)| (d.name.clone(), at)).collect();
        let mut policies = databases.iter().flat_map(|database| &database.policies);
        let has_subscriptions = policies.any(|policy| !policy.subscriptions.is_empty());
        Self {
            version,
            databases,
            by_name,
            next_database_id,
            next_policy_id,
            orphans,
            users,
            has_subscriptions,
        }
    }

    /// The store's version of the document this is a snapshot of. 0: nothing was ever created.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// All databases in order of creation.
    #[must_use]
    pub fn databases(&self) -> &[Arc<Database>] {
        &self.databases
    }

    /// The database called `name`.
    #[must_use]
    pub fn database(&self, name: &str) -> Option<&Arc<Database>> {
        self.by_name.get(name).map(|at| &self.databases[*at])
    }

    /// Whether any policy has a subscription.
    #[must_use]
    pub fn has_subscriptions(&self) -> bool {
        self.has_subscriptions
    }

    /// All users in order of creation.
    #[must_use]
    pub fn users(&self) -> &[Arc<User>] {
        &self.users
    }

    /// The user called `name`.
    #[must_use]
    pub fn user(&self, name: &str) -> Option<&Arc<User>> {
        self.users.iter().find(|user| *user.name == *name)
    }

    /// The policy `policy` of `database`; without a name (or with an empty one) the default policy.
    ///
    /// # Errors
    /// [`CatalogError::DatabaseNotFound`], [`CatalogError::PolicyNotFound`].
    pub fn resolve(&self, database: &str, policy: Option<&str>) -> Result<Policy, CatalogError> {
        let found = self
            .database(database)
            .ok_or_else(|| CatalogError::DatabaseNotFound(database.to_owned()))?;
        let name = policy.filter(|name| !name.is_empty()).unwrap_or(&found.default_policy);
        let info =
            found.policy(name).ok_or_else(|| CatalogError::PolicyNotFound(name.to_owned()))?;
        Ok(info.policy(found))
    }

    /// The policies that keep rows for some time only, with the time before which partitions have
    /// to end to be dropped at `now_ns`.
    #[must_use]
    pub fn expired(&self, now_ns: i64) -> Vec<(DatabaseId, PolicyId, i64)> {
        let limited = |database: &'_ Arc<Database>| {
            let id = database.id;
            let limits: Vec<_> = database
                .policies
                .iter()
                .filter_map(|p| Some((id, p.id, now_ns.saturating_sub(p.duration_ns?))))
                .collect();
            limits
        };
        self.databases.iter().flat_map(limited).collect()
    }

    /// The retention policy of this id, whichever database's it is.
    #[must_use]
    pub fn policy_by_id(&self, id: PolicyId) -> Option<&PolicyInfo> {
        self.databases.iter().flat_map(|database| &database.policies).find(|policy| policy.id == id)
    }
}

impl Database {
    /// The policy called `name`.
    #[must_use]
    pub fn policy(&self, name: &str) -> Option<&PolicyInfo> {
        self.policies.iter().find(|policy| *policy.name == *name)
    }
}

impl PolicyInfo {
    /// What a store has to know of this policy of `database`.
    #[must_use]
    pub fn policy(&self, database: &Database) -> Policy {
        Policy {
            database: database.id,
            id: self.id,
            partition_ns: self.shard_duration_ns,
            retention_ns: self.duration_ns,
        }
    }
}
