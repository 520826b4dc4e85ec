//! The target for reports of the history: any bytes as a stored report.
//!
//! Invariant: a stored report that is read is stored in the same bytes again.

use fiord_store::{checksum, decode, encode, seal};

/// Decodes the bytes as the fields of a report, compressed here, and as a report that is compressed already. Their
/// checksum is added: what is damaged on a disk is refused by it, so that nothing else would be seen of the decoder.
pub fn stored_report(data: &[u8]) {
    let fields = seal(data).unwrap_or_default();
    for stored in [fields, [data, &checksum(data)].concat()] {
        let Ok(report) = decode(&stored) else { continue };
        // As bytes: a figure may be no number, which equals nothing.
        let again = encode(&report).unwrap_or_default();
        let twice = decode(&again).and_then(|report| encode(&report));
        assert!(twice.is_ok_and(|bytes| bytes == again), "{report:?}");
    }
}
