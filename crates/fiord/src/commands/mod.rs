//! The one list of fiord's own subcommands. To add one: a file in this folder, and a line here.
//!
//! Invariant: only `main` uses this list; code that looks up a subcommand receives the list as an argument, so that no
//! command depends on the list that contains it.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use crate::arguments::{self, Invocation};
use crate::subcommand::{Subcommand, Subcommands};

mod agent;
mod calibrate;
mod capacity;
mod check;
mod compare;
mod completions;
mod crash_test;
mod devices;
mod engines;
mod explain;
mod help;
mod history;
mod hosts;
mod matrix;
mod model;
mod parse;
mod profile;
mod qualify;
mod quick;
mod record;
mod report;
mod show;
mod space;
mod sweep;
mod version;
mod watch;

/// In the order in which a new user needs them.
pub(crate) static ALL: Subcommands = Subcommands(&[
    of::<quick::Options>("quick", "[TARGET]", "a profile of a disk in half a minute"),
    of::<devices::Options>("devices", "[TARGET]", "the disks, and what they mean for a benchmark"),
    of::<check::Options>("check", "PROFILE [DIR]", "whether a disk is fit for etcd, PostgreSQL, ..."),
    of::<matrix::Options>("matrix", "[TARGET]", "block sizes by access patterns, as one table"),
    of::<qualify::Options>("qualify", "DEVICE", "an SSD in steady state, by SNIA's specification"),
    of::<capacity::Options>("capacity", "--p99=TIME", "the highest rate with a bounded latency"),
    of::<sweep::Options>("sweep", "... --over K=V", "a job at many values, and where gains end"),
    of::<watch::Options>("watch", "[TARGET]", "what the disks do now, and for whom"),
    of::<profile::Options>("profile", "JOB", "where the time of a job's I/O goes"),
    of::<record::Options>("record", "-o FILE", "what a program does on its files"),
    other::<model::Options>("model", "TRACE", "the job file that behaves as a trace does"),
    of::<crash_test::Options>("crash-test", "run|check", "whether synced writes survive a power cut"),
    of::<compare::Options>("compare", "A B", "what changed between runs, studies or reports"),
    of::<history::Options>("history", "", "earlier runs"),
    other::<show::Options>("show", "ID", "an earlier run again, in any format"),
    of::<report::Options>("report", "[ID|FILE]...", "a run, or two side by side, as a web page"),
    of::<explain::Options>("explain", "[ID|FILE|CODE]", "a report of fiord or fio in plain words"),
    other::<engines::Options>("engines", "", "the engines that work here, and fiord's own cost"),
    other::<hosts::Options>("hosts", "LIST", "what hosts are, before jobs run on them (--hosts)"),
    other::<agent::Options>("agent", "", "the other end of --hosts, on each host"),
    other::<calibrate::Options>("calibrate", "", "what fiord itself costs per I/O here"),
    other::<completions::Options>("completions", "SHELL", "completion of command lines in a shell"),
    other::<version::Options>("version", "", "the version of fiord"),
    other::<help::Options>("help", "[SUBCOMMAND]", "this list, or the help of a subcommand"),
]);

const fn of<I: Invocation>(name: &'static str, takes: &'static str, summary: &'static str) -> Subcommand {
    Subcommand { name, declaration: I::command, run: arguments::run::<I>, takes, summary, is_main: true }
}

/// One that the first page only names: it neither measures storage nor shows measurements in a way of its own.
const fn other<I: Invocation>(name: &'static str, takes: &'static str, summary: &'static str) -> Subcommand {
    Subcommand { is_main: false, ..of::<I>(name, takes, summary) }
}

/// The program called by its own name without an argument.
pub(crate) fn without_arguments() -> ExitCode {
    help::without_arguments(&ALL)
}

/// The subcommand requested; `None` if the program is used as fio. That is so when it is called by fio's name, but for the
/// agent that `fio --client` starts of itself; and a job file takes precedence over a subcommand of the same name, unless a
/// word follows that can be no job file beside it (`fiord hosts db1` where a list is called `hosts`). A directory is no job
/// file.
pub(crate) fn asked_for(arguments: &[OsString]) -> Option<&'static Subcommand> {
    let word = arguments.get(1)?;
    let is_another =
        |next: &OsString| next.as_encoded_bytes().starts_with(b"-") || is_job_file(Path::new(next));
    let is_file = is_job_file(Path::new(word)) && arguments.get(2).is_none_or(is_another);
    let is_allowed = |found: &&Subcommand| found.name == "agent" || !crate::fio::is_called_by(arguments);
    ALL.named(word).filter(|found| !is_file && is_allowed(found))
}

fn is_job_file(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| !found.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_overview_fits_a_terminal() {
        let overview = ALL.overview();
        assert!(overview.lines().all(|line| line.chars().count() <= 80), "{overview}");
        assert_eq!(overview.lines().count(), ALL.0.len());
    }

    #[test]
    fn by_the_name_of_fio_it_is_fio_and_the_agent_of_its_clients() {
        let asked = |words: &str| {
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            asked_for(&words).map(|found| found.name)
        };
        assert_eq!(["fiord quick", "fio quick", "/opt/fio version"].map(asked), [Some("quick"), None, None]);
        assert_eq!(asked("/opt/fio agent --connect=db1,8765"), Some("agent"));
    }

    #[test]
    fn a_misspelt_subcommand_is_suggested_and_a_job_file_is_not_taken_for_one() {
        assert_eq!(ALL.meant("qiuck".as_ref()).as_deref(), Some("fiord quick"));
        assert_eq!(ALL.meant("run".as_ref()).as_deref(), Some("fiord JOBFILE"));
        assert_eq!(ALL.meant("randread.fio".as_ref()), None);
    }
}
