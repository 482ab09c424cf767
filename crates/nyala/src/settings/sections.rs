//! Sections of the file: listeners, of which there may be several, and the monitor. Their keys are
//! InfluxDB's; one that Nyala does not have is refused by name.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use serde::Deserialize;
use server::collectd::{CollectdParser, MultiValue, SecurityLevel, TypesDb, Users};
use server::graphite::GraphiteParser;
use server::{
    CollectdConfig, GraphiteConfig, ListenerConfig, ListenerTarget, MonitorConfig, OpenTsdbConfig,
    Precision, Transport, UdpConfig,
};

use super::value;

/// The names that sections have.
pub(crate) const SECTIONS: [&str; 5] = ["udp", "graphite", "opentsdb", "collectd", "monitor"];

/// Points and age of a batch of line protocol over UDP, unless something else is said.
pub(crate) const UDP_BATCH: (usize, Duration) = (5000, SECOND);
/// What the system is asked to keep of datagrams that wait, unless something else is said: of a hundred thousand a second those
/// of some tens of milliseconds.
pub(crate) const RECEIVE_BUFFER_BYTES: usize = 8 << 20;
const SECOND: Duration = Duration::from_secs(1);

/// What the sections of a file say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sections {
    pub(crate) listeners: Vec<ListenerConfig>,
    pub(crate) monitor: Option<MonitorConfig>,
}

/// The sections as they are written.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    udp: Vec<Udp>,
    #[serde(default)]
    graphite: Vec<Graphite>,
    #[serde(default)]
    opentsdb: Vec<OpenTsdb>,
    #[serde(default)]
    collectd: Vec<Collectd>,
    monitor: Option<Monitor>,
}

/// A section of a listener: what all of them may say, and more. (Serde cannot refuse unknown keys of a
/// structure that takes in another one.)
macro_rules! listener {
    ($name:ident { $($key:ident: $type:ty,)* }) => {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        struct $name {
            #[serde(default)]
            enabled: bool,
            bind_address: Option<String>,
            database: Option<String>,
            #[serde(default)]
            retention_policy: String,
            batch_size: Option<usize>,
            batch_timeout: Option<String>,
            $(#[serde(default)] $key: $type,)*
        }

        impl $name {
            fn target(&self, default: &Defaults) -> anyhow::Result<ListenerTarget> {
                let bind = self.bind_address.as_deref().unwrap_or(default.bind);
                let bind = value::address(bind).ok_or_else(|| {
                    anyhow!("bind-address: {bind:?} is not an address such as :2003")
                })?;
                // As with times, 0 is taken for nothing said.
                let batch_points = self.batch_size.filter(|size| *size > 0);
                let age = self.batch_timeout.as_deref();
                let database = self.database.as_deref().filter(|name| !name.is_empty());
                Ok(ListenerTarget {
                    bind,
                    database: database.unwrap_or(default.database).to_owned(),
                    policy: self.retention_policy.clone(),
                    batch_points: batch_points.unwrap_or(default.batch.0),
                    batch_age: some_time("batch-timeout", age, default.batch.1)?,
                    receive_buffer: RECEIVE_BUFFER_BYTES,
                })
            }
        }
    };
}

/// What holds for a listener that does not say it.
struct Defaults {
    bind: &'static str,
    database: &'static str,
    /// Points and age of a batch.
    batch: (usize, Duration),
}

listener!(Udp {
    precision: Option<String>,
    read_buffer: usize,
});
listener!(Graphite {
    protocol: Option<String>,
    udp_read_buffer: usize,
    separator: Option<String>,
    tags: Vec<String>,
    templates: Vec<String>,
});
listener!(OpenTsdb {});
listener!(Collectd {
    typesdb: Option<PathBuf>,
    security_level: Option<String>,
    auth_file: Option<PathBuf>,
    parse_multivalue_plugin: Option<String>,
    read_buffer: usize,
});

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Monitor {
    #[serde(default)]
    store_enabled: bool,
    store_database: Option<String>,
    store_interval: Option<String>,
}

/// Where the types are that collectd comes with.
const TYPESDB: &str = "/usr/share/collectd/types.db";
/// Where collectd's users are, unless the section says so.
const AUTH_FILE: &str = "/etc/collectd/auth_file";

impl Sections {
    /// Reads the sections of a file.
    ///
    /// # Errors
    /// What is wrong, with the section.
    pub(crate) fn read(table: &toml::Table) -> anyhow::Result<Self> {
        let file: File = table.clone().try_into()?;
        let mut listeners = Vec::new();
        for section in file.udp.iter().filter(|section| section.enabled) {
            listeners.push(ListenerConfig::Udp(section.config().context("[[udp]]")?));
        }
        for section in file.graphite.iter().filter(|section| section.enabled) {
            listeners.push(ListenerConfig::Graphite(section.config().context("[[graphite]]")?));
        }
        for section in file.opentsdb.iter().filter(|section| section.enabled) {
            listeners.push(ListenerConfig::OpenTsdb(section.config().context("[[opentsdb]]")?));
        }
        for section in file.collectd.iter().filter(|section| section.enabled) {
            listeners.push(ListenerConfig::Collectd(section.config().context("[[collectd]]")?));
        }
        let monitor = file.monitor.filter(|monitor| monitor.store_enabled);
        let monitor = monitor.map(|monitor| monitor.config().context("[monitor]")).transpose()?;
        Ok(Self { listeners, monitor })
    }
}

/// A time that is not 0; that is taken for nothing said, as InfluxDB does.
fn some_time(key: &str, text: Option<&str>, default: Duration) -> anyhow::Result<Duration> {
    let Some(text) = text else { return Ok(default) };
    let read = value::duration(text);
    let read = read.with_context(|| format!("{key}: {text:?} is not a time such as 1s"))?;
    Ok(if read.is_zero() { default } else { read })
}

impl Udp {
    fn config(&self) -> anyhow::Result<UdpConfig> {
        let default = Defaults { bind: ":8089", database: "udp", batch: UDP_BATCH };
        let unit = self.precision.as_deref().filter(|unit| !unit.is_empty()).unwrap_or("n");
        let precision = Precision::from_name(unit)
            .ok_or_else(|| anyhow!("precision: {unit:?} is none of n, u, ms, s, m, h"))?;
        let target = self.target(&default)?.with_buffer(self.read_buffer);
        Ok(UdpConfig { target, precision })
    }
}

impl Graphite {
    fn config(&self) -> anyhow::Result<GraphiteConfig> {
        let default = Defaults { bind: ":2003", database: "graphite", batch: (5000, SECOND) };
        let transport = match self.protocol.as_deref() {
            None | Some("tcp") => Transport::Tcp,
            Some("udp") => Transport::Udp,
            Some(other) => bail!("protocol: {other:?} is neither tcp nor udp"),
        };
        let separator = self.separator.as_deref().unwrap_or(".");
        let parser = GraphiteParser::new(&self.templates, separator, &self.tags);
        let parser = parser.map_err(|error| anyhow!(error))?;
        let target = self.target(&default)?.with_buffer(self.udp_read_buffer);
        Ok(GraphiteConfig { target, transport, parser })
    }
}

impl OpenTsdb {
    fn config(&self) -> anyhow::Result<OpenTsdbConfig> {
        let default = Defaults { bind: ":4242", database: "opentsdb", batch: (1000, SECOND) };
        Ok(OpenTsdbConfig { target: self.target(&default)? })
    }
}

impl Collectd {
    fn config(&self) -> anyhow::Result<CollectdConfig> {
        let default = Defaults { bind: ":25826", database: "collectd", batch: (5000, 10 * SECOND) };
        let level = match self.security_level.as_deref() {
            None | Some("none" | "") => SecurityLevel::None,
            Some("sign") => SecurityLevel::Sign,
            Some("encrypt") => SecurityLevel::Encrypt,
            Some(other) => bail!("security-level: {other:?} is neither none, sign nor encrypt"),
        };
        let multi_value = match self.parse_multivalue_plugin.as_deref() {
            None | Some("split" | "") => MultiValue::Split,
            Some("join") => MultiValue::Join,
            Some(other) => bail!("parse-multivalue-plugin: {other:?} is neither split nor join"),
        };
        let path = self.typesdb.as_deref().unwrap_or_else(|| Path::new(TYPESDB));
        let mut parser = CollectdParser::new(types(path)?, multi_value);
        if level != SecurityLevel::None || self.auth_file.is_some() {
            let path = self.auth_file.as_deref().unwrap_or_else(|| Path::new(AUTH_FILE));
            parser = parser.secured(level, users(path)?);
        }
        let target = self.target(&default)?.with_buffer(self.read_buffer);
        Ok(CollectdConfig { target, parser })
    }
}

/// The users of a file and their passwords.
fn users(path: &Path) -> anyhow::Result<Users> {
    let named = || format!("auth-file: {}", path.display());
    let text = std::fs::read_to_string(path).with_context(named)?;
    let mut users = Users::default();
    users.add(&text).map_err(|error| anyhow!(error)).with_context(named)?;
    Ok(users)
}

/// The types of a file, or of all files of a directory, in the order of their names.
fn types(path: &Path) -> anyhow::Result<TypesDb> {
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        let entries = std::fs::read_dir(path).with_context(|| path.display().to_string())?;
        files = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
        files.retain(|file| file.is_file());
        files.sort();
    }
    let mut types = TypesDb::default();
    for file in files {
        let named = || format!("typesdb: {}", file.display());
        let text = std::fs::read_to_string(&file).with_context(named)?;
        types.add(&text).map_err(|error| anyhow!(error)).with_context(named)?;
    }
    Ok(types)
}

impl Monitor {
    fn config(&self) -> anyhow::Result<MonitorConfig> {
        let database = self.store_database.as_deref().filter(|name| !name.is_empty());
        let interval = self.store_interval.as_deref();
        Ok(MonitorConfig {
            database: database.unwrap_or("_internal").to_owned(),
            interval: some_time("store-interval", interval, Duration::from_secs(10))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Sections, String> {
        let table: toml::Table = text.parse().unwrap();
        Sections::read(&table).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn sections_are_off_until_enabled() {
        let off = read("[[graphite]]\n[[opentsdb]]\n[[collectd]]\n[monitor]\n").unwrap();
        assert!(off.listeners.is_empty() && off.monitor.is_none());
        let on = read(
            "[[graphite]]\nenabled = true\n[[graphite]]\nenabled = true\nprotocol = \"udp\"\n\
             bind-address = \":2004\"\ndatabase = \"g\"\nretention-policy = \"r\"\nbatch-size = 7\n\
             batch-timeout = \"2s\"\nseparator = \"_\"\ntags = [\"a=b\"]\n\
             templates = [\"*.x a.measurement\"]\n[[opentsdb]]\nenabled = true\n\
             [monitor]\nstore-enabled = true\nstore-interval = \"5s\"\n",
        )
        .unwrap();
        let [
            ListenerConfig::Graphite(tcp),
            ListenerConfig::Graphite(udp),
            ListenerConfig::OpenTsdb(tsdb),
        ] = &on.listeners[..]
        else {
            panic!("{:?}", on.listeners);
        };
        assert_eq!((tcp.transport, &*tcp.target.bind), (Transport::Tcp, ":2003"));
        assert_eq!((udp.transport, &*udp.target.database), (Transport::Udp, "g"));
        assert_eq!((udp.target.batch_points, udp.target.batch_age.as_secs()), (7, 2));
        assert_eq!(&*tsdb.target.bind, ":4242");
        let monitor = on.monitor.unwrap();
        assert_eq!((&*monitor.database, monitor.interval.as_secs()), ("_internal", 5));
    }

    #[test]
    fn several_listen_for_datagrams() {
        let section = "[[udp]]\nenabled = true\n";
        let other = "bind-address = \":8090\"\ndatabase = \"d\"\nprecision = \"s\"\n";
        let read = read(&format!("{section}{section}{other}[[udp]]\n")).unwrap();
        let [ListenerConfig::Udp(one), ListenerConfig::Udp(two)] = &read.listeners[..] else {
            panic!("{:?}", read.listeners);
        };
        assert_eq!((&*one.target.bind, &*one.target.database), (":8089", "udp"));
        assert_eq!((one.target.batch_points, one.precision), (5000, Precision::Nanosecond));
        assert_eq!((&*two.target.bind, &*two.target.database), (":8090", "d"));
        assert_eq!(two.precision, Precision::Second);
    }

    #[test]
    fn zero_is_nothing_said() {
        let section = "[[opentsdb]]\nenabled = true\n";
        let zeros = format!("{section}batch-size = 0\nbatch-timeout = \"0s\"\n");
        let target = |text: &str| match &read(text).unwrap().listeners[..] {
            [ListenerConfig::OpenTsdb(config)] => config.target.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(target(&zeros), target(section));
    }

    #[test]
    fn datagrams_have_the_room_that_is_said() {
        let room = |text: &str| match &read(text).unwrap().listeners[..] {
            [ListenerConfig::Udp(UdpConfig { target, .. })]
            | [ListenerConfig::Graphite(GraphiteConfig { target, .. })] => target.receive_buffer,
            other => panic!("{other:?}"),
        };
        let udp = "[[udp]]\nenabled = true\n";
        assert_eq!(room(udp), RECEIVE_BUFFER_BYTES);
        assert_eq!(room(&format!("{udp}read-buffer = 0\n")), RECEIVE_BUFFER_BYTES);
        assert_eq!(room(&format!("{udp}read-buffer = 65536\n")), 65536);
        let graphite = "[[graphite]]\nenabled = true\nprotocol = \"udp\"\nudp-read-buffer = 7\n";
        assert_eq!(room(graphite), 7);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, error) in [
            ("[[graphite]]\nread-buffer = 1\n", "unknown field `read-buffer`"),
            ("[[graphite]]\nenabled = true\nprotocol = \"sctp\"\n", "neither tcp nor udp"),
            ("[[graphite]]\nenabled = true\ntemplates = [\"a\"]\n", "no measurement specified"),
            ("[[udp]]\nenabled = true\nprecision = \"y\"\n", "\"y\" is none of n, u, ms"),
            ("[[udp]]\nbatch-pending = 1\n", "unknown field `batch-pending`"),
            ("[[udp]]\nread-buffer = -1\n", "read-buffer"),
            ("[[opentsdb]]\nenabled = true\nbind-address = \"x\"\n", "is not an address"),
            ("[[opentsdb]]\nenabled = true\nbatch-timeout = \"x\"\n", "is not a time"),
            (
                "[[collectd]]\nenabled = true\ntypesdb = \"/dev/null\"\nsecurity-level = \"sign\"\n\
                 auth-file = \"/no/such/file\"\n",
                "auth-file: /no/such/file",
            ),
            (
                "[[collectd]]\nenabled = true\nsecurity-level = \"tls\"\n",
                "neither none, sign nor encrypt",
            ),
            ("[[collectd]]\nenabled = true\ntypesdb = \"/no/such/file\"\n", "/no/such/file"),
            ("[monitor]\nstore-enabled = true\nstore-interval = \"x\"\n", "store-interval"),
        ] {
            let got = read(text).unwrap_err();
            assert!(got.contains(error), "{text}: {got}");
        }
    }
}
