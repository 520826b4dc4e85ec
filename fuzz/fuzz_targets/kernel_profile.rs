//! Runs `fiord_fuzz::profile::kernel_profile` under libFuzzer.
//!
//! Invariant: nothing happens here.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fiord_fuzz::profile::kernel_profile(data));
