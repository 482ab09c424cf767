//! A log file: its bytes are covered in order, without a gap.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = wal::fuzzing::read_file(data);
});
