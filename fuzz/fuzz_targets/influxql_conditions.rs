//! Conditions: folding and splitting twice is as good as once.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    influxql::fuzzing::conditions(data);
});
