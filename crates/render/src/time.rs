//! Times as RFC 3339 text. The date is worked out once a day of rows, not once a row.

use crate::ZoneOffset;
use crate::digits::LastNumber;
use crate::output::Output;

const DAY_S: i64 = 86_400;
/// Length of a quoted time of whole seconds in UTC.
const WHOLE_UTC: usize = 22;

/// Writes times of one statement.
#[derive(Clone, Debug)]
pub(crate) struct TimeWriter {
    zone: Option<ZoneOffset>,
    /// The second that the zone was asked for last, and its answer.
    zone_at: (i64, i64),
    /// The day (of local time) whose date is in `text`.
    day: i64,
    /// `"yyyy-mm-ddThh:mm:ssZ"` with quotes.
    text: [u8; WHOLE_UTC],
    /// The number that was written last: rows of many series have the same times.
    number: LastNumber,
}

impl TimeWriter {
    pub(crate) fn new(zone: Option<ZoneOffset>) -> Self {
        let text = *b"\"1970-01-01T00:00:00Z\"";
        Self { zone, zone_at: (i64::MIN, 0), day: 0, text, number: LastNumber::new(0) }
    }

    /// Writes a time that is a number by now.
    #[inline]
    pub(crate) fn push_number(&mut self, out: &mut impl Output, number: i64) {
        let (bytes, len) = self.number.digits(number);
        out.put_first(bytes, len);
    }

    /// Writes a time with quotes.
    pub(crate) fn push(&mut self, out: &mut impl Output, time_ns: i64) {
        let second = time_ns.div_euclid(1_000_000_000);
        let fraction_ns = time_ns.rem_euclid(1_000_000_000) as u32;
        let offset_s = self.offset_s(second, time_ns);
        let local = second + offset_s;
        let day = local.div_euclid(DAY_S);
        if day != self.day {
            self.set_day(day);
        }
        let of_day = local.rem_euclid(DAY_S) as u32;
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        self.text[12..14].copy_from_slice(&pair(hour));
        self.text[15..17].copy_from_slice(&pair(minute));
        self.text[18..20].copy_from_slice(&pair(second));
        if fraction_ns == 0 && offset_s == 0 {
            out.put(&self.text);
            return;
        }
        out.put(&self.text[..20]);
        if fraction_ns != 0 {
            push_fraction(out, fraction_ns);
        }
        push_zone(out, offset_s);
        out.put(b"\"");
    }

    fn offset_s(&mut self, second: i64, time_ns: i64) -> i64 {
        let Some(zone) = &self.zone else { return 0 };
        if self.zone_at.0 != second {
            self.zone_at = (second, i64::from(zone.offset_s(time_ns)));
        }
        self.zone_at.1
    }

    fn set_day(&mut self, day: i64) {
        self.day = day;
        let (year, month, day) = civil(day);
        self.text[1..3].copy_from_slice(&pair(year / 100));
        self.text[3..5].copy_from_slice(&pair(year % 100));
        self.text[6..8].copy_from_slice(&pair(month));
        self.text[9..11].copy_from_slice(&pair(day));
    }
}

/// Two digits of a number below 100.
fn pair(n: u32) -> [u8; 2] {
    [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8]
}

/// Year, month and day of a day since 1970. Years are counted from March, so that the leap day is
/// the last of one; 400 years are an era of 146,097 days.
fn civil(day: i64) -> (u32, u32, u32) {
    let since_0000_03_01 = day + 719_468;
    let era = since_0000_03_01.div_euclid(146_097);
    let of_era = since_0000_03_01.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    // 64 bits of nanoseconds reach from 1677 to 2262.
    (year as u32, month as u32, day as u32)
}

/// Writes the digits behind the point, without zeros at their end.
fn push_fraction(out: &mut impl Output, mut fraction_ns: u32) {
    let mut digits = [b'0'; 10];
    digits[0] = b'.';
    for digit in digits[1..].iter_mut().rev() {
        *digit += (fraction_ns % 10) as u8;
        fraction_ns /= 10;
    }
    let len = digits.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
    out.put(&digits[..len]);
}

/// Writes `Z` or `+hh:mm`.
fn push_zone(out: &mut impl Output, offset_s: i64) {
    if offset_s == 0 {
        out.put(b"Z");
        return;
    }
    let minutes = offset_s / 60;
    out.put(if minutes < 0 { b"-" } else { b"+" });
    let minutes = minutes.unsigned_abs() as u32;
    out.put(&pair(minutes / 60));
    out.put(b":");
    out.put(&pair(minutes % 60));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(offset_s: Option<i32>, time_ns: i64) -> String {
        let zone = offset_s.map(|offset| ZoneOffset::new(move |_| offset));
        let mut out = Vec::new();
        TimeWriter::new(zone).push(&mut out, time_ns);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_one_after_another() {
        let mut writer = TimeWriter::new(None);
        let mut out = Vec::new();
        for number in [0, 0, 7, i64::MIN, i64::MIN, i64::MAX, i64::MIN, i64::MAX, -1, 0] {
            writer.push_number(&mut out, number);
            out.push(b' ');
        }
        let (min, max) = ("-9223372036854775808", "9223372036854775807");
        let expected = format!("0 0 7 {min} {min} {max} {min} {max} -1 0 ");
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn known_times() {
        for (time_ns, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59.999999999Z"),
            (1_500_000_000_000_000_000, "2017-07-14T02:40:00Z"),
            (951_782_400_120_000_000, "2000-02-29T00:00:00.12Z"),
            (1, "1970-01-01T00:00:00.000000001Z"),
            (i64::MAX - 1, "2262-04-11T23:47:16.854775806Z"),
            (i64::MIN + 2, "1677-09-21T00:12:43.145224194Z"),
        ] {
            assert_eq!(written(None, time_ns), format!("\"{text}\""));
        }
    }

    #[test]
    fn zones_shift_the_clock() {
        for (offset_s, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (7200, "1970-01-01T02:00:00+02:00"),
            (-19_800, "1969-12-31T18:30:00-05:30"),
            (-1, "1969-12-31T23:59:59+00:00"),
            (3_208, "1970-01-01T00:53:28+00:53"),
            (-17_762, "1969-12-31T19:03:58-04:56"),
        ] {
            assert_eq!(written(Some(offset_s), 0), format!("\"{text}\""));
        }
        assert_eq!(written(Some(3600), -500_000_000), "\"1970-01-01T00:59:59.5+01:00\"");
    }

    proptest! {
        #[test]
        fn days_follow_each_other(first in -106_000i64..106_000) {
            let (year, month, day) = civil(first);
            let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
            let len = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            let next = match (month, day) {
                (12, 31) => (year + 1, 1, 1),
                (month, day) if day == len[month as usize - 1] => (year, month + 1, 1),
                _ => (year, month, day + 1),
            };
            prop_assert_eq!(civil(first + 1), next);
        }

        #[test]
        fn a_writer_that_wrote_before_writes_the_same(times in prop::collection::vec(any::<i64>(), 1..20)) {
            let mut writer = TimeWriter::new(None);
            for time in times {
                let mut out = Vec::new();
                writer.push(&mut out, time);
                prop_assert_eq!(String::from_utf8(out).unwrap(), written(None, time));
            }
        }
    }
}
