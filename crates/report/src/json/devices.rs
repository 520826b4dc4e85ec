//! The devices under a run's files in JSON: their properties, and their counters at both ends of the run. fio has no
//! such list.
//!
//! Invariant: keys are lower case and end in their unit, as in all documents of fiord's own, and every field of a device
//! has one.

use fiord_device::{CounterSample, Device, DeviceUse, DiskCounters, RequestQueue};

use super::Writer;
use crate::path;

pub(super) fn write(json: &mut Writer, used: &DeviceUse) {
    let DeviceUse { device, holds_files, below, start, end, elapsed_ns, samples } = used;
    describe(json, device);
    json.boolean("holds_files", *holds_files);
    json.strings("below", below);
    json.integer("elapsed_ns", elapsed_ns);
    json.object("start", |json| counters(json, start));
    json.object("end", |json| counters(json, end));
    if !samples.is_empty() {
        json.list("samples", |json| {
            samples.iter().for_each(|sample| json.item(|json| self::sample(json, sample)));
        });
    }
}

fn describe(json: &mut Writer, device: &Device) {
    let Device { name, kind, transport, model, backing_file, size_bytes, read_only, numa_node, queue } =
        device;
    json.string("name", name);
    json.string("type", kind);
    text(json, "transport", transport.as_deref());
    text(json, "model", model.as_deref());
    text(json, "backing_file", backing_file.as_ref().map(path::text).as_deref());
    json.integer("size_bytes", size_bytes);
    json.boolean("read_only", *read_only);
    number(json, "numa_node", numa_node.map(u64::from));
    json.object("queue", |json| describe_queue(json, queue));
}

fn describe_queue(json: &mut Writer, queue: &RequestQueue) {
    let RequestQueue {
        logical_block_bytes,
        physical_block_bytes,
        minimum_io_bytes,
        optimal_io_bytes,
        max_request_bytes,
        dma_alignment_bytes,
        discard_granularity_bytes,
        discard_max_bytes,
        rotational,
        requests,
        hardware_queues,
        device_depth,
        read_ahead_bytes,
        scheduler,
        schedulers,
        write_back_cache,
        forced_unit_access,
        zoned,
        polls,
    } = queue;
    json.integer("logical_block_bytes", logical_block_bytes);
    json.integer("physical_block_bytes", physical_block_bytes);
    json.integer("minimum_io_bytes", minimum_io_bytes);
    json.integer("optimal_io_bytes", optimal_io_bytes);
    json.integer("max_request_bytes", max_request_bytes);
    number(json, "dma_alignment_bytes", *dma_alignment_bytes);
    json.integer("discard_granularity_bytes", discard_granularity_bytes);
    json.integer("discard_max_bytes", discard_max_bytes);
    json.boolean("rotational", *rotational);
    json.integer("requests", requests);
    json.integer("hardware_queues", hardware_queues);
    number(json, "device_depth", *device_depth);
    json.integer("read_ahead_bytes", read_ahead_bytes);
    text(json, "scheduler", scheduler.as_deref());
    json.strings("schedulers", schedulers);
    json.boolean("write_back_cache", *write_back_cache);
    json.boolean("forced_unit_access", *forced_unit_access);
    json.string("zoned", zoned);
    json.boolean("polls", *polls);
}

fn counters(json: &mut Writer, counters: &DiskCounters) {
    counters.named().for_each(|(name, count)| json.integer(name, count));
}

/// Only the counters that are looked at over time: a long run has many samples.
fn sample(json: &mut Writer, sample: &CounterSample) {
    let CounterSample { elapsed_ns, counters } = sample;
    json.integer("elapsed_ns", elapsed_ns);
    json.integer("read_ios", counters.read_ios);
    json.integer("read_sectors", counters.read_sectors);
    json.integer("write_ios", counters.write_ios);
    json.integer("write_sectors", counters.write_sectors);
    json.integer("in_flight", counters.in_flight);
    json.integer("busy_ms", counters.busy_ms);
}

fn text(json: &mut Writer, key: &str, text: Option<&str>) {
    match text {
        Some(text) => json.string(key, text),
        None => json.null(key),
    }
}

fn number(json: &mut Writer, key: &str, number: Option<u64>) {
    match number {
        Some(number) => json.integer(key, number),
        None => json.null(key),
    }
}
