//! A packed body: no more memory than was asked for; what was packed comes back.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    server::fuzzing::gzip(data);
});
