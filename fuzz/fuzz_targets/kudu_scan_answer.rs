//! A scan's answer of a Kudu server: all views of a value agree.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    kudu_client::fuzzing::scan_answer(data);
});
