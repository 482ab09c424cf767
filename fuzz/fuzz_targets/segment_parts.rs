//! The parts of a segment file, checksums aside.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    segment::fuzzing::fuzz_parts(data);
});
