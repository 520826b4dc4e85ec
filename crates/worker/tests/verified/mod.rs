//! Verification of hand-made jobs.
//!
//! Invariant: whatever a test does not change is as the options have it by default.

use fiord_plan::Verification;
use fiord_verify::{BlockFormat, Checksum, Contents, HeaderFormat, Method};

/// Every method of verification.
pub fn methods() -> Vec<Method> {
    let checksums = Checksum::ALL.into_iter().map(Method::Checksum);
    checksums.chain([Method::Meta, Method::PatternWithHeader, Method::Pattern, Method::Null]).collect()
}

/// Verification by this method, with what is otherwise the default.
pub fn verification(method: Method) -> Verification {
    let pattern = || fiord_verify::BlockPattern::new(b"pattern".to_vec(), Vec::new(), 0);
    let contents = match method {
        Method::Pattern | Method::PatternWithHeader => pattern().map_or(Contents::Random, Contents::Pattern),
        Method::Checksum(_) | Method::Meta | Method::Null => Contents::Random,
    };
    let header = HeaderFormat::V3_42;
    Verification {
        format: BlockFormat { method, header, header_at_bytes: 0, piece_bytes: 0, contents },
        checks: true,
        compares_reads: true,
        reads_back: true,
        only: false,
        by_device: false,
        has_new_files_each_pass: false,
        checks_seed: true,
        checks_number: true,
        backlog: None,
        trims: None,
        threads: 0,
        thread_cpus: Vec::new(),
        dump_directory: None,
        saved_state: None,
        loaded_state: None,
        only_synced: false,
    }
}
