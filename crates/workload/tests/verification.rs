//! The operations of verified jobs on a made-up disk: what is written, what is read back, and in which pass.
//!
//! Invariant: the disk returns what was written last, or zeroes, unless a test changes that.

#![allow(clippy::unwrap_used, reason = "tests panic with a message when something is wrong")]

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use fiord_errno::Errno;
use fiord_options::table::find_job_option;
use fiord_options::{Lookup, Section, Spec};
use fiord_plan::facts::{Facts, RunSettings};
use fiord_plan::{Action, Job, Op, Purpose};
use fiord_workload::{OperationSource, Supply, VerifySource};

/// Of each block that the jobs have.
const BLOCK_BYTES: u64 = 4096;
/// In the file of each job.
const BLOCKS: u64 = 16;

/// A job that writes and verifies, with these options.
fn job(options: &[(&'static str, &str)]) -> Job {
    let common =
        [("filename", "disk"), ("ioengine", "psync"), ("bs", "4k"), ("size", "64k"), ("verify", "crc32c")];
    let specs = common.iter().chain(options).map(|(name, value)| (spec(name), *value));
    let facts = Facts { engines: fiord_engine::registry::ENGINES, ..Facts::default() };
    let sections = [Section::new("a").with(specs)];
    let (plan, _) = fiord_plan::build(&sections, &[], &facts, &RunSettings::default()).unwrap();
    plan.jobs.into_iter().next().unwrap()
}

fn spec(name: &str) -> &'static Spec {
    match find_job_option(name, false, &[]) {
        Lookup::Found(spec) => spec,
        other => unreachable!("{name}: {other:?}"),
    }
}

/// What a job has done: each operation with the pass that it was part of, and how it ended.
type Done = Vec<(u64, Op, Result<(), Errno>)>;

/// Blocks by their offsets.
type Disk = BTreeMap<u64, Vec<u8>>;

/// Operations in flight, at most.
const DEPTH: usize = 5;

/// Runs a job to its end, with as many operations in flight as it makes, which complete in their order; `between` may
/// change the disk when a pass has begun.
fn run(job: &Job, between: impl Fn(&mut Disk) + Send + 'static) -> Done {
    let verification = job.verification.as_ref().expect("it verifies");
    let mut source = VerifySource::new(job, verification, None, None).unwrap();
    let (send, receive) = mpsc::channel();
    // A source that goes round in circles is a failure, too.
    thread::spawn(move || {
        let (mut disk, mut pass) = (Disk::new(), 1);
        let (mut ops, mut in_flight, mut done) = (Vec::new(), VecDeque::new(), Vec::new());
        loop {
            let room = DEPTH - in_flight.len();
            let supply = if room > 0 { source.fill(&mut ops, room, 0) } else { Supply::AfterCompletion };
            if source.passes_begun() != pass {
                pass = source.passes_begun();
                between(&mut disk);
            }
            in_flight.extend(ops.drain(..).map(|op| (pass, op, begin(&mut source, &op))));
            match (supply, in_flight.pop_front()) {
                (Supply::Ready, Some(first)) => in_flight.push_front(first),
                (Supply::AfterCompletion | Supply::Ended, Some((pass, op, buffer))) => {
                    done.push((pass, op, end(&mut source, &mut disk, &op, buffer)));
                }
                (Supply::Ended, None) => break,
                (other, _) => unreachable!("{other:?} with nothing in flight"),
            }
        }
        send.send(done)
    });
    receive.recv_timeout(Duration::from_secs(120)).expect("the source ends")
}

/// The buffer of an operation that is issued.
fn begin(source: &mut VerifySource, op: &Op) -> Vec<u8> {
    let mut buffer = vec![0; op.length_bytes as usize];
    if op.action == Action::Write {
        source.prepare(op, &mut buffer);
    }
    buffer
}

/// The disk executes an operation.
fn end(source: &mut VerifySource, disk: &mut Disk, op: &Op, mut buffer: Vec<u8>) -> Result<(), Errno> {
    match op.action {
        Action::Write => {
            disk.insert(op.offset_bytes, buffer.clone());
        }
        Action::Trim => {
            disk.remove(&op.offset_bytes);
            buffer.clear();
        }
        Action::Read => {
            let stored = disk.get(&op.offset_bytes);
            stored.into_iter().for_each(|stored| buffer.clone_from(stored));
        }
        other => unreachable!("{other:?}"),
    }
    source.completed(op, &buffer)
}

/// The operations in short: how many of each kind follow each other.
fn runs(done: &Done) -> Vec<(Action, usize)> {
    let mut runs: Vec<(Action, usize)> = Vec::new();
    for (_, op, _) in done {
        match runs.last_mut() {
            Some((action, count)) if *action == op.action => *count += 1,
            Some(_) | None => runs.push((op.action, 1)),
        }
    }
    runs
}

/// The pass and the purpose of each operation that wrote or read back.
fn passes(done: &Done) -> Vec<(u64, Purpose)> {
    done.iter().map(|(pass, op, _)| (*pass, op.purpose)).collect()
}

fn faults(done: &Done) -> usize {
    done.iter().filter(|(_, _, result)| *result == Err(Errno::EILSEQ)).count()
}

#[test]
fn each_pass_is_read_back_before_the_next_begins() {
    let done = run(&job(&[("rw", "write"), ("loops", "3")]), |_| {});
    let blocks = |pass, purpose| vec![(pass, purpose); BLOCKS as usize];
    let wanted: Vec<(u64, Purpose)> = (1..=3)
        .flat_map(|pass| [blocks(pass, Purpose::Measured), blocks(pass, Purpose::VerifyRead)].concat())
        .collect();
    assert_eq!(passes(&done), wanted);
    assert_eq!(faults(&done), 0);
}

#[test]
fn a_job_that_reads_nothing_back_ends_with_its_passes() {
    let done = run(&job(&[("rw", "write"), ("loops", "2"), ("do_verify", "0")]), |_| {});
    let wanted = [(1, Purpose::Measured), (2, Purpose::Measured)].map(|one| vec![one; BLOCKS as usize]);
    assert_eq!(passes(&done), wanted.concat());
}

/// Reads of a mix are checked against what this job wrote, in whatever pass; files that are removed after each hold
/// nothing of earlier ones.
#[test]
fn only_files_that_stay_are_expected_to_hold_what_earlier_passes_wrote() {
    let mix = [("rw", "randrw"), ("loops", "4"), ("do_verify", "0")];
    let removed = [&mix[..], &[("unlink_each_loop", "1")]].concat();
    assert_eq!(faults(&run(&job(&removed), Disk::clear)), 0, "removed files are empty");
    assert!(faults(&run(&job(&mix), Disk::clear)) > 0, "files that stay have lost their blocks");
    let done = run(&job(&mix), |_| {});
    assert_eq!((faults(&done), done.len() as u64), (0, 4 * BLOCKS));
    assert!(done.iter().all(|(_, op, _)| op.length_bytes == BLOCK_BYTES));
}

/// As many writes as the backlog has room for, then as many blocks of it as are read back at once, in the order they were
/// written; what is left is read back at the end.
#[test]
fn a_backlog_is_read_back_while_the_job_writes() {
    let (write, read) = (Action::Write, Action::Read);
    let done = run(&job(&[("rw", "write"), ("verify_backlog", "4")]), |_| {});
    assert_eq!(runs(&done), [(write, 4), (read, 4)].repeat(4));
    let done = run(&job(&[("rw", "write"), ("verify_backlog", "6"), ("verify_backlog_batch", "4")]), |_| {});
    let wanted = [(write, 6), (read, 4), (write, 4), (read, 4), (write, 4), (read, 4), (write, 2), (read, 4)];
    assert_eq!(runs(&done), wanted);
    let offsets = |wanted: Action| -> Vec<u64> {
        let those = done.iter().filter(|(_, op, _)| op.action == wanted);
        those.map(|(_, op, _)| op.offset_bytes).collect()
    };
    assert_eq!(offsets(write), offsets(read));
    assert_eq!(faults(&done), 0);
}

#[test]
fn blocks_are_trimmed_while_the_job_writes_and_read_back_as_zeroes() {
    let (write, trim, read) = (Action::Write, Action::Trim, Action::Read);
    let all = [("rw", "write"), ("trim_percentage", "100"), ("trim_verify_zero", "1")];
    let done = run(&job(&all), |_| {});
    assert_eq!(runs(&done), [(write, 16), (trim, 16), (read, 16)], "at the end of the pass");
    let in_parts = [&all[..], &[("trim_backlog", "6"), ("trim_backlog_batch", "4")]].concat();
    let done = run(&job(&in_parts), |_| {});
    let wanted = [(write, 6), (trim, 4), (write, 6), (trim, 4), (write, 4), (trim, 8), (read, 16)];
    assert_eq!(runs(&done), wanted);
    assert_eq!(faults(&done), 0);
    // A share of the blocks, of which each is either trimmed and zeroes, or as it was written.
    let some = [("rw", "write"), ("trim_percentage", "50"), ("trim_verify_zero", "1")];
    let done = run(&job(&some), |_| {});
    let trims = runs(&done)[1];
    assert!(trims.0 == trim && (1..16).contains(&trims.1), "{:?}", runs(&done));
    assert_eq!(faults(&done), 0);
}
