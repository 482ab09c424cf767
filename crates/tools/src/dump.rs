//! Dumps: statements (`# DDL`), then lines (`# DML`) with comments that say where they belong.
//!
//! The format is that of InfluxDB's own exports.

mod load;
mod read;

pub(crate) use load::load;
pub(crate) use read::{DumpReader, Item};

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, Result};
use flate2::bufread::MultiGzDecoder;

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Opens a file, unpacked if it is packed, and says whether it is. `-` is the standard input.
pub(crate) fn open(path: &Path) -> Result<(Box<dyn BufRead>, bool)> {
    let raw: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path).with_context(|| format!("cannot open {}", path.display()))?)
    };
    let mut raw = BufReader::with_capacity(1 << 16, raw);
    if raw.fill_buf()?.starts_with(&GZIP) {
        let unpacked = BufReader::with_capacity(1 << 16, MultiGzDecoder::new(raw));
        return Ok((Box::new(unpacked), true));
    }
    Ok((Box::new(raw), false))
}
