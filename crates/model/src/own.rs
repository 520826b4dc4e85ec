//! The operations of a job file itself, without any I/O, measured as a trace is.
//!
//! Invariant: what is measured is what a run would issue: the plan and its streams are those of a run, on files that do not
//! exist yet. Only the times are made up, by a storage that takes no time.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;

use fiord_options::environment::{Environment, KeywordValues};
use fiord_options::{Problem, cli};
use fiord_plan::{Action, Engines, Facts, Job, Op, Pace, RunSettings, build};
use fiord_stats::{Capped, Random};
use fiord_trace::{Entry, EntryKind};
use fiord_workload::Stream;

use crate::jobfile::JobFile;
use crate::measure::Measurement;
use crate::stream::Told;

/// The name that errors give the job file.
const NAME: &str = "model.fio";
/// Operations that are generated at once.
const BATCH: usize = 64;

/// Measures the operations of a job file, at most so many of each of its jobs. The streams have the numbers of those that
/// its sections stand for as their files.
///
/// # Errors
/// What is wrong with the job file, which is a mistake of its maker.
pub fn measure(job_file: &JobFile, engines: Engines, operations_max: u64) -> Result<Measurement, String> {
    let jobs = planned(&job_file.text(), engines)?;
    let mut measurement = Measurement::default();
    // What belongs to which stream, by the number that each file of it is given.
    let (mut owners, mut numbers) = (Vec::new(), HashMap::new());
    for job in &jobs {
        let Some(section) = job_file.sections.get(job.section as usize) else { continue };
        let stream = section.stream;
        let mut number = |file: u32| {
            *numbers.entry((stream, file)).or_insert_with(|| {
                owners.push(u32::capped(stream));
                u32::capped(owners.len()) - 1
            })
        };
        operations(job, operations_max, |at_ns, op| {
            if let Some(kind) = kind(op.action) {
                let Op { offset_bytes, length_bytes, file, .. } = *op;
                let entry = Entry { at_ns, file: number(file), kind, offset_bytes, length_bytes };
                measurement.add(&entry, &Told::default());
            }
        })?;
    }
    Ok(measurement.grouped(
        |stream| owners[stream.identity.file as usize],
        |owner, stream| {
            stream.identity.file = *owner;
        },
    ))
}

/// The jobs of a job file.
///
/// # Errors
/// What is wrong with it.
pub fn planned(text: &str, engines: Engines) -> Result<Vec<Job>, String> {
    let named = engines.names();
    let read = |_: &OsStr| -> io::Result<Vec<u8>> { Ok(text.as_bytes().to_vec()) };
    let environment =
        Environment { files: &read, variables: &|_| None, keywords: KeywordValues::UNKNOWN, engines: &named };
    let parsed = cli::read(&[NAME], &environment).map_err(|problems| joined(&problems))?;
    let facts = Facts { engines, ..Facts::default() };
    let (plan, _) = build(&parsed.sections, &parsed.waiting, &facts, &RunSettings::default())
        .map_err(|refusal| joined(&refusal.problems))?;
    let unplannable: Vec<Problem> = plan.unplannable().cloned().collect();
    if unplannable.is_empty() { Ok(plan.jobs) } else { Err(joined(&unplannable)) }
}

fn joined(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Generates the operations of a job, with times.
fn operations(job: &Job, operations_max: u64, mut add: impl FnMut(u64, &Op)) -> Result<(), String> {
    let mut stream = Stream::new(&job.access, &job.files, &job.limits).map_err(|why| why.to_string())?;
    let mut clock = Clock::new(&job.pace, job.number);
    let mut batch = Vec::with_capacity(BATCH);
    let mut left = operations_max;
    while left > 0 {
        batch.clear();
        if stream.fill_pass(&mut batch, BATCH.min(usize::capped(left))) > 0 {
            left -= batch.len() as u64;
            batch.iter().for_each(|op| add(clock.next(op.action), op));
            continue;
        }
        if job.files.end_fsync && job.files.writable {
            for file in 0..u32::capped(job.files.list.len()) {
                let op = Op::new(Action::Sync, file, 0, 0);
                add(clock.next(op.action), &op);
            }
        }
        if !stream.begin_next_pass() {
            break;
        }
    }
    Ok(())
}

fn kind(action: Action) -> Option<EntryKind> {
    match action {
        Action::Read => Some(EntryKind::Read),
        Action::Write => Some(EntryKind::Write),
        Action::Trim => Some(EntryKind::Trim),
        Action::Sync => Some(EntryKind::Sync),
        Action::DataSync => Some(EntryKind::DataSync),
        Action::RangeSync(_) => Some(EntryKind::RangeSync),
        Action::ResetZone => None,
    }
}

/// When operations are due, by rates and think time alone.
struct Clock<'a> {
    pace: &'a Pace,
    random: Random,
    /// When the next of each direction is due.
    due_ns: [f64; 3],
    now_ns: f64,
    issued: u64,
}

impl Clock<'_> {
    fn new(pace: &Pace, number: u32) -> Clock<'_> {
        Clock { pace, random: Random::new(u64::from(number)), due_ns: [0.0; 3], now_ns: 0.0, issued: 0 }
    }

    fn next(&mut self, action: Action) -> u64 {
        let Some(direction) = action.direction() else { return u64::capped(self.now_ns) };
        let index = direction.index();
        if let Some(think) = &self.pace.think
            && self.issued > 0
            && think.every_ios > 0
            && self.issued.is_multiple_of(think.every_ios.into())
        {
            self.now_ns += think.pause_us as f64 * 1000.0;
        }
        self.issued += 1;
        if let Some(per_s) = self.pace.ios_per_s[index].filter(|per_s| *per_s > 0) {
            self.now_ns = self.now_ns.max(self.due_ns[index]);
            let mean_ns = 1e9 / per_s as f64;
            self.due_ns[index] += if self.pace.poisson { self.random.exponential(mean_ns) } else { mean_ns };
        }
        u64::capped(self.now_ns)
    }
}
