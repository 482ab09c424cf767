//! A Kudu master's description of a table and its tablets.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    kudu_client::fuzzing::table_description(data);
});
