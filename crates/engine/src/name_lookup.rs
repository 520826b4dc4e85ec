//! How the engines that look names up do it, by the option that they share.
//!
//! Invariant: each value of `stat_type` has a call of its own.

use fiord_options::job::JobOptions;
use fiord_options::value::StatType;
use fiord_sys::names::Lookup;

/// The call that `stat_type` names.
pub(crate) fn of(options: &JobOptions) -> Lookup {
    match options.file_stat.stat_type {
        StatType::Stat => Lookup::Stat,
        StatType::Lstat => Lookup::Lstat,
        StatType::Statx => Lookup::Statx,
    }
}
