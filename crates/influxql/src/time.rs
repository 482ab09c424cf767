//! Instants, time literals and the proleptic Gregorian calendar.
//!
//! Accepted literals: `2006-01-02`, `2006-01-02 15:04:05[.f]` (both in the query's zone) and RFC 3339 `2006-01-02T15:04:05[.f](Z|+-hh:mm)`,
//! with up to nine digits of fraction.
//!
//! Not here: time zone data; a planner brings it as [`TimeZone`].

use std::fmt;

/// Earliest time of a row, in ns since the epoch.
pub const MIN_TIME_NS: i64 = i64::MIN + 2;
/// Latest time of a row, in ns since the epoch.
pub const MAX_TIME_NS: i64 = i64::MAX - 1;

const NANOS_PER_S: i128 = 1_000_000_000;
const S_PER_DAY: i64 = 86_400;

/// How local wall-clock times become instants.
pub trait TimeZone {
    /// The UTC second of a local one, both counted from 1970-01-01T00:00:00 on their own clock. Where a local time occurs twice or
    /// never, either side of the change may be chosen.
    fn local_to_utc_s(&self, local_s: i64) -> i64;
}

/// Coordinated universal time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Utc;

impl TimeZone for Utc {
    fn local_to_utc_s(&self, local_s: i64) -> i64 {
        local_s
    }
}

/// An instant. Wider than an i64 of nanoseconds, because a literal may name the year 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
}

impl Timestamp {
    /// From nanoseconds since the epoch.
    pub fn from_ns(ns: i64) -> Self {
        Self::from_wide_ns(i128::from(ns))
    }

    /// Nanoseconds since the epoch, `None` outside the range of i64.
    pub fn to_ns(self) -> Option<i64> {
        i64::try_from(self.wide_ns()).ok()
    }

    /// This instant moved by `delta_ns`.
    #[must_use]
    pub fn plus_ns(self, delta_ns: i64) -> Self {
        Self::from_wide_ns(self.wide_ns() + i128::from(delta_ns))
    }

    /// This instant moved back by `delta_ns`.
    #[must_use]
    pub fn minus_ns(self, delta_ns: i64) -> Self {
        Self::from_wide_ns(self.wide_ns() - i128::from(delta_ns))
    }

    /// `self - other` in ns, held at the ends of i64.
    pub fn since_ns(self, other: Self) -> i64 {
        let ns = self.wide_ns() - other.wide_ns();
        ns.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    /// RFC 3339 text in UTC without a fraction, as overflow errors show it.
    pub fn to_rfc3339_seconds(self) -> String {
        Self { nanos: 0, ..self }.to_string()
    }

    fn wide_ns(self) -> i128 {
        i128::from(self.seconds) * NANOS_PER_S + i128::from(self.nanos)
    }

    /// Seconds are held at the ends of i64, which no sum of literals reaches.
    fn from_wide_ns(ns: i128) -> Self {
        let seconds = ns.div_euclid(NANOS_PER_S);
        Self {
            seconds: seconds.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64,
            nanos: ns.rem_euclid(NANOS_PER_S) as u32,
        }
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC; the fraction without trailing zeros.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.seconds.div_euclid(S_PER_DAY));
        let s = self.seconds.rem_euclid(S_PER_DAY);
        let (hour, minute, second) = (s / 3600, s / 60 % 60, s % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if self.nanos != 0 {
            let digits = format!("{:09}", self.nanos);
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

/// Whether a string starts like a time literal, that is with `dddd-dd-dd`; comparisons with time read such strings as instants and
/// complain about their details.
pub fn looks_like_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 10
        && bytes[..10].iter().enumerate().all(|(i, b)| match i {
            4 | 7 => *b == b'-',
            _ => b.is_ascii_digit(),
        })
        && bytes.get(10) != Some(&b'\n')
}

/// Reads a time literal; `None` if it is none.
pub fn parse_time(text: &str, zone: &dyn TimeZone) -> Option<Timestamp> {
    if !looks_like_time(text) {
        return None;
    }
    let mut scan = Scan(text.as_bytes());
    let days = scan.date()?;
    if scan.0.is_empty() {
        return Some(Timestamp { seconds: zone.local_to_utc_s(days * S_PER_DAY), nanos: 0 });
    }
    let rfc3339 = scan.eat(b'T');
    if !rfc3339 {
        let rest = scan.0;
        while scan.eat(b' ') {}
        if rest.len() == scan.0.len() {
            return None;
        }
    }
    let local_s = days * S_PER_DAY + scan.clock()?;
    let nanos = scan.fraction();
    let seconds = if rfc3339 { local_s - scan.offset_s()? } else { zone.local_to_utc_s(local_s) };
    scan.0.is_empty().then_some(Timestamp { seconds, nanos })
}

/// The unread bytes of a literal.
struct Scan<'a>(&'a [u8]);

impl Scan<'_> {
    fn eat(&mut self, byte: u8) -> bool {
        let hit = self.0.first() == Some(&byte);
        if hit {
            self.0 = &self.0[1..];
        }
        hit
    }

    fn digit(&mut self) -> Option<i64> {
        let digit = self.0.first().filter(|b| b.is_ascii_digit())?;
        self.0 = &self.0[1..];
        Some(i64::from(digit - b'0'))
    }

    fn two_digits(&mut self, max: i64) -> Option<i64> {
        let value = self.digit()? * 10 + self.digit()?;
        (value <= max).then_some(value)
    }

    /// `yyyy-mm-dd` as days since the epoch.
    fn date(&mut self) -> Option<i64> {
        let year = self.two_digits(99)? * 100 + self.two_digits(99)?;
        let month = self.eat(b'-').then(|| self.two_digits(12))??;
        let day = self.eat(b'-').then(|| self.two_digits(31))??;
        let valid = month >= 1 && day >= 1 && day <= days_in_month(year, month);
        valid.then(|| days_from_civil(year, month, day))
    }

    /// `h:mm:ss` or `hh:mm:ss` as seconds of the day.
    fn clock(&mut self) -> Option<i64> {
        let first = self.digit()?;
        let hour = self.digit().map_or(first, |second| first * 10 + second);
        let minute = self.eat(b':').then(|| self.two_digits(59))??;
        let second = self.eat(b':').then(|| self.two_digits(59))??;
        (hour < 24).then_some(hour * 3600 + minute * 60 + second)
    }

    /// Up to nine digits behind a point; nothing is consumed when there are none.
    fn fraction(&mut self) -> u32 {
        if self.0.first() != Some(&b'.') || !self.0.get(1).is_some_and(u8::is_ascii_digit) {
            return 0;
        }
        self.0 = &self.0[1..];
        let mut nanos = 0;
        for place in (0..9).rev() {
            let Some(digit) = self.digit() else { break };
            nanos += digit as u32 * 10_u32.pow(place);
        }
        nanos
    }

    /// `Z` or `+-hh:mm` in seconds.
    fn offset_s(&mut self) -> Option<i64> {
        if self.eat(b'Z') {
            return Some(0);
        }
        let sign = if self.eat(b'+') {
            1
        } else if self.eat(b'-') {
            -1
        } else {
            return None;
        };
        let hours = self.two_digits(24)?;
        let minutes = self.eat(b':').then(|| self.two_digits(59))??;
        Some(sign * (hours * 3600 + minutes * 60))
    }
}

/// Days from 1970-01-01 to a date. Years start in March so that the leap day is the last of its year.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of a day since 1970-01-01.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests;
