//! Time zones of `tz()`.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

use crate::QueryError;

/// A time zone with its history of offsets.
#[derive(Clone, Debug)]
pub struct Zone {
    zone: TimeZone,
}

impl Zone {
    /// The zone that the time zone database calls `name`; `Local` is that of this machine.
    ///
    /// # Errors
    /// [`QueryError::Invalid`] if there is none.
    pub fn load(name: &str) -> Result<Self, QueryError> {
        if name.is_empty() {
            return Ok(Self { zone: TimeZone::UTC });
        }
        let unknown = || QueryError::invalid(format!("unable to find time zone {name}"));
        if name == "Local" {
            return Ok(Self { zone: TimeZone::try_system().map_err(|_| unknown())? });
        }
        let zone = TimeZone::get(name).map_err(|_| unknown())?;
        // Names are as they are written, which the library does not mind.
        if zone.iana_name() != Some(name) {
            return Err(unknown());
        }
        Ok(Self { zone })
    }

    /// The zone without any offset.
    pub(crate) fn utc() -> Self {
        Self { zone: TimeZone::UTC }
    }

    /// The month on the local calendar at `time_ns`, counted from January of the year 0.
    pub(crate) fn month_at(&self, time_ns: i64) -> i64 {
        let local = self.zone.to_datetime(timestamp(time_ns));
        i64::from(local.year()) * 12 + i64::from(local.month()) - 1
    }

    /// When the month `month`, counted from January of the year 0, begins; the first or last time
    /// there is, if that is beyond it.
    pub(crate) fn month_start_ns(&self, month: i64) -> i64 {
        let beyond = if month < 0 { i64::MIN } else { i64::MAX };
        let year = i16::try_from(month.div_euclid(12));
        let month = i8::try_from(month.rem_euclid(12) + 1);
        let (Ok(year), Ok(month)) = (year, month) else { return beyond };
        let begins = Date::new(year, month, 1).and_then(|first| first.to_zoned(self.zone.clone()));
        begins.map_or(beyond, |at| clamped(at.timestamp()))
    }

    /// The same time of the day some months later, or earlier; on the last day of a month that is
    /// too short.
    pub(crate) fn plus_months(&self, time_ns: i64, months: i64) -> i64 {
        let beyond = if months < 0 { i64::MIN } else { i64::MAX };
        let Ok(span) = Span::new().try_months(months) else { return beyond };
        let at = timestamp(time_ns).to_zoned(self.zone.clone()).checked_add(span);
        at.map_or(beyond, |at| clamped(at.timestamp()))
    }

    /// Seconds that local time is ahead of UTC at `time_ns`.
    #[must_use]
    pub fn offset_s(&self, time_ns: i64) -> i32 {
        self.zone.to_offset(timestamp(time_ns)).seconds()
    }

    /// Nanoseconds that local time is ahead of UTC at `time_ns`.
    pub(crate) fn offset_ns(&self, time_ns: i64) -> i64 {
        i64::from(self.offset_s(time_ns)) * 1_000_000_000
    }
}

fn timestamp(time_ns: i64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(time_ns))
        .expect("BUG: every i64 of nanoseconds is within the calendar")
}

fn clamped(at: Timestamp) -> i64 {
    at.as_nanosecond().clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

impl influxql::TimeZone for Zone {
    fn local_to_utc_s(&self, local_s: i64) -> i64 {
        let offset_at = |s: i64| i64::from(self.offset_s(s.saturating_mul(1_000_000_000)));
        let first = local_s - offset_at(local_s);
        // The first guess looked the offset up on the local clock; look again where it led.
        local_s - offset_at(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use influxql::TimeZone as _;

    #[test]
    fn knows_summer_time() {
        let zone = Zone::load("Europe/Berlin").unwrap();
        assert_eq!(zone.offset_s(0), 3600);
        // 2020-07-01T00:00:00Z
        assert_eq!(zone.offset_s(1_593_561_600_000_000_000), 7200);
        assert_eq!(zone.local_to_utc_s(1_593_561_600), 1_593_554_400);
        let _ = zone.offset_s(i64::MIN) + zone.offset_s(i64::MAX);
    }

    #[test]
    fn names_an_unknown_zone() {
        for name in ["europe/berlin", "EUROPE/BERLIN", "utc", "local", "Europe"] {
            assert!(Zone::load(name).is_err(), "{name}");
        }
        for name in ["UTC", "Local", "GMT", "EST", "US/Pacific", "Etc/GMT+1", ""] {
            assert!(Zone::load(name).is_ok(), "{name}");
        }
        let error = Zone::load("Foo/Bar").unwrap_err();
        assert_eq!(error.to_string(), "unable to find time zone Foo/Bar");
    }
}
