use proptest::prelude::*;

use super::promql::range_query;
use super::*;

#[test]
fn texts_are_those_of_tsbs() {
    let choice = Choice { hosts: vec![49], start_s: 1_451_824_006, end_s: 1_451_827_606 };
    let single = QueryType::SingleGroupby { fields: 2, hosts: 1, hours: 1 };
    assert_eq!(
        influxql(single, &choice),
        "SELECT max(usage_user), max(usage_system) from cpu where (hostname = 'host_49') and \
         time >= '2016-01-03T12:26:46Z' and time < '2016-01-03T13:26:46Z' group by time(1m)"
    );
    assert_eq!(
        influxql(QueryType::LastPoint, &choice),
        "SELECT * from cpu group by \"hostname\" order by time desc limit 1"
    );
    let double = range_query(QueryType::DoubleGroupby { fields: 1 }, &choice).unwrap();
    assert_eq!(double.text, "avg(avg_over_time(cpu_usage_user{}[1h])) by (__name__, hostname)");
    let eight = Choice { hosts: vec![1, 2], ..choice };
    assert_eq!(
        range_query(QueryType::SingleGroupby { fields: 2, hosts: 2, hours: 1 }, &eight)
            .unwrap()
            .text,
        "max(max_over_time({__name__=~\"cpu_(usage_user|usage_system)\",hostname=~\"host_1|host_2\"}[1m])) \
         by (__name__)"
    );
    assert_eq!(range_query(QueryType::HighCpuAll, &eight), None);
}

#[test]
fn names_are_read_and_data_must_be_large_enough() {
    for (name, query_type) in TSBS_TYPES.iter().chain(&EXTRA_TYPES) {
        assert_eq!(name.parse::<QueryType>(), Ok(*query_type));
    }
    assert!("single".parse::<QueryType>().unwrap_err().to_string().contains("cpu-max-all-8"));
    let short = Spec::cpu_only(8, 1);
    let hour = QueryType::SingleGroupby { fields: 1, hosts: 1, hours: 1 };
    assert!(matches!(QueryGenerator::new(hour, &short, 1), Err(QueryError::WindowTooLong { .. })));
    let few = Spec::cpu_only(7, 24);
    let eight = QueryType::CpuMaxAll { hosts: 8 };
    assert!(matches!(QueryGenerator::new(eight, &few, 1), Err(QueryError::TooFewHosts { .. })));
}

proptest! {
    #[test]
    fn choices_lie_inside_the_data(seed in any::<u64>(), kind in 0usize..15) {
        let data = Spec::cpu_only(8, 13);
        let mut generator = QueryGenerator::new(TSBS_TYPES[kind].1, &data, seed).unwrap();
        let choice = generator.choose();
        prop_assert!(choice.start_s * SECOND_NS >= data.start_ns && choice.end_s * SECOND_NS <= data.end_ns);
        prop_assert!(choice.hosts.iter().all(|host| *host < 8));
        let distinct: std::collections::HashSet<&u64> = choice.hosts.iter().collect();
        prop_assert_eq!(distinct.len(), choice.hosts.len());
    }
}
