//! Timestamps.

use model::{MAX_TIME_NS, MIN_TIME_NS};

use super::ParseOptions;

/// The unit of timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Nanoseconds, the default.
    #[default]
    Nanosecond,
    /// Microseconds.
    Microsecond,
    /// Milliseconds.
    Millisecond,
    /// Seconds.
    Second,
    /// Minutes.
    Minute,
    /// Hours.
    Hour,
}

impl Precision {
    /// The unit a `precision` parameter names; `None` for a word that names none.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "n" | "ns" => Self::Nanosecond,
            "u" | "us" | "\u{b5}" | "\u{3bc}" => Self::Microsecond,
            "ms" => Self::Millisecond,
            "s" => Self::Second,
            "m" => Self::Minute,
            "h" => Self::Hour,
            _ => return None,
        })
    }

    /// Nanoseconds in one unit.
    #[must_use]
    pub fn unit_ns(self) -> i64 {
        match self {
            Self::Nanosecond => 1,
            Self::Microsecond => 1_000,
            Self::Millisecond => 1_000_000,
            Self::Second => 1_000_000_000,
            Self::Minute => 60_000_000_000,
            Self::Hour => 3_600_000_000_000,
        }
    }
}

/// Digits of the longest int64, 19.
const DIGITS_MAX: usize = 19;

/// Remembers the last timestamp's text: writers send many rows of one time.
#[derive(Default)]
pub(super) struct LastTime {
    text: Option<(usize, usize)>,
    time_ns: i64,
}

impl LastTime {
    /// Reads what follows the fields: an optional timestamp and the end of the line. `at` is the
    /// first byte after the fields. Returns the time, the end of the line and the start of the next;
    /// `None` for anything out of the ordinary.
    #[inline]
    pub(super) fn read(
        &mut self,
        text: &[u8],
        at: usize,
        options: &ParseOptions,
    ) -> Option<(i64, usize, usize)> {
        let (end, next) = match text.get(at) {
            Some(b' ') => {
                let start = at + 1;
                if let Some((from, len)) = self.text {
                    let repeated = text.get(start..start + len) == Some(&text[from..from + len]);
                    if let Some((end, next)) =
                        repeated.then(|| line_end(text, start + len)).flatten()
                    {
                        return Some((self.time_ns, end, next));
                    }
                }
                let (number, len) = digits(&text[start..])?;
                let (end, next) = line_end(text, start + len)?;
                self.time_ns = scale(number, options)?;
                self.text = Some((start, len));
                return Some((self.time_ns, end, next));
            }
            _ => line_end(text, at)?,
        };
        Some((options.default_time_ns, end, next))
    }
}

/// End of the line and start of the next if nothing but a line end is at `at`.
#[inline]
fn line_end(text: &[u8], at: usize) -> Option<(usize, usize)> {
    match text.get(at) {
        None => Some((at, at)),
        Some(b'\n') => Some((at, at + 1)),
        Some(b'\r') if matches!(text.get(at + 1), None | Some(b'\n')) => Some((at, at + 2)),
        Some(_) => None,
    }
}

/// An integer of up to 19 digits and the bytes it takes.
#[inline]
fn digits(text: &[u8]) -> Option<(i64, usize)> {
    let negative = text.first() == Some(&b'-');
    let start = usize::from(negative);
    let mut number: u64 = 0;
    let mut at = start;
    while let Some(digit) = text.get(at).map(|b| b.wrapping_sub(b'0')).filter(|d| *d < 10) {
        if at - start == DIGITS_MAX {
            return None;
        }
        number = number * 10 + u64::from(digit);
        at += 1;
    }
    if at == start {
        return None;
    }
    // 19 digits fit u64; what does not fit i64 is left to the exact path.
    let number = i64::try_from(number).ok()?;
    Some((if negative { -number } else { number }, at))
}

#[inline]
fn scale(number: i64, options: &ParseOptions) -> Option<i64> {
    let time_ns = number.checked_mul(options.precision.unit_ns())?;
    (MIN_TIME_NS..=MAX_TIME_NS).contains(&time_ns).then_some(time_ns)
}

/// The time that `rest`, everything after the fields, says; or InfluxDB's reason against it.
pub(super) fn exact(rest: &[u8], options: &ParseOptions) -> Result<i64, String> {
    let trimmed = rest.trim_ascii_start();
    if trimmed.is_empty() {
        return Ok(options.default_time_ns);
    }
    let len = trimmed.iter().position(|b| *b == b' ').unwrap_or(trimmed.len());
    let (stamp, after) = trimmed.split_at(len);
    let number = stamp.strip_prefix(b"-").unwrap_or(stamp);
    if number.is_empty() || !number.iter().all(u8::is_ascii_digit) {
        return Err("bad timestamp".to_owned());
    }
    if after.iter().any(|b| *b != b' ') {
        return Err("point is invalid".to_owned());
    }
    let text = std::str::from_utf8(stamp).map_err(|_| "bad timestamp".to_owned())?;
    let too_long = |_| format!("strconv.ParseInt: parsing \"{text}\": value out of range");
    scale(text.parse::<i64>().map_err(too_long)?, options)
        .ok_or_else(|| format!("time outside range {MIN_TIME_NS} - {MAX_TIME_NS}"))
}
