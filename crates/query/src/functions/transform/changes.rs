//! `derivative()`, `difference()`, `elapsed()`: each point against the one before it.
//!
//! Of several points at one time only the first counts, except for `elapsed()`.

/// Values that differences are made of.
pub(crate) trait Change: Copy {
    /// `self - before` in the type; integers wrap.
    fn minus(self, before: Self) -> Self;
    /// `self - before` as a float.
    fn distance(self, before: Self) -> f64;
    /// Whether `self` is below `before`, as their difference says.
    fn is_below(self, before: Self) -> bool;
}

impl Change for f64 {
    fn minus(self, before: Self) -> Self {
        self - before
    }
    fn distance(self, before: Self) -> f64 {
        self - before
    }
    fn is_below(self, before: Self) -> bool {
        self - before < 0.0
    }
}

impl Change for i64 {
    fn minus(self, before: Self) -> Self {
        self.wrapping_sub(before)
    }
    fn distance(self, before: Self) -> f64 {
        self.wrapping_sub(before) as f64
    }
    fn is_below(self, before: Self) -> bool {
        self.wrapping_sub(before) < 0
    }
}

impl Change for u64 {
    fn minus(self, before: Self) -> Self {
        self.wrapping_sub(before)
    }
    fn distance(self, before: Self) -> f64 {
        if self >= before { (self - before) as f64 } else { -((before - self) as f64) }
    }
    fn is_below(self, before: Self) -> bool {
        self < before
    }
}

/// The point before, from one batch to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Previous<T>(Option<(i64, T)>);

impl<T> Default for Previous<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Change> Previous<T> {
    /// Calls `emit` with each point and the one before it, where time moves on.
    fn pairs(&mut self, times: &[i64], values: &[T], mut emit: impl FnMut((i64, T), (i64, T))) {
        let mut previous = self.0;
        for (time, value) in times.iter().zip(values) {
            let point = (*time, *value);
            match previous {
                Some((before, _)) if before == *time => continue,
                Some(before) => emit(before, point),
                None => {}
            }
            previous = Some(point);
        }
        self.0 = previous;
    }

    /// Changes per `unit_ns`.
    pub(crate) fn derivative(
        &mut self,
        times: &[i64],
        values: &[T],
        unit_ns: i64,
        non_negative: bool,
    ) -> (Vec<i64>, Vec<f64>) {
        let (mut out_times, mut out) = (Vec::with_capacity(times.len()), Vec::new());
        out.reserve(times.len());
        let unit = unit_ns as f64;
        self.pairs(times, values, |before, point| {
            let change = point.1.distance(before.1);
            // Going back in time, time passes all the same.
            let elapsed = point.0.abs_diff(before.0) as f64;
            if !(non_negative && change < 0.0) {
                out_times.push(point.0);
                out.push(change / (elapsed / unit));
            }
        });
        (out_times, out)
    }

    /// Changes.
    pub(crate) fn difference(
        &mut self,
        times: &[i64],
        values: &[T],
        non_negative: bool,
    ) -> (Vec<i64>, Vec<T>) {
        let (mut out_times, mut out) = (Vec::with_capacity(times.len()), Vec::new());
        out.reserve(times.len());
        self.pairs(times, values, |before, point| {
            if !(non_negative && point.1.is_below(before.1)) {
                out_times.push(point.0);
                out.push(point.1.minus(before.1));
            }
        });
        (out_times, out)
    }
}

/// Whole units of time between each point and the one before it; `last` is the time before.
pub(crate) fn elapsed(last: &mut Option<i64>, times: &[i64], unit_ns: i64) -> (Vec<i64>, Vec<i64>) {
    let mut before = *last;
    let (mut out_times, mut out) =
        (Vec::with_capacity(times.len()), Vec::with_capacity(times.len()));
    for time in times {
        if let Some(before) = before {
            out_times.push(*time);
            out.push(time.wrapping_sub(before) / unit_ns);
        }
        before = Some(*time);
    }
    *last = before;
    (out_times, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn derivatives_are_per_unit_and_pass_batches() {
        let mut state = Previous::default();
        let (times, values) = state.derivative(&[0, 10 * SECOND], &[1.0, 21.0], SECOND, false);
        assert_eq!((times, values), (vec![10 * SECOND], vec![2.0]));
        let (times, values) =
            state.derivative(&[10 * SECOND, 15 * SECOND], &[999.0, 11.0], SECOND, false);
        assert_eq!(
            (times, values),
            (vec![15 * SECOND], vec![-2.0]),
            "the second at 10 s is ignored"
        );
    }

    #[test]
    fn backwards_in_time_passes_as_well() {
        let mut state = Previous::default();
        let (_, values) = state.derivative(&[10, 5], &[30i64, 10], 1, false);
        assert_eq!(values, [-4.0]);
        let mut last = None;
        assert_eq!(elapsed(&mut last, &[100, 91], 7), (vec![91], vec![-1]));
    }

    #[test]
    fn negative_changes_are_left_out_but_looked_at() {
        let mut state = Previous::default();
        let (times, values) = state.difference(&[1, 2, 3], &[5u64, 2, 4], true);
        assert_eq!((times, values), (vec![3], vec![2]));
        let mut state = Previous::default();
        let (_, values) = state.derivative(&[1, 2, 3], &[5u64, 2, 4], 1, true);
        assert_eq!(values, [2.0]);
    }

    #[test]
    fn types_decide_how_changes_are_computed() {
        let (_, wrapped) = Previous::default().difference(&[1, 2], &[i64::MIN, i64::MAX], false);
        assert_eq!(wrapped, [-1]);
        let (_, wrapped) = Previous::default().difference(&[1, 2], &[3u64, 1], false);
        assert_eq!(wrapped, [u64::MAX - 1]);
        let (_, below) = Previous::default().derivative(&[1, 2], &[3u64, 1], 1, false);
        assert_eq!(below, [-2.0]);
    }

    #[test]
    fn elapsed_counts_whole_units_and_equal_times() {
        let mut last = None;
        assert_eq!(elapsed(&mut last, &[0, 0, 25], 10), (vec![0, 25], vec![0, 2]));
        assert_eq!(elapsed(&mut last, &[44], 10), (vec![44], vec![1]));
    }
}
