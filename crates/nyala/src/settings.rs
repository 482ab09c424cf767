//! Settings: one table says which there are; flags, environment, file and defaults give the values.

mod layers;
mod sections;
mod table;
mod value;

use std::path::PathBuf;
use std::time::Duration;

pub(crate) use layers::{Layers, Resolved, environment_name};
pub(crate) use sections::Sections;
pub(crate) use table::SETTINGS;
pub(crate) use value::{LogFormat, MemoryLimit, Sync};

use anyhow::Context;
use server::{AuthConfig, ListenerConfig, ListenerTarget, TlsFiles, UdpConfig};
use store_kudu::KuduOptions;

use crate::machine;

/// All settings, with their types.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) data_dir: PathBuf,
    /// A cluster in place of the directory.
    pub(crate) store: Option<KuduOptions>,
    pub(crate) http_bind: String,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) unix_socket: Option<PathBuf>,
    pub(crate) access_log: bool,
    /// Listeners and the monitor.
    pub(crate) sections: Sections,
    pub(crate) auth: AuthConfig,
    pub(crate) memory_limit: MemoryLimit,
    pub(crate) wal_sync: Sync,
    pub(crate) idle_after: Duration,
    pub(crate) max_body_bytes: usize,
    pub(crate) max_connections: usize,
    pub(crate) max_concurrent_queries: usize,
    pub(crate) query_timeout: Duration,
    /// `None`: what suits the memory limit.
    pub(crate) query_memory_bytes: Option<usize>,
    /// `None`: as above.
    pub(crate) query_cache_bytes: Option<usize>,
    pub(crate) max_row_limit: usize,
    pub(crate) max_select_point: u64,
    pub(crate) max_select_series: u64,
    pub(crate) max_select_buckets: u64,
    pub(crate) retention_autocreate: bool,
    pub(crate) retention_check_interval: Duration,
    pub(crate) continuous_query_interval: Duration,
    pub(crate) shutdown_timeout: Duration,
    pub(crate) log_level: String,
    pub(crate) log_format: LogFormat,
}

impl Settings {
    /// Reads the values of all settings and the sections of the file.
    ///
    /// # Errors
    /// A value is not of its setting's kind: names the value and where it comes from.
    pub(crate) fn read(layers: &Layers) -> anyhow::Result<Self> {
        let resolved = layers.resolve()?;
        let mut sections = layers.sections()?;
        sections.listeners.extend(udp(&value::Reader::new(&resolved))?.map(ListenerConfig::Udp));
        Ok(Self { sections, ..Self::of_values(&resolved)? })
    }

    fn of_values(resolved: &[Resolved]) -> anyhow::Result<Self> {
        let values = value::Reader::new(resolved);
        Ok(Self {
            data_dir: values.text("data-dir")?.into(),
            store: cluster(&values)?,
            http_bind: values.address("http-bind")?,
            tls: tls(values.file("https-certificate")?, values.file("https-private-key")?)?,
            unix_socket: values.file("bind-socket")?,
            sections: Sections::default(),
            access_log: values.truth("access-log")?,
            auth: AuthConfig {
                enabled: values.truth("auth-enabled")?,
                ping: values.truth("ping-auth-enabled")?,
                debug: values.truth("pprof-auth-enabled")?,
                shared_secret: values.secret("shared-secret")?,
            },
            memory_limit: values.memory_limit("memory-limit")?,
            wal_sync: values.sync("wal-sync")?,
            idle_after: values.long_duration("idle-after")?,
            max_body_bytes: values.size("max-body-size")?,
            max_connections: values.count("max-connections")?,
            max_concurrent_queries: values.count("max-concurrent-queries")?,
            query_timeout: values.duration("query-timeout")?,
            query_memory_bytes: values.size_or_auto("query-memory-limit", 1)?,
            query_cache_bytes: values.size_or_auto("query-cache-size", 0)?,
            max_row_limit: values.count("max-row-limit")?,
            max_select_point: values.count("max-select-point")? as u64,
            max_select_series: values.count("max-select-series")? as u64,
            max_select_buckets: values.count("max-select-buckets")? as u64,
            retention_autocreate: values.truth("retention-autocreate")?,
            retention_check_interval: values.duration("retention-check-interval")?,
            continuous_query_interval: values.duration("continuous-query-interval")?,
            shutdown_timeout: values.duration("shutdown-timeout")?,
            log_level: values.log_level("log-level")?,
            log_format: values.log_format("log-format")?,
        })
    }

    /// How the memory limit is shared out on this machine.
    pub(crate) fn memory_plan(&self) -> MemoryPlan {
        let total = self.memory_limit.bytes(machine::memory_bytes());
        // Over a cluster nothing is kept.
        let query_cache = if self.store.is_some() { Some(0) } else { self.query_cache_bytes };
        MemoryPlan::new(total, self.query_memory_bytes, query_cache)
    }
}

/// The cluster that has the data, if there is to be one.
fn cluster(values: &value::Reader<'_>) -> anyhow::Result<Option<KuduOptions>> {
    let address = values.word("store")?;
    let password = values.word("store-password")?;
    if address.is_empty() {
        anyhow::ensure!(password.is_empty(), "store-password needs store");
        return Ok(None);
    }
    let mut options = KuduOptions::parse(&address).context("store")?;
    if !password.is_empty() {
        anyhow::ensure!(options.user.is_some(), "store-password needs a user: ?user=NAME in store");
        options.password = password;
    }
    anyhow::ensure!(
        values.sync("wal-sync")? == Sync::Always,
        "wal-sync is of no use with store: the Kudu cluster has its own log (see docs/kudu.md)"
    );
    anyhow::ensure!(
        values.is_default("idle-after"),
        "idle-after is of no use with store: the Kudu cluster decides itself what it merges"
    );
    anyhow::ensure!(
        values.is_default("query-cache-size"),
        "query-cache-size is of no use with store: nothing is kept, other daemons write to the cluster"
    );
    Ok(Some(options))
}

/// The listener for UDP that flags can say, if there is to be one.
fn udp(values: &value::Reader<'_>) -> anyhow::Result<Option<UdpConfig>> {
    let (database, policy) = (values.text("udp-database")?, values.word("udp-retention-policy")?);
    let precision = values.precision("udp-precision")?;
    let bind = values.address_or_none("udp-bind")?;
    let (batch_points, batch_age) = sections::UDP_BATCH;
    let receive_buffer = sections::RECEIVE_BUFFER_BYTES;
    let target =
        |bind| ListenerTarget { bind, database, policy, batch_points, batch_age, receive_buffer };
    Ok(bind.map(|bind| UdpConfig { target: target(bind), precision }))
}

/// The files of certificate and key, if there is to be TLS.
fn tls(
    certificate: Option<PathBuf>,
    private_key: Option<PathBuf>,
) -> anyhow::Result<Option<TlsFiles>> {
    match (certificate, private_key) {
        (None, None) => Ok(None),
        (None, Some(_)) => anyhow::bail!("https-private-key needs https-certificate"),
        (Some(certificate), key) => {
            let private_key = key.unwrap_or_else(|| certificate.clone());
            Ok(Some(TlsFiles { certificate, private_key }))
        }
    }
}

/// How the memory limit is shared out; all in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryPlan {
    pub(crate) total: usize,
    pub(crate) store: usize,
    /// All queries together.
    pub(crate) queries: usize,
    /// One of them.
    pub(crate) query: usize,
    /// Answers that are kept.
    pub(crate) query_cache: usize,
    /// Bodies of requests, what is made of them, and copies that wait for subscribers.
    pub(crate) bodies: usize,
}

/// More than this for bodies only lets more writes wait for the same disk.
const BODIES_BYTES_MAX: usize = 256 << 20;

impl MemoryPlan {
    fn new(total: usize, query: Option<usize>, query_cache: Option<usize>) -> Self {
        let bodies = (total / 8).min(BODIES_BYTES_MAX);
        let queries = total / 4;
        let query = query.unwrap_or(queries / 2).min(queries);
        let query_cache = query_cache.unwrap_or(total / 64).min(total / 8);
        let store = total - bodies - queries - query_cache;
        Self { total, store, queries, query, query_cache, bodies }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_legal() {
        let layers = Layers { flags: Vec::new(), environment: Vec::new(), file: None };
        let settings = Settings::read(&layers).unwrap();
        assert_eq!(settings.http_bind, "127.0.0.1:8086");
        assert_eq!(settings.wal_sync, Sync::Always);
        assert_eq!(settings.max_body_bytes, 25_000_000);
        assert_eq!(settings.memory_limit, MemoryLimit::Percent(25));
        assert_eq!(settings.query_memory_bytes, None);
        assert_eq!(settings.retention_check_interval, Duration::from_secs(1800));
    }

    fn read(flags: &[(&str, &str)]) -> anyhow::Result<Settings> {
        let flags = flags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Settings::read(&Layers { flags: flags.collect(), environment: Vec::new(), file: None })
    }

    #[test]
    fn partitions_are_idle_after_a_second_at_least() {
        assert_eq!(read(&[("idle-after", "1s")]).unwrap().idle_after, Duration::from_secs(1));
        let error = read(&[("idle-after", "500ms")]).unwrap_err().to_string();
        assert!(error.contains("\"500ms\" is not a time of at least 1s"), "{error}");
    }

    #[test]
    fn settings_of_the_directory_are_refused_with_a_cluster() {
        let store = ("store", "kudu://127.0.0.1:7051/");
        let defaults =
            [store, ("wal-sync", "always"), ("idle-after", "60s"), ("query-cache-size", "auto")];
        assert!(read(&defaults).unwrap().store.is_some());
        for other in [("wal-sync", "never"), ("idle-after", "5m"), ("query-cache-size", "1MB")] {
            let error = read(&[store, other]).unwrap_err().to_string();
            assert!(error.contains("is of no use with store"), "{error}");
        }
    }

    #[test]
    fn memory_is_shared_out_completely() {
        for total in [64 << 20, 512 << 20, 6 << 30, 1 << 40] {
            for query_cache in [None, Some(0), Some(total)] {
                let plan = MemoryPlan::new(total, None, query_cache);
                assert_eq!(plan.store + plan.queries + plan.query_cache + plan.bodies, total);
                assert!(plan.store >= total / 2 && plan.query <= plan.queries);
            }
        }
    }
}
