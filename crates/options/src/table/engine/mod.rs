//! The private options of the engines fio has: one file per family, the same shape in each.
//!
//! Invariant: an option stands here only if it means something to the engines named by its scope and to no other; the
//! options of an engine that is not built in are `unbuilt`, as it is the engine that is refused.

mod io_uring;
mod kernel;
mod library;
mod network;
mod other;
mod storage;

use super::set::OptionSet;
use super::spec::Spec;

pub use io_uring::{IoUring, IoUringCmd};
pub use kernel::{IoPriorities, Libaio, Mmap, Pvsync2};
pub use library::{Ceph, Gluster, Rados, Rbd};
pub use network::{Net, Rdma};
pub use other::{Cpuio, E4defrag, Exec, FileStat, Mtd, Sg};
pub use storage::{Cufile, Http, Nbd, Nfs};

/// The options of all engines, one entry per set.
pub fn sets() -> [&'static [&'static [&'static Spec]]; 26] {
    [
        IoUring::TABLES,
        IoUringCmd::TABLES,
        Libaio::TABLES,
        IoPriorities::TABLES,
        Pvsync2::TABLES,
        Mmap::TABLES,
        Net::TABLES,
        Rdma::TABLES,
        Cpuio::TABLES,
        FileStat::TABLES,
        Exec::TABLES,
        E4defrag::TABLES,
        Mtd::TABLES,
        Sg::TABLES,
        Ceph::TABLES,
        Rados::TABLES,
        Rbd::TABLES,
        storage::Dfs::TABLES,
        Gluster::TABLES,
        storage::Hdfs::TABLES,
        Http::TABLES,
        Cufile::TABLES,
        storage::Libblkio::TABLES,
        Nbd::TABLES,
        storage::Nfs::TABLES,
        storage::Xnvme::TABLES,
    ]
}
