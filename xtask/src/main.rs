//! Project tasks. `cargo xtask test` is everything that has to hold before a change lands.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks")]
#![allow(
    clippy::disallowed_methods,
    reason = "works on the source tree, not on a database's files"
)]

mod edges;
mod packages;
mod release;
mod tidy;

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, bail};

const HELP: &str = "\
Tasks of the project:
  cargo xtask test      installs what the tests need, then: formatting, lints, tidy, all tests
  cargo xtask tidy      crate edges, file sizes, banned words
  cargo xtask packages  installs what the tests need
  cargo xtask parts     measures the parts one by one, after the limits of the machine
  cargo xtask release   builds the server with a profile of its measurements: target/pgo/nyala, in twenty minutes
  cargo xtask fuzz [SECONDS]  runs every fuzz target for a while (needs a nightly toolchain)";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["test"] => test(),
        ["tidy"] => tidy_all(),
        ["packages"] => packages::install(),
        ["parts"] => parts(),
        ["release"] => release::build(),
        ["fuzz"] => fuzz("600"),
        ["fuzz", seconds] => fuzz(seconds),
        [] | ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            Ok(())
        }
        _ => bail!("unknown task {args:?}\n{HELP}"),
    }
}

fn test() -> Result<()> {
    packages::install()?;
    step("formatting", cargo(&["fmt", "--all", "--check"]))?;
    step("lints", cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    tidy_all()?;
    step("tests", cargo(&["test", "--workspace"]))
}

fn tidy_all() -> Result<()> {
    println!("== tidy");
    let mut complaints = edges::check()?;
    complaints.extend(tidy::check()?);
    for complaint in &complaints {
        eprintln!("{complaint}");
    }
    if complaints.is_empty() { Ok(()) } else { bail!("{} things to tidy up", complaints.len()) }
}

/// What each part measures by itself, and with which arguments; the machine's limits first.
const PARTS: [(&str, &str, &[&str]); 9] = [
    ("platform", "limits", &[]),
    ("platform", "page_cache", &[]),
    ("ingest", "parse_rate", &[]),
    ("series", "scale", &["tsbs", "1"]),
    ("wal", "append_rate", &[]),
    ("store-local", "engine_load", &["cpu-only", "100", "72", "1"]),
    ("codec", "codec_rate", &[]),
    ("segment", "tsbs_cpu", &[]),
    ("render", "render_rate", &[]),
];

fn parts() -> Result<()> {
    let mut build = vec!["build", "--release"];
    for (package, example, _) in PARTS {
        build.extend(["-p", package, "--example", example]);
    }
    step("building", cargo(&build))?;
    for (package, example, args) in PARTS {
        let mut run =
            vec!["run", "--quiet", "--release", "-p", package, "--example", example, "--"];
        run.extend(args);
        step(&format!("{package}: {example}"), cargo(&run))?;
    }
    Ok(())
}

fn fuzz(seconds: &str) -> Result<()> {
    let listed = Command::new("cargo")
        .args(["+nightly", "fuzz", "list"])
        .output()
        .context("cargo-fuzz is needed: cargo install cargo-fuzz")?;
    if !listed.status.success() {
        bail!("cargo fuzz list: {}", String::from_utf8_lossy(&listed.stderr));
    }
    step("building", cargo(&["+nightly", "fuzz", "build"]))?;
    let targets: Vec<String> =
        String::from_utf8(listed.stdout)?.lines().map(str::to_owned).collect();
    let next = AtomicUsize::new(0);
    let failed = AtomicUsize::new(0);
    let run_some = || {
        while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = fuzz_target(target, seconds) {
                eprintln!("{error:#}");
                failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    let at_once = thread::available_parallelism()?.get();
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(run_some);
        }
    });
    match failed.into_inner() {
        0 => Ok(()),
        failed => bail!("{failed} of {} targets failed", targets.len()),
    }
}

/// Runs one target; its output goes to a file, and its last lines to the screen if it fails.
fn fuzz_target(target: &str, seconds: &str) -> Result<()> {
    // What is found goes to the first folder, the second is only read.
    let corpus = format!("fuzz/corpus/{target}");
    let seeds = format!("fuzz/seeds/{target}");
    std::fs::create_dir_all(&corpus).context(corpus.clone())?;
    let limit = format!("-max_total_time={seconds}");
    let args = ["+nightly", "fuzz", "run", target, &corpus, &seeds, "--", &limit];
    let bounds = ["-rss_limit_mb=2048", "-malloc_limit_mb=512", "-timeout=10"];
    let ran = cargo(&[&args[..], &bounds].concat()).output().context("cannot run cargo")?;
    let log = String::from_utf8_lossy(&ran.stderr);
    let path = format!("fuzz/corpus/{target}.log");
    std::fs::write(&path, &*log).context(path.clone())?;
    let lines: Vec<&str> = log.lines().collect();
    if !ran.status.success() {
        let last = lines[lines.len().saturating_sub(40)..].join("\n");
        bail!("fuzz {target} failed, its output is in {path}:\n{last}");
    }
    let done = lines.iter().rev().find(|line| line.starts_with("Done "));
    println!("== fuzz {target}: {}", done.unwrap_or(&"ended"));
    Ok(())
}

fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(args);
    command
}

fn step(name: &str, mut command: Command) -> Result<()> {
    println!("== {name}");
    let status = command.status().with_context(|| format!("{name}: cannot run {command:?}"))?;
    if status.success() { Ok(()) } else { bail!("{name} failed") }
}
