//! The methods of verification, and what each adds to a header.
//!
//! Invariant: codes and lengths are fio's.

use fiord_checksum::{Checksum, FIO_SHA256_BYTES, FIO_SHA512_BYTES, fio_333_sha512, fio_sha256, fio_sha512};

use crate::field::Field;
use crate::header::HeaderFormat;

/// The method by which a block is verified (`verify`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// A header with this checksum of the data after it.
    Checksum(Checksum),
    /// A header alone.
    Meta,
    /// A header, and a pattern after it.
    PatternWithHeader,
    /// A pattern, without a header.
    Pattern,
    /// Nothing: blocks are read and not compared.
    Null,
}

impl Method {
    /// Whether blocks have headers.
    pub const fn has_header(self) -> bool {
        !matches!(self, Method::Pattern | Method::Null)
    }

    /// Its name in fio's options and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Method::Checksum(checksum) => checksum.name(),
            Method::Meta => "meta",
            Method::PatternWithHeader => "pattern_hdr",
            Method::Pattern => "pattern",
            Method::Null => "null",
        }
    }

    /// Its number in a header; 0 for methods without one.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Method::Meta => 1,
            Method::Checksum(checksum) => match checksum {
                Checksum::Md5 => 2,
                Checksum::Crc64 => 3,
                Checksum::Crc32 => 4,
                Checksum::Crc32c => 5,
                Checksum::Crc16 => 7,
                Checksum::Crc7 => 8,
                Checksum::Sha256 => 9,
                Checksum::Sha512 => 10,
                Checksum::Sha3_224 => 11,
                Checksum::Sha3_256 => 12,
                Checksum::Sha3_384 => 13,
                Checksum::Sha3_512 => 14,
                Checksum::Xxhash => 15,
                Checksum::Sha1 => 16,
            },
            Method::PatternWithHeader => 17,
            Method::Pattern | Method::Null => 0,
        }
    }

    /// Bytes of its checksum after a header.
    pub const fn field_bytes(self) -> usize {
        match self {
            Method::Checksum(Checksum::Sha256) => FIO_SHA256_BYTES,
            Method::Checksum(Checksum::Sha512) => FIO_SHA512_BYTES,
            Method::Checksum(checksum) => checksum.digest_bytes(),
            Method::Meta | Method::PatternWithHeader | Method::Pattern | Method::Null => 0,
        }
    }

    /// The checksum of `data` as it is stored after a header of this format.
    pub(crate) fn field(self, data: &[u8], format: HeaderFormat) -> Field {
        match (self, format) {
            (Method::Checksum(Checksum::Sha256), _) => Field::new(&fio_sha256(data)),
            (Method::Checksum(Checksum::Sha512), HeaderFormat::V3_33) => Field::new(&fio_333_sha512(data)),
            (Method::Checksum(Checksum::Sha512), HeaderFormat::V3_42) => Field::new(&fio_sha512(data)),
            (Method::Checksum(checksum), _) => Field::new(checksum.of(data).as_bytes()),
            (Method::Meta | Method::PatternWithHeader | Method::Pattern | Method::Null, _) => Field::new(&[]),
        }
    }

    /// Whether the field of this method leaves changes of the data unseen: a real digest stands in the header then, in
    /// place of the time of the write.
    pub(crate) fn needs_digest_in_time(self, format: HeaderFormat) -> bool {
        self == Method::Checksum(Checksum::Sha512) && format == HeaderFormat::V3_33
    }
}
