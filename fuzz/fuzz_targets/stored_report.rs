//! Runs `fiord_fuzz::report::stored_report` under libFuzzer.
//!
//! Invariant: nothing happens here.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fiord_fuzz::report::stored_report(data));
