//! The manifest of the series index: what is read is written again.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    series::fuzzing::manifest(data);
});
