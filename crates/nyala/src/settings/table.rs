//! The table of settings. Flags, names in the environment and in the file, and all help derive
//! from it.

/// One setting.
#[derive(Debug)]
pub(crate) struct Setting {
    /// The flag and the key of the file; `NYALA_...` in the environment.
    pub(crate) name: &'static str,
    /// The value if nobody gives one, as it would be written.
    pub(crate) default: &'static str,
    /// What a value is called in help.
    pub(crate) value_name: &'static str,
    /// What it is for.
    pub(crate) help: &'static str,
    /// Its value is not shown.
    pub(crate) secret: bool,
}

const fn setting(
    name: &'static str,
    default: &'static str,
    value_name: &'static str,
    help: &'static str,
) -> Setting {
    Setting { name, default, value_name, help, secret: false }
}

const fn secret(name: &'static str, value_name: &'static str, help: &'static str) -> Setting {
    Setting { secret: true, ..setting(name, "", value_name, help) }
}

/// All settings, in the order they are shown.
pub(crate) const SETTINGS: &[Setting] = &[
    setting("data-dir", "./nyala-data", "DIR", "Where the data is; made if missing."),
    setting(
        "store",
        "",
        "ADDRESS",
        "A Kudu cluster that has the data instead of data-dir, as \
         kudu://host:port[,host:port...]/[?option=value&...] with all its masters; docs/kudu.md says \
         more. Empty: data-dir.",
    ),
    secret(
        "store-password",
        "TEXT",
        "Password of the user named in store (?user=NAME), for clusters that ask for one.",
    ),
    setting(
        "http-bind",
        "127.0.0.1:8086",
        "HOST:PORT",
        "Address to listen on. :8086 is every address of this machine; port 0 takes a free one.",
    ),
    setting("bind-socket", "", "PATH", "A Unix socket to listen on as well; empty: none."),
    setting(
        "https-certificate",
        "",
        "FILE",
        "Certificate (PEM) for TLS on http-bind, read again when it changes; empty: no TLS.",
    ),
    setting(
        "https-private-key",
        "",
        "FILE",
        "The certificate's private key (PEM); empty: it is in the certificate's file.",
    ),
    setting(
        "auth-enabled",
        "false",
        "BOOL",
        "Whether requests have to come from users. While there are none, the only statement that is \
         executed is CREATE USER name WITH PASSWORD 'password' WITH ALL PRIVILEGES.",
    ),
    setting(
        "ping-auth-enabled",
        "false",
        "BOOL",
        "Whether /ping, /status, /health and /metrics are for users only, too.",
    ),
    setting(
        "pprof-auth-enabled",
        "false",
        "BOOL",
        "Whether /debug/... is for administrators only.",
    ),
    secret(
        "shared-secret",
        "TEXT",
        "What JSON Web Tokens are signed with (HS256, HS384, HS512); empty: tokens are refused. \
         Better in the environment or the file than a flag, which other users of the machine see.",
    ),
    setting(
        "udp-bind",
        "",
        "HOST:PORT",
        "Address to listen on for line protocol over UDP, from anybody; empty: none.",
    ),
    setting("udp-database", "udp", "NAME", "Database for what comes by UDP; made if missing."),
    setting(
        "udp-retention-policy",
        "",
        "NAME",
        "Retention policy for what comes by UDP; empty: the database's default.",
    ),
    setting("udp-precision", "n", "UNIT", "Unit of times that come by UDP: n, u, ms, s, m or h."),
    setting(
        "memory-limit",
        "25%",
        "SIZE",
        "Memory for everything: an amount such as 512MB or 2GiB (at least 64MB), or a percentage of \
         the machine's (or container's) memory.",
    ),
    setting(
        "wal-sync",
        "always",
        "POLICY",
        "When writes are synced to the disk. always: before they are acknowledged. An interval such \
         as 100ms: power loss may take that much. never: when the operating system likes. Rows \
         survive a crash of the server itself with every policy.",
    ),
    setting(
        "idle-after",
        "60s",
        "TIME",
        "How long nobody writes to a partition (a shard) before its rows are put into files, and \
         these are merged and encoded for keeping.",
    ),
    setting(
        "max-body-size",
        "25MB",
        "SIZE",
        "Longest body of a request; 0: no limit. Compressed ones may unpack to four times as much.",
    ),
    setting(
        "max-connections",
        "4096",
        "N",
        "Connections at a time; more are closed at once. 0: no limit.",
    ),
    setting(
        "max-concurrent-queries",
        "0",
        "N",
        "Queries at a time; more are refused. 0: no limit (large ones wait for each other anyway).",
    ),
    setting("query-timeout", "0s", "TIME", "How long a query may run. 0: as long as it takes."),
    setting(
        "query-memory-limit",
        "auto",
        "SIZE",
        "Memory of one query. auto: an eighth of memory-limit. All queries together have a quarter.",
    ),
    setting(
        "query-cache-size",
        "auto",
        "SIZE",
        "Memory for answers that are given again as long as nothing they rest on changes. auto: 1/64 of \
         memory-limit, of which it takes an eighth at most; 0: none are kept.",
    ),
    setting("max-row-limit", "0", "N", "Rows in an answer that is not chunked. 0: no limit."),
    setting("max-select-point", "0", "N", "Points a SELECT may read. 0: no limit."),
    setting("max-select-series", "0", "N", "Series a SELECT may read. 0: no limit."),
    setting(
        "max-select-buckets",
        "0",
        "N",
        "Intervals of GROUP BY time() a SELECT may make. 0: no limit.",
    ),
    setting(
        "retention-autocreate",
        "true",
        "BOOL",
        "Whether a new database gets the retention policy autogen, which keeps rows for ever.",
    ),
    setting(
        "retention-check-interval",
        "30m",
        "TIME",
        "How often rows past their retention are looked for. 0: never.",
    ),
    setting(
        "continuous-query-interval",
        "1s",
        "TIME",
        "How often continuous queries that are due are looked for. 0: never.",
    ),
    setting(
        "shutdown-timeout",
        "20s",
        "TIME",
        "How long requests in flight may go on after SIGTERM or Ctrl-C.",
    ),
    setting(
        "access-log",
        "false",
        "BOOL",
        "Whether each request is logged, at level info, without its passwords.",
    ),
    setting(
        "log-level",
        "info",
        "LEVEL",
        "error, warn, info, debug or trace; also per part, such as warn,nyala::access=info for \
         nothing but an access log.",
    ),
    setting("log-format", "text", "FORMAT", "text for people, json for machines."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_well_formed() {
        let mut names: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(names.iter().all(|n| n.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')));
        assert!(SETTINGS.iter().all(|setting| setting.help.ends_with('.')));
    }
}
