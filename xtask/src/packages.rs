//! What the tests need besides a Rust toolchain.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Programs and the Debian packages that have them.
const NEEDED: &[(&str, &str)] = &[("influx", "influxdb-client"), ("curl", "curl")];

/// Installs what is missing.
pub(crate) fn install() -> Result<()> {
    let missing: Vec<&str> = NEEDED
        .iter()
        .filter(|(program, _)| !is_there(program))
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    println!("== packages: {}", missing.join(" "));
    run("apt-get", &["update"])?;
    let mut args = vec!["install", "-y", "--no-install-recommends"];
    args.extend(&missing);
    run("apt-get", &args)
}

fn is_there(program: &str) -> bool {
    let mut look = Command::new("sh");
    look.args(["-c", &format!("command -v {program}")]).stdout(Stdio::null());
    look.status().is_ok_and(|status| status.success())
}

fn run(program: &str, args: &[&str]) -> Result<()> {
    let hint = "the tests need the packages above; install them by hand if this is not Debian";
    let status = Command::new(program)
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(Stdio::null())
        .status()
        .context(hint)?;
    if status.success() { Ok(()) } else { bail!("{program} {args:?} failed; {hint}") }
}
