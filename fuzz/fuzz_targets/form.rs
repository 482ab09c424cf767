//! A form, as a body and as the query of a URL.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    server::fuzzing::form(data);
});
