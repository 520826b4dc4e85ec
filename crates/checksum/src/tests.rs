//! Published test vectors, and detection of changes.
//!
//! Invariant: every checksum has a vector computed by another implementation.

use proptest::prelude::*;

use super::*;

fn hex(digest: Digest) -> String {
    digest.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Each checksum, what is digested, and how its digest begins: the check values of the CRC catalogue, RFC 1321, FIPS 180
/// and 202.
const VECTORS: [(Checksum, &[u8], &str); 14] = [
    // 0xe9c6d914c4b8d9ca, 0x89a1897f, !0xe3069283, 0xbb3d and 0x75 in little-endian order.
    (Checksum::Crc64, b"123456789", "cad9b8c414d9c6e9"),
    (Checksum::Crc32, b"123456789", "7f89a189"),
    (Checksum::Crc32c, b"123456789", "7c6df91c"),
    (Checksum::Crc16, b"123456789", "3dbb"),
    (Checksum::Crc7, b"123456789", "75"),
    (Checksum::Md5, b"abc", "900150983cd24fb0d6963f7d28e17f72"),
    // a9993e36 4706816a ba3e2571 7850c26c 9cd0d89d, each word in reverse byte order.
    (Checksum::Sha1, b"abc", "363e99a96a81064771253eba6cc250789dd8d09c"),
    (Checksum::Sha256, b"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (Checksum::Sha512, b"abc", "ddaf35a193617abacc417349ae204131"),
    (Checksum::Sha3_224, b"abc", "e642824c3f8cf24ad09234ee7d3c766fc9a3a5168d0c94ad73b46fdf"),
    (Checksum::Sha3_256, b"abc", "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532"),
    (Checksum::Sha3_384, b"abc", "ec01498288516fc926459f58e2c6ad8d"),
    (Checksum::Sha3_512, b"abc", "b751850b1a57168a5693cd924b6b096e"),
    // XXH32 of nothing, with seed 0, is 0x02cc5d05; with seed 1 it is 0x0b2cb792.
    (Checksum::Xxhash, b"", "92b72c0b"),
];

#[test]
fn published_vectors() {
    for checksum in Checksum::ALL {
        let vector = VECTORS.iter().find(|(of, ..)| *of == checksum);
        let (_, data, digest) = vector.unwrap_or_else(|| panic!("{} has no vector", checksum.name()));
        assert!(hex(checksum.of(data)).starts_with(digest), "{}", checksum.name());
    }
}

#[test]
fn names_are_read_back() {
    for checksum in Checksum::ALL {
        assert_eq!(Checksum::named(checksum.name()), Some(checksum));
        assert_eq!(checksum.of(b"x").as_bytes().len(), checksum.digest_bytes());
    }
    assert_eq!(Checksum::named("crc32c-intel"), Some(Checksum::Crc32c));
    assert_eq!(Checksum::named("crc"), None);
}

proptest! {
    #[test]
    fn a_flipped_bit_changes_the_digest(data in prop::collection::vec(any::<u8>(), 1..600), at in any::<prop::sample::Index>()) {
        let mut other = data.clone();
        let bit = at.index(data.len() * 8);
        other[bit / 8] ^= 1 << (bit % 8);
        for checksum in Checksum::ALL {
            prop_assert_ne!(checksum.of(&data), checksum.of(&other), "{}", checksum.name());
        }
    }
}
