//! A file that is written, packed or not. It gets its name when it is complete.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;

/// Nobody reads the standard output any more.
#[derive(Debug)]
pub(super) struct NobodyReads;

impl fmt::Display for NobodyReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nobody reads the standard output any more")
    }
}

impl std::error::Error for NobodyReads {}

/// Where an export goes.
pub(super) struct Output {
    sink: Sink,
    /// The name while it is written, and the name then.
    names: Option<(PathBuf, PathBuf)>,
}

enum Sink {
    Plain(BufWriter<Box<dyn Write>>),
    Packed(Box<GzEncoder<BufWriter<Box<dyn Write>>>>),
}

impl Output {
    /// # Errors
    /// The file cannot be made.
    pub(super) fn create(path: &Path, packed: bool) -> Result<Self> {
        let (raw, names): (Box<dyn Write>, _) = if path == Path::new("-") {
            (Box::new(io::stdout()), None)
        } else {
            let mut unfinished = path.as_os_str().to_owned();
            unfinished.push(".part");
            let unfinished = PathBuf::from(unfinished);
            let file = File::create(&unfinished);
            let file = file.with_context(|| format!("cannot make {}", unfinished.display()))?;
            (Box::new(file), Some((unfinished, path.to_owned())))
        };
        let raw = BufWriter::with_capacity(1 << 16, raw);
        let sink = if packed {
            Sink::Packed(Box::new(GzEncoder::new(raw, Compression::default())))
        } else {
            Sink::Plain(raw)
        };
        Ok(Self { sink, names })
    }

    /// # Errors
    /// The disk is full, or nobody reads.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let written = match &mut self.sink {
            Sink::Plain(out) => out.write_all(bytes),
            Sink::Packed(out) => out.write_all(bytes),
        };
        written.map_err(|error| failure(self.names.is_none(), error))
    }

    /// # Errors
    /// As for [`Output::bytes`].
    pub(super) fn line(&mut self, line: &str) -> Result<()> {
        self.bytes(line.as_bytes())?;
        self.bytes(b"\n")
    }

    /// # Errors
    /// As for [`Output::bytes`].
    pub(super) fn finish(self) -> Result<()> {
        let to_stdout = self.names.is_none();
        let out = match self.sink {
            Sink::Plain(out) => Ok(out),
            Sink::Packed(out) => out.finish(),
        };
        out.and_then(|mut out| out.flush()).map_err(|error| failure(to_stdout, error))?;
        if let Some((unfinished, name)) = self.names {
            fs::rename(&unfinished, &name)
                .with_context(|| format!("cannot name it {}", name.display()))?;
        }
        Ok(())
    }
}

fn failure(to_stdout: bool, error: io::Error) -> anyhow::Error {
    if to_stdout && error.kind() == io::ErrorKind::BrokenPipe {
        return NobodyReads.into();
    }
    error.into()
}
