//! The fifteen TSBS query types as InfluxQL, with hosts and windows drawn at random inside the data.
//!
//! The PromQL and the SQL that answer the same question, where there is one, are in [`promql`] and [`questdb`].

use std::fmt::Write as _;
use std::str::FromStr;

use jiff::Timestamp;
use thiserror::Error;

use crate::random::Random;
use crate::tsbs::CPU_FIELDS;
use crate::workload::{HOUR_NS, SECOND_NS, Spec};

pub mod clickhouse;
pub mod promql;
pub mod questdb;

#[cfg(test)]
mod tests;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryType {
    /// max of M fields of H hosts over T hours by 1 minute.
    SingleGroupby {
        /// M.
        fields: usize,
        /// H.
        hosts: u64,
        /// T.
        hours: i64,
    },
    /// max of all ten fields of some hosts over 8 hours by 1 hour.
    CpuMaxAll {
        /// Number of hosts.
        hosts: u64,
    },
    /// mean of some fields of every host over 12 hours by 1 hour and host.
    DoubleGroupby {
        /// Number of fields.
        fields: usize,
    },
    /// Rows of one host with a busy CPU in 12 hours.
    HighCpuOne,
    /// Rows of all hosts with a busy CPU in 12 hours.
    HighCpuAll,
    /// The newest row of every host: always the same question.
    LastPoint,
    /// The newest row of every host before a time.
    LastPointBefore,
    /// The first five minutes before a time, which without ORDER BY are the oldest of all.
    GroupbyOrderbyLimit,
    /// The last five minutes before a time: what users mean by the former.
    GroupbyOrderbyLimitDesc,
}

/// The fifteen types of TSBS under their names.
pub const TSBS_TYPES: [(&str, QueryType); 15] = [
    ("single-groupby-1-1-1", QueryType::SingleGroupby { fields: 1, hosts: 1, hours: 1 }),
    ("single-groupby-1-1-12", QueryType::SingleGroupby { fields: 1, hosts: 1, hours: 12 }),
    ("single-groupby-1-8-1", QueryType::SingleGroupby { fields: 1, hosts: 8, hours: 1 }),
    ("single-groupby-5-1-1", QueryType::SingleGroupby { fields: 5, hosts: 1, hours: 1 }),
    ("single-groupby-5-1-12", QueryType::SingleGroupby { fields: 5, hosts: 1, hours: 12 }),
    ("single-groupby-5-8-1", QueryType::SingleGroupby { fields: 5, hosts: 8, hours: 1 }),
    ("cpu-max-all-1", QueryType::CpuMaxAll { hosts: 1 }),
    ("cpu-max-all-8", QueryType::CpuMaxAll { hosts: 8 }),
    ("double-groupby-1", QueryType::DoubleGroupby { fields: 1 }),
    ("double-groupby-5", QueryType::DoubleGroupby { fields: 5 }),
    ("double-groupby-all", QueryType::DoubleGroupby { fields: 10 }),
    ("high-cpu-1", QueryType::HighCpuOne),
    ("high-cpu-all", QueryType::HighCpuAll),
    ("lastpoint", QueryType::LastPoint),
    ("groupby-orderby-limit", QueryType::GroupbyOrderbyLimit),
];

/// Types that TSBS does not have.
pub const EXTRA_TYPES: [(&str, QueryType); 2] = [
    ("lastpoint-before", QueryType::LastPointBefore),
    ("groupby-orderby-limit-desc", QueryType::GroupbyOrderbyLimitDesc),
];

const CPU_MAX_ALL_HOURS: i64 = 8;
const DOUBLE_GROUPBY_HOURS: i64 = 12;
const HIGH_CPU_HOURS: i64 = 12;
/// Types that ask for what is before a time choose one at least this far into the data.
const BEFORE_HOURS: i64 = 1;

/// A mistake in what was asked for.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum QueryError {
    /// No type has this name.
    #[error("unknown query type {0:?}: use one of {names}", names = names())]
    UnknownType(String),
    /// The windows of this type do not fit.
    #[error("the data spans {span_hours} h, but the query type needs more than {hours} h")]
    WindowTooLong {
        /// Hours of a window.
        hours: i64,
        /// Hours of data.
        span_hours: i64,
    },
    /// Distinct hosts cannot be drawn.
    #[error("the query type needs {hosts} hosts, the data has {scale}")]
    TooFewHosts {
        /// Hosts of a query.
        hosts: u64,
        /// Hosts of the data.
        scale: u64,
    },
    /// The data lies outside of the years that can be printed.
    #[error("time {0} ns cannot be printed as a date")]
    Time(i64),
}

fn names() -> String {
    let all: Vec<&str> = TSBS_TYPES.iter().chain(&EXTRA_TYPES).map(|(name, _)| *name).collect();
    all.join(", ")
}

impl FromStr for QueryType {
    type Err = QueryError;

    fn from_str(name: &str) -> Result<Self, QueryError> {
        let found = TSBS_TYPES.iter().chain(&EXTRA_TYPES).find(|(known, _)| *known == name);
        found
            .map(|(_, query_type)| *query_type)
            .ok_or_else(|| QueryError::UnknownType(name.to_owned()))
    }
}

impl QueryType {
    /// Length of the time window, or of the data that must precede the chosen time.
    #[must_use]
    pub fn window_hours(self) -> i64 {
        match self {
            Self::SingleGroupby { hours, .. } => hours,
            Self::CpuMaxAll { .. } => CPU_MAX_ALL_HOURS,
            Self::DoubleGroupby { .. } => DOUBLE_GROUPBY_HOURS,
            Self::HighCpuOne | Self::HighCpuAll => HIGH_CPU_HOURS,
            Self::LastPointBefore | Self::GroupbyOrderbyLimit | Self::GroupbyOrderbyLimitDesc => {
                BEFORE_HOURS
            }
            Self::LastPoint => 0,
        }
    }

    fn hosts(self) -> u64 {
        match self {
            Self::SingleGroupby { hosts, .. } | Self::CpuMaxAll { hosts } => hosts,
            Self::HighCpuOne => 1,
            _ => 0,
        }
    }
}

/// The random part of one query: which hosts, which time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Numbers of distinct hosts.
    pub hosts: Vec<u64>,
    /// Start of the window, in whole seconds.
    pub start_s: i64,
    /// End of the window, exclusive.
    pub end_s: i64,
}

/// Draws queries of one type over one data set.
#[derive(Debug)]
pub struct QueryGenerator {
    query_type: QueryType,
    scale: u64,
    start_s: i64,
    end_s: i64,
    random: Random,
}

impl QueryGenerator {
    /// Queries over the data of `data`, repeatable by `seed`.
    ///
    /// # Errors
    /// When the data is too small for the type.
    pub fn new(query_type: QueryType, data: &Spec, seed: u64) -> Result<Self, QueryError> {
        let span_ns = data.end_ns.saturating_sub(data.start_ns);
        let hours = query_type.window_hours();
        if span_ns <= hours.saturating_mul(HOUR_NS) {
            return Err(QueryError::WindowTooLong { hours, span_hours: span_ns / HOUR_NS });
        }
        if query_type.hosts() > data.scale {
            return Err(QueryError::TooFewHosts { hosts: query_type.hosts(), scale: data.scale });
        }
        for time_ns in [data.start_ns, data.end_ns] {
            Timestamp::from_second(time_ns.div_euclid(SECOND_NS))
                .map_err(|_| QueryError::Time(time_ns))?;
        }
        Ok(Self {
            query_type,
            scale: data.scale,
            start_s: data.start_ns.div_euclid(SECOND_NS),
            end_s: data.end_ns.div_euclid(SECOND_NS),
            random: Random::new(seed),
        })
    }

    /// Draws hosts and a window.
    pub fn choose(&mut self) -> Choice {
        let window_s = self.query_type.window_hours() * 3600;
        let room_s = self.end_s - self.start_s - window_s;
        let start_s = self.start_s + self.random.below(room_s.unsigned_abs()) as i64;
        let mut hosts: Vec<u64> = Vec::new();
        while (hosts.len() as u64) < self.query_type.hosts() {
            let host = self.random.below(self.scale);
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        Choice { hosts, start_s, end_s: start_s + window_s }
    }

    /// Draws the next query.
    pub fn next_influxql(&mut self) -> String {
        let choice = self.choose();
        influxql(self.query_type, &choice)
    }
}

/// One query as InfluxQL.
#[must_use]
pub fn influxql(query_type: QueryType, choice: &Choice) -> String {
    let window = window(choice);
    let hosts = hosts_condition(&choice.hosts);
    let end = date(choice.end_s);
    match query_type {
        QueryType::SingleGroupby { fields, .. } => {
            let calls = calls("max", fields);
            format!("SELECT {calls} from cpu where {hosts} and {window} group by time(1m)")
        }
        QueryType::CpuMaxAll { .. } => {
            let calls = calls("max", CPU_FIELDS.len());
            format!("SELECT {calls} from cpu where {hosts} and {window} group by time(1h)")
        }
        QueryType::DoubleGroupby { fields } => {
            let calls = calls("mean", fields);
            format!("SELECT {calls} from cpu where {window} group by time(1h),hostname")
        }
        QueryType::HighCpuOne => {
            format!("SELECT * from cpu where usage_user > 90.0 and {hosts} and {window}")
        }
        QueryType::HighCpuAll => format!("SELECT * from cpu where usage_user > 90.0 and {window}"),
        QueryType::LastPoint => {
            "SELECT * from cpu group by \"hostname\" order by time desc limit 1".to_owned()
        }
        QueryType::LastPointBefore => format!(
            "SELECT * from cpu where time < '{end}' group by \"hostname\" order by time desc limit 1"
        ),
        QueryType::GroupbyOrderbyLimit => {
            format!(
                "SELECT max(usage_user) from cpu WHERE time < '{end}' group by time(1m) limit 5"
            )
        }
        QueryType::GroupbyOrderbyLimitDesc => format!(
            "SELECT max(usage_user) from cpu WHERE time < '{end}' group by time(1m) ORDER BY time DESC LIMIT 5"
        ),
    }
}

fn calls(function: &str, fields: usize) -> String {
    let calls: Vec<String> =
        CPU_FIELDS[..fields].iter().map(|name| format!("{function}({name})")).collect();
    calls.join(", ")
}

/// The hosts as SQL's list.
fn host_list(hosts: &[u64]) -> String {
    let hosts: Vec<String> = hosts.iter().map(|host| format!("'host_{host}'")).collect();
    format!("hostname IN ({})", hosts.join(", "))
}

fn hosts_condition(hosts: &[u64]) -> String {
    let mut condition = String::from("(");
    for (index, host) in hosts.iter().enumerate() {
        let or = if index == 0 { "" } else { " or " };
        write!(condition, "{or}hostname = 'host_{host}'").expect("BUG: a String takes every write");
    }
    condition.push(')');
    condition
}

fn window(choice: &Choice) -> String {
    format!("time >= '{}' and time < '{}'", date(choice.start_s), date(choice.end_s))
}

fn date(time_s: i64) -> String {
    Timestamp::from_second(time_s)
        .expect("BUG: the bounds were checked when the generator was made")
        .to_string()
}
