//! PromQL of the query types that it can ask, for servers that store a field `f` of measurement `cpu` as metric
//! `cpu_f`. What returns rows rather than aggregates has no counterpart.

use super::{Choice, QueryType};
use crate::tsbs::CPU_FIELDS;

/// A range query: its text and the grid it is evaluated on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeQuery {
    /// PromQL.
    pub text: String,
    /// First evaluation.
    pub start_s: i64,
    /// Last evaluation.
    pub end_s: i64,
    /// Distance between evaluations.
    pub step_s: i64,
}

/// The same question as [`super::influxql`], or `None` where the language has no way to ask it.
#[must_use]
pub fn range_query(query_type: QueryType, choice: &Choice) -> Option<RangeQuery> {
    let (text, step_s) = match query_type {
        QueryType::SingleGroupby { fields, .. } => {
            let selector = selector(fields, &choice.hosts);
            (format!("max(max_over_time({selector}[1m])) by (__name__)"), 60)
        }
        QueryType::CpuMaxAll { .. } => {
            let selector = selector(CPU_FIELDS.len(), &choice.hosts);
            (format!("max(max_over_time({selector}[1h])) by (__name__)"), 3600)
        }
        QueryType::DoubleGroupby { fields } => {
            let selector = selector(fields, &[]);
            (format!("avg(avg_over_time({selector}[1h])) by (__name__, hostname)"), 3600)
        }
        QueryType::HighCpuOne
        | QueryType::HighCpuAll
        | QueryType::LastPoint
        | QueryType::LastPointBefore
        | QueryType::GroupbyOrderbyLimit
        | QueryType::GroupbyOrderbyLimitDesc => return None,
    };
    Some(RangeQuery { text, start_s: choice.start_s, end_s: choice.end_s, step_s })
}

fn selector(fields: usize, hosts: &[u64]) -> String {
    let hosts: Vec<String> = hosts.iter().map(|host| format!("host_{host}")).collect();
    let hosts = match hosts.as_slice() {
        [] => String::new(),
        [host] => format!("hostname=\"{host}\""),
        several => format!("hostname=~\"{}\"", several.join("|")),
    };
    match &CPU_FIELDS[..fields] {
        [field] => format!("cpu_{field}{{{hosts}}}"),
        several => {
            let separator = if hosts.is_empty() { "" } else { "," };
            format!("{{__name__=~\"cpu_({})\"{separator}{hosts}}}", several.join("|"))
        }
    }
}
