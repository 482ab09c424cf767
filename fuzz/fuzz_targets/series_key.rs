//! A raw series key: one canonical notation, which names the same series.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    model::fuzzing::series_key(data);
});
