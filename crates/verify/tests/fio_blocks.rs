//! Blocks that fio wrote: the second 4 KiB of a file, one per method and version.
//!
//! Invariant: each is accepted as it is, and a block of each method is refused with any one bit of it turned, but for what
//! its method cannot see.

use fiord_checksum::Checksum;
use fiord_verify::{BlockFormat, BlockPattern, CheckBuffer, Contents, Expected, HeaderFormat, Method};

const BLOCK_BYTES: usize = 4096;

macro_rules! blocks {
    ($version:literal: $($name:literal),+) => {
        [$(($name, include_bytes!(concat!("fio-", $version, "/", $name, ".bin")))),+]
    };
}

fn format(method: Method) -> BlockFormat {
    BlockFormat {
        method,
        header: HeaderFormat::V3_42,
        header_at_bytes: 0,
        piece_bytes: 0,
        contents: Contents::Given,
    }
}

/// The longest header: its fixed part, and the field of sha512.
const HEADER_BYTES_MAX: usize = 40 + 128;

/// Places in a block: all of its header, and some of the data.
fn places() -> impl Iterator<Item = usize> {
    (0..BLOCK_BYTES).filter(|at| *at <= HEADER_BYTES_MAX || at % 173 == 0)
}

fn check(format: &BlockFormat, block: &[u8]) -> bool {
    let expected = Expected::at(BLOCK_BYTES as u64);
    format.check(block, &expected, &mut CheckBuffer::for_blocks_of(BLOCK_BYTES)).is_ok()
}

/// Those of the places where a turned bit is not seen.
fn unseen(format: &BlockFormat, block: &[u8]) -> Vec<usize> {
    places()
        .filter(|at| {
            let mut block = block.to_vec();
            block[*at] ^= 0x10;
            check(format, &block)
        })
        .collect()
}

// divergence: `sha512`
#[test]
fn checksums_of_fio_3_42() {
    let blocks = blocks!("3.42": "md5", "crc64", "crc32", "crc32c", "crc16", "crc7", "sha1", "sha256", "sha512",
        "xxhash", "sha3-224", "sha3-256", "sha3-384", "sha3-512");
    for (name, block) in blocks {
        let format = format(Method::Checksum(Checksum::named(name).unwrap()));
        assert!(check(&format, block), "{name}");
        assert_eq!(unseen(&format, block), [0; 0], "{name}");
    }
}

#[test]
fn checksums_of_fio_3_33() {
    let blocks = blocks!("3.33": "md5", "crc64", "crc32", "crc32c", "crc16", "crc7", "sha1", "sha256", "xxhash",
        "sha3-224", "sha3-256", "sha3-384", "sha3-512");
    for (name, block) in blocks {
        let format = format(Method::Checksum(Checksum::named(name).unwrap()));
        assert!(check(&format, block), "{name}");
    }
}

#[test]
fn sha512_of_fio_3_33_covers_the_ends_of_the_data_alone() {
    let [(_, block)] = blocks!("3.33": "sha512");
    let format = format(Method::Checksum(Checksum::Sha512));
    assert!(check(&format, block));
    let unseen = unseen(&format, block);
    // 40 bytes of header, 128 of the field, 3928 of data: 30 blocks of 128 bytes and 88 after them.
    let data = HEADER_BYTES_MAX;
    let is_uncovered =
        |at: &usize| (data..data + 88).contains(at) || (data + 128..data + 30 * 128).contains(at);
    let expected: Vec<usize> = places().filter(is_uncovered).collect();
    assert_eq!(unseen, expected);
}

#[test]
fn a_header_alone_covers_itself() {
    let [(_, block)] = blocks!("3.33": "meta");
    assert!(check(&format(Method::Meta), block));
    assert_eq!(unseen(&format(Method::Meta), block), places().filter(|at| *at >= 40).collect::<Vec<_>>());
}

#[test]
fn headers_at_an_offset_and_for_each_interval() {
    let [(_, at_100), (_, in_512), (_, random)] =
        blocks!("3.42": "crc32c-offset100", "md5-interval512", "md5-randwrite");
    let crc32c = BlockFormat { header_at_bytes: 100, ..format(Method::Checksum(Checksum::Crc32c)) };
    assert!(check(&crc32c, at_100));
    assert_eq!(unseen(&crc32c, at_100), [0; 0]);
    let md5 = BlockFormat { piece_bytes: 512, ..format(Method::Checksum(Checksum::Md5)) };
    assert!(check(&md5, in_512));
    assert_eq!(unseen(&md5, in_512), [0; 0]);
    assert!(check(&format(Method::Checksum(Checksum::Md5)), random));
}

#[test]
fn patterns_with_and_without_a_header() {
    let [(_, bare), (_, behind_header)] = blocks!("3.42": "pattern", "pattern_hdr");
    let bytes = [[0xde, 0xad, 0xbe, 0xef].as_slice(), &[0; 8]].concat();
    let contents = Contents::Pattern(BlockPattern::new(bytes, vec![4], 0).unwrap());
    for (method, block) in [(Method::Pattern, bare), (Method::PatternWithHeader, behind_header)] {
        let format = BlockFormat { contents: contents.clone(), ..format(method) };
        assert!(check(&format, block), "{method:?}");
        assert_eq!(unseen(&format, block), [0; 0], "{method:?}");
    }
}

#[test]
fn a_block_of_another_method_or_place_is_refused() {
    let [(_, block)] = blocks!("3.42": "md5");
    assert!(!check(&format(Method::Checksum(Checksum::Crc64)), block));
    let expected = Expected::at(0);
    let mut scratch = CheckBuffer::for_blocks_of(BLOCK_BYTES);
    let corruption =
        format(Method::Checksum(Checksum::Md5)).check(block, &expected, &mut scratch).unwrap_err();
    let line = corruption.fio_lines(&"f", (0, 4096));
    let fio = "verify: bad header offset 4096, wanted 0 at file f offset 0, length 4096 \
               (requested block: offset=0, length=4096)";
    assert_eq!(line, fio);
}
