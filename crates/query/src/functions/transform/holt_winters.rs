//! `holt_winters()`: a forecast by triple exponential smoothing, with a damped trend and, if there is
//! one, a multiplicative season.
//!
//! Weights, level, trend and season are fitted to the points by the simplex method, from several
//! starts. The result shows many digits of where that method stops, so everything that has a part in
//! it is done in the order in which InfluxDB does it; notably a pass over the points moves the
//! parameters it is given: weights into their bounds, and the season on, which stays so in the simplex.

mod nelder_mead;

use model::{Interrupt, Interrupted};

use super::HoltWinters;

/// Weights that are tried first, each with each.
const START_WEIGHTS: [f64; 2] = [0.3, 0.7];
/// What the first level and trend are of the first values, without a season.
const START_SHARE: f64 = 0.5;
/// The simplex stops when its errors deviate by less.
const ERROR_SPREAD_MIN: f64 = 1e-4;
/// Weights come first among the parameters: of the level, the trend, the season, and of damping.
const WEIGHTS: usize = 4;
const LEVEL: usize = 4;
const TREND: usize = 5;
/// Where the season starts among the parameters.
const SEASON: usize = 6;

/// The forecast for points one after another in time, at about a distance of `interval_ns`.
///
/// # Errors
/// If the query is interrupted.
pub(crate) fn forecast(
    arguments: &HoltWinters,
    times: &[i64],
    values: &[f64],
    interval_ns: i64,
    interrupt: &Interrupt,
) -> Result<(Vec<i64>, Vec<f64>), Interrupted> {
    let season = if arguments.season < 2 { 0 } else { arguments.season };
    let none = (Vec::new(), Vec::new());
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return Ok(none) };
    if times.len() < 2.max(season) {
        return Ok(none);
    }
    let Some(known) = at_intervals(times, values, interval_ns) else { return Ok(none) };
    let Some(start) = start_values(&known, season) else { return Ok(none) };
    let model = Model { known: &known, season };
    let mut best: Option<(f64, Vec<f64>)> = None;
    for weights in all_weights() {
        let mut parameters = weights.to_vec();
        parameters.extend_from_slice(&start);
        let error = |parameters: &mut [f64]| model.squared_error(parameters);
        let found = nelder_mead::minimum(error, &parameters, ERROR_SPREAD_MIN, interrupt)?;
        if best.as_ref().is_none_or(|(least, _)| found.0 < *least) {
            best = Some(found);
        }
    }
    let Some((_, mut parameters)) = best else { return Ok(none) };
    let mut fitted = Vec::with_capacity(known.len().saturating_add(arguments.count).min(1 << 20));
    let total = known.len().saturating_add(arguments.count);
    model.run(&mut parameters, total, |value| {
        fitted.push(value);
        true
    });
    // The fit counts from the first point on, a forecast alone from the last.
    let (from, skipped) = if arguments.with_fit { (*first, 0) } else { (*last, known.len()) };
    let steps = |at: usize| at as i64 + i64::from(!arguments.with_fit);
    let shown = fitted.iter().skip(skipped).enumerate().filter(|(_, value)| !value.is_nan());
    Ok(shown
        .map(|(at, value)| (from.wrapping_add(interval_ns.wrapping_mul(steps(at))), *value))
        .unzip())
}

/// The values at whole intervals; NaN where there is none. `None`: they span no interval.
fn at_intervals(times: &[i64], values: &[f64], interval_ns: i64) -> Option<Vec<f64>> {
    let round = |time: i64| {
        let rest = time % interval_ns;
        (time / interval_ns + i64::from(rest > interval_ns / 2)).saturating_mul(interval_ns)
    };
    let (first, last) = (round(*times.first()?), round(*times.last()?));
    if last.saturating_sub(first) / interval_ns <= 0 {
        return None;
    }
    let mut known = vec![*values.first()?];
    let mut at = first;
    for (time, value) in times.iter().zip(values).skip(1) {
        let time = round(*time);
        if time <= at {
            // Of several in one interval the first counts.
            continue;
        }
        at = at.saturating_add(interval_ns);
        while at < time {
            known.push(f64::NAN);
            at = at.saturating_add(interval_ns);
        }
        known.push(*value);
    }
    Some(known)
}

/// Level, trend and season to start from. `None`: there are fewer values than a season has.
fn start_values(known: &[f64], season: usize) -> Option<Vec<f64>> {
    let there = |value: f64| !value.is_nan();
    if season == 0 {
        let (first, second) = (*known.first()?, *known.get(1)?);
        let trend = if there(second) { START_SHARE * (second - first) } else { 0.0 };
        return Some(vec![START_SHARE * first, trend]);
    }
    let length = season as f64;
    let (now, next) = (known.get(..season)?, known.get(season..)?);
    let level = now.iter().filter(|v| there(**v)).fold(0.0, |sum, v| sum + (1.0 / length) * v);
    let pairs = now.iter().zip(next).filter(|(a, b)| there(**a) && there(**b));
    let trend = pairs.fold(0.0, |sum, (a, b)| sum + 1.0 / (length * length) * (b - a));
    let factor = |v: &f64| if there(*v) { v / level } else { 0.0 };
    Some([level, trend].into_iter().chain(now.iter().map(factor)).collect())
}

fn all_weights() -> impl Iterator<Item = [f64; WEIGHTS]> {
    (0..1 << WEIGHTS).map(|choice: usize| {
        // The last weight changes fastest.
        std::array::from_fn(|at| START_WEIGHTS[choice >> (WEIGHTS - 1 - at) & 1])
    })
}

/// What is fitted.
struct Model<'a> {
    known: &'a [f64],
    /// Values of a season; 0: none.
    season: usize,
}

impl Model<'_> {
    /// Calls `emit` with `count` values that follow from the parameters, until it says no more.
    fn run(&self, parameters: &mut [f64], count: usize, mut emit: impl FnMut(f64) -> bool) {
        let (head, factors) = parameters.split_at_mut(SEASON);
        head[..WEIGHTS].iter_mut().for_each(|weight| *weight = weight.clamp(0.0, 1.0));
        let [alpha, beta, gamma, phi] = [head[0], head[1], head[2], head[3]];
        let (mut level, mut trend) = (head[LEVEL], head[TREND]);
        let mut damping = phi;
        let mut value = self.known.first().copied().unwrap_or(f64::NAN);
        if count == 0 || !emit(value) {
            return;
        }
        let season = self.season;
        for step in 1..count {
            // Factors are a ring; a step moves on by two places, as InfluxDB has it.
            let place = |ahead: usize| (2 * (step - 1) + ahead) % season.max(1);
            let (factor, factor_ahead) = match season {
                0 => (1.0, 1.0),
                _ => (factors[place(0)], factors[place(step % season)]),
            };
            let before = level + phi * trend;
            let new_level = alpha * (value / factor) + (1.0 - alpha) * before;
            trend = beta * (new_level - level) + (1.0 - beta) * phi * trend;
            let new_factor = gamma * (value / before) + (1.0 - gamma) * factor;
            level = new_level;
            value = (level + damping * trend) * factor_ahead;
            damping += power(phi, step);
            if season > 0 {
                factors[place(0)] = new_factor;
            }
            if !emit(value) {
                return;
            }
        }
    }

    /// The sum of squared differences from the known values.
    fn squared_error(&self, parameters: &mut [f64]) -> f64 {
        let (mut sum, mut at) = (0.0, 0);
        self.run(parameters, self.known.len(), |value| {
            let known = self.known[at];
            at += 1;
            if !known.is_nan() {
                let difference = value - known;
                sum += difference * difference;
            }
            true
        });
        // What cannot be compared is the worst there is.
        if sum.is_nan() { f64::INFINITY } else { sum }
    }
}

/// `base` to a whole power by squaring, whose rounding shows in the result.
fn power(base: f64, exponent: usize) -> f64 {
    let (mut square, mut power, mut rest) = (base, 1.0, exponent);
    while rest > 0 {
        if rest & 1 == 1 {
            power *= square;
        }
        square *= square;
        rest >>= 1;
    }
    power
}

#[cfg(test)]
mod tests;
