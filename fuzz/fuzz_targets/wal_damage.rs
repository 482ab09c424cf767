//! A damaged log file: all good records are found, and no others.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wal::fuzzing::damaged_file(data);
});
