//! The header fields that fio writes for SHA-256 and SHA-512, which are not the digests of these names.
//!
//! Invariant: derived from blocks written by fio (3.33 and 3.42), so that each program verifies what the other wrote.

use sha2::Digest as _;
use sha2::block_api::compress256;

/// Bytes of the field for SHA-256.
pub const FIO_SHA256_BYTES: usize = 64;

/// Bytes of the field for SHA-512.
pub const FIO_SHA512_BYTES: usize = 128;

const SHA256_START: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// What both versions write for SHA-256: the last block that was hashed, in which the length of the data is
/// little-endian, and in place of its first eight bytes the low byte of each word of the state.
pub fn fio_sha256(data: &[u8]) -> [u8; FIO_SHA256_BYTES] {
    let mut state = SHA256_START;
    let (blocks, tail) = data.as_chunks::<64>();
    compress256(&mut state, blocks);
    let mut last = [0; 64];
    last[..tail.len()].copy_from_slice(tail);
    last[tail.len()] = 0x80;
    if tail.len() >= 56 {
        compress256(&mut state, &[last]);
        last = [0; 64];
    }
    last[56..].copy_from_slice(&(data.len() as u64 * 8).to_le_bytes());
    compress256(&mut state, &[last]);
    for (byte, word) in last.iter_mut().zip(state) {
        *byte = (word & 0xff) as u8;
    }
    last
}

/// What fio 3.42 writes for SHA-512: the digest, then the second half of the last block that was hashed.
pub fn fio_sha512(data: &[u8]) -> [u8; FIO_SHA512_BYTES] {
    let tail = data.as_chunks::<128>().1;
    let mut last = [0; 128];
    if tail.len() < 112 {
        last[..tail.len()].copy_from_slice(tail);
        last[tail.len()] = 0x80;
    }
    last[112..].copy_from_slice(&(data.len() as u128 * 8).to_be_bytes());
    last[..64].copy_from_slice(&sha2::Sha512::digest(data));
    last
}

/// What fio 3.33 writes for SHA-512: the bytes of the data behind its last whole block, filled up to a block with those
/// of its first. It does not depend on what is between them.
pub fn fio_333_sha512(data: &[u8]) -> [u8; FIO_SHA512_BYTES] {
    let (blocks, tail) = data.as_chunks::<128>();
    let mut last = blocks.first().copied().unwrap_or([0; 128]);
    last[..tail.len()].copy_from_slice(tail);
    last
}
