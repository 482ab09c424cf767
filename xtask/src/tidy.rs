//! What no other tool looks at: sizes of files, words that must not stay, crates without a header.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Longest source file, lines. From 300 on a file wants splitting.
const FILE_LINES_MAX: usize = 600;
/// Words that mark something unfinished.
const BANNED: &[&str] = &["FIXME", "XXX:", "HACK:", "todo!(", "unimplemented!("];

/// Complaints about the source tree.
pub(crate) fn check() -> Result<Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for dir in ["crates", "xtask"] {
        collect(&root.join(dir), &mut files)?;
    }
    let mut complaints = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let name = file.strip_prefix(&root).unwrap_or(&file).display();
        let lines = text.lines().count();
        if lines > FILE_LINES_MAX {
            complaints.push(format!("{name}: {lines} lines, at most {FILE_LINES_MAX}: split it"));
        }
        if !text.starts_with("//!") && !is_test(&file) {
            complaints.push(format!("{name}: no header that says what it is for"));
        }
        let is_this = file.ends_with("xtask/src/tidy.rs");
        for (number, line) in text.lines().enumerate().filter(|_| !is_this) {
            for word in BANNED.iter().filter(|word| line.contains(**word)) {
                complaints.push(format!("{name}:{}: {word}", number + 1));
            }
        }
    }
    Ok(complaints)
}

fn is_test(file: &Path) -> bool {
    file.components().any(|part| part.as_os_str() == "tests")
        || file.file_name().is_some_and(|name| name == "tests.rs")
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
