//! The predicate of a delete through the paths of version 2.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    server::fuzzing::delete_predicate(data);
});
