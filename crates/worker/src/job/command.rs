//! The user's own commands around a job (`exec_prerun`, `exec_postrun`).
//!
//! Invariant: a command that fails never fails its job; the failure is reported to the user.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::ExitStatus;

use fiord_plan::shown::shown;
use fiord_sys::clock;
use fiord_sys::errno::error_text;
use fiord_sys::process::Shell;

use crate::files::target_opener::TargetOpener;

/// Interval between two checks of a command.
const EXEC_TICK_NS: u64 = 10_000_000;

/// Runs a shell command with its output in `log` in the current directory, and kills it as soon as `is_cancelled`.
/// As in fio the job continues if the command fails; the result is a warning about the failure.
pub(crate) fn exec(
    command: &OsStr,
    log: &Path,
    opener: &TargetOpener,
    is_cancelled: &dyn Fn() -> bool,
) -> Option<String> {
    let (command_shown, shown) = (shown(command), shown(log));
    let output = match opener.create_named(log, false) {
        Ok(output) => output,
        Err(failure) => {
            return Some(format!(
                "\"{command_shown}\" was not run, because the file for its output could not be created: {failure}"
            ));
        }
    };
    match wait_for(command, Some(output), is_cancelled) {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("\"{command_shown}\" ended with {status}; its output is in {shown}")),
        Err(error) => Some(format!(
            "\"{command_shown}\" could not be run with its output in {shown}: {}",
            error_text(&error)
        )),
    }
}

/// Runs a shell command with its output in `output`, or on standard error, and kills it as soon as `is_cancelled`.
///
/// # Errors
/// Why it could not be run.
pub(crate) fn wait_for(
    command: &OsStr,
    output: Option<File>,
    is_cancelled: &dyn Fn() -> bool,
) -> io::Result<ExitStatus> {
    let mut shell = Shell::start(command, output)?;
    loop {
        if let Some(status) = shell.ended()? {
            return Ok(status);
        }
        if is_cancelled() {
            return shell.kill();
        }
        clock::sleep_until_ns(clock::monotonic_ns() + EXEC_TICK_NS);
    }
}
