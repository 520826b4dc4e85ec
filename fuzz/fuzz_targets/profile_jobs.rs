//! Runs `fiord_fuzz::grammar::profile_jobs` under libFuzzer.
//!
//! Invariant: nothing happens here.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fiord_fuzz::grammar::profile_jobs(data));
