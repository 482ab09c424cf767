//! The rows of one measurement that satisfy a condition, for whoever changes them.

use model::{Bitmap, Column, FieldType, Name, TimeRange};
use store::ScanRequest;

use super::{Input, InputPlan, ScanUse, Wanted, missing, order};
use crate::exec::predicate::Rows;
use crate::plan::{Condition, MeasurementSource, SlotSource};
use crate::{QueryContext, QueryError};

/// A scan of a measurement.
pub(crate) struct Matching {
    /// What to read: [`Input::wanted_rows`] are those that satisfy the condition.
    pub input: Input,
    /// The fields that the condition looks at: the columns behind the time.
    pub compared: Vec<(Name, FieldType)>,
}

/// Starts reading the rows that a SELECT of all fields would show, with all tags of their series.
/// `None`: there can be none.
pub(crate) fn open_matching(
    source: &MeasurementSource,
    time: TimeRange,
    context: &QueryContext,
) -> Result<Option<Matching>, QueryError> {
    let (schema, condition) = (&source.schema, &source.condition);
    let mut wanted = Wanted::default();
    for tag in &schema.tag_keys {
        wanted.tag(tag);
    }
    let usage = ScanUse { ascending: true, ..ScanUse::default() };
    let (calls, aux, dimensions) = (Vec::new(), Vec::new(), Vec::new());
    let plan = InputPlan { calls, aux, dimensions, shown_fields: 0, usage };
    let filter = plan.filter(condition, &mut wanted, false);
    let compared = wanted.fields.clone();
    if may_hold_without_fields(condition) {
        // Rows that have none of these fields count too, and are found by the others.
        for (name, field_type) in &schema.fields {
            let (name, stored, as_is) = (name.clone(), *field_type, *field_type);
            wanted.column(SlotSource::Field { name, stored, wanted: as_is });
        }
    }
    if wanted.fields.is_empty() || time.is_empty() {
        return Ok(None);
    }
    let request = ScanRequest {
        policy: source.policy,
        measurement: source.name.clone(),
        fields: wanted.fields,
        tags: wanted.tags,
        series: condition.tags.clone(),
        time,
        filters: condition.filters.clone(),
        order: order(usage.ascending),
        windows: None,
        joins_series: false,
        context: context.scan_context(),
    };
    let scan = context.store.scan(&request)?;
    let input = plan.input(source.name.clone(), scan, filter, Some(request));
    Ok(Some(Matching { input, compared }))
}

/// Whether a condition can hold for a row that has a value of none of its fields.
fn may_hold_without_fields(condition: &Condition) -> bool {
    let Some(predicate) = &condition.predicate else { return true };
    if condition.slots.iter().any(|slot| matches!(slot, SlotSource::Tag(_))) {
        // Values of tags are not looked at here.
        return true;
    }
    let absent = |slot: &SlotSource| match slot {
        SlotSource::Field { wanted, .. } => missing(*wanted, 1),
        SlotSource::Missing(field_type) => missing(*field_type, 1),
        SlotSource::Tag(_) => missing(FieldType::String, 1),
    };
    let columns: Vec<Column> = condition.slots.iter().map(absent).collect();
    let slots: Vec<&Column> = columns.iter().collect();
    // Conditions are never negated as a whole: with all of those on tags the most holds.
    let tags = |_: &_| Bitmap::filled(1, true);
    predicate.select(&Rows { slots: &slots, rows: 1, tags: &tags }).count_ones() > 0
}
