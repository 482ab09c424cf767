//! The catalog's document: what is read is written again.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    catalog::fuzzing::document(data);
});
