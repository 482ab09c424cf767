//! The standard deviation, as InfluxDB adds it up.
//!
//! A running mean first, then the squares of the distances from it, value by value: each step waits for the division
//! of the one before, about six times as long as a processor needs for a division among others. Of several sets of
//! values a step of each is computed side by side, and every one has the digits that it has alone.

use super::values::Number;

/// Sets that are worked on side by side: enough for their divisions to hide one another.
const LANES: usize = 8;

/// So many values of each set are laid out side by side at a time.
const STEPS: usize = 16;

/// The root of the mean squared distance from the mean, over one less than the values; `None` for
/// fewer than two.
pub(crate) fn stddev<T: Number>(values: &[T]) -> Option<f64> {
    let mean = mean_from(0.0, 0, values);
    deviation(values.len(), squares_from(0.0, mean, values))
}

/// The same of each of many sets.
pub(crate) fn stddev_of_each<T: Number>(sets: &[&[T]]) -> Vec<Option<f64>> {
    let mut found = Vec::with_capacity(sets.len());
    let (groups, rest) = sets.as_chunks::<LANES>();
    groups.iter().for_each(|group| found.extend(side_by_side(group)));
    found.extend(rest.iter().map(|values| stddev(values)));
    found
}

fn side_by_side<T: Number>(sets: &[&[T]; LANES]) -> [Option<f64>; LANES] {
    let shortest = sets.iter().map(|values| values.len()).min().unwrap_or(0);
    let together = shortest - shortest % STEPS;
    let mut means = [0.0; LANES];
    for from in (0..together).step_by(STEPS) {
        for (row, number) in laid_out(sets, from).iter().zip(from + 1..) {
            for (mean, value) in means.iter_mut().zip(row) {
                *mean += (value - *mean) / number as f64;
            }
        }
    }
    for (mean, values) in means.iter_mut().zip(sets) {
        *mean = mean_from(*mean, together, &values[together..]);
    }
    let mut squares = [0.0; LANES];
    for from in (0..together).step_by(STEPS) {
        for row in &laid_out(sets, from) {
            for ((sum, mean), value) in squares.iter_mut().zip(&means).zip(row) {
                let distance = value - mean;
                *sum += distance * distance;
            }
        }
    }
    std::array::from_fn(|at| {
        let values = sets[at];
        deviation(values.len(), squares_from(squares[at], means[at], &values[together..]))
    })
}

/// The values of all sets from `from` on, a row a step.
fn laid_out<T: Number>(sets: &[&[T]; LANES], from: usize) -> [[f64; LANES]; STEPS] {
    let mut rows = [[0.0; LANES]; STEPS];
    for (lane, values) in sets.iter().enumerate() {
        for (row, value) in rows.iter_mut().zip(&values[from..from + STEPS]) {
            row[lane] = value.to_f64();
        }
    }
    rows
}

/// The mean of `before` values and these.
fn mean_from<T: Number>(mean: f64, before: usize, values: &[T]) -> f64 {
    values
        .iter()
        .zip(before + 1..)
        .fold(mean, |mean, (value, number)| mean + (value.to_f64() - mean) / number as f64)
}

fn squares_from<T: Number>(sum: f64, mean: f64, values: &[T]) -> f64 {
    values.iter().map(|value| value.to_f64() - mean).fold(sum, |sum, d| sum + d * d)
}

fn deviation(count: usize, squares: f64) -> Option<f64> {
    (count > 1).then(|| (squares / (count - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn stddev_follows_its_definition(
            values in prop::collection::vec(-1000i64..1000, 1..40),
        ) {
            let n = values.len();
            match stddev(&values) {
                None => prop_assert_eq!(n, 1),
                Some(got) => {
                    let mean = values.iter().sum::<i64>() as f64 / n as f64;
                    let squares: f64 = values.iter().map(|v| (*v as f64 - mean).powi(2)).sum();
                    let want = (squares / (n - 1) as f64).sqrt();
                    prop_assert!((got - want).abs() < 1e-6);
                }
            }
        }

        #[test]
        fn each_of_many_has_the_digits_that_it_has_alone(
            sets in prop::collection::vec(prop::collection::vec(-1e9f64..1e9, 0..70), 0..20),
        ) {
            let sets: Vec<&[f64]> = sets.iter().map(Vec::as_slice).collect();
            let alone: Vec<Option<f64>> = sets.iter().map(|values| stddev(values)).collect();
            prop_assert_eq!(stddev_of_each(&sets), alone);
        }
    }
}
