//! Checksums of data blocks: bytes in, digest out.
//!
//! Invariant: a digest has the bytes that fio writes into a block's header for the same data, so that either program can
//! check what the other wrote. The two exceptions, SHA-256 and SHA-512, have functions of their own.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod fio_sha;
mod protection;

pub use fio_sha::{FIO_SHA256_BYTES, FIO_SHA512_BYTES, fio_333_sha512, fio_sha256, fio_sha512};
pub use protection::{guard16, guard64};

use std::sync::LazyLock;

use crc::{Algorithm, CRC_7_MMC, CRC_16_ARC, CRC_64_REDIS, Crc, Table};
use sha2::Digest as _;

/// Declares the checksums, each with its name and the length of its digest in bytes.
macro_rules! checksums {
    ($($(#[$doc:meta])+ $checksum:ident = $name:literal, $digest_bytes:literal;)+) => {
        /// A kind of checksum.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Checksum {
            $($(#[$doc])+ $checksum,)+
        }

        impl Checksum {
            /// Every checksum, in fio's order.
            pub const ALL: [Checksum; COUNT] = [$(Checksum::$checksum),+];

            /// The name, as `verify` and `--crctest` take it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Checksum::$checksum => $name,)+
                }
            }

            /// Length of the digest in bytes.
            pub const fn digest_bytes(self) -> usize {
                match self {
                    $(Checksum::$checksum => $digest_bytes,)+
                }
            }
        }

        const COUNT: usize = [$(Checksum::$checksum),+].len();
    };
}

checksums! {
    /// MD5.
    Md5 = "md5", 16;
    /// CRC-64 with the polynomial that Redis uses.
    Crc64 = "crc64", 8;
    /// CRC-32 with the bit order of POSIX `cksum`, without the length and the final inversion.
    Crc32 = "crc32", 4;
    /// CRC-32C (Castagnoli) without the final inversion; the processor's instruction where there is one.
    Crc32c = "crc32c", 4;
    /// CRC-16/ARC.
    Crc16 = "crc16", 2;
    /// CRC-7 of MMC cards.
    Crc7 = "crc7", 1;
    /// SHA-1, its five words in little-endian order.
    Sha1 = "sha1", 20;
    /// SHA-256. fio writes something else: [`fio_sha256`].
    Sha256 = "sha256", 32;
    /// SHA-512. fio writes more or something else: [`fio_sha512`], [`fio_333_sha512`].
    Sha512 = "sha512", 64;
    /// XXH32 with seed 1.
    Xxhash = "xxhash", 4;
    /// SHA3-224.
    Sha3_224 = "sha3-224", 28;
    /// SHA3-256.
    Sha3_256 = "sha3-256", 32;
    /// SHA3-384.
    Sha3_384 = "sha3-384", 48;
    /// SHA3-512.
    Sha3_512 = "sha3-512", 64;
}

/// Length of the longest digest, in bytes.
const DIGEST_BYTES_MAX: usize = 64;

const CRC_32_REGISTER: Algorithm<u32> = Algorithm {
    width: 32,
    poly: 0x04c1_1db7,
    init: 0,
    refin: false,
    refout: false,
    xorout: 0,
    check: 0x89a1_897f,
    residue: 0,
};

/// A code with its table, which its first digest makes: in the binary the four would be 60 KB.
type Made<W> = LazyLock<Box<Crc<W, Table<16>>>>;

static CRC64: Made<u64> = LazyLock::new(|| Box::new(Crc::<u64, Table<16>>::new(&CRC_64_REDIS)));
static CRC32: Made<u32> = LazyLock::new(|| Box::new(Crc::<u32, Table<16>>::new(&CRC_32_REGISTER)));
static CRC16: Made<u16> = LazyLock::new(|| Box::new(Crc::<u16, Table<16>>::new(&CRC_16_ARC)));
static CRC7: Made<u8> = LazyLock::new(|| Box::new(Crc::<u8, Table<16>>::new(&CRC_7_MMC)));

const XXHASH_SEED: u32 = 1;

impl Checksum {
    /// The checksum with this name. `crc32c-intel` is another name of `crc32c`.
    pub fn named(name: &str) -> Option<Checksum> {
        let name = if name == "crc32c-intel" { "crc32c" } else { name };
        Checksum::ALL.into_iter().find(|checksum| checksum.name() == name)
    }

    /// The checksum of `data`. Numbers are in little-endian order, as fio has them on a disk. The first of some kinds
    /// allocates a table.
    pub fn of(self, data: &[u8]) -> Digest {
        match self {
            Checksum::Md5 => Digest::new(&md5::Md5::digest(data)),
            Checksum::Crc64 => Digest::new(&CRC64.checksum(data).to_le_bytes()),
            Checksum::Crc32 => Digest::new(&CRC32.checksum(data).to_le_bytes()),
            Checksum::Crc32c => Digest::new(&(!crc32c::crc32c(data)).to_le_bytes()),
            Checksum::Crc16 => Digest::new(&CRC16.checksum(data).to_le_bytes()),
            Checksum::Crc7 => Digest::new(&[CRC7.checksum(data)]),
            Checksum::Sha1 => {
                let mut bytes: [u8; 20] = sha1::Sha1::digest(data).into();
                bytes.chunks_exact_mut(4).for_each(<[u8]>::reverse);
                Digest::new(&bytes)
            }
            Checksum::Sha256 => Digest::new(&sha2::Sha256::digest(data)),
            Checksum::Sha512 => Digest::new(&sha2::Sha512::digest(data)),
            Checksum::Xxhash => Digest::new(&xxhash_rust::xxh32::xxh32(data, XXHASH_SEED).to_le_bytes()),
            Checksum::Sha3_224 => Digest::new(&sha3::Sha3_224::digest(data)),
            Checksum::Sha3_256 => Digest::new(&sha3::Sha3_256::digest(data)),
            Checksum::Sha3_384 => Digest::new(&sha3::Sha3_384::digest(data)),
            Checksum::Sha3_512 => Digest::new(&sha3::Sha3_512::digest(data)),
        }
    }
}

/// The result of a checksum. On the stack, because a hot loop computes one per block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    bytes: [u8; DIGEST_BYTES_MAX],
    length_bytes: usize,
}

impl Digest {
    fn new(digest: &[u8]) -> Digest {
        let mut bytes = [0; DIGEST_BYTES_MAX];
        bytes[..digest.len()].copy_from_slice(digest);
        Digest { bytes, length_bytes: digest.len() }
    }

    /// The digest's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length_bytes]
    }
}

#[cfg(test)]
mod tests;
