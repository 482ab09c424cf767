use proptest::prelude::*;

use super::*;

struct Fixed(i64);

impl TimeZone for Fixed {
    fn local_to_utc_s(&self, local_s: i64) -> i64 {
        local_s - self.0
    }
}

fn ns(text: &str) -> Option<i64> {
    parse_time(text, &Utc).map(|t| t.to_ns().expect("in range"))
}

#[test]
fn literals() {
    for (text, expected) in [
        ("1970-01-01", 0),
        ("2000-01-01", 946_684_800_000_000_000),
        ("2000-02-29 01:02:03", 951_786_123_000_000_000),
        ("2000-02-29 1:02:03", 951_786_123_000_000_000),
        ("2000-02-29   01:02:03.5", 951_786_123_500_000_000),
        ("2000-02-29 01:02:03.123456789", 951_786_123_123_456_789),
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1970-01-01T00:00:00.000000001-00:30", 1_800_000_000_001),
        ("1969-12-31T23:59:59.999999999Z", -1),
        ("1900-03-01", -2_203_891_200_000_000_000),
    ] {
        assert_eq!(ns(text), Some(expected), "{text}");
    }
}

#[test]
fn not_literals() {
    for text in [
        "",
        "2000",
        "2000-1-1",
        "2000-13-01",
        "2000-00-01",
        "2001-02-29",
        "1900-02-29",
        "2000-01-00",
        "2000-01-32",
        "2000-01-01 ",
        "2000-01-01 00:00",
        "2000-01-01 24:00:00",
        "2000-01-01 00:60:00",
        "2000-01-01 00:00:60",
        "2000-01-01 00:00:00Z",
        "2000-01-01T00:00:00",
        "2000-01-01T00:00:00z",
        "2000-01-01T00:00:00+2:00",
        "2000-01-01 00:00:00.",
        "2000-01-01 00:00:00.1234567890",
        "2000-01-01x00:00:00",
        "2000-01-01\u{e9}",
        "\u{ff12}000-01-01",
    ] {
        assert_eq!(ns(text), None, "{text}");
    }
}

#[test]
fn zone_applies_to_literals_without_offset_only() {
    let zone = Fixed(3600);
    let at = |text| parse_time(text, &zone).and_then(Timestamp::to_ns);
    assert_eq!(at("1970-01-01"), Some(-3_600_000_000_000));
    assert_eq!(at("1970-01-01 01:00:00"), Some(0));
    assert_eq!(at("1970-01-01T00:00:00Z"), Some(0));
}

#[test]
fn wide_range() {
    let last = parse_time("9999-12-31", &Utc).expect("valid");
    assert_eq!(last.to_ns(), None);
    assert_eq!(last.to_rfc3339_seconds(), "9999-12-31T00:00:00Z");
    let first = parse_time("0000-01-01", &Utc).expect("valid");
    assert_eq!(first.to_string(), "0000-01-01T00:00:00Z");
    assert_eq!(last.since_ns(first), i64::MAX);
    assert_eq!(first.since_ns(last), i64::MIN);
    assert_eq!(Timestamp::from_ns(i64::MIN).to_string(), "1677-09-21T00:12:43.145224192Z");
    assert_eq!(Timestamp::from_ns(i64::MAX).to_string(), "2262-04-11T23:47:16.854775807Z");
}

proptest! {
    #[test]
    fn display_reads_back(ns in any::<i64>()) {
        let t = Timestamp::from_ns(ns);
        prop_assert_eq!(parse_time(&t.to_string(), &Fixed(12_345)), Some(t));
        prop_assert_eq!(t.to_ns(), Some(ns));
    }

    #[test]
    fn days_and_dates_are_inverse(days in -800_000_i64..3_000_000) {
        let (y, m, d) = civil_from_days(days);
        prop_assert_eq!(days_from_civil(y, m, d), days);
        prop_assert!((1..=12).contains(&m) && (1..=days_in_month(y, m)).contains(&d));
        let next = civil_from_days(days + 1);
        prop_assert!(next > (y, m, d));
    }

    #[test]
    fn sums(a in any::<i64>(), b in any::<i64>()) {
        let t = Timestamp::from_ns(a).plus_ns(b);
        prop_assert_eq!(t.to_ns(), a.checked_add(b));
        prop_assert_eq!(t.minus_ns(b).to_ns(), Some(a));
        prop_assert_eq!(t.since_ns(Timestamp::from_ns(a)), b);
    }

    #[test]
    fn any_text(text in "\\PC{0,30}|[0-9:. TZ+-]{0,30}") {
        let _ = parse_time(&text, &Utc);
    }
}
