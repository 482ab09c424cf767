//! Bodies of remote write and remote read, unpacked.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    ingest::fuzzing::prometheus(data);
});
