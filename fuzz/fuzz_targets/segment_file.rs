//! A segment file, with its checksums.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    segment::fuzzing::fuzz_file(data);
});
