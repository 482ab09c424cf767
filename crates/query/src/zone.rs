//! Time zones of `tz()`.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::QueryError;

/// A time zone with its history of offsets.
#[derive(Clone, Debug)]
pub struct Zone {
    zone: TimeZone,
}

impl Zone {
    /// The zone that the time zone database calls `name`.
    ///
    /// # Errors
    /// [`QueryError::Invalid`] if there is none.
    pub fn load(name: &str) -> Result<Self, QueryError> {
        if name.is_empty() {
            return Ok(Self { zone: TimeZone::UTC });
        }
        let unknown = |_| QueryError::invalid(format!("unable to find time zone {name}"));
        Ok(Self { zone: TimeZone::get(name).map_err(unknown)? })
    }

    /// Seconds that local time is ahead of UTC at `time_ns`.
    #[must_use]
    pub fn offset_s(&self, time_ns: i64) -> i32 {
        let at = Timestamp::from_nanosecond(i128::from(time_ns));
        let at = at.expect("BUG: every i64 of nanoseconds is within the calendar");
        self.zone.to_offset(at).seconds()
    }

    /// Nanoseconds that local time is ahead of UTC at `time_ns`.
    pub(crate) fn offset_ns(&self, time_ns: i64) -> i64 {
        i64::from(self.offset_s(time_ns)) * 1_000_000_000
    }
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
        let error = Zone::load("Foo/Bar").unwrap_err();
        assert_eq!(error.to_string(), "unable to find time zone Foo/Bar");
    }
}
