//! The columns of the device table: title, source and meaning for a benchmark.
//!
//! Invariant: the one list of columns; every output and `docs/devices.md` follow it and its order.

use fiord_host::DeviceFacts;
use fiord_report::table::{Cell, Column, Table};

/// A column and its meaning.
pub struct Fact {
    /// Its key and title.
    pub column: Column,
    /// One sentence: why it matters for a benchmark.
    pub meaning: &'static str,
    /// Its value for a device.
    pub cell: fn(&DeviceFacts) -> Cell,
}

impl Fact {
    /// Whether it is shown in the headline of a device's section instead of its table.
    pub fn is_in_headline(&self) -> bool {
        self.column.key == "name" || HEADLINE.contains(&self.column.key)
    }

    /// The key as words, without its unit: `logical block`.
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

/// The first table: what `lsblk` shows, and who uses the disk.
pub const OVERVIEW: &[&str] = &["name", "rotational", "type", "size_bytes", "transport", "model", "used_by"];

/// The second table: what lies between a job and the medium.
pub const QUEUE: &[&str] = &[
    "name",
    "logical_block_bytes",
    "physical_block_bytes",
    "queue_requests",
    "scheduler",
    "write_cache",
    "discard_bytes",
    "zoned",
];

/// The remaining columns, for comparing devices.
pub const REST: &[&str] = &[
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

/// What follows the name in the headline of a device's section.
pub const HEADLINE: &[&str] = &["type", "transport", "size_bytes", "model"];

/// Every column, in the order of CSV and JSON.
pub const DEVICE: &[Fact] = &[
    fact(
        "name",
        "NAME",
        |facts| Cell::Text(facts.device.name.clone()),
        "The kernel's name; `/dev/NAME` is the file name to give a job.",
    ),
    fact(
        "rotational",
        "ROTA",
        |facts| Cell::Flag(facts.device.queue.rotational),
        "If so, random I/O seeks; VMs may misreport it.",
    ),
    fact(
        "type",
        "TYPE",
        |facts| Cell::Text(facts.device.kind.clone()),
        "Unless `disk`, it is built on the devices below it in the chain, and its figures include them.",
    ),
    fact(
        "size_bytes",
        "SIZE",
        |facts| Cell::Bytes(facts.device.size_bytes),
        "Testing a small part flatters it: seeks are short, and caches hold most of it.",
    ),
    fact(
        "transport",
        "TRAN",
        |facts| Cell::text(facts.device.transport.clone()),
        "How it is attached; over a network (nvme-tcp, iscsi, fc) every latency includes the round trip.",
    ),
    fact(
        "model",
        "MODEL",
        |facts| Cell::text(facts.device.model.clone()),
        "What to quote with results; for a loop device its backing file, for a mapped device its name, for zram its compression.",
    ),
    fact(
        "used_by",
        "USED BY",
        |facts| Cell::List(facts.users()),
        "Their I/O affects results; writes destroy data.",
    ),
    fact(
        "read_only",
        "READ-ONLY",
        |facts| Cell::Flag(facts.device.read_only),
        "If so, only reads can be tested.",
    ),
    fact(
        "logical_block_bytes",
        "LOGICAL",
        |facts| Cell::Bytes(facts.device.queue.logical_block_bytes),
        "Direct I/O must be a multiple of this.",
    ),
    fact(
        "physical_block_bytes",
        "PHYSICAL",
        |facts| Cell::Bytes(facts.device.queue.physical_block_bytes),
        "Smaller writes make the device read first.",
    ),
    fact(
        "queue_requests",
        "QUEUE",
        |facts| Cell::count(Some(facts.device.queue.requests).filter(|requests| *requests > 0)),
        "A deeper iodepth queues in the kernel instead.",
    ),
    fact(
        "hardware_queues",
        "QUEUES",
        |facts| Cell::count(Some(facts.device.queue.hardware_queues).filter(|queues| *queues > 0)),
        "If fewer than jobs, several jobs share a queue.",
    ),
    fact(
        "device_depth",
        "DEPTH",
        |facts| Cell::count(facts.device.queue.device_depth),
        "Commands the device accepts at a time.",
    ),
    fact(
        "max_request_bytes",
        "MAX REQUEST",
        |facts| Cell::bytes(Some(facts.device.queue.max_request_bytes).filter(|bytes| *bytes > 0)),
        "Larger blocks are split.",
    ),
    fact(
        "scheduler",
        "SCHEDULER",
        |facts| Cell::text(facts.device.queue.scheduler.clone()),
        "May reorder and delay; none adds nothing.",
    ),
    fact(
        "write_cache",
        "CACHE",
        |facts| {
            let cache = if facts.device.queue.write_back_cache { "write back" } else { "write through" };
            Cell::Text(cache.to_owned())
        },
        "Write back: durable only after an fsync.",
    ),
    fact(
        "fua",
        "FUA",
        |facts| Cell::Flag(facts.device.queue.forced_unit_access),
        "Without it, a durable write flushes the cache.",
    ),
    fact(
        "read_ahead_bytes",
        "READ-AHEAD",
        |facts| Cell::Bytes(facts.device.queue.read_ahead_bytes),
        "Buffered sequential reads prefetch this much.",
    ),
    fact(
        "polling",
        "POLLING",
        |facts| Cell::Flag(facts.device.queue.polls),
        "Whether hipri can poll for completions.",
    ),
    fact(
        "discard_bytes",
        "DISCARD",
        |facts| {
            let unit = facts.device.queue.discard_granularity_bytes;
            Cell::bytes(Some(unit).filter(|unit| *unit > 0 && facts.device.queue.discard_max_bytes > 0))
        },
        "The unit of trims; without it, no trim support.",
    ),
    fact(
        "zoned",
        "ZONED",
        |facts| Cell::text(Some(facts.device.queue.zoned.clone()).filter(|zoned| !zoned.is_empty())),
        "Host-managed zones take sequential writes only.",
    ),
    fact(
        "numa_node",
        "NUMA",
        |facts| Cell::count(facts.device.numa_node.map(u64::from)),
        "Jobs on other NUMA nodes have higher latency.",
    ),
];

/// A row for each device, in all columns.
pub fn device_table<'f>(devices: impl Iterator<Item = &'f DeviceFacts>) -> Table {
    let mut table = Table::new(DEVICE.iter().map(|fact| fact.column));
    table.rows = devices.map(|facts| DEVICE.iter().map(|fact| (fact.cell)(facts)).collect()).collect();
    table
}
