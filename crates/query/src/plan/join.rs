//! Joins: rows of several sources that have the same time and the same tags, side by side. An
//! extension of Nyala.
//!
//! A joined source looks like a subquery: its fields are the columns of its sides, called
//! `side.column`, its tags those that rows pair by. Each side is read as `SELECT columns FROM side
//! GROUP BY tags` would read it; a condition that concerns one side alone is given to that side too.
//!
//! Not here: pairing rows (`exec/join`).

mod push;

use std::sync::Arc;

use influxql::{DataType, Expr, JoinKind, visit};
use model::{Name, TimeRange};

use super::compile::{Compiled, CompiledSource, compile_source};
use super::resolve::{resolve_alone, resolve_conditions};
use super::{ColumnKind, Condition, Source, SubquerySource, expand, sources, types};
use crate::presence::schema_within;
use crate::{QueryContext, QueryError};

/// A join whose structure is sound.
#[derive(Debug)]
pub(crate) struct CompiledJoin {
    sides: Vec<CompiledSide>,
    using: Option<Vec<Name>>,
    range: TimeRange,
}

#[derive(Debug)]
struct CompiledSide {
    alias: String,
    kind: JoinKind,
    source: CompiledSource,
}

/// A join as a source.
#[derive(Debug)]
pub(crate) struct JoinSource {
    /// What the result is called: the names of the sides.
    pub name: Name,
    /// The tags that rows pair by, sorted and distinct.
    pub tags: Vec<Name>,
    /// The sides, from left to right.
    pub sides: Vec<JoinSide>,
    /// Times of rows that are read.
    pub range: TimeRange,
    /// Which of the joined rows.
    pub condition: Condition,
}

/// One side of a join.
#[derive(Debug)]
pub(crate) struct JoinSide {
    /// What its columns are called by.
    pub alias: String,
    /// How it is joined to what stands before it; of no meaning for the first.
    pub kind: JoinKind,
    /// Where its rows come from; `None`: nowhere, there is no such measurement.
    pub source: Option<Source>,
    /// Its columns, but the tags that rows pair by.
    pub columns: Vec<JoinColumn>,
}

/// A column of one side.
#[derive(Debug)]
pub(crate) struct JoinColumn {
    /// Its name in the join: `side.column`.
    pub name: String,
    /// Its own name.
    pub own: Name,
    /// What it is on its side.
    pub kind: ColumnKind,
    /// Its type.
    pub data_type: DataType,
}

impl CompiledJoin {
    /// Checks the sides of a join that the SELECT `outer` selects from.
    ///
    /// # Errors
    /// [`QueryError::Invalid`] if names of the sides clash, or for what is wrong with a side.
    pub(super) fn new(
        join: &influxql::Join,
        now_ns: i64,
        outer: &Compiled,
    ) -> Result<Self, QueryError> {
        let first = std::iter::once((JoinKind::Inner, &join.first));
        let others = join.others.iter().map(|(kind, side)| (*kind, side));
        let mut sides: Vec<CompiledSide> = Vec::with_capacity(join.others.len() + 1);
        for (kind, side) in first.chain(others) {
            let alias = side.name().unwrap_or_default().to_owned();
            if let Some(other) = sides.iter().find(|other| clash(&other.alias, &alias)) {
                return Err(QueryError::invalid(format!(
                    "columns of the joined \"{}\" and \"{alias}\" cannot be told apart: name one \
                     with AS",
                    other.alias
                )));
            }
            let source = compile_source(&side.source, now_ns, outer)?;
            sides.push(CompiledSide { alias, kind, source });
        }
        let using = join.using.as_ref();
        let using = using.map(|tags| sorted(tags.iter().map(|tag| tag.as_str().into())));
        Ok(Self { sides, using, range: outer.source_range() })
    }
}

/// Whether a column could be one of either side.
fn clash(a: &str, b: &str) -> bool {
    let begins = |long: &str, short: &str| {
        long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    begins(a, b) || begins(b, a)
}

fn sorted(names: impl Iterator<Item = Name>) -> Vec<Name> {
    let mut names: Vec<Name> = names.collect();
    names.sort_unstable();
    names.dedup();
    names
}

impl JoinSource {
    /// Looks up what is joined.
    ///
    /// # Errors
    /// As of any source; tags that are not clear or not there; names without a side.
    pub(super) fn resolve(
        compiled: &CompiledJoin,
        outer: &Compiled,
        context: &QueryContext,
    ) -> Result<Self, QueryError> {
        let wildcards = expand::has_wildcards(&outer.fields);
        let mut sides = Vec::with_capacity(compiled.sides.len());
        for side in &compiled.sides {
            let source = match &side.source {
                CompiledSource::Measurement(measurement) => {
                    let mut found = sources::measurements(measurement, context)?.pop();
                    if let Some(found) = found.as_mut().filter(|_| wildcards) {
                        let (policy, name) = (found.policy, &found.name);
                        found.schema = schema_within(policy, name, &found.schema, context)?;
                    }
                    found.map(Source::Measurement)
                }
                CompiledSource::Subquery(inner) => {
                    let select = Arc::new(resolve_alone(inner, context)?);
                    Some(Source::Subquery(SubquerySource { select, condition: Condition::none() }))
                }
                CompiledSource::Join(_) => panic!("BUG: a join stands alone in its FROM"),
            };
            let (alias, kind) = (side.alias.clone(), side.kind);
            sides.push(JoinSide { alias, kind, source, columns: Vec::new() });
        }
        let tags = match &compiled.using {
            Some(using) => using.clone(),
            None => grouped_tags(outer, &sides)?,
        };
        for side in &mut sides {
            side.check_tags(&tags)?;
            side.columns = side.find_columns(&tags);
        }
        let names: Vec<&str> = sides.iter().map(|side| side.alias.as_str()).collect();
        let name = names.join("_").into();
        let (range, condition) = (compiled.range, Condition::none());
        let join = Self { name, tags, sides, range, condition };
        join.check_names(outer)?;
        Ok(join)
    }

    /// Gives the sides and what is inside them their conditions. `dimensions` are those of the query
    /// around the join, whose condition is `condition`.
    ///
    /// # Errors
    /// Dimensions that the join does not have; what is wrong with a condition.
    pub(super) fn resolve_sides(
        &mut self,
        compiled: &CompiledJoin,
        dimensions: &[Name],
        condition: Option<&Expr>,
    ) -> Result<(), QueryError> {
        if let Some(other) = dimensions.iter().find(|name| !self.has_tag(name)) {
            return Err(QueryError::invalid(format!(
                "rows of a JOIN cannot be grouped by \"{other}\": they have the tags that they pair \
                 by, say USING ({other}, ...)"
            )));
        }
        self.push_conditions(condition)?;
        for (at, side) in compiled.sides.iter().enumerate() {
            let CompiledSource::Subquery(compiled) = &side.source else { continue };
            let inner = self.condition_inside(at, condition, compiled.condition.as_ref());
            if let Some(Source::Subquery(subquery)) = &mut self.sides[at].source {
                resolve_conditions(subquery.select_mut(), compiled, inner.as_ref())?;
            }
        }
        Ok(())
    }

    /// The column called `name`, and the number of its side.
    pub(crate) fn column(&self, name: &str) -> Option<(usize, &JoinColumn)> {
        self.sides.iter().enumerate().find_map(|(at, side)| {
            let own = name.strip_prefix(side.alias.as_str())?.strip_prefix('.')?;
            side.columns.iter().find(|column| *column.own == *own).map(|column| (at, column))
        })
    }

    /// All columns, side by side.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &JoinColumn> {
        self.sides.iter().flat_map(|side| &side.columns)
    }

    /// Whether rows pair by the tag `name`.
    pub(crate) fn has_tag(&self, name: &str) -> bool {
        self.tags.iter().any(|tag| **tag == *name)
    }

    /// What is joined.
    pub(super) fn sources_mut(&mut self) -> impl Iterator<Item = &mut Source> {
        self.sides.iter_mut().filter_map(|side| side.source.as_mut())
    }

    /// Groups subqueries by the tags that rows pair by.
    pub(super) fn push_dimensions(&mut self) {
        for side in &mut self.sides {
            if let Some(Source::Subquery(inner)) = &mut side.source {
                inner.select_mut().push_dimensions(&self.tags);
            }
        }
    }

    /// Lets the limits on series inside subqueries reach through to their measurements.
    pub(super) fn push_series_limits(&mut self) {
        for side in &mut self.sides {
            if let Some(Source::Subquery(inner)) = &mut side.source {
                inner.select_mut().push_series_limits();
            }
        }
    }

    /// Every name is the time, a tag that rows pair by, or begins with the name of a side.
    fn check_names(&self, outer: &Compiled) -> Result<(), QueryError> {
        let is_known = |name: &str| {
            let of_side = |side: &JoinSide| {
                name.strip_prefix(side.alias.as_str()).is_some_and(|rest| rest.starts_with('.'))
            };
            name.eq_ignore_ascii_case("time")
                || self.has_tag(name)
                || self.sides.iter().any(of_side)
        };
        let unknown = |expr: &Expr| {
            visit::find_map(expr, &mut |e| match e {
                Expr::VarRef(var) if !is_known(&var.name) => Some(var.name.clone()),
                Expr::Distinct(name) if !is_known(name) => Some(name.clone()),
                _ => None,
            })
        };
        let fields = outer.fields.iter().map(|field| &field.expr);
        match fields.chain(&outer.condition).find_map(unknown) {
            Some(name) => Err(QueryError::invalid(format!(
                "\"{name}\" is no column of the JOIN: say of which side, like {}.{name}",
                influxql::quote_ident(&self.sides[0].alias)
            ))),
            None => Ok(()),
        }
    }
}

/// The tags that the query around a join and the subqueries in it group by, if they agree.
fn grouped_tags(outer: &Compiled, sides: &[JoinSide]) -> Result<Vec<Name>, QueryError> {
    let unclear = |why: &str| {
        let text = format!("JOIN: {why}: say USING (tag, ...), or USING () to pair by time alone");
        Err(QueryError::invalid(text))
    };
    let mut all: Vec<Vec<Name>> = Vec::new();
    if !outer.dimensions.is_empty() {
        let names = outer.dimensions.iter().map(|dimension| match dimension {
            Expr::VarRef(var) => Some(Name::from(var.name.as_str())),
            _ => None,
        });
        let Some(names) = names.collect::<Option<Vec<Name>>>() else {
            return unclear("GROUP BY does not name the tags that rows pair by");
        };
        all.push(sorted(names.into_iter()));
    }
    all.extend(sides.iter().filter_map(|side| match &side.source {
        Some(Source::Subquery(inner)) => Some(inner.select.own_dimensions.clone()),
        _ => None,
    }));
    match all.pop() {
        None => unclear("the tags that rows pair by are not given"),
        Some(tags) if all.iter().all(|other| *other == tags) => Ok(tags),
        Some(_) => unclear("the GROUP BY of the query and of its subqueries differ"),
    }
}

impl JoinSide {
    /// A measurement has the tags that its rows pair by.
    fn check_tags(&self, tags: &[Name]) -> Result<(), QueryError> {
        let Some(Source::Measurement(measurement)) = &self.source else { return Ok(()) };
        match tags.iter().find(|tag| !measurement.schema.has_tag(tag)) {
            Some(tag) => Err(QueryError::invalid(format!(
                "JOIN: measurement \"{}\" has no tag \"{tag}\"",
                measurement.name
            ))),
            None => Ok(()),
        }
    }

    fn find_columns(&self, tags: &[Name]) -> Vec<JoinColumn> {
        let column = |own: &str, data_type: DataType| {
            let kind = types::field_type(data_type)
                .filter(|_| data_type != DataType::Tag)
                .map_or(ColumnKind::Tag, ColumnKind::Field);
            let name = format!("{}.{own}", self.alias);
            JoinColumn { name, own: own.into(), kind, data_type }
        };
        let is_other = |name: &&Name| !tags.contains(name);
        match &self.source {
            None => Vec::new(),
            Some(Source::Measurement(measurement)) => {
                let schema = &measurement.schema;
                let fields = schema.fields.iter();
                let fields = fields.map(|(name, t)| column(name, types::data_type(*t)));
                let tags = schema.tag_keys.iter().filter(is_other);
                let tags = tags.filter(|tag| schema.field_type(tag).is_none());
                fields.chain(tags.map(|name| column(name, DataType::Tag))).collect()
            }
            Some(Source::Subquery(inner)) => {
                let outputs = inner.select.outputs.iter();
                let mut all: Vec<JoinColumn> = Vec::new();
                for output in outputs {
                    let known = all.iter().any(|column| *column.own == *output.reference);
                    if let Some(data_type) = output.data_type.filter(|_| !known) {
                        all.push(column(&output.reference, data_type));
                    }
                }
                for name in inner.select.own_dimensions.iter().filter(is_other) {
                    if !all.iter().any(|column| column.own == *name) {
                        all.push(column(name, DataType::Tag));
                    }
                }
                all
            }
            Some(Source::Join(_)) => panic!("BUG: a join stands alone in its FROM"),
        }
    }
}
