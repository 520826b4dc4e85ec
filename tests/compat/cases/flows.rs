//! Jobs that are held in proportion to each other: how long each takes for its I/Os.
//!
//! Invariant: all jobs end by their size, and only lower limits of times are checked, so that a busy machine changes
//! no result.

use fiord_compat::compare::{counts, success, verdict};
use fiord_compat::verdict::Verdict;
use fiord_compat::{Case, Ran, case};

/// Jobs of one flow: their weights, and their options. The first has a rate, and each as many I/Os as its weight
/// times 50, so that the flow alone keeps the others from ending before the first.
const PACED: &[(&str, &[u64], &str)] = &[
    ("8-to-1", &[8, 1], "--ioengine=null"),
    ("8-to-1-threads", &[8, 1], "--thread --ioengine=null"),
    ("1-to-8", &[1, 8], "--ioengine=null"),
    ("3-to-2-to-1", &[3, 2, 1], "--ioengine=null"),
    ("sleep", &[8, 1], "--ioengine=null --flow_sleep=100"),
    ("psync", &[4, 1], "--ioengine=psync"),
    ("mmap", &[1, 1], "--ioengine=mmap"),
    ("libaio", &[1, 5], "--ioengine=libaio --iodepth=8"),
    ("io_uring", &[1, 5], "--ioengine=io_uring --iodepth=8"),
    ("io_uring-batches", &[2, 1], "--ioengine=io_uring --iodepth=8 --iodepth_batch=4"),
    ("writes", &[3, 1], "--ioengine=null --rw=randwrite"),
    ("numbered", &[3, 1], "--ioengine=null --flow_id=9"),
];

/// Jobs that end by their size.
const SIZED: &[(&str, &str)] = &[
    ("ends-before-the-other", "--name=a --size=64k --flow=1 --name=b --size=640k --flow=1"),
    ("alone", "--name=a --size=1m --flow=3"),
    ("no-weight", "--name=a --size=64k --flow=0 --name=b --size=640k --flow=1"),
    ("one-outside", "--name=a --size=1m --name=b --size=64k --flow=1"),
    ("other-flow", "--name=a --size=1m --flow=1 --flow_id=1 --name=b --size=64k --flow=1 --flow_id=2"),
];

/// Values that are accepted or refused by both.
const VALUES: &[&str] =
    &["--flow=0", "--flow=1000", "--flow=1001", "--flow=x", "--flow_id=7", "--flow_sleep=5", "--flow_id=x"];

/// Whether no job ended before the time that the rate of the first allows, less what a job may be ahead.
fn none_ends_early(ran: &Ran, least_ms: u64) -> Verdict {
    let times: Vec<u64> = ran.jobs()?.iter().filter_map(|job| job["job_runtime"].as_u64()).collect();
    match times.iter().all(|ms| *ms >= least_ms) {
        true => Ok(()),
        false => Err(format!("the jobs ended after {times:?} ms, none is due before {least_ms}")),
    }
}

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let paced = PACED.iter().map(|(name, weights, args)| {
        let mut line =
            format!("--output-format=json --bs=4k --rw=randread --filename=given --size=8m {args}");
        for (number, weight) in weights.iter().enumerate() {
            let rate = if number == 0 { format!("--rate_iops={}", weight * 250) } else { String::new() };
            line += &format!(" --name=j{number} --flow={weight} --io_size={}k {rate}", weight * 200);
        }
        case(format!("flows/{name}"), line)
            .bytes("given", 8 << 20)
            .premise(|pair| none_ends_early(&pair.fio, 170).map_err(|why| format!("fio: {why}")))
            .check(success)
            .check(counts)
            .check(|pair| none_ends_early(&pair.fiord, 170).map_err(|why| format!("fiord: {why}")))
    });
    let sized = SIZED.iter().map(|(name, args)| {
        let args = format!("--output-format=json --bs=4k --ioengine=null {args}");
        case(format!("flows/{name}"), args).check(success).check(counts)
    });
    let values = VALUES.iter().map(|args| {
        case(format!("flows/value{args}"), format!("--parse-only --name=a --size=1m {args}")).check(verdict)
    });
    paced.chain(sized).chain(values).collect()
}
