//! The logs of a run that its controller writes.
//!
//! Invariant: of what is not sent yet a bounded part is kept (`Outbox`), and nothing is written here: whoever is faster
//! waits.

use std::io::{self, Write};
use std::sync::Arc;

use fiord_options::environment::KeywordValues;
use fiord_plan::{Job, LogKind, Plan};
use fiord_session::run::logs::LogReceiver;
use fiord_stats::Capped;
use fiord_wire::message::{Log, LogPiece, Logs};

use crate::link::Link;

/// The longest piece, in bytes.
const PIECE_BYTES: usize = 32 << 10;

/// The logs of a plan, in the order they are numbered in.
pub(crate) fn of(plan: &Plan, keywords: &KeywordValues) -> Logs {
    let of_job = |job: &Job| -> Vec<Log> {
        let number =
            |kind| LogKind::ALL.iter().position(|known| *known == kind).unwrap_or(LogKind::ALL.len());
        let (section, clone, job_number) = (job.section, job.clone, job.number);
        let log = |kind| Log { section, clone, job: job_number, kind: u8::capped(number(kind)) };
        job.logs.iter().flat_map(|logs| &logs.files).map(|file| log(file.kind)).collect()
    };
    Logs {
        keywords: (keywords.cpus, keywords.memory_mib, keywords.page_bytes),
        list: plan.jobs.iter().flat_map(of_job).collect(),
    }
}

/// Sends the logs of a run.
pub(crate) struct SentLogs {
    link: Arc<Link>,
    /// By number of the job, the number of its first log.
    first: Vec<u32>,
}

impl SentLogs {
    pub(crate) fn new(plan: &Plan, link: &Arc<Link>) -> SentLogs {
        let counts =
            plan.jobs.iter().map(|job| job.logs.as_ref().map_or(0, |logs| u32::capped(logs.files.len())));
        let first = counts.scan(0, |next, count| {
            *next += count;
            Some(*next - count)
        });
        SentLogs { link: Arc::clone(link), first: first.collect() }
    }
}

impl LogReceiver for SentLogs {
    fn receive(&self, job: u32, position: usize) -> Box<dyn Write + Send> {
        let first = self.first.get(job as usize).copied().unwrap_or(u32::MAX);
        let log = first.saturating_add(u32::capped(position));
        Box::new(SentLog { link: Arc::clone(&self.link), log })
    }
}

/// One of them.
struct SentLog {
    link: Arc<Link>,
    log: u32,
}

impl Write for SentLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(PIECE_BYTES)];
        match self.link.send_piece(LogPiece { log: self.log, bytes: bytes.to_vec(), is_last: false }) {
            true => Ok(bytes.len()),
            false => Err(io::Error::from(io::ErrorKind::BrokenPipe)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for SentLog {
    fn drop(&mut self) {
        self.link.send_piece(LogPiece { log: self.log, bytes: Vec::new(), is_last: true });
    }
}
