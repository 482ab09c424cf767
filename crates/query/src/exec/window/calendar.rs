//! Windows of calendar months: they begin at local midnight of a first day.
//!
//! Months are counted from January of the year 0, so that windows of 3 months are quarters and
//! those of 12 months are years. All functions are pure.

use model::MIN_TIME_NS;

use super::Window;
use crate::zone::Zone;

/// Shorter than any month, so that a count of windows from it is never too small.
const MONTH_MIN_NS: i64 = 27 * 86_400_000_000_000;

/// A length that no window of `months` months is shorter than.
pub(super) fn shortest_ns(months: u32) -> i64 {
    i64::from(months).saturating_mul(MONTH_MIN_NS)
}

/// The number of the window of `months` months that holds `time_ns`.
pub(super) fn index(time_ns: i64, months: u32, zone: &Zone) -> i64 {
    let at = zone.month_at(time_ns).div_euclid(i64::from(months));
    // Where clocks are set back over the end of a month, its last minutes come twice.
    match time_ns {
        time if time < start(at, months, zone) => at - 1,
        time if time >= start(at + 1, months, zone) => at + 1,
        _ => at,
    }
}

/// Where window number `index` starts.
fn start(index: i64, months: u32, zone: &Zone) -> i64 {
    zone.month_start_ns(index.saturating_mul(i64::from(months)))
}

/// The window of `months` months that holds `time_ns`.
pub(super) fn window(time_ns: i64, months: u32, zone: &Zone) -> Window {
    let at = index(time_ns, months, zone);
    Window {
        start: start(at, months, zone).max(MIN_TIME_NS).min(time_ns),
        end: start(at + 1, months, zone).max(time_ns.saturating_add(1)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::super::Windows;
    use super::*;

    const DAY: i64 = 86_400_000_000_000;

    fn ns(text: &str) -> i64 {
        influxql::time::parse_time(text, &influxql::Utc).unwrap().to_ns().unwrap()
    }

    fn zone(name: &str) -> Option<Arc<Zone>> {
        Some(Arc::new(Zone::load(name).unwrap()))
    }

    #[test]
    fn months_quarters_and_years() {
        for (months, time, start, end) in [
            (1, "2024-02-29T12:00:00Z", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"),
            (1, "2024-02-01T00:00:00Z", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"),
            (1, "1969-12-31T23:59:59Z", "1969-12-01T00:00:00Z", "1970-01-01T00:00:00Z"),
            (3, "2023-08-15T00:00:00Z", "2023-07-01T00:00:00Z", "2023-10-01T00:00:00Z"),
            (12, "2023-08-15T00:00:00Z", "2023-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
            (120, "2023-08-15T00:00:00Z", "2020-01-01T00:00:00Z", "2030-01-01T00:00:00Z"),
        ] {
            let windows = Windows::calendar(months, None);
            assert_eq!(windows.at(ns(time)), Window { start: ns(start), end: ns(end) }, "{time}");
        }
    }

    #[test]
    fn months_begin_at_local_midnight() {
        let windows = Windows::calendar(1, zone("Europe/Berlin"));
        let march = windows.at(ns("2024-03-15T00:00:00Z"));
        assert_eq!(march.start, ns("2024-02-29T23:00:00Z"));
        assert_eq!(march.end, ns("2024-03-31T22:00:00Z"), "an hour of summer time is missing");
        assert_eq!(windows.after(march).unwrap().start, march.end);
        assert_eq!(windows.before(march).unwrap().end, march.start);
    }

    #[test]
    fn counts_and_moves_by_windows() {
        let windows = Windows::calendar(3, None);
        let (from, to) = (ns("2023-01-01T00:00:00Z"), ns("2024-10-01T00:00:00Z"));
        assert_eq!(windows.steps(from, to), 7);
        assert_eq!(windows.moved(ns("2024-05-31T06:00:00Z"), -1), ns("2024-02-29T06:00:00Z"));
        assert_eq!(windows.moved(to, -7), from);
        let fixed = Windows::new(60, 0, None);
        assert_eq!((fixed.steps(-60, 180), fixed.moved(5, -2)), (4, -115));
    }

    proptest! {
        #[test]
        fn windows_hold_their_time_and_follow_one_another(
            time in any::<i64>(),
            months in 1u32..40,
            name in prop::sample::select(vec![
                "UTC", "Europe/Berlin", "America/Sao_Paulo", "Asia/Gaza", "Pacific/Apia",
                "America/Havana", "Africa/Cairo",
            ]),
        ) {
            let windows = Windows::calendar(months, zone(name));
            let window = windows.at(time);
            prop_assert!(window.start <= time && time < window.end || time == i64::MAX);
            let whole = window.start > MIN_TIME_NS && window.end < i64::MAX - 400 * DAY;
            if whole {
                prop_assert!(window.end - window.start >= shortest_ns(months));
                prop_assert_eq!(windows.at(window.start), window);
                prop_assert_eq!(windows.at(window.end - 1), window);
                let next = windows.after(window).unwrap();
                prop_assert_eq!(next.start, window.end);
                prop_assert_eq!(windows.steps(window.start, next.start), 1);
            }
        }
    }
}
