use super::*;
use proptest::prelude::*;

const HOUR: i64 = 3_600_000_000_000;

fn naive(time: i64, every: i64, offset: i64) -> (i128, i128) {
    let (t, e, o) = (i128::from(time), i128::from(every), i128::from(offset));
    let k = (t - o).div_euclid(e);
    (k * e + o, (k + 1) * e + o)
}

proptest! {
    #[test]
    fn regular_windows_are_arithmetic(
        time in MIN_TIME_NS..=MAX_TIME_NS,
        every in prop_oneof![1i64..100, Just(HOUR), 1i64..=i64::MAX],
        offset in any::<i64>(),
    ) {
        let windows = Windows::new(every, offset, None);
        let window = windows.at(time);
        let (start, end) = naive(time, every, offset);
        prop_assert_eq!(i128::from(window.start), start.max(i128::from(MIN_TIME_NS)));
        prop_assert_eq!(i128::from(window.end), end.min(i128::from(i64::MAX)));
        prop_assert!(window.start <= time && time < window.end);
    }

    #[test]
    fn neighbours_touch(
        time in -1_000_000 * HOUR..1_000_000 * HOUR,
        every in prop_oneof![1i64..100 * HOUR, Just(HOUR / 2), Just(2 * HOUR), Just(24 * HOUR)],
        offset in prop_oneof![Just(0), Just(6 * HOUR), -HOUR..HOUR],
        zone in prop::sample::select(vec![
            None,
            Some("Europe/Berlin"),
            Some("Asia/Kolkata"),
            Some("America/Los_Angeles"),
            Some("Australia/Lord_Howe"),
        ]),
    ) {
        let zone = zone.map(|name| Arc::new(Zone::load(name).unwrap()));
        let windows = Windows::new(every, offset, zone);
        let window = windows.at(time);
        prop_assert!(window.start <= time && time < window.end, "{window:?} {time}");
        let next = windows.after(window).unwrap();
        prop_assert!(next.start > window.start && next.end > window.end);
        let before = windows.before(window).unwrap();
        prop_assert!(before.start < window.start);
    }
}

#[test]
fn days_of_a_zone_start_at_midnight() {
    let zone = Arc::new(Zone::load("America/Los_Angeles").unwrap());
    let windows = Windows::new(24 * HOUR, 0, Some(zone));
    // 2000-10-29 was 25 hours long: from 07:00Z to 08:00Z of the next day.
    let start = 972_802_800_000_000_000;
    let window = windows.at(start + HOUR);
    assert_eq!(window, Window { start, end: start + 25 * HOUR });
    assert_eq!(windows.at(start + 20 * HOUR), window);
    let next = windows.after(window).unwrap();
    assert_eq!(next, Window { start: start + 25 * HOUR, end: start + 49 * HOUR });
    assert_eq!(windows.before(next), Some(window));
    // 2000-04-02 was 23 hours long: from 08:00Z to 07:00Z.
    let start = 954_662_400_000_000_000;
    assert_eq!(windows.at(start + 12 * HOUR), Window { start, end: start + 23 * HOUR });
}

/// The hour that comes twice belongs to the window before it, whichever way one goes.
#[test]
fn windows_are_the_same_in_both_directions() {
    let zone = Arc::new(Zone::load("Europe/Berlin").unwrap());
    for every in [HOUR / 2, HOUR, 2 * HOUR, 3 * HOUR, 24 * HOUR] {
        let windows = Windows::new(every, 0, Some(Arc::clone(&zone)));
        // 2020-10-25 was 25 hours long, 2020-03-29 23: from 22:00Z and 23:00Z.
        for midnight in [1_603_576_800_000_000_000, 1_585_436_400_000_000_000] {
            let mut window = windows.at(midnight);
            for _ in 0..60 {
                let next = windows.after(window).unwrap();
                assert_eq!(windows.before(next), Some(window), "{every} {midnight}");
                window = next;
            }
        }
    }
}

/// Edges of `time(1d, 6h)`: six o'clock on the local clock, also after a change of it.
#[test]
fn an_offset_is_added_to_local_midnight() {
    for (zone, edges) in [
        ("America/Los_Angeles", [972_738_000, 972_828_000, 972_914_400, 973_000_800]),
        ("Europe/Berlin", [972_705_600, 972_795_600, 972_882_000, 972_968_400]),
    ] {
        let zone = Arc::new(Zone::load(zone).unwrap());
        let windows = Windows::new(24 * HOUR, 6 * HOUR, Some(zone));
        let mut window = windows.at(edges[0] * 1_000_000_000);
        for edge in edges {
            assert_eq!(window.start, edge * 1_000_000_000);
            window = windows.after(window).unwrap();
        }
    }
}

#[test]
fn ends_of_time_do_not_overflow() {
    let windows = Windows::new(HOUR, 5, None);
    let first = windows.at(MIN_TIME_NS);
    assert_eq!(first.start, MIN_TIME_NS);
    assert_eq!(windows.before(first), None);
    let last = windows.at(MAX_TIME_NS);
    assert_eq!(windows.after(last), None);
}
