//! Asks for lines and obeys them.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::history::{FileHistory, History, SearchDirection};
use rustyline::{CompletionType, Config, Editor};

use super::command::{Command, parse};
use super::names::Names;
use super::session::{Outcome, Session};

const HISTORY_LINES_MAX: usize = 1000;
const PROMPT: &str = "> ";

/// Runs until the user leaves.
///
/// # Errors
/// There is no server, or no terminal any more.
pub(super) fn run(session: &mut Session, out: &mut dyn Write) -> Result<ExitCode> {
    let version = session.connect()?;
    writeln!(out, "Connected to {} version {version}", session.endpoint())?;
    writeln!(out, "nyala shell version: {}", env!("CARGO_PKG_VERSION"))?;
    session.set_interruptible();
    let config = Config::builder().completion_type(CompletionType::List).build();
    let mut editor: Editor<Names, FileHistory> = Editor::with_config(config)?;
    editor.set_max_history_size(HISTORY_LINES_MAX)?;
    editor.set_helper(Some(Names::default()));
    let file = history_file();
    if let Some(file) = &file {
        // There is none the first time.
        let _ = editor.load_history(file);
    }
    let mut stale = true;
    loop {
        if std::mem::take(&mut stale)
            && let Some(names) = editor.helper_mut()
        {
            names.refresh(&mut session.name_source());
        }
        let line = match editor.readline(PROMPT) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error.into()),
        };
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        if is_for_history(line) {
            editor.add_history_entry(line)?;
            if let Some(file) = &file
                && let Err(error) = editor.append_history(file)
            {
                writeln!(out, "the history is not kept in {}: {error}", file.display())?;
            }
        }
        session.history = entries(editor.history());
        stale = changes_names(line);
        match session.obey(line, out)? {
            Outcome::Exit => break,
            Outcome::Done | Outcome::Failed(_) => {}
        }
        out.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

fn history_file() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
    Some(PathBuf::from(home).join(".nyala_history"))
}

fn entries(history: &FileHistory) -> Vec<String> {
    let at = |index| history.get(index, SearchDirection::Forward).ok().flatten();
    (0..history.len()).filter_map(|index| Some(at(index)?.entry.into_owned())).collect()
}

/// Whether a line may be kept: nothing with a password is.
fn is_for_history(line: &str) -> bool {
    !line.to_lowercase().contains("password")
}

/// Whether there may be other databases or measurements afterwards.
fn changes_names(line: &str) -> bool {
    match parse(line) {
        Command::Use(_) | Command::Connect(_) | Command::Auth | Command::Insert(_) => true,
        Command::Clear(_) => true,
        Command::Query(text) => {
            let word = text.split_whitespace().next().unwrap_or("").to_lowercase();
            let into = text.to_lowercase().contains("into");
            matches!(word.as_str(), "create" | "drop" | "run") || into
        }
        _ => false,
    }
}
