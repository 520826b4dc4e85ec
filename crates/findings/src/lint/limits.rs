//! Limits that the host sets on this process and on the queues of devices.
//!
//! Invariant: a limit is a finding only if the job would go beyond it, or use what is limited.

use fiord_host::{DeviceFacts, IoLimit};
use fiord_options::job;
use fiord_plan::{Direction, Job, Plan};
use fiord_report::table::{Cell, shown_bytes};
use fiord_report::{Code, Finding, Subject};

use super::known::Known;
use crate::evidence::depth;
use crate::evidence::measured::JobEvidence;

/// With less in flight than this share of what a queue holds, the queue was no limit.
const REACHED_MIN: f64 = 0.5;

/// The scheduler that lets the device idle for one process while others wait.
const IDLING_SCHEDULER: &str = "bfq";

/// Limits on processors: those of control groups, and frequencies.
pub(super) fn of_processors(plan: &Plan, known: &Known) -> Vec<Finding> {
    let limits = &known.limits;
    let threads = plan.jobs.len() as u64;
    let usable = threads.min(limits.cpus_allowed) as f64;
    let quota = limits.processors.filter(|quota| *quota < usable).map(|quota| {
        let sentence = format!("a control group limits processor time to {quota:.2} processors");
        let remedy = "raise cpu.max, or run outside the group";
        host_limit(Subject::Machine, sentence, remedy)
            .based_on([("processors", Cell::Number(quota, 2)), ("jobs", Cell::Count(threads))])
    });
    let slow = limits.frequency.as_ref().map(|slow| {
        let (allowed_mhz, hardware_mhz) = (slow.allowed_khz / 1000, slow.hardware_khz / 1000);
        let sentence = format!(
            "processor {} may run at {allowed_mhz} of {hardware_mhz} MHz, by the governor {} and its limits",
            slow.cpu, slow.governor
        );
        let remedy = "the governor performance, and the processor's own maximum in scaling_max_freq";
        host_limit(Subject::Machine, sentence, remedy).based_on([
            ("allowed_mhz", Cell::Count(allowed_mhz)),
            ("hardware_mhz", Cell::Count(hardware_mhz)),
        ])
    });
    quota.into_iter().chain(slow).collect()
}

/// The limits on I/O of a job and its clones to the devices below their files: of control groups, schedulers and queues.
pub(super) fn io(clones: &[(&Job, &JobEvidence<'_>)], known: &Known) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let Some((job, _)) = clones.first() else { return findings };
    for device in known.devices_of(job) {
        let name = &device.device.name;
        let of_it = known.limits.io.iter().filter(|limit| limit.device == *name);
        let groups = of_it.filter(|limit| concerns(limit, job)).map(|limit| of_group(name, limit));
        for finding in groups.chain(queue(clones, device)).chain(scheduler(device)) {
            if !findings.contains(&finding) {
                findings.push(finding);
            }
        }
    }
    findings
}

fn concerns(limit: &IoLimit, job: &Job) -> bool {
    let direction = if limit.what.starts_with('r') { Direction::Read } else { Direction::Write };
    job.access.pattern.includes(direction)
}

fn of_group(device: &str, limit: &IoLimit) -> Finding {
    let (what, per_s) = match limit.what.as_str() {
        "rbps" => ("reads", shown_bytes(limit.per_s)),
        "wbps" => ("writes", shown_bytes(limit.per_s)),
        "riops" => ("reads", format!("{} I/Os", limit.per_s)),
        _ => ("writes", format!("{} I/Os", limit.per_s)),
    };
    let sentence = format!("a control group limits {what} to {per_s} per second");
    let remedy = "raise the limit in io.max or blkio.throttle, or run outside the group";
    host_limit(Subject::Device(device.to_string()), sentence, remedy)
        .based_on([("limit_per_s", Cell::Count(limit.per_s))])
}

/// A job that may have more direct I/Os in flight, together with its clones, than the queue of the device holds, and did not
/// have far fewer.
fn queue(clones: &[(&Job, &JobEvidence<'_>)], device: &DeviceFacts) -> Option<Finding> {
    let (job, _) = clones.first()?;
    let asked: u64 = clones.iter().map(|(job, _)| u64::from(job.depth.max)).sum();
    let queue = &device.device.queue;
    let of_kernel = queue.requests * queue.hardware_queues;
    let of_device = queue.device_depth.unwrap_or(0);
    // A queue of 0 is one that I/O bypasses, or that is not known.
    let holds = [of_kernel, of_device].into_iter().filter(|holds| *holds > 0).min()?;
    let in_flight: Option<f64> = clones.iter().map(|(job, known)| depth::in_flight(job, known.stats)).sum();
    let is_reached = in_flight.is_none_or(|mean| mean >= REACHED_MIN * holds as f64);
    (job.files.direct && asked > holds && is_reached).then(|| {
        let had = in_flight.map_or_else(String::new, |mean| format!("; they had {mean:.1} on average"));
        let sentence =
            format!("its queue holds {holds} I/Os, of the {asked} that the jobs may have in flight{had}");
        let remedy = "a smaller iodepth, fewer jobs, or a larger nr_requests";
        let finding = host_limit(Subject::Device(device.device.name.clone()), sentence, remedy);
        finding
            .of_option(job::Queue::iodepth)
            .based_on([("queue", Cell::Count(holds)), ("iodepth", Cell::Count(asked))])
            .based_on(in_flight.map(|mean| ("in_flight", Cell::Number(mean, 1))))
    })
}

fn scheduler(device: &DeviceFacts) -> Option<Finding> {
    (device.device.queue.scheduler.as_deref() == Some(IDLING_SCHEDULER)).then(|| {
        let sentence = "the scheduler bfq lets it idle for one process while I/O of others waits";
        let remedy = "none or mq-deadline in queue/scheduler, or ioscheduler=none";
        host_limit(Subject::Device(device.device.name.clone()), sentence, remedy)
    })
}

fn host_limit(subject: Subject, sentence: impl Into<String>, remedy: &'static str) -> Finding {
    Finding::new(Code::HostLimits, subject, sentence, remedy)
}

#[cfg(test)]
mod tests {
    use fiord_host::{FrequencyLimit, LayerKind, Limits, RequestQueue};

    use fiord_stats::JobStats;

    use crate::evidence::testing::{job, moved};
    use crate::testing::{known_target, on_device, plan};

    use super::*;

    fn sentences(findings: &[Finding]) -> Vec<&str> {
        assert!(findings.iter().all(|finding| finding.code == Code::HostLimits), "{findings:?}");
        findings.iter().map(|finding| finding.sentence.as_str()).collect()
    }

    /// On a device with this queue, by a job of which nothing was measured.
    fn on_queue(queue: RequestQueue, options: &[(&'static str, &str)], limits: Limits) -> Vec<Finding> {
        measured_on_queue(queue, options, limits, &JobStats::default())
    }

    fn measured_on_queue(
        queue: RequestQueue,
        options: &[(&'static str, &str)],
        limits: Limits,
        stats: &JobStats,
    ) -> Vec<Finding> {
        let mut stack = on_device("disk", false);
        if let LayerKind::Device(facts) = &mut stack.layers[0].kind {
            facts.device.queue = queue;
        }
        let mut target = known_target("/data/f");
        target.stack = Some(stack);
        let known = Known { targets: vec![target], limits, ..Known::default() };
        let common = [("ioengine", "libaio"), ("filename", "/data/f"), ("size", "64k")];
        let options: Vec<_> = common.iter().chain(options).copied().collect();
        let plan = plan(&[("a", &options)]);
        let known_jobs: Vec<_> = plan.jobs.iter().map(|_| job(stats)).collect();
        io(&plan.jobs.iter().zip(&known_jobs).collect::<Vec<_>>(), &known)
    }

    #[test]
    fn a_limit_on_the_device_below_in_the_direction_of_the_job_is_found() {
        let found = |rw: &str, device: &str, what: &str| {
            let io = vec![IoLimit { device: device.to_string(), what: what.to_string(), per_s: 1 << 20 }];
            on_queue(RequestQueue::default(), &[("rw", rw)], Limits { io, ..Limits::default() })
        };
        let limited = ["a control group limits reads to 1MiB per second"];
        assert_eq!(sentences(&found("read", "sdb", "rbps")), limited);
        assert_eq!(found("read", "sdb", "wbps"), []);
        assert_eq!(found("write", "sdb", "wiops").len(), 1);
        assert_eq!(found("read", "sdc", "rbps"), []);
    }

    #[test]
    fn more_direct_io_in_flight_than_the_queue_holds_is_found() {
        let found = |queue: RequestQueue, depth: &str, jobs: &str, direct: &str| {
            let options = [("iodepth", depth), ("numjobs", jobs), ("direct", direct)];
            on_queue(queue, &options, Limits::default()).len()
        };
        let kernel = || RequestQueue { requests: 64, hardware_queues: 2, ..RequestQueue::default() };
        let device = || RequestQueue { device_depth: Some(32), ..kernel() };
        assert_eq!(found(kernel(), "128", "1", "1"), 0);
        assert_eq!(found(kernel(), "129", "1", "1"), 1);
        assert_eq!(found(kernel(), "33", "4", "1"), 1, "clones share it");
        assert_eq!(found(kernel(), "129", "1", "0"), 0, "the page cache issues them");
        assert_eq!((found(device(), "32", "1", "1"), found(device(), "33", "1", "1")), (0, 1));
        assert_eq!(
            found(RequestQueue { requests: 128, ..RequestQueue::default() }, "999", "1", "1"),
            0,
            "I/O bypasses it"
        );
    }

    #[test]
    fn what_was_in_flight_is_said_as_it_was_measured_and_a_queue_that_was_not_filled_is_no_limit() {
        let queue = RequestQueue { requests: 64, hardware_queues: 1, ..RequestQueue::default() };
        // I/Os of 1 ms in ten seconds.
        let found = |ios: u64| {
            let options = [("iodepth", "256"), ("direct", "1")];
            let stats = moved(0, ios * 4096);
            measured_on_queue(queue.clone(), &options, Limits::default(), &stats)
        };
        let sentence =
            "its queue holds 64 I/Os, of the 256 that the jobs may have in flight; they had 200.0 on average";
        assert_eq!(sentences(&found(2_000_000)), [sentence]);
        assert_eq!(found(10_000), [], "one was in flight");
    }

    #[test]
    fn the_scheduler_that_idles_is_found() {
        let found = |name: &str| {
            let queue = RequestQueue { scheduler: Some(name.to_string()), ..RequestQueue::default() };
            on_queue(queue, &[], Limits::default()).len()
        };
        assert_eq!((found("bfq"), found("mq-deadline"), found("none")), (1, 0, 0));
    }

    #[test]
    fn processor_time_is_limited_if_the_jobs_could_use_more_and_a_frequency_if_it_is_not_the_highest() {
        let found = |jobs: &str, limits: Limits| {
            let limits = Limits { cpus_allowed: 4, ..limits };
            let plan = plan(&[("a", &[("numjobs", jobs)])]);
            of_processors(&plan, &Known { limits, ..Known::default() })
        };
        let quota = |processors| Limits { processors: Some(processors), ..Limits::default() };
        assert_eq!(
            sentences(&found("2", quota(1.5))),
            ["a control group limits processor time to 1.50 processors"]
        );
        assert_eq!(found("1", quota(1.5)), [], "one job uses one");
        assert_eq!(found("8", quota(4.0)), [], "it may run on four");
        let slow = FrequencyLimit {
            cpu: 1,
            governor: "powersave".into(),
            allowed_khz: 800_000,
            hardware_khz: 3_600_000,
        };
        let limits = Limits { frequency: Some(slow), ..Limits::default() };
        let expected = ["processor 1 may run at 800 of 3600 MHz, by the governor powersave and its limits"];
        assert_eq!(sentences(&found("1", limits)), expected);
        assert_eq!(found("8", Limits::default()), []);
    }
}
