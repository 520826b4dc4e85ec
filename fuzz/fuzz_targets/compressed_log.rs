//! Runs `fiord_fuzz::logs::compressed_log` under libFuzzer.
//!
//! Invariant: nothing happens here.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fiord_fuzz::logs::compressed_log(data));
