//! Starts a database server in a private directory on loopback ports, and stops it.
//!
//! Every system gets its fastest reasonable settings for one machine; nothing of it outlives the value returned
//! by [`System::start`], which stops the process when dropped.

use std::fs::{self, File};
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::http::Client;

const START_MAX: Duration = Duration::from_secs(60);
const STOP_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

/// A server that can be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum System {
    /// InfluxDB 1.x, Debian package `influxdb`.
    InfluxDb,
    /// VictoriaMetrics, Debian package `victoria-metrics`.
    VictoriaMetrics,
    /// QuestDB: the path of its jar.
    QuestDb(PathBuf),
    /// ClickHouse, Debian package `clickhouse-server`.
    ClickHouse,
    /// Nyala: the path of its binary.
    Nyala(PathBuf),
    /// A server that does nothing, see [`crate::discard`].
    Discard,
}

impl System {
    /// The name in tables.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::InfluxDb => "InfluxDB",
            Self::VictoriaMetrics => "VictoriaMetrics",
            Self::QuestDb(_) => "QuestDB",
            Self::ClickHouse => "ClickHouse",
            Self::Nyala(_) => "Nyala",
            Self::Discard => "nothing",
        }
    }

    /// The program to run: an absolute path, or a name to be found in `PATH`.
    #[must_use]
    pub fn program(&self) -> &Path {
        match self {
            Self::Discard => Path::new("/proc/self/exe"),
            Self::InfluxDb => Path::new("influxd"),
            Self::VictoriaMetrics => Path::new("victoria-metrics"),
            Self::QuestDb(_) => Path::new("java"),
            Self::ClickHouse => Path::new("clickhouse-server"),
            Self::Nyala(binary) => binary,
        }
    }

    /// Whether the program is there.
    #[must_use]
    pub fn is_installed(&self) -> bool {
        let rest = match self {
            Self::QuestDb(jar) => jar.is_file(),
            _ => true,
        };
        rest && find(self.program()).is_some()
    }

    /// What to do when it is not.
    #[must_use]
    pub fn how_to_install(&self) -> &'static str {
        match self {
            Self::InfluxDb => {
                "influxd is not installed: apt-get install influxdb (and stop the service it may start)"
            }
            Self::VictoriaMetrics => {
                "victoria-metrics is not installed: apt-get install victoria-metrics"
            }
            Self::QuestDb(_) => {
                "QuestDB is not installed: it needs Java 17 and its jar, as \
                 mvn dependency:get -Dartifact=org.questdb:questdb:9.3.1 -Dtransitive=false gets it"
            }
            Self::ClickHouse => {
                "clickhouse-server is not installed: apt-get install clickhouse-server (and stop the \
                 service it may start)"
            }
            Self::Discard => "this program cannot be found: it needs Linux' /proc",
            Self::Nyala(_) => "the Nyala binary is missing: cargo build --release -p nyala",
        }
    }

    /// Starts the server with its files below `directory` and waits until it answers.
    ///
    /// # Errors
    /// When it is not installed, does not start, or does not answer within a minute.
    pub fn start(&self, directory: &Path) -> Result<Running> {
        self.start_with(directory, &[])
    }

    /// Starts it as [`System::start`] does; Nyala with settings besides, by their names in the environment.
    ///
    /// # Errors
    /// As there.
    pub fn start_with(
        &self,
        directory: &Path,
        nyala_settings: &[(&str, String)],
    ) -> Result<Running> {
        let Some(program) = find(self.program()) else { bail!("{}", self.how_to_install()) };
        let data = directory.join("data");
        fs::create_dir_all(&data).with_context(|| format!("cannot create {}", data.display()))?;
        let port = free_port()?;
        let mut command = Command::new(program);
        match self {
            Self::InfluxDb => {
                let config = directory.join("influxdb.conf");
                fs::write(&config, influxdb_config(&data, port, free_port()?))?;
                command.arg("-config").arg(&config);
            }
            Self::VictoriaMetrics => {
                command
                    .arg(format!("-storageDataPath={}", data.display()))
                    .arg(format!("-httpListenAddr=127.0.0.1:{port}"))
                    .args(["-retentionPeriod=100y", "-search.latencyOffset=0s"]);
            }
            Self::QuestDb(jar) => {
                command.arg("-p").arg(jar).args(["-m", "io.questdb/io.questdb.ServerMain", "-d"]);
                command.arg(&data).env("QDB_HTTP_BIND_TO", format!("127.0.0.1:{port}"));
                for (name, value) in QUESTDB_SETTINGS {
                    command.env(name, value);
                }
            }
            Self::ClickHouse => {
                let config = directory.join("config.xml");
                fs::write(&config, clickhouse_config(&data, port, free_port()?))?;
                fs::write(directory.join("users.xml"), CLICKHOUSE_USERS)?;
                command.arg(format!("--config-file={}", config.display()));
            }
            Self::Discard => {
                command.args(["discard", "--address"]).arg(format!("127.0.0.1:{port}"));
            }
            Self::Nyala(_) => {
                command.args(["serve", "--data-dir"]).arg(&data);
                command.arg("--http-bind").arg(format!("127.0.0.1:{port}"));
                command.envs(nyala_settings.iter().map(|(name, value)| (name, value)));
            }
        }
        let log = directory.join("server.log");
        let output =
            File::create(&log).with_context(|| format!("cannot create {}", log.display()))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("cannot start {}", self.name()))?;
        let mut running = Running {
            child,
            url: format!("http://127.0.0.1:{port}"),
            data: match self {
                // What lies beside it comes with the server.
                Self::QuestDb(_) => data.join("db"),
                _ => data,
            },
            log,
            started: Instant::now(),
        };
        running.wait_until_ready(self)?;
        Ok(running)
    }
}

/// Only the HTTP server listens, and nothing is sent anywhere.
const QUESTDB_SETTINGS: [(&str, &str); 4] = [
    ("QDB_PG_ENABLED", "false"),
    ("QDB_LINE_TCP_ENABLED", "false"),
    ("QDB_HTTP_MIN_ENABLED", "false"),
    ("QDB_TELEMETRY_ENABLED", "false"),
];

/// A running server; dropping it stops it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    url: String,
    data: PathBuf,
    log: PathBuf,
    started: Instant,
}

impl Running {
    /// Where it listens.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where its data is.
    #[must_use]
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn wait_until_ready(&mut self, system: &System) -> Result<()> {
        let target = if *system == System::VictoriaMetrics { "/health" } else { "/ping" };
        let mut client = Client::new(&self.url)?;
        loop {
            if client.get(target).is_ok_and(|response| response.is_success()) {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended with {status}: {}", system.name(), self.log_end());
            }
            if self.started.elapsed() > START_MAX {
                bail!("{} did not answer within {START_MAX:?}: {}", system.name(), self.log_end());
            }
            std::thread::sleep(POLL);
        }
    }

    fn log_end(&self) -> String {
        match fs::read(&self.log) {
            Ok(bytes) => {
                String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(2000)..]).into_owned()
            }
            Err(error) => format!("(its log cannot be read: {error})"),
        }
    }

    /// Asks the process to end and waits until it has; kills it after a minute.
    fn stop(&mut self) -> io::Result<()> {
        let asked = Instant::now();
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            kill_process(pid, Signal::TERM)?;
            while asked.elapsed() < STOP_MAX {
                if self.child.try_wait()?.is_some() {
                    return Ok(());
                }
                std::thread::sleep(POLL);
            }
        }
        self.child.kill()?;
        self.child.wait().map(|_| ())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            crate::load::note(&format!("cannot stop process {}: {error}", self.child.id()));
        }
    }
}

/// A port that is free now. Another process may take it before the server does; the server then fails to start.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no free loopback port")?;
    Ok(listener.local_addr()?.port())
}

fn find(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}

/// Snapshots and compactions start soon after the last write, so that sizes settle within a run.
fn influxdb_config(data: &Path, port: u16, rpc_port: u16) -> String {
    let data = data.display();
    format!(
        r#"reporting-disabled = true
bind-address = "127.0.0.1:{rpc_port}"
[meta]
  dir = "{data}/meta"
  logging-enabled = false
[data]
  dir = "{data}/data"
  wal-dir = "{data}/wal"
  index-version = "tsi1"
  query-log-enabled = false
  max-series-per-database = 0
  max-values-per-tag = 0
  cache-snapshot-write-cold-duration = "5s"
  compact-full-write-cold-duration = "10s"
[monitor]
  store-enabled = false
[http]
  bind-address = "127.0.0.1:{port}"
  log-enabled = false
[logging]
  level = "warn"
  suppress-logo = true
[subscriber]
  enabled = false
[continuous_queries]
  log-enabled = false
"#
    )
}

fn clickhouse_config(data: &Path, port: u16, tcp_port: u16) -> String {
    let data = data.display();
    format!(
        r#"<yandex>
  <logger><level>warning</level><console>1</console></logger>
  <http_port>{port}</http_port>
  <tcp_port>{tcp_port}</tcp_port>
  <listen_host>127.0.0.1</listen_host>
  <path>{data}/</path>
  <tmp_path>{data}/tmp/</tmp_path>
  <users_config>users.xml</users_config>
  <default_profile>default</default_profile>
  <default_database>default</default_database>
  <timezone>UTC</timezone>
  <mark_cache_size>1073741824</mark_cache_size>
</yandex>
"#
    )
}

/// One user without a password, who may do everything from this machine.
const CLICKHOUSE_USERS: &str = r#"<yandex>
  <profiles><default></default></profiles>
  <users><default>
    <password></password>
    <networks><ip>127.0.0.1</ip></networks>
    <profile>default</profile>
    <quota>default</quota>
  </default></users>
  <quotas><default></default></quotas>
</yandex>
"#;
