//! A record of the log: what is decoded is encoded again.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    store_local::fuzzing::log_record(data);
});
