//! What the owner of a server chooses.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::listeners::ListenerConfig;
use crate::tls::TlsFiles;

/// The version of InfluxDB that the server answers to be compatible with: clients choose what they
/// send by it.
pub const COMPATIBLE_VERSION: &str = "1.8.10";

/// Address, limits and times. A count or time of 0 means that there is no such limit, where the
/// field does not say otherwise.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Address to listen on: `host:port`, or `:port` for every address of the machine; port 0 takes
    /// a free one.
    pub http_bind: String,
    /// Connections at a time; further ones are closed at once.
    pub max_connections: usize,
    /// Longest request body, bytes, as sent. An unpacked gzip body may be
    /// [`UNPACKED_BODY_FACTOR`] times as long.
    pub max_body_bytes: usize,
    /// Memory that the bodies of writes and what is made of them may take together, bytes, at least
    /// 1, with the copies that wait for subscribers. One body that needs more than all of it is let in
    /// alone.
    pub body_memory_bytes: usize,
    /// Memory of one query, bytes, at least 1.
    pub query_memory_bytes: usize,
    /// Memory of all queries together, bytes, at least 1.
    pub queries_memory_bytes: usize,
    /// Memory for answers that are given again as long as nothing they rest on changes, bytes. 0:
    /// none are kept.
    pub query_cache_bytes: usize,
    /// How long a query may run.
    pub query_timeout: Duration,
    /// Queries at a time.
    pub max_concurrent_queries: usize,
    /// Rows in an answer that is not chunked.
    pub max_row_limit: usize,
    /// Rows a SELECT may look at.
    pub max_select_point: u64,
    /// Series a SELECT may look at.
    pub max_select_series: u64,
    /// Windows a SELECT may make.
    pub max_select_buckets: u64,
    /// Processors to use: large queries at a time, and threads of one of them. At least 1.
    pub threads: usize,
    /// How often expired partitions are looked for. 0: never.
    pub retention_check_interval: Duration,
    /// How often continuous queries are looked at. 0: never.
    pub continuous_query_interval: Duration,
    /// How long requests in flight may go on when the server is told to stop.
    pub shutdown_grace: Duration,
    /// How long a request waits for its turn before it is refused. Not 0.
    pub admission_wait: Duration,
    /// How long clients may take.
    pub patience: Patience,
    /// Who is asked who they are.
    pub auth: AuthConfig,
    /// TLS on [`ServerConfig::http_bind`]; `None`: none.
    pub tls: Option<TlsFiles>,
    /// A Unix socket to listen on as well, without TLS.
    pub unix_socket: Option<PathBuf>,
    /// Line protocol over UDP, Graphite, OpenTSDB and collectd.
    pub listeners: Vec<ListenerConfig>,
    /// Whether figures of the server are kept as rows; `None`: no.
    pub monitor: Option<MonitorConfig>,
    /// Whether each request is logged, at level info.
    pub access_log: bool,
}

/// Where the server's own figures go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorConfig {
    /// The database; made if missing, with a policy that keeps a week.
    pub database: String,
    /// How often. Not 0.
    pub interval: Duration,
}

/// Who is asked who they are, and how they may say it.
#[derive(Clone, Debug, Default)]
pub struct AuthConfig {
    /// Whether anybody is.
    pub enabled: bool,
    /// Whether `/ping`, `/status`, `/health` and `/metrics` ask as well.
    pub ping: bool,
    /// Whether `/debug/...` asks as well; then it is for administrators.
    pub debug: bool,
    /// What tokens are signed with. `None`: there are no tokens.
    pub shared_secret: Option<Secret>,
}

/// A text that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A secret.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[REDACTED]")
    }
}

/// An unpacked body may be so many times as long as the longest packed one.
pub const UNPACKED_BODY_FACTOR: usize = 4;

/// How long the server waits for clients. None of these may be 0.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For a request's head, from its first byte; also for the first byte of a new connection.
    pub head: Duration,
    /// For the next request on a connection.
    pub idle: Duration,
    /// For the next piece of a request's body.
    pub body: Duration,
    /// For the client to take some of the answer.
    pub write: Duration,
    /// For more from a connection that sends lines. Such senders may be quiet for long, and lose
    /// what they send into a connection that is closed.
    pub lines: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(20),
            idle: Duration::from_secs(600),
            body: Duration::from_secs(30),
            write: Duration::from_secs(60),
            lines: Duration::from_secs(3600),
        }
    }
}

impl Default for ServerConfig {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            http_bind: "127.0.0.1:8086".to_owned(),
            max_connections: 4096,
            max_body_bytes: 25_000_000,
            body_memory_bytes: 128 << 20,
            query_memory_bytes: 256 << 20,
            queries_memory_bytes: 512 << 20,
            query_cache_bytes: 16 << 20,
            query_timeout: Duration::ZERO,
            max_concurrent_queries: 0,
            max_row_limit: 0,
            max_select_point: 0,
            max_select_series: 0,
            max_select_buckets: 0,
            threads,
            retention_check_interval: Duration::from_secs(30 * 60),
            continuous_query_interval: Duration::from_secs(1),
            shutdown_grace: Duration::from_secs(20),
            admission_wait: Duration::from_secs(10),
            patience: Patience::default(),
            auth: AuthConfig::default(),
            tls: None,
            unix_socket: None,
            listeners: Vec::new(),
            monitor: None,
            access_log: false,
        }
    }
}

impl ServerConfig {
    /// Longest body as sent, bytes.
    pub(crate) fn body_bytes_max(&self) -> usize {
        match self.max_body_bytes {
            0 => ingest::line_protocol::BODY_BYTES_MAX,
            max => max.min(ingest::line_protocol::BODY_BYTES_MAX),
        }
    }

    /// Longest body after unpacking, bytes.
    pub(crate) fn unpacked_bytes_max(&self) -> usize {
        let factor = UNPACKED_BODY_FACTOR;
        self.body_bytes_max().saturating_mul(factor).min(ingest::line_protocol::BODY_BYTES_MAX)
    }
}
