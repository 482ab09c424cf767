//! A page of every type: no more than was asked for; a range is what the whole has there.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    codec::fuzzing::fuzz_decode(data);
});
