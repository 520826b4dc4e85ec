//! The properties of a block device.
//!
//! Invariant: nothing here changes during a run.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

/// A block device: the properties that affect how a benchmark's figures on it are read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// The kernel's name, `nvme0n1`.
    pub name: String,
    /// Its type, as `lsblk` names it: `disk`, `part`, `loop`, `lvm`, `crypt`, `raid1`, `rom`; and `zram`, `ram`,
    /// `null`, `nbd`, `rbd`, `drbd`, `pmem`.
    pub kind: String,
    /// Its transport, if the kernel's device tree shows it: `nvme`, `nvme-tcp`, `sata`, `virtio`, `usb`.
    pub transport: Option<String>,
    /// Its model name; of a mapped device its own name, of a loop device its backing file, of a zram its compression.
    pub model: Option<String>,
    /// The path of the file behind a loop device; not a `PathBuf`, which is stored only if it is UTF-8.
    pub backing_file: Option<OsString>,
    /// Size in bytes; 0 without a medium (an unused loop device, an empty card reader).
    pub size_bytes: u64,
    /// Whether it is read-only.
    pub read_only: bool,
    /// Its NUMA node; `None` if it has none or the machine has only one.
    pub numa_node: Option<u32>,
    /// The queue of the disk.
    pub queue: RequestQueue,
}

/// The properties of a device's request queue, in bytes unless noted otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestQueue {
    /// The unit in which the device is addressed.
    pub logical_block_bytes: u64,
    /// The smallest write that needs no read-modify-write.
    pub physical_block_bytes: u64,
    /// The smallest I/O without a penalty (`minimum_io_size`).
    pub minimum_io_bytes: u64,
    /// Its preferred I/O size (`optimal_io_size`); 0 for no preference.
    pub optimal_io_bytes: u64,
    /// The largest request the kernel sends; larger ones are split.
    pub max_request_bytes: u64,
    /// Alignment of buffers for direct I/O, where the kernel reports it (6.0 and later).
    pub dma_alignment_bytes: Option<u64>,
    /// The unit of discards; 0 if the device does not support them.
    pub discard_granularity_bytes: u64,
    /// The largest discard; 0 if the device does not support them.
    pub discard_max_bytes: u64,
    /// Whether the device reports itself as rotational.
    pub rotational: bool,
    /// Requests the queue holds; 0 if I/O bypasses it.
    pub requests: u64,
    /// Hardware queues that processors can fill concurrently; 0 if I/O bypasses them.
    pub hardware_queues: u64,
    /// The device's own queue depth, where its driver reports it (SCSI, SATA).
    pub device_depth: Option<u64>,
    /// Read-ahead of sequential buffered reads.
    pub read_ahead_bytes: u64,
    /// The active scheduler.
    pub scheduler: Option<String>,
    /// All available schedulers.
    pub schedulers: Vec<String>,
    /// Whether writes may stay in a volatile cache (`write back`).
    pub write_back_cache: bool,
    /// Whether a single write can be made durable (FUA); otherwise that costs a flush of the whole cache.
    pub forced_unit_access: bool,
    /// The zone model: `none`, `host-aware`, `host-managed`.
    pub zoned: String,
    /// Whether polled completions work.
    pub polls: bool,
}
