//! The devices under a run's files in JSON: their properties, and their counters at both ends of the run. fio has no
//! such list.
//!
//! Invariant: keys are lower case and end in their unit, as in all documents of fiord's own, and every field of a device
//! has one.

use fiord_device::nvme_power::{PowerState, PowerStates};
use fiord_device::{CounterSample, Device, DeviceUse, DiskCounters, RequestQueue};

use super::Writer;
use crate::path;

pub(super) fn write(json: &mut Writer, used: &DeviceUse) {
    let DeviceUse {
        device,
        holds_files,
        below,
        start,
        end,
        elapsed_ns,
        lifetime_written_bytes,
        power,
        samples,
    } = used;
    describe(json, device);
    json.boolean("holds_files", *holds_files);
    json.strings("below", below);
    json.integer("elapsed_ns", elapsed_ns);
    json.object("start", |json| counters(json, start));
    json.object("end", |json| counters(json, end));
    if let Some(bytes) = lifetime_written_bytes {
        json.integer("lifetime_written_bytes", bytes);
    }
    if !samples.is_empty() {
        json.list("samples", |json| {
            samples.iter().for_each(|sample| json.item(|json| self::sample(json, sample)));
        });
    }
    if let Some(PowerStates { start, end }) = power {
        json.object("power_states", |json| {
            json.object("start", |json| power_state(json, start));
            json.object("end", |json| power_state(json, end));
        });
    }
}

fn power_state(json: &mut Writer, state: &PowerState) {
    let PowerState { number, does_io, max_uw, idle_uw, active_uw } = state;
    json.integer("state", number);
    json.boolean("does_io", *does_io);
    for (key, power_uw) in [("max_watts", max_uw), ("idle_watts", idle_uw), ("active_watts", active_uw)] {
        match power_uw {
            Some(power_uw) => json.number(key, *power_uw as f64 / 1e6),
            None => json.null(key),
        }
    }
}

/// Writes every field of a structure under its own name, with the function beside it; a field that is left out does not
/// compile.
macro_rules! fields {
    ($json:ident, $value:expr, $type:ident { $($name:ident: $write:ident),+ $(,)? }) => {
        let $type { $($name),+ } = $value;
        $($write($json, stringify!($name), $name);)+
    };
}

fn describe(json: &mut Writer, device: &Device) {
    let Device { name, kind, transport, model, backing_file, size_bytes, read_only, numa_node, queue } =
        device;
    json.string("name", name);
    json.string("type", kind);
    text(json, "transport", transport);
    text(json, "model", model);
    text(json, "backing_file", &backing_file.as_ref().map(path::text));
    json.integer("size_bytes", size_bytes);
    json.boolean("read_only", *read_only);
    number(json, "numa_node", &numa_node.map(u64::from));
    json.object("queue", |json| describe_queue(json, queue));
}

fn describe_queue(json: &mut Writer, queue: &RequestQueue) {
    fields!(
        json,
        queue,
        RequestQueue {
            logical_block_bytes: integer,
            physical_block_bytes: integer,
            minimum_io_bytes: integer,
            optimal_io_bytes: integer,
            max_request_bytes: integer,
            dma_alignment_bytes: number,
            discard_granularity_bytes: integer,
            discard_max_bytes: integer,
            rotational: boolean,
            requests: integer,
            hardware_queues: integer,
            device_depth: number,
            read_ahead_bytes: integer,
            scheduler: text,
            schedulers: strings,
            write_back_cache: boolean,
            forced_unit_access: boolean,
            zoned: string,
            polls: boolean,
        }
    );
}

fn counters(json: &mut Writer, counters: &DiskCounters) {
    counters.named().for_each(|(name, count)| json.integer(name, count));
}

/// Only the counters that are looked at over time: a long run has many samples.
fn sample(json: &mut Writer, sample: &CounterSample) {
    let CounterSample { elapsed_ns, counters, temperature_celsius } = sample;
    json.integer("elapsed_ns", elapsed_ns);
    json.integer("read_ios", counters.read_ios);
    json.integer("read_sectors", counters.read_sectors);
    json.integer("write_ios", counters.write_ios);
    json.integer("write_sectors", counters.write_sectors);
    json.integer("in_flight", counters.in_flight);
    json.integer("busy_ms", counters.busy_ms);
    if let Some(celsius) = temperature_celsius {
        json.integer("temperature_celsius", celsius);
    }
}

fn integer(json: &mut Writer, key: &str, number: &u64) {
    json.integer(key, number);
}

fn boolean(json: &mut Writer, key: &str, value: &bool) {
    json.boolean(key, *value);
}

fn string(json: &mut Writer, key: &str, text: &str) {
    json.string(key, text);
}

fn strings(json: &mut Writer, key: &str, texts: &[String]) {
    json.strings(key, texts);
}

fn text(json: &mut Writer, key: &str, text: &Option<impl AsRef<str>>) {
    match text {
        Some(text) => json.string(key, text.as_ref()),
        None => json.null(key),
    }
}

fn number(json: &mut Writer, key: &str, number: &Option<u64>) {
    match number {
        Some(number) => json.integer(key, number),
        None => json.null(key),
    }
}
