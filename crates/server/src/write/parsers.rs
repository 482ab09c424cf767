//! Parsers that wait for their next body with their buffers.

use ingest::line_protocol::LineParser;
use parking_lot::Mutex;

/// Longer bodies leave buffers that are not worth keeping.
const KEPT_BODY_BYTES_MAX: usize = 8 << 20;

/// As many parsers as are likely to be at work at a time.
#[derive(Debug)]
pub(crate) struct ParserPool {
    idle: Mutex<Vec<LineParser>>,
    kept_max: usize,
}

impl ParserPool {
    pub(crate) fn new(threads: usize) -> Self {
        Self { idle: Mutex::default(), kept_max: threads + 2 }
    }

    pub(crate) fn take(&self) -> LineParser {
        self.idle.lock().pop().unwrap_or_default()
    }

    /// Takes back a parser whose last body had `body_bytes`.
    pub(crate) fn give_back(&self, parser: LineParser, body_bytes: usize) {
        if body_bytes > KEPT_BODY_BYTES_MAX {
            return;
        }
        let mut idle = self.idle.lock();
        if idle.len() < self.kept_max {
            idle.push(parser);
        }
    }
}
