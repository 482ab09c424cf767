//! `cumulative_sum()` and `moving_average()`.

use std::collections::VecDeque;

/// Values that sums are made of.
pub(crate) trait Sum: Copy + Default {
    /// `self + other`; integers wrap.
    fn plus(self, other: Self) -> Self;
    /// `self - other`; integers wrap.
    fn minus(self, other: Self) -> Self;
    /// As a float.
    fn to_f64(self) -> f64;
}

macro_rules! wrapping_sum {
    ($($integer:ty)*) => {$(
        impl Sum for $integer {
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            fn to_f64(self) -> f64 {
                self as f64
            }
        }
    )*};
}

wrapping_sum!(i64 u64);

impl Sum for f64 {
    fn plus(self, other: Self) -> Self {
        self + other
    }
    fn minus(self, other: Self) -> Self {
        self - other
    }
    fn to_f64(self) -> f64 {
        self
    }
}

/// Makes each value the sum of all so far; `sum` passes from batch to batch.
pub(crate) fn accumulate<T: Sum>(sum: &mut T, values: &mut [T]) {
    for value in values {
        *sum = sum.plus(*value);
        *value = *sum;
    }
}

/// The last values of a moving average, and their sum.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moving<T> {
    last: VecDeque<T>,
    sum: T,
}

impl<T: Sum> Moving<T> {
    /// The mean of each value and those before it, `window` together; none until there are so many.
    pub(crate) fn averages(
        &mut self,
        times: &[i64],
        values: &[T],
        window: u64,
    ) -> (Vec<i64>, Vec<f64>) {
        let (mut out_times, mut out) = (Vec::new(), Vec::new());
        for (time, value) in times.iter().zip(values) {
            if self.last.len() as u64 == window
                && let Some(oldest) = self.last.pop_front()
            {
                // Taken off before the new value is added: floats are rounded in this order.
                self.sum = self.sum.minus(oldest);
            }
            self.sum = self.sum.plus(*value);
            self.last.push_back(*value);
            if self.last.len() as u64 == window {
                out_times.push(*time);
                out.push(self.sum.to_f64() / window as f64);
            }
        }
        (out_times, out)
    }

    /// Bytes of memory taken.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.last.capacity() * size_of::<T>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_go_on_in_the_next_batch() {
        let mut sum = 0i64;
        let mut values = [1, 2, 3];
        accumulate(&mut sum, &mut values);
        assert_eq!(values, [1, 3, 6]);
        let mut values = [i64::MAX];
        accumulate(&mut sum, &mut values);
        assert_eq!(values, [i64::MIN + 5]);
    }

    #[test]
    fn averages_start_with_a_full_window() {
        let mut moving = Moving::default();
        assert_eq!(moving.averages(&[1, 2], &[2i64, 4], 3), (vec![], vec![]));
        assert_eq!(moving.averages(&[3, 4], &[9, 5], 3), (vec![3, 4], vec![5.0, 6.0]));
    }
}
