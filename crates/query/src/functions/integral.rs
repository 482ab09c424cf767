//! `integral()`: area under the points of a group, by trapezoids.
//!
//! With windows an area that crosses the edge of a window is cut there by linear interpolation.
//! InfluxDB gives the rest, however many empty windows it spans, to the window of the later point;
//! a window without area of its own gives no row.

use super::values::Number;
use crate::exec::window::{Window, Windows};

/// The area of one window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Area {
    /// The window's name: its start, or the end when going backwards.
    pub time: i64,
    /// The area in units.
    pub value: f64,
}

/// How an integral is cut.
pub(crate) struct Cut<'a> {
    /// The windows; `None`: one area, which InfluxDB names the zero of time whatever the range.
    pub windows: Option<&'a Windows>,
    /// Length of a unit, nanoseconds.
    pub unit_ns: i64,
    /// Direction of time the points come in.
    pub ascending: bool,
}

/// The areas under points sorted by time in the direction of `cut`.
pub(crate) fn integral<T: Number>(values: &[T], times: &[i64], cut: &Cut<'_>) -> Vec<Area> {
    let mut areas = Vec::new();
    let (Some(first), Some(first_time)) = (values.first(), times.first()) else { return areas };
    let (mut value, mut time) = (first.to_f64(), *first_time);
    let (mut start, mut end) = cut.edges(time);
    let mut sum = 0.0;
    for (next, next_time) in values[1..].iter().zip(&times[1..]) {
        let next = next.to_f64();
        if *next_time == time {
            value = next;
            continue;
        }
        let passes = if cut.ascending { *next_time >= end } else { *next_time <= end };
        if cut.windows.is_some() && passes {
            if time != end {
                let slope = (next - value) / span(time, *next_time);
                let at_edge = slope * span(time, end) + value;
                sum += 0.5 * (at_edge + value) * (span(time, end) / cut.unit_ns as f64);
                (value, time) = (at_edge, end);
            }
            areas.push(Area { time: start, value: sum });
            (start, end) = cut.edges(*next_time);
            sum = 0.0;
        }
        sum += 0.5 * (next + value) * (span(time, *next_time) / cut.unit_ns as f64);
        (value, time) = (next, *next_time);
    }
    // A last point right on the edge of its window has no area there.
    if cut.windows.is_none() || time != start {
        areas.push(Area { time: start, value: sum });
    }
    areas
}

/// `to - from` in nanoseconds.
fn span(from: i64, to: i64) -> f64 {
    match to.checked_sub(from) {
        Some(span) => span as f64,
        None => (i128::from(to) - i128::from(from)) as f64,
    }
}

impl Cut<'_> {
    /// Name and far edge of the window of `time`.
    fn edges(&self, time: i64) -> (i64, i64) {
        let Some(windows) = self.windows else { return (0, i64::MAX) };
        let Window { start, end } = windows.at(time);
        if self.ascending { (start, end) } else { (end, start) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(windows: Option<&Windows>, ascending: bool) -> Cut<'_> {
        Cut { windows, unit_ns: 1, ascending }
    }

    /// Figures of InfluxDB 1.6.7 for the same points (as floats; it cuts integers wrongly).
    #[test]
    fn areas_are_cut_at_windows() {
        let windows = Windows::new(20, 0, None);
        let figures =
            |areas: Vec<Area>| areas.iter().map(|a| (a.time, a.value)).collect::<Vec<_>>();
        let (values, times) = ([7.0, 1.0, 3.0, 6.0, 2.0], [10, 12, 25, 47, 60]);
        assert_eq!(
            figures(integral(&values, &times, &cut(Some(&windows), true))),
            [(0, 20.923076923076923), (20, 73.41783216783216), (40, 90.6590909090909)]
        );
        let (values, times) = ([2.0, 6.0, 3.0, 1.0, 7.0], [60, 47, 25, 12, 10]);
        assert_eq!(
            figures(integral(&values, &times, &cut(Some(&windows), false))),
            [
                (80, 0.0),
                (60, -90.6590909090909),
                (40, -73.41783216783217),
                (20, -20.923076923076923)
            ]
        );
    }

    #[test]
    fn of_points_at_one_time_the_last_counts() {
        let (values, times) = ([1i64, 5, 3, 3], [0, 10, 10, 20]);
        let areas = integral(&values, &times, &cut(None, true));
        assert_eq!(areas, [Area { time: 0, value: 60.0 }]);
    }

    #[test]
    fn one_point_has_no_area() {
        assert_eq!(integral(&[5.0], &[3], &cut(None, true)), [Area { time: 0, value: 0.0 }]);
        let windows = Windows::new(10, 0, None);
        assert_eq!(integral(&[5.0], &[20], &cut(Some(&windows), true)), []);
        let areas = integral(&[5.0], &[25], &cut(Some(&windows), true));
        assert_eq!(areas, [Area { time: 20, value: 0.0 }]);
        assert_eq!(integral::<f64>(&[], &[], &cut(None, true)), []);
    }

    #[test]
    fn the_area_of_a_line_is_its_trapezoid() {
        let times: Vec<i64> = (0..=10).map(|t| t * 1_000_000_000).collect();
        let values: Vec<f64> = (0..=10).map(f64::from).collect();
        let whole = Cut { unit_ns: 1_000_000_000, ..cut(None, true) };
        assert_eq!(integral(&values, &times, &whole), [Area { time: 0, value: 50.0 }]);
    }
}
