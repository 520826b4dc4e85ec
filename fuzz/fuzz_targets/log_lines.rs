//! Runs `fiord_fuzz::logs::log_lines` under libFuzzer.
//!
//! Invariant: nothing happens here.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fiord_fuzz::logs::log_lines(data));
