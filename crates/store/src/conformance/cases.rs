//! The named cases. Each is a story of one promise; the model is compared along the way.

mod changes;
mod matching;
mod reads;
mod writes;

use model::Scalar;

use super::apply::Pair;
use crate::testing::{HOUR_NS, POLICY, Row};

pub(super) type Case = fn(&mut Pair) -> Result<(), String>;

/// Every case by name.
pub(super) const CASES: &[(&str, Case)] = &[
    ("an_empty_store_answers", reads::an_empty_store_answers),
    ("values_come_back_bit_for_bit", writes::values_come_back_bit_for_bit),
    ("rows_merge_field_by_field", writes::rows_merge_field_by_field),
    ("later_rows_of_a_batch_win", writes::later_rows_of_a_batch_win),
    ("order_of_arrival_does_not_matter", writes::order_of_arrival_does_not_matter),
    ("tags_in_any_order_are_one_series", writes::tags_in_any_order_are_one_series),
    ("names_of_any_kind", writes::names_of_any_kind),
    ("bad_rows_leave_the_others_alone", writes::bad_rows_leave_the_others_alone),
    ("the_first_write_fixes_a_type", writes::the_first_write_fixes_a_type),
    ("old_rows_are_beyond_retention", writes::old_rows_are_beyond_retention),
    ("policies_and_databases_are_apart", writes::policies_and_databases_are_apart),
    ("writers_at_once", writes::writers_at_once),
    ("many_rows", writes::many_rows),
    ("scan_options", reads::scan_options),
    ("only_rows_with_wanted_fields", reads::only_rows_with_wanted_fields),
    ("only_rows_that_matter", reads::only_rows_that_matter),
    ("series_with_equal_wanted_tags_stay_apart", reads::series_with_equal_wanted_tags_stay_apart),
    ("unknown_names_have_no_rows", reads::unknown_names_have_no_rows),
    ("a_scan_keeps_its_view", reads::a_scan_keeps_its_view),
    ("summaries_add_up", reads::summaries_add_up),
    ("names_are_sorted_and_filtered", reads::names_are_sorted_and_filtered),
    ("interrupted_reads_stop", reads::interrupted_reads_stop),
    ("deletes_are_exact", changes::deletes_are_exact),
    ("writes_after_a_delete_stay", changes::writes_after_a_delete_stay),
    ("series_without_rows_are_gone", changes::series_without_rows_are_gone),
    ("a_dropped_measurement_forgets_its_types", changes::a_dropped_measurement_forgets_its_types),
    ("dropped_policies_and_databases", changes::dropped_policies_and_databases),
    ("deleting_what_is_missing", changes::deleting_what_is_missing),
    ("expiry_drops_whole_partitions", changes::expiry_drops_whole_partitions),
    ("partitions_keep_their_numbers", changes::partitions_keep_their_numbers),
    ("a_dropped_partition_is_gone", changes::a_dropped_partition_is_gone),
    ("a_changed_partition_length", changes::a_changed_partition_length),
    ("named_rows_go_if_unchanged", matching::named_rows_go_if_unchanged),
    ("named_rows_are_compared_bit_by_bit", matching::named_rows_are_compared_bit_by_bit),
    ("named_rows_are_of_one_policy", matching::named_rows_are_of_one_policy),
    ("named_rows_do_not_show_in_windows", matching::named_rows_do_not_show_in_windows),
    ("the_catalog_slot", changes::the_catalog_slot),
    ("a_closed_store_says_so", changes::a_closed_store_says_so),
];

fn integer(key: &str, field: &str, value: i64, time_ns: i64) -> Row {
    Row::new(key, &[(field, Scalar::Integer(value))], time_ns)
}

/// Compares everything, also after maintenance and after a restart.
fn check_thrice(pair: &mut Pair) -> Result<(), String> {
    pair.check_all()?;
    pair.test.maintain();
    pair.check_all().map_err(|message| format!("after maintenance: {message}"))?;
    pair.test.reopen();
    pair.check_all().map_err(|message| format!("after a restart: {message}"))
}
