//! From a SELECT to what the executor runs, in two steps.
//!
//! `compile` checks what can be checked without looking at data: structure, arguments, dimensions,
//! times. `resolve` looks names up: measurements, fields, tags, their types; it expands wildcards
//! and turns names into positions. A subquery is planned like a query, with the time range and
//! dimensions of the one around it.
//!
//! Not here: reading rows.

mod after;
mod calendar;
mod compile;
mod condition;
mod dimensions;
mod expand;
mod fields;
mod join;
mod lower;
mod percentiles;
mod push;
mod resolve;
mod sources;
mod transforms;
mod types;

use std::sync::Arc;

use influxql::{DataType, Fill};
use model::{FieldType, MeasurementSchema, Name, Regex, TimeRange};
use store::Policy;

pub(crate) use after::{After, Having, HavingSlot, SortKey};
pub(crate) use compile::compile;
pub(crate) use condition::{
    Condition, SlotSource, cardinality_condition, mentions_name, metadata, names_satisfying,
    tag_condition, tag_names, within_measurement,
};
pub(crate) use dimensions::Every;
pub(crate) use join::JoinSource;
pub(crate) use resolve::{resolve_condition, slot_source};
pub(crate) use sources::{matching, names_of};

use crate::exec::expression::Expression;
use crate::exec::text_search::TextSearch;
use crate::exec::window::Windows;
use crate::functions::Function;
use crate::functions::transform::Transform;
use crate::zone::Zone;
use crate::{QueryContext, QueryError};

/// The plan of a compiled SELECT.
///
/// # Errors
/// Unknown databases and policies, operands that do not fit, a failing store.
pub(crate) fn resolve(
    compiled: &compile::Compiled,
    context: &QueryContext,
) -> Result<Select, QueryError> {
    let mut select = resolve::resolve(compiled, context)?;
    select.sources.iter_mut().for_each(Source::decide_name);
    Ok(select)
}

/// A SELECT with all names resolved.
#[derive(Debug)]
pub(crate) struct Select {
    /// Direction of time.
    pub ascending: bool,
    /// What is done with the rows at last; then `limit` and `offset` are there and not here.
    pub after: Option<Box<After>>,
    /// Rows of an output series at most; 0: no limit.
    pub limit: u64,
    /// Rows left out before.
    pub offset: u64,
    /// Output series of a measurement at most; 0: no limit.
    pub series_limit: u64,
    /// Output series left out before.
    pub series_offset: u64,
    /// Times of rows that are read.
    pub range: TimeRange,
    /// Time of what is made of the whole range, if it has a lower bound: the bound asked for, which the
    /// range goes below where the windows of a subquery do.
    pub bound: i64,
    /// Times that may be looked at beyond `range`, by functions that look at windows before it.
    pub reach: TimeRange,
    /// Windows of `GROUP BY time()`, the query's own or those around it.
    pub windows: Option<Windows>,
    /// What empty windows give.
    pub fill: Fill,
    /// Zone of the times shown.
    pub zone: Option<Arc<Zone>>,
    /// Grouped tags, sorted and distinct.
    pub dimensions: Vec<Name>,
    /// Dimensions of the outermost query: what SLIMIT and SOFFSET count.
    pub limited_dimensions: Vec<Name>,
    /// Those of the dimensions that the query itself names: what a query around it can select.
    pub own_dimensions: Vec<Name>,
    /// Functions computed; none: rows are shown as they are.
    pub calls: Vec<CallPlan>,
    /// Fields and tags beside the functions, or all there are; sorted by name.
    pub aux: Vec<AuxPlan>,
    /// The columns behind the time. Slots of their expressions are the calls, then `aux`.
    pub outputs: Vec<Output>,
    /// Name of the time column.
    pub time_column: Name,
    /// Where rows come from.
    pub sources: Vec<Source>,
}

/// One function over one field.
#[derive(Debug, PartialEq)]
pub(crate) struct CallPlan {
    /// The function.
    pub function: Function,
    /// The field's name.
    pub field: Name,
    /// Type its values are read as; `None`: there is no such field.
    pub input: Option<FieldType>,
    /// Type of the results.
    pub result: FieldType,
    /// What is made of the results, step by step.
    pub transforms: Vec<Transform>,
    /// Type of what is made of them.
    pub shown: FieldType,
    /// Whether the type is known even so: then fill() gives values.
    pub is_known: bool,
}

/// One field or tag that is shown as it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AuxPlan {
    /// Its name.
    pub name: Name,
    /// What it is.
    pub kind: ColumnKind,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ColumnKind {
    /// A field, read as this type.
    Field(FieldType),
    /// A tag.
    Tag,
    /// Nothing there is.
    Unknown,
}

impl ColumnKind {
    /// Type of the column.
    pub(crate) fn field_type(self) -> FieldType {
        match self {
            Self::Field(field_type) => field_type,
            Self::Tag => FieldType::String,
            Self::Unknown => FieldType::Float,
        }
    }
}

/// One column of the result.
#[derive(Debug)]
pub(crate) struct Output {
    /// Name in the result, unique as far as InfluxDB makes it.
    pub column: Name,
    /// Name by which a query around this one refers to it.
    pub reference: String,
    /// Type a query around this one reads it as.
    pub data_type: Option<DataType>,
    /// What it shows.
    pub expression: Expression,
}

/// Where rows come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// A measurement of one policy.
    Measurement(MeasurementSource),
    /// The result of another SELECT.
    Subquery(SubquerySource),
    /// Several of these, row by row.
    Join(JoinSource),
}

impl Source {
    /// Decides what conditions, here and further in, say of the measurement's name.
    pub(crate) fn decide_name(&mut self) {
        match self {
            Self::Measurement(measurement) => {
                measurement.condition.decide_name(&measurement.name);
            }
            Self::Subquery(inner) => {
                inner.select_mut().sources.iter_mut().for_each(Self::decide_name);
            }
            Self::Join(join) => join.sources_mut().for_each(Self::decide_name),
        }
    }
}

/// A measurement as a source.
#[derive(Debug)]
pub(crate) struct MeasurementSource {
    /// Its name.
    pub name: Name,
    /// Where it is stored.
    pub policy: Policy,
    /// Its fields and tags.
    pub schema: Arc<MeasurementSchema>,
    /// Which rows.
    pub condition: Condition,
}

/// A SELECT as a source.
#[derive(Debug)]
pub(crate) struct SubquerySource {
    /// The inner query.
    pub select: Arc<Select>,
    /// Which of its rows.
    pub condition: Condition,
}

impl SubquerySource {
    /// Whether its rows have a tag of this name.
    pub(crate) fn has_tag(&self, name: &str) -> bool {
        self.select.own_dimensions.iter().any(|dimension| **dimension == *name)
    }

    /// The inner query, while the plan is made.
    fn select_mut(&mut self) -> &mut Select {
        Arc::get_mut(&mut self.select).expect("BUG: a plan in the making is not shared")
    }
}

/// The earliest time of the rows of subqueries that are made of times from `bound` on; `None` if there
/// are other sources.
fn first_time(sources: &[Source], bound: i64) -> Option<i64> {
    let of = |source: &Source| match source {
        Source::Subquery(inner) => Some(inner.select.first_time(bound)),
        Source::Measurement(_) | Source::Join(_) => None,
    };
    let times: Option<Vec<i64>> = sources.iter().map(of).collect();
    times?.into_iter().min()
}

impl Select {
    /// Whether rows are shown as they are, without functions.
    pub(crate) fn is_raw(&self) -> bool {
        self.calls.is_empty()
    }

    /// Whether the range has a lower bound.
    pub(crate) fn has_lower_bound(&self) -> bool {
        self.range.min > model::MIN_TIME_NS
    }

    /// Whether rows come group by group rather than in order of time: what selectors choose of the
    /// whole range, also if it passes through queries that only show it.
    pub(crate) fn comes_by_group(&self) -> bool {
        match self.calls.as_slice() {
            [] => self.shows_groups(),
            [call] => self.windows.is_none() && call.function.is_selector(),
            _ => false,
        }
    }

    /// Whether this shows rows of a subquery in the order of its groups.
    pub(crate) fn shows_groups(&self) -> bool {
        match self.sources.as_slice() {
            [Source::Subquery(inner)] => self.is_raw() && inner.select.comes_by_group(),
            _ => false,
        }
    }

    /// The earliest time of the rows that are made of times from `bound` on.
    fn first_time(&self, bound: i64) -> i64 {
        if self.is_raw() {
            return first_time(&self.sources, bound).unwrap_or(bound);
        }
        let bound = self.range.min.max(bound);
        let windows = self.windows.as_ref().filter(|_| bound > model::MIN_TIME_NS);
        windows.map_or(bound, |windows| windows.at(bound).start)
    }

    /// The range whose windows make the results of a call: functions that look at the point before
    /// begin a window earlier, each that is nested in another one.
    pub(crate) fn window_range(&self, call: &CallPlan) -> TimeRange {
        let windows = call.transforms.iter().filter(|step| step.looks_back()).count();
        widened(self.range, self.windows.as_ref(), windows as u64, self.ascending)
    }

    /// The times of rows that a call looks at.
    pub(crate) fn range_of(&self, call: &CallPlan) -> TimeRange {
        self.window_range(call).intersect(&self.reach)
    }

    /// The times of rows that any call looks at.
    pub(crate) fn read_range(&self) -> TimeRange {
        let ranges = self.calls.iter().map(|call| self.range_of(call));
        ranges.fold(self.range, |all, range| {
            TimeRange::new(all.min.min(range.min), all.max.max(range.max))
        })
    }

    /// Adds dimensions of a query around this one, here and further in.
    fn push_dimensions(&mut self, names: &[Name]) {
        self.dimensions.extend(names.iter().cloned());
        self.dimensions.sort_unstable();
        self.dimensions.dedup();
        for source in &mut self.sources {
            match source {
                Source::Measurement(_) => {}
                Source::Subquery(inner) => inner.select_mut().push_dimensions(&self.dimensions),
                Source::Join(join) => join.push_dimensions(),
            }
        }
    }

    /// Adds limits on series, which reach through to the measurements.
    fn push_series_limits(&mut self) {
        let (limit, offset) = (self.series_limit, self.series_offset);
        for source in &mut self.sources {
            match source {
                Source::Measurement(_) => {}
                Source::Subquery(inner) => {
                    let select = inner.select_mut();
                    select.series_limit = select.series_limit.saturating_add(limit);
                    select.series_offset = select.series_offset.saturating_add(offset);
                    select.limited_dimensions.clone_from(&self.limited_dimensions);
                    select.push_series_limits();
                }
                // The series of a join are limited where they are joined.
                Source::Join(join) => join.push_series_limits(),
            }
        }
    }
}

impl CallPlan {
    /// The function alone, whose results are transformed.
    pub(crate) fn without_transforms(&self) -> Self {
        Self {
            function: self.function.clone(),
            field: self.field.clone(),
            input: self.input,
            result: self.result,
            transforms: Vec::new(),
            shown: self.result,
            is_known: self.is_known,
        }
    }

    /// Whether empty windows get rows.
    pub(crate) fn is_filled(&self) -> bool {
        self.transforms.is_empty() && self.function.is_filled()
    }
}

/// `range`, begun some windows earlier in the direction of time. An open end stays open.
fn widened(range: TimeRange, windows: Option<&Windows>, count: u64, ascending: bool) -> TimeRange {
    let Some(windows) = windows.filter(|_| count > 0 && !range.is_empty()) else { return range };
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    if ascending {
        TimeRange::new(windows.moved(range.min, -count).max(model::MIN_TIME_NS), range.max)
    } else {
        TimeRange::new(range.min, windows.moved(range.max, count).min(model::MAX_TIME_NS))
    }
}

/// A regular expression of the query text.
///
/// # Errors
/// If it does not compile, or compiles to something huge.
pub(crate) fn regex(source: &str) -> Result<Regex, QueryError> {
    compiled(&translated(source)?)
}

fn compiled(translated: &str) -> Result<Regex, QueryError> {
    Regex::new(translated).map_err(|error| invalid_regex(&error))
}

/// The same, for looking through columns of texts.
///
/// # Errors
/// As [`regex`].
pub(crate) fn text_search(source: &str) -> Result<TextSearch, QueryError> {
    TextSearch::new(&translated(source)?).map_err(|error| invalid_regex(&error))
}

fn translated(source: &str) -> Result<String, QueryError> {
    influxql::translate_regex(source).map_err(|error| QueryError::invalid(error.to_string()))
}

fn invalid_regex(error: &regex::Error) -> QueryError {
    QueryError::invalid(format!("invalid regular expression: {error}"))
}
