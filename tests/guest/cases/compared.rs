//! What cases on commands to devices compare: both programs on the same device, and the bytes that it holds.
//!
//! Invariant: bytes are read by another program than the one that wrote them.

use std::process::Command;

use fiord_guest::{Finished, fio, fiord};

/// The same job by fio and by fiord.
pub fn both(args: &[&str]) -> [Finished; 2] {
    [fio(args).expect("fio runs"), fiord(args).expect("fiord runs")]
}

/// Bytes of a device, read past the page cache; place and length in KiB.
pub fn bytes(device: &str, at_kib: u64, length_kib: u64) -> Vec<u8> {
    let mut dd = Command::new("dd");
    dd.args([&format!("if={device}"), "iflag=direct", "bs=1024", "status=none"]);
    dd.args([format!("skip={at_kib}"), format!("count={length_kib}")]);
    let out = dd.output().expect("dd runs");
    assert!(out.status.success(), "{out:?}");
    out.stdout
}
