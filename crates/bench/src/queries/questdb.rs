//! SQL of QuestDB that asks what [`super::influxql`] asks, over a table `cpu` made from line protocol: tags are
//! symbols, the time is `timestamp`.

use super::{Choice, QueryType, calls, date, host_list};
use crate::tsbs::CPU_FIELDS;

/// One query as SQL.
#[must_use]
pub fn sql(query_type: QueryType, choice: &Choice) -> String {
    let window =
        format!("timestamp >= '{}' AND timestamp < '{}'", date(choice.start_s), date(choice.end_s));
    let hosts = host_list(&choice.hosts);
    let end = date(choice.end_s);
    match query_type {
        QueryType::SingleGroupby { fields, .. } => {
            let calls = calls("max", fields);
            format!("SELECT timestamp, {calls} FROM cpu WHERE {hosts} AND {window} SAMPLE BY 1m")
        }
        QueryType::CpuMaxAll { .. } => {
            let calls = calls("max", CPU_FIELDS.len());
            format!("SELECT timestamp, {calls} FROM cpu WHERE {hosts} AND {window} SAMPLE BY 1h")
        }
        QueryType::DoubleGroupby { fields } => {
            let calls = calls("avg", fields);
            format!("SELECT timestamp, hostname, {calls} FROM cpu WHERE {window} SAMPLE BY 1h")
        }
        QueryType::HighCpuOne => {
            format!("SELECT * FROM cpu WHERE usage_user > 90 AND {hosts} AND {window}")
        }
        QueryType::HighCpuAll => format!("SELECT * FROM cpu WHERE usage_user > 90 AND {window}"),
        QueryType::LastPoint => {
            "SELECT * FROM cpu LATEST ON timestamp PARTITION BY hostname".to_owned()
        }
        QueryType::LastPointBefore => format!(
            "SELECT * FROM cpu WHERE timestamp < '{end}' LATEST ON timestamp PARTITION BY hostname"
        ),
        QueryType::GroupbyOrderbyLimit => format!(
            "SELECT timestamp, max(usage_user) FROM cpu WHERE timestamp < '{end}' SAMPLE BY 1m LIMIT 5"
        ),
        QueryType::GroupbyOrderbyLimitDesc => format!(
            "SELECT timestamp, max(usage_user) FROM cpu WHERE timestamp < '{end}' SAMPLE BY 1m \
             ORDER BY timestamp DESC LIMIT 5"
        ),
    }
}
