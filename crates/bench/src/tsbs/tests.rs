use proptest::prelude::*;

use crate::workload::{Batch, SECOND_NS, Spec, SpecError, TSBS_START_NS, Workload, generate_all};

fn spec(workload: Workload, scale: u64, steps: i64) -> Spec {
    Spec {
        workload,
        scale,
        start_ns: TSBS_START_NS,
        end_ns: TSBS_START_NS + steps * 10 * SECOND_NS,
        step_ns: 10 * SECOND_NS,
        seed: 42,
    }
}

fn lines(spec: &Spec) -> (Vec<String>, Batch) {
    let (bytes, total) = generate_all(spec).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    (text.lines().map(str::to_owned).collect(), total)
}

#[test]
fn a_cpu_row_has_the_shape_of_tsbs() {
    let (lines, total) = lines(&spec(Workload::CpuOnly, 3, 4));
    assert_eq!(total, Batch { rows: 12, values: 120 });
    let parts: Vec<&str> = lines[4].split(' ').collect();
    let keys: Vec<&str> =
        parts[0].split(',').skip(1).map(|tag| tag.split('=').next().unwrap()).collect();
    assert!(parts[0].starts_with("cpu,hostname=host_1,region="));
    assert_eq!(
        keys,
        [
            "hostname",
            "region",
            "datacenter",
            "rack",
            "os",
            "arch",
            "team",
            "service",
            "service_version",
            "service_environment"
        ]
    );
    for field in parts[1].split(',') {
        let (name, value) = field.split_once('=').unwrap();
        let value: i64 = value.strip_suffix('i').unwrap().parse().unwrap();
        assert!(name.starts_with("usage_") && (0..=100).contains(&value), "{field}");
    }
    assert_eq!(parts[2], "1451606410000000000");
}

#[test]
fn devops_reports_101_fields_per_host_and_step() {
    let (lines, total) = lines(&spec(Workload::Devops, 2, 3));
    assert_eq!(total, Batch { rows: 2 * 9 * 3, values: 2 * 101 * 3 });
    let names: Vec<&str> =
        lines.iter().step_by(2).take(9).map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(
        names,
        ["cpu", "diskio", "disk", "kernel", "mem", "net", "nginx", "postgresl", "redis"]
    );
}

#[test]
fn trucks_are_incomplete_and_late() {
    let (lines, total) = lines(&spec(Workload::Iot, 20, 100));
    assert_eq!(total.rows, lines.len() as u64);
    assert!(lines.len() > 3800 && lines.len() < 4000, "{}", lines.len());
    assert!(lines.iter().any(|line| !line.contains("name=truck_")));
    assert!(lines.iter().any(|line| line.starts_with("readings") && !line.contains("longitude=")));
    let times: Vec<i64> =
        lines.iter().map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
    assert!(times.windows(2).any(|pair| pair[1] < pair[0]), "no late row");
    let distinct: std::collections::HashSet<&String> = lines.iter().collect();
    assert_eq!(distinct.len(), lines.len(), "a row was sent twice");
}

#[test]
fn mistaken_sizes_are_refused() {
    let mut wrong = spec(Workload::CpuOnly, 0, 1);
    assert!(matches!(wrong.generator(), Err(SpecError::Scale { got: 0, .. })));
    wrong.scale = 1;
    wrong.step_ns = 0;
    assert_eq!(wrong.generator().err(), Some(SpecError::Step(0)));
    wrong.step_ns = 1;
    wrong.end_ns = wrong.start_ns;
    assert!(matches!(wrong.generator(), Err(SpecError::Range { .. })));
    assert!(matches!("tsbs".parse::<Workload>(), Err(SpecError::UnknownWorkload(_))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// The size of batches does not change the data, the counts are right, the seed matters.
    #[test]
    fn batches_only_cut(kind in 0usize..Workload::ALL.len(), scale in 1u64..20, steps in 1i64..20, batch_rows in 1u64..50, seed in any::<u64>()) {
        let mut spec = spec(Workload::ALL[kind].1, scale, steps);
        spec.seed = seed;
        let (whole, total) = generate_all(&spec).unwrap();
        let mut generator = spec.generator().unwrap();
        let (mut pieces, mut sum) = (Vec::new(), Batch::default());
        loop {
            let before = pieces.len();
            let batch = generator.fill(batch_rows, &mut pieces);
            let lines = pieces[before..].iter().filter(|&&byte| byte == b'\n').count();
            prop_assert_eq!(batch.rows, lines as u64);
            prop_assert!(batch.rows <= batch_rows);
            if batch.rows == 0 { break; }
            sum += batch;
        }
        prop_assert_eq!(&whole, &pieces);
        prop_assert_eq!(total, sum);
        let fields = whole.split(|&byte| byte == b'\n').filter(|line| !line.is_empty())
            .map(|line| line.split(|&byte| byte == b' ').nth(1).unwrap().split(|&byte| byte == b',').count()).sum::<usize>();
        prop_assert_eq!(fields as u64, total.values);
        spec.seed = seed.wrapping_add(1);
        prop_assert_ne!(whole, generate_all(&spec).unwrap().0);
    }
}
