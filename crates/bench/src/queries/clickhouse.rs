//! SQL of ClickHouse that asks what [`super::influxql`] asks, over one wide table of [`TABLE`]'s form.

use super::{Choice, QueryType, calls, host_list};
use crate::tsbs::CPU_FIELDS;

/// Makes the table that cpu-only rows go to: the order of columns is that of [`push_tsv`].
pub const TABLE: &str = "CREATE TABLE cpu (hostname String, region String, datacenter String, \
    rack String, os String, arch String, team String, service String, service_version String, \
    service_environment String, usage_user Int64, usage_system Int64, usage_idle Int64, \
    usage_nice Int64, usage_iowait Int64, usage_irq Int64, usage_softirq Int64, \
    usage_steal Int64, usage_guest Int64, usage_guest_nice Int64, time DateTime) \
    ENGINE = MergeTree() PARTITION BY toYYYYMM(time) ORDER BY (hostname, time)";

/// Digits of the nanoseconds of a time.
const NANOSECOND_DIGITS: usize = 9;

/// Turns lines of the cpu-only workload into the rows that `FORMAT TabSeparated` takes: all have the
/// same tags and fields in the same order, and nothing in them is escaped.
pub fn push_tsv(lines: &[u8], out: &mut Vec<u8>) {
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        let mut in_value = false;
        let mut last_space = 0;
        for (at, byte) in line.iter().enumerate() {
            match byte {
                b'=' => in_value = true,
                b',' | b' ' => {
                    if in_value {
                        // The type of an integer is not written.
                        if out.last() == Some(&b'i') && last_space > 0 {
                            out.pop();
                        }
                        out.push(b'\t');
                    }
                    in_value = false;
                    if *byte == b' ' {
                        last_space = at + 1;
                    }
                }
                _ if in_value => out.push(*byte),
                _ => {}
            }
        }
        let time = line[last_space..].trim_ascii_end();
        out.extend_from_slice(&time[..time.len().saturating_sub(NANOSECOND_DIGITS)]);
        out.push(b'\n');
    }
}

/// One query as SQL.
#[must_use]
pub fn sql(query_type: QueryType, choice: &Choice) -> String {
    let window =
        format!("time >= toDateTime({}) AND time < toDateTime({})", choice.start_s, choice.end_s);
    let hosts = host_list(&choice.hosts);
    let before = format!("time < toDateTime({})", choice.end_s);
    let text = match query_type {
        QueryType::SingleGroupby { fields, .. } => {
            let calls = calls("max", fields);
            format!(
                "SELECT toStartOfMinute(time) AS t, {calls} FROM cpu WHERE {hosts} AND {window} \
                 GROUP BY t ORDER BY t"
            )
        }
        QueryType::CpuMaxAll { .. } => {
            let calls = calls("max", CPU_FIELDS.len());
            format!(
                "SELECT toStartOfHour(time) AS t, {calls} FROM cpu WHERE {hosts} AND {window} \
                 GROUP BY t ORDER BY t"
            )
        }
        QueryType::DoubleGroupby { fields } => {
            let calls = calls("avg", fields);
            format!(
                "SELECT toStartOfHour(time) AS t, hostname, {calls} FROM cpu WHERE {window} \
                 GROUP BY t, hostname ORDER BY hostname, t"
            )
        }
        QueryType::HighCpuOne => {
            format!(
                "SELECT * FROM cpu WHERE usage_user > 90 AND {hosts} AND {window} ORDER BY time"
            )
        }
        QueryType::HighCpuAll => {
            format!("SELECT * FROM cpu WHERE usage_user > 90 AND {window} ORDER BY time")
        }
        QueryType::LastPoint => "SELECT * FROM cpu WHERE (hostname, time) IN \
             (SELECT hostname, max(time) FROM cpu GROUP BY hostname) ORDER BY hostname"
            .to_owned(),
        QueryType::LastPointBefore => format!(
            "SELECT * FROM cpu WHERE (hostname, time) IN (SELECT hostname, max(time) FROM cpu \
             WHERE {before} GROUP BY hostname) ORDER BY hostname"
        ),
        QueryType::GroupbyOrderbyLimit => format!(
            "SELECT toStartOfMinute(time) AS t, max(usage_user) FROM cpu WHERE {before} \
             GROUP BY t ORDER BY t LIMIT 5"
        ),
        QueryType::GroupbyOrderbyLimitDesc => format!(
            "SELECT toStartOfMinute(time) AS t, max(usage_user) FROM cpu WHERE {before} \
             GROUP BY t ORDER BY t DESC LIMIT 5"
        ),
    };
    text + " FORMAT JSONCompact"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Spec, generate_all};

    #[test]
    fn lines_become_rows() {
        let line =
            b"cpu,hostname=host_0,region=eu-i usage_user=58i,usage_system=2i 1451606400000000000\n";
        let mut out = Vec::new();
        push_tsv(line, &mut out);
        assert_eq!(out, b"host_0\teu-i\t58\t2\t1451606400\n");
    }

    #[test]
    fn rows_have_a_value_for_each_column_of_the_table() {
        let spec = Spec { end_ns: crate::workload::TSBS_START_NS + 1, ..Spec::cpu_only(3, 1) };
        let (lines, batch) = generate_all(&spec).unwrap();
        let mut out = Vec::new();
        push_tsv(&lines, &mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count() as u64, batch.rows);
        let columns =
            TABLE.split_once(" (").unwrap().1.split_once(") ").unwrap().0.split(", ").count();
        for row in text.lines() {
            assert_eq!(row.split('\t').count(), columns, "{row}");
            assert!(row.ends_with("\t1451606400"), "{row}");
        }
    }
}
