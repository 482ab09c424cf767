//! Users and what they may do.

use std::fmt;

use model::{DatabaseId, Name};

use crate::PasswordHash;

/// What a user may do with a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Privilege {
    /// Nothing: what a revocation leaves behind.
    None,
    /// Read rows and names.
    Read,
    /// Write and delete rows.
    Write,
    /// Both.
    All,
}

impl Privilege {
    /// Whether who has this may do what needs `needed`.
    #[must_use]
    pub fn covers(self, needed: Self) -> bool {
        needed == Self::None || self == needed || self == Self::All
    }

    /// What is left when `revoked` is taken away. What was not there is not missed.
    pub(crate) fn without(self, revoked: Self) -> Self {
        match (self, revoked) {
            (Self::All, Self::Read) => Self::Write,
            (Self::All, Self::Write) => Self::Read,
            (_, Self::All) => Self::None,
            (had, revoked) if had == revoked => Self::None,
            (had, _) => had,
        }
    }
}

/// As InfluxDB shows it.
impl fmt::Display for Privilege {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "NO PRIVILEGES",
            Self::Read => "READ",
            Self::Write => "WRITE",
            Self::All => "ALL PRIVILEGES",
        })
    }
}

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// What the user is called.
    pub name: Name,
    /// What the password is compared with.
    pub password: PasswordHash,
    /// May do everything.
    pub admin: bool,
    /// Privileges by database, in the order they were first given; no database twice.
    pub grants: Vec<(DatabaseId, Privilege)>,
}

impl User {
    /// Whether the user may do what needs `needed` with a database; `None` is one that does not
    /// exist.
    #[must_use]
    pub fn may(&self, needed: Privilege, database: Option<DatabaseId>) -> bool {
        if self.admin || needed == Privilege::None {
            return true;
        }
        let grant = self.grants.iter().find(|(id, _)| Some(*id) == database);
        grant.is_some_and(|(_, privilege)| privilege.covers(needed))
    }

    /// Gives the user `privilege`, in place of what was there.
    pub(crate) fn set(&mut self, database: DatabaseId, privilege: Privilege) {
        match self.grants.iter_mut().find(|(id, _)| *id == database) {
            Some(grant) => grant.1 = privilege,
            None => self.grants.push((database, privilege)),
        }
    }

    /// What the user was granted on a database.
    pub(crate) fn granted(&self, database: DatabaseId) -> Privilege {
        let grant = self.grants.iter().find(|(id, _)| *id == database);
        grant.map_or(Privilege::None, |(_, privilege)| *privilege)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Privilege::{All, None, Read, Write};

    #[test]
    fn what_a_revocation_leaves() {
        for (had, revoked, left) in [
            (All, Read, Write),
            (All, Write, Read),
            (All, All, None),
            (Read, Read, None),
            (Read, Write, Read),
            (Write, Read, Write),
            (Write, All, None),
            (None, Read, None),
        ] {
            assert_eq!(had.without(revoked), left, "{had} without {revoked}");
        }
    }

    #[test]
    fn what_covers_what() {
        for (had, needed, enough) in [
            (All, Read, true),
            (All, Write, true),
            (Read, Write, false),
            (Write, Read, false),
            (Read, All, false),
            (None, Read, false),
            (None, None, true),
        ] {
            assert_eq!(had.covers(needed), enough, "{had} for {needed}");
        }
    }
}
