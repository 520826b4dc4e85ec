//! The engines fio has, and their private options: one file per family, the same shape in each.
//!
//! Invariant: an option stands here only if it means something to the engines named by its scope and to no other; the
//! options of an engine that is not built in are dormant, as it is the engine that is refused.

mod io_uring;
mod kernel;
mod network;
mod other;
mod storage;

use crate::spec::{Choice, Spec};
use crate::table::OptionSet;

pub use io_uring::IoUring;
pub use kernel::{Libaio, Mmap, Pvsync2};

/// The engines built in.
const BUILT: [&str; 9] =
    ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "libaio", "io_uring", "null"];

/// The engines built in, by name.
pub fn built() -> &'static [&'static str] {
    &BUILT
}

/// Whether the engine of this name is built in.
pub fn is_built(name: &str) -> bool {
    BUILT.contains(&name)
}

/// The engine that a value of `ioengine` names: what stands behind a colon is the engine's own business, and every
/// name that begins with `aio` or `linuxaio` is libaio.
pub(crate) fn named(value: &str) -> &str {
    match value {
        _ if value.starts_with("aio") || value.starts_with("linuxaio") => "libaio",
        other => other.split(':').next().unwrap_or(other),
    }
}

/// The options of all engines, one slice per set.
pub fn sets() -> [&'static [Spec]; 23] {
    [
        IoUring::specs(),
        Libaio::specs(),
        Pvsync2::specs(),
        Mmap::specs(),
        network::Net::specs(),
        network::Rdma::specs(),
        other::Cpuio::specs(),
        other::Stat::specs(),
        other::Exec::specs(),
        other::E4defrag::specs(),
        other::Mtd::specs(),
        other::Sg::specs(),
        storage::Ceph::specs(),
        storage::Rbd::specs(),
        storage::Dfs::specs(),
        storage::Gluster::specs(),
        storage::Hdfs::specs(),
        storage::Http::specs(),
        storage::Cufile::specs(),
        storage::Libblkio::specs(),
        storage::Nbd::specs(),
        storage::Nfs::specs(),
        storage::Xnvme::specs(),
    ]
}

/// Every engine that fio 3.42 has on some system.
pub const NAMES: &[Choice] = &[
    engine("sync", "read(2) and write(2), with lseek(2)."),
    engine("psync", "pread(2) and pwrite(2)."),
    engine("vsync", "readv(2) and writev(2) of neighbouring blocks."),
    engine("pvsync", "preadv(2) and pwritev(2)."),
    engine("pvsync2", "preadv2(2) and pwritev2(2)."),
    engine("libaio", "Linux asynchronous I/O (io_submit(2))."),
    engine("io_uring", "Linux io_uring."),
    engine("mmap", "Memory copied to and from a mapping of the file."),
    engine("null", "No I/O at all: measures the tool itself."),
    engine("io_uring_cmd", "NVMe commands passed through io_uring."),
    engine("posixaio", "POSIX asynchronous I/O."),
    engine("splice", "splice(2) and vmsplice(2)."),
    engine("netsplice", "splice(2) over a network connection."),
    engine("net", "A network connection."),
    engine("sg", "SCSI generic commands."),
    engine("cpuio", "Work for the CPU instead of I/O."),
    engine("e4defrag", "Moves of extents on ext4."),
    engine("falloc", "fallocate(2) in place of reads, writes and trims."),
    engine("ftruncate", "ftruncate(2) in place of writes."),
    engine("filecreate", "Creation of files."),
    engine("filestat", "stat(2) of files."),
    engine("filedelete", "Removal of files."),
    engine("dircreate", "Creation of directories."),
    engine("dirstat", "stat(2) of directories."),
    engine("dirdelete", "Removal of directories."),
    engine("exec", "A program of the user's."),
    engine("page_fault", "Page faults on a mapping."),
    engine("mtd", "Raw flash behind the MTD layer."),
    engine("external", "An engine loaded from a file."),
    engine("rbd", "Ceph block devices through librbd."),
    engine("rados", "Ceph objects through librados."),
    engine("rdma", "Remote direct memory access."),
    engine("gfapi", "GlusterFS, one request at a time."),
    engine("gfapi_async", "GlusterFS, asynchronously."),
    engine("libhdfs", "Hadoop's file system."),
    engine("http", "Objects over HTTP, WebDAV, S3 or Swift."),
    engine("nbd", "Network block devices."),
    engine("dfs", "DAOS file system."),
    engine("nfs", "NFS from user space."),
    engine("libcufile", "NVIDIA GPUDirect Storage through libcufile."),
    engine("cpp_null", "No I/O, as an example of an external engine in C++."),
    engine("libiscsi", "iSCSI from user space."),
    engine("libblkio", "Block devices through libblkio."),
    engine("xnvme", "NVMe through xNVMe."),
    engine("libzbc", "Zoned block devices through libzbc."),
    engine("libpmem", "Persistent memory through libpmem."),
    engine("dev-dax", "Persistent memory as a DAX device."),
    engine("pmemblk", "Persistent memory through libpmemblk."),
    engine("ime_psync", "DDN IME, one request at a time."),
    engine("ime_psyncv", "DDN IME, vectored."),
    engine("ime_aio", "DDN IME, asynchronously."),
    engine("solarisaio", "Solaris asynchronous I/O."),
    engine("windowsaio", "Windows asynchronous I/O."),
    engine("guasi", "Asynchronous system calls through GUASI."),
];

/// An entry of `NAMES`.
const fn engine(word: &'static str, help: &'static str) -> Choice {
    Choice { word, help }
}
