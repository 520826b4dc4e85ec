//! Options of the command line that are about the program, not about a job.
//!
//! Invariant: nothing here changes what a job does to a disk, `--readonly` excepted.

use crate::place::Problem;
use crate::resolve::{Given, resolve_settings};
use crate::section::Setting;
use crate::spec::Scope;
use crate::table::options;
use crate::value::*;

options! {
    /// The program's options, resolved.
    pub struct ProgramOptions, scope Scope::Program;

    "What to do" {
        /// Check options and job files, and do no I/O.
        parse_only as "parse-only": Switch = 0;
        /// Print the jobs of the job files as command lines.
        showcmd: Switch = 0;
        /// Run only the sections of this name. May be repeated; `[global]` always counts.
        section: Text;
        /// Refuse every job that writes or trims.
        readonly: Switch = 0;
        /// Make errors of those warnings about options that fio has as well.
        warnings_fatal as "warnings-fatal": Switch = 0;
        /// Make errors of all warnings about options. fiord's own.
        strict: Switch = 0;
        /// Most workers there may be.
        max_jobs as "max-jobs": u32 = 4096;
        /// Directory for state files.
        aux_path as "aux-path": Text;
        /// Memory for shared structures, in KiB.
        #[ignored("fiord allocates what it needs and has no pool to size")]
        alloc_size as "alloc-size": u32;
        /// Merge traces and do no I/O.
        #[pending("traces are not merged")]
        merge_blktrace_only as "merge-blktrace-only": Switch = 0;
    }

    "Report" {
        /// Write the report to this file.
        output: Text;
        /// Format of the report, or several separated by commas.
        output_format as "output-format": OutputFormats = "normal";
        /// Report in terse format, version 3.
        minimal: Switch = 0;
        /// Add a terse report to the others.
        append_terse as "append-terse": Flag = 0;
        /// Version of the terse format.
        terse_version as "terse-version": u32 = 3, in 2..=5;
        /// Log the bandwidth of all jobs together.
        bandwidth_log as "bandwidth-log": Switch = 0;
        /// Do not keep this run in the history (`fiord history`). fiord's own; under the name `fio` no run is kept.
        no_history as "no-history": Switch = 0;
        /// When the progress line is shown.
        eta: EtaWhen = "auto";
        /// Time between two updates of the progress line; at least 250 ms.
        eta_interval as "eta-interval": Seconds = "1s";
        /// Start a new progress line after this time.
        eta_newline as "eta-newline": Seconds;
        /// Print a full report of the run so far after each such time.
        status_interval as "status-interval": Seconds;
        /// Report how idle the CPUs were.
        idle_prof as "idle-prof": IdleProf;
    }

    "Help" {
        /// Print this overview.
        help: Switch = 0;
        /// Print the version.
        version: Switch = 0;
        /// Explain a job option, or list all of them.
        cmdhelp: OptionalText;
        /// List the engines, an engine's options, or explain one of them (`ENGINE,OPTION`).
        enghelp: OptionalText;
        /// Print what goes on inside.
        #[pending("there are no debug messages")]
        debug: Text;
        /// Measure the speed of checksums, of all or of those listed (`md5,crc32c`); `help` lists them.
        crctest: OptionalText;
        /// Check the processor's clock.
        cpuclock_test as "cpuclock-test": Switch = 0;
        /// Measure the speed of copying memory.
        #[pending("copying memory is not measured")]
        memcpytest: OptionalText;
        /// Print a compressed log.
        #[pending("logs are not compressed")]
        inflate_log as "inflate-log": Text;
    }

    "Several hosts" {
        /// Wait for jobs from clients.
        #[pending("jobs run on this host only")]
        server: OptionalText;
        /// Run the server in the background, and write its process number to this file.
        #[pending("jobs run on this host only")]
        daemonize: Text;
        /// Run the jobs on this host, or on the hosts this file lists.
        #[pending("jobs run on this host only")]
        client: Text;
        /// Have the server read this job file of its own.
        #[pending("jobs run on this host only")]
        remote_config as "remote-config": Text;
    }

    "Triggers" {
        /// Run the trigger when this file appears.
        #[pending("triggers come with verification after a power cut")]
        trigger_file as "trigger-file": Text;
        /// Run the trigger after this time.
        #[pending("triggers come with verification after a power cut")]
        trigger_timeout as "trigger-timeout": Seconds = 0;
        /// Command to run as the trigger.
        #[pending("triggers come with verification after a power cut")]
        trigger: Text;
        /// Command to run as the trigger on the server.
        #[pending("triggers come with verification after a power cut")]
        trigger_remote as "trigger-remote": Text;
    }
}

/// Shortest time between two updates of the progress line.
const MIN_ETA_INTERVAL_US: u64 = 250_000;

/// Resolves the program's options in the order they were given.
pub fn resolve_program(settings: &[Setting]) -> (ProgramOptions, Given, Vec<Problem>) {
    let (program, given, mut problems) = resolve_settings::<ProgramOptions>(settings.to_vec());
    let mut too_short = |name: &str, shortest: &str| {
        if let Some(setting) = given.get(name) {
            let message = format!("the time is too short, at least {shortest} is needed");
            problems.push(Problem::error(setting.value_place.clone(), name, message, ""));
        }
    };
    if program.eta_interval.us < MIN_ETA_INTERVAL_US {
        too_short("eta-interval", "250ms");
    }
    if program.status_interval.is_some_and(|interval| interval.us == 0) {
        too_short("status-interval", "1ms");
    }
    (program, given, problems)
}
