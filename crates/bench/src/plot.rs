//! Charts as SVG: grouped bars over a logarithmic axis, and lines over time.

use std::fmt::Write as _;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 60.0;
/// Of the systems, in their order: told apart by people who see few colours too.
const COLOURS: [&str; 6] = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9"];

/// Some values of one name: a colour in the chart.
#[derive(Debug, Clone)]
pub struct Series {
    /// Shown in the legend.
    pub name: String,
    /// A value a group of bars, or a second of a line; `None`: there is none.
    pub values: Vec<Option<f64>>,
}

/// Groups of bars on a logarithmic axis.
#[must_use]
pub fn bars(title: &str, groups: &[String], series: &[Series]) -> String {
    let (height, bottom) = (460.0, 170.0);
    let all = || series.iter().flat_map(|s| s.values.iter().flatten()).filter(|v| **v > 0.0);
    let low = all().copied().fold(f64::INFINITY, f64::min).log10().floor();
    let high = all().copied().fold(f64::NEG_INFINITY, f64::max).log10().ceil().max(low + 1.0);
    let mut svg = Svg::new(title, height, series);
    if all().next().is_none() {
        return svg.end();
    }
    let plot = height - TOP - bottom;
    let y = |value: f64| TOP + plot * (1.0 - (value.log10() - low) / (high - low));
    for exponent in low as i32..=high as i32 {
        let value = 10f64.powi(exponent);
        svg.grid(y(value), &short(value));
    }
    let group = (WIDTH - LEFT - RIGHT) / groups.len().max(1) as f64;
    let bar = group * 0.8 / series.len().max(1) as f64;
    for (at, name) in groups.iter().enumerate() {
        let x = LEFT + group * (at as f64 + 0.1);
        for (number, series) in series.iter().enumerate() {
            let Some(value) = series.values.get(at).copied().flatten().filter(|v| *v > 0.0) else {
                continue;
            };
            let (from, top) = (x + bar * number as f64, y(value));
            svg.add(&format!(
                "<rect x=\"{from:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\">\
                 <title>{}, {}: {}</title></rect>",
                bar * 0.92,
                (TOP + plot - top).max(0.5),
                colour(number),
                escape(&series.name),
                escape(name),
                short(value)
            ));
        }
        let (x, y) = (x + group * 0.4, TOP + plot + 14.0);
        svg.add(&format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"end\" transform=\"rotate(-45 {x:.1} {y:.1})\">{}</text>",
            escape(name)
        ));
    }
    svg.end()
}

/// Lines over seconds, on an axis that starts at 0.
#[must_use]
pub fn lines(title: &str, series: &[Series]) -> String {
    let (height, bottom) = (320.0, 40.0);
    let mut svg = Svg::new(title, height, series);
    let seconds = series.iter().map(|s| s.values.len()).max().unwrap_or(0);
    let all = || series.iter().flat_map(|s| s.values.iter().flatten());
    let high = all().copied().fold(0.0, f64::max);
    if seconds == 0 || high <= 0.0 {
        return svg.end();
    }
    let high = nice(high);
    let plot = height - TOP - bottom;
    let y = |value: f64| TOP + plot * (1.0 - value / high);
    let x =
        |second: usize| LEFT + (WIDTH - LEFT - RIGHT) * (second + 1) as f64 / seconds.max(1) as f64;
    for step in 0..=4 {
        let value = high * f64::from(step) / 4.0;
        svg.grid(y(value), &short(value));
    }
    for (number, series) in series.iter().enumerate() {
        let point = |(second, value): (usize, &Option<f64>)| {
            value.map(|value| format!("{:.1},{:.1}", x(second), y(value)))
        };
        let points: Vec<String> = series.values.iter().enumerate().filter_map(point).collect();
        let colour = colour(number);
        svg.add(&format!(
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>",
            points.join(" ")
        ));
        if let [only] = points.as_slice()
            && let Some((x, y)) = only.split_once(',')
        {
            svg.add(&format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"3\" fill=\"{colour}\"/>"));
        }
    }
    let (right, under) = (WIDTH - RIGHT, height - 14.0);
    svg.add(&format!("<text x=\"{right}\" y=\"{under}\" text-anchor=\"end\">{seconds} s</text>"));
    svg.add(&format!("<text x=\"{LEFT}\" y=\"{under}\">0</text>"));
    svg.end()
}

struct Svg(String);

impl Svg {
    fn new(title: &str, height: f64, series: &[Series]) -> Self {
        let mut svg = Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n"
        ));
        svg.add(&format!("<text x=\"{LEFT}\" y=\"20\" font-size=\"15\">{}</text>", escape(title)));
        let mut x = LEFT;
        for (number, series) in series.iter().enumerate() {
            let (text, colour) = (x + 16.0, colour(number));
            svg.add(&format!(
                "<rect x=\"{x:.1}\" y=\"32\" width=\"11\" height=\"11\" fill=\"{colour}\"/>\
                 <text x=\"{text:.1}\" y=\"42\">{}</text>",
                escape(&series.name)
            ));
            x += 40.0 + 7.5 * series.name.len() as f64;
        }
        svg
    }

    fn add(&mut self, element: &str) {
        self.0.push_str(element);
        self.0.push('\n');
    }

    /// A line across with its value.
    fn grid(&mut self, y: f64, label: &str) {
        let (right, text, base) = (WIDTH - RIGHT, LEFT - 6.0, y + 4.0);
        self.add(&format!(
            "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#dddddd\"/>\
             <text x=\"{text}\" y=\"{base:.1}\" text-anchor=\"end\">{label}</text>"
        ));
    }

    fn end(mut self) -> String {
        self.add("</svg>");
        self.0
    }
}

fn colour(number: usize) -> &'static str {
    COLOURS[number % COLOURS.len()]
}

/// The next number of 1, 2, 4, 5 or 8 times a power of ten.
fn nice(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let step = [1.0, 2.0, 4.0, 5.0, 8.0, 10.0].into_iter().find(|step| step * power >= value);
    step.unwrap_or(10.0) * power
}

/// A number with a unit prefix.
fn short(value: f64) -> String {
    let (scaled, prefix) = match value {
        v if v >= 1e9 => (v / 1e9, " G"),
        v if v >= 1e6 => (v / 1e6, " M"),
        v if v >= 1e3 => (v / 1e3, " K"),
        v => (v, ""),
    };
    let mut text = String::new();
    let written = if scaled >= 100.0 || scaled.fract() == 0.0 {
        write!(text, "{scaled:.0}{prefix}")
    } else {
        write!(text, "{scaled:.3}{prefix}")
    };
    written.expect("BUG: text can grow");
    text
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str, values: &[f64]) -> Series {
        Series { name: name.to_owned(), values: values.iter().map(|v| Some(*v)).collect() }
    }

    #[test]
    fn taller_bars_are_larger_values() {
        let groups = ["a<b".to_owned(), "c".to_owned()];
        let svg = bars("t & u", &groups, &[series("one", &[1.0, 100.0]), series("two", &[10.0])]);
        let heights: Vec<f64> = svg
            .lines()
            .filter(|line| line.contains("<title>"))
            .map(|line| {
                let (_, rest) = line.split_once(" height=\"").unwrap();
                rest.split_once('"').unwrap().0.parse().unwrap()
            })
            .collect();
        assert!(heights[0] < heights[1] && heights[1] < heights[2], "{heights:?}");
        assert!(svg.contains("t &amp; u") && svg.contains("a&lt;b"), "{svg}");
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn lines_stay_inside_and_nothing_is_no_panic() {
        let svg = lines("t", &[series("one", &[3.0, 7.0, 5.0])]);
        let points = svg.lines().find(|line| line.starts_with("<polyline")).unwrap();
        assert_eq!(points.matches(',').count(), 3, "{points}");
        assert!(svg.contains(">8</text>"), "the axis ends above the highest value: {svg}");
        for empty in [lines("t", &[]), bars("t", &[], &[]), bars("t", &[], &[series("x", &[0.0])])]
        {
            assert!(empty.ends_with("</svg>\n"));
        }
    }
}
