//! SHOW CARDINALITY ... BY ...: where the series of a database are, the most first. An extension.
//!
//! Names stream by and only the first ones are kept, so that memory follows LIMIT and not the
//! database. What is counted are series and values of each measurement by itself.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use influxql::{CardinalityBy, ShowCardinalityBy};
use model::{Column, DatabaseId, Name, Reservation, TagExpr, Values};
use store::{MetadataKind, MetadataRequest, NameFilter};

use crate::answer::{header, text_column};
use crate::exec::column::undictionary;
use crate::exec::stream::Part;
use crate::names::{check_policies, common_database, source_filter};
use crate::{Answer, QueryContext, QueryError};

/// Rows shown if LIMIT does not say.
const LIMIT: u64 = 10;

/// Answers SHOW CARDINALITY BY.
pub(super) fn show(show: &ShowCardinalityBy, context: &QueryContext) -> Result<Answer, QueryError> {
    check_policies(&show.sources, show.database.as_deref(), context)?;
    let database = common_database(&show.sources, show.database.as_deref(), context)?;
    let several = || QueryError::unsupported("SHOW CARDINALITY BY of several databases");
    let database = database.ok_or_else(several)?;
    let measurements = source_filter(&show.sources, database, context)?;
    let explorer = Explorer { database, context };
    let limit = if show.limit == 0 { LIMIT } else { show.limit };
    let mut top = Top::new(limit.saturating_add(show.offset), context)?;
    let (names, counts): (&[&str], &[&str]) = match show.by {
        CardinalityBy::Measurement => {
            explorer.by_measurement(measurements, &mut top)?;
            (&["measurement"], &["series"])
        }
        CardinalityBy::TagKey => {
            explorer.by_tag_key(measurements, &mut top)?;
            (&["measurement", "tagKey"], &["values", "series"])
        }
        CardinalityBy::TagValue => {
            explorer.by_tag_value(measurements, &mut top)?;
            (&["measurement", "tagKey", "tagValue"], &["series"])
        }
    };
    let rows = top.into_rows(show.offset);
    if rows.is_empty() {
        return Ok(Answer::empty());
    }
    let columns = (0..names.len()).map(|at| text_column(rows.iter().map(|row| &*row.names[at])));
    let numbers = (0..counts.len()).map(|at| {
        let of_row = |row: &Entry| if at == 0 { row.count } else { row.second };
        Column::new(Values::Integer(rows.iter().map(of_row).collect()))
    });
    let header = header("cardinality", &[names, counts].concat());
    Ok(Answer::ready(vec![Part::new(header, columns.chain(numbers).collect())]))
}

struct Explorer<'a> {
    database: DatabaseId,
    context: &'a QueryContext,
}

impl Explorer<'_> {
    fn by_measurement(&self, among: NameFilter, top: &mut Top) -> Result<(), QueryError> {
        self.facts(MetadataKind::SeriesCounts, among, TagExpr::True, |fact| {
            top.add(fact.count, 0, &fact.names)
        })
    }

    fn by_tag_key(&self, among: NameFilter, top: &mut Top) -> Result<(), QueryError> {
        self.facts(MetadataKind::TagKeys, among, TagExpr::True, |fact| {
            let [measurement, key] = fact.names[..] else { return Ok(()) };
            let (values, series) = self.of_key(measurement, key)?;
            top.add(values, series, &fact.names)
        })
    }

    fn by_tag_value(&self, among: NameFilter, top: &mut Top) -> Result<(), QueryError> {
        self.facts(MetadataKind::TagKeys, among, TagExpr::True, |fact| {
            let [measurement, key] = fact.names[..] else { return Ok(()) };
            let (values, series) = self.of_key(measurement, key)?;
            // No value has more series than there are when every other value has one.
            if !top.has_room_for(series - values + 1) {
                return Ok(());
            }
            let only = NameFilter::In(vec![key.into()]);
            let kind = MetadataKind::TagValues(only);
            self.facts(kind, one(measurement), TagExpr::True, |fact| {
                let Some(value) = fact.names.get(2) else { return Ok(()) };
                let of_value = TagExpr::Equals(key.into(), (*value).into());
                top.add(self.series(measurement, of_value)?, 0, &fact.names)
            })
        })
    }

    /// How many values a tag has, and how many series have it.
    fn of_key(&self, measurement: &str, key: &str) -> Result<(i64, i64), QueryError> {
        let mut values = 0;
        let only = NameFilter::In(vec![key.into()]);
        self.facts(MetadataKind::TagValues(only), one(measurement), TagExpr::True, |_| {
            values += 1;
            Ok(())
        })?;
        let present = TagExpr::Not(Box::new(TagExpr::Equals(key.into(), "".into())));
        Ok((values, self.series(measurement, present)?))
    }

    fn series(&self, measurement: &str, condition: TagExpr) -> Result<i64, QueryError> {
        let mut series = 0;
        self.facts(MetadataKind::SeriesCounts, one(measurement), condition, |fact| {
            series += fact.count;
            Ok(())
        })?;
        Ok(series)
    }

    /// Calls `visit` with each fact.
    fn facts(
        &self,
        kind: MetadataKind,
        measurements: NameFilter,
        series: TagExpr,
        mut visit: impl FnMut(&Fact<'_>) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let request = MetadataRequest {
            database: self.database,
            kind,
            measurements,
            series,
            facts_max: None,
            context: self.context.scan_context(),
        };
        let mut cursor = self.context.store.metadata(&request)?;
        while let Some(mut batch) = cursor.next()? {
            self.context.interrupt.check()?;
            batch.columns.iter_mut().for_each(undictionary);
            for row in 0..batch.rows {
                let mut fact = Fact { names: Vec::with_capacity(3), count: 0 };
                for column in &batch.columns {
                    match &column.values {
                        Values::String(texts) => fact.names.push(texts.get(row)),
                        Values::Integer(counts) => fact.count = counts[row],
                        other => panic!("BUG: a fact is text or a count, not {other:?}"),
                    }
                }
                visit(&fact)?;
            }
        }
        Ok(())
    }
}

fn one(measurement: &str) -> NameFilter {
    NameFilter::In(vec![measurement.into()])
}

/// One row of metadata.
struct Fact<'a> {
    names: Vec<&'a str>,
    count: i64,
}

/// A row of the answer. The order is that of the answer, the last row being the greatest.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Row(Reverse<i64>, Reverse<i64>, Vec<Name>);

/// The rows with the largest counts; of equal ones those with the smaller names.
struct Top {
    wanted: u64,
    rows: BinaryHeap<Row>,
    bytes: usize,
    held: Reservation,
}

/// A row that is shown.
struct Entry {
    names: Vec<Name>,
    count: i64,
    second: i64,
}

impl Top {
    fn new(wanted: u64, context: &QueryContext) -> Result<Self, QueryError> {
        let held = context.budget.reserve(0)?;
        Ok(Self { wanted, rows: BinaryHeap::new(), bytes: 0, held })
    }

    /// Whether a row with this count, whose names are behind all others, would be kept.
    fn has_room_for(&self, count: i64) -> bool {
        let last = self.rows.peek();
        (self.rows.len() as u64) < self.wanted || last.is_some_and(|last| count > last.0.0)
    }

    fn add(&mut self, count: i64, second: i64, names: &[&str]) -> Result<(), QueryError> {
        let row = Row(
            Reverse(count),
            Reverse(second),
            names.iter().map(|name| Name::from(*name)).collect(),
        );
        if self.rows.len() as u64 >= self.wanted && self.rows.peek().is_none_or(|last| row >= *last)
        {
            return Ok(());
        }
        self.bytes += bytes_of(&row);
        self.rows.push(row);
        if self.rows.len() as u64 > self.wanted
            && let Some(last) = self.rows.pop()
        {
            self.bytes -= bytes_of(&last);
        }
        if self.bytes > self.held.bytes() {
            self.held.resize(self.bytes + self.bytes / 4)?;
        }
        Ok(())
    }

    fn into_rows(self, offset: u64) -> Vec<Entry> {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let entry = |Row(Reverse(count), Reverse(second), names)| Entry { names, count, second };
        self.rows.into_sorted_vec().into_iter().skip(offset).map(entry).collect()
    }
}

fn bytes_of(row: &Row) -> usize {
    size_of::<Row>() + row.2.iter().map(|name| name.len() + 32).sum::<usize>()
}
