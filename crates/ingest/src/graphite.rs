//! Graphite's plain text: `path value [seconds]`, one point a line.
//!
//! Templates say which nodes of a path are measurement, tags and field; filters say which template a
//! path gets. What they mean is InfluxDB's, so that its configurations give the same rows.

mod template;

use crate::point::Lines;
use template::{Matcher, Template};

/// How paths become measurements, tags and fields.
#[derive(Clone, Debug)]
pub struct GraphiteParser {
    matcher: Matcher,
    /// Tags of every point that has none of that key.
    tags: Vec<(String, String)>,
}

/// Earliest and latest time that a line may have, seconds: the days 1901-12-13 and 2038-01-19 begin.
const SECONDS: std::ops::RangeInclusive<i64> = -2_147_558_400..=2_147_472_000;

/// Why a line is no point.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphiteError {
    /// It has not two or three columns.
    #[error("received {0:?} which doesn't have required fields")]
    Columns(String),
    /// The second column is no number.
    #[error("field {0:?} value: not a number")]
    Value(String),
    /// The number cannot be stored.
    #[error("NaN and infinities are no values")]
    NotFinite,
    /// The third column is no time, or one that is too far away.
    #[error("field {0:?} time: not a time between 1901 and 2038")]
    Time(String),
    /// The path and its template do not fit.
    #[error("{0}")]
    Template(String),
    /// The point has a name that cannot be written down.
    #[error("{0}")]
    Name(#[from] crate::point::PointError),
}

impl GraphiteParser {
    /// A parser with these templates (`[filter ]template[ tag=value,...]`), this text between joined
    /// nodes, and these tags for every point (`key=value`).
    ///
    /// # Errors
    /// What is wrong with a template or tag, in InfluxDB's words.
    pub fn new(templates: &[String], separator: &str, tags: &[String]) -> Result<Self, String> {
        let tags = tags.iter().map(|tag| template::tag(tag)).collect::<Result<_, _>>()?;
        Ok(Self { matcher: Matcher::new(templates, separator)?, tags })
    }

    /// Adds the point of a line. A line without a time, or with -1, gets `now_ns`.
    ///
    /// # Errors
    /// [`GraphiteError`]: nothing was added.
    pub fn parse(&self, line: &str, now_ns: i64, lines: &mut Lines) -> Result<(), GraphiteError> {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let (path, value, time) = match columns[..] {
            [path, value] => (path, value, None),
            [path, value, time] => (path, value, Some(time)),
            _ => return Err(GraphiteError::Columns(line.to_owned())),
        };
        let template: &Template = self.matcher.find(path);
        let named = template.apply(path).map_err(GraphiteError::Template)?;
        let number = number(value).ok_or_else(|| GraphiteError::Value(path.to_owned()))?;
        if !number.is_finite() {
            return Err(GraphiteError::NotFinite);
        }
        let time_ns = match time {
            None => now_ns,
            Some(text) => {
                time_ns(text, now_ns).ok_or_else(|| GraphiteError::Time(path.to_owned()))?
            }
        };
        let measurement = if named.measurement.is_empty() { path } else { &named.measurement };
        let field = if named.field.is_empty() { "value" } else { &named.field };
        let mut tags = named.tags;
        for (key, value) in &self.tags {
            tags.entry(key.clone()).or_insert_with(|| value.clone());
        }
        let tags = tags.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        Ok(lines.push(measurement, tags, [(field, number)], time_ns)?)
    }
}

/// A number as the sender may write it: Rust reads what Go does, but for hexadecimal floats.
fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}

fn time_ns(text: &str, now_ns: i64) -> Option<i64> {
    let seconds = number(text)?;
    if seconds == -1.0 {
        return Some(now_ns);
    }
    let whole = seconds.trunc();
    // NaN is outside as well.
    if !SECONDS.contains(&(whole as i64)) || !seconds.is_finite() {
        return None;
    }
    Some(whole as i64 * 1_000_000_000 + ((seconds - whole) * 1e9) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parser(templates: &[&str]) -> GraphiteParser {
        let templates: Vec<String> = templates.iter().map(ToString::to_string).collect();
        GraphiteParser::new(&templates, "_", &["region=us".to_owned()]).unwrap()
    }

    fn parsed(parser: &GraphiteParser, line: &str) -> Result<String, String> {
        let mut lines = Lines::default();
        parser.parse(line, 7, &mut lines).map_err(|e| e.to_string())?;
        Ok(String::from_utf8(lines.into_text()).unwrap().trim_end().to_owned())
    }

    #[test]
    fn without_templates_the_path_is_the_measurement() {
        let parser = GraphiteParser::new(&[], ".", &[]).unwrap();
        for (line, want) in [
            ("cpu.load 1.5 1419972457", "cpu.load value=1.5 1419972457000000000"),
            ("cpu.load\t2   1419972457.25\r", "cpu.load value=2.0 1419972457250000000"),
            ("cpu 3", "cpu value=3.0 7"),
            ("cpu 3 -1", "cpu value=3.0 7"),
            ("a..b -1e9 0", "a..b value=-1000000000.0 0"),
        ] {
            assert_eq!(parsed(&parser, line).as_deref(), Ok(want), "{line}");
        }
        for bad in
            ["", "cpu", "cpu 1 2 3", "cpu x", "cpu NaN 1", "cpu 1 x", "cpu 1 1e11", "cpu inf"]
        {
            assert!(parsed(&parser, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn templates_name_measurement_tags_and_field() {
        let parser = parser(&[
            "*.app env.service.resource.measurement",
            "server.* .host.measurement*",
            "stats.*.foo.* .host.x.measurement.field* extra=1",
            "rep.* a.a.measurement.measurement",
            "measurement.measurement*",
        ]);
        for (line, want) in [
            (
                "prod.app.cpu.idle 1 0",
                "idle,env=prod,region=us,resource=cpu,service=app value=1.0 0",
            ),
            ("server.h1.cpu.load.one 1 0", "cpu_load_one,host=h1,region=us value=1.0 0"),
            ("stats.h.foo.m.f.g 1 0", "m,extra=1,host=h,region=us,x=foo f_g=1.0 0"),
            ("rep.q.m.n 1 0", "m_n,a=rep_q,region=us value=1.0 0"),
            ("other.x.y 1 0", "other_x_y,region=us value=1.0 0"),
        ] {
            assert_eq!(parsed(&parser, line).as_deref(), Ok(want), "{line}");
        }
        let twice = self::parser(&["measurement.field.field"]);
        assert!(parsed(&twice, "m.a.b 1 0").unwrap_err().contains("'field' can only be used once"));
        assert!(parsed(&twice, "m.a 1 0").is_ok());
    }

    #[test]
    fn bad_templates_are_refused() {
        for (templates, text) in [
            (vec!["a.b"], "no measurement specified for template. \"a.b\""),
            (vec![""], "missing template at position: 0"),
            (vec!["a b c d"], "invalid template format: 'a b c d'"),
            (vec!["x measurement", "x measurement*"], "duplicate filter 'x' found at position: 1"),
            (
                vec!["measurement*.field*"],
                "either 'field*' or 'measurement*' can be used in each template (but not both \
                 together): \"measurement*.field*\"",
            ),
            (vec!["x measurement tag"], "invalid template format: 'x measurement tag'"),
        ] {
            let templates: Vec<String> = templates.iter().map(ToString::to_string).collect();
            assert_eq!(GraphiteParser::new(&templates, ".", &[]).unwrap_err(), text);
        }
        assert!(GraphiteParser::new(&[], ".", &["tag".to_owned()]).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(
            line in "[a-c.*= \\t\\\\#,]{0,20} ?[0-9.e-]{0,5} ?[0-9.-]{0,12}",
            templates in prop::collection::vec("([a.*]{1,4} )?[a-b.]{0,4}(measurement|field)?[.]?(measurement|field)?\\*?( a=b)?", 0..3),
        ) {
            let Ok(parser) = GraphiteParser::new(&templates, "_", &[]) else { return Ok(()) };
            let mut lines = Lines::default();
            let added = parser.parse(&line, 7, &mut lines).is_ok();
            prop_assert_eq!(lines.points(), usize::from(added));
        }
    }
}
