//! Runs `fiord_fuzz::network::http_response` under libFuzzer.
//!
//! Invariant: nothing happens here.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fiord_fuzz::network::http_response(data));
