//! Loads a dump into a server.

use std::io::BufRead;

use anyhow::{Context, Result};

use super::{DumpReader, Item};
use crate::influx;
use crate::write::{LineWriter, Target};

/// What was executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loaded {
    pub(crate) statements: u64,
    /// Statements that failed, with the reason.
    pub(crate) failed_statements: Vec<String>,
}

/// Executes and writes what `reader` gives. Each piece that was dealt with is told to `progress`.
///
/// # Errors
/// The dump cannot be read, or the server is not there.
pub(crate) fn load<R: BufRead>(
    reader: &mut DumpReader<R>,
    writer: &mut LineWriter<'_>,
    mut progress: impl FnMut(&LineWriter<'_>),
) -> Result<Loaded> {
    let mut loaded = Loaded::default();
    while let Some(item) = reader.next()? {
        match item {
            Item::Statement(statement) => {
                loaded.statements += 1;
                if let Err(error) = influx::execute(writer.client()?, "", statement) {
                    loaded.failed_statements.push(format!("{statement}: {error:#}"));
                }
            }
            Item::Database(database) => {
                let policy = String::new();
                let database = database.to_owned();
                let target = Target { database, policy, ..writer.target().clone() };
                writer.set_target(target)?;
            }
            Item::Policy(policy) => {
                let target = Target { policy: policy.to_owned(), ..writer.target().clone() };
                writer.set_target(target)?;
            }
            Item::Line(line) => {
                let sent = writer.add(line);
                sent.with_context(|| format!("up to line {}", reader.line_number()))?;
                progress(writer);
            }
        }
    }
    writer.flush()?;
    Ok(loaded)
}
