//! Graphite's lines, with a template before them.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    ingest::fuzzing::graphite(data);
});
