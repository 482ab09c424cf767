//! Windows of `GROUP BY time()`.
//!
//! Without a zone window k is `[offset + k * every, offset + (k + 1) * every)`. With a zone windows
//! align to local midnight: a change of the zone's offset that is shorter than a window moves its
//! edge, so that days of 23 and 25 hours come out right. Windows are named by their start. Windows of
//! calendar months (`calendar`) always have a zone.

mod calendar;

use std::sync::Arc;

use model::{MAX_TIME_NS, MIN_TIME_NS};

use crate::zone::Zone;

/// How time is cut.
#[derive(Clone, Debug)]
pub(crate) struct Windows {
    /// Length, positive; of windows of calendar months one that none is shorter than.
    pub every_ns: i64,
    /// Shift of the grid, `0..every_ns`.
    pub offset_ns: i64,
    /// Local time to align to.
    pub zone: Option<Arc<Zone>>,
    /// Length in calendar months; 0: all windows are of one length.
    pub months: u32,
}

/// One window: `start..end`, cut to the times a row can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub start: i64,
    pub end: i64,
}

impl Windows {
    /// Windows of `every_ns`, moved by any `offset_ns`.
    pub(crate) fn new(every_ns: i64, offset_ns: i64, zone: Option<Arc<Zone>>) -> Self {
        assert!(every_ns > 0, "BUG: a window needs a positive length");
        Self { every_ns, offset_ns: offset_ns.rem_euclid(every_ns), zone, months: 0 }
    }

    /// Windows of calendar months of a zone, UTC if there is none.
    pub(crate) fn calendar(months: u32, zone: Option<Arc<Zone>>) -> Self {
        assert!(months > 0, "BUG: a window needs a positive length");
        let zone = zone.unwrap_or_else(|| Arc::new(Zone::utc()));
        Self { every_ns: calendar::shortest_ns(months), offset_ns: 0, zone: Some(zone), months }
    }

    /// How many windows lie between the starts of two.
    pub(crate) fn steps(&self, from: i64, to: i64) -> i128 {
        match &self.zone {
            Some(_) if self.months > 0 => i128::from(self.index(to)) - i128::from(self.index(from)),
            _ => (i128::from(to) - i128::from(from)) / i128::from(self.every_ns),
        }
    }

    /// A number of the window that starts at `start`, which counts up from window to window.
    pub(crate) fn index(&self, start: i64) -> i64 {
        match &self.zone {
            Some(zone) if self.months > 0 => calendar::index(start, self.months, zone),
            _ => start.div_euclid(self.every_ns),
        }
    }

    /// `time_ns`, moved by the length of some windows.
    pub(crate) fn moved(&self, time_ns: i64, windows: i64) -> i64 {
        match &self.zone {
            Some(zone) if self.months > 0 => {
                zone.plus_months(time_ns, windows.saturating_mul(i64::from(self.months)))
            }
            _ => time_ns.saturating_add(self.every_ns.saturating_mul(windows)),
        }
    }

    /// The window that holds `time_ns`.
    pub(crate) fn at(&self, time_ns: i64) -> Window {
        match &self.zone {
            None => self.regular(time_ns),
            Some(zone) => self.zoned(time_ns, zone),
        }
    }

    /// The window behind `window`; `None` at the end of time.
    pub(crate) fn after(&self, window: Window) -> Option<Window> {
        if window.end > MAX_TIME_NS {
            return None;
        }
        let end = window.end.saturating_add(self.every_ns);
        let Some(zone) = &self.zone else { return Some(Window { start: window.end, end }) };
        let next = self.zoned(window.end, zone);
        // A change of the zone may lead back; go on where this window ended then, always ahead.
        let leads_on = next.start > window.start && next.end > window.end;
        Some(if leads_on { next } else { Window { start: window.end, end } })
    }

    /// The window before `window`; `None` at the beginning of time.
    pub(crate) fn before(&self, window: Window) -> Option<Window> {
        if window.start <= MIN_TIME_NS {
            return None;
        }
        let found = self.at(window.start - 1);
        if self.zone.is_none() || found.start <= MIN_TIME_NS {
            return Some(found);
        }
        // An hour that a change of the zone gives twice belongs to the window that began before it.
        let earlier = self.at(found.start - 1);
        Some(if earlier.end == window.start { earlier } else { found })
    }

    /// The window behind `window`, or the one before it, both whole and of one length; `None`: ask [`Windows::at`].
    #[inline]
    pub(crate) fn beside<const BEHIND: bool>(&self, window: Window) -> Option<Window> {
        let Window { start, end } = window;
        if !self.is_regular() || end.wrapping_sub(start) != self.every_ns {
            return None;
        }
        if BEHIND {
            Some(Window { start: end, end: end.checked_add(self.every_ns)? })
        } else {
            let before = start.checked_sub(self.every_ns)?;
            (before >= MIN_TIME_NS).then_some(Window { start: before, end: start })
        }
    }

    /// Whether window `k` starts at `first + k * every` throughout.
    pub(crate) fn is_regular(&self) -> bool {
        self.zone.is_none()
    }

    fn regular(&self, time_ns: i64) -> Window {
        let into = (time_ns.rem_euclid(self.every_ns) - self.offset_ns).rem_euclid(self.every_ns);
        let start = time_ns.saturating_sub(into).max(MIN_TIME_NS);
        let end = time_ns.saturating_add(self.every_ns - into);
        Window { start, end }
    }

    fn zoned(&self, time_ns: i64, zone: &Zone) -> Window {
        if self.months > 0 {
            return calendar::window(time_ns, self.months, zone);
        }
        let every = i128::from(self.every_ns);
        let offset_at = |t: i128| i128::from(zone.offset_ns(clamp(t)));
        let small = |change: i128| change != 0 && change.abs() < every;
        // The offset counts on the local clock: windows of a day moved by six hours start at six
        // also on the day of a change.
        let time = i128::from(time_ns);
        let here = offset_at(time);
        let into = (time + here - i128::from(self.offset_ns)).rem_euclid(every);

        let mut start = time - into;
        let change = here - offset_at(start);
        if small(change) {
            start += change;
        }
        let mut end = time + (every - into);
        let end_offset = offset_at(end);
        let change = here - end_offset;
        // Time added by a change belongs to the window before it; time left out is taken from this
        // window only if the change really lies before its end.
        if small(change) && (change > 0 || offset_at(end + change) == end_offset) {
            end += change;
        }
        Window {
            // Whatever a change does, a window holds its time.
            start: clamp(start).max(MIN_TIME_NS).min(time_ns),
            end: clamp(end).max(time_ns.saturating_add(1)),
        }
    }
}

fn clamp(time: i128) -> i64 {
    time.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

#[cfg(test)]
mod tests;
