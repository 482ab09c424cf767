//! The JSON of bound parameters: a value stays a value.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    server::fuzzing::bound_parameters(data);
});
