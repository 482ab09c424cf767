//! Who sent a packet, and packets that nobody else can read: collectd's signatures and encryption.
//!
//! A signature is a part before all others: HMAC-SHA-256 of what is behind it (the user's name, which is
//! the end of that part, and all other parts), keyed with the password. An encrypted part is the user's
//! name, an initialisation vector, and AES-256-OFB of a SHA-1 and the parts that it is of; the key is
//! the SHA-256 of the password.
//!
//! Not here: protection from packets that somebody recorded and sends again, which the protocol lacks.

use std::borrow::Cow;
use std::collections::HashMap;

use aes::Aes256;
use hmac::{Hmac, KeyInit, Mac};
use ofb::Ofb;
use ofb::cipher::{KeyIvInit, StreamCipher};
use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::packet::{PacketError, kind, part};

const MAC_BYTES: usize = 32;
const IV_BYTES: usize = 16;
const SHA1_BYTES: usize = 20;

/// What values need to be stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecurityLevel {
    /// Nothing.
    #[default]
    None,
    /// They are signed, or encrypted.
    Sign,
    /// They are encrypted.
    Encrypt,
}

/// Users and their passwords.
#[derive(Clone, Default)]
pub struct Users(HashMap<String, String>);

impl std::fmt::Debug for Users {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Users").field(&self.0.len()).finish()
    }
}

impl Users {
    /// Adds those of a file of lines `user: password`. Lines that are empty or begin with `#` say nothing.
    ///
    /// # Errors
    /// A text that names the line that is none.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        for (line, number) in text.lines().map(str::trim).zip(1..) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let Some((user, password)) = line.split_once(':') else {
                // Not the line itself, which may be a password.
                return Err(format!("line {number} is not of the form \"user: password\""));
            };
            self.0.insert(user.trim().to_owned(), password.trim().to_owned());
        }
        Ok(())
    }

    fn password(&self, user: &[u8]) -> Option<&str> {
        self.0.get(std::str::from_utf8(user).ok()?).map(String::as_str)
    }
}

/// Parts of a packet that came with the same security.
#[derive(Debug)]
pub(super) struct Section<'p> {
    pub(super) level: SecurityLevel,
    pub(super) parts: Cow<'p, [u8]>,
}

/// Verifies and decrypts a packet. Without `users` signatures mean nothing.
///
/// # Errors
/// A signature that is not right, what cannot be decrypted, parts of wrong lengths.
pub(super) fn open<'p>(
    packet: &'p [u8],
    users: Option<&Users>,
) -> Result<Vec<Section<'p>>, PacketError> {
    let mut sections: Vec<Section<'p>> = Vec::new();
    let (mut level, mut plain, mut rest) = (SecurityLevel::None, packet, packet);
    while !rest.is_empty() {
        let (kind, body, behind) = part(rest)?;
        let is_special = match kind {
            kind::SIGNATURE => users.is_some(),
            kind::ENCRYPTED => true,
            _ => false,
        };
        if is_special {
            let before = &plain[..plain.len() - rest.len()];
            sections.push(Section { level, parts: Cow::Borrowed(before) });
            plain = behind;
        }
        match (kind, users) {
            (kind::SIGNATURE, Some(users)) => {
                verify(body, behind, users)?;
                level = SecurityLevel::Sign;
            }
            (kind::ENCRYPTED, Some(users)) => {
                let parts = Cow::Owned(decrypted(body, users)?);
                sections.push(Section { level: SecurityLevel::Encrypt, parts });
            }
            (kind::ENCRYPTED, None) => return Err(PacketError::Encrypted),
            _ => {}
        }
        rest = behind;
    }
    sections.push(Section { level, parts: Cow::Borrowed(plain) });
    sections.retain(|section| !section.parts.is_empty());
    Ok(sections)
}

/// Checks a signature over the user's name and all that is `behind` the part.
fn verify(body: &[u8], behind: &[u8], users: &Users) -> Result<(), PacketError> {
    let (mac, user) = body.split_first_chunk::<MAC_BYTES>().ok_or(PacketError::Length)?;
    let password = users.password(user).ok_or(PacketError::User)?;
    let mut signed =
        Hmac::<Sha256>::new_from_slice(password.as_bytes()).map_err(|_| PacketError::Signature)?;
    signed.update(user);
    signed.update(behind);
    signed.verify_slice(mac).map_err(|_| PacketError::Signature)
}

/// The parts inside an encrypted one.
fn decrypted(body: &[u8], users: &Users) -> Result<Vec<u8>, PacketError> {
    let (user_len, rest) = body.split_first_chunk::<2>().ok_or(PacketError::Length)?;
    let user_len = usize::from(u16::from_be_bytes(*user_len));
    let (user, rest) = rest.split_at_checked(user_len).ok_or(PacketError::Length)?;
    let (iv, rest) = rest.split_first_chunk::<IV_BYTES>().ok_or(PacketError::Length)?;
    let password = users.password(user).ok_or(PacketError::User)?;
    let mut plain = rest.to_vec();
    apply_keystream(&Sha256::digest(password.as_bytes()).into(), iv, &mut plain);
    let (sum, parts) = plain.split_first_chunk::<SHA1_BYTES>().ok_or(PacketError::Length)?;
    let found: [u8; SHA1_BYTES] = Sha1::digest(parts).into();
    if found != *sum {
        return Err(PacketError::Signature);
    }
    Ok(parts.to_vec())
}

/// AES-256-OFB, which is the same in both directions.
pub(super) fn apply_keystream(key: &[u8; 32], iv: &[u8; IV_BYTES], bytes: &mut [u8]) {
    Ofb::<Aes256>::new(&(*key).into(), &(*iv).into()).apply_keystream(bytes);
}
