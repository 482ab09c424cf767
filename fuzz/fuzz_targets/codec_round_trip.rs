//! Values of every type: what is encoded comes back bit for bit.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    codec::fuzzing::fuzz_round_trip(data);
});
