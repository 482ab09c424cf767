//! The fastest build of the server: compiled with a profile of what it does in the published measurements.
//!
//! A build that counts how often each branch is taken and each function is called runs every kind of load and
//! question at a fraction of its size, and the compiler places and inlines code by what was counted. What was
//! not run counts as rare, so the training is to be broad: whole sections of the report and every function of
//! InfluxQL, not the questions of one benchmark. Nothing of it is kept in the repository: a profile fits the
//! sources and the compiler it was made with.

use std::env::consts::EXE_SUFFIX;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{cargo, step};

/// Everything that is made here.
const DIRECTORY: &str = "target/pgo";

/// Flags of the compiler, parted so that a path may have spaces; Cargo prefers it to `RUSTFLAGS`.
const FLAGS: &str = "CARGO_ENCODED_RUSTFLAGS";

/// What the server that counts is asked to do, without peers, and how much it counts for.
///
/// Code is hot that belongs to the 99 % of all counts. Of a short query everything runs once, of a long one or a
/// load the same few loops run millions of times: with equal weights nothing else was hot, and nothing gained.
const TRAINING: [(u32, &str); 4] = [
    (10, "compare --quick --system nyala"),
    (
        1,
        "report --alone --shrink 20 --seconds 1 --section scans --section trucks --section shapes --section ycsb \
         --section crowd",
    ),
    (1, "functions --alone --rest 5"),
    (1, "functions --alone --rest 5 --workload services"),
];

/// Builds `target/pgo/nyala`.
pub(crate) fn build() -> Result<()> {
    let merger = profile_merger()?;
    let host = rustc(&["--print", "host-tuple"])?;
    let directory = std::path::absolute(DIRECTORY)?;
    let (counts, profile) = (directory.join("counts"), directory.join("nyala.profdata"));
    // Of another build of the server they would be added up as well.
    match fs::remove_dir_all(&counts) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(|| counts.display().to_string());
        }
        _ => {}
    }
    fs::create_dir_all(&counts).with_context(|| counts.display().to_string())?;

    let flag = |name: &str, path: &Path| format!("-C{name}={}", path.display());
    let server = |flag: &str| {
        let mut flags = compiler_flags();
        flags.push(flag.to_owned());
        // With a target the flags are not for build scripts and macros.
        let mut command = cargo(&["build", "--release", "--package", "nyala", "--target", &host]);
        command.arg("--target-dir").arg(&directory).env(FLAGS, flags.join("\u{1f}"));
        command
    };
    let built = directory.join(&host).join("release").join(format!("nyala{EXE_SUFFIX}"));

    step("building a server that counts", server(&flag("profile-generate", &counts)))?;
    let mut merge = Command::new(merger);
    merge.arg("merge").arg("--output").arg(&profile);
    for (at, (weight, training)) in TRAINING.into_iter().enumerate() {
        let counts = counts.join(at.to_string());
        step(&format!("training: {training}"), train(training, &built, &counts))?;
        merge.arg(format!("--weighted-input={weight},{}", counts.display()));
    }
    step("adding up what was counted", merge)?;
    step("building the server", server(&flag("profile-use", &profile)))?;

    let result = directory.join(format!("nyala{EXE_SUFFIX}"));
    fs::copy(&built, &result).with_context(|| result.display().to_string())?;
    println!("== {DIRECTORY}/nyala{EXE_SUFFIX}");
    Ok(())
}

/// A benchmark of `server`, which leaves what it counts in `counts`.
fn train(training: &str, server: &Path, counts: &Path) -> Command {
    let mut command = cargo(&["run", "--quiet", "--release", "--package", "bench", "--"]);
    command.args(training.split_whitespace()).arg("--nyala").arg(server);
    command.env("LLVM_PROFILE_FILE", counts.join("%m.profraw"));
    let name = training.split(' ').next().unwrap_or_default();
    // Functions are measured in a directory of their own, and printed.
    if name != "functions" {
        let directory = Path::new(DIRECTORY);
        command.arg("--directory").arg(directory.join("data"));
        command.arg("--out").arg(directory.join(format!("{name}.md")));
    }
    command
}

/// What whoever calls this wants the compiler to be told.
fn compiler_flags() -> Vec<String> {
    let split = |flags: String, by: char| {
        flags.split(by).filter(|flag| !flag.is_empty()).map(str::to_owned).collect()
    };
    match (std::env::var(FLAGS), std::env::var("RUSTFLAGS")) {
        (Ok(flags), _) => split(flags, '\u{1f}'),
        (Err(_), Ok(flags)) => split(flags, ' '),
        (Err(_), Err(_)) => Vec::new(),
    }
}

/// LLVM's tool of the version that the compiler has.
fn profile_merger() -> Result<PathBuf> {
    let libraries = PathBuf::from(rustc(&["--print", "target-libdir"])?);
    let tool = libraries.with_file_name("bin").join(format!("llvm-profdata{EXE_SUFFIX}"));
    if !tool.exists() {
        bail!("{} is missing: rustup component add llvm-tools", tool.display());
    }
    Ok(tool)
}

fn rustc(args: &[&str]) -> Result<String> {
    let output = Command::new("rustc").args(args).output().context("cannot run rustc")?;
    if !output.status.success() {
        bail!("rustc {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
