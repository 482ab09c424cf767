//! Passwords as they are kept: argon2id, in the notation that names its own parameters.

use std::fmt;
use std::sync::Arc;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash as Phc;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};

use crate::CatalogError;

/// A hashed password. Cheap to clone; `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(Arc<str>);

impl PasswordHash {
    /// Hashes a password with a fresh salt. Takes tens of milliseconds and 19 MiB, on purpose.
    ///
    /// # Errors
    /// [`CatalogError::Password`]: the operating system has no random numbers.
    pub fn of(password: &str) -> Result<Self, CatalogError> {
        let hash: Result<Phc, _> = Argon2::default().hash_password(password.as_bytes());
        let hash = hash.map_err(|error| CatalogError::Password(error.to_string()))?;
        Ok(Self(hash.to_string().into()))
    }

    /// A hash that was written down, if it is one.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let hash = Phc::new(text).ok()?;
        let complete = hash.salt.is_some() && hash.hash.is_some();
        (complete && hash.algorithm.as_str() == "argon2id").then(|| Self(text.into()))
    }

    /// The text to be written down.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the hash of `password`. Takes as long as making it.
    #[must_use]
    pub fn verify(&self, password: &str) -> bool {
        Phc::new(&self.0)
            .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[REDACTED]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_password_fits() {
        let hash = PasswordHash::of("p\u{e4}ss").unwrap();
        assert!(hash.verify("p\u{e4}ss") && !hash.verify("pass") && !hash.verify(""));
        assert_eq!(PasswordHash::read(hash.as_str()), Some(hash.clone()));
        assert_ne!(PasswordHash::of("p\u{e4}ss").unwrap(), hash, "each has its own salt");
        assert_eq!(format!("{hash:?}"), "[REDACTED]");
        assert!(PasswordHash::of("").unwrap().verify(""));
    }

    #[test]
    fn other_texts_are_no_hashes() {
        for text in ["", "secret", "$argon2id$v=19$m=8,t=1,p=1", "$2a$10$abcdefghijklmnopqrstuv"] {
            assert_eq!(PasswordHash::read(text), None, "{text}");
        }
    }
}
