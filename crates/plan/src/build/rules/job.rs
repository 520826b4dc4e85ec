//! Rules about a job as a whole: how many there are, how long they run, and by which clocks.
//!
//! Invariant: a clock is one that the kernel has.

use fiord_options::shown::shown;
use fiord_options::{Problem, ProblemKind, Spec, job};

use crate::build::section::ResolvedSection;

pub(super) fn numjobs_is_at_least_one(section: &ResolvedSection<'_>) -> Option<Problem> {
    (section.options.general.numjobs == 0).then(|| {
        section.error(
            ProblemKind::InvalidValue,
            job::General::numjobs,
            "a job needs at least one worker",
            "allowed: 1 or more",
        )
    })
}

/// fio warns, and the job ends when its size is done.
pub(super) fn time_based_needs_runtime(section: &ResolvedSection<'_>) -> Option<Problem> {
    let options = section.options;
    (options.time.time_based.0 && options.time.runtime.us == 0).then(|| {
        section
            .error(
                ProblemKind::NoEffect,
                job::Time::time_based,
                "time_based has no effect without runtime",
                "for example runtime=60",
            )
            .as_fios_warning()
    })
}

/// fio takes it in a job file, and does not act on it either.
pub(super) fn profile_acts_on_the_command_line(section: &ResolvedSection<'_>) -> Option<Problem> {
    section.options.general.profile.as_ref().map(|profile| {
        let name = shown(&profile.0);
        let message =
            format!("profile={name} has no effect in a job: its jobs are those of the command line");
        section
            .error(
                ProblemKind::NoEffect,
                job::General::profile,
                message,
                format!("on the command line, before any --name: --profile={name}"),
            )
            .as_warning()
    })
}

pub(super) fn log_clock_exists(section: &ResolvedSection<'_>) -> Option<Problem> {
    let id = section.options.measure.log_alternate_epoch_clock_id;
    clock_exists(section, job::Measure::log_alternate_epoch_clock_id, id)
}

pub(super) fn start_clock_exists(section: &ResolvedSection<'_>) -> Option<Problem> {
    clock_exists(section, job::Time::job_start_clock_id, section.options.time.job_start_clock_id)
}

fn clock_exists(section: &ResolvedSection<'_>, option: &'static Spec, id: u32) -> Option<Problem> {
    // The kernel's clocks; 10 was abandoned.
    (id > 11 || id == 10).then(|| {
        let message = format!("the kernel has no clock {id}");
        section.error(ProblemKind::InvalidValue, option, message, "allowed: 0 to 9, 11")
    })
}
