//! Runs `fiord_fuzz::values::value_number_set` under libFuzzer.
//!
//! Invariant: contains no code of its own.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fiord_fuzz::values::value_number_set(data));
