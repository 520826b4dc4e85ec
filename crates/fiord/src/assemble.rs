//! What was planned and what was measured, put together into the report's value.
//!
//! Invariant: a worker counts into exactly one entry of the report, or into none when its job says `stats=0`.

use std::path::Path;

use fiord_host::{DiskUse, DiskWatch};
use fiord_options::Problem;
use fiord_plan::presentation::{Presentation, RateUnit, Unified as PlannedUnified};
use fiord_plan::{FileKind, Job, Plan};
use fiord_report::{
    DiskFigures, DiskReport, JobReport, LatencyTarget, RunReport, Show, Unified, Warning, merge_groups, start,
};
use fiord_sys::clock;
use fiord_sys::errno::Errno;
use fiord_worker::{EndReason, Moment, Remark, WorkerReport};

use crate::idle::IdleWatch;
use crate::version::FIO_VERSION;

/// The second of a run from which on fio tells how long it will still take.
const ESTIMATED_FROM_S: u64 = 3;

/// What stays the same over all reports of a run.
pub(crate) struct Frame<'a> {
    pub plan: &'a Plan,
    pub global_options: Vec<(String, String)>,
}

/// What is watched beside the workers from the moment they start.
#[derive(Default)]
pub(crate) struct Meters {
    pub disks: Option<DiskWatch>,
    pub cpus: Option<IdleWatch>,
}

/// The disks under the targets, unless no job wants them told.
pub(crate) fn disks(plan: &Plan) -> Option<DiskWatch> {
    let watched = plan.jobs.iter().filter(|job| job.measure.disk_stats);
    let files = watched.flat_map(|job| &job.files.list).filter(|file| file.kind != FileKind::None);
    let paths: Vec<&Path> = files.map(|file| file.path.as_path()).collect();
    (!paths.is_empty()).then(|| DiskWatch::start(paths))
}

/// The report of these workers at a moment of the run. It takes their statistics out of them: those of thousands of
/// workers are not to be there twice.
pub(crate) fn report(
    frame: &Frame<'_>,
    meters: &Meters,
    workers: &mut [WorkerReport],
    moment: Moment,
) -> RunReport {
    let reported = frame.plan.jobs.iter().zip(workers).filter(|(job, _)| job.measure.reported);
    let disks = meters.disks.as_ref().map(DiskWatch::so_far).unwrap_or_default();
    RunReport {
        version: FIO_VERSION.to_string(),
        timestamp_ms: clock::realtime_ms(),
        utc_offset_s: clock::utc_offset_s(),
        global_options: frame.global_options.clone(),
        jobs: merge_groups(reported.map(|(job, worker)| job_report(job, worker, moment))),
        disks: disks.iter().map(disk_report).collect(),
        idleness: meters.cpus.as_ref().map(IdleWatch::so_far),
        warnings: Vec::new(),
        tells_warnings: false,
    }
}

/// What there is to say of an option as it was typed.
pub(crate) fn warning(problem: &Problem) -> Warning {
    Warning {
        code: if problem.option.is_empty() { "jobfile".to_string() } else { problem.option.clone() },
        place: problem.place.to_string(),
        message: match problem.remedy.as_str() {
            "" => problem.message.clone(),
            remedy => format!("{}\n{remedy}", problem.message),
        },
    }
}

/// What the jobs gave rise to say although nothing failed.
pub(crate) fn remarks(plan: &Plan, workers: &[WorkerReport]) -> Vec<Warning> {
    let of = |(job, worker): (&Job, &WorkerReport)| -> Vec<Warning> {
        let place = format!("job {}", job.name);
        let warning = |remark: &Remark| Warning {
            code: remark.option.to_string(),
            place: place.clone(),
            message: remark.message.clone(),
        };
        worker.warnings.iter().map(warning).collect()
    };
    // Clones say the same thing.
    let mut told: Vec<Warning> = Vec::new();
    for remark in plan.jobs.iter().zip(workers).flat_map(of) {
        if !told.contains(&remark) {
            told.push(remark);
        }
    }
    told
}

fn job_report(job: &Job, worker: &mut WorkerReport, moment: Moment) -> JobReport {
    let errors = &job.errors;
    let elapsed_s = moment.elapsed_ms / 1000 + 1;
    // fio's estimates begin with the third second; a run that is over by then never had one.
    let left_s = moment.left_s.filter(|_| elapsed_s >= ESTIMATED_FROM_S);
    JobReport {
        name: job.name.clone(),
        description: job.description.clone(),
        group_id: job.group_id,
        member_count: 1,
        pid: worker.thread_id,
        // Of errors that were passed over, fio gives the first.
        error: worker.failure.as_ref().map_or(worker.stats.first_error, |failure| failure.code()),
        error_text: worker.failure.as_ref().map_or_else(String::new, ToString::to_string),
        start_ms: worker.started_ms,
        elapsed_s,
        eta_s: left_s.map_or(JobReport::ETA_UNKNOWN, |seconds| seconds.ceil() as u32),
        options: job.presentation.options.clone(),
        stats: std::mem::take(&mut *worker.stats),
        show: show(job, &job.presentation),
        continue_on_error: errors.passed_over.iter().any(|codes| !codes.is_empty()),
        latency_target: LatencyTarget {
            depth: job.presentation.requested_iodepth,
            ..LatencyTarget::default()
        },
        unstarted: worker.unstarted,
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

fn disk_report(disk: &DiskUse) -> DiskReport {
    let fiord_host::DiskFigures {
        read_ios,
        write_ios,
        read_sectors,
        write_sectors,
        read_merges,
        write_merges,
        read_ticks_ms,
        write_ticks_ms,
        in_queue_ms,
        util_percent,
    } = disk.figures;
    DiskReport {
        name: disk.name.clone(),
        figures: DiskFigures {
            read_ios,
            write_ios,
            read_sectors,
            write_sectors,
            read_merges,
            write_merges,
            read_ticks_ms,
            write_ticks_ms,
            in_queue_ms,
            util_percent,
        },
        members: disk.members.iter().map(disk_report).collect(),
    }
}

/// What went wrong, in the order of the jobs: the errors that were passed over and are to be said, then what ended
/// the job.
pub(crate) fn failures(plan: &Plan, workers: &[WorkerReport]) -> Vec<String> {
    let mut lines = Vec::new();
    for (job, worker) in plan.jobs.iter().zip(workers) {
        lines.extend(worker.passed_over.iter().map(|said| format!("fiord: job {}: {said}\n", job.name)));
        // Of a job that could not be planned all has been said.
        let failure = worker.failure.iter().filter(|_| job.unplannable.is_none());
        lines.extend(failure.map(|failure| format!("fiord: job {}: {failure}\n", job.name)));
    }
    lines
}

/// What keeps jobs from running while others run: of each section what its first such clone lacks, and how many more
/// there are.
pub(crate) fn unplannable(plan: &Plan) -> Vec<String> {
    let mut lines = Vec::new();
    for section in plan.jobs.chunk_by(|one, next| one.section == next.section) {
        let mut clones = section.iter().filter_map(|job| job.unplannable.as_ref());
        let Some(first) = clones.next() else { continue };
        lines.extend(first.problems.iter().map(|problem| format!("{problem}\n")));
        match clones.count() {
            0 => {}
            more => lines.push(format!("fiord: and {more} more of job {}\n", section[0].name)),
        }
    }
    lines
}

/// A line for each job that failed, in fio's words. Where fio has a line of its source, this has the file and the offset
/// that were meant, or the job and 0.
pub(crate) fn fios_failures(plan: &Plan, workers: &[WorkerReport]) -> Vec<String> {
    let line = |(job, worker): (&Job, &WorkerReport)| {
        let failure = worker.failure.as_ref()?;
        Some(start::failed(&start::Failed {
            pid: worker.thread_id,
            errno: failure.code(),
            place: failure.path.as_ref().map_or(job.name.clone(), |path| path.display().to_string()),
            offset_bytes: failure.range.map_or(0, |(offset_bytes, _)| offset_bytes),
            operation: &failure.operation,
            error: Errno(failure.code()).describe(),
        }))
    };
    plan.jobs.iter().zip(workers).filter_map(line).collect()
}

/// How many jobs did not do what they were asked for.
pub(crate) fn failed_count(workers: &[WorkerReport]) -> usize {
    let failed = |worker: &&WorkerReport| worker.failure.is_some() || worker.reason == EndReason::NotStarted;
    workers.iter().filter(failed).count()
}

/// Whether a job was stopped because it would have destroyed what somebody else needs.
pub(crate) fn endangered(workers: &[WorkerReport]) -> bool {
    workers.iter().any(|worker| worker.failure.as_ref().is_some_and(|failure| failure.endangers))
}
