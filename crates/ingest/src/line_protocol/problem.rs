//! What can be wrong with a line.

/// A line that became no row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where the line starts in the body.
    pub line_start: u32,
    /// What is wrong.
    pub kind: ProblemKind,
}

/// The two ways InfluxDB reports a bad line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// The line cannot be read: `unable to parse '...': reason`.
    Unparsable(String),
    /// The line can be read but may not be stored: counted as dropped.
    Dropped(String),
}

/// Longest part of a bad line that is repeated in its message, bytes.
const QUOTED_BYTES_MAX: usize = 4096;

impl Problem {
    pub(super) fn parse(line_start: u32, line: &[u8], reason: &str) -> Self {
        let quoted = String::from_utf8_lossy(&line[..line.len().min(QUOTED_BYTES_MAX)]);
        let more = if line.len() > QUOTED_BYTES_MAX { "..." } else { "" };
        let text = format!("unable to parse '{quoted}{more}': {reason}");
        Self { line_start, kind: ProblemKind::Unparsable(text) }
    }
}
