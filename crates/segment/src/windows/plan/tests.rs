use model::SeriesId;
use proptest::prelude::*;

use std::sync::Arc;

use super::*;
use crate::runs::Runs;
use crate::windows::WindowIndex;

fn rows() -> impl Strategy<Value = (Vec<(SeriesId, u32)>, Vec<i64>)> {
    let step = prop_oneof![1i64..1_000_000_000, 1i64..100_000_000_000_000];
    let run = (1u32..300, -1_000_000_000_000_000i64..1_000_000_000_000_000, step);
    prop::collection::vec(run, 1..6).prop_map(|parts| {
        let mut times = Vec::new();
        let mut runs = Vec::new();
        for (series, (rows, start, step)) in parts.into_iter().enumerate() {
            runs.push((SeriesId(series as u64), rows));
            times.extend((0..i64::from(rows)).map(|row| start + row * step));
        }
        (runs, times)
    })
}

proptest! {
    #[test]
    fn spans_are_the_rows_of_a_series_in_a_window((runs, times) in rows(), rows_min in 1u32..100) {
        let Some(plan) = WindowPlan::choose(&runs, &times, rows_min) else {
            // The longest windows would not do either.
            let spans = spans_at_most(&runs, &times, LADDER_NS[LADDER_NS.len() - 1]);
            prop_assert!(spans > (times.len() / rows_min as usize) as u64);
            return Ok(());
        };
        prop_assert!(plan.ends.len() <= times.len() / rows_min as usize);
        prop_assert!(plan.ends.len() as u64 <= spans_at_most(&runs, &times, plan.window_ns));
        let mut expected: Vec<(SeriesId, i64, u32)> = Vec::new();
        let series = runs.iter().flat_map(|(s, n)| std::iter::repeat_n(*s, *n as usize));
        for (series, time) in series.zip(&times) {
            let window = time.div_euclid(plan.window_ns);
            match expected.last_mut() {
                Some((s, w, n)) if (*s, *w) == (series, window) => *n += 1,
                _ => expected.push((series, window, 1)),
            }
        }
        let ends: Vec<u32> = expected.iter().scan(0, |end, (_, _, n)| { *end += n; Some(*end) }).collect();
        prop_assert_eq!(&plan.ends, &ends);
        prop_assert_eq!(plan.windows, expected.iter().map(|e| e.1).collect::<Vec<_>>());
    }
}

#[test]
fn windows_never_reach_beyond_time() {
    let runs = [(SeriesId(1), 2)];
    assert_eq!(WindowPlan::cut(&runs, &[i64::MIN + 2, 0], 86_400_000_000_000), None);
    assert_eq!(WindowPlan::cut(&runs, &[0, i64::MAX - 1], 86_400_000_000_000), None);
}

#[test]
fn the_ladder_ascends_by_multiples() {
    assert!(LADDER_NS.windows(2).all(|w| w[0] < w[1] && w[1] % w[0] == 0));
}

proptest! {
    #[test]
    fn only_spans_inside_of_series_are_accepted(
        first in 1u32..10, second in 1u32..10, lens in prop::collection::vec(0u32..6, 1..8),
        fitting in any::<bool>(),
    ) {
        let mut ends: Vec<u32> =
            lens.iter().scan(0, |end, len| { *end += len; Some(*end) }).collect();
        if fitting {
            ends.extend([first, first + second]);
            ends.retain(|end| (1..=first + second).contains(end));
            ends.sort_unstable();
            ends.dedup();
        }
        let windows = (0..ends.len() as i64).collect();
        let plan = WindowPlan { window_ns: 1000, windows, ends };
        let mut bytes = Vec::new();
        plan.encode(Effort::Hot, &mut bytes);
        let mut runs = Vec::new();
        Runs::encode(&[(SeriesId(1), first), (SeriesId(2), second)], Effort::Hot, &mut runs);
        let rows = first + second;
        let runs = Arc::new(Runs::decode(&runs, rows, (SeriesId(1), SeriesId(2))).unwrap());
        let decoded = WindowIndex::decode(&bytes, rows, runs);
        let valid = plan.ends.is_sorted_by(|a, b| a < b)
            && plan.ends[0] > 0
            && plan.ends.contains(&first)
            && plan.ends.last() == Some(&rows);
        prop_assert_eq!(decoded.is_ok(), valid);
        let Ok(index) = decoded else { return Ok(()) };
        let found: Vec<u32> = (0..index.len()).map(|span| index.rows(span).end as u32).collect();
        prop_assert_eq!(&found, &plan.ends);
        for span in 0..index.len() {
            prop_assert_eq!(index.series(span).0, 1 + u64::from(index.rows(span).start as u32 >= first));
            prop_assert_eq!(index.start_ns(span), span as i64 * 1000);
        }
    }
}
