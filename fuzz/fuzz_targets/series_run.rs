//! A run of the series index, checksums aside, and every question it answers.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    series::fuzzing::query_run(data);
});
