//! Writes the log files of a run.
//!
//! Invariant: every file that was planned is there afterwards, empty when its job measured nothing; one that cannot
//! be written costs the others nothing.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};

use fiord_plan::{LogFile, Logs, Plan};
use fiord_report::log;
use fiord_report::path::shown;
use fiord_stats::JobLogs;
use fiord_worker::{Door, WorkerReport};

/// Writes the logs of all jobs; returns a line for each file that could not be written.
pub(crate) fn write(plan: &Plan, workers: &[WorkerReport]) -> Vec<String> {
    let door = Door::default();
    let mut begun = BTreeSet::new();
    let mut failures = Vec::new();
    for (job, worker) in plan.jobs.iter().zip(workers) {
        let Some(planned) = &job.logs else { continue };
        for file in &planned.files {
            // Jobs that share a file write one behind the other.
            let first = begun.insert(file.path.as_path());
            let opened = door.create(&file.path, !first || file.appends).map_err(|failure| failure.reason());
            let written = opened.and_then(|opened| {
                write_one(opened, file, planned, worker.logs.as_deref()).map_err(|error| error.to_string())
            });
            if let Err(why) = written {
                failures.push(format!("fiord: job {}: log {}: {why}\n", job.name, shown(&file.path)));
            }
        }
    }
    failures
}

fn write_one(opened: File, file: &LogFile, planned: &Logs, logs: Option<&JobLogs>) -> io::Result<()> {
    let mut opened = BufWriter::with_capacity(1 << 18, opened);
    if let Some(logs) = logs.filter(|_| file.recorded) {
        for piece in log::pieces(file.kind, planned, logs) {
            opened.write_all(piece.as_bytes())?;
        }
    }
    opened.flush()
}
