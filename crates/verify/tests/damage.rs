//! A corrupter, and what each method makes of each kind of damage.
//!
//! Invariant: an intact block is never refused, and what a method does not see is in the table here.

#![allow(clippy::unwrap_used, reason = "tests panic with a message when something is wrong")]

use fiord_checksum::Checksum;
use fiord_verify::{
    BlockFormat, BlockPattern, CheckBuffer, Contents, Corruption, CorruptionKind, Expected, HeaderFormat,
    Method, Stamp, Trimmed,
};
use proptest::prelude::*;

const BLOCK_BYTES: usize = 4096;
const OFFSET_BYTES: u64 = 3 * BLOCK_BYTES as u64;

fn methods() -> Vec<Method> {
    let checksums = Checksum::ALL.into_iter().map(Method::Checksum);
    checksums.chain([Method::Meta, Method::PatternWithHeader, Method::Pattern]).collect()
}

fn format(method: Method, header: HeaderFormat) -> BlockFormat {
    let pattern = || BlockPattern::new(b"pattern and \0\0\0\0\0\0\0\0".to_vec(), vec![12], 0);
    let contents = match method {
        Method::Pattern | Method::PatternWithHeader => Contents::Pattern(pattern().unwrap()),
        _ => Contents::Random,
    };
    BlockFormat { method, header, header_at_bytes: 0, piece_bytes: 0, contents }
}

/// The block that write `number` puts at this offset.
fn written(format: &BlockFormat, offset_bytes: u64, number: u64) -> Vec<u8> {
    let mut block = vec![0; BLOCK_BYTES];
    let stamp = Stamp { offset_bytes, seed: seed(number), number, thread: 1, at_ns: 1_234_567_890 };
    format.write(&mut block, &stamp);
    block
}

fn seed(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A check by the job that wrote the block, which knows what it should be.
fn by_writer(format: &BlockFormat, block: &[u8], number: u64) -> Option<Corruption> {
    let expected = Expected {
        offset_bytes: OFFSET_BYTES,
        seed: Some(seed(number)),
        checks_seed: true,
        number: Some(number),
        checks_number: true,
        trimmed: Trimmed::No,
    };
    format.check(block, &expected, &mut CheckBuffer::for_blocks_of(BLOCK_BYTES)).err()
}

/// A check by a later job, which knows nothing.
fn by_reader(format: &BlockFormat, block: &[u8]) -> Option<Corruption> {
    format.check(block, &Expected::at(OFFSET_BYTES), &mut CheckBuffer::for_blocks_of(BLOCK_BYTES)).err()
}

/// What may happen to the block of write 8, over that of write 7, and the block then read.
fn damages(format: &BlockFormat) -> [(&'static str, Vec<u8>, CorruptionKind); 6] {
    let (old, new) = (written(format, OFFSET_BYTES, 7), written(format, OFFSET_BYTES, 8));
    let elsewhere = written(format, OFFSET_BYTES + 4096, 9);
    let mut flipped = new.clone();
    flipped[2000] ^= 4;
    let torn = [&new[..1024], &old[1024..]].concat();
    let torn_front = [&old[..1024], &new[1024..]].concat();
    [
        ("flip", flipped, CorruptionKind::BitFlip),
        ("swap", elsewhere, CorruptionKind::Misplaced),
        ("zero", vec![0; BLOCK_BYTES], CorruptionKind::Zeroes),
        ("tear", torn, CorruptionKind::Torn),
        ("tear front", torn_front, CorruptionKind::Torn),
        ("age", old, CorruptionKind::Stale),
    ]
}

/// Who finds each kind of damage, as docs/verification.md has it: a row for each method, one for all checksums.
fn table() -> String {
    let mut rows: Vec<(String, String)> = Vec::new();
    for method in methods().into_iter().chain([Method::Null]) {
        let format = format(method, HeaderFormat::V3_42);
        let cell = |(_, block, _): (&str, Vec<u8>, CorruptionKind)| match (
            by_writer(&format, &block, 8).is_some(),
            by_reader(&format, &block).is_some(),
        ) {
            (true, true) => " both |",
            (true, false) => " writer |",
            (false, false) => " no |",
            (false, true) => " later run |",
        };
        let cells: String = damages(&format).map(cell).concat();
        let name = match method {
            Method::Checksum(_) => "a checksum".to_string(),
            _ => format!("`{}`", method.name()),
        };
        match rows.iter().find(|(known, _)| *known == name) {
            Some(known) => {
                assert_eq!(known.1, cells, "{}: another checksum finds other damage", method.name())
            }
            None => rows.push((name, cells)),
        }
    }
    let kinds =
        damages(&format(Method::Null, HeaderFormat::V3_42)).map(|(damage, ..)| format!(" {damage} |"));
    let mut text = format!("| `verify` |{}\n|{}\n", kinds.concat(), " --- |".repeat(kinds.len() + 1));
    for (name, cells) in rows {
        text += &format!("| {name} |{cells}\n");
    }
    text
}

#[test]
fn the_documented_table_of_damage_is_what_is_found() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/verification.md");
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(&table()), "docs/verification.md should contain:\n{}", table());
}

#[test]
fn every_method_sees_every_damage_but_those_listed() {
    for method in methods() {
        for header in [HeaderFormat::V3_33, HeaderFormat::V3_42] {
            let format = format(method, header);
            for (damage, block, kind) in damages(&format) {
                let found = by_writer(&format, &block, 8).map(|corruption| corruption.kind);
                let expected = match (method, damage) {
                    // A header alone covers itself: data after it is not compared.
                    (Method::Meta, "flip" | "tear") => None,
                    // ... and one that is old, followed by new data, looks like an old block.
                    (Method::Meta, "tear front") => Some(CorruptionKind::Stale),
                    // A pattern is the same in each write of a place.
                    (Method::Pattern, "age" | "tear" | "tear front")
                    | (Method::PatternWithHeader, "tear") => None,
                    (Method::PatternWithHeader, "tear front") => Some(CorruptionKind::Stale),
                    // Without a header nothing says where a block belongs.
                    (Method::Pattern, "swap") => Some(CorruptionKind::Garbled),
                    _ => Some(kind),
                };
                assert_eq!(found, expected, "{} {header:?}: {damage}", method.name());
                // A later job cannot know that an intact block is old.
                let is_seen = by_reader(&format, &block).is_some();
                let is_torn_unseen = expected == Some(CorruptionKind::Stale);
                assert_eq!(
                    is_seen,
                    expected.is_some() && !is_torn_unseen,
                    "{} {header:?}: {damage}",
                    method.name()
                );
            }
        }
    }
}

#[test]
fn a_finding_names_the_byte_and_the_writes() {
    let format = format(Method::Checksum(Checksum::Crc32c), HeaderFormat::V3_42);
    let mut block = written(&format, OFFSET_BYTES, 8);
    block[2000] ^= 4;
    let corruption = by_reader(&format, &block).unwrap();
    assert_eq!(corruption.first_difference_bytes, Some(OFFSET_BYTES + 2000));
    assert_eq!((corruption.differing_bytes, corruption.found_number), (Some(1), Some(8)));
    let text = corruption.explanation();
    assert!(text.contains("a single bit differs") && text.contains("byte 14288"), "{text}");
    let old = written(&format, OFFSET_BYTES, 7);
    let text = by_writer(&format, &old, 8).unwrap().explanation();
    assert!(text.contains("stale") && text.contains("expected write 8, found write 7"), "{text}");
}

proptest! {
    #[test]
    fn what_is_written_is_accepted(
        method in 0..methods().len(),
        old_header: bool,
        block_bytes in 176_usize..20_000,
        piece_bytes in prop_oneof![Just(0_usize), 176..5000_usize],
        wants_offset: bool,
        number: u64,
        sector in 0_u64..1 << 40,
    ) {
        let header = if old_header { HeaderFormat::V3_33 } else { HeaderFormat::V3_42 };
        let mut format = BlockFormat { piece_bytes, ..format(methods()[method], header) };
        let header_bytes = format.header_bytes(header);
        let shortest = if piece_bytes == 0 { block_bytes } else { piece_bytes.min(block_bytes) };
        if wants_offset && shortest >= 2 * header_bytes {
            format.header_at_bytes = shortest - header_bytes;
        }
        let offset_bytes = sector * 512;
        let mut block = vec![0xaa; block_bytes];
        format.write(&mut block, &Stamp { offset_bytes, seed: seed(number), number, thread: 3, at_ns: number });
        let mut scratch = CheckBuffer::for_blocks_of(block_bytes);
        let known = Expected {
            offset_bytes, seed: Some(seed(number)), checks_seed: true, number: Some(number), checks_number: true,
            trimmed: Trimmed::No,
        };
        prop_assert_eq!(format.check(&block, &known, &mut scratch), Ok(()));
        prop_assert_eq!(format.check(&block, &Expected::at(offset_bytes), &mut scratch), Ok(()));
    }

    #[test]
    fn any_bytes_are_checked_without_a_panic(
        method in 0..methods().len(),
        block in prop::collection::vec(any::<u8>(), 0..600),
        piece_bytes in 0_usize..700,
        header_at_bytes in 0_usize..700,
        begins_as_header: bool,
    ) {
        let format = BlockFormat { piece_bytes, header_at_bytes, ..format(methods()[method], HeaderFormat::V3_42) };
        let mut block = block;
        if begins_as_header && block.len() > header_at_bytes + 4 {
            block[header_at_bytes..header_at_bytes + 3].copy_from_slice(&[0xca, 0xac, 0x81]);
        }
        let _ = format.check(&block, &Expected::at(0), &mut CheckBuffer::for_blocks_of(block.len()));
    }
}
