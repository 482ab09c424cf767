//! Frames of a Kudu server: the same come out however they arrive.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    kudu_client::fuzzing::frames(data);
});
