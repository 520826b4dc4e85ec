//! Runs `fiord_fuzz::verify::verify_block` under libFuzzer.
//!
//! Invariant: nothing happens here.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fiord_fuzz::verify::verify_block(data));
