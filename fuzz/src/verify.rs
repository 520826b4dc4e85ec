//! The targets for verification: any bytes as a block that was read, and as the saved state of a job.
//!
//! Invariant: what a block format writes it accepts, and a state that is parsed is the same when it is saved again.

use fiord_verify::{
    BlockFormat, BlockPattern, CheckBuffer, Checksum, Contents, Expected, HeaderFormat, Method, Stamp,
    VerifyState,
};

/// Longest block.
const BLOCK_BYTES_MAX: usize = 16 << 10;

/// The format that the first bytes stand for.
fn format([method, header, piece, offset, pattern]: [u8; 5]) -> BlockFormat {
    let methods = Checksum::ALL.into_iter().map(Method::Checksum);
    let methods = methods.chain([Method::Meta, Method::PatternWithHeader, Method::Pattern, Method::Null]);
    let methods: Vec<Method> = methods.collect();
    let method = methods[usize::from(method) % methods.len()];
    let bytes = vec![pattern; 1 + usize::from(pattern) % 40];
    let contents = match (method, header & 2) {
        (Method::Pattern | Method::PatternWithHeader, _) => {
            BlockPattern::new(bytes, Vec::new(), usize::from(header >> 2))
                .map_or(Contents::Given, Contents::Pattern)
        }
        (_, 0) => Contents::Random,
        _ => Contents::Given,
    };
    BlockFormat {
        method,
        header: if header & 1 == 0 { HeaderFormat::V3_33 } else { HeaderFormat::V3_42 },
        header_at_bytes: usize::from(offset) * 8,
        piece_bytes: usize::from(piece) * 16,
        contents,
    }
}

/// Checks the bytes as a block, and then a block that was written and changed in one byte.
pub fn verify_block(data: &[u8]) {
    let Some((first, block)) = data.split_first_chunk::<5>() else { return };
    let mut format = format(*first);
    let block = &block[..block.len().min(BLOCK_BYTES_MAX)];
    let mut scratch = CheckBuffer::for_blocks_of(BLOCK_BYTES_MAX);
    let expected = Expected::at(0);
    if let Err(corruption) = format.check(block, &expected, &mut scratch) {
        assert!(
            corruption.piece_offset_bytes + corruption.piece_bytes <= block.len() as u64,
            "{corruption:?}"
        );
        let restored = format.restored(block, 0, &corruption);
        assert!(restored.is_none_or(|piece| piece.len() as u64 == corruption.piece_bytes), "{corruption:?}");
        assert!(!corruption.fio_lines(&"f", (0, block.len() as u64)).is_empty());
        assert!(!corruption.explanation().is_empty());
    }
    let piece_bytes = if format.piece_bytes == 0 { block.len() } else { format.piece_bytes.min(block.len()) };
    let header_bytes = format.header_bytes(format.header);
    if piece_bytes < header_bytes.max(1) {
        return;
    }
    // As the planner has it: a header changes places with data that is behind it.
    if format.header_at_bytes < header_bytes || format.header_at_bytes + header_bytes > piece_bytes {
        format.header_at_bytes = 0;
    }
    let mut written = block.to_vec();
    format.write(&mut written, &Stamp { offset_bytes: 0, seed: 7, number: 3, thread: 1, at_ns: 5 });
    assert_eq!(format.check(&written, &expected, &mut scratch), Ok(()));
}

/// Parses the bytes as a saved state.
pub fn verify_state(data: &[u8]) {
    let Ok(state) = VerifyState::parse(data) else { return };
    assert!(state.completions.len() * 16 + state.in_flight.len() * 8 <= data.len());
    let format = if data[0] == 3 { HeaderFormat::V3_33 } else { HeaderFormat::V3_42 };
    // A depth that the file has no room for is not saved again.
    if state.depth as usize <= data.len() {
        let again = VerifyState::parse(&state.encode(format)).expect("it was just saved");
        assert_eq!((&again.name, again.numbers, again.seed), (&state.name, state.numbers, state.seed));
    }
}
