//! Users: names and privileges can be copied, passwords cannot.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use rand::RngExt;
use rand::distr::Alphanumeric;

use crate::http::Client;
use crate::influx::{self, ident, string};
use crate::progress::say;
use crate::source::{User, users};

const PASSWORD_CHARS: usize = 24;

/// Makes users with new passwords and writes those to a new file, or says which users there are.
///
/// # Errors
/// A server cannot be asked, or refuses, or the file cannot be written.
pub(super) fn copy(from: &mut Client, to: &mut Client, passwords: Option<&Path>) -> Result<()> {
    let found = users(from)?;
    let Some(path) = passwords else {
        if !found.is_empty() {
            let names: Vec<&str> = found.iter().map(|user| user.name.as_str()).collect();
            say(&format!(
                "not imported: users {} (their passwords cannot be read; --user-passwords FILE \
                 makes them with new ones)",
                names.join(", ")
            ));
        }
        return Ok(());
    };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let context = || format!("the file of passwords {}", path.display());
    let mut file = options.open(path).with_context(context)?;
    let there = users(to)?;
    for user in &found {
        if there.iter().any(|other| other.name == user.name) {
            say(&format!("user {:?} is here already", user.name));
            continue;
        }
        let password: String =
            rand::rng().sample_iter(Alphanumeric).take(PASSWORD_CHARS).map(char::from).collect();
        writeln!(file, "{} {password}", user.name).with_context(context)?;
        make(to, user, &password)?;
    }
    Ok(())
}

fn make(to: &mut Client, user: &User, password: &str) -> Result<()> {
    let name = ident(&user.name);
    let all = if user.is_admin { " WITH ALL PRIVILEGES" } else { "" };
    let create = format!("CREATE USER {name} WITH PASSWORD {}{all}", string(password));
    influx::execute(to, "", &create).with_context(|| format!("user {name}"))?;
    for (db, privilege) in user.grants.iter().filter(|(_, what)| what != "NO PRIVILEGES") {
        let grant = format!("GRANT {privilege} ON {} TO {name}", ident(db));
        influx::execute(to, "", &grant).with_context(|| grant.clone())?;
    }
    Ok(())
}
