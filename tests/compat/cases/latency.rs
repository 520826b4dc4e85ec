//! The search for a queue depth that meets a latency: the depth found, when the job ends, and what is reported.
//!
//! Invariant: the target is met at every depth, or at none, so that the depth does not depend on the machine.

use fiord_compat::compare::{equal, exit, json_shape, normal, success, terse};
use fiord_compat::verdict::Verdict;
use fiord_compat::{Case, Pair, Ran, case};
use serde_json::Value;

/// Depths to find.
const DEPTHS: &[u32] = &[1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 32, 64];

/// Jobs that are searched with the target of their options.
const RUNS: &[(&str, &str)] = &[
    ("met-libaio", "--ioengine=libaio --iodepth=8 --latency_target=10s --latency_percentile=99"),
    ("met-io_uring", "--ioengine=io_uring --iodepth=8 --latency_target=10s --latency_percentile=99"),
    ("met-psync", "--ioengine=psync --latency_target=10s --latency_percentile=99"),
    ("met-by-all", "--ioengine=libaio --iodepth=4 --latency_target=100s"),
    ("met-by-none-needed", "--ioengine=libaio --iodepth=5 --latency_target=1us --latency_percentile=0"),
    (
        "met-with-batches",
        "--ioengine=libaio --iodepth=8 --iodepth_batch=4 --latency_target=9s --latency_percentile=9",
    ),
    (
        "met-writes",
        "--ioengine=libaio --iodepth=3 --rw=randwrite --latency_target=9s --latency_percentile=50",
    ),
    ("met-mix", "--ioengine=libaio --iodepth=3 --rw=randrw --latency_target=9s --latency_percentile=50"),
    (
        "missed-libaio",
        "--ioengine=libaio --direct=1 --iodepth=8 --latency_target=1us --latency_percentile=99",
    ),
    (
        "missed-io_uring",
        "--ioengine=io_uring --direct=1 --iodepth=8 --latency_target=1us --latency_percentile=99",
    ),
    ("missed-psync", "--ioengine=psync --direct=1 --latency_target=1us --latency_percentile=99"),
    (
        "missed-goes-on",
        "--ioengine=libaio --direct=1 --iodepth=8 --latency_target=1us --latency_percentile=99 --latency_run=1",
    ),
    ("goes-on", "--ioengine=libaio --iodepth=4 --latency_target=10s --latency_percentile=99 --latency_run=1"),
    (
        "other-jobs",
        "--ioengine=libaio --iodepth=4 --latency_target=10s --latency_percentile=99 --name=b --latency_target=0 --latency_window=0",
    ),
];

/// Values that are accepted or refused by both.
const VALUES: &[&str] = &[
    "--latency_target=50",
    "--latency_target=50us",
    "--latency_target=5ms --latency_window=1s",
    "--latency_target=5ms --latency_window=5",
    "--latency_target=5ms --latency_percentile=99.99",
    "--latency_target=5ms --latency_percentile=101",
    "--latency_target=5ms --latency_percentile=x",
    "--latency_target=5ms --latency_run=1",
    "--latency_target=5ms --latency_run=2",
    "--latency_target=x",
    "--latency_window=5s",
    "--latency_percentile=50",
    "--latency_run=1",
    "--max_latency=5ms --latency_target=1ms",
];

/// The figures of the search.
fn figures(ran: &Ran) -> Result<Vec<Vec<Value>>, String> {
    let keys = ["error", "latency_depth", "latency_target", "latency_percentile", "latency_window"];
    Ok(ran.jobs()?.iter().map(|job| keys.iter().map(|key| job[*key].clone()).collect()).collect())
}

fn the_same_depth(pair: &Pair) -> Verdict {
    equal("error, depth, target, share and window", figures(&pair.fio)?, figures(&pair.fiord)?)
}

/// Whether each job ended before its run time; 3 seconds in every case.
fn ends_as_early(pair: &Pair) -> Verdict {
    let early = |ran: &Ran| -> Result<Vec<bool>, String> {
        Ok(ran.jobs()?.iter().map(|job| job["job_runtime"].as_u64().unwrap_or(0) < 2900).collect())
    };
    equal("jobs that ended early", early(&pair.fio)?, early(&pair.fiord)?)
}

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let job = |name: &str, format: &str, args: &str| {
        let line = format!(
            "{format} --rw=randread --size=1m --bs=4k --filename=given --time_based --runtime=3 \
             --latency_window=50ms --name=a {args}"
        );
        case(format!("latency/{name}"), line).bytes("given", 1 << 20)
    };
    let json = "--output-format=json";
    let mut cases: Vec<Case> = Vec::new();
    cases.extend(DEPTHS.iter().map(|depth| {
        let args =
            format!("--ioengine=libaio --iodepth={depth} --latency_target=10s --latency_percentile=90");
        job(&format!("depth-{depth}"), json, &args).check(success).check(the_same_depth).check(ends_as_early)
    }));
    cases.extend(RUNS.iter().map(|(name, args)| {
        job(name, json, args).check(success).check(json_shape).check(the_same_depth).check(ends_as_early)
    }));
    // divergence: `latency_target` with `latency_percentile=100`
    // With every I/O below the target, the first that is not ends the job.
    for engine in ["libaio", "io_uring", "psync"] {
        let args = format!("--ioengine={engine} --direct=1 --latency_target=1us");
        let case = job(&format!("exceeded-{engine}"), json, &args);
        cases.push(case.check(exit).check(the_same_depth));
    }
    let met = RUNS[0].1;
    cases.push(job("met-text", "", met).check(success).check(normal));
    cases.push(job("met-json_bins", "--output-format=json+", met).check(success).check(json_shape));
    for version in [3, 4, 5] {
        let format = format!("--minimal --terse-version={version}");
        cases.push(job(&format!("met-terse-{version}"), &format, met).check(success).check(terse));
    }
    cases.extend(VALUES.iter().map(|options| {
        let name = options.replace("--", "").replace(['=', ' ', '.'], "_");
        case(format!("latency/value-{name}"), format!("--parse-only --name=a --size=1m {options}"))
            .check(exit)
    }));
    cases
}
