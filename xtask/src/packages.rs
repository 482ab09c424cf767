//! What the tests need besides a Rust toolchain: Debian packages, the Python client of InfluxDB, and
//! Kudu from Maven Central.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Programs and the Debian packages that have them.
const NEEDED: &[(&str, &str)] =
    &[("influx", "influxdb-client"), ("influxd", "influxdb"), ("curl", "curl")];
/// Programs that fetch Kudu, needed only where Kudu's binaries run and are not there yet.
const NEEDED_FOR_KUDU: &[(&str, &str)] = &[("mvn", "maven")];
/// The version that crate `kudu-test-cluster` starts, unless `NYALA_KUDU_VERSION` names another.
const KUDU_VERSION: &str = "1.18.0";
const UNPACK: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:unpack";
/// Kudu's client for Java and what it logs with: a test of crate `store-kudu` reads Nyala's tables by
/// it. Group, name and version.
const KUDU_JAVA: &[(&str, &str, &str)] = &[
    ("org.apache.kudu", "kudu-client", "1.18.0"),
    ("com.stumbleupon", "async", "1.4.1"),
    ("org.slf4j", "slf4j-api", "2.0.16"),
    ("org.slf4j", "slf4j-nop", "2.0.16"),
];
const COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy";

/// Python's client of InfluxDB 1.x, which a test of crate `nyala` drives.
const PYTHON_CLIENT: &str = "influxdb==5.3.2";

/// Installs what is missing.
pub(crate) fn install() -> Result<()> {
    install_debian(NEEDED)?;
    install_python_client()?;
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        install_kudu()?;
        install_kudu_java_client()?;
    }
    Ok(())
}

fn install_debian(needed: &[(&str, &str)]) -> Result<()> {
    let missing: Vec<&str> = needed
        .iter()
        .filter(|(program, _)| !is_there(program))
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    install_debian_packages(&missing)
}

fn install_debian_packages(packages: &[&str]) -> Result<()> {
    println!("== packages: {}", packages.join(" "));
    run("apt-get", &["update"])?;
    let mut args = vec!["install", "-y", "--no-install-recommends"];
    args.extend(packages);
    run("apt-get", &args)
}

/// Puts the client into the virtual environment `~/.cache/nyala/python`. pip takes it from wherever
/// it is configured to: the network, or a directory of wheels (`PIP_FIND_LINKS`, `PIP_NO_INDEX`).
fn install_python_client() -> Result<()> {
    let user = std::env::var_os("HOME").context("HOME is not set")?;
    let home = Path::new(&user).join(".cache/nyala/python");
    let python = home.join("bin/python").display().to_string();
    let has_it = |python: &str| {
        let mut look = Command::new(python);
        look.args(["-c", "import influxdb"]).stdout(Stdio::null()).stderr(Stdio::null());
        look.status().is_ok_and(|status| status.success())
    };
    if has_it(&python) {
        return Ok(());
    }
    println!("== {PYTHON_CLIENT} into {}", home.display());
    if !python_makes_environments() {
        install_debian_packages(&["python3-venv"])?;
    }
    run("python3", &["-m", "venv", &home.display().to_string()])?;
    run(&python, &["-m", "pip", "install", "--quiet", PYTHON_CLIENT])
}

fn python_makes_environments() -> bool {
    let mut look = Command::new("python3");
    look.args(["-c", "import ensurepip"]).stdout(Stdio::null()).stderr(Stdio::null());
    look.status().is_ok_and(|status| status.success())
}

/// Puts Kudu's test binaries into `~/.cache/nyala/kudu/<version>`, whole or not at all.
fn install_kudu() -> Result<()> {
    let version = std::env::var("NYALA_KUDU_VERSION").unwrap_or_else(|_| KUDU_VERSION.to_owned());
    let user = std::env::var_os("HOME").context("HOME is not set")?;
    let cache = Path::new(&user).join(".cache/nyala/kudu");
    let home = cache.join(&version);
    if home.join("bin/kudu-master").exists() {
        return Ok(());
    }
    install_debian(NEEDED_FOR_KUDU)?;
    println!("== Kudu {version} into {}", home.display());
    let fresh = cache.join(format!("unpack-{}", std::process::id()));
    let artifact = format!("org.apache.kudu:kudu-binary:{version}:jar:linux-x86_64");
    maven(&cache, UNPACK, &artifact, &fresh)?;
    let unpacked = fresh.join(format!("kudu-binary-{version}-linux-x86_64"));
    for program in programs(&unpacked)? {
        run("chmod", &["+x", &program.display().to_string()])?;
    }
    std::fs::rename(&unpacked, &home)
        .with_context(|| format!("cannot put Kudu into {}", home.display()))?;
    std::fs::remove_dir_all(&fresh)?;
    Ok(())
}

/// Puts Kudu's client for Java into `~/.cache/nyala/kudu/java`.
fn install_kudu_java_client() -> Result<()> {
    let user = std::env::var_os("HOME").context("HOME is not set")?;
    let cache = Path::new(&user).join(".cache/nyala/kudu");
    let home = cache.join("java");
    for (group, name, version) in KUDU_JAVA {
        if home.join(format!("{name}-{version}.jar")).exists() {
            continue;
        }
        install_debian(NEEDED_FOR_KUDU)?;
        println!("== {name} {version} for Java into {}", home.display());
        maven(&cache, COPY, &format!("{group}:{name}:{version}"), &home)?;
    }
    Ok(())
}

/// Has Maven put an artifact into a directory. It runs in the cache, as it leaves marks of what it
/// unpacked in the directory that it runs in.
fn maven(cache: &Path, goal: &str, artifact: &str, into: &Path) -> Result<()> {
    std::fs::create_dir_all(cache).with_context(|| format!("cannot make {}", cache.display()))?;
    let mut command = Command::new("mvn");
    command.current_dir(cache).args(["--quiet", "--batch-mode", "--strict-checksums", goal]);
    command.arg(format!("-Dartifact={artifact}"));
    command.arg(format!("-DoutputDirectory={}", into.display()));
    command.arg(format!("-Dmaven.repo.local={}", cache.join("maven").display()));
    run_command(command)
}

fn programs(unpacked: &Path) -> Result<Vec<PathBuf>> {
    let bin = unpacked.join("bin");
    let entries = std::fs::read_dir(&bin).with_context(|| bin.display().to_string())?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

fn is_there(program: &str) -> bool {
    let mut look = Command::new("sh");
    look.args(["-c", &format!("command -v {program}")]).stdout(Stdio::null());
    look.status().is_ok_and(|status| status.success())
}

fn run(program: &str, args: &[&str]) -> Result<()> {
    let mut command = Command::new(program);
    command.args(args);
    run_command(command)
}

fn run_command(mut command: Command) -> Result<()> {
    let hint = "the tests need the packages above; install them by hand if this is not Debian";
    command.env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
    let status = command.status().context(hint)?;
    if status.success() { Ok(()) } else { bail!("{command:?} failed; {hint}") }
}
