//! Real Kudu daemons for tests: masters and tablet servers on loopback, on ports picked free.
//!
//! The binaries are those `cargo xtask packages` puts into the cache directory. Every daemon runs
//! under a shell that holds a pipe from this process: when the pipe ends, for whatever reason, the
//! daemon is killed, and with the last of them the directory goes. So nothing stays behind, not even
//! when a test binary is killed.
//!
//! Not here: anything that knows Kudu's protocol.
#![allow(clippy::disallowed_methods, reason = "starts processes on real directories")]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod daemon;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use daemon::Supervisor;

/// Why a cluster, or its tool, does not work.
pub use anyhow::Error as Failure;
pub use daemon::Daemon;

/// Version of Kudu that tests run on unless `NYALA_KUDU_VERSION` names another. `cargo xtask
/// packages` installs it, or the other.
pub const KUDU_VERSION: &str = "1.18.0";
/// Tries of starting a cluster: a port picked free may be taken by somebody else.
const STARTS_MAX: usize = 3;

/// What cluster is wanted.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of masters: 1 or 3.
    pub masters: usize,
    /// Number of tablet servers.
    pub tablet_servers: usize,
    /// Flags for the masters, besides those that keep daemons small.
    pub master_flags: Vec<String>,
    /// Flags for the tablet servers, likewise.
    pub tablet_server_flags: Vec<String>,
}

impl Options {
    /// One master, this many tablet servers.
    #[must_use]
    pub fn new(tablet_servers: usize) -> Self {
        Self {
            masters: 1,
            tablet_servers,
            master_flags: Vec::new(),
            tablet_server_flags: Vec::new(),
        }
    }

    /// This many masters.
    #[must_use]
    pub fn masters(mut self, masters: usize) -> Self {
        self.masters = masters;
        self
    }

    /// Adds a flag for masters.
    #[must_use]
    pub fn master_flag(mut self, flag: &str) -> Self {
        self.master_flags.push(flag.to_owned());
        self
    }

    /// Adds a flag for tablet servers.
    #[must_use]
    pub fn tablet_server_flag(mut self, flag: &str) -> Self {
        self.tablet_server_flags.push(flag.to_owned());
        self
    }

    /// Adds a flag for all daemons.
    #[must_use]
    pub fn flag(self, flag: &str) -> Self {
        self.master_flag(flag).tablet_server_flag(flag)
    }
}

/// Daemons that run until this is dropped or the process ends.
#[derive(Debug)]
pub struct Cluster {
    masters: Vec<Daemon>,
    tablet_servers: Vec<Daemon>,
    home: PathBuf,
    directory: PathBuf,
    _supervisor: Supervisor,
}

impl Cluster {
    /// Starts a cluster and waits until all tablet servers have reported to a leading master.
    ///
    /// # Errors
    /// The binaries are missing, or the daemons do not come up.
    pub fn start(options: &Options) -> Result<Self> {
        let mut last = None;
        for _ in 0..STARTS_MAX {
            match Self::try_start(options) {
                Ok(cluster) => return Ok(cluster),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| anyhow::anyhow!("cluster was never started")))
    }

    fn try_start(options: &Options) -> Result<Self> {
        let home = kudu_home()?;
        let directory = tempfile::Builder::new().prefix("kudu-test-").tempdir()?.keep();
        let supervisor = Supervisor::start(&directory)?;
        let ports = free_ports(options.masters + options.tablet_servers)?;
        let (master_ports, tablet_server_ports) = ports.split_at(options.masters);
        let masters: Vec<String> =
            master_ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let masters_flag = masters.join(",");
        let mut cluster = Self {
            masters: Vec::new(),
            tablet_servers: Vec::new(),
            home,
            directory,
            _supervisor: supervisor,
        };
        for (index, port) in master_ports.iter().enumerate() {
            let mut flags = options.master_flags.clone();
            flags.push("--tserver_unresponsive_timeout_ms=5000".to_owned());
            if options.masters > 1 {
                flags.push(format!("--master_addresses={masters_flag}"));
            }
            let daemon = cluster.daemon("kudu-master", &format!("m{index}"), *port, flags)?;
            cluster.masters.push(daemon);
        }
        for (index, port) in tablet_server_ports.iter().enumerate() {
            let mut flags = options.tablet_server_flags.clone();
            flags.push(format!("--tserver_master_addrs={masters_flag}"));
            let daemon = cluster.daemon("kudu-tserver", &format!("t{index}"), *port, flags)?;
            cluster.tablet_servers.push(daemon);
        }
        cluster.wait_until_complete()?;
        Ok(cluster)
    }

    fn daemon(
        &self,
        program: &str,
        name: &str,
        port: u16,
        mut flags: Vec<String>,
    ) -> Result<Daemon> {
        let own = self.directory.join(name);
        std::fs::create_dir_all(own.join("log"))?;
        let own = own.display();
        flags.extend([
            format!("--rpc_bind_addresses=127.0.0.1:{port}"),
            format!("--fs_wal_dir={own}/wal"),
            format!("--fs_data_dirs={own}/data"),
            format!("--log_dir={own}/log"),
        ]);
        flags.splice(0..0, SMALL.iter().map(|flag| (*flag).to_owned()));
        Daemon::start(&self.home, program, &self.directory.join(name), port, flags)
    }

    /// Waits until all tablet servers have reported to a leading master since they were started.
    ///
    /// # Errors
    /// That does not happen within a minute.
    pub fn wait_until_complete(&self) -> Result<()> {
        let begun = std::time::Instant::now();
        let mut last = String::new();
        while begun.elapsed().as_secs() < 60 {
            let mut daemons = self.masters.iter().chain(&self.tablet_servers);
            if let Some(dead) = daemons.find(|d| d.failed()) {
                bail!("a Kudu daemon ended at once: {}", dead.output());
            }
            let masters = self.master_list();
            let list = ["tserver", "list", &masters, "-columns=seqno", "-timeout_ms=5000"];
            match self.cli(&list) {
                Ok(listed) if self.are_running(&listed) => return Ok(()),
                Ok(listed) => last = listed,
                Err(error) => last = format!("{error:#}"),
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        bail!("Kudu is not complete after a minute: {last}")
    }

    /// Whether a list of when the servers known to the master were started, microseconds, is of
    /// those that run now: masters list dead ones, too.
    fn are_running(&self, listed: &str) -> bool {
        let mut told: Vec<u128> =
            listed.lines().filter_map(|line| line.trim().parse().ok()).collect();
        let mut made: Vec<u128> = self.tablet_servers.iter().map(Daemon::started_us).collect();
        told.sort_unstable();
        made.sort_unstable();
        told.len() >= made.len()
            && told.iter().rev().zip(made.iter().rev()).all(|(told, made)| told >= made)
    }

    /// Addresses of the masters.
    #[must_use]
    pub fn masters(&self) -> Vec<String> {
        self.masters.iter().map(Daemon::address).collect()
    }

    /// Addresses of the masters in one string, as the command line tool wants them.
    #[must_use]
    pub fn master_list(&self) -> String {
        self.masters().join(",")
    }

    /// A master.
    #[must_use]
    pub fn master(&self, index: usize) -> &Daemon {
        &self.masters[index]
    }

    /// A tablet server.
    #[must_use]
    pub fn tablet_server(&self, index: usize) -> &Daemon {
        &self.tablet_servers[index]
    }

    /// Index of the tablet server with this address.
    #[must_use]
    pub fn tablet_server_at(&self, address: &str) -> Option<usize> {
        self.tablet_servers.iter().position(|d| d.address() == address)
    }

    /// Index of the master with this address.
    #[must_use]
    pub fn master_at(&self, address: &str) -> Option<usize> {
        self.masters.iter().position(|d| d.address() == address)
    }

    /// Runs the `kudu` command line tool and gives what it prints.
    ///
    /// # Errors
    /// It fails; the message has its output.
    pub fn cli(&self, args: &[&str]) -> Result<String> {
        let out = daemon::command(&self.home, "kudu")
            .args(args)
            .stdin(Stdio::null())
            .output()
            .context("cannot run kudu")?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        if out.status.success() {
            return Ok(text);
        }
        bail!("kudu {args:?}: {text}{}", String::from_utf8_lossy(&out.stderr))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for daemon in self.masters.iter().chain(&self.tablet_servers) {
            daemon.kill();
        }
    }
}

/// Flags that keep daemons small and quick; both daemons know them.
const SMALL: &[&str] = &[
    "--unlock_unsafe_flags",
    "--unlock_experimental_flags",
    "--time_source=system_unsync",
    "--webserver_enabled=false",
    "--never_fsync",
    "--enable_minidumps=false",
    "--redact=none",
    "--block_cache_capacity_mb=16",
    "--maintenance_manager_num_threads=1",
    "--log_preallocate_segments=false",
    "--fs_data_dirs_reserved_bytes=0",
    "--fs_wal_dir_reserved_bytes=0",
    "--rpc_num_service_threads=4",
    "--num_reactor_threads=2",
    "--heartbeat_interval_ms=200",
    "--raft_heartbeat_interval_ms=200",
    "--minloglevel=1",
];

/// The version that tests run on.
fn version() -> String {
    std::env::var("NYALA_KUDU_VERSION").unwrap_or_else(|_| KUDU_VERSION.to_owned())
}

/// Major and minor number of the version that tests run on: not all know everything.
///
/// # Panics
/// If the environment names a version that is none.
#[must_use]
pub fn kudu_version() -> (u32, u32) {
    let version = version();
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(Some(major)), Some(Some(minor))) => (major, minor),
        _ => panic!("NYALA_KUDU_VERSION={version} is no version of Kudu"),
    }
}

/// Where the unpacked binaries are: `NYALA_KUDU_HOME`, or the cache directory.
fn kudu_home() -> Result<PathBuf> {
    let home = match std::env::var_os("NYALA_KUDU_HOME") {
        Some(home) => PathBuf::from(home),
        None => {
            let user =
                std::env::var_os("HOME").context("neither NYALA_KUDU_HOME nor HOME is set")?;
            Path::new(&user).join(".cache/nyala/kudu").join(version())
        }
    };
    if !home.join("bin/kudu-master").exists() {
        bail!("Kudu is not in {}: run `cargo xtask packages`", home.display());
    }
    Ok(home)
}

/// Ports of loopback that nobody listens on now.
fn free_ports(count: usize) -> Result<Vec<u16>> {
    let listeners = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0"))
        .collect::<std::io::Result<Vec<_>>>()?;
    listeners.iter().map(|listener| Ok(listener.local_addr()?.port())).collect()
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]);
    command
}
