//! Makes databases and retention policies as the source has them.

use anyhow::{Context, Result};

use crate::http::Client;
use crate::influx::{self, ident};
use crate::progress::say;
use crate::source::{Policy, databases, policies};

/// Makes sure that `to` has the database and the policies. What is there already stays as it is.
///
/// # Errors
/// The server cannot be asked, or refuses.
pub(super) fn ensure(to: &mut Client, db: &str, wanted: &[Policy]) -> Result<()> {
    let is_new = !databases(to, &[])?.iter().any(|name| name == db);
    if is_new {
        let first = wanted.iter().find(|policy| policy.is_default);
        let with = first.map_or(String::new(), |policy| {
            format!(" WITH {} NAME {}", policy.clauses(), ident(&policy.name))
        });
        run(to, &format!("CREATE DATABASE {}{with}", ident(db)))?;
    }
    let there = policies(to, db)?;
    for policy in wanted {
        match there.iter().find(|other| other.name == policy.name) {
            None => {
                let (name, on) = (ident(&policy.name), ident(db));
                let clauses = policy.clauses();
                run(to, &format!("CREATE RETENTION POLICY {name} ON {on} {clauses}"))?;
            }
            Some(other) if other.clauses() == policy.clauses() => {}
            Some(other) => say(&format!(
                "retention policy {:?} of database {db:?} stays as it is here ({}); the source has {}",
                policy.name,
                other.clauses(),
                policy.clauses()
            )),
        }
    }
    Ok(())
}

/// Makes the continuous queries.
///
/// # Errors
/// The server cannot be asked, or refuses.
pub(super) fn ensure_queries(to: &mut Client, statements: &[String]) -> Result<u64> {
    let mut failed = 0;
    for statement in statements {
        match influx::execute(to, "", statement) {
            Ok(()) => say(&format!("made: {statement}")),
            Err(error) => {
                failed += 1;
                say(&format!("not made: {statement}: {error:#}"));
            }
        }
    }
    Ok(failed)
}

fn run(to: &mut Client, statement: &str) -> Result<()> {
    influx::execute(to, "", statement).with_context(|| statement.to_owned())
}
