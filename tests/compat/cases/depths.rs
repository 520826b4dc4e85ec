//! Queue depths, and the number of I/Os that each call submitted and completed (C27).
//!
//! Invariant: the figures compared depend on the order in which a loop queues, submits and reaps, not on the speed of
//! the machine.

use fiord_compat::compare::{success, table_peak, table_shares};
use fiord_compat::{Case, case};

/// Where I/Os come from: the page cache, or the disk.
const PLACES: &[(&str, &str)] = &[
    ("io_uring", "--ioengine=io_uring"),
    ("io_uring-direct", "--ioengine=io_uring --direct=1"),
    ("libaio", "--ioengine=libaio"),
    ("libaio-direct", "--ioengine=libaio --direct=1"),
    ("null", "--ioengine=null"),
    ("psync", "--ioengine=psync"),
];

/// Batches and marks for which both programs submit and reap alike.
const BATCHES: &[(&str, &str)] = &[
    ("low-1", "--iodepth_low=1"),
    ("low-8", "--iodepth_low=8"),
    ("batch-4-low-8", "--iodepth_batch=4 --iodepth_low=8"),
    ("complete-4", "--iodepth_batch_complete_min=4"),
    ("complete-1-to-1", "--iodepth_batch_complete_max=1"),
    ("batch-8-complete-8", "--iodepth_batch=8 --iodepth_batch_complete_min=8"),
];

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let job = |name: String, args: String| {
        let args = format!("--output-format=json --name=a --rw=randread --bs=4k --size=8m {args}");
        case(format!("depths/{name}"), args).check(success)
    };
    let mut cases = Vec::new();
    // divergence: no `iodepth_batch_complete_max`
    for (place, engine) in PLACES {
        for depth in [1, 4, 16, 32, 64, 128] {
            let case = job(format!("{place}/{depth}"), format!("{engine} --iodepth={depth}"));
            let case = case.check(|pair| table_shares("iodepth_level", pair));
            let case = case.check(|pair| table_peak("iodepth_submit", pair));
            cases.push(case.check(|pair| table_peak("iodepth_complete", pair)));
        }
    }
    for (place, engine) in PLACES.iter().filter(|(place, _)| *place != "psync") {
        for (batch, args) in BATCHES {
            let case = job(format!("{place}/{batch}"), format!("{engine} --iodepth=32 {args}"));
            let case = case.check(|pair| table_shares("iodepth_level", pair));
            cases.push(case.check(|pair| table_peak("iodepth_complete", pair)));
        }
        // fio batches only the first filling of the queue (docs/divergences.md).
        let batched = job(format!("{place}/batch-8"), format!("{engine} --iodepth=32 --iodepth_batch=8"));
        cases.push(batched.check(|pair| table_shares("iodepth_level", pair)));
    }
    for (place, engine) in
        PLACES.iter().filter(|(_, engine)| engine.contains("libaio") || engine.contains("uring"))
    {
        for mode in ["randread", "randwrite", "randrw"] {
            let overlapping = "--size=4k --io_size=1m --norandommap --iodepth=8 --serialize_overlap=1";
            let name = format!("{place}/serialize_overlap-{mode}");
            let case = job(name, format!("{engine} {overlapping} --rw={mode}"));
            cases.push(case.check(|pair| table_shares("iodepth_level", pair)));
        }
    }
    cases
}
