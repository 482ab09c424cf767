//! Where the cluster is and how it is used: an address of the form
//! `kudu://host:port[,host:port...]/[?option=value&...]`.

use std::time::Duration;

use kudu_client::{ClientConfig, Encryption};
use percent_encoding::percent_decode_str;
use store::StoreError;

use crate::layout::COLUMNS_MAX;

/// How a cluster is used.
#[derive(Clone)]
pub struct KuduOptions {
    /// Addresses of the masters, `host` or `host:port`.
    pub masters: Vec<String>,
    /// What the names of the tables begin with: clusters can be shared.
    pub prefix: String,
    /// Copies of each tablet: odd. `None`: three, or one if there are fewer than three servers.
    pub replicas: Option<i32>,
    /// Hash buckets of each range of a data table, at least 2.
    pub buckets: u32,
    /// Measurements of a database that get tables of their own, about; further ones share one.
    pub tables: u32,
    /// Fields of a measurement that get a column of their own, up to 290; further ones go to a
    /// narrow table.
    pub columns: u32,
    /// User name; `None`: that of the environment (`USER`, `LOGNAME`), or `kudu-client`.
    pub user: Option<String>,
    /// Password of the user, for clusters that ask for one.
    pub password: String,
    /// Whether connections are encrypted.
    pub encryption: Encryption,
    /// Certificates (PEM) that the servers' own must be signed by; none: the first master that
    /// answers is believed.
    pub ca: Option<Vec<u8>>,
    /// Longest time for an operation of the cluster with all its attempts.
    pub timeout: Duration,
    /// How long the master may not have heard of a tablet server that partitions are made on. Less
    /// than what the master itself allows (`--tserver_unresponsive_timeout_ms`, a minute).
    pub heartbeat_age_max: Duration,
    /// Memory for what is remembered of series, bytes.
    pub cache_bytes: usize,
    /// Memory that deletes, expiry and looking after series without rows may take together.
    pub work_bytes: usize,
}

/// Without the password.
impl std::fmt::Debug for KuduOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KuduOptions")
            .field("masters", &self.masters)
            .field("prefix", &self.prefix)
            .field("replicas", &self.replicas)
            .field("buckets", &self.buckets)
            .field("tables", &self.tables)
            .field("columns", &self.columns)
            .field("user", &self.user)
            .field("encryption", &self.encryption)
            .field("timeout", &self.timeout)
            .field("heartbeat_age_max", &self.heartbeat_age_max)
            .field("cache_bytes", &self.cache_bytes)
            .field("work_bytes", &self.work_bytes)
            .finish_non_exhaustive()
    }
}

const EXPECTED: &str = "expected kudu://host:port[,host:port...]/[?option=value&...]";
const KNOWN: &str =
    "prefix, replicas, buckets, tables, columns, user, encryption, ca-file, timeout-s";
const BUCKETS_MAX: u32 = 64;
const TABLES_MAX: u32 = 100_000;
/// Longest wait for one answer: a third of the time for the whole operation, within these.
const ATTEMPT_MIN: Duration = Duration::from_millis(500);
const ATTEMPT_MAX: Duration = Duration::from_secs(10);
const PREFIX_BYTES_MAX: usize = 60;

impl KuduOptions {
    /// A cluster with these masters, used as is usual.
    #[must_use]
    pub fn new(masters: Vec<String>) -> Self {
        Self {
            masters,
            prefix: "nyala".to_owned(),
            replicas: None,
            buckets: 4,
            tables: 100,
            columns: COLUMNS_MAX,
            user: None,
            password: String::new(),
            encryption: Encryption::Optional,
            ca: None,
            timeout: Duration::from_secs(30),
            heartbeat_age_max: Duration::from_secs(50),
            cache_bytes: 64 << 20,
            work_bytes: 64 << 20,
        }
    }

    /// Reads an address.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] says what is wrong with it and what is expected.
    pub fn parse(address: &str) -> Result<Self, StoreError> {
        let rest = address
            .strip_prefix("kudu://")
            .ok_or_else(|| invalid(format!("store address {address:?}: {EXPECTED}")))?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (hosts, path) = place.split_once('/').unwrap_or((place, ""));
        if !path.is_empty() {
            return Err(invalid(format!("store address: {path:?} behind the masters; {EXPECTED}")));
        }
        let masters: Vec<String> = hosts.split(',').map(|host| host.trim().to_owned()).collect();
        let mut options = Self::new(masters);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decode_str(value).decode_utf8();
            let value = value.map_err(|_| invalid(format!("store option {name}: not UTF-8")))?;
            options.set(name, &value)?;
        }
        // Says what is wrong with the addresses.
        options.client_config()?;
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), StoreError> {
        let bad = |kind: &str| invalid(format!("store option {name}: {value:?} is not {kind}"));
        match name {
            "prefix" => {
                let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
                if value.is_empty() || value.len() > PREFIX_BYTES_MAX || !value.bytes().all(legal) {
                    return Err(bad("a prefix of 1 to 60 letters, digits, _ and -"));
                }
                value.clone_into(&mut self.prefix);
            }
            "replicas" => {
                let odd = value.parse().ok().filter(|n| matches!(n, 1 | 3 | 5 | 7));
                self.replicas = Some(odd.ok_or_else(|| bad("1, 3, 5 or 7"))?);
            }
            "buckets" => {
                let some = value.parse().ok().filter(|n| (2..=BUCKETS_MAX).contains(n));
                self.buckets = some.ok_or_else(|| bad("a number from 2 to 64"))?;
            }
            "tables" => {
                let some = value.parse().ok().filter(|n| *n <= TABLES_MAX);
                self.tables = some.ok_or_else(|| bad("a number from 0 to 100000"))?;
            }
            "columns" => {
                let some = value.parse().ok().filter(|n| *n <= COLUMNS_MAX);
                self.columns = some.ok_or_else(|| bad("a number from 0 to 290"))?;
            }
            "user" => self.user = Some(value.to_owned()),
            "password" => {
                let message = "store option password: not in the address, where others see it";
                return Err(invalid(format!("{message}; give it as store-password")));
            }
            "encryption" => {
                self.encryption = match value {
                    "optional" => Encryption::Optional,
                    "required" => Encryption::Required,
                    "disabled" => Encryption::Disabled,
                    _ => return Err(bad("optional, required or disabled")),
                }
            }
            "ca-file" => {
                let pem = read_file(value).map_err(|e| bad(&format!("a readable file ({e})")))?;
                self.ca = Some(pem);
            }
            "timeout-s" => {
                let some = value.parse().ok().filter(|n| (1..=3600).contains(n));
                let seconds = some.ok_or_else(|| bad("a number of seconds from 1 to 3600"))?;
                self.timeout = Duration::from_secs(seconds);
            }
            _ => {
                return Err(invalid(format!("store option {name:?} is unknown; known: {KNOWN}")));
            }
        }
        Ok(())
    }

    pub(crate) fn client_config(&self) -> Result<ClientConfig, StoreError> {
        let bad = |e: kudu_client::Error| invalid(format!("store address: {e}; {EXPECTED}"));
        let mut config = ClientConfig::new(&self.masters).map_err(bad)?;
        match &self.user {
            Some(user) => config = config.user(user, &self.password),
            None if self.password.is_empty() => {}
            None => {
                let message = "store-password without a user name: name the user in the address";
                return Err(invalid(format!("{message} (kudu://.../?user=NAME)")));
            }
        }
        if self.ca.is_some() && self.encryption == Encryption::Disabled {
            return Err(invalid(
                "store options ca-file and encryption=disabled exclude each other: certificates are shown \
                 by encrypted connections only; leave encryption out, or ca-file"
                    .to_owned(),
            ));
        }
        if let Some(pem) = &self.ca {
            config = config.pin_authorities(pem).map_err(bad)?;
        }
        // One server that hangs must leave time for asking others.
        let attempt = (self.timeout / 3).clamp(ATTEMPT_MIN, ATTEMPT_MAX);
        let config = config.encryption(self.encryption);
        Ok(config.operation_timeout(self.timeout).attempt_timeout(attempt))
    }
}

#[allow(clippy::disallowed_methods, reason = "a certificate is the operator's, not the store's")]
fn read_file(path: &str) -> std::io::Result<Vec<u8>> {
    std::fs::read(path)
}

fn invalid(message: String) -> StoreError {
    StoreError::Invalid(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let options = KuduOptions::parse(
            "kudu://a:7051,b/?prefix=p-1&replicas=1&buckets=2&columns=7&user=a%26b&\
             encryption=required&timeout-s=5",
        );
        let options = options.unwrap();
        assert_eq!(options.masters, ["a:7051", "b"]);
        assert_eq!(
            (options.prefix.as_str(), options.replicas, options.buckets, options.columns),
            ("p-1", Some(1), 2, 7)
        );
        assert_eq!(options.user.as_deref(), Some("a&b"));
        assert_eq!(options.encryption, Encryption::Required);
        assert_eq!(options.timeout, Duration::from_secs(5));
        let with_password = KuduOptions { password: "hidden".to_owned(), ..options };
        assert!(!format!("{with_password:?}").contains("hidden"));
        let nobody = KuduOptions { user: None, ..with_password };
        let error = nobody.client_config().unwrap_err().to_string();
        assert!(error.contains("?user=NAME"), "{error}");
        let mut contradictory = KuduOptions::new(vec!["a".to_owned()]);
        (contradictory.ca, contradictory.encryption) = (Some(Vec::new()), Encryption::Disabled);
        let error = contradictory.client_config().unwrap_err().to_string();
        assert!(error.contains("leave encryption out, or ca-file"), "{error}");
        assert!(KuduOptions::parse("kudu://a").is_ok());
        assert!(KuduOptions::parse("kudu://a/").is_ok());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (address, part) in [
            ("http://a:7051/", "expected kudu://"),
            ("kudu:///", "expected host"),
            ("kudu://a:x/", "expected host"),
            ("kudu://a/b", "behind the masters"),
            ("kudu://a/?what=1", "known: prefix"),
            ("kudu://a/?replicas=2", "1, 3, 5 or 7"),
            ("kudu://a/?buckets=1", "from 2 to 64"),
            ("kudu://a/?prefix=", "letters"),
            ("kudu://a/?columns=291", "from 0 to 290"),
            ("kudu://a/?tables=many", "from 0 to 100000"),
            ("kudu://a/?encryption=maybe", "optional, required"),
            ("kudu://a/?timeout-s=0", "seconds"),
            ("kudu://a/?ca-file=/none/such", "readable file"),
            ("kudu://a/?ca-file=Cargo.toml", "PEM"),
            ("kudu://a/?password=x", "store-password"),
        ] {
            let error = KuduOptions::parse(address).unwrap_err().to_string();
            assert!(error.contains(part), "{address}: {error}");
        }
    }
}
