//! Users in the document.

use std::collections::HashSet;
use std::sync::Arc;

use model::DatabaseId;
use serde::{Deserialize, Serialize};

use super::DatabaseEntry;
use crate::PasswordHash;
use crate::users::{Privilege, User};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UserEntry {
    name: String,
    password: String,
    admin: bool,
    grants: Vec<GrantEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GrantEntry {
    database: u32,
    privilege: PrivilegeEntry,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PrivilegeEntry {
    None,
    Read,
    Write,
    All,
}

/// The users that the entries describe.
pub(super) fn decode(
    entries: &[UserEntry],
    databases: &[DatabaseEntry],
) -> Result<Vec<Arc<User>>, String> {
    let databases: HashSet<u32> = databases.iter().map(|database| database.id).collect();
    let mut names = HashSet::new();
    let mut users = Vec::with_capacity(entries.len());
    for entry in entries {
        let name = &entry.name;
        if name.is_empty() {
            return Err("there is a user without a name".to_owned());
        }
        if !names.insert(name) {
            return Err(format!("user {name:?} is there twice"));
        }
        // The text of a hash is not for the log.
        let password = PasswordHash::read(&entry.password)
            .ok_or_else(|| format!("the password of user {name:?} is no argon2id hash"))?;
        let mut grants: Vec<(DatabaseId, Privilege)> = Vec::new();
        for grant in &entry.grants {
            let id = DatabaseId(grant.database);
            if !databases.contains(&grant.database) {
                return Err(format!("a database of user {name:?} does not exist"));
            }
            if grants.iter().any(|(other, _)| *other == id) {
                return Err(format!("user {name:?} has two grants on one database"));
            }
            grants.push((id, privilege_of(grant.privilege)));
        }
        let (name, admin) = (name.as_str().into(), entry.admin);
        users.push(Arc::new(User { name, password, admin, grants }));
    }
    Ok(users)
}

/// The entries that describe `users`.
pub(super) fn encode(users: &[Arc<User>]) -> Vec<UserEntry> {
    let grant = |(id, privilege): &(DatabaseId, Privilege)| GrantEntry {
        database: id.0,
        privilege: entry_of(*privilege),
    };
    let entry = |user: &Arc<User>| UserEntry {
        name: user.name.to_string(),
        password: user.password.as_str().to_owned(),
        admin: user.admin,
        grants: user.grants.iter().map(grant).collect(),
    };
    users.iter().map(entry).collect()
}

fn privilege_of(entry: PrivilegeEntry) -> Privilege {
    match entry {
        PrivilegeEntry::None => Privilege::None,
        PrivilegeEntry::Read => Privilege::Read,
        PrivilegeEntry::Write => Privilege::Write,
        PrivilegeEntry::All => Privilege::All,
    }
}

fn entry_of(privilege: Privilege) -> PrivilegeEntry {
    match privilege {
        Privilege::None => PrivilegeEntry::None,
        Privilege::Read => PrivilegeEntry::Read,
        Privilege::Write => PrivilegeEntry::Write,
        Privilege::All => PrivilegeEntry::All,
    }
}
