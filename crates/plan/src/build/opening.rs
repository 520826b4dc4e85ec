//! What is asked of the kernel when a file is made and opened: reservations and hints.
//!
//! Invariant: each word of an option has its value here, and none is chosen for it.

use fiord_options::job::JobOptions;
use fiord_options::value;

use crate::files::{Advice, Fallocate};

/// How space is reserved before a file is laid out.
pub(super) fn fallocate(options: &JobOptions) -> Fallocate {
    match options.files.fallocate {
        _ if options.amount.fill_device => Fallocate::None,
        value::Fallocate::None => Fallocate::None,
        value::Fallocate::Native => Fallocate::Native,
        value::Fallocate::Posix => Fallocate::Posix,
        value::Fallocate::Keep => Fallocate::Keep,
        value::Fallocate::Truncate => Fallocate::Truncate,
    }
}

/// What the kernel is told of the order of I/O.
pub(super) fn advice(options: &JobOptions) -> Advice {
    match options.files.fadvise_hint {
        value::FadviseHint::None => Advice::None,
        value::FadviseHint::Workload => Advice::ByPattern,
        value::FadviseHint::Random => Advice::Random,
        value::FadviseHint::Sequential => Advice::Sequential,
        value::FadviseHint::NoReuse => Advice::NoReuse,
    }
}

/// The values of `F_SET_RW_HINT`, as the kernel has them.
pub(super) fn write_hint(hint: value::WriteHint) -> u64 {
    match hint {
        value::WriteHint::None => 1,
        value::WriteHint::Short => 2,
        value::WriteHint::Medium => 3,
        value::WriteHint::Long => 4,
        value::WriteHint::Extreme => 5,
    }
}
