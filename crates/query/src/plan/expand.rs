//! Wildcards and regexes among fields and dimensions become names.

use std::collections::{BTreeMap, BTreeSet};

use influxql::names::field_name;
use influxql::{Call, DataType, Expr, Field, VarRef, Wildcard};
use model::Regex;

use super::{Source, regex, types};
use crate::QueryError;

/// Fields and dimensions without wildcards.
pub(crate) struct Expanded {
    pub fields: Vec<Field>,
    pub dimensions: Vec<String>,
}

/// Expands what stands for several names. The names of `fields` are annotated already.
///
/// # Errors
/// [`QueryError::Invalid`] where an expansion is not possible.
pub(crate) fn expand(
    fields: Vec<Field>,
    dimensions: &[Expr],
    sources: &[Source],
) -> Result<Expanded, QueryError> {
    let in_fields = has_wildcards(&fields);
    let in_dimensions = has_wildcard_dimensions(dimensions);
    let plain = |dimension: &Expr| match dimension {
        Expr::VarRef(var) => Some(var.name.clone()),
        _ => None,
    };
    if !in_fields && !in_dimensions {
        return Ok(Expanded { fields, dimensions: dimensions.iter().filter_map(plain).collect() });
    }
    let (field_set, mut tag_set) = names_of(sources);
    if !in_dimensions {
        for name in dimensions.iter().filter_map(plain) {
            tag_set.remove(&name);
        }
    }
    let mut columns: Vec<(String, DataType)> =
        field_set.iter().map(|(name, data_type)| (name.clone(), *data_type)).collect();
    if !columns.is_empty() && !in_dimensions {
        columns.extend(tag_set.iter().map(|name| (name.clone(), DataType::Tag)));
    }
    columns.sort_by(|a, b| (&a.0, position(a.1)).cmp(&(&b.0, position(b.1))));
    let fields = if in_fields { expand_fields(fields, &columns)? } else { fields };
    let mut names = Vec::new();
    for dimension in dimensions {
        match dimension {
            Expr::VarRef(var) => names.push(var.name.clone()),
            Expr::Regex(source) => {
                let regex = regex(source)?;
                names.extend(tag_set.iter().filter(|tag| regex.is_match(tag)).cloned());
            }
            _ => names.extend(tag_set.iter().cloned()),
        }
    }
    Ok(Expanded { fields, dimensions: names })
}

/// Whether any of the fields stands for several names.
pub(crate) fn has_wildcards(fields: &[Field]) -> bool {
    fields.iter().any(|f| {
        influxql::visit::any(&f.expr, &mut |e| matches!(e, Expr::Wildcard(_) | Expr::Regex(_)))
    })
}

/// Whether GROUP BY names tags by `*` or an expression.
pub(crate) fn has_wildcard_dimensions(dimensions: &[Expr]) -> bool {
    dimensions.iter().any(|dimension| !matches!(dimension, Expr::VarRef(_)))
}

/// Where a type stands in InfluxDB's own numbering, which orders columns of one name.
fn position(data_type: DataType) -> u8 {
    match data_type {
        DataType::Float => 1,
        DataType::Integer => 2,
        DataType::String => 3,
        DataType::Boolean => 4,
        DataType::Time => 5,
        DataType::Duration => 6,
        DataType::Tag => 7,
        DataType::AnyField => 8,
        DataType::Unsigned => 9,
    }
}

/// All fields with their types and all tags of the sources.
fn names_of(sources: &[Source]) -> (BTreeMap<String, DataType>, BTreeSet<String>) {
    let mut fields: BTreeMap<String, DataType> = BTreeMap::new();
    let mut tags = BTreeSet::new();
    let mut add = |name: &str, data_type: DataType| {
        let entry = fields.entry(name.to_owned()).or_insert(data_type);
        if types::precedence(data_type) < types::precedence(*entry) {
            *entry = data_type;
        }
    };
    for source in sources {
        match source {
            Source::Measurement(measurement) => {
                for (name, field_type) in &measurement.schema.fields {
                    add(name, types::data_type(*field_type));
                }
                tags.extend(measurement.schema.tag_keys.iter().map(ToString::to_string));
            }
            Source::Subquery(inner) => {
                for output in &inner.select.outputs {
                    if let Some(data_type) = output.data_type {
                        add(&output.reference, data_type);
                    }
                }
                tags.extend(inner.select.dimensions.iter().map(ToString::to_string));
            }
            Source::Join(join) => {
                join.columns().for_each(|column| add(&column.name, column.data_type));
                tags.extend(join.tags.iter().map(ToString::to_string));
            }
        }
    }
    (fields, tags)
}

fn expand_fields(
    fields: Vec<Field>,
    columns: &[(String, DataType)],
) -> Result<Vec<Field>, QueryError> {
    let mut expanded = Vec::with_capacity(fields.len());
    let column = |(name, data_type): &(String, DataType)| {
        Field::new(Expr::VarRef(VarRef { name: name.clone(), data_type: Some(*data_type) }))
    };
    for field in fields {
        match &field.expr {
            Expr::Wildcard(wildcard) => {
                let wanted = |c: &&(String, DataType)| match wildcard {
                    Wildcard::Any => true,
                    Wildcard::Field => c.1 != DataType::Tag,
                    Wildcard::Tag => c.1 == DataType::Tag,
                };
                expanded.extend(columns.iter().filter(wanted).map(column));
            }
            Expr::Regex(source) => {
                let regex = regex(source)?;
                expanded.extend(columns.iter().filter(|c| regex.is_match(&c.0)).map(column));
            }
            Expr::Call(call) => match wildcard_of(call)? {
                Some(matcher) => {
                    expanded.extend(expand_call(&field, call, matcher.as_ref(), columns));
                }
                None => expanded.push(field),
            },
            _ => expanded.push(field),
        }
    }
    Ok(expanded)
}

/// The wildcard or regex in the innermost call; the inner `None` accepts every name.
fn wildcard_of(call: &Call) -> Result<Option<Option<Regex>>, QueryError> {
    let inner = innermost(call);
    match inner.args.first() {
        Some(Expr::Wildcard(Wildcard::Tag)) => {
            Err(QueryError::invalid(format!("unable to use tag wildcard in {}()", inner.name)))
        }
        Some(Expr::Wildcard(_)) => Ok(Some(None)),
        Some(Expr::Regex(source)) => Ok(Some(Some(regex(source)?))),
        _ => Ok(None),
    }
}

fn innermost(call: &Call) -> &Call {
    let mut call = call;
    while let Some(Expr::Call(inner)) = call.args.first() {
        call = inner;
    }
    call
}

fn expand_call<'a>(
    field: &'a Field,
    call: &'a Call,
    matcher: Option<&'a Regex>,
    columns: &'a [(String, DataType)],
) -> impl Iterator<Item = Field> + 'a {
    let inner = innermost(call).name.as_str();
    let accepts = move |data_type: DataType| match data_type {
        DataType::Float | DataType::Integer | DataType::Unsigned => true,
        DataType::String => takes_any(inner),
        DataType::Boolean => takes_any(inner) || matches!(inner, "min" | "max"),
        _ => false,
    };
    let wanted = move |c: &&(String, DataType)| {
        accepts(c.1) && matcher.is_none_or(|regex| regex.is_match(&c.0))
    };
    columns.iter().filter(wanted).map(move |(name, data_type)| {
        let var = Expr::VarRef(VarRef { name: name.clone(), data_type: Some(*data_type) });
        let mut call = call.clone();
        replace_innermost(&mut call, var);
        Field { expr: Expr::Call(call), alias: Some(format!("{}_{name}", field_name(field))) }
    })
}

fn takes_any(function: &str) -> bool {
    matches!(function, "count" | "first" | "last" | "distinct" | "elapsed" | "mode" | "sample")
}

fn replace_innermost(call: &mut Call, arg: Expr) {
    match &mut call.args[0] {
        Expr::Call(inner) => replace_innermost(inner, arg),
        place => *place = arg,
    }
}
