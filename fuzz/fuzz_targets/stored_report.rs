//! Runs `fiord_fuzz::history::stored_report` under libFuzzer.
//!
//! Invariant: nothing happens here.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fiord_fuzz::history::stored_report(data));
