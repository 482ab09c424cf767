//! Looking names up: a compiled SELECT becomes a plan.

use std::sync::Arc;

use influxql::{Expr, Field, VarRef};
use model::{FieldType, Name};

use super::compile::{Compiled, CompiledSource};
use super::condition::SlotSource;
use super::fields::check_condition;
use super::{
    ColumnKind, Condition, JoinSource, MeasurementSource, Select, Source, SubquerySource, after,
    expand, first_time, lower, push, sources, types,
};
use crate::presence::{is_only_policy, schema_within};
use crate::{QueryContext, QueryError};

/// The plan of a compiled SELECT.
///
/// # Errors
/// Unknown databases and policies, operands that do not fit, a failing store.
pub(crate) fn resolve(compiled: &Compiled, context: &QueryContext) -> Result<Select, QueryError> {
    let mut select = resolve_alone(compiled, context)?;
    let dimensions = select.dimensions.clone();
    select.push_dimensions(&dimensions);
    select.push_series_limits();
    resolve_conditions(&mut select, compiled, compiled.condition.as_ref())?;
    Ok(select)
}

/// The plan without what comes from the queries around it, and without conditions.
pub(super) fn resolve_alone(
    compiled: &Compiled,
    context: &QueryContext,
) -> Result<Select, QueryError> {
    let mut found = Vec::new();
    for source in &compiled.sources {
        match source {
            CompiledSource::Measurement(measurement) => {
                let mut all = sources::measurements(measurement, context)?;
                let shows_all = expand::has_wildcards(&compiled.fields)
                    || expand::has_wildcard_dimensions(&compiled.dimensions);
                for one in &mut all {
                    if shows_all || has_ambiguous_names(one, context) {
                        one.schema = schema_within(one.policy, &one.name, &one.schema, context)?;
                    }
                }
                found.extend(all.into_iter().map(Source::Measurement));
            }
            CompiledSource::Subquery(inner) => {
                let select = Arc::new(resolve_alone(inner, context)?);
                let condition = Condition::none();
                found.push(Source::Subquery(SubquerySource { select, condition }));
            }
            CompiledSource::Join(join) => {
                found.push(Source::Join(JoinSource::resolve(join, compiled, context)?));
            }
        }
    }
    let annotated = |field: &Field| Field {
        expr: types::annotate(field.expr.clone(), &found),
        alias: field.alias.clone(),
    };
    let fields: Vec<Field> = compiled.fields.iter().map(annotated).collect();
    let expanded = expand::expand(fields, &compiled.dimensions, &found)?;
    for field in &expanded.fields {
        types::of_expr(&field.expr)?;
    }
    let lowered = lower::lower(expanded.fields, &found)?;
    let mut dimensions: Vec<Name> =
        expanded.dimensions.iter().map(|name| name.as_str().into()).collect();
    dimensions.sort_unstable();
    dimensions.dedup();
    let raw = lowered.calls.is_empty();
    let (mut range, mut reach) = (compiled.range, compiled.reach);
    // The first window of a subquery begins before the times it was made of.
    if let Some(first) = first_time(&found, range.min).filter(|_| !raw && !range.is_empty()) {
        (range.min, reach.min) = (range.min.min(first), reach.min.min(first));
    }
    let after = after::resolve(compiled, &lowered.outputs, &dimensions)?;
    Ok(Select {
        ascending: compiled.ascending,
        limit: if after.is_some() { 0 } else { compiled.limit },
        offset: if after.is_some() { 0 } else { compiled.offset },
        after,
        series_limit: compiled.series_limit,
        series_offset: compiled.series_offset,
        range,
        bound: compiled.range.min,
        reach,
        windows: if raw { None } else { compiled.windows() },
        fill: compiled.fill,
        zone: compiled.zone.clone(),
        own_dimensions: dimensions.clone(),
        limited_dimensions: dimensions.clone(),
        dimensions,
        calls: lowered.calls,
        aux: lowered.aux,
        outputs: lowered.outputs,
        time_column: compiled.time_column.as_deref().unwrap_or("time").into(),
        sources: found,
    })
}

/// Whether a field has the name of a tag, and perhaps only in another policy: there the name is the
/// field, here it would be the tag.
fn has_ambiguous_names(source: &MeasurementSource, context: &QueryContext) -> bool {
    let schema = &source.schema;
    !is_only_policy(&source.policy, context)
        && schema.fields.iter().any(|(field, _)| schema.has_tag(field))
}

/// Gives every source its condition, now that all dimensions are known: `condition`, which is the
/// statement's own or holds wherever it does.
pub(super) fn resolve_conditions(
    select: &mut Select,
    compiled: &Compiled,
    condition: Option<&Expr>,
) -> Result<(), QueryError> {
    let annotated = condition.cloned().map(|given| types::annotate(given, &select.sources));
    for source in &mut select.sources {
        let condition = condition_of(annotated.as_ref(), source)?;
        match source {
            Source::Measurement(measurement) => measurement.condition = condition,
            Source::Subquery(inner) => inner.condition = condition,
            Source::Join(join) => join.condition = condition,
        }
    }
    if let ([Source::Join(join)], [CompiledSource::Join(inner)]) =
        (select.sources.as_mut_slice(), compiled.sources.as_slice())
    {
        return join.resolve_sides(inner, &select.dimensions, condition);
    }
    // Subqueries stand in the same order in both; measurements may be more or fewer by then.
    let inner = compiled.sources.iter().filter_map(|source| match source {
        CompiledSource::Subquery(inner) => Some(inner),
        CompiledSource::Measurement(_) | CompiledSource::Join(_) => None,
    });
    let subqueries = select.sources.iter_mut().filter_map(|source| match source {
        Source::Subquery(subquery) => Some(subquery),
        Source::Measurement(_) | Source::Join(_) => None,
    });
    for (subquery, inner) in subqueries.zip(inner) {
        let inside = push::condition_inside(subquery, annotated.as_ref(), inner.condition.as_ref());
        resolve_conditions(subquery.select_mut(), inner, inside.as_ref())?;
    }
    Ok(())
}

/// Gives each of `sources` what `expr` is for it, as in a SELECT from all of them.
///
/// # Errors
/// [`QueryError::Invalid`] for what is no condition.
pub(crate) fn resolve_condition(expr: &Expr, sources: &mut [Source]) -> Result<(), QueryError> {
    check_condition(expr)?;
    let annotated = types::annotate(expr.clone(), sources);
    for source in sources {
        let condition = condition_of(Some(&annotated), source)?;
        match source {
            Source::Measurement(measurement) => measurement.condition = condition,
            Source::Subquery(inner) => inner.condition = condition,
            Source::Join(join) => join.condition = condition,
        }
    }
    Ok(())
}

/// The condition `expr`, whose names are annotated, for one source.
pub(super) fn condition_of(expr: Option<&Expr>, source: &Source) -> Result<Condition, QueryError> {
    let resolve = |var: &VarRef| {
        let kind = match var.data_type {
            Some(influxql::DataType::Tag) | None => ColumnKind::Tag,
            Some(influxql::DataType::AnyField) => ColumnKind::Field(FieldType::Float),
            Some(other) => types::field_type(other).map_or(ColumnKind::Tag, ColumnKind::Field),
        };
        // A name that nothing has counts as a tag that no series has.
        match slot_source(source, &var.name, kind) {
            SlotSource::Missing(_) if kind == ColumnKind::Tag => {
                SlotSource::Tag(var.name.as_str().into())
            }
            found => found,
        }
    };
    match source {
        Source::Measurement(_) => Condition::new(expr, &resolve),
        Source::Subquery(_) | Source::Join(_) => Condition::for_rows(expr, &resolve),
    }
}

/// Where a source has the column `name` that is taken for `kind` over all sources.
pub(crate) fn slot_source(source: &Source, name: &str, kind: ColumnKind) -> SlotSource {
    let missing = SlotSource::Missing(kind.field_type());
    match source {
        Source::Measurement(measurement) => match kind {
            ColumnKind::Field(wanted) => match measurement.schema.field_type(name) {
                Some(stored) if is_readable(stored, wanted) => {
                    SlotSource::Field { name: name.into(), stored, wanted }
                }
                _ => missing,
            },
            ColumnKind::Tag if measurement.schema.has_tag(name) => SlotSource::Tag(name.into()),
            _ => missing,
        },
        Source::Subquery(inner) => {
            let outputs = &inner.select.outputs;
            let output = outputs.iter().find(|output| output.reference == name);
            match output {
                Some(output) => {
                    let stored = output.data_type.and_then(types::field_type);
                    let stored = stored.unwrap_or(kind.field_type());
                    SlotSource::Field { name: name.into(), stored, wanted: kind.field_type() }
                }
                None if inner.has_tag(name) => SlotSource::Tag(name.into()),
                None => missing,
            }
        }
        Source::Join(join) => match join.column(name) {
            Some((_, column)) => SlotSource::Field {
                name: name.into(),
                stored: column.kind.field_type(),
                wanted: kind.field_type(),
            },
            None if join.has_tag(name) => SlotSource::Tag(name.into()),
            None => missing,
        },
    }
}

/// Whether values of type `stored` can be read as `wanted`.
fn is_readable(stored: FieldType, wanted: FieldType) -> bool {
    stored == wanted || (stored.is_numeric() && wanted.is_numeric())
}
