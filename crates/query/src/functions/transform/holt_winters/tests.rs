use super::*;

fn fitted(count: usize, season: usize, with_fit: bool, points: &[(i64, f64)]) -> Vec<(i64, f64)> {
    let (times, values): (Vec<i64>, Vec<f64>) = points.iter().copied().unzip();
    let arguments = HoltWinters { count, season, with_fit };
    let (times, values) = forecast(&arguments, &times, &values, 10, &Interrupt::new()).unwrap();
    times.into_iter().zip(values).collect()
}

fn ramp() -> Vec<(i64, f64)> {
    (0..6).map(|at| (at * 10, at as f64)).collect()
}

/// Figures of InfluxDB 1.6.7 for the same points.
#[test]
fn digits_are_those_of_influxdb() {
    let got = fitted(3, 2, true, &ramp());
    let want = [
        (0, 0.0),
        (10, 1.5732506066856435),
        (20, 1.4625549456852491),
        (30, 2.9633843670615683),
        (40, 2.9981247221914797),
        (50, 4.58231180920804),
        (60, 4.746938360613476),
        (70, 6.096704368884658),
        (80, 6.331574651350473),
    ];
    assert_eq!(got.len(), want.len());
    for ((time, got), (want_time, want)) in got.iter().zip(want) {
        assert_eq!(*time, want_time);
        assert!((got - want).abs() <= want * 1e-9, "{got} {want}");
    }
    assert_eq!(fitted(3, 2, false, &ramp()), got[6..]);
}

#[test]
fn too_few_points_have_no_forecast() {
    assert_eq!(fitted(3, 0, false, &ramp()[..1]), []);
    assert_eq!(fitted(3, 7, false, &ramp()), []);
    assert_eq!(fitted(3, 0, false, &[]), []);
    assert_eq!(fitted(3, 0, false, &[(0, 1.0), (1, 2.0)]), [], "both are in one interval");
    let backwards: Vec<_> = ramp().into_iter().rev().collect();
    assert_eq!(fitted(3, 0, true, &backwards), []);
    assert_eq!(fitted(3, 4, false, &[(0, 1.0), (10, 2.0), (11, 3.0), (12, 4.0)]), []);
}

#[test]
fn missing_intervals_are_not_fitted_but_shown() {
    let points = [(0, 4.0), (10, 4.0), (40, 4.0), (50, 4.0)];
    let known = at_intervals(&[0, 10, 40, 50], &[4.0; 4], 10).unwrap();
    assert_eq!(known.iter().filter(|v| v.is_nan()).count(), 2);
    let got = fitted(2, 0, true, &points);
    let times: Vec<i64> = got.iter().map(|(time, _)| *time).collect();
    assert_eq!(times, [0, 10, 20, 30, 40, 50, 60, 70]);
    assert!(got.iter().all(|(_, value)| (value - 4.0).abs() < 0.1), "{got:?}");
}

#[test]
fn times_are_rounded_to_the_nearest_interval() {
    let known = at_intervals(&[3, 16, 21], &[1.0, 2.0, 3.0], 10).unwrap();
    assert!(known[1].is_nan());
    assert_eq!((known[0], known[2], known.len()), (1.0, 2.0, 3));
}
