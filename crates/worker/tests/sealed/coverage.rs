//! Which fields of the plan the tried jobs differ in.
//!
//! Invariant: structures are taken apart in full, so that a field that is added to the plan does not compile until it
//! stands here; then it fails until a job differs in it.

use std::collections::BTreeMap;

use fiord_plan::files::Files;
use fiord_plan::job::{Buffers, ErrorPolicy, Job, Limits, Measure};
use fiord_plan::{
    Access, Barriers, Depth, EngineSettings, IoUring, Libaio, Logs, Mmap, Pace, Pvsync2, Think,
};

use super::options;

/// Fields that only matter before the loop, after it, or to the monitor and the report.
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
    "Files.lay_out_contents",
    "Files.create_directories",
    "Files.create_on_open",
    "Files.create_serially",
    "Files.create_fsync",
    "Files.create_only",
    "Files.fallocate",
    "Files.unlink",
    "Files.append",
    "Files.allow_in_use",
    "Buffers.memory",
    "Buffers.hugepage_bytes",
    "Buffers.lock_bytes",
    "Measure.bandwidth",
    "Measure.bandwidth_interval_ms",
    "Measure.iops_interval_ms",
    "Measure.reported",
    "Measure.disk_stats",
    "Logs.coarseness",
    "Logs.value",
    "Logs.with_offset",
    "Logs.priority",
];

/// Fields by name, and whether a job differed in them.
#[derive(Default)]
pub struct Coverage(BTreeMap<&'static str, bool>);

/// Notes every field of a structure; a missing one does not compile.
macro_rules! note {
    ($coverage:expr, $type:ident { $($field:ident),* $(,)? }, $base:expr, $job:expr) => {{
        let ($type { $($field),* }, job) = ($base, $job);
        $(*$coverage.0.entry(concat!(stringify!($type), ".", stringify!($field))).or_default() |= *$field != job.$field;)*
    }};
}

impl Coverage {
    /// Compares a job with the one that nothing was changed of.
    pub fn note(&mut self, base: &Job, job: &Job) {
        note!(
            self,
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
                files,
                access,
                buffers,
                limits,
                pace,
                schedule,
                errors,
                measure,
                logs,
                process,
                presentation,
            },
            base,
            job
        );
        note!(self, Depth { max, submit, complete_min, complete_max, low }, &base.depth, &job.depth);
        note!(
            self,
            Files {
                list,
                open_at_once,
                direct,
                sync,
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
                append,
                fill_device,
                allow_in_use,
            },
            &base.files,
            &job.files
        );
        self.note_stream(base, job);
        note!(
            self,
            Buffers { fill, memory, bytes, align_bytes, hugepage_bytes, lock_bytes },
            &base.buffers,
            &job.buffers
        );
        note!(self, ErrorPolicy { passed_over, dump, latency_ns_max }, &base.errors, &job.errors);
        note!(
            self,
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
            },
            &base.measure,
            &job.measure
        );
        if let Some(logs) = &job.logs {
            note!(
                self,
                Logs {
                    files,
                    window_ms,
                    bandwidth_window_ms,
                    iops_window_ms,
                    histogram_window_ms,
                    coarseness,
                    value,
                    with_offset,
                    priority,
                    entries_ahead,
                    clock_id,
                },
                &options::logs(),
                logs
            );
        }
        self.note_engine(&job.engine);
    }

    fn note_stream(&mut self, base: &Job, job: &Job) {
        note!(
            self,
            Access {
                pattern,
                random,
                stride_bytes,
                ios_per_draw,
                sequencer,
                percent_random,
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
            Barriers { fsync_every, fdatasync_every, range_every, range_flags },
            &base.access.barriers,
            &job.access.barriers
        );
        note!(
            self,
            Limits { pass_bytes, loop_bytes, loops, number_ios, runtime_ns, time_based, ramp_ns, ramp_bytes },
            &base.limits,
            &job.limits
        );
        note!(
            self,
            Pace {
                bytes_per_s,
                ios_per_s,
                min_bytes_per_s,
                min_ios_per_s,
                cycle_ms,
                poisson,
                ignore_think_time,
                think,
            },
            &base.pace,
            &job.pace
        );
        if let Some(think) = &job.pace.think {
            note!(
                self,
                Think { pause_us, spin_us, cycles, every_ios, count_issued, io_time_us },
                &options::THINK,
                think
            );
        }
    }

    fn note_engine(&mut self, engine: &EngineSettings) {
        match engine {
            EngineSettings::Null
            | EngineSettings::Sync
            | EngineSettings::Psync
            | EngineSettings::Vsync
            | EngineSettings::Pvsync => {}
            EngineSettings::Pvsync2(settings) => {
                note!(self, Pvsync2 { hipri_percent, uncached, nowait }, &Pvsync2::default(), settings);
            }
            EngineSettings::Mmap(settings) => {
                note!(self, Mmap { transparent_huge_pages }, &Mmap::default(), settings);
            }
            EngineSettings::Libaio(settings) => {
                note!(self, Libaio { nowait, vectored }, &Libaio::default(), settings);
            }
            EngineSettings::IoUring(settings) => note!(
                self,
                IoUring {
                    fixed_buffers,
                    registered_files,
                    submission_thread,
                    submission_thread_cpu,
                    hipri,
                    nonvectored,
                    uncached,
                    nowait,
                    force_async_every,
                },
                &IoUring::default(),
                settings
            ),
        }
    }

    /// Fields that nobody tried, and exceptions that are none.
    pub fn complaints(&self) -> Vec<String> {
        let excepted = |field: &str| NOT_THE_LOOPS.contains(&field);
        let untried = self.0.iter().filter(|(field, tried)| !**tried && !excepted(field));
        let needless = NOT_THE_LOOPS.iter().filter(|field| self.0.get(**field) != Some(&false));
        untried
            .map(|(field, _)| format!("{field} is never tried"))
            .chain(needless.map(|field| format!("{field} is no exception")))
            .collect()
    }
}
