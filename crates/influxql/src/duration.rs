//! Durations: text such as `1h30m` to nanoseconds and back.

use std::fmt;

/// Why a text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Not a run of `<integer><unit>`.
    #[error("invalid duration")]
    Invalid,
    /// More than an i64 of nanoseconds.
    #[error("overflowed duration {0}: choose a smaller duration or INF")]
    Overflow(String),
}

/// Units from the longest to the shortest, with their length in ns; all but the last divide their predecessors, which printing needs.
const UNITS: [(&str, i64); 8] = [
    ("w", 604_800_000_000_000),
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("u", 1_000),
    ("ns", 1),
];

/// Reads a duration: `<integer><unit>` once or more, optionally behind a minus.
pub fn parse_duration(text: &str) -> Result<i64, DurationError> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    if rest.is_empty() {
        return Err(DurationError::Invalid);
    }
    let mut total_ns = Some(0_i64);
    let mut last = rest;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let count: i64 = rest[..digits].parse().map_err(|_| DurationError::Invalid)?;
        let (unit_ns, unit_bytes) = unit(&rest[digits..]).ok_or(DurationError::Invalid)?;
        let part_ns = count.checked_mul(unit_ns);
        total_ns = total_ns.zip(part_ns).and_then(|(total, part)| total.checked_add(part));
        let (part, tail) = rest.split_at(digits + unit_bytes);
        last = part;
        rest = tail;
    }
    let total_ns = total_ns.ok_or_else(|| DurationError::Overflow(last.to_owned()))?;
    Ok(if negative { -total_ns } else { total_ns })
}

/// Length in ns of the unit at the start of `text`, and its length in bytes.
fn unit(text: &str) -> Option<(i64, usize)> {
    if text.starts_with('\u{b5}') {
        return Some((1_000, '\u{b5}'.len_utf8()));
    }
    for name in ["ns", "ms"] {
        if text.starts_with(name) {
            return UNITS.iter().find(|(n, _)| *n == name).map(|(_, ns)| (*ns, 2));
        }
    }
    UNITS.iter().find(|(name, _)| name.len() == 1 && text.starts_with(name)).map(|(_, ns)| (*ns, 1))
}

/// Most months that an interval may have: a thousand years.
pub const MONTHS_MAX: u32 = 12_000;

/// Reads an interval of calendar months: `<integer>mo` or `<integer>y` once or more. `None`: it has other units.
///
/// # Errors
/// If it is longer than [`MONTHS_MAX`].
pub fn parse_months(text: &str) -> Result<Option<u32>, DurationError> {
    let mut rest = text;
    let mut total = 0_u32;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (count, tail) = rest.split_at(digits);
        let (each, tail) = match (tail.strip_prefix("mo"), tail.strip_prefix('y')) {
            (Some(tail), _) => (1, tail),
            (_, Some(tail)) => (12, tail),
            _ => return Ok(None),
        };
        if count.is_empty() {
            return Ok(None);
        }
        // More digits than a number has are too many months, too.
        let months = count.parse::<u32>().ok().and_then(|n| n.checked_mul(each));
        let sum = months.and_then(|months| total.checked_add(months));
        let too_long = || DurationError::Overflow(text.to_owned());
        total = sum.filter(|sum| *sum <= MONTHS_MAX).ok_or_else(too_long)?;
        rest = tail;
    }
    Ok((!text.is_empty()).then_some(total))
}

/// An interval of calendar months as it is written: in years if they are whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonthsText(pub u32);

impl fmt::Display for MonthsText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 12, self.0 % 12) {
            (years @ 1.., 0) => write!(f, "{years}y"),
            _ => write!(f, "{}mo", self.0),
        }
    }
}

/// A duration as InfluxQL prints it: a count of the largest unit that divides it (`90m`, `0s`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurationText(pub i64);

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let (unit, unit_ns) =
            UNITS.iter().find(|(_, unit_ns)| self.0 % unit_ns == 0).expect("BUG: 1 ns divides all");
        write!(f, "{}{unit}", self.0 / unit_ns)
    }
}

/// A duration as `CREATE DATABASE` and `SHOW RETENTION POLICIES` print it: `168h0m0s`, `1m30s`, `0s`. A duration with a part of a
/// second is printed as [`DurationText`], because a decimal fraction could not be read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockDurationText(pub i64);

impl fmt::Display for ClockDurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NANOS_PER_S: i64 = 1_000_000_000;
        if self.0 % NANOS_PER_S != 0 {
            return DurationText(self.0).fmt(f);
        }
        let total_s = self.0 / NANOS_PER_S;
        let (h, m, s) = (total_s / 3600, total_s / 60 % 60, total_s % 60);
        let sign = if total_s < 0 { "-" } else { "" };
        match (h.abs(), m.abs(), s.abs()) {
            (0, 0, s) => write!(f, "{sign}{s}s"),
            (0, m, s) => write!(f, "{sign}{m}m{s}s"),
            (h, m, s) => write!(f, "{sign}{h}h{m}m{s}s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads() {
        for (text, ns) in [
            ("1ns", 1),
            ("2u", 2_000),
            ("2\u{b5}", 2_000),
            ("3ms", 3_000_000),
            ("4s", 4_000_000_000),
            ("5m", 300_000_000_000),
            ("6h", 21_600_000_000_000),
            ("7d", 604_800_000_000_000),
            ("1w2d", 777_600_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1m1ms", 60_001_000_000),
            ("-1h", -3_600_000_000_000),
            ("0s", 0),
        ] {
            assert_eq!(parse_duration(text), Ok(ns), "{text}");
        }
    }

    #[test]
    fn refuses() {
        for text in [
            "",
            "-",
            "1",
            "h",
            "1x",
            "1n",
            "1h5",
            "1H",
            "1us",
            "1 h",
            "99999999999999999999s",
            "1\u{e9}",
        ] {
            assert_eq!(parse_duration(text), Err(DurationError::Invalid), "{text}");
        }
        let err = parse_duration("1h15251w").expect_err("too long");
        assert_eq!(err.to_string(), "overflowed duration 15251w: choose a smaller duration or INF");
    }

    #[test]
    fn prints() {
        for (ns, text) in [
            (0, "0s"),
            (1, "1ns"),
            (-90_000_000_000, "-90s"),
            (1_500_000, "1500u"),
            (3_600_000_000_000, "1h"),
            (172_800_000_000_000, "2d"),
            (1_209_600_000_000_000, "2w"),
        ] {
            assert_eq!(DurationText(ns).to_string(), text);
        }
        for (ns, text) in [
            (0, "0s"),
            (59_000_000_000, "59s"),
            (90_000_000_000, "1m30s"),
            (604_800_000_000_000, "168h0m0s"),
            (-3_600_000_000_000, "-1h0m0s"),
            (1_500_000_000, "1500ms"),
        ] {
            assert_eq!(ClockDurationText(ns).to_string(), text);
        }
    }

    #[test]
    fn months() {
        for (text, months, printed) in [
            ("1mo", 1, "1mo"),
            ("3mo", 3, "3mo"),
            ("12mo", 12, "1y"),
            ("1y6mo", 18, "18mo"),
            ("0mo", 0, "0mo"),
            ("1000y", 12_000, "1000y"),
        ] {
            assert_eq!(parse_months(text), Ok(Some(months)), "{text}");
            assert_eq!(MonthsText(months).to_string(), printed);
            assert_eq!(parse_months(printed), Ok(Some(months)));
        }
        for text in ["", "1h", "1m", "mo", "1mo5", "1mo1h", "1Y", "1moy"] {
            assert_eq!(parse_months(text), Ok(None), "{text}");
        }
        for text in ["1001y", "12001mo", "1000y1mo", "99999999999999999999mo"] {
            assert_eq!(parse_months(text), Err(DurationError::Overflow(text.to_owned())));
        }
    }

    proptest! {
        #[test]
        fn reads_back(ns in -i64::MAX..=i64::MAX) {
            prop_assert_eq!(parse_duration(&DurationText(ns).to_string()), Ok(ns));
            prop_assert_eq!(parse_duration(&ClockDurationText(ns).to_string()), Ok(ns));
        }

        #[test]
        fn any_text(text in "\\PC{0,12}|[0-9a-z\u{b5}-]{0,30}") {
            let _ = (parse_duration(&text), parse_months(&text));
        }
    }
}
