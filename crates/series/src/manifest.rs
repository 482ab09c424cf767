//! The manifest: which runs are live. Small, and replaced whole.
//!
//! A new manifest is written beside the old one, made durable, renamed over it, and the directory
//! made durable. Whatever a crash leaves is the old one or the new one; runs that the manifest
//! does not list are left-overs and are removed at the next opening.

use std::path::{Path, PathBuf};

use platform::Disk;
use roaring::RoaringTreemap;

use crate::bytes::{Reader, put_varint};
use crate::error::{Malformed, SeriesError, SeriesResult};
use crate::posting::{put_set, read_set};

const MAGIC: [u8; 8] = *b"NYSERMF1";
const VERSION: u16 = 1;
const NAME: &str = "MANIFEST";
const NEW_NAME: &str = "MANIFEST.new";

/// What the manifest says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Manifest {
    /// Seed of the key hashes, drawn when the index was made.
    pub(crate) seed: u64,
    /// All series with lower ids are in the runs, or removed.
    pub(crate) next_id: u64,
    /// Number of the next run file.
    pub(crate) next_run: u64,
    /// Live runs, oldest first.
    pub(crate) runs: Vec<ListedRun>,
    /// Removed series that some run still has.
    pub(crate) removed: RoaringTreemap,
}

/// A run as the manifest lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListedRun {
    pub(crate) number: u64,
    pub(crate) file_bytes: u64,
}

pub(crate) fn run_name(number: u64) -> String {
    format!("{number:010}.run")
}

/// Whether a file in the directory is the index's own and neither the manifest nor listed.
pub(crate) fn is_left_over(name: &str, manifest: &Manifest) -> bool {
    let listed = || manifest.runs.iter().any(|run| run_name(run.number) == name);
    name == NEW_NAME || (name.ends_with(".run") && !listed())
}

pub(crate) fn path_in(dir: &Path) -> PathBuf {
    dir.join(NAME)
}

impl Manifest {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        // Compatible and incompatible features.
        out.extend_from_slice(&[0; 4]);
        for number in [self.seed, self.next_id, self.next_run] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        put_varint(&mut out, self.runs.len() as u64);
        for run in &self.runs {
            put_varint(&mut out, run.number);
            put_varint(&mut out, run.file_bytes);
        }
        put_set(&self.removed, &mut out);
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }

    /// `Ok(Err(needs))` if a newer program wrote it.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Result<Self, String>, Malformed> {
        if bytes.len() < 14 + 4 || bytes[..8] != MAGIC {
            return Err(Malformed("this is no manifest of the series index"));
        }
        let (body, crc) = bytes.split_at(bytes.len() - 4);
        if crc32c::crc32c(body).to_le_bytes() != *crc {
            return Err(Malformed("the checksum does not match"));
        }
        let reader = &mut Reader::new(&body[8..]);
        let (version, _compatible, incompatible) = (reader.u16()?, reader.u16()?, reader.u16()?);
        if version != VERSION || incompatible != 0 {
            return Ok(Err(format!("format version {version}, features {incompatible:#06x}")));
        }
        let (seed, next_id, next_run) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let mut runs = Vec::new();
        for _ in 0..reader.varint()? {
            runs.push(ListedRun { number: reader.varint()?, file_bytes: reader.varint()? });
        }
        let removed = read_set(reader)?;
        if !reader.is_empty() {
            return Err(Malformed("there is more than this version writes"));
        }
        Ok(Ok(Self { seed, next_id, next_run, runs, removed }))
    }

    /// The manifest of a directory, `None` if there is none.
    pub(crate) fn load(disk: &dyn Disk, dir: &Path) -> SeriesResult<Option<Self>> {
        let path = path_in(dir);
        let file = match disk.open(&path) {
            Ok(file) => file,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let corrupt = |offset, detail: &str| SeriesError::Corrupt {
            path: path.clone(),
            offset,
            detail: detail.to_owned(),
        };
        let len = file.len()?;
        // The largest part is the set of removed series: far below this even for a billion.
        let len = usize::try_from(len).ok().filter(|len| *len < 1 << 30);
        let mut bytes = vec![0; len.ok_or_else(|| corrupt(0, "the manifest is far too long"))?];
        file.read_at(&mut bytes, 0)?;
        match Self::decode(&bytes) {
            Ok(Ok(manifest)) => Ok(Some(manifest)),
            Ok(Err(needs)) => Err(SeriesError::Unsupported { path: path.clone(), needs }),
            Err(malformed) => Err(corrupt(0, malformed.0)),
        }
    }

    /// Writes the manifest beside the one in force; durable on return.
    pub(crate) fn write(&self, disk: &dyn Disk, dir: &Path) -> SeriesResult<()> {
        let new = dir.join(NEW_NAME);
        match disk.remove(&new) {
            Ok(()) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
        let file = disk.create(&new)?;
        file.write_at(&self.encode(), 0)?;
        file.sync()?;
        Ok(())
    }

    /// Puts the manifest last written in force; durable on return. After an error either may be.
    pub(crate) fn publish(disk: &dyn Disk, dir: &Path) -> SeriesResult<()> {
        disk.rename(&dir.join(NEW_NAME), &path_in(dir))?;
        disk.sync_dir(dir)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample() -> Manifest {
        Manifest {
            seed: 7,
            next_id: 1 << 33,
            next_run: 9,
            runs: vec![ListedRun { number: 8, file_bytes: 12345 }],
            removed: [1, 2, 3, 1 << 32].into_iter().collect(),
        }
    }

    #[test]
    fn a_manifest_comes_back() {
        assert_eq!(Manifest::decode(&sample().encode()), Ok(Ok(sample())));
        assert!(is_left_over("0000000007.run", &sample()));
        assert!(!is_left_over("0000000008.run", &sample()));
        assert!(!is_left_over("MANIFEST", &sample()));
    }

    proptest! {
        #[test]
        fn damage_is_noticed(at in any::<prop::sample::Index>(), bit in 0..8u8, cut in any::<bool>()) {
            let mut bytes = sample().encode();
            let at = at.index(bytes.len());
            if cut { bytes.truncate(at) } else { bytes[at] ^= 1 << bit }
            prop_assert!(!matches!(Manifest::decode(&bytes), Ok(Ok(_))));
        }
    }
}
