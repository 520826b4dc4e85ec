//! The columns of devices: what each is called, what it is taken from, and what it means for a benchmark.
//!
//! Invariant: the one list of them; every output and `docs/devices.md` is made from it, in its order.

use fiord_host::DeviceFacts;
use fiord_report::table::{Cell, Column};

/// A column, and what it stands for.
pub(super) struct Fact {
    pub column: Column,
    /// One sentence: why it matters before a benchmark.
    pub meaning: &'static str,
    pub cell: fn(&DeviceFacts) -> Cell,
}

impl Fact {
    /// Whether it stands in the first line of a device's section instead of below.
    pub fn is_in_headline(&self) -> bool {
        self.column.key == "name" || HEADLINE.contains(&self.column.key)
    }

    /// The key in words, without its unit: `logical block`.
    pub fn name(&self) -> String {
        self.column.key.trim_end_matches("_bytes").replace('_', " ")
    }
}

const fn fact(
    key: &'static str,
    title: &'static str,
    cell: fn(&DeviceFacts) -> Cell,
    meaning: &'static str,
) -> Fact {
    Fact { column: Column::new(key, title), meaning, cell }
}

/// The table to look at first: what `lsblk` shows, and who uses the disk.
pub(super) const OVERVIEW: &[&str] =
    &["name", "rotational", "type", "size_bytes", "transport", "model", "used_by"];

/// The table of what comes between a job and the medium.
pub(super) const QUEUE: &[&str] = &[
    "name",
    "logical_block_bytes",
    "physical_block_bytes",
    "queue_requests",
    "scheduler",
    "write_cache",
    "discard_bytes",
    "zoned",
];

/// The rest, for when several devices are compared.
pub(super) const REST: &[&str] = &[
    "name",
    "read_only",
    "hardware_queues",
    "device_depth",
    "max_request_bytes",
    "fua",
    "read_ahead_bytes",
    "polling",
    "numa_node",
];

/// What stands, behind its name, in the first line of a device's own section.
pub(super) const HEADLINE: &[&str] = &["type", "transport", "size_bytes", "model"];

/// Every column, in the order of CSV and JSON.
pub(super) const DEVICE: &[Fact] = &[
    fact(
        "name",
        "NAME",
        |device| Cell::Text(device.name.clone()),
        "The kernel's name; `/dev/NAME` is the file name to give a job.",
    ),
    fact(
        "rotational",
        "ROTA",
        |device| Cell::Flag(device.queue.rotational),
        "If so, random I/O waits for seeks; VMs may err.",
    ),
    fact(
        "type",
        "TYPE",
        |device| Cell::Text(device.kind.clone()),
        "Unless a disk, it is made of what stands below it in the chain, and its figures include that.",
    ),
    fact(
        "size_bytes",
        "SIZE",
        |device| Cell::Bytes(device.size_bytes),
        "A test on a small part of it flatters: seeks are short, caches hold much.",
    ),
    fact(
        "transport",
        "TRAN",
        |device| Cell::text(device.transport.clone()),
        "How it is reached; over a network (nvme-tcp, iscsi, fc) every latency includes the way there.",
    ),
    fact(
        "model",
        "MODEL",
        |device| Cell::text(device.model.clone()),
        "What to quote beside the figures; of a loop device the file behind it, of a mapped one its name, of a zram its compression.",
    ),
    fact(
        "used_by",
        "USED BY",
        |device| Cell::List(device.users()),
        "Others' I/O disturbs; writes destroy their data.",
    ),
    fact("read_only", "READ-ONLY", |device| Cell::Flag(device.read_only), "If so, only reads can be tested."),
    fact(
        "logical_block_bytes",
        "LOGICAL",
        |device| Cell::Bytes(device.queue.logical_block_bytes),
        "Direct I/O comes in multiples of this.",
    ),
    fact(
        "physical_block_bytes",
        "PHYSICAL",
        |device| Cell::Bytes(device.queue.physical_block_bytes),
        "A smaller write makes the device read first.",
    ),
    fact(
        "queue_requests",
        "QUEUE",
        |device| Cell::count(Some(device.queue.requests).filter(|requests| *requests > 0)),
        "A deeper iodepth waits in the kernel instead.",
    ),
    fact(
        "hardware_queues",
        "QUEUES",
        |device| Cell::count(Some(device.queue.hardware_queues).filter(|queues| *queues > 0)),
        "With fewer than there are jobs, jobs share one.",
    ),
    fact(
        "device_depth",
        "DEPTH",
        |device| Cell::count(device.queue.device_depth),
        "Commands the device itself takes at a time.",
    ),
    fact(
        "max_request_bytes",
        "MAX REQUEST",
        |device| Cell::bytes(Some(device.queue.max_request_bytes).filter(|bytes| *bytes > 0)),
        "Larger blocks reach the device in pieces.",
    ),
    fact(
        "scheduler",
        "SCHEDULER",
        |device| Cell::text(device.queue.scheduler.clone()),
        "May reorder and delay; none is the bare disk.",
    ),
    fact(
        "write_cache",
        "CACHE",
        |device| {
            let cache = if device.queue.write_back_cache { "write back" } else { "write through" };
            Cell::Text(cache.to_owned())
        },
        "Write back: durable only after an fsync.",
    ),
    fact(
        "fua",
        "FUA",
        |device| Cell::Flag(device.queue.forced_unit_access),
        "Without it, a durable write flushes the cache.",
    ),
    fact(
        "read_ahead_bytes",
        "READ-AHEAD",
        |device| Cell::Bytes(device.queue.read_ahead_bytes),
        "Buffered sequential reads get this much ahead.",
    ),
    fact(
        "polling",
        "POLLING",
        |device| Cell::Flag(device.queue.polls),
        "Whether hipri can poll for completions.",
    ),
    fact(
        "discard_bytes",
        "DISCARD",
        |device| {
            let unit = device.queue.discard_granularity_bytes;
            Cell::bytes(Some(unit).filter(|unit| *unit > 0 && device.queue.discard_max_bytes > 0))
        },
        "The unit of trims; without one there are none.",
    ),
    fact(
        "zoned",
        "ZONED",
        |device| Cell::text(Some(device.queue.zoned.clone()).filter(|zoned| !zoned.is_empty())),
        "Host-managed zones take sequential writes only.",
    ),
    fact(
        "numa_node",
        "NUMA",
        |device| Cell::count(device.numa_node.map(u64::from)),
        "Jobs on another node's processors wait longer.",
    ),
];
