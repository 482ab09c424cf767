//! Checking passwords without hashing them again and again.
//!
//! A password that was checked is remembered with the hash it was checked against, as a message
//! authentication code: changing a password or dropping a user makes the memory worthless. Wrong
//! ones are remembered as well, so that a client that keeps on trying costs little. A user that
//! does not exist costs what a wrong password costs: the time tells nobody which names exist.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use catalog::PasswordHash;
use hmac::{Hmac, KeyInit, Mac};
use parking_lot::Mutex;
use sha2::Sha256;
use tokio::sync::Semaphore;

use crate::blocking::blocking;
use crate::error::HttpError;

/// Passwords remembered at most; then all are forgotten.
const REMEMBERED_MAX: usize = 4096;

/// Longer passwords are nobody's.
const PASSWORD_BYTES_MAX: usize = 4096;

/// What was checked before: the code of hash and password, and whether they fit.
type Memory = HashMap<[u8; 32], bool>;

/// Checks passwords.
pub(crate) struct Passwords {
    memory: Mutex<Memory>,
    /// Each check takes a processor for a while, and 19 MiB.
    permits: Arc<Semaphore>,
    wait_max: Duration,
    /// Stands in for the hash of users that do not exist.
    nobody: Arc<OnceLock<Option<PasswordHash>>>,
}

impl std::fmt::Debug for Passwords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Passwords")
    }
}

impl Passwords {
    /// Checks as many at a time as there are processors; who waits longer than `wait_max` is
    /// refused.
    pub(crate) fn new(processors: usize, wait_max: Duration) -> Self {
        Self {
            memory: Mutex::default(),
            permits: Arc::new(Semaphore::new(processors.max(1))),
            wait_max,
            nobody: Arc::default(),
        }
    }

    /// Whether `password` is the one of `hash`; without a hash it never is.
    ///
    /// # Errors
    /// 503: too many are being checked.
    pub(crate) async fn check(
        &self,
        hash: Option<PasswordHash>,
        password: String,
    ) -> Result<bool, HttpError> {
        if password.len() > PASSWORD_BYTES_MAX {
            return Ok(false);
        }
        let key = code(hash.as_ref(), &password);
        if let Some(fits) = self.remembered(&key) {
            return Ok(fits);
        }
        let busy = || HttpError::overloaded("too many passwords to check", Duration::from_secs(1));
        let permit = Arc::clone(&self.permits).acquire_owned();
        let permit = tokio::time::timeout(self.wait_max, permit).await;
        let permit = permit.map_err(|_| busy())?.map_err(|_| busy())?;
        // Somebody else may have asked the same in the meantime.
        if let Some(fits) = self.remembered(&key) {
            return Ok(fits);
        }
        let nobody = Arc::clone(&self.nobody);
        let fits = blocking(move || {
            let _permit = permit;
            match hash {
                Some(hash) => hash.verify(&password),
                None => {
                    let nobody = nobody.get_or_init(|| PasswordHash::of("nobody").ok());
                    // Only the time it takes matters.
                    let _ = nobody.as_ref().is_some_and(|hash| hash.verify(&password));
                    false
                }
            }
        })
        .await?;
        let mut memory = self.memory.lock();
        if memory.len() >= REMEMBERED_MAX {
            memory.clear();
        }
        memory.insert(key, fits);
        Ok(fits)
    }

    fn remembered(&self, key: &[u8; 32]) -> Option<bool> {
        self.memory.lock().get(key).copied()
    }
}

/// The code of a hash and a password. Each hash has its own salt, so it says nothing of passwords
/// that two users share; nor can anybody find out by trying how near a guess came.
fn code(hash: Option<&PasswordHash>, password: &str) -> [u8; 32] {
    let key = hash.map_or("", PasswordHash::as_str);
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes())
        .expect("BUG: a key of any length is a legal one");
    mac.update(password.as_bytes());
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_remembered_belongs_to_one_hash() {
        let passwords = Passwords::new(1, Duration::from_secs(60));
        let check = |hash: &PasswordHash, text: &str| {
            let (hash, text) = (Some(hash.clone()), text.to_owned());
            passwords.check(hash, text)
        };
        let (old, new) = (PasswordHash::of("old").unwrap(), PasswordHash::of("new").unwrap());
        for _ in 0..2 {
            assert_eq!(check(&old, "old").await, Ok(true));
            assert_eq!(check(&old, "new").await, Ok(false));
            assert_eq!(check(&new, "old").await, Ok(false));
            assert_eq!(passwords.check(None, "nobody".to_owned()).await, Ok(false));
        }
        assert_eq!(passwords.memory.lock().len(), 4);
        assert_eq!(check(&old, &"x".repeat(PASSWORD_BYTES_MAX + 1)).await, Ok(false));
    }

    #[tokio::test]
    async fn remembering_costs_no_hash() {
        let passwords = Passwords::new(1, Duration::from_millis(1));
        let hash = PasswordHash::of("p").unwrap();
        assert_eq!(passwords.check(Some(hash.clone()), "p".to_owned()).await, Ok(true));
        // Nothing can be hashed while the only permit is taken.
        let _taken = Arc::clone(&passwords.permits).acquire_owned().await.unwrap();
        assert_eq!(passwords.check(Some(hash.clone()), "p".to_owned()).await, Ok(true));
        let refused = passwords.check(Some(hash), "q".to_owned()).await.unwrap_err();
        assert_eq!(refused.status.as_u16(), 503);
    }
}
