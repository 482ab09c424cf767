//! Users: names and privileges can be copied, passwords cannot.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rand::RngExt;
use rand::distr::Alphanumeric;

use crate::http::Client;
use crate::influx::{self, ident, string};
use crate::progress::say;
use crate::source::{User, users};

const PASSWORD_CHARS: usize = 24;

/// The file that new passwords are written to, before there are any.
#[derive(Debug)]
pub(super) struct Passwords {
    path: PathBuf,
    file: File,
}

impl Passwords {
    /// Makes the file. An empty one that is there is taken: an import that ended early left it.
    ///
    /// # Errors
    /// There is one with something in it, or it cannot be made.
    pub(super) fn create(path: &Path) -> Result<Self> {
        let context = || format!("the file of passwords {}", path.display());
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).with_context(context)?;
        if file.metadata().with_context(context)?.len() > 0 {
            bail!("{} has something in it already: name a new one", context());
        }
        #[cfg(unix)]
        {
            let only_owner = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            file.set_permissions(only_owner).with_context(context)?;
        }
        Ok(Self { path: path.to_owned(), file })
    }

    fn add(&mut self, user: &str, password: &str) -> Result<()> {
        let written = writeln!(self.file, "{user} {password}");
        written.with_context(|| format!("the file of passwords {}", self.path.display()))
    }
}

/// Makes users with new passwords, or says which users there are. What fails is said; the number of
/// failures.
///
/// # Errors
/// A password cannot be written down.
pub(super) fn copy(
    from: &mut Client,
    to: &mut Client,
    passwords: Option<Passwords>,
) -> Result<u64> {
    let found = users(from);
    let Some(mut passwords) = passwords else {
        match found {
            Ok(found) if found.is_empty() => {}
            Ok(found) => {
                let names: Vec<&str> = found.iter().map(|user| user.name.as_str()).collect();
                say(&format!(
                    "not imported: users {} (their passwords cannot be read; --user-passwords FILE \
                     makes them with new ones)",
                    names.join(", ")
                ));
            }
            Err(error) => say(&format!("not imported: users: {error:#}")),
        }
        return Ok(0);
    };
    let (found, there) = match found.and_then(|found| Ok((found, Target::ask(to)?))) {
        Ok(both) => both,
        Err(error) => {
            say(&format!("not imported: users: {error:#}"));
            return Ok(1);
        }
    };
    let mut failed = 0;
    for user in &found {
        if there.users.contains(&user.name) {
            say(&format!("user {:?} is here already", user.name));
            continue;
        }
        let password: String =
            rand::rng().sample_iter(Alphanumeric).take(PASSWORD_CHARS).map(char::from).collect();
        passwords.add(&user.name, &password)?;
        failed += make(to, user, &password, &there);
    }
    Ok(failed)
}

/// What the target has already.
struct Target {
    users: Vec<String>,
    databases: Vec<String>,
}

impl Target {
    fn ask(to: &mut Client) -> Result<Self> {
        let mut names = |statement: &str, column: &str| -> Result<Vec<String>> {
            let rows = influx::small_rows(to, "", statement)?;
            Ok(rows.into_iter().filter_map(|mut row| row.remove(column)).collect())
        };
        Ok(Self {
            users: names("SHOW USERS", "user")?,
            databases: names("SHOW DATABASES", "name")?,
        })
    }
}

/// Makes a user; the number of statements that failed.
fn make(to: &mut Client, user: &User, password: &str, there: &Target) -> u64 {
    let name = ident(&user.name);
    let all = if user.is_admin { " WITH ALL PRIVILEGES" } else { "" };
    let create = format!("CREATE USER {name} WITH PASSWORD {}{all}", string(password));
    if let Err(error) = influx::execute(to, "", &create) {
        say(&format!("not made: user {name}: {error:#}"));
        return 1;
    }
    let mut failed = 0;
    for (db, privilege) in user.grants.iter().filter(|(_, what)| what != "NO PRIVILEGES") {
        let grant = format!("GRANT {privilege} ON {} TO {name}", ident(db));
        if !there.databases.contains(db) {
            say(&format!("not granted: {grant}: there is no such database here"));
        } else if let Err(error) = influx::execute(to, "", &grant) {
            failed += 1;
            say(&format!("not granted: {grant}: {error:#}"));
        }
    }
    failed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_go_to_a_file_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("passwords");
        drop(Passwords::create(&path).unwrap());
        let mut passwords = Passwords::create(&path).unwrap();
        passwords.add("ann", "x").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "ann x\n");
        assert!(Passwords::create(&path).unwrap_err().to_string().contains("name a new one"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "ann x\n");
    }
}
