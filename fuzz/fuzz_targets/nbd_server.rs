//! Runs `fiord_fuzz::network::nbd_server` under libFuzzer.
//!
//! Invariant: nothing happens here.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fiord_fuzz::network::nbd_server(data));
