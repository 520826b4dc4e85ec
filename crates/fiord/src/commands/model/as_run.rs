//! The model as run: runs the job file, recorded as the program was, and measures the recording.
//!
//! Invariant: all that is written is in a new directory below the one that the user names, and is removed at the end.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fiord_engine::registry::ENGINES;
use fiord_model::{RecordingHead, own};
use fiord_report::path::shown;
use fiord_session::study::scratch::ScratchFiles;
use fiord_stats::Gather;
use fiord_sys::errno::error_text;
use fiord_sys::{process, signal};

use crate::arguments::CommandError;
use crate::output_file::OutputFile;
use crate::record::{self, Form, Settings, Source, Tracing};

/// Files of fiord's own in the directory, which no section can have.
const JOB_FILE: &str = "job-file";
const RECORDING: &str = "recording";
const REPORT: &str = "report";

/// Runs the job file on new files below this directory. `read` is given its recording, and whether a file is one of the model;
/// returns what that makes of it, and what the recording lacks, in sentences.
pub(super) fn recorded<T>(
    text: &str,
    below: &Path,
    read: impl FnOnce(&Path, &dyn Fn(&Path) -> bool) -> Result<T, String>,
) -> Result<(T, Vec<String>), CommandError> {
    let tracing = Tracing::prepare().map_err(|why| {
        format!("{why},\n  or leave out --verify: then operations are compared, and no run")
    })?;
    let failed = |path: &Path, error: &std::io::Error| {
        format!("--verify={}: {}; name a directory to run the model in", shown(path), error_text(error))
    };
    let below = fs::canonicalize(below).map_err(|error| failed(below, &error))?;
    // A signal ends the run; the files are removed after it.
    let _ = signal::record_stop_requests();
    let mut scratch = ScratchFiles::create(&below, "model").map_err(|(path, error)| failed(&path, &error))?;
    let jobs = own::planned(text, ENGINES)?;
    let files: BTreeSet<PathBuf> =
        jobs.iter().flat_map(|job| &job.files.list).map(|file| file.path.clone()).gather();
    let own = [JOB_FILE, RECORDING, REPORT].map(PathBuf::from);
    for name in files.iter().chain(&own).filter_map(|file| file.to_str()) {
        scratch.record(name).map_err(|error| failed(&below, &error))?;
    }
    let in_scratch = |name: &str| scratch.path().join(name);
    OutputFile::new("--verify", &in_scratch(JOB_FILE), None)?.write(text.as_bytes())?;
    // Its files are named from there, so that no option is made of a path.
    std::env::set_current_dir(scratch.path()).map_err(|error| failed(&below, &error))?;
    let words = |last: &str| -> Vec<OsString> {
        let fiord = std::env::current_exe().unwrap_or_else(|_| "fiord".into()).into_os_string();
        let report = format!("--output={REPORT}");
        let options = ["--no-history", "--eta=never", &report, last, JOB_FILE];
        [fiord].into_iter().chain(options.map(OsString::from)).collect()
    };
    // The files that are read are made before, and are no part of the recording.
    let making = words("--create_only=1");
    let made = process::in_ordinary_state(Command::new(&making[0]).args(&making[1..])).output();
    let made = made.map_err(|error| failed(&below, &error))?;
    if !made.status.success() {
        let why = String::from_utf8_lossy(&made.stderr);
        return Err(format!("the files of the model cannot be made: {}", why.trim()).into());
    }
    let output = OutputFile::new("--verify", &in_scratch(RECORDING), None)?;
    let not_written = |error: &std::io::Error| output.not_written(error);
    let mut opened = output.open()?;
    let file = opened.file().try_clone().map_err(|error| not_written(&error))?;
    let settings = Settings { time: None, form: Form::Recording, head: RecordingHead::default() };
    let source = Source::Command(words("--create_only=0"));
    let outcome = record::record(tracing, source, &settings, file, || opened.keep(), |_| (), &not_written)?;
    if let Some(error) = &outcome.failure {
        return Err(not_written(error));
    }
    match outcome.status {
        Some(status) if status.success() => {}
        Some(status) => return Err(format!("the model did not run to its end: {status}").into()),
        None => return Err("the run of the model was ended".to_string().into()),
    }
    let is_of_model = |path: &Path| path.strip_prefix(scratch.path()).is_ok_and(|name| files.contains(name));
    Ok((read(&in_scratch(RECORDING), &is_of_model)?, record::missing(&outcome.end, 0)))
}
