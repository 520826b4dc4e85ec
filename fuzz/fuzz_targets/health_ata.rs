//! Runs `fiord_fuzz::health::health_ata` under libFuzzer.
//!
//! Invariant: nothing happens here.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fiord_fuzz::health::health_ata(data));
