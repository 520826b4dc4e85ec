//! Runs `fiord_fuzz::plan::build_plan` under libFuzzer.
//!
//! Invariant: nothing happens here.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fiord_fuzz::plan::build_plan(data));
