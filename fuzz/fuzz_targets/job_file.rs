//! Runs `fiord_fuzz::grammar::job_file` under libFuzzer.
//!
//! Invariant: contains no code of its own.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fiord_fuzz::grammar::job_file(data));
