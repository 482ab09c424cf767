//! collectd's packets, with types before them.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    ingest::fuzzing::collectd(data);
});
