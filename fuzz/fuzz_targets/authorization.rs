//! The header `Authorization`, and tokens signed and not.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    server::fuzzing::authorization(data);
});
