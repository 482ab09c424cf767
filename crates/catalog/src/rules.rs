//! Rules of names and durations.

use std::sync::LazyLock;

use model::{Name, Regex};

use crate::CatalogError;

/// Longest name of a database or policy, bytes.
pub const NAME_BYTES_MAX: usize = 255;

/// What a policy is called if nobody says.
pub(crate) const DEFAULT_POLICY_NAME: &str = "autogen";

const HOUR_NS: i64 = 3_600_000_000_000;
const DAY_NS: i64 = 24 * HOUR_NS;
/// Shortest retention other than for ever, and shortest partition.
const DURATION_MIN_NS: i64 = HOUR_NS;

/// A policy as a statement describes it. What is not said has a default, or stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicySpec {
    /// The name; `autogen` if a database is created without one (or with an empty one).
    pub name: Option<Name>,
    /// How long rows are kept, nanoseconds; 0: for ever.
    pub duration_ns: Option<i64>,
    /// Length of a partition, nanoseconds; 0: what suits the duration.
    pub shard_duration_ns: Option<i64>,
    /// How many copies are asked for. Kept and shown, without effect.
    pub replica_n: Option<u32>,
}

impl PolicySpec {
    /// A specification that only has a name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self { name: Some(name.into()), ..Self::default() }
    }
}

/// A policy's complete definition, all rules obeyed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Definition {
    pub(crate) duration_ns: Option<i64>,
    pub(crate) shard_duration_ns: i64,
    pub(crate) replica_n: u32,
}

impl Definition {
    /// The definition of a new policy.
    pub(crate) fn new(spec: &PolicySpec) -> Result<Self, CatalogError> {
        let duration_ns = retention(spec.duration_ns.unwrap_or(0))?;
        let replica_n = spec.replica_n.unwrap_or(1);
        if replica_n == 0 {
            return Err(CatalogError::ReplicationTooLow);
        }
        let shard_duration_ns = shard_duration(spec.shard_duration_ns.unwrap_or(0), duration_ns);
        if duration_ns.is_some_and(|duration| duration < shard_duration_ns) {
            return Err(CatalogError::IncompatibleDurations);
        }
        Ok(Self { duration_ns, shard_duration_ns, replica_n })
    }

    /// What becomes of the definition when `spec` is applied. The shard duration stays unless it is
    /// named, even if another would be the default now.
    pub(crate) fn altered(&self, spec: &PolicySpec) -> Result<Self, CatalogError> {
        let duration_ns = match spec.duration_ns {
            Some(duration) => retention(duration)?,
            None => self.duration_ns,
        };
        let named = spec.shard_duration_ns.unwrap_or(self.shard_duration_ns);
        if duration_ns.is_some_and(|duration| duration < named) {
            return Err(CatalogError::IncompatibleDurations);
        }
        let replica_n = spec.replica_n.unwrap_or(self.replica_n);
        if replica_n == 0 {
            return Err(CatalogError::ReplicationTooLow);
        }
        let shard_duration_ns = shard_duration(named, duration_ns);
        Ok(Self { duration_ns, shard_duration_ns, replica_n })
    }

    /// Whether everything that `spec` says is so already.
    pub(crate) fn satisfies(&self, spec: &PolicySpec) -> bool {
        let duration = spec.duration_ns.is_none_or(|d| d == self.duration_ns.unwrap_or(0));
        let replica = spec.replica_n.is_none_or(|n| n == self.replica_n);
        let shard = shard_duration(spec.shard_duration_ns.unwrap_or(0), self.duration_ns);
        duration && replica && shard == self.shard_duration_ns
    }
}

/// A duration as a statement has it, checked; 0 means for ever.
pub(crate) fn retention(duration_ns: i64) -> Result<Option<i64>, CatalogError> {
    match duration_ns {
        0 => Ok(None),
        DURATION_MIN_NS.. => Ok(Some(duration_ns)),
        _ => Err(CatalogError::DurationTooLow),
    }
}

/// The partition length for what was asked for.
fn shard_duration(asked_ns: i64, duration_ns: Option<i64>) -> i64 {
    match (asked_ns, duration_ns) {
        (0, None) => 7 * DAY_NS,
        (0, Some(duration)) if duration >= 180 * DAY_NS => 7 * DAY_NS,
        (0, Some(duration)) if duration >= 2 * DAY_NS => DAY_NS,
        (0, Some(_)) => HOUR_NS,
        (asked, _) => asked.max(DURATION_MIN_NS),
    }
}

/// Checks the name of a database or policy.
pub(crate) fn check_name(name: &str) -> Result<(), CatalogError> {
    static PRINTABLE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\A[\p{L}\p{M}\p{N}\p{P}\p{S} ]+\z").expect("BUG: the regex is valid")
    });
    let is_path = name == "." || name == ".." || name.contains(['/', '\\']);
    if is_path || !PRINTABLE.is_match(name) {
        return Err(CatalogError::InvalidName);
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(CatalogError::NameTooLong);
    }
    Ok(())
}

/// Checks a destination of a subscription: `udp`, `http` or `https`, a host, a port.
pub(crate) fn check_destination(url: &str) -> Result<(), CatalogError> {
    let refused = || CatalogError::SubscriptionUrl(url.to_owned());
    let (scheme, rest) = url.split_once("://").ok_or_else(refused)?;
    let known = ["http", "https", "udp"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let address = authority.rsplit_once('@').map_or(authority, |(_, address)| address);
    let (host, port) = address.rsplit_once(':').ok_or_else(refused)?;
    let is_port = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    let is_host = !host.contains(':') || host.starts_with('[') && host.ends_with(']');
    let plain = url.chars().all(|c| !c.is_control() && !c.is_whitespace());
    if known && is_port && is_host && plain { Ok(()) } else { Err(refused()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = HOUR_NS / 60;

    fn spec(duration_ns: i64, shard_duration_ns: i64) -> PolicySpec {
        let (duration_ns, shard_duration_ns) = (Some(duration_ns), Some(shard_duration_ns));
        PolicySpec { duration_ns, shard_duration_ns, ..PolicySpec::default() }
    }

    #[test]
    fn shard_durations_have_steps_and_a_floor() {
        for (duration, shard, want) in [
            (0, 0, 7 * DAY_NS),
            (180 * DAY_NS, 0, 7 * DAY_NS),
            (180 * DAY_NS - 1, 0, DAY_NS),
            (2 * DAY_NS, 0, DAY_NS),
            (2 * DAY_NS - 1, 0, HOUR_NS),
            (HOUR_NS, 0, HOUR_NS),
            (0, MINUTE, HOUR_NS),
            (HOUR_NS, MINUTE, HOUR_NS),
            (3 * DAY_NS, 2 * DAY_NS, 2 * DAY_NS),
        ] {
            let made = Definition::new(&spec(duration, shard)).unwrap();
            assert_eq!(made.shard_duration_ns, want, "{duration} {shard}");
            assert_eq!(made.duration_ns, (duration > 0).then_some(duration));
        }
    }

    #[test]
    fn durations_that_do_not_fit_are_refused() {
        let error = |spec: &PolicySpec| Definition::new(spec).unwrap_err().to_string();
        let too_low = "retention policy duration must be at least 1h0m0s";
        assert_eq!(error(&spec(HOUR_NS - 1, 0)), too_low);
        assert_eq!(error(&spec(-1, 0)), too_low);
        let incompatible = "retention policy duration must be greater than the shard duration";
        assert_eq!(error(&spec(HOUR_NS, 2 * HOUR_NS)), incompatible);
        let none = PolicySpec { replica_n: Some(0), ..PolicySpec::default() };
        assert_eq!(error(&none), "replication factor must be greater than 0");
    }

    #[test]
    fn altering_keeps_what_is_not_named() {
        let made = Definition::new(&spec(2 * DAY_NS, 0)).unwrap();
        let longer = PolicySpec { duration_ns: Some(400 * DAY_NS), ..PolicySpec::default() };
        assert_eq!(made.altered(&longer).unwrap().shard_duration_ns, DAY_NS);
        let shorter = PolicySpec { duration_ns: Some(HOUR_NS), ..PolicySpec::default() };
        assert!(matches!(made.altered(&shorter), Err(CatalogError::IncompatibleDurations)));
        let both = made.altered(&spec(HOUR_NS, MINUTE)).unwrap();
        assert_eq!((both.duration_ns, both.shard_duration_ns), (Some(HOUR_NS), HOUR_NS));
        let default = made.altered(&spec(0, 0)).unwrap();
        assert_eq!((default.duration_ns, default.shard_duration_ns), (None, 7 * DAY_NS));
        let shard = PolicySpec { shard_duration_ns: Some(3 * DAY_NS), ..PolicySpec::default() };
        assert!(matches!(made.altered(&shard), Err(CatalogError::IncompatibleDurations)));
    }

    #[test]
    fn names_are_printable_and_no_paths() {
        for good in ["db", "my db", "\u{e9}\u{20ac}\u{65e5}", "a.b", "...", "_internal", "\"q\""] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "a\\b", "a\nb", "a\n", "a\u{0}", "a\u{200b}", "a\u{a0}"] {
            assert!(matches!(check_name(bad), Err(CatalogError::InvalidName)), "{bad:?}");
        }
        assert!(check_name(&"x".repeat(255)).is_ok());
        assert!(matches!(check_name(&"x".repeat(256)), Err(CatalogError::NameTooLong)));
    }

    #[test]
    fn destinations() {
        for good in [
            "http://127.0.0.1:1",
            "HTTP://x:1",
            "https://x:99999",
            "udp://127.0.0.1:9",
            "http://x:1/path",
            "http://u:p@x:1",
            "http://[::1]:99",
            "http://:80",
        ] {
            assert!(check_destination(good).is_ok(), "{good}");
        }
        for bad in
            ["", "bad", "ftp://x:1", "http://x", "udp://x", ":1", "http://x:y", "http://a\nb:1"]
        {
            let error = check_destination(bad).unwrap_err().to_string();
            assert_eq!(error, format!("invalid subscription URL: {bad}"));
        }
    }
}
