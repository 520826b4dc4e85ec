//! Published test vectors, and detection of changes.
//!
//! Invariant: every checksum has a vector computed by another implementation.

use proptest::prelude::*;

use super::*;

fn hex(digest: Digest) -> String {
    digest.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The check values of the CRC catalogue, RFC 1321, FIPS 180 and 202.
#[test]
fn published_vectors() {
    let check = b"123456789";
    // 0xe9c6d914c4b8d9ca, 0x89a1897f, !0xe3069283, 0xbb3d and 0x75 in little-endian order.
    assert_eq!(hex(Checksum::Crc64.of(check)), "cad9b8c414d9c6e9");
    assert_eq!(hex(Checksum::Crc32.of(check)), "7f89a189");
    assert_eq!(hex(Checksum::Crc32c.of(check)), "7c6df91c");
    assert_eq!(hex(Checksum::Crc16.of(check)), "3dbb");
    assert_eq!(hex(Checksum::Crc7.of(check)), "75");
    for (checksum, digest) in [
        (Checksum::Md5, "900150983cd24fb0d6963f7d28e17f72"),
        (Checksum::Sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (Checksum::Sha3_224, "e642824c3f8cf24ad09234ee7d3c766fc9a3a5168d0c94ad73b46fdf"),
        (Checksum::Sha3_256, "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532"),
        // a9993e36 4706816a ba3e2571 7850c26c 9cd0d89d, each word in reverse byte order.
        (Checksum::Sha1, "363e99a96a81064771253eba6cc250789dd8d09c"),
    ] {
        assert_eq!(hex(checksum.of(b"abc")), digest, "{}", checksum.name());
    }
    assert!(hex(Checksum::Sha512.of(b"abc")).starts_with("ddaf35a193617abacc417349ae204131"));
    assert!(hex(Checksum::Sha3_384.of(b"abc")).starts_with("ec01498288516fc926459f58e2c6ad8d"));
    assert!(hex(Checksum::Sha3_512.of(b"abc")).starts_with("b751850b1a57168a5693cd924b6b096e"));
    // XXH32 of nothing, with seed 0, is 0x02cc5d05; with seed 1 it is 0x0b2cb792.
    assert_eq!(hex(Checksum::Xxhash.of(b"")), "92b72c0b");
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
