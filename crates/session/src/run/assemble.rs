//! Assembles reports from what was planned and what was measured.
//!
//! Invariant: a worker counts towards exactly one entry of the report, or towards none if its job sets `stats=0`.

use fiord_findings::{have_same_words, more};
use fiord_options::{Origin, Problem, ProblemKind, job};
use fiord_plan::presentation::{Presentation, RateUnit, Unified as PlannedUnified};
use fiord_plan::{Job, Plan};
use fiord_report::path::{self, shown};
use fiord_report::{
    Code, Finding, JobReport, LatencyTarget, RunReport, Show, Subject, Unified, merge_groups, start,
};
use fiord_stats::Capped;
use fiord_sys::errno::Errno;
use fiord_sys::{clock, procfs};
use fiord_worker::{EndReason, Failure, Moment, Remark, WorkerReport};

use super::meters::Meters;
use super::version::{FIO_VERSION, FIORD_VERSION};

/// The second of a run from which on fio estimates the time left.
const ESTIMATED_FROM_S: u64 = 3;

/// What all reports of a run have in common.
pub(crate) struct Frame<'a> {
    pub plan: &'a Plan,
    pub global_options: Vec<(String, String)>,
}

/// The lines before the run: one for each section, the version, how many start.
pub fn headings(plan: &Plan) -> String {
    let mut text = String::new();
    for job in plan.jobs.iter().filter(|job| job.clone == 0) {
        let clones = u32::capped(plan.jobs.iter().filter(|other| other.section == job.section).count());
        let presentation = &job.presentation;
        text += &start::heading(&start::Heading {
            name: &path::text(&job.name),
            group_id: job.group_id,
            mode: &presentation.mode,
            blocks: presentation.block_bytes,
            blocks_by_order: job.access.sizes_by_order,
            engine: job.engine.name().word(),
            iodepth: presentation.requested_iodepth,
            clones,
            significant_figures: presentation.significant_figures,
            kb_base: presentation.kb_base,
        });
    }
    format!(
        "{}{FIO_VERSION}\n{}",
        path::visible_lines(&text),
        start::starting(u32::capped(plan.jobs.len()), 0)
    )
}

/// The report of these workers at a moment of the run. It moves their statistics out of them, since copies for
/// thousands of workers would be large.
pub(crate) fn report(
    frame: &Frame<'_>,
    meters: &Meters,
    workers: &mut [WorkerReport],
    moment: Moment,
) -> RunReport {
    let reported = frame.plan.jobs.iter().zip(workers).filter(|(job, _)| job.measure.reported);
    RunReport {
        version: FIO_VERSION.to_string(),
        fiord_version: Some(FIORD_VERSION.to_string()),
        timestamp_ms: clock::realtime_ms(),
        utc_offset_s: clock::utc_offset_s(),
        global_options: frame.global_options.clone(),
        jobs: merge_groups(reported.map(|(job, worker)| job_report(job, worker, moment))),
        disks: meters.disks(),
        devices: meters.devices(),
        idleness: meters.idleness(),
        energy: meters.energy(),
        findings: Vec::new(),
        repeats: Vec::new(),
        steadiness: None,
        part_latencies: None,
        job_parts: Vec::new(),
        timeline: None,
        windows: Vec::new(),
        boot_id: procfs::boot_id().ok(),
    }
}

/// A warning about an option as typed, as a finding.
pub(crate) fn of_problem(problem: &Problem) -> Finding {
    let subject = match problem.place.source {
        // Nobody typed it: a study sets it.
        Origin::Derived => Subject::Run,
        Origin::CommandLine | Origin::File(_) => Subject::Place(problem.place.to_string()),
    };
    let code = match problem.kind {
        ProblemKind::DecimalUnit => Code::KibIs1000,
        ProblemKind::ValueCut => Code::ValueCut,
        _ => Code::Option,
    };
    let finding = Finding::new(code, subject, problem.message(), problem.remedy().to_string());
    match problem.option {
        Some(option) => finding.of_option(option),
        None => Finding { option: "jobfile".into(), ..finding },
    }
}

/// Warnings of workers whose jobs did not fail, as findings.
pub(super) fn remarks(plan: &Plan, workers: &[WorkerReport]) -> Vec<Finding> {
    let of = |(job, worker): (&Job, &WorkerReport)| -> Vec<Finding> {
        let subject = Subject::Job(path::text(&job.name));
        let finding = |remark: &Remark| {
            Finding::new(Code::Option, subject.clone(), remark.message.clone(), "").of_option(remark.option)
        };
        worker.warnings.iter().map(finding).collect()
    };
    plan.jobs.iter().zip(workers).flat_map(of).collect()
}

/// A line for each file besides the logs that a job could not write in full.
pub(super) fn lost_outputs(plan: &Plan, workers: &[WorkerReport]) -> Vec<String> {
    let of = |(job, worker): (&Job, &WorkerReport)| -> Vec<String> {
        let lost = worker.warnings.iter().filter(|remark| remark.is_lost_output);
        let line = |remark: &Remark| {
            format!("fiord: job {}: {}: {}\n", shown(&job.name), remark.option.name, remark.message)
        };
        lost.map(line).collect()
    };
    plan.jobs.iter().zip(workers).flat_map(of).collect()
}

fn job_report(job: &Job, worker: &mut WorkerReport, moment: Moment) -> JobReport {
    let errors = &job.errors;
    let elapsed_s = moment.elapsed_ms / 1000 + 1;
    // fio's estimates begin with the third second; a run that is over by then never had one.
    let left_s = moment.left_s.filter(|_| elapsed_s >= ESTIMATED_FROM_S);
    JobReport {
        name: path::text(&job.name),
        description: job.description.as_ref().map(path::text),
        group_id: job.group_id,
        member_count: 1,
        pid: worker.thread_id,
        // Of ignored errors, fio reports the first.
        error: worker.failure.as_ref().map_or(worker.stats.first_error, |failure| failure.code()),
        error_text: worker.failure.as_ref().map_or_else(String::new, ToString::to_string),
        start_ms: worker.started_ms,
        elapsed_s,
        eta_s: left_s.map_or(JobReport::ETA_UNKNOWN, |seconds| u32::capped(seconds.ceil())),
        options: job.presentation.options.clone(),
        stats: std::mem::take(&mut *worker.stats),
        show: show(job, &job.presentation),
        continue_on_error: errors.passes_over_any(),
        steady: worker.steady.take().map(|steady| *steady),
        latency_target: latency_target(job, worker),
        unstarted: worker.unstarted && !fails_at_first_io_in_fio(job),
    }
}

/// Whether fio starts a job that is not started here, because an I/O of it could not succeed. What a report has of a job
/// depends on it.
fn fails_at_first_io_in_fio(job: &Job) -> bool {
    let cannot_succeed = |problem: &Problem| {
        problem.kind == ProblemKind::Misaligned || problem.option == Some(job::Access::rw)
    };
    job.unplannable.as_ref().is_some_and(|unplannable| unplannable.problems.iter().all(cannot_succeed))
}

fn latency_target(job: &Job, worker: &WorkerReport) -> LatencyTarget {
    let depth = worker.depth.unwrap_or(job.presentation.requested_iodepth);
    match job.latency_target {
        None => LatencyTarget { depth, ..LatencyTarget::default() },
        Some(target) => LatencyTarget {
            target_ns: target.target_ns,
            window_us: target.window_ns / 1000,
            percentile: target.percentile,
            depth,
        },
    }
}

fn show(job: &Job, presentation: &Presentation) -> Show {
    let measure = &job.measure;
    Show {
        slat: measure.submission,
        clat: measure.completion,
        lat: measure.total,
        slat_percentiles: measure.submission_percentiles,
        clat_percentiles: measure.completion_percentiles,
        lat_percentiles: measure.total_percentiles,
        percentile_list: presentation.percentiles.clone(),
        significant_figures: presentation.significant_figures,
        kb_base: presentation.kb_base,
        unit_base: match presentation.rate_unit {
            RateUnit::Bytes => 8,
            RateUnit::Bits => 1,
        },
        unified: match presentation.unified {
            PlannedUnified::None => Unified::Separate,
            PlannedUnified::Mixed => Unified::Mixed,
            PlannedUnified::Both => Unified::Both,
        },
        group_reporting: presentation.group_reporting,
    }
}

/// Lines about failures, in the order of the jobs: the ignored errors that `error_dump` prints, then what ended jobs. Of
/// jobs that failed in the same way, whatever their files, there is the first and the number of the others.
pub(crate) fn failures(plan: &Plan, workers: &[WorkerReport]) -> Vec<String> {
    let jobs = || plan.jobs.iter().zip(workers);
    let mut lines = Vec::new();
    for (job, worker) in jobs() {
        lines.extend(
            worker.passed_over.iter().map(|failure| format!("fiord: job {}: {failure}\n", shown(&job.name))),
        );
    }
    let mut kinds: Vec<(String, String, usize)> = Vec::new();
    // Problems of a job that could not be planned have been printed.
    for (job, worker) in jobs().filter(|(job, _)| job.unplannable.is_none()) {
        let Some(failure) = &worker.failure else { continue };
        let way = Failure { path: None, range: None, ..failure.clone() }.to_string();
        match kinds.iter_mut().find(|(known, ..)| have_same_words(known, &way)) {
            Some((.., count)) => *count += 1,
            None => kinds.push((way, format!("fiord: job {}: {failure}\n", shown(&job.name)), 0)),
        }
    }
    for (_, first, count) in kinds {
        lines.push(first);
        if count > 0 {
            lines.push(format!("fiord: {} failed in the same way\n", more(count, "job")));
        }
    }
    lines
}

/// Lines about jobs that cannot run while others do: for each section the problems of its first such clone, and the
/// number of further ones.
pub fn unplannable(plan: &Plan) -> Vec<String> {
    let mut lines = Vec::new();
    for section in plan.jobs.chunk_by(|one, next| one.section == next.section) {
        let mut clones = section.iter().filter_map(|job| job.unplannable.as_ref());
        let Some(first) = clones.next() else { continue };
        lines.extend(first.problems.iter().map(|problem| format!("{problem}\n")));
        match clones.count() {
            0 => {}
            more => lines.push(format!("fiord: and {more} more of job {}\n", shown(&section[0].name))),
        }
    }
    lines
}

/// A line for each failed job, in fio's words. Where fio names a line of its source, this names the file and offset
/// concerned, or the job and 0.
pub fn fios_failures(plan: &Plan, workers: &[WorkerReport]) -> Vec<String> {
    let line = |(job, worker): (&Job, &WorkerReport)| {
        let failure = worker.failure.as_ref()?;
        Some(start::failed(&start::Failed {
            pid: worker.thread_id,
            errno: failure.code(),
            place: failure.path.as_ref().map_or_else(|| path::text(&job.name), path::text),
            offset_bytes: failure.range.map_or(0, |(offset_bytes, _)| offset_bytes),
            operation: &failure.operation,
            error: Errno(failure.code()).describe(),
        }))
    };
    plan.jobs.iter().zip(workers).filter_map(line).collect()
}

/// How many jobs failed or were not started.
pub fn failed_count(workers: &[WorkerReport]) -> usize {
    let failed = |worker: &&WorkerReport| worker.failure.is_some() || worker.reason == EndReason::NotStarted;
    workers.iter().filter(failed).count()
}

/// Whether a job was stopped because it would have destroyed data in use.
pub(crate) fn any_unsafe_target(workers: &[WorkerReport]) -> bool {
    workers.iter().any(|worker| worker.failure.as_ref().is_some_and(|failure| failure.unsafe_target))
}
