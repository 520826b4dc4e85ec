//! Options that have an effect only beside another one, or in some jobs: what each needs.
//!
//! Invariant: an option that is given and has no effect in any job it is given for is said once, where it was given. One of
//! `[global]` is for those jobs that it concerns.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use fiord_options::value::{ContinueOnError, MemoryKind, Size, ValueKind, ZoneMode};
use fiord_options::{Place, Problem, ProblemKind, Spec, job};

use crate::access::{Direction, Pattern};
use crate::build::section::ResolvedSection;
use crate::build::{pace, schedule, steady, stream, verification};

/// Options, and what they need.
pub(super) struct Condition {
    pub(super) options: &'static [&'static Spec],
    /// Whether they have an effect in a job.
    is_met: fn(&ResolvedSection<'_>) -> bool,
    /// The rest of "this option has no effect …".
    unless: &'static str,
    remedy: &'static str,
}

/// An option of a job that is in the table: where it was given, and the problem if it has no effect in this job.
pub(crate) type Judged = (Place, Option<Problem>);

/// Every condition.
pub(super) const CONDITIONS: &[Condition] = &[
    Condition {
        options: &[
            job::Pace::thinktime_spin,
            job::Pace::thinktime_blocks,
            job::Pace::thinktime_blocks_type,
            job::Pace::thinktime_iotime,
            job::Pace::thinkcycles,
        ],
        is_met: |section| section.options.pace.thinktime.us > 0,
        unless: "without thinktime",
        remedy: "for example thinktime=1ms",
    },
    Condition {
        options: &[job::Pace::rate_process, job::Pace::rate_arrivals],
        is_met: has_rate,
        unless: "without a rate",
        remedy: "for example rate_iops=1000",
    },
    Condition {
        options: &[job::Pace::rate_ignore_thinktime],
        is_met: |section| has_rate(section) && section.options.pace.thinktime.us > 0,
        unless: "without a rate and thinktime",
        remedy: "for example rate_iops=1000 with thinktime=1ms",
    },
    Condition {
        options: &[job::Pace::rate_cycle],
        is_met: |section| {
            [job::Pace::rate_min, job::Pace::rate_iops_min].iter().any(|least| section.is_given(least))
        },
        unless: "without a minimum rate",
        remedy: "for example rate_iops_min=100",
    },
    Condition {
        options: &[job::Pace::latency_window, job::Pace::latency_percentile, job::Pace::latency_run],
        is_met: |section| section.options.pace.latency_target.us > 0,
        unless: "without latency_target",
        remedy: "for example latency_target=10ms",
    },
    Condition {
        options: &[
            job::Steady::steadystate,
            job::Steady::steadystate_ramp_time,
            job::Steady::steadystate_check_interval,
        ],
        is_met: |section| steady::steady(section).is_some(),
        unless: "without a steadystate_duration of a second or more",
        remedy: "for example ss_dur=30",
    },
    Condition {
        options: &[
            job::Measure::log_avg_msec,
            job::Measure::log_window_value,
            job::Measure::log_offset,
            job::Measure::log_prio,
            job::Measure::log_compression,
            job::Measure::log_compression_cpus,
            job::Measure::log_store_compressed,
            job::Measure::log_alternate_epoch,
        ],
        is_met: |section| {
            let logs = [
                job::Measure::write_bw_log,
                job::Measure::write_lat_log,
                job::Measure::write_iops_log,
                job::Measure::write_hist_log,
            ];
            logs.iter().any(|log| section.is_given(log))
        },
        unless: "without a log",
        remedy: "for example write_lat_log=run",
    },
    Condition {
        options: &[job::Measure::log_hist_msec, job::Measure::log_hist_coarseness],
        is_met: |section| section.is_given(job::Measure::write_hist_log),
        unless: "without a log of histograms",
        remedy: "for example write_hist_log=run",
    },
    Condition {
        options: &[job::Measure::log_alternate_epoch_clock_id],
        is_met: |section| section.options.measure.log_alternate_epoch,
        unless: "without log_alternate_epoch",
        remedy: "add log_alternate_epoch=1",
    },
    Condition {
        options: &[job::Measure::error_dump],
        is_met: |section| {
            let goes_on = section.options.measure.continue_on_error != ContinueOnError::None;
            goes_on || section.is_given(job::Measure::ignore_error)
        },
        unless: "without errors that are ignored",
        remedy: "for example continue_on_error=io",
    },
    Condition {
        options: &[
            job::Verification::verify_policy,
            job::Verification::verify_offset,
            job::Verification::verify_interval,
            job::Verification::verify_fatal,
            job::Verification::verify_dump,
            job::Verification::verify_async,
            job::Verification::verify_backlog,
            job::Verification::verify_state_load,
            job::Verification::verify_header_format,
            job::Verification::verify_only,
        ],
        is_met: verification::verifies,
        unless: "without verify",
        remedy: "for example verify=crc32c",
    },
    Condition {
        options: &[job::Verification::verify_async_cpus],
        is_met: |section| section.options.verify.verify_async > 0,
        unless: "without verify_async",
        remedy: "for example verify_async=2",
    },
    Condition {
        options: &[job::Verification::verify_backlog_batch],
        is_met: |section| section.options.verify.verify_backlog > 0,
        unless: "without verify_backlog",
        remedy: "for example verify_backlog=1000",
    },
    Condition {
        options: &[job::Verification::verify_pattern_interval],
        is_met: |section| section.is_given(job::Verification::verify_pattern),
        unless: "without verify_pattern",
        remedy: "for example verify_pattern=0xdeadbeef",
    },
    Condition {
        options: &[job::Verification::verify],
        is_met: |section| pattern(section) != Pattern::Only(Direction::Trim),
        unless: "on trims",
        remedy: "verify what is read or written, or use rw=trimwrite",
    },
    Condition {
        options: &[job::Verification::trim_percentage],
        is_met: |section| {
            let reads_back = verification::verifies(section) && section.options.verify.do_verify;
            reads_back && pattern(section).includes(Direction::Write)
        },
        unless: "in a job that does not read back what it writes",
        remedy: "for example rw=write with verify=crc32c, without do_verify=0",
    },
    Condition {
        options: &[job::Verification::trim_backlog],
        is_met: |section| section.options.verify.trim_percentage > 0,
        unless: "without trim_percentage",
        remedy: "for example trim_percentage=10",
    },
    Condition {
        options: &[job::Verification::trim_backlog_batch],
        is_met: |section| section.options.verify.trim_backlog > 0,
        unless: "without trim_backlog",
        remedy: "for example trim_backlog=1000",
    },
    Condition {
        options: &[job::Amount::io_size],
        is_met: |section| !schedule::is_time_based(section.options),
        unless: "with time_based, which ends a job by its run time alone",
        remedy: "leave out one of them",
    },
    Condition {
        options: &[job::General::loops],
        // They multiply the number of I/Os, which also ends a job with a run time.
        is_met: |section| !schedule::is_time_based(section.options) || section.options.access.number_ios > 0,
        unless: "with time_based, which ends a job by its run time alone",
        remedy: "leave out one of them",
    },
    Condition {
        options: &[job::Files::zonerange],
        is_met: |section| section.options.files.zonemode == ZoneMode::Strided,
        unless: "without zonemode=strided",
        remedy: "add zonemode=strided",
    },
    Condition {
        options: &[job::Files::zoneskip],
        is_met: |section| section.options.files.zonemode != ZoneMode::None,
        unless: "without zonemode",
        remedy: "add zonemode=strided",
    },
    Condition {
        options: &[
            job::Files::zonecapacity,
            job::Files::read_beyond_wp,
            job::Files::max_open_zones,
            job::Files::job_max_open_zones,
            job::Files::ignore_zone_limits,
            job::Files::recover_zbd_write_error,
            job::Files::write_zone_remainder,
        ],
        is_met: |section| section.options.files.zonemode == ZoneMode::Zbd,
        unless: "without zonemode=zbd",
        remedy: "add zonemode=zbd",
    },
    Condition {
        options: &[
            job::Access::random_distribution,
            job::Access::norandommap,
            job::Access::softrandommap,
            job::Access::random_generator,
            job::Access::percentage_random,
        ],
        is_met: |section| section.options.access.rw.kind.is_random(),
        unless: "on sequential I/O",
        remedy: "for example rw=randread",
    },
    Condition {
        options: &[job::Access::rwmixread, job::Access::rwmixwrite],
        is_met: |section| pattern(section) == Pattern::Mixed,
        unless: "in a job of one direction",
        remedy: "for example rw=randrw",
    },
    Condition {
        options: &[job::Access::fsync, job::Access::fdatasync, job::Access::sync_file_range],
        is_met: |section| pattern(section).modifies() || section.is_given(job::Replay::read_iolog),
        unless: "in a job that only reads",
        remedy: "for example rw=write",
    },
    Condition {
        options: &[job::Access::spr_op, job::Access::spr_num_regions, job::Access::spr_cs],
        is_met: |section| section.options.access.sprandom,
        unless: "without sprandom=1",
        remedy: "add sprandom=1 and rw=randwrite",
    },
    Condition {
        options: &[job::Access::offset_align],
        is_met: |section| {
            let access = &section.options.access;
            [access.offset, access.offset_increment].iter().any(|size| matches!(size, Size::Percent(_)))
        },
        unless: "without an offset in percent",
        remedy: "for example offset=25%",
    },
    Condition {
        options: &[job::Buffers::buffer_compress_chunk],
        is_met: |section| section.is_given(job::Buffers::buffer_compress_percentage),
        unless: "without buffer_compress_percentage",
        remedy: "for example buffer_compress_percentage=50",
    },
    Condition {
        options: &[job::Buffers::hugepage_size],
        is_met: |section| {
            matches!(section.options.buffers.mem.kind, MemoryKind::ShmHuge | MemoryKind::MmapHuge)
        },
        unless: "without memory in huge pages",
        remedy: "for example iomem=mmaphuge",
    },
    Condition {
        options: &[job::Process::flow_id, job::Process::flow_sleep],
        is_met: |section| section.options.process.flow > 0,
        unless: "without flow",
        remedy: "for example flow=1",
    },
    Condition {
        options: &[job::Process::exit_what],
        is_met: |section| section.options.process.exitall.0 || section.options.process.exitall_on_error.0,
        unless: "without exitall or exitall_on_error",
        remedy: "add exitall",
    },
    Condition {
        options: &[job::Process::cgroup_weight, job::Process::cgroup_nodelete],
        is_met: |section| section.is_given(job::Process::cgroup),
        unless: "without cgroup",
        remedy: "for example cgroup=tests",
    },
    Condition {
        options: &[job::Process::cpus_allowed_policy],
        is_met: |section| {
            [job::Process::cpus_allowed, job::Process::cpumask].iter().any(|cpus| section.is_given(cpus))
        },
        unless: "without cpus_allowed",
        remedy: "for example cpus_allowed=0-3",
    },
    Condition {
        options: &[
            job::Replay::read_iolog_chunked,
            job::Replay::merge_blktrace_file,
            job::Replay::replay_no_stall,
            job::Replay::replay_time_scale,
            job::Replay::replay_redirect,
            job::Replay::replay_align,
            job::Replay::replay_scale,
            job::Replay::replay_skip,
        ],
        is_met: |section| section.is_given(job::Replay::read_iolog),
        unless: "without read_iolog",
        remedy: "for example read_iolog=trace",
    },
    Condition {
        options: &[job::Replay::merge_blktrace_scalars, job::Replay::merge_blktrace_iters],
        is_met: |section| section.is_given(job::Replay::merge_blktrace_file),
        unless: "without merge_blktrace_file",
        remedy: "for example merge_blktrace_file=merged",
    },
];

fn pattern(section: &ResolvedSection<'_>) -> Pattern {
    stream::pattern(section.options.access.rw.kind)
}

fn has_rate(section: &ResolvedSection<'_>) -> bool {
    Direction::ALL.into_iter().any(|direction| pace::has_rate(section.options, direction))
}

/// What the table says of each option that was given for these jobs, and does more than its default.
pub(crate) fn judge(section: &ResolvedSection<'_>) -> Vec<Judged> {
    let of_condition = |condition: &'static Condition| {
        condition.options.iter().filter_map(move |option| judge_one(section, condition, option))
    };
    CONDITIONS.iter().flat_map(of_condition).collect()
}

/// What the table says of the options of all jobs so far.
#[derive(Default)]
pub(crate) struct Judgements {
    /// Of each place where an option was given, in the order they were judged: the problem, unless it has an effect.
    problems: Vec<Option<Problem>>,
    indices: HashMap<Place, usize>,
}

impl Judgements {
    /// Adds those of one more section.
    pub fn add(&mut self, judged: Vec<Judged>) {
        for (place, problem) in judged {
            match self.indices.entry(place) {
                Entry::Vacant(new) => {
                    new.insert(self.problems.len());
                    self.problems.push(problem);
                }
                // An effect in one job is enough.
                Entry::Occupied(known) if problem.is_none() => self.problems[*known.get()] = None,
                Entry::Occupied(_) => {}
            }
        }
    }

    /// The problems of options that have an effect in none of the jobs they were given for, each once.
    pub fn without_effect(self) -> impl Iterator<Item = Problem> {
        self.problems.into_iter().flatten()
    }
}

fn judge_one(section: &ResolvedSection<'_>, condition: &Condition, option: &'static Spec) -> Option<Judged> {
    let setting = section.given.get(option)?;
    let is_number = option.kind.is_number() || option.kind == ValueKind::Flag;
    let is_nothing = |text: &str| text == option.default || (is_number && text == "0");
    let asks_for_nothing = setting.text().is_some_and(is_nothing);
    // What a study sets has the same effect whatever its job is.
    if asks_for_nothing || !setting.place.is_typed() {
        return None;
    }
    let unmet = || {
        let message = format!("{} has no effect {}", option.name, condition.unless);
        section.error(ProblemKind::NoEffect, option, message, condition.remedy).as_warning()
    };
    Some((setting.place.clone(), (!(condition.is_met)(section)).then(unmet)))
}
