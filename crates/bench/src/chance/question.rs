//! One question put together by chance, in InfluxQL, and in QuestDB's SQL where that has words for it.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::schema::{Field, Kind, Measurement, quoted};
use crate::random::Random;
use crate::workload::{HOUR_NS, SECOND_NS};

const MINUTE_NS: i64 = 60 * SECOND_NS;
/// Windows and how QuestDB writes them.
const WINDOWS: [(i64, &str); 7] = [
    (10 * SECOND_NS, "10s"),
    (MINUTE_NS, "1m"),
    (5 * MINUTE_NS, "5m"),
    (10 * MINUTE_NS, "10m"),
    (HOUR_NS, "1h"),
    (6 * HOUR_NS, "6h"),
    (24 * HOUR_NS, "1d"),
];
/// A question has fewer windows over all groups.
const WINDOWS_MAX: i64 = 300_000;
/// Functions of one field: name, QuestDB's with `{}` for the field, nanoseconds that a value may take.
const CALLS: [(&str, Option<&str>, f64); 18] = [
    ("mean", Some("avg({})"), 0.5),
    ("sum", Some("sum({})"), 0.5),
    ("min", Some("min({})"), 0.5),
    ("max", Some("max({})"), 0.5),
    ("count", Some("count({})"), 0.5),
    ("spread", Some("max({}) - min({})"), 0.5),
    ("first", Some("first_not_null({})"), 0.5),
    ("last", Some("last_not_null({})"), 0.5),
    ("stddev", Some("stddev_samp({})"), 1.0),
    ("median", None, 4.0),
    ("mode", None, 4.0),
    ("integral", None, 3.0),
    ("percentile", None, 4.0),
    ("count_distinct", Some("count_distinct({})"), 4.0),
    ("distinct", None, 4.0),
    ("top", None, 1.0),
    ("bottom", None, 1.0),
    ("sample", None, 2.0),
];
/// Functions of rows that follow each other, and functions of one number.
const CHANGES: [&str; 9] = [
    "derivative",
    "non_negative_derivative",
    "difference",
    "moving_average",
    "cumulative_sum",
    "elapsed",
    "abs",
    "floor",
    "sqrt",
];

/// A question.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) influxql: String,
    /// `None`: it has no words for it.
    pub(super) questdb: Option<String>,
    /// How many values there are of the fields it speaks of, at its times and of its series.
    pub(super) count: String,
    /// Nanoseconds that a value may take.
    pub(super) effort_ns: f64,
    /// Whether it asks for all rows, and for no number made of several of them.
    pub(super) shows_all_rows: bool,
}

/// What has been put together so far.
struct Draft<'a> {
    from: &'a Measurement,
    random: &'a mut Random,
    start_ns: i64,
    end_ns: i64,
    /// Conditions, in InfluxQL and in SQL.
    of_tags: Vec<(String, String)>,
    of_fields: Vec<(String, String)>,
    named: Vec<&'a str>,
}

/// Puts a question together.
pub(super) fn question(random: &mut Random, all: &[Measurement]) -> Question {
    let from = &all[random.below(all.len() as u64) as usize];
    let (start_ns, end_ns) = times(random, from);
    let mut draft = Draft {
        from,
        random,
        start_ns,
        end_ns,
        of_tags: Vec::new(),
        of_fields: Vec::new(),
        named: Vec::new(),
    };
    draft.choose_tags();
    for _ in 0..*draft.random.pick(&[0, 0, 0, 1, 1, 2]) {
        draft.choose_condition();
    }
    match draft.random.below(10) {
        0..=2 => draft.rows(),
        3 if from.has_numbers() => draft.changes(),
        4 if from.has_numbers() => draft.nested(),
        _ => draft.calls(),
    }
}

/// A range of times: all, or a part that begins anywhere.
fn times(random: &mut Random, from: &Measurement) -> (i64, i64) {
    let first = from.first_ns;
    // Of more than 292 years the rest is not asked about.
    let all = from.last_ns.saturating_add(1).saturating_sub(first).max(1);
    let lengths = [all, all, all / 3, 12 * HOUR_NS, HOUR_NS, 5 * MINUTE_NS, MINUTE_NS];
    let length = (*random.pick(&lengths)).clamp(1, all);
    let start = first + random.below((all - length + 1) as u64) as i64;
    match random.chance(0.5) {
        // As dashboards ask.
        true => {
            let start = start - start.rem_euclid(MINUTE_NS);
            (start, start + length)
        }
        false => (start, start + length),
    }
}

fn time(ns: i64) -> String {
    Timestamp::from_nanosecond(i128::from(ns))
        .map_or_else(|_| ns.to_string(), |time| time.to_string())
}

impl<'a> Draft<'a> {
    fn field(&mut self) -> &'a Field {
        let field = self.random.pick(&self.from.fields);
        self.named.push(&field.name);
        field
    }

    fn number(&mut self) -> &'a Field {
        loop {
            let field = self.random.pick(&self.from.fields);
            if field.is_number() {
                self.named.push(&field.name);
                return field;
            }
        }
    }

    fn choose_tags(&mut self) {
        if self.from.tags.is_empty() || self.random.chance(0.45) {
            return;
        }
        let tag = self.random.pick(&self.from.tags);
        let key = &tag.key;
        if tag.values.is_empty() {
            return;
        }
        let (a, b) = (self.random.pick(&tag.values), self.random.pick(&tag.values));
        let (text_a, text_b) = (quoted(a, '\''), quoted(b, '\''));
        let (sql_a, sql_b) = (sql_text(a), sql_text(b));
        let (influxql, sql) = match self.random.below(5) {
            0 | 1 => (format!("{key} = {text_a}"), format!("{key} = {sql_a}")),
            2 => (format!("{key} != {text_a}"), format!("{key} != {sql_a}")),
            3 => (
                format!("({key} = {text_a} OR {key} = {text_b})"),
                format!("{key} IN ({sql_a}, {sql_b})"),
            ),
            _ => {
                let half: String = a.chars().take(a.chars().count().div_ceil(2)).collect();
                let half = format!("^{}", literally(&half));
                (format!("{key} =~ /{half}/"), format!("{key} ~ {}", sql_text(&half)))
            }
        };
        self.of_tags.push((influxql, sql));
    }

    fn choose_condition(&mut self) {
        let field = self.field();
        let name = &field.name;
        let both = |text: String| (text.clone(), text);
        let condition = match &field.kind {
            Kind::Number(quantiles) if !quantiles.is_empty() => {
                let value = self.random.pick(quantiles);
                let operator = self.random.pick(&[">", ">", "<", ">=", "<=", "=", "!="]);
                match self.random.below(6) {
                    0 => {
                        let other = self.number();
                        both(format!("{name} {operator} {}", other.name))
                    }
                    1 => {
                        let other = self.number();
                        both(format!("{name} + {} {operator} {value}", other.name))
                    }
                    _ => both(format!("{name} {operator} {value}")),
                }
            }
            Kind::Number(_) => return,
            Kind::Boolean => both(format!("{name} = true")),
            Kind::Text(texts) => {
                if texts.is_empty() {
                    return;
                }
                let text = self.random.pick(texts);
                let word: String = text.chars().filter(|c| c.is_alphanumeric()).take(4).collect();
                let (text, sql) = (quoted(text, '\''), sql_text(text));
                match self.random.below(3) {
                    0 => (format!("{name} =~ /{word}/"), format!("{name} ~ '{word}'")),
                    1 => (format!("{name} != {text}"), format!("{name} != {sql}")),
                    _ => (format!("{name} = {text}"), format!("{name} = {sql}")),
                }
            }
        };
        self.of_fields.push(condition);
    }

    /// WHERE in InfluxQL and in SQL.
    fn conditions(&self, with_fields: bool) -> (String, String) {
        let (start, end) = (time(self.start_ns), time(self.end_ns));
        let mut influxql = format!("time >= '{start}' AND time < '{end}'");
        let mut sql = format!("timestamp >= '{start}' AND timestamp < '{end}'");
        let fields = if with_fields { &self.of_fields[..] } else { &[] };
        for (one, other) in self.of_tags.iter().chain(fields) {
            write!(influxql, " AND {one}").expect("BUG: text can always grow");
            write!(sql, " AND {other}").expect("BUG: text can always grow");
        }
        (influxql, sql)
    }

    fn groups(&mut self) -> Vec<&'a str> {
        let how_many = *self.random.pick(&[0, 0, 0, 1, 1, 2]);
        let mut groups: Vec<&str> = (0..how_many.min(self.from.tags.len()))
            .map(|_| self.random.pick(&self.from.tags).key.as_str())
            .collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    /// A window that the groups' answers are not too long for.
    fn window(&mut self, groups: &[&str]) -> Option<(i64, &'static str)> {
        if self.random.chance(0.4) {
            return None;
        }
        let values = |key: &&str| {
            let tag = self.from.tags.iter().find(|tag| tag.key == **key);
            tag.map_or(1, |tag| tag.cardinality.max(1) as i64)
        };
        let parts = groups.iter().map(values).fold(1, i64::saturating_mul);
        let from = self.random.below(WINDOWS.len() as u64) as usize;
        let length = self.end_ns - self.start_ns;
        WINDOWS[from..]
            .iter()
            .copied()
            .find(|(ns, _)| (length / ns).saturating_mul(parts) <= WINDOWS_MAX)
    }

    fn finish(mut self, influxql: String, questdb: Option<String>, effort_ns: f64) -> Question {
        self.named.sort_unstable();
        self.named.dedup();
        let counts: Vec<String> = self.named.iter().map(|name| format!("count({name})")).collect();
        let (conditions, _) = self.conditions(false);
        let count =
            format!("SELECT {} FROM {} WHERE {conditions}", counts.join(", "), self.from.name);
        let effort_ns = effort_ns + self.of_fields.len() as f64;
        Question { influxql, questdb, count, effort_ns, shows_all_rows: false }
    }

    fn rows(mut self) -> Question {
        let from = &self.from.name;
        let columns = match self.random.chance(0.2) {
            true => {
                self.named.extend(self.from.fields.iter().map(|field| field.name.as_str()));
                None
            }
            false => {
                let mut fields: Vec<&str> = (0..*self.random.pick(&[1, 1, 2, 3]))
                    .map(|_| self.field().name.as_str())
                    .collect();
                fields.sort_unstable();
                fields.dedup();
                Some(fields)
            }
        };
        let list = columns.map(|fields| fields.join(", "));
        let groups = match self.random.chance(0.2) {
            true => self.groups(),
            false => Vec::new(),
        };
        let limit = *self.random.pick(&[None, Some(1), Some(10), Some(100), Some(1000)]);
        let descending = self.random.chance(0.3);
        let (conditions, sql) = self.conditions(true);
        let mut influxql =
            format!("SELECT {} FROM {from} WHERE {conditions}", list.as_deref().unwrap_or("*"));
        push_groups(&mut influxql, None, &groups, "");
        let mut questdb = format!(
            "SELECT {} FROM {from} WHERE {sql} ORDER BY timestamp",
            list.map_or("*".to_owned(), |list| format!("timestamp, {list}"))
        );
        if descending {
            influxql.push_str(" ORDER BY time DESC");
            questdb.push_str(" DESC");
        }
        if let Some(limit) = limit {
            write!(influxql, " LIMIT {limit}").expect("BUG: text can always grow");
            write!(questdb, " LIMIT {limit}").expect("BUG: text can always grow");
        }
        let has_words = groups.is_empty() || limit.is_none();
        let question = self.finish(influxql, has_words.then_some(questdb), 0.5);
        Question { shows_all_rows: limit.is_none(), ..question }
    }

    /// A call of a function with its words in SQL, and what a value of it may take.
    fn call(&mut self) -> (String, Option<String>, f64) {
        let takes_any = |name: &str| {
            let all = ["count", "first", "last", "mode", "count_distinct", "distinct", "sample"];
            all.contains(&name)
        };
        let has_numbers = self.from.has_numbers();
        let (name, sql, effort_ns) = loop {
            let call = *self.random.pick(&CALLS);
            if has_numbers || takes_any(call.0) {
                break call;
            }
        };
        let field = if takes_any(name) { self.field() } else { self.number() };
        let field = &field.name;
        let influxql = match name {
            "percentile" => {
                format!("percentile({field}, {})", self.random.pick(&[5, 50, 95, 99]))
            }
            "top" | "bottom" | "sample" => {
                format!("{name}({field}, {})", self.random.pick(&[1, 3, 10]))
            }
            "count_distinct" => format!("count(distinct({field}))"),
            _ => format!("{name}({field})"),
        };
        (influxql, sql.map(|sql| sql.replace("{}", field)), effort_ns)
    }

    fn calls(mut self) -> Question {
        let mut calls = vec![self.call()];
        // What gives many rows stands alone.
        let is_alone = |text: &str| {
            ["distinct(", "top(", "bottom(", "sample("].iter().any(|name| text.starts_with(name))
        };
        if !is_alone(&calls[0].0) {
            for _ in 0..*self.random.pick(&[0, 0, 1, 2]) {
                calls.push(self.call());
            }
            calls.retain({
                let mut at = 0;
                move |(text, ..)| {
                    at += 1;
                    at == 1 || !is_alone(text)
                }
            });
        }
        let groups = self.groups();
        let window = self.window(&groups);
        let (conditions, sql) = self.conditions(true);
        let texts: Vec<&str> = calls.iter().map(|(text, ..)| text.as_str()).collect();
        let from = &self.from.name;
        let mut influxql = format!("SELECT {} FROM {from} WHERE {conditions}", texts.join(", "));
        let fill =
            *self.random.pick(&[" fill(none)", " fill(none)", "", " fill(previous)", " fill(0)"]);
        push_groups(&mut influxql, window.map(|(_, text)| text), &groups, fill);
        let words: Option<Vec<&str>> = calls.iter().map(|(_, sql, _)| sql.as_deref()).collect();
        let questdb = words.map(|words| {
            let keys: String = groups.iter().map(|key| format!("{key}, ")).collect();
            let time = if window.is_some() { "timestamp, " } else { "" };
            let every = window.map_or(String::new(), |(_, text)| format!(" SAMPLE BY {text}"));
            format!("SELECT {time}{keys}{} FROM {from} WHERE {sql}{every}", words.join(", "))
        });
        let effort_ns = calls.iter().map(|(.., effort_ns)| effort_ns).sum();
        self.finish(influxql, questdb, effort_ns)
    }

    /// What changes from row to row, or from window to window.
    fn changes(mut self) -> Question {
        let name = *self.random.pick(&CHANGES);
        let field = &self.number().name;
        let groups = self.groups();
        let more = if name == "moving_average" { ", 4" } else { "" };
        let from = &self.from.name;
        let (conditions, _) = self.conditions(true);
        let window = self.window(&groups).filter(|_| !matches!(name, "abs" | "floor" | "sqrt"));
        let of = match window {
            Some(_) => format!("{}({field})", self.random.pick(&["mean", "max", "last"])),
            None => field.clone(),
        };
        let mut influxql = format!("SELECT {name}({of}{more}) FROM {from} WHERE {conditions}");
        push_groups(&mut influxql, window.map(|(_, text)| text), &groups, " fill(none)");
        let is_limited = window.is_none() && self.random.chance(0.7);
        if is_limited {
            influxql.push_str(" LIMIT 100");
        }
        let shows_all_rows = window.is_none() && !is_limited;
        Question { shows_all_rows, ..self.finish(influxql, None, 3.0) }
    }

    /// A function of what another gives.
    fn nested(mut self) -> Question {
        let field = &self.number().name;
        let outer = *self.random.pick(&["mean", "max", "sum", "count", "median", "last"]);
        let inner = *self.random.pick(&["mean", "max", "last", "min", "median"]);
        let groups = self.groups();
        let window = self.window(&groups);
        let from = &self.from.name;
        let (conditions, _) = self.conditions(true);
        let mut within = format!("SELECT {inner}({field}) AS x FROM {from} WHERE {conditions}");
        push_groups(&mut within, window.map(|(_, text)| text), &groups, " fill(none)");
        let kept: Vec<&str> = groups.iter().copied().filter(|_| self.random.chance(0.5)).collect();
        let mut influxql = format!("SELECT {outer}(x) FROM ({within})");
        let coarse = window.filter(|_| self.random.chance(0.5)).map(|_| "1h");
        if coarse.is_some() {
            let (start, end) = (time(self.start_ns), time(self.end_ns));
            write!(influxql, " WHERE time >= '{start}' AND time < '{end}'")
                .expect("BUG: text can always grow");
        }
        push_groups(&mut influxql, coarse, &kept, " fill(none)");
        self.finish(influxql, None, 1.5)
    }
}

/// A text for SQL.
fn sql_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The regular expression of a text.
fn literally(text: &str) -> String {
    let escaped = |c: char| (!c.is_alphanumeric() && c != '_').then_some('\\');
    text.chars().flat_map(|c| escaped(c).into_iter().chain([c])).collect()
}

fn push_groups(text: &mut String, window: Option<&str>, groups: &[&str], fill: &str) {
    let mut parts: Vec<String> =
        window.map(|window| format!("time({window})")).into_iter().collect();
    parts.extend(groups.iter().map(|key| (*key).to_owned()));
    if !parts.is_empty() {
        write!(text, " GROUP BY {}", parts.join(", ")).expect("BUG: text can always grow");
    }
    if window.is_some() {
        text.push_str(fill);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_quotes_may_have_any() {
        assert_eq!(quoted("a\"b\\", '"'), r#""a\"b\\""#);
        assert_eq!(quoted("it's\n\"so\"", '\''), r#"'it\'s\n"so"'"#);
        assert_eq!(sql_text("it's"), "'it''s'");
        assert_eq!(literally("/a.b_1"), r"\/a\.b_1");
    }
}
