//! Runs the target that `FIORD_FUZZ_TARGET` names under libFuzzer; prints the names of all where it is not set.
//!
//! Invariant: contains no target of its own, so that one program is linked and not one for each.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fiord_fuzz::chosen()(data));
