//! OpenTSDB's lines and JSON.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    ingest::fuzzing::opentsdb(data);
});
