//! A file that is written, packed or not. It gets its name when it is complete.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;

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
        Ok(match &mut self.sink {
            Sink::Plain(out) => out.write_all(bytes),
            Sink::Packed(out) => out.write_all(bytes),
        }?)
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
        let mut out = match self.sink {
            Sink::Plain(out) => out,
            Sink::Packed(out) => out.finish()?,
        };
        out.flush()?;
        drop(out);
        if let Some((unfinished, name)) = self.names {
            fs::rename(&unfinished, &name)
                .with_context(|| format!("cannot name it {}", name.display()))?;
        }
        Ok(())
    }
}
