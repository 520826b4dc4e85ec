//! Reports as bytes: the number of the format, the model's fields compressed, a checksum.
//!
//! Invariant: bytes that were not written in this format are refused, and no bytes make decoding panic or take more
//! memory than a report of [`LENGTH_MAX`] bytes does.

use std::io::Read;

use fiord_report::RunReport;
use flate2::Compression;
use flate2::read::{DeflateDecoder, DeflateEncoder};

use crate::error::Cause;

/// The format that is written, and the only one that is read: the fields of the model, with their types, in their order.
/// A model that has changed has another format, with another number.
const FORMAT: u32 = 5;

/// The longest report, in bytes before compression: 4096 jobs (`max-jobs`) with every histogram there is take half.
const LENGTH_MAX: usize = 1 << 28;

/// The report as bytes.
///
/// # Errors
/// It is longer than can be read back.
pub fn encode(report: &RunReport) -> Result<Vec<u8>, Cause> {
    let fields = postcard::to_allocvec(report).map_err(|why| Cause::Unstorable(why.to_string()))?;
    if fields.len() > LENGTH_MAX {
        return Err(Cause::Unstorable(format!(
            "it takes {} bytes, and at most {LENGTH_MAX} are read back; show jobs as one (group_reporting)",
            fields.len()
        )));
    }
    seal(&fields)
}

/// The fields of a report with what is stored around them. SQLite does not notice when a disk returns other bytes, and
/// figures that were never measured must not be shown: they end with a [`checksum`].
///
/// # Errors
/// None that is known: memory is written to memory.
pub fn seal(fields: &[u8]) -> Result<Vec<u8>, Cause> {
    let unstorable = |why: &dyn std::fmt::Display| Cause::Unstorable(why.to_string());
    let mut bytes = postcard::to_allocvec(&FORMAT).map_err(|why| unstorable(&why))?;
    let compressed = DeflateEncoder::new(fields, Compression::fast()).read_to_end(&mut bytes);
    compressed.map_err(|why| unstorable(&why))?;
    bytes.extend(checksum(&bytes));
    Ok(bytes)
}

/// The report of these bytes.
///
/// # Errors
/// They are of another format, or damaged.
pub fn decode(bytes: &[u8]) -> Result<RunReport, Cause> {
    let (found, _) = postcard::take_from_bytes(bytes).map_err(|_| Cause::Damaged)?;
    if found != FORMAT {
        return Err(Cause::OtherReport { found, known: FORMAT });
    }
    let (bytes, sum) = bytes.split_last_chunk().ok_or(Cause::Damaged)?;
    if checksum(bytes) != *sum {
        return Err(Cause::Damaged);
    }
    let fields = fields(bytes, LENGTH_MAX).ok_or(Cause::Damaged)?;
    match postcard::take_from_bytes(&fields) {
        Ok((report, [])) => Ok(report),
        _ => Err(Cause::Damaged),
    }
}

/// The fields of a report that follow the number of its format, up to this length.
fn fields(bytes: &[u8], length_max: usize) -> Option<Vec<u8>> {
    let (_, compressed) = postcard::take_from_bytes::<u32>(bytes).ok()?;
    let mut fields = Vec::new();
    DeflateDecoder::new(compressed).take(length_max as u64).read_to_end(&mut fields).ok()?;
    Some(fields)
}

/// The checksum of bytes (FNV-1a): it detects every change of one byte, and nearly every change of several.
pub fn checksum(bytes: &[u8]) -> [u8; 8] {
    let add = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, add).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decompressed_up_to_their_longest_length() {
        let zeros = seal(&[0; 1 << 20]).unwrap();
        assert!(zeros.len() < 1 << 13, "{}", zeros.len());
        let (bytes, _) = zeros.split_last_chunk::<8>().unwrap();
        assert_eq!(fields(bytes, 1000).map(|fields| fields.len()), Some(1000));
        assert_eq!(fields(bytes, LENGTH_MAX).map(|fields| fields.len()), Some(1 << 20));
    }

    #[test]
    fn the_checksum_is_fnv_1a() {
        for (text, expected) in
            [("", 0xcbf2_9ce4_8422_2325_u64), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            assert_eq!(checksum(text.as_bytes()), expected.to_le_bytes(), "{text}");
        }
    }
}
