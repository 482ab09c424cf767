//! Values: from text to what the program works with.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow};

use server::{Precision, Secret};

use super::layers::Resolved;
use super::table::SETTINGS;

/// A memory limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryLimit {
    Bytes(usize),
    /// Of the memory there is.
    Percent(u8),
}

/// Least memory that everything fits into, bytes.
const MEMORY_BYTES_MIN: usize = 64_000_000;

impl MemoryLimit {
    /// The limit on a machine with so much memory.
    pub(crate) fn bytes(self, machine_bytes: u64) -> usize {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => {
                let share = u128::from(machine_bytes) * u128::from(percent) / 100;
                usize::try_from(share).unwrap_or(usize::MAX).max(MEMORY_BYTES_MIN)
            }
        }
    }
}

/// What an acknowledged write survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sync {
    Always,
    Interval(Duration),
    Never,
}

/// The form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// Reads values by name.
pub(crate) struct Reader<'a> {
    resolved: &'a [Resolved],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(resolved: &'a [Resolved]) -> Self {
        Self { resolved }
    }

    fn read<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Option<T>,
        kind: &str,
    ) -> anyhow::Result<T> {
        let found = self.resolved.iter().find(|r| r.name == name);
        let found = found.with_context(|| format!("BUG: {name} is missing from the table"))?;
        let text = found.text.trim();
        parse(text).ok_or_else(|| anyhow!("{}: {text:?} is not {kind}", found.origin))
    }

    pub(crate) fn text(&self, name: &str) -> anyhow::Result<String> {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        self.read(name, some, "a name: it is empty")
    }

    /// A text that may be empty.
    pub(crate) fn word(&self, name: &str) -> anyhow::Result<String> {
        self.read(name, |text| Some(text.to_owned()), "a text")
    }

    /// An address; empty: none.
    pub(crate) fn address_or_none(&self, name: &str) -> anyhow::Result<Option<String>> {
        let none_or_some = |text: &str| match text {
            "" => Some(None),
            text => address(text).filter(|text| !text.starts_with(':')).map(Some),
        };
        self.read(name, none_or_some, "an address such as 127.0.0.1:8089")
    }

    pub(crate) fn precision(&self, name: &str) -> anyhow::Result<Precision> {
        self.read(name, Precision::from_name, "a unit of time: n, u, ms, s, m or h")
    }

    /// The path of a file; empty: none.
    pub(crate) fn file(&self, name: &str) -> anyhow::Result<Option<PathBuf>> {
        let path = |text: &str| Some(text).filter(|text| !text.is_empty()).map(PathBuf::from);
        self.read(name, |text| Some(path(text)), "a path")
    }

    /// A text that may be empty and is not shown.
    pub(crate) fn secret(&self, name: &str) -> anyhow::Result<Option<Secret>> {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        self.read(name, |text| Some(some(text).map(Secret::new)), "a text")
    }

    pub(crate) fn address(&self, name: &str) -> anyhow::Result<String> {
        self.read(name, address, "an address such as 127.0.0.1:8086 or :8086")
    }

    pub(crate) fn memory_limit(&self, name: &str) -> anyhow::Result<MemoryLimit> {
        let kind = "a size of at least 64MB such as 512MB or 2GiB, or a percentage such as 25%";
        self.read(name, memory_limit, kind)
    }

    pub(crate) fn sync(&self, name: &str) -> anyhow::Result<Sync> {
        self.read(name, sync, "always, never, or an interval such as 100ms")
    }

    pub(crate) fn size(&self, name: &str) -> anyhow::Result<usize> {
        self.read(name, size, "a size such as 64KB, 25MB or 2GiB")
    }

    pub(crate) fn size_or_auto(&self, name: &str, least: usize) -> anyhow::Result<Option<usize>> {
        let positive = |text: &str| match text {
            "auto" => Some(None),
            text => size(text).filter(|bytes| *bytes >= least).map(Some),
        };
        self.read(name, positive, "auto or a size such as 64KB, 25MB or 2GiB")
    }

    pub(crate) fn count(&self, name: &str) -> anyhow::Result<usize> {
        self.read(name, |text| text.parse().ok(), "a whole number")
    }

    pub(crate) fn duration(&self, name: &str) -> anyhow::Result<Duration> {
        self.read(name, duration, "a time such as 100ms, 30s, 5m or 1h30m")
    }

    /// A time of a second or more.
    pub(crate) fn long_duration(&self, name: &str) -> anyhow::Result<Duration> {
        let long = |text: &str| duration(text).filter(|time| *time >= Duration::from_secs(1));
        self.read(name, long, "a time of at least 1s such as 30s or 5m")
    }

    /// Whether the value is the default, be it given (as in a file that `nyala config` wrote) or not.
    pub(crate) fn is_default(&self, name: &str) -> bool {
        let default = SETTINGS.iter().find(|setting| setting.name == name).map(|s| s.default);
        self.resolved.iter().any(|r| r.name == name && Some(r.text.trim()) == default)
    }

    pub(crate) fn truth(&self, name: &str) -> anyhow::Result<bool> {
        self.read(name, |text| text.parse().ok(), "true or false")
    }

    pub(crate) fn log_level(&self, name: &str) -> anyhow::Result<String> {
        let legal = |text: &str| {
            let filter = tracing_subscriber::EnvFilter::builder().parse(text);
            filter.is_ok().then(|| text.to_owned())
        };
        self.read(name, legal, "a level: error, warn, info, debug or trace")
    }

    pub(crate) fn log_format(&self, name: &str) -> anyhow::Result<LogFormat> {
        let format = |text: &str| match text {
            "text" => Some(LogFormat::Text),
            "json" => Some(LogFormat::Json),
            _ => None,
        };
        self.read(name, format, "text or json")
    }
}

/// `host:port`, or `:port`.
pub(super) fn address(text: &str) -> Option<String> {
    let (_, port) = text.rsplit_once(':')?;
    port.parse::<u16>().ok()?;
    Some(text.to_owned())
}

fn memory_limit(text: &str) -> Option<MemoryLimit> {
    if let Some(percent) = text.strip_suffix('%') {
        let percent = percent.trim().parse().ok()?;
        return (1..=95).contains(&percent).then_some(MemoryLimit::Percent(percent));
    }
    size(text).filter(|bytes| *bytes >= MEMORY_BYTES_MIN).map(MemoryLimit::Bytes)
}

fn sync(text: &str) -> Option<Sync> {
    match text {
        "always" => Some(Sync::Always),
        "never" => Some(Sync::Never),
        text => duration(text).filter(|d| !d.is_zero()).map(Sync::Interval),
    }
}

/// A number of bytes. `KB` counts by 1000; `KiB`, and InfluxDB's `k`, by 1024.
fn size(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor: usize = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        _ => return None,
    };
    number.parse::<usize>().ok()?.checked_mul(factor)
}

/// Numbers with units, one after another; a bare 0 needs none.
pub(super) fn duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    if text.is_empty() {
        return None;
    }
    let mut rest = text;
    let mut total_ns: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let unit_ns: u64 = match unit {
            "ns" => 1,
            "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            "w" => 604_800_000_000_000,
            _ => return None,
        };
        let part = number.parse::<u64>().ok()?.checked_mul(unit_ns)?;
        total_ns = total_ns.checked_add(part)?;
        rest = after;
    }
    Some(Duration::from_nanos(total_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::layers::Origin;
    use proptest::prelude::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", Some(0)),
            ("25000000", Some(25_000_000)),
            ("25MB", Some(25_000_000)),
            ("64 KiB", Some(65_536)),
            ("2g", Some(2 << 30)),
            ("1.5GB", None),
            ("-1", None),
            ("MB", None),
            ("99999999999999GB", None),
            ("5TB", None),
        ] {
            assert_eq!(size(text), bytes, "{text}");
        }
    }

    #[test]
    fn durations() {
        for (text, expected) in [
            ("0", Some(0)),
            ("0s", Some(0)),
            ("100ms", Some(100)),
            ("1h30m", Some(5_400_000)),
            ("2d", Some(172_800_000)),
            ("30", None),
            ("s", None),
            ("", None),
            ("-5s", None),
            ("99999999999w", None),
        ] {
            assert_eq!(duration(text), expected.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn limits_and_policies() {
        assert_eq!(memory_limit("25%"), Some(MemoryLimit::Percent(25)));
        assert_eq!(memory_limit("512MB"), Some(MemoryLimit::Bytes(512_000_000)));
        assert_eq!(memory_limit("1MB"), None);
        assert_eq!(memory_limit("0%"), None);
        assert_eq!(memory_limit("101%"), None);
        assert_eq!(MemoryLimit::Percent(25).bytes(100 << 30), 25 << 30);
        assert_eq!(MemoryLimit::Percent(25).bytes(1 << 20), MEMORY_BYTES_MIN);
        assert_eq!(sync("100ms"), Some(Sync::Interval(Duration::from_millis(100))));
        assert_eq!(sync("0s"), None);
        assert_eq!(address(":8086").as_deref(), Some(":8086"));
        assert_eq!(address("localhost:0").as_deref(), Some("localhost:0"));
        assert_eq!(address("localhost"), None);
        assert_eq!(address("localhost:66666"), None);
    }

    #[test]
    fn errors_name_value_and_place() {
        let resolved = [Resolved {
            name: "max-connections",
            text: "many".to_owned(),
            origin: Origin::Default,
        }];
        let error = Reader::new(&resolved).count("max-connections").unwrap_err();
        assert_eq!(error.to_string(), "default: \"many\" is not a whole number");
    }

    proptest! {
        #[test]
        fn any_text_is_a_value_or_none(text in ".{0,20}") {
            let _ = (size(&text), duration(&text), address(&text), memory_limit(&text), sync(&text));
        }
    }
}
