//! A body of line protocol: the fast path and the exact one agree.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    ingest::fuzzing::line_protocol(data);
});
