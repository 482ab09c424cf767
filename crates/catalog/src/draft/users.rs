//! Changes of users.

use std::sync::Arc;

use model::DatabaseId;

use super::Draft;
use crate::rules::NAME_BYTES_MAX;
use crate::users::{Privilege, User};
use crate::{CatalogError, PasswordHash};

impl Draft {
    pub(crate) fn create_user(
        &mut self,
        name: &str,
        password: &PasswordHash,
        admin: bool,
    ) -> Result<(), CatalogError> {
        check_user_name(name)?;
        if self.users.iter().any(|user| *user.name == *name) {
            return Err(CatalogError::UserExists);
        }
        let (name, password) = (name.into(), password.clone());
        self.users.push(Arc::new(User { name, password, admin, grants: Vec::new() }));
        self.changed = true;
        Ok(())
    }

    pub(crate) fn drop_user(&mut self, name: &str) -> Result<(), CatalogError> {
        let at = self.users.iter().position(|user| *user.name == *name);
        self.users.remove(at.ok_or(CatalogError::UserNotFound)?);
        self.changed = true;
        Ok(())
    }

    pub(crate) fn set_password(
        &mut self,
        name: &str,
        password: &PasswordHash,
    ) -> Result<(), CatalogError> {
        self.change_user(name)?.password = password.clone();
        Ok(())
    }

    pub(crate) fn set_admin(&mut self, name: &str, admin: bool) -> Result<(), CatalogError> {
        self.change_user(name)?.admin = admin;
        Ok(())
    }

    pub(crate) fn grant(
        &mut self,
        name: &str,
        database: &str,
        privilege: Privilege,
    ) -> Result<(), CatalogError> {
        let database = self.database_of_grant(name, database)?;
        self.change_user(name)?.set(database, privilege);
        Ok(())
    }

    pub(crate) fn revoke(
        &mut self,
        name: &str,
        database: &str,
        privilege: Privilege,
    ) -> Result<(), CatalogError> {
        let database = self.database_of_grant(name, database)?;
        let user = self.change_user(name)?;
        let left = user.granted(database).without(privilege);
        user.set(database, left);
        Ok(())
    }

    /// Forgets what users were granted on a database that goes.
    pub(super) fn drop_grants(&mut self, database: DatabaseId) {
        for user in &mut self.users {
            if user.grants.iter().any(|(id, _)| *id == database) {
                Arc::make_mut(user).grants.retain(|(id, _)| *id != database);
            }
        }
    }

    /// The database of a grant. That the user is missing counts more.
    fn database_of_grant(&self, user: &str, database: &str) -> Result<DatabaseId, CatalogError> {
        if !self.users.iter().any(|other| *other.name == *user) {
            return Err(CatalogError::UserNotFound);
        }
        Ok(self.existing(database)?.id)
    }

    fn change_user(&mut self, name: &str) -> Result<&mut User, CatalogError> {
        let user = self.users.iter_mut().find(|user| *user.name == *name);
        let user = user.ok_or(CatalogError::UserNotFound)?;
        self.changed = true;
        Ok(Arc::make_mut(user))
    }
}

/// Any text but none can name a user.
fn check_user_name(name: &str) -> Result<(), CatalogError> {
    if name.is_empty() {
        return Err(CatalogError::UsernameRequired);
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(CatalogError::NameTooLong);
    }
    Ok(())
}
