//! Random rows of one measurement.
//!
//! No two series have rows of one time, since InfluxDB leaves the order of such rows to chance. Floats are multiples of
//! 2^-20, so that sums are exact in whatever order they are made, and nearly all of them differ.

use bench::random::Random;

const START_NS: i64 = 1_600_000_000_000_000_000;
pub(super) const SECOND_NS: i64 = 1_000_000_000;
pub(super) const HOUR_NS: i64 = 3600 * SECOND_NS;

/// Values of the tags, as they are written in a statement; the last is that of series without the tag.
pub(super) const HOSTS: [&str; 6] = ["a", "b", "c", "d,e", "f g", ""];
pub(super) const RACKS: [&str; 3] = ["x", "y", ""];
pub(super) const TEXTS: [&str; 7] = ["on", "off", "up", "down", "a longer message", "x=1", ""];
const FIELDS: [&str; 6] = ["i", "j", "f", "g", "s", "b"];

/// What the rows of a run have in common.
pub(super) struct Shape {
    /// Times lie between the start and so much later.
    pub(super) span_ns: i64,
    /// Between rows of regular times.
    step_ns: Option<i64>,
    /// How many of the rows have each field.
    density: [f64; FIELDS.len()],
    has_large_numbers: bool,
}

impl Shape {
    pub(super) fn new(random: &mut Random) -> Self {
        let span_ns = *random.pick(&[HOUR_NS, 6 * HOUR_NS, 72 * HOUR_NS]);
        let step_s = *random.pick(&[1, 7, 10, 60]);
        Self {
            span_ns,
            step_ns: random.chance(0.5).then_some(step_s * SECOND_NS),
            density: FIELDS.map(|_| *random.pick(&[1.0, 1.0, 0.5, 0.1])),
            has_large_numbers: random.chance(0.3),
        }
    }

    /// A time within the span or near it.
    pub(super) fn time_ns(&self, random: &mut Random) -> i64 {
        START_NS - self.span_ns / 4 + random.below((self.span_ns * 5 / 4) as u64) as i64
    }

    /// Rows as line protocol.
    pub(super) fn lines(&self, random: &mut Random) -> String {
        let rows = *random.pick(&[50, 1000, 4000]);
        let is_in_order = random.chance(0.5);
        let mut text = String::new();
        for row in 0..rows {
            let time_ns = match self.step_ns {
                Some(step_ns) if is_in_order => START_NS + row * step_ns,
                Some(step_ns) => {
                    START_NS + random.below((self.span_ns / step_ns) as u64) as i64 * step_ns
                }
                None => START_NS + random.below(self.span_ns as u64 / 100) as i64 * 100,
            };
            self.push_row(&mut text, time_ns, random);
        }
        text
    }

    fn push_row(&self, text: &mut String, time_ns: i64, random: &mut Random) {
        let host = random.below(HOSTS.len() as u64) as usize;
        let rack = random.below(RACKS.len() as u64) as usize;
        text.push('m');
        for (key, value) in [("h", HOSTS[host]), ("r", RACKS[rack])] {
            if !value.is_empty() {
                let value = value.replace(',', "\\,").replace(' ', "\\ ");
                *text += &format!(",{key}={value}");
            }
        }
        let mut separator = ' ';
        for (field, density) in FIELDS.iter().zip(self.density) {
            if random.chance(density) {
                *text += &format!("{separator}{field}={}", self.value(field, random));
                separator = ',';
            }
        }
        if separator == ' ' {
            *text += " i=7i";
        }
        *text += &format!(" {}\n", time_ns + (host * RACKS.len() + rack) as i64);
    }

    fn value(&self, field: &str, random: &mut Random) -> String {
        let integer =
            |random: &mut Random, least: i64, span: u64| least + random.below(span) as i64;
        match field {
            "i" if self.has_large_numbers && random.chance(0.3) => {
                format!("{}i", integer(random, -1_000_000_000, 2_000_000_000))
            }
            "i" => format!("{}i", integer(random, 0, 20)),
            "j" => format!("{}i", integer(random, -5, 100)),
            "s" => format!("\"{}\"", random.pick(&TEXTS)),
            "b" => random.chance(0.5).to_string(),
            _ => (integer(random, -100 << 20, 200 << 20) as f64 / f64::from(1 << 20)).to_string(),
        }
    }

    /// A statement that deletes rows.
    pub(super) fn delete(&self, random: &mut Random) -> String {
        let series = random.pick(&["h = 'a'", "r = 'x'", "h = 'b' AND r = 'y'", "h =~ /c/"]);
        let from = self.time_ns(random);
        let to = from + self.span_ns / 8;
        format!("DELETE FROM m WHERE {series} AND time >= {from} AND time < {to}")
    }
}
