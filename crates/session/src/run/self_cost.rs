//! fiord's own cost per I/O on this machine.
//!
//! Invariant: measured jobs are planned from options like any others, so they have every default of a run; nothing but
//! memory is touched.

use std::hint::black_box;

use fiord_checksum::Checksum;
use fiord_engine::registry;
use fiord_findings::OwnCost;
use fiord_host::Machine;
use fiord_options::cli;
use fiord_plan::Job;
use fiord_plan::facts::{Facts, RunSettings};
use fiord_stats::Capped;
use fiord_sys::clock;
use fiord_worker::{IoCost, SelfCost};

use super::environment;

/// What all measured jobs have in common.
const JOB: [&str; 4] = ["--name=self", "--ioengine=null", "--bs=4k", "--size=1g"];

/// Length of the block whose checksums are measured.
const BLOCK_BYTES: usize = 4096;
/// How often that is repeated, at most and at least; the best counts. After this time it is not repeated again.
const REPEATS_MAX: usize = 16;
const REPEATS_MIN: usize = 3;
const REPEATS_NS: u64 = 1_000_000;

/// Measures the cost in less than 50 ms.
///
/// # Errors
/// Why it cannot be measured.
pub fn measure(machine: &Machine) -> Result<SelfCost, String> {
    let job = job(&["--rw=randread", "--iodepth=32"], machine)?;
    fiord_worker::self_cost(&job).map_err(|failure| failure.to_string())
}

/// Measures every part of the cost, in less than half a second; in a build with optimisation, in less than 0.1 s.
///
/// # Errors
/// Why it cannot be measured.
pub(crate) fn calibrate(machine: &Machine) -> Result<OwnCost, String> {
    let cost = |options: &[&str]| -> Result<IoCost, String> {
        fiord_worker::cost_per_io(&job(options, machine)?).map_err(|failure| failure.to_string())
    };
    let IoCost { ns: sync_ns, own_ns: sync_own_ns } = cost(&["--rw=read"])?;
    let IoCost { ns: queued_ns, own_ns: queued_own_ns } = cost(&["--rw=read", "--iodepth=32"])?;
    let more_ns = |options: &[&str], than_ns: f64| Ok::<f64, String>((cost(options)?.ns - than_ns).max(0.0));
    let write_ns = cost(&["--rw=write"])?.ns;
    let kib = BLOCK_BYTES as f64 / 1024.0;
    Ok(OwnCost {
        sync_ns,
        queued_ns,
        sync_own_ns,
        queued_own_ns,
        random_ns: more_ns(&["--rw=randread"], sync_ns)?,
        write_ns: (write_ns - sync_ns).max(0.0),
        log_ns: more_ns(&["--rw=read", "--write_lat_log=self"], sync_ns)?,
        // Fewer, because each of them takes as long as a hundred others.
        fill_ns_per_kib: more_ns(&["--rw=write", "--refill_buffers=1", "--number_ios=512"], write_ns)? / kib,
        clock_ns: measure(machine)?.clock_read_ns,
        verify_ns_per_kib: Checksum::ALL
            .map(|method| (method.name().to_string(), checksum_ns(method) / kib))
            .to_vec(),
    })
}

/// The checksum of one block, in nanoseconds.
fn checksum_ns(checksum: Checksum) -> f64 {
    let block: Vec<u8> = (0..BLOCK_BYTES).map(|index| u8::capped(index % 251)).collect();
    black_box(checksum.of(&block));
    let first_ns = clock::thread_cpu_ns();
    let mut best_ns = u64::MAX;
    for number in 0..REPEATS_MAX {
        let began_ns = clock::thread_cpu_ns();
        if number >= REPEATS_MIN && began_ns - first_ns > REPEATS_NS {
            break;
        }
        black_box(checksum.of(black_box(&block)));
        best_ns = best_ns.min(clock::thread_cpu_ns() - began_ns);
    }
    best_ns as f64
}

/// A job on the null engine with these options.
fn job(options: &[&str], machine: &Machine) -> Result<Job, String> {
    let nothing = |problems: Vec<fiord_options::Problem>| {
        problems.first().map_or("no job to measure".to_string(), |problem| problem.message())
    };
    let line: Vec<&str> = JOB.iter().chain(options).copied().collect();
    let parsed = cli::read(&line, &environment::of(machine)).map_err(nothing)?;
    let facts = Facts { engines: registry::ENGINES, ..Facts::default() };
    let planned = fiord_plan::build(&parsed.sections, &parsed.waiting, &facts, &RunSettings::default());
    let (plan, _) = planned.map_err(|refusal| nothing(refusal.problems))?;
    plan.jobs.into_iter().next().ok_or_else(|| nothing(Vec::new()))
}
