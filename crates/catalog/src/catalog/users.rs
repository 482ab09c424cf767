//! Users.

use super::Catalog;
use crate::{CatalogError, PasswordHash, Privilege};

impl Catalog {
    /// Creates a user. One that exists is left as it is if password and rank are the same. Hashes
    /// passwords: takes a while.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn create_user(&self, name: &str, password: &str, admin: bool) -> Result<(), CatalogError> {
        let existing = self.snapshot().user(name).cloned();
        if let Some(user) = existing {
            let same = user.admin == admin && user.password.verify(password);
            return if same { Ok(()) } else { Err(CatalogError::UserExists) };
        }
        let hash = PasswordHash::of(password)?;
        self.change(|draft| draft.create_user(name, &hash, admin))
    }

    /// Drops a user.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn drop_user(&self, name: &str) -> Result<(), CatalogError> {
        self.change(|draft| draft.drop_user(name))
    }

    /// Gives a user another password. Hashes it: takes a while.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn set_password(&self, name: &str, password: &str) -> Result<(), CatalogError> {
        if self.snapshot().user(name).is_none() {
            return Err(CatalogError::UserNotFound);
        }
        let hash = PasswordHash::of(password)?;
        self.change(|draft| draft.set_password(name, &hash))
    }

    /// Makes a user an administrator, or none.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn set_admin(&self, name: &str, admin: bool) -> Result<(), CatalogError> {
        self.change(|draft| draft.set_admin(name, admin))
    }

    /// Gives a user a privilege on a database, in place of the one that was there.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn grant(
        &self,
        user: &str,
        database: &str,
        privilege: Privilege,
    ) -> Result<(), CatalogError> {
        self.change(|draft| draft.grant(user, database, privilege))
    }

    /// Takes a privilege on a database from a user.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn revoke(
        &self,
        user: &str,
        database: &str,
        privilege: Privilege,
    ) -> Result<(), CatalogError> {
        self.change(|draft| draft.revoke(user, database, privilege))
    }
}
