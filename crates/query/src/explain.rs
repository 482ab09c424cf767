//! EXPLAIN and EXPLAIN ANALYZE: what a SELECT reads, and what it took.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use influxql::SelectStatement;
use model::{Operand, TagExpr, TextPattern, TextTest, TimeRange};

use crate::answer::{header, text_column};
use crate::exec::accumulate::Recipe;
use crate::exec::stream::{Part, SelectStream};
use crate::exec::unit::UnitStats;
use crate::execute::plan;
use crate::functions::Function;
use crate::plan::{Condition, Select, Source};
use crate::{Answer, QueryContext, QueryError};

/// Rows pulled at a time while measuring.
const PART_ROWS: usize = 10_000;

/// Explains a SELECT; with `analyze` runs it to its end.
pub(crate) fn explain(
    select: &SelectStatement,
    analyze: bool,
    context: &QueryContext,
) -> Result<Answer, QueryError> {
    let started = Instant::now();
    let plan = Arc::new(plan(select, context)?);
    let planning = started.elapsed();
    let mut lines = Lines::default();
    if !analyze {
        describe(&plan, &mut lines);
        return Ok(lines.answer("QUERY PLAN"));
    }
    lines.add(".");
    lines.add("└── select");
    lines.indent = "    ";
    describe(&plan, &mut lines);
    let mut stream = SelectStream::open(plan, context)?;
    let opened = started.elapsed();
    let (mut rows, mut series, mut last) = (0, 0, None);
    while let Some(part) = stream.next(PART_ROWS)? {
        rows += part.rows();
        if !last.as_ref().is_some_and(|header| Arc::ptr_eq(header, &part.header)) {
            series += 1;
        }
        last = Some(part.header);
    }
    let total = started.elapsed();
    lines.pair("RESULT SERIES", series);
    lines.pair("RESULT ROWS", rows);
    for stats in stream.stats() {
        measured(&stats, &mut lines);
    }
    lines.pair("planning_time", duration(planning));
    lines.pair("open_time", duration(opened.saturating_sub(planning)));
    lines.pair("execution_time", duration(total.saturating_sub(opened)));
    lines.pair("total_time", duration(total));
    Ok(lines.answer("EXPLAIN ANALYZE"))
}

/// Lines of the answer.
#[derive(Default)]
struct Lines {
    text: Vec<String>,
    indent: &'static str,
}

impl Lines {
    fn add(&mut self, line: &str) {
        self.text.push(format!("{}{line}", self.indent));
    }

    fn pair(&mut self, name: &str, value: impl std::fmt::Display) {
        self.add(&format!("{name}: {value}"));
    }

    fn answer(self, column: &str) -> Answer {
        let columns = vec![text_column(self.text.iter().map(String::as_str))];
        let part = Part::new(header("", &[column]), columns);
        Answer::ready(vec![part])
    }
}

fn describe(select: &Select, lines: &mut Lines) {
    for call in &select.calls {
        let inner = match call.function {
            Function::Values => call.field.to_string(),
            ref function => format!("{}({})", function.name(), call.field),
        };
        let steps = call.transforms.iter();
        let expression = steps.fold(inner, |inner, step| format!("{}({inner})", step.name()));
        lines.pair("EXPRESSION", expression);
    }
    if !select.aux.is_empty() {
        let names: Vec<&str> = select.aux.iter().map(|aux| &*aux.name).collect();
        lines.pair("AUXILIARY FIELDS", names.join(", "));
    }
    lines.pair("TIME RANGE", range(select.range));
    if let Some(windows) = &select.windows {
        lines.pair(
            "WINDOW",
            match windows.months {
                0 => format!("{} ns, offset {} ns", windows.every_ns, windows.offset_ns),
                months => format!("{months} calendar months"),
            },
        );
    }
    if !select.dimensions.is_empty() {
        let names: Vec<&str> = select.dimensions.iter().map(|name| &**name).collect();
        lines.pair("DIMENSIONS", names.join(", "));
    }
    if let Some(after) = &select.after {
        if after.having.is_some() {
            lines.add("HAVING: evaluated for each row of the result");
        }
        if !after.order.is_empty() {
            lines.add("ORDER BY: the rows of a series are sorted");
        }
    }
    lines.pair("ORDER", if select.ascending { "ascending" } else { "descending" });
    let summaries = Recipe::new(select).summary_parts().is_some();
    select.sources.iter().for_each(|source| describe_source(source, summaries, lines));
}

fn describe_source(source: &Source, summaries: bool, lines: &mut Lines) {
    lines.add("");
    match source {
        Source::Measurement(measurement) => {
            lines.pair("MEASUREMENT", &measurement.name);
            conditions(&measurement.condition, lines);
            let possible = summaries && measurement.condition.predicate.is_none();
            lines.pair("SUMMARIES", if possible { "where the store has them" } else { "no" });
        }
        Source::Subquery(inner) => {
            lines.add("SUBQUERY");
            conditions(&inner.condition, lines);
            describe(&inner.select, lines);
        }
        Source::Join(join) => {
            let names: Vec<&str> = join.tags.iter().map(|name| &**name).collect();
            let tags =
                if names.is_empty() { String::new() } else { format!(", {}", names.join(", ")) };
            lines.pair("JOIN BY", format_args!("time{tags}"));
            lines.pair("TIME RANGE", range(join.range));
            conditions(&join.condition, lines);
            for (at, side) in join.sides.iter().enumerate() {
                let kind = if at == 0 { "LEFTMOST SIDE" } else { side.kind.as_str() };
                lines.add("");
                lines.pair(kind, &side.alias);
                match &side.source {
                    Some(source) => describe_source(source, false, lines),
                    None => lines.add("NO SUCH MEASUREMENT"),
                }
            }
        }
    }
}

fn conditions(condition: &Condition, lines: &mut Lines) {
    if !matches!(condition.tags, TagExpr::True) {
        lines.pair("SERIES CONDITION (decided by the index)", tags(&condition.tags));
    }
    for filter in &condition.filters {
        let operand = match &filter.operand {
            Operand::Constant(constant) => format!("{constant:?}"),
            Operand::Field(field) => format!("{field:?}"),
            Operand::Text(pattern) => text_pattern(pattern),
        };
        lines.pair("PAGE HINT", format_args!("{} {:?} {operand}", filter.field, filter.op));
    }
    if condition.predicate.is_some() {
        lines.add("ROW CONDITION: evaluated for each row");
    }
}

fn text_pattern(pattern: &TextPattern) -> String {
    let texts: Vec<_> = pattern.pieces().texts().map(String::from_utf8_lossy).collect();
    match pattern.test() {
        TextTest::Having => format!("in it one of {texts:?}"),
        TextTest::Starting => format!("begins with {texts:?}"),
        TextTest::Ending => format!("ends with {texts:?}"),
        TextTest::Being => format!("is {texts:?}"),
        TextTest::Matching(regex) => format!("in it one of {texts:?}, matches {regex}"),
    }
}

fn tags(condition: &TagExpr) -> String {
    let join = |parts: &[TagExpr], word: &str| {
        let parts: Vec<String> = parts.iter().map(tags).collect();
        format!("({})", parts.join(word))
    };
    match condition {
        TagExpr::True => "TRUE".to_owned(),
        TagExpr::False => "FALSE".to_owned(),
        TagExpr::And(parts) => join(parts, " AND "),
        TagExpr::Or(parts) => join(parts, " OR "),
        TagExpr::Not(part) => format!("NOT {}", tags(part)),
        TagExpr::Equals(key, value) => format!("{key} = '{value}'"),
        TagExpr::In(key, values) => {
            let mut text = format!("{key} IN (");
            for (at, value) in values.iter().take(8).enumerate() {
                let comma = if at == 0 { "" } else { ", " };
                write!(text, "{comma}'{value}'").expect("BUG: text can always grow");
            }
            if values.len() > 8 {
                write!(text, ", … {} in all", values.len()).expect("BUG: text can always grow");
            }
            text + ")"
        }
        TagExpr::Matches(key, regex) => format!("{key} =~ /{}/", regex.as_str()),
        TagExpr::SameValue(a, b) => format!("{a} = {b}"),
    }
}

fn range(range: TimeRange) -> String {
    let end = |time: i64, open: bool| if open { "open".to_owned() } else { time.to_string() };
    let from = end(range.min, range.min <= model::MIN_TIME_NS);
    let to = end(range.max, range.max >= model::MAX_TIME_NS);
    format!("{from} .. {to}")
}

fn measured(stats: &UnitStats, lines: &mut Lines) {
    lines.add("");
    lines.pair("MEASUREMENT", &stats.name);
    lines.pair("NUMBER OF SERIES", stats.series);
    lines.pair("NUMBER OF GROUPS", stats.groups);
    for scan in &stats.scans {
        lines.pair("NUMBER OF SOURCES", scan.sources);
        lines.pair("SOURCES PRUNED", scan.sources_pruned);
        lines.pair("PAGES READ", scan.pages_read);
        lines.pair("PAGES PRUNED", scan.pages_pruned);
        lines.pair("PAGES SUMMARISED", scan.pages_summarised);
        lines.pair("BYTES READ", scan.bytes_read);
        lines.pair("ROWS READ", scan.rows);
    }
}

fn duration(time: Duration) -> String {
    format!("{:.3}ms", time.as_secs_f64() * 1e3)
}
