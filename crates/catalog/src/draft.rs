//! A copy of the catalog that is being changed. Pure: no store, no publication.

mod subscriptions;
mod users;

use std::sync::Arc;

use model::{DatabaseId, Name, PolicyId};

use crate::rules::{DEFAULT_POLICY_NAME, Definition, PolicySpec, check_name, retention};
use crate::state::{CatalogState, ContinuousQuery, Database, Orphan, Parts, PolicyInfo};
use crate::users::User;
use crate::{CatalogError, CatalogOptions};

/// The copy and whether it differs from what it was made of.
#[derive(Debug)]
pub(crate) struct Draft {
    databases: Vec<Arc<Database>>,
    next_database_id: u32,
    next_policy_id: u32,
    orphans: Vec<Orphan>,
    users: Vec<Arc<User>>,
    changed: bool,
}

impl Draft {
    pub(crate) fn of(state: &CatalogState) -> Self {
        Self {
            databases: state.databases.clone(),
            next_database_id: state.next_database_id,
            next_policy_id: state.next_policy_id,
            orphans: state.orphans.clone(),
            users: state.users.clone(),
            changed: false,
        }
    }

    /// The changed catalog, `None` if nothing changed.
    pub(crate) fn finish(self, version: u64) -> Option<CatalogState> {
        let parts = Parts {
            databases: self.databases,
            next_database_id: self.next_database_id,
            next_policy_id: self.next_policy_id,
            orphans: self.orphans,
            users: self.users,
        };
        self.changed.then(|| CatalogState::new(version, parts))
    }

    pub(crate) fn create_database(
        &mut self,
        name: &str,
        spec: Option<&PolicySpec>,
        options: &CatalogOptions,
    ) -> Result<(), CatalogError> {
        check_name(name)?;
        let policy_name = spec.and_then(|spec| spec.name.clone()).filter(|name| !name.is_empty());
        let policy_name = policy_name.unwrap_or_else(|| DEFAULT_POLICY_NAME.into());
        check_name(&policy_name)?;
        let Some(spec) = spec else {
            if self.find(name).is_none() {
                self.push_database(name)?;
                if options.retention_autocreate {
                    let definition = Definition::new(&PolicySpec::default())?;
                    self.push_policy(name, &policy_name, &definition, true)?;
                }
            }
            return Ok(());
        };
        retention(spec.duration_ns.unwrap_or(0))?;
        if self.find(name).is_none() {
            self.push_database(name)?;
        }
        let database = self.existing(name)?;
        if database.policies.is_empty() {
            let definition = Definition::new(spec)?;
            return self.push_policy(name, &policy_name, &definition, true);
        }
        let agrees =
            database.policy(&policy_name).is_some_and(|p| definition_of(p).satisfies(spec));
        if agrees && database.default_policy == policy_name {
            return Ok(());
        }
        Err(CatalogError::PolicyConflict)
    }

    pub(crate) fn create_policy(
        &mut self,
        database: &str,
        spec: &PolicySpec,
        make_default: bool,
    ) -> Result<(), CatalogError> {
        let name = spec.name.clone().unwrap_or_else(|| "".into());
        check_name(&name)?;
        let definition = Definition::new(spec)?;
        let found = self.existing(database)?;
        let Some(policy) = found.policy(&name) else {
            return self.push_policy(database, &name, &definition, make_default);
        };
        if definition_of(policy) != definition {
            return Err(CatalogError::PolicyExists);
        }
        if make_default && found.default_policy != name {
            return Err(CatalogError::PolicyConflict);
        }
        Ok(())
    }

    pub(crate) fn alter_policy(
        &mut self,
        database: &str,
        spec: &PolicySpec,
        make_default: bool,
    ) -> Result<(), CatalogError> {
        let name = spec.name.clone().unwrap_or_else(|| "".into());
        let found = self.existing(database)?;
        let at = found.policies.iter().position(|policy| policy.name == name);
        let at = at.ok_or_else(|| CatalogError::PolicyNotFound(name.to_string()))?;
        let before = definition_of(&found.policies[at]);
        let definition = before.altered(spec)?;
        let becomes_default = make_default && found.default_policy != name;
        if definition == before && !becomes_default {
            return Ok(());
        }
        let found = self.change(database)?;
        let old = &mut found.policies[at];
        let subscriptions = std::mem::take(&mut old.subscriptions);
        *old = PolicyInfo { subscriptions, ..info_of(old.id, &name, &definition) };
        if becomes_default {
            found.default_policy = name;
        }
        Ok(())
    }

    /// Leaves an orphan if there was such a database.
    pub(crate) fn drop_database(&mut self, name: &str) {
        if let Some(at) = self.find(name) {
            let database = self.databases.remove(at);
            self.orphans.retain(|orphan| orphan.database != database.id);
            self.orphans.push(Orphan { database: database.id, policy: None });
            self.drop_grants(database.id);
            self.changed = true;
        }
    }

    /// Leaves an orphan if there was such a policy. The default's name stays, even of no policy.
    pub(crate) fn drop_policy(&mut self, database: &str, name: &str) -> Result<(), CatalogError> {
        let found = self.find(database).map(|at| &self.databases[at]);
        let Some(at) = found.and_then(|d| d.policies.iter().position(|p| *p.name == *name)) else {
            return Ok(());
        };
        let found = self.change(database)?;
        let (id, policy) = (found.id, found.policies.remove(at).id);
        self.orphans.push(Orphan { database: id, policy: Some(policy) });
        Ok(())
    }

    /// The same again is success.
    pub(crate) fn create_continuous_query(
        &mut self,
        database: &str,
        name: &str,
        text: &str,
    ) -> Result<(), CatalogError> {
        let existing = &self.existing(database)?.continuous_queries;
        match existing.iter().find(|query| &*query.name == name) {
            Some(same) if same.text.eq_ignore_ascii_case(text) => Ok(()),
            Some(_) => Err(CatalogError::ContinuousQueryExists),
            None => {
                let query = ContinuousQuery { name: name.into(), text: text.into() };
                self.change(database)?.continuous_queries.push(query);
                Ok(())
            }
        }
    }

    /// A missing one is success.
    pub(crate) fn drop_continuous_query(
        &mut self,
        database: &str,
        name: &str,
    ) -> Result<(), CatalogError> {
        let is_there = |database: &Database| {
            database.continuous_queries.iter().any(|query| &*query.name == name)
        };
        if self.existing(database).is_ok_and(is_there) {
            self.change(database)?.continuous_queries.retain(|query| &*query.name != name);
        }
        Ok(())
    }

    /// Forgets an orphan whose rows are gone.
    pub(crate) fn forget(&mut self, orphan: Orphan) {
        let before = self.orphans.len();
        self.orphans.retain(|other| *other != orphan);
        self.changed |= self.orphans.len() != before;
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.databases.iter().position(|database| *database.name == *name)
    }

    fn existing(&self, name: &str) -> Result<&Database, CatalogError> {
        let at = self.find(name).ok_or_else(|| CatalogError::DatabaseNotFound(name.to_owned()))?;
        Ok(&self.databases[at])
    }

    fn change(&mut self, name: &str) -> Result<&mut Database, CatalogError> {
        let at = self.find(name).ok_or_else(|| CatalogError::DatabaseNotFound(name.to_owned()))?;
        self.changed = true;
        Ok(Arc::make_mut(&mut self.databases[at]))
    }

    fn push_database(&mut self, name: &str) -> Result<(), CatalogError> {
        let id = DatabaseId(take_id(&mut self.next_database_id)?);
        let (name, default_policy) = (name.into(), "".into());
        let database = Database {
            id,
            name,
            default_policy,
            policies: Vec::new(),
            continuous_queries: Vec::new(),
        };
        self.databases.push(Arc::new(database));
        self.changed = true;
        Ok(())
    }

    fn push_policy(
        &mut self,
        database: &str,
        name: &Name,
        definition: &Definition,
        make_default: bool,
    ) -> Result<(), CatalogError> {
        let id = PolicyId(take_id(&mut self.next_policy_id)?);
        let database = self.change(database)?;
        database.policies.push(info_of(id, name, definition));
        if make_default {
            database.default_policy = name.clone();
        }
        Ok(())
    }
}

fn take_id(next: &mut u32) -> Result<u32, CatalogError> {
    let id = *next;
    *next = id.checked_add(1).ok_or(CatalogError::IdsExhausted)?;
    Ok(id)
}

fn info_of(id: PolicyId, name: &Name, definition: &Definition) -> PolicyInfo {
    PolicyInfo {
        id,
        name: name.clone(),
        duration_ns: definition.duration_ns,
        shard_duration_ns: definition.shard_duration_ns,
        replica_n: definition.replica_n,
        subscriptions: Vec::new(),
    }
}

fn definition_of(policy: &PolicyInfo) -> Definition {
    Definition {
        duration_ns: policy.duration_ns,
        shard_duration_ns: policy.shard_duration_ns,
        replica_n: policy.replica_n,
    }
}
