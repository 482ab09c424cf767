//! SHOW … CARDINALITY with GROUP BY: counts for each combination of values of some tags.
//!
//! Every series is looked at, with one of its rows, so that memory grows with the groups and the
//! names in them; the query's budget has to do for that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use influxql::{Cardinality, Expr, ShowCardinality};
use model::{Column, MeasurementSchema, Name, SeriesHeader, TagExpr, TimeRange, Values};
use store::{NameFilter, Policy, SeriesTable};

use super::{fields_within, key_filter};
use crate::exec::stream::Part;
use crate::names::by_policy;
use crate::plan::{regex, within_measurement};
use crate::presence::series_within;
use crate::{Answer, QueryContext, QueryError};

/// Series between two looks at the budget.
const SERIES_AT_ONCE: usize = 4096;
/// Memory of a group or of a name in one, about.
const ENTRY_BYTES: usize = 160;

/// The measurement, if they are told apart, and the values of the tags.
type Key = (Name, Vec<Name>);

/// What a group has.
#[derive(Default)]
struct Group {
    /// Series, or fields.
    count: i64,
    /// Distinct names: of measurements, or of tags with or without their values.
    names: BTreeSet<(Name, Name)>,
}

struct Groups<'a> {
    of: &'a Cardinality,
    /// The values of these tags are counted.
    values: Option<NameFilter>,
    tags: Vec<Name>,
    found: BTreeMap<Key, Group>,
    entries: usize,
}

/// Counts names by the values of tags.
pub(super) fn show(
    show: &ShowCardinality,
    series: &TagExpr,
    context: &QueryContext,
) -> Result<Answer, QueryError> {
    let measurements = by_policy(&show.sources, show.database.as_deref(), context)?;
    let mut sources: Vec<(&Name, Policy, Arc<MeasurementSchema>)> = Vec::new();
    for (name, policies) in &measurements {
        for policy in policies {
            let schema = context.schema(policy.database, name)?;
            sources.extend(schema.map(|schema| (name, *policy, schema)));
        }
    }
    let values = match &show.of {
        Cardinality::TagValues(key) => Some(key_filter(key)?),
        _ => None,
    };
    let tags = tags(&show.dimensions, &sources)?;
    let mut groups = Groups { of: &show.of, values, tags, found: BTreeMap::new(), entries: 0 };
    let mut held = context.budget.reserve(0)?;
    for (name, policy, schema) in &sources {
        let series = within_measurement(series, name);
        let (scan, ordinals) =
            series_within(*policy, name, schema, (&series, TimeRange::ALL), context)?;
        let fields = match show.of {
            Cardinality::FieldKey => fields_within(name, &measurements[*name], context)?.len(),
            _ => 0,
        };
        for part in ordinals.chunks(SERIES_AT_ONCE) {
            context.interrupt.check()?;
            part.iter().for_each(|ordinal| groups.add(name, scan.series(), *ordinal, fields));
            held.resize(groups.entries * ENTRY_BYTES)?;
        }
    }
    // Every series of the answer has one row.
    Ok(Answer::ready(if show.offset > 0 { Vec::new() } else { groups.parts() }))
}

/// The tags of GROUP BY, sorted: those named, and all that match.
fn tags(
    dimensions: &[Expr],
    sources: &[(&Name, Policy, Arc<MeasurementSchema>)],
) -> Result<Vec<Name>, QueryError> {
    let known = || sources.iter().flat_map(|(_, _, schema)| &schema.tag_keys);
    let mut tags = BTreeSet::new();
    for dimension in dimensions {
        match dimension {
            Expr::VarRef(var) => {
                tags.insert(Name::from(&*var.name));
            }
            Expr::Wildcard(_) => tags.extend(known().cloned()),
            Expr::Regex(source) => {
                let regex = regex(source)?;
                tags.extend(known().filter(|tag| regex.is_match(tag)).cloned());
            }
            _ => return Err(QueryError::unsupported("GROUP BY time() in SHOW CARDINALITY")),
        }
    }
    Ok(tags.into_iter().collect())
}

impl Groups<'_> {
    fn add(&mut self, measurement: &Name, table: &SeriesTable, ordinal: u32, fields: usize) {
        let value = |at: usize| {
            let tag = &table.tags[at];
            tag.values.get(tag.codes[ordinal as usize] as usize)
        };
        let of_key = |key: &Name| {
            let at = table.tags.iter().position(|tag| tag.key == *key);
            Name::from(at.map_or("", value))
        };
        let shown = match self.of {
            Cardinality::Measurement => Name::from(""),
            _ => Arc::clone(measurement),
        };
        let key = (shown, self.tags.iter().map(of_key).collect());
        let new = !self.found.contains_key(&key);
        let group = self.found.entry(key).or_default();
        let before = group.names.len();
        let there = (0..table.tags.len()).filter(|at| !value(*at).is_empty());
        match self.of {
            Cardinality::Series => group.count += 1,
            Cardinality::FieldKey => group.count = fields as i64,
            Cardinality::Measurement => {
                group.names.insert((Arc::clone(measurement), Name::from("")));
            }
            Cardinality::TagKey => {
                group.names.extend(there.map(|at| (table.tags[at].key.clone(), Name::from(""))));
            }
            Cardinality::TagValues(_) => {
                let filter = self.values.as_ref();
                let wanted =
                    there.filter(|at| filter.is_some_and(|f| f.accepts(&table.tags[*at].key)));
                let names = wanted.map(|at| (table.tags[at].key.clone(), Name::from(value(at))));
                group.names.extend(names);
            }
        }
        self.entries += usize::from(new) + group.names.len() - before;
    }

    fn parts(self) -> Vec<Part> {
        let columns: Arc<[Name]> = Arc::new([Name::from("count")]);
        let part = |((name, values), group): (Key, Group)| {
            let count = match self.of {
                Cardinality::Series | Cardinality::FieldKey => group.count,
                _ => group.names.len() as i64,
            };
            let header = SeriesHeader {
                name,
                tags: self.tags.iter().cloned().zip(values).collect(),
                columns: Arc::clone(&columns),
                ..SeriesHeader::default()
            };
            let column = Column::new(Values::Integer(vec![count]));
            (count > 0).then(|| Part::new(Arc::new(header), vec![column]))
        };
        self.found.into_iter().filter_map(part).collect()
    }
}
