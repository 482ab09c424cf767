//! Sends lines to a server in batches, patiently.
//!
//! A server that is busy (503, 429) or gone for a moment is asked again, for a while; lines are rows
//! with an identity, so sending them twice does no harm. What a server rejects is counted and said.

use std::fmt;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use bytes::Bytes;
use hyper::StatusCode;

use crate::http::{Client, Refusal};
use crate::influx;
use crate::progress::say;

const BATCH_LINES_MAX: usize = 5000;
const BATCH_BYTES_MAX: usize = 4 << 20;
/// Waits before a server is asked again; after the last one it is given up.
const WAITS_S: [u64; 8] = [1, 1, 2, 4, 8, 15, 30, 60];
/// Rejections that are kept in full.
const REASONS_MAX: usize = 5;

/// Where lines go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) database: String,
    /// Empty: the default one.
    pub(crate) policy: String,
    /// Empty: nanoseconds.
    pub(crate) precision: String,
    /// Empty: not said.
    pub(crate) consistency: String,
}

/// What became of lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) lines: u64,
    /// Of them, those that the server refused. At least so many: of a batch with lines that cannot be
    /// read and lines that cannot be stored, it speaks of the latter only.
    pub(crate) rejected: u64,
    /// Of those, the ones that are older than their policy keeps.
    pub(crate) expired: u64,
    /// Why, the first few.
    pub(crate) reasons: Vec<String>,
}

impl Written {
    /// Adds what became of more lines.
    pub(crate) fn add(&mut self, more: &Self) {
        self.lines += more.lines;
        self.rejected += more.rejected;
        self.expired += more.expired;
        let room = REASONS_MAX.saturating_sub(self.reasons.len());
        self.reasons.extend(more.reasons.iter().take(room).cloned());
    }
}

/// Collects lines and sends them.
pub(crate) struct LineWriter<'c> {
    client: &'c mut Client,
    target: Target,
    batch: Vec<u8>,
    batch_lines: usize,
    lines_per_second_max: u64,
    started: Instant,
    written: Written,
}

impl fmt::Debug for LineWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineWriter").field("target", &self.target).finish_non_exhaustive()
    }
}

impl<'c> LineWriter<'c> {
    /// `lines_per_second_max` 0: as fast as it goes.
    pub(crate) fn new(client: &'c mut Client, target: Target, lines_per_second_max: u64) -> Self {
        Self {
            client,
            target,
            batch: Vec::new(),
            batch_lines: 0,
            lines_per_second_max,
            started: Instant::now(),
            written: Written::default(),
        }
    }

    /// The server, for statements; what was added before is sent first.
    ///
    /// # Errors
    /// It cannot be sent.
    pub(crate) fn client(&mut self) -> Result<&mut Client> {
        self.flush()?;
        Ok(self.client)
    }

    pub(crate) fn written(&self) -> &Written {
        &self.written
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Sends what follows elsewhere.
    ///
    /// # Errors
    /// What was added before cannot be sent.
    pub(crate) fn set_target(&mut self, target: Target) -> Result<()> {
        self.flush()?;
        self.target = target;
        Ok(())
    }

    /// Adds a line, without its line end.
    ///
    /// # Errors
    /// A full batch cannot be sent.
    pub(crate) fn add(&mut self, line: &[u8]) -> Result<()> {
        if self.batch.len() + line.len() > BATCH_BYTES_MAX {
            self.flush()?;
        }
        self.batch.extend_from_slice(line);
        self.batch.push(b'\n');
        self.batch_lines += 1;
        if self.batch_lines >= BATCH_LINES_MAX { self.flush() } else { Ok(()) }
    }

    /// Sends what was added.
    ///
    /// # Errors
    /// The server is not there, or refuses all of it for another reason than the lines.
    pub(crate) fn flush(&mut self) -> Result<()> {
        if self.batch_lines == 0 {
            return Ok(());
        }
        let lines = self.batch_lines as u64;
        let body = Bytes::from(std::mem::take(&mut self.batch));
        self.batch_lines = 0;
        let rejected = send(self.client, &self.target, body)?;
        self.written.lines += lines;
        if let Some(reason) = rejected {
            let count = rejected_lines(&reason).unwrap_or(lines).clamp(1, lines);
            self.written.rejected += count;
            if reason.contains("points beyond retention policy") {
                self.written.expired += count;
            }
            if self.written.reasons.len() < REASONS_MAX {
                self.written.reasons.push(reason);
            }
        }
        if self.lines_per_second_max > 0 {
            let due = self.written.lines as f64 / self.lines_per_second_max as f64;
            let due = self.started + Duration::from_secs_f64(due);
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        Ok(())
    }
}

/// Sends lines; gives the reason if some or all were rejected for what is in them.
fn send(client: &mut Client, target: &Target, body: Bytes) -> Result<Option<String>> {
    let params = [
        ("db", target.database.as_str()),
        ("rp", &target.policy),
        ("precision", &target.precision),
        ("consistency", &target.consistency),
    ];
    let ask = influx::write(body, &params);
    let mut waits = WAITS_S.iter();
    loop {
        let failed = match client.ask(&ask) {
            Ok(answer) if answer.status.is_success() => {
                answer.finish()?;
                return Ok(None);
            }
            Ok(answer) => {
                let refusal = answer.into_refusal()?;
                match refusal.status {
                    StatusCode::BAD_REQUEST => return Ok(Some(refusal.reason())),
                    StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                        anyhow!(refusal)
                    }
                    _ => return Err(anyhow!(refusal)).with_context(|| cannot_write(target)),
                }
            }
            Err(error) if is_broken_connection(&error) => error,
            Err(error) => return Err(error).with_context(|| cannot_write(target)),
        };
        let Some(seconds) = waits.next() else {
            return Err(failed).with_context(|| cannot_write(target));
        };
        let asked = failed.downcast_ref::<Refusal>().and_then(|refusal| refusal.retry_after);
        let wait = asked.unwrap_or_default().max(Duration::from_secs(*seconds));
        say(&format!("again in {} s: {failed:#}", wait.as_secs()));
        thread::sleep(wait);
    }
}

fn cannot_write(target: &Target) -> String {
    format!("cannot write to database {:?}, retention policy {:?}", target.database, target.policy)
}

/// Whether the way to the server failed, not the server.
pub(crate) fn is_broken_connection(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.is::<io::Error>() || cause.is::<hyper::Error>())
}

/// How many lines a reason speaks of; `None`: it speaks of none, and holds for all of them.
fn rejected_lines(reason: &str) -> Option<u64> {
    let dropped = reason.rsplit_once("dropped=").and_then(|(_, count)| count.trim().parse().ok());
    let unreadable = reason.matches("unable to parse '").count() as u64;
    if unreadable == 0 { dropped } else { Some(dropped.unwrap_or(0) + unreadable) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejections_are_counted() {
        assert_eq!(
            rejected_lines("partial write: points beyond retention policy dropped=7"),
            Some(7)
        );
        assert_eq!(rejected_lines("unable to parse 'a': x\nunable to parse 'b': y"), Some(2));
        assert_eq!(rejected_lines("partial write: unable to parse 'a': x dropped=0"), Some(1));
        assert_eq!(rejected_lines("database is required"), None);
    }
}
