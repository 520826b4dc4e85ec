//! The target for reports of the history: any bytes as a stored report.
//!
//! Invariant: a stored report that is read is stored in the same bytes again.

use fiord_store::{codec, decode, encode};

/// Decodes the bytes as a report of the history, of whichever version they begin with. Their checksum is added: what is
/// damaged on a disk is refused by it, so that nothing else would be seen of the decoder.
pub fn stored_report(data: &[u8]) {
    let stored = [data, &codec::checksum(data)].concat();
    let Ok(report) = decode(&stored) else { return };
    let again = encode(&report);
    // As bytes: a figure may be no number, which equals nothing.
    assert!(decode(&again).map(|report| encode(&report)).is_ok_and(|bytes| bytes == again), "{report:?}");
}
