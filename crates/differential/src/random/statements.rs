//! Random SELECT statements.
//!
//! Left out is what is known to differ, or left to chance by InfluxDB: mode() of values that come equally often, integral()
//! in windows, percentile() of windows with too few rows, top() and bottom() with LIMIT, OFFSET without LIMIT, numbers
//! that fill() puts beside texts, and rows of subqueries whose windows begin before the range or are filled.

use bench::random::Random;

use super::rows::{HOSTS, HOUR_NS, RACKS, Shape, TEXTS};

const NUMBERS: [&str; 4] = ["i", "j", "f", "g"];
const FLOATS: [&str; 2] = ["f", "g"];
const FIELDS: [&str; 6] = ["i", "j", "f", "g", "s", "b"];
/// Regular expressions: pieces of text, lists of it, starts and ends, what lacks it, what none has.
const EXPRESSIONS: [&str; 18] = [
    "a",
    "b|c",
    "^$",
    "x",
    ".",
    "^u",
    "n$",
    "^(a|b)$",
    "^(a|d,e|)$",
    "^a",
    "^[a-c]$",
    "^on$",
    "(?i)ON",
    "message|down",
    ".*n.*e",
    "^(up|off)",
    "long.*age$",
    "zz",
];

/// A statement.
pub(super) fn select(shape: &Shape, random: &mut Random) -> String {
    let mut draw = Draw { shape, random };
    match draw.random.below(100) {
        0..18 => draw.rows(),
        18..50 => draw.aggregates(),
        50..60 => draw.of_all_fields(),
        60..70 => draw.beside_a_selector(),
        70..76 => draw.extremes(),
        76..86 => draw.transformation(),
        86..93 => draw.arithmetic(),
        _ => draw.subquery(),
    }
}

/// What fields look like that are, or may be, texts or booleans.
const TEXTS_OF: [&str; 7] = ["(s", "(b", "*", ", s", ", b", ", h", ", r"];

/// GROUP BY without numbers to fill with.
fn without_numbers(group: &str) -> String {
    group.replace("fill(0)", "fill(none)").replace("fill(42.5)", "fill(previous)")
}

struct Draw<'a> {
    shape: &'a Shape,
    random: &'a mut Random,
}

impl Draw<'_> {
    fn pick(&mut self, list: &[&'static str]) -> &'static str {
        self.random.pick::<&'static str>(list)
    }

    fn chance(&mut self, probability: f64) -> bool {
        self.random.chance(probability)
    }

    fn number(&mut self, least: i64, span: u64) -> i64 {
        least + self.random.below(span) as i64
    }

    fn rows(&mut self) -> String {
        let fields = self.pick(&[
            "*",
            "i",
            "j, f",
            "s, b",
            "i, h",
            "*::field",
            "f, s, r",
            "i + j",
            "f * 2, g",
            "/^[if]$/",
            "s",
            "b",
            "i::integer, g",
            "abs(f), s",
            "i % 7, j",
        ]);
        self.finish(fields, false)
    }

    fn aggregates(&mut self) -> String {
        let count = *self.random.pick(&[1, 1, 1, 2, 3]);
        let calls: Vec<String> = (0..count).map(|_| self.aggregate()).collect();
        let windows = self.chance(0.7);
        self.finish(&calls.join(", "), windows)
    }

    fn aggregate(&mut self) -> String {
        let function = self.pick(&[
            "count",
            "sum",
            "mean",
            "min",
            "max",
            "first",
            "last",
            "median",
            "spread",
            "stddev",
            "distinct",
            "percentile",
            "count(distinct",
            "first",
            "last",
            "count",
            "max",
            "min",
        ]);
        match function {
            "count" | "first" | "last" | "distinct" => {
                format!("{function}({})", self.pick(&FIELDS))
            }
            "count(distinct" => format!("count(distinct({}))", self.pick(&FIELDS)),
            "percentile" => {
                let rank = self.pick(&["50", "90", "99", "100"]);
                format!("percentile({}, {rank})", self.pick(&FLOATS))
            }
            _ => format!("{function}({})", self.pick(&NUMBERS)),
        }
    }

    /// An aggregate of numbers with one result a window.
    fn plain_aggregate(&mut self) -> String {
        let function =
            self.pick(&["count", "sum", "mean", "min", "max", "first", "last", "median", "spread"]);
        format!("{function}({})", self.pick(&NUMBERS))
    }

    fn of_all_fields(&mut self) -> String {
        let call = self.pick(&[
            "last(*)",
            "first(*)",
            "count(*)",
            "max(*)",
            "mean(*)",
            "min(/[ij]/)",
            "sum(*)",
            "spread(*)",
        ]);
        let windows = self.chance(0.4);
        self.finish(call, windows)
    }

    fn beside_a_selector(&mut self) -> String {
        let function = self.pick(&["last", "first", "max", "min"]);
        let (field, beside) =
            (self.pick(&NUMBERS), self.pick(&["i", "s", "b", "f", "*", "j, s", "h", "h, r, g"]));
        let windows = self.chance(0.4);
        self.finish(&format!("{function}({field}), {beside}"), windows)
    }

    fn extremes(&mut self) -> String {
        if self.chance(0.2) {
            let call = self.pick(&["integral(f)", "integral(g, 1m)", "mode(b)"]);
            return format!("SELECT {call} FROM m{}", self.condition(false));
        }
        let (function, field) = (self.pick(&["top", "bottom"]), self.pick(&FLOATS));
        let tag = self.pick(&["", "", ", h", ", r"]);
        let count = self.pick(&["1", "3", "10"]);
        let windows = self.chance(0.5);
        let (range, group) = (self.condition(windows), without_numbers(&self.group(windows)));
        format!("SELECT {function}({field}{tag}, {count}) FROM m{range}{group}")
    }

    fn transformation(&mut self) -> String {
        let windows = self.chance(0.5);
        let inner = if windows { self.plain_aggregate() } else { self.pick(&NUMBERS).to_owned() };
        let call = match self.pick(&[
            "derivative",
            "non_negative_derivative",
            "difference",
            "non_negative_difference",
            "cumulative_sum",
            "moving_average",
            "elapsed",
        ]) {
            function @ ("derivative" | "non_negative_derivative") => {
                format!("{function}({inner}{})", self.pick(&["", ", 1m"]))
            }
            "moving_average" => format!("moving_average({inner}, {})", self.number(2, 4)),
            "elapsed" => format!("elapsed({inner}{})", self.pick(&["", ", 1s"])),
            function => format!("{function}({inner})"),
        };
        self.finish(&call, windows)
    }

    fn arithmetic(&mut self) -> String {
        let (left, operator) = (self.plain_aggregate(), self.pick(&["+", "-", "*", "/"]));
        let right = if self.chance(0.3) { "2".to_owned() } else { self.plain_aggregate() };
        let windows = self.chance(0.7);
        self.finish(&format!("{left} {operator} {right}"), windows)
    }

    /// A subquery without groups, or without windows.
    fn subquery(&mut self) -> String {
        let call = self.plain_aggregate();
        let inner = if self.chance(0.5) {
            let (range, interval) = (self.condition_from_window(), self.interval());
            format!("SELECT {call} AS v FROM m{range} GROUP BY time({interval}) fill(none)")
        } else {
            format!("SELECT {call} AS v FROM m{} GROUP BY h, r", self.condition(false))
        };
        let outer =
            self.pick(&["mean(v)", "max(v)", "sum(v)", "count(v)", "min(v)", "max(v) - min(v)"]);
        let filter = self.pick(&["", " WHERE v > 3"]);
        format!("SELECT {outer} FROM ({inner}){filter}")
    }

    fn finish(&mut self, fields: &str, windows: bool) -> String {
        let (range, group, tail) = (self.condition(windows), self.group(windows), self.tail());
        let has_texts = TEXTS_OF.iter().any(|text| fields.contains(text));
        // A number that fill() puts into a column of texts differs.
        let group = if has_texts { without_numbers(&group) } else { group };
        format!("SELECT {fields} FROM m{range}{group}{tail}")
    }

    fn condition(&mut self, windows: bool) -> String {
        let mut parts: Vec<String> = Vec::new();
        if windows || self.chance(0.9) {
            parts.push(self.range(windows));
        }
        if self.chance(0.45) {
            parts.push(self.filter(0));
        }
        if parts.is_empty() { String::new() } else { format!(" WHERE {}", parts.join(" AND ")) }
    }

    /// A range that begins with a week, and with every window that is shorter.
    fn condition_from_window(&mut self) -> String {
        const WEEK_NS: i64 = 168 * HOUR_NS;
        let from = self.shape.time_ns(self.random) / WEEK_NS * WEEK_NS;
        format!(" WHERE time >= {from} AND time < {}", from + WEEK_NS)
    }

    fn range(&mut self, both_ends: bool) -> String {
        let from = self.shape.time_ns(self.random);
        let length = self.shape.span_ns / *self.random.pick(&[10, 3, 1]) * self.number(1, 2);
        let mut round =
            |time: i64| if self.random.chance(0.4) { time / HOUR_NS * HOUR_NS } else { time };
        let (from, to) = (round(from), round(from + length + HOUR_NS));
        let from = format!("time {} {from}", self.pick(&[">=", ">"]));
        let to = format!("time {} {to}", self.pick(&["<", "<="]));
        match self.random.below(5) {
            0 if !both_ends => from,
            1 if !both_ends => to,
            _ => format!("{from} AND {to}"),
        }
    }

    fn filter(&mut self, depth: u32) -> String {
        match self.random.below(100) {
            60..80 if depth < 2 => {
                format!("{} AND {}", self.filter(depth + 1), self.filter(depth + 1))
            }
            80..95 if depth < 2 => {
                format!("({} OR {})", self.filter(depth + 1), self.filter(depth + 1))
            }
            95.. => {
                let (left, operator) = (self.pick(&NUMBERS), self.pick(&["+", "-", "*"]));
                format!(
                    "({left} {operator} {}) > {}",
                    self.pick(&["i", "j", "2", "f"]),
                    self.number(0, 50)
                )
            }
            _ => self.comparison(),
        }
    }

    fn comparison(&mut self) -> String {
        let equality = self.pick(&["=", "!=", "<>"]);
        match self.pick(&["i", "j", "f", "g", "s", "b", "h", "r"]) {
            field @ ("i" | "j" | "f" | "g") => {
                let operator = self.pick(&[">", "<", ">=", "<=", equality]);
                format!("{field} {operator} {}", self.number(-5, 60))
            }
            "b" => format!("b {equality} {}", self.pick(&["true", "false"])),
            name if self.chance(0.3) => {
                let expression = self.pick(&EXPRESSIONS);
                format!("{name} {} /{expression}/", self.pick(&["=~", "!~"]))
            }
            "s" => format!("s {equality} '{}'", self.pick(&TEXTS)),
            "h" => format!("h {equality} '{}'", self.pick(&HOSTS)),
            _ => format!("r {equality} '{}'", self.pick(&RACKS)),
        }
    }

    fn interval(&mut self) -> &'static str {
        if self.shape.span_ns > HOUR_NS {
            self.pick(&["1m", "5m", "10m", "30m", "1h", "2h", "6h", "1d", "7m", "90s", "1w"])
        } else {
            self.pick(&["10s", "30s", "1m", "5m", "7m", "1h", "1d"])
        }
    }

    fn group(&mut self, windows: bool) -> String {
        let mut parts = Vec::new();
        if windows {
            let (interval, offset) = (self.interval(), self.pick(&["", "", "", ", 3m", ", -10s"]));
            parts.push(format!("time({interval}{offset})"));
        }
        let tags = self.pick(&["", "", "", "", "h", "h", "h, r", "*", "r"]);
        if !tags.is_empty() {
            parts.push(tags.to_owned());
        }
        if parts.is_empty() {
            return String::new();
        }
        let fill = if windows && self.chance(0.5) {
            self.pick(&["none", "0", "previous", "linear", "null", "42.5"])
        } else {
            ""
        };
        let fill = if fill.is_empty() { String::new() } else { format!(" fill({fill})") };
        format!(" GROUP BY {}{fill}", parts.join(", "))
    }

    fn tail(&mut self) -> String {
        let mut tail = String::new();
        if self.chance(0.3) {
            tail += " ORDER BY time DESC";
        }
        if self.chance(0.25) {
            tail += &format!(" LIMIT {}", self.pick(&["1", "2", "5", "50"]));
            if self.chance(0.4) {
                tail += &format!(" OFFSET {}", self.pick(&["1", "3"]));
            }
        }
        if self.chance(0.08) {
            tail += &format!(" SLIMIT {}", self.pick(&["1", "2"]));
        }
        tail
    }
}
