//! A query: what is parsed prints to text that parses to the same.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    influxql::fuzzing::parse(data);
});
