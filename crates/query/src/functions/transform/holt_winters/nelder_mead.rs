//! The simplex method of Nelder and Mead: the least value of a function of several parameters.
//!
//! One step departs from the textbook, and is InfluxDB's: when the simplex shrinks, only its worst
//! and second worst corners are valued again.

use model::{Interrupt, Interrupted};

const REFLECTION: f64 = 1.0;
const CONTRACTION: f64 = 0.5;
const EXPANSION: f64 = 2.0;
const STEPS_MAX: usize = 1000;

/// The least value found from `start`, and where. The function may move the point it is given.
///
/// # Errors
/// If the query is interrupted.
pub(super) fn minimum(
    mut function: impl FnMut(&mut [f64]) -> f64,
    start: &[f64],
    spread_min: f64,
    interrupt: &Interrupt,
) -> Result<(f64, Vec<f64>), Interrupted> {
    let mut simplex = Simplex::around(start, &mut function);
    for _ in 0..STEPS_MAX {
        interrupt.check()?;
        simplex.step(&mut function);
        if simplex.spread() < spread_min {
            break;
        }
    }
    let best = simplex.best();
    let corner = &mut simplex.corners[best];
    let found = corner.point.clone();
    Ok((function(&mut corner.point), found))
}

struct Corner {
    point: Vec<f64>,
    value: f64,
}

struct Simplex {
    corners: Vec<Corner>,
}

impl Simplex {
    /// The start, and one corner more for each parameter.
    fn around(start: &[f64], function: &mut impl FnMut(&mut [f64]) -> f64) -> Self {
        let n = start.len() as f64;
        let root = (n + 1.0).sqrt() - 1.0;
        let (far, near) = ((root + n) / (n * 2f64.sqrt()), root / (n * 2f64.sqrt()));
        let corner = |moved: Option<usize>| {
            let offset = |at: usize| match moved {
                None => 0.0,
                Some(moved) if moved == at => far,
                Some(_) => near,
            };
            start.iter().enumerate().map(|(at, value)| offset(at) + value).collect::<Vec<_>>()
        };
        let points = std::iter::once(None).chain((0..start.len()).map(Some)).map(corner);
        let corners = points.map(|mut point| {
            let value = function(&mut point);
            Corner { point, value }
        });
        Self { corners: corners.collect() }
    }

    fn value(&self, at: usize) -> f64 {
        self.corners[at].value
    }

    /// The first of those with the least value.
    fn best(&self) -> usize {
        let better = |best, at| if self.value(at) < self.value(best) { at } else { best };
        (0..self.corners.len()).fold(0, better)
    }

    /// The first of those with the greatest value.
    fn worst(&self) -> usize {
        let worse = |worst, at| if self.value(at) > self.value(worst) { at } else { worst };
        (0..self.corners.len()).fold(0, worse)
    }

    fn second_worst(&self, best: usize, worst: usize) -> usize {
        let limit = self.value(worst);
        let worse = |second, at| {
            let value = self.value(at);
            if value > self.value(second) && value < limit { at } else { second }
        };
        (0..self.corners.len()).fold(best, worse)
    }

    /// The middle of all corners but one.
    fn centre_without(&self, without: usize) -> Vec<f64> {
        let n = self.corners.len() - 1;
        let mut centre = vec![0.0; n];
        for (at, corner) in self.corners.iter().enumerate() {
            if at != without {
                centre.iter_mut().zip(&corner.point).for_each(|(sum, x)| *sum += x);
            }
        }
        centre.iter_mut().for_each(|sum| *sum /= n as f64);
        centre
    }

    fn step(&mut self, function: &mut impl FnMut(&mut [f64]) -> f64) {
        let (worst, best) = (self.worst(), self.best());
        let second = self.second_worst(best, worst);
        let centre = self.centre_without(worst);
        let from = &self.corners[worst].point;
        let mut reflected = mixed(&centre, from, |c, x| c + REFLECTION * (c - x));
        let value = function(&mut reflected);
        let (least, limit, greatest) = (self.value(best), self.value(second), self.value(worst));
        let reflected = Corner { point: reflected, value };
        if value < least {
            let mut expanded = mixed(&centre, &reflected.point, |c, x| c + EXPANSION * (x - c));
            let value = function(&mut expanded);
            let expanded = Corner { point: expanded, value };
            self.corners[worst] =
                if expanded.value < reflected.value { expanded } else { reflected };
        } else if value < limit {
            self.corners[worst] = reflected;
        } else {
            let outside = (value < greatest).then_some(reflected);
            self.contract(Move { worst, best, second, centre }, outside, function);
        }
    }

    /// Moves the worst corner to the middle: outside of the simplex if `outside` was better.
    fn contract(
        &mut self,
        what: Move,
        outside: Option<Corner>,
        function: &mut impl FnMut(&mut [f64]) -> f64,
    ) {
        let Move { worst, best, second, centre } = what;
        let mut point = match outside {
            Some(outside) => mixed(&centre, &outside.point, |c, x| c + CONTRACTION * (x - c)),
            None => {
                let from = &self.corners[worst].point;
                mixed(&centre, from, |c, x| c - CONTRACTION * (c - x))
            }
        };
        let value = function(&mut point);
        if value < self.value(worst) {
            self.corners[worst] = Corner { point, value };
            return;
        }
        let target = self.corners[best].point.clone();
        for (at, corner) in self.corners.iter_mut().enumerate() {
            if at != best {
                let halfway = |(x, best): (&mut f64, &f64)| *x = best + (*x - best) / 2.0;
                corner.point.iter_mut().zip(&target).for_each(halfway);
            }
        }
        for at in [worst, second] {
            let corner = &mut self.corners[at];
            corner.value = function(&mut corner.point);
        }
    }

    /// How far the values deviate from their mean.
    fn spread(&self) -> f64 {
        let n = (self.corners.len() - 1) as f64;
        let mean = self.corners.iter().fold(0.0, |sum, c| sum + c.value) / (n + 1.0);
        let squares = self.corners.iter().fold(0.0, |sum, c| sum + (c.value - mean).powi(2) / n);
        squares.sqrt()
    }
}

/// What a contraction is about.
struct Move {
    worst: usize,
    best: usize,
    second: usize,
    centre: Vec<f64>,
}

fn mixed(a: &[f64], b: &[f64], mix: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| mix(*a, *b)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_bottom_of_a_curved_valley() {
        let valley = |p: &mut [f64]| (1.0 - p[0]).powi(2) + 100.0 * (p[1] - p[0] * p[0]).powi(2);
        let (least, at) = minimum(valley, &[-1.2, 1.0], 1e-9, &Interrupt::new()).unwrap();
        assert!(least < 1e-6 && (at[0] - 1.0).abs() < 1e-2 && (at[1] - 1.0).abs() < 1e-2, "{at:?}");
    }

    #[test]
    fn stops_when_it_is_told_to() {
        let interrupt = Interrupt::new();
        interrupt.cancel();
        assert!(minimum(|p| p[0] * p[0], &[3.0], 1e-9, &interrupt).is_err());
    }
}
