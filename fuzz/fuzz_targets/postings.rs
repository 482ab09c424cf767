//! Lists of series ids: what is read is written again.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    series::fuzzing::postings(data);
});
