//! The catalog's document: versions in the registry, of which each can be inserted once.
//!
//! A version's parts are written first under a random number, then the entry that names them. The
//! entries of versions stay for ever, or a daemon that slept could insert an old one again; parts of
//! replaced versions go.

use store::{CatalogDocument, StoreError, SwapOutcome};

use crate::error::{contended, unintelligible};
use crate::registry::{Entry, Registry, STORE, Which, number_of, ordered, space};

/// Bytes of a part: a cell has at most 64 KiB.
const PART_BYTES: usize = 60_000;
/// Reads in a row that find the parts of a version just removed.
const TRIES_MAX: usize = 100;

/// What the entry of a version says.
struct Head {
    version: u64,
    upload: i64,
    parts: u32,
}

/// Reads the latest version.
pub(crate) async fn read(registry: &Registry) -> Result<CatalogDocument, StoreError> {
    for _ in 0..TRIES_MAX {
        let Some(head) = head(registry).await? else { return Ok(CatalogDocument::default()) };
        if let Some(bytes) = parts(registry, &head).await? {
            return Ok(CatalogDocument { version: head.version, bytes });
        }
        // Replaced between the two reads; otherwise parts are missing.
    }
    Err(unintelligible(registry.table.name(), "a catalog with missing parts"))
}

/// Replaces version `expected`.
pub(crate) async fn swap(
    registry: &Registry,
    expected: u64,
    bytes: &[u8],
) -> Result<SwapOutcome, StoreError> {
    let replaced = head(registry).await?;
    if replaced.as_ref().map_or(0, |head| head.version) != expected {
        return Ok(SwapOutcome::Conflict(read(registry).await?));
    }
    let version = i64::try_from(expected + 1).map_err(|_| contended("the catalog"))?;
    let upload: i64 = rand::random();
    let chunks: Vec<Entry> = bytes
        .chunks(PART_BYTES)
        .zip(0_u32..)
        .map(|(part, at)| part_entry(upload, at).data(part.to_vec()))
        .collect();
    registry.upsert(STORE, &chunks).await?;
    let mut names = upload.to_be_bytes().to_vec();
    names.extend((chunks.len() as u32).to_be_bytes());
    let entry = Entry::new(space::CATALOG, ordered(-version)).data(names);
    let swapped = registry.insert_one(STORE, entry).await?;
    if !swapped {
        registry.delete(STORE, &chunks).await?;
        return Ok(SwapOutcome::Conflict(read(registry).await?));
    }
    if let Some(old) = replaced {
        let chunks: Vec<Entry> = (0..old.parts).map(|at| part_entry(old.upload, at)).collect();
        registry.delete(STORE, &chunks).await?;
    }
    Ok(SwapOutcome::Swapped(expected + 1))
}

async fn head(registry: &Registry) -> Result<Option<Head>, StoreError> {
    let Some(entry) = registry.first(STORE, space::CATALOG).await? else { return Ok(None) };
    let read = || {
        let version = u64::try_from(-number_of(&entry.key)?).ok()?;
        let (upload, parts) = entry.data.as_ref()?.split_at_checked(8)?;
        let upload = i64::from_be_bytes(upload.try_into().ok()?);
        Some(Head { version, upload, parts: u32::from_be_bytes(parts.try_into().ok()?) })
    };
    let damaged = || unintelligible(registry.table.name(), "a damaged catalog version");
    read().map(Some).ok_or_else(damaged)
}

async fn parts(registry: &Registry, head: &Head) -> Result<Option<Vec<u8>>, StoreError> {
    let mut bytes = Vec::new();
    for at in 0..head.parts {
        let key = part_entry(head.upload, at).key;
        let found = registry.read(STORE, Which::Key(space::CATALOG_PART, &key), None).await?;
        let Some(part) = found.into_iter().next().and_then(|entry| entry.data) else {
            return Ok(None);
        };
        bytes.extend(part);
    }
    Ok(Some(bytes))
}

fn part_entry(upload: i64, at: u32) -> Entry {
    let mut key = upload.to_be_bytes().to_vec();
    key.extend(at.to_be_bytes());
    Entry::new(space::CATALOG_PART, key)
}
