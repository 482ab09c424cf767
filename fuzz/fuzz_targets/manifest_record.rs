//! A record of the manifest: what is decoded is encoded again, and a snapshot keeps its sum.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    store_local::fuzzing::manifest_record(data);
});
