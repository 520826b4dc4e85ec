//! Which fields of the plan were exercised in the loops.
//!
//! Invariant: structures are destructured in full, so a field that is added to the plan does not compile until it is
//! listed here; then the test fails until a case for it changes it and does I/O in each loop it concerns.

use std::collections::BTreeMap;

use fiord_engine::engines::{
    io_uring::Settings as IoUringSettings, libaio::Settings as LibaioSettings,
    mmap::Settings as MmapSettings, pvsync2::Settings as Pvsync2Settings,
};
use fiord_plan::files::Files;
use fiord_plan::job::Submission;
use fiord_plan::job::{Buffers, ErrorPolicy, Job, Limits, Measure};
use fiord_plan::{Access, Barriers, Depth, Logs, Pace, PlannedEngine, Think};

use super::options;

/// Fields that only matter before the loop, after it, or to the coordinator and the report.
const NOT_THE_LOOPS: &[&str] = &[
    "Job.name",
    "Job.description",
    "Job.number",
    "Job.section",
    "Job.clone",
    "Job.group_id",
    "Job.unplannable",
    "Job.schedule",
    "Job.process",
    "Job.presentation",
    "Files.direct_by_engine",
    "Files.lay_out_contents",
    "Files.create_directories",
    "Files.create_on_open",
    "Files.create_serially",
    "Files.create_fsync",
    "Files.create_only",
    "Files.fallocate",
    "Files.unlink",
    "Files.allow_in_use",
    "Buffers.memory",
    "Buffers.hugepage_bytes",
    "Buffers.lock_bytes",
    "Measure.bandwidth",
    "Measure.bandwidth_interval_ms",
    "Measure.iops_interval_ms",
    "Measure.reported",
    "Measure.disk_stats",
    "Measure.start_clock_id",
    "Logs.coarseness",
    "Logs.value",
    "Logs.with_offset",
    "Logs.priority",
    "Logs.shows_priority",
    "Logs.with_issue_time",
    "Logs.held_chunk_bytes",
    "Logs.cpus",
];

/// Structures whose fields are noted one by one.
const TAKEN_APART: &[&str] = &[
    "Job.engine",
    "Job.depth",
    "Job.submission",
    "Job.files",
    "Job.access",
    "Job.buffers",
    "Job.limits",
    "Job.pace",
    "Job.errors",
    "Job.measure",
];

/// An engine's own settings only concern its own loop.
const ONE_LOOPS: &[&str] =
    &["Job.engine", "Pvsync2Settings.", "MmapSettings.", "LibaioSettings.", "IoUringSettings."];

/// Fields by name, and in which loops (synchronous, queued) a job for them was run.
#[derive(Default)]
pub struct Coverage(BTreeMap<&'static str, [bool; 2]>);

/// Whether the words of a case's name have this field among them.
fn mentions(name: &str, field: &str) -> bool {
    let field = field.rsplit('.').next().unwrap_or(field);
    name.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|word| word == field)
}

/// Notes every field of a structure; a missing one does not compile.
macro_rules! note {
    ($coverage:expr, $run:expr, $type:ident { $($field:ident),* $(,)? }, $base:expr, $job:expr) => {{
        let ($type { $($field),* }, job) = ($base, $job);
        $($coverage.note_field($run, concat!(stringify!($type), ".", stringify!($field)), *$field != job.$field);)*
    }};
}

/// A job that was run: the name of its case, and in which loop it did I/O.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    pub name: &'a str,
    pub is_queued: bool,
}

impl Coverage {
    fn note_field(&mut self, run: Run<'_>, field: &'static str, differs: bool) {
        let is_for_it = TAKEN_APART.contains(&field) || mentions(run.name, field);
        self.0.entry(field).or_default()[usize::from(run.is_queued)] |= differs && is_for_it;
    }

    /// Compares a job that was run with the unchanged one.
    #[expect(clippy::too_many_lines, reason = "one line for each thing that is covered")]
    pub fn note(&mut self, run: Run<'_>, base: &Job, job: &Job) {
        note!(
            self,
            run,
            Job {
                name,
                description,
                number,
                section,
                clone,
                group_id,
                unplannable,
                engine,
                depth,
                submission,
                files,
                access,
                buffers,
                limits,
                pace,
                schedule,
                errors,
                latency_target,
                steady,
                verification,
                measure,
                logs,
                process,
                io_priorities,
                presentation,
                replay,
                record,
            },
            base,
            job
        );
        note!(self, run, Depth { max, submit, complete_min, complete_max, low }, &base.depth, &job.depth);
        note!(self, run, Submission { serialize_overlap, offload }, &base.submission, &job.submission);
        note!(
            self,
            run,
            Files {
                list,
                open_at_once,
                direct,
                direct_by_engine,
                sync,
                lock,
                writable,
                may_create,
                lay_out_contents,
                create_directories,
                create_on_open,
                create_serially,
                create_fsync,
                create_only,
                fallocate,
                advice,
                write_hint,
                pre_read,
                invalidate,
                unlink,
                unlink_each_loop,
                end_fsync,
                end_syncfs,
                fsync_on_close,
                fill_device,
                allow_in_use,
            },
            &base.files,
            &job.files
        );
        self.note_stream(run, base, job);
        note!(
            self,
            run,
            Buffers { fill, memory, bytes, align_bytes, hugepage_bytes, lock_bytes, dedupe },
            &base.buffers,
            &job.buffers
        );
        note!(
            self,
            run,
            ErrorPolicy { passed_over, passed_over_in_verification, dump, latency_ns_max },
            &base.errors,
            &job.errors
        );
        note!(
            self,
            run,
            Measure {
                clock,
                submission,
                completion,
                total,
                bandwidth,
                submission_percentiles,
                completion_percentiles,
                total_percentiles,
                bandwidth_interval_ms,
                iops_interval_ms,
                reported,
                disk_stats,
                block_lifetimes,
                start_clock_id,
            },
            &base.measure,
            &job.measure
        );
        if let Some(logs) = &job.logs {
            note!(
                self,
                run,
                Logs {
                    files,
                    are_sent,
                    window_ms,
                    bandwidth_window_ms,
                    iops_window_ms,
                    histogram_window_ms,
                    coarseness,
                    value,
                    with_offset,
                    shows_priority,
                    with_issue_time,
                    priority,
                    held_chunk_bytes,
                    cpus,
                    entries_ahead,
                    clock_id,
                },
                &options::logs(),
                logs
            );
        }
        self.note_engine(run, &job.engine);
    }

    fn note_stream(&mut self, run: Run<'_>, base: &Job, job: &Job) {
        self.note_access(run, base, job);
        self.note_pace(run, base, job);
    }

    fn note_access(&mut self, run: Run<'_>, base: &Job, job: &Job) {
        note!(
            self,
            run,
            Access {
                pattern,
                random,
                stride_bytes,
                ios_per_draw,
                sequencer,
                percent_random,
                distribution,
                strided,
                zoned,
                sprandom,
                trim_ranges,
                read_percent,
                full_coverage,
                soft_map,
                covers_single_size,
                block_sizes,
                unaligned_sizes,
                sizes_by_order,
                align_bytes,
                seed,
                repeat_order,
                service,
                barriers,
            },
            &base.access,
            &job.access
        );
        note!(
            self,
            run,
            Barriers { fsync_every, fdatasync_every, range_every, range_flags },
            &base.access.barriers,
            &job.access.barriers
        );
    }

    fn note_pace(&mut self, run: Run<'_>, base: &Job, job: &Job) {
        note!(
            self,
            run,
            Limits {
                pass_bytes,
                loop_bytes,
                repeats_passes,
                loops,
                number_ios,
                runtime_ns,
                time_based,
                ramp_ns,
                ramp_bytes
            },
            &base.limits,
            &job.limits
        );
        note!(
            self,
            run,
            Pace {
                bytes_per_s,
                ios_per_s,
                min_bytes_per_s,
                min_ios_per_s,
                cycle_ms,
                poisson,
                open,
                ignore_think_time,
                think,
                flow,
                wakes_early,
            },
            &base.pace,
            &job.pace
        );
        if let Some(think) = &job.pace.think {
            note!(
                self,
                run,
                Think { pause_us, spin_us, cycles, every_ios, count_issued, io_time_us },
                &options::THINK,
                think
            );
        }
    }

    fn note_engine(&mut self, run: Run<'_>, engine: &PlannedEngine) {
        let settings = &engine.settings;
        if let Some(settings) = settings.get::<Pvsync2Settings>() {
            note!(
                self,
                run,
                Pvsync2Settings { hipri_percent, uncached, nowait, atomic },
                &Pvsync2Settings::default(),
                settings
            );
        } else if let Some(settings) = settings.get::<MmapSettings>() {
            note!(self, run, MmapSettings { transparent_huge_pages }, &MmapSettings::default(), settings);
        } else if let Some(settings) = settings.get::<LibaioSettings>() {
            note!(
                self,
                run,
                LibaioSettings { nowait, vectored, atomic },
                &LibaioSettings::default(),
                settings
            );
        } else if let Some(settings) = settings.get::<IoUringSettings>() {
            note!(
                self,
                run,
                IoUringSettings {
                    fixed_buffers,
                    registered_files,
                    submission_thread,
                    submission_thread_cpu,
                    hipri,
                    nonvectored,
                    uncached,
                    nowait,
                    atomic,
                    force_async_every,
                },
                &IoUringSettings::default(),
                settings
            );
        } else {
            assert_eq!(settings.get::<()>(), Some(&()), "{engine:?}: nobody looks at its settings");
        }
    }

    /// Fields that no case covers, and exceptions that are not needed.
    pub fn complaints(&self) -> Vec<String> {
        let excepted = |field: &str| NOT_THE_LOOPS.contains(&field);
        let is_one_loops = |field: &str| ONE_LOOPS.iter().any(|one| field.starts_with(one));
        let is_tried = |field: &str, [sync, queued]: [bool; 2]| {
            if is_one_loops(field) { sync || queued } else { sync && queued }
        };
        let untried = self.0.iter().filter(|(field, ran)| !is_tried(field, **ran) && !excepted(field));
        let needless = NOT_THE_LOOPS.iter().filter(|field| self.0.get(**field) != Some(&[false; 2]));
        untried
            .map(|(field, [sync, queued])| {
                format!("{field} is not tried: in sync {sync}, in queued {queued}")
            })
            .chain(needless.map(|field| format!("{field} is no exception")))
            .collect()
    }
}
