//! The quota that binds what is written at a path before its file system is full.
//!
//! Invariant: a quota is told only if the mount enforces its kind, this process is bound by it, and its limit could be read.
//! That of a project is told to root alone; to others the file system itself shows what it leaves in the project's directories.

use std::path::Path;

use fiord_sys::file::{self, OpenHow};
use fiord_sys::quota::{self, QuotaOf};

/// The quota that leaves least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaFacts {
    /// What it is of.
    pub of: QuotaOf,
    /// The number of that user, group or project.
    pub id: u32,
    /// Its hard limit, in bytes.
    pub limit_bytes: u64,
    /// What it leaves, in bytes.
    pub left_bytes: u64,
}

/// The quota for what this process writes into an existing file, or creates in a directory.
pub(crate) fn quota_at(path: &Path, type_name: &str, mount_options: &str) -> Option<QuotaFacts> {
    let enforced = enforced(mount_options);
    if enforced.is_empty() {
        return None;
    }
    // XFS binds everybody but root's own files and those of no project; others let privileged processes pass.
    let binds_all = type_name == "xfs";
    if !binds_all && quota::may_exceed() {
        return None;
    }
    let open = file::open(path, &OpenHow { nonblocking: true, ..OpenHow::READ }).ok()?;
    let payers = quota::payers(&open).ok()?;
    let left = |of| {
        let id = match of {
            QuotaOf::User => payers.user,
            QuotaOf::Group => payers.group,
            QuotaOf::Project => payers.project,
        };
        let limit = if id == 0 && binds_all { None } else { quota::limit(&open, of, id).ok()? }?;
        let left_bytes = limit.limit_bytes.saturating_sub(limit.used_bytes);
        Some(QuotaFacts { of, id, limit_bytes: limit.limit_bytes, left_bytes })
    };
    enforced.into_iter().filter_map(left).min_by_key(|quota| quota.left_bytes)
}

/// The kinds of quota that a mount with these options enforces. One that only counts is mounted with other words.
fn enforced(options: &str) -> Vec<QuotaOf> {
    let of = |option: &str| match option.split('=').next()? {
        "usrquota" | "usrjquota" => Some(QuotaOf::User),
        "grpquota" | "grpjquota" => Some(QuotaOf::Group),
        "prjquota" => Some(QuotaOf::Project),
        _ => None,
    };
    options.split(',').filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_that_only_count_are_not_enforced() {
        assert_eq!(enforced("rw,relatime,prjquota"), [QuotaOf::Project]);
        assert_eq!(enforced("rw,usrjquota=aquota.user,grpquota"), [QuotaOf::User, QuotaOf::Group]);
        assert_eq!(enforced("rw,noquota,uqnoenforce,pqnoenforce"), []);
    }
}
