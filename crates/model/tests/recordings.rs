//! Recordings of programs that are made up: what of them is in the model.
//!
//! Invariant: nothing is run; each recording has the cause that it is named by, and a near neighbour without it.

use fiord_model::choose::{Origin, job_file};
use fiord_model::jobfile::JobFile;
use fiord_model::measure::Measurement;
use fiord_model::stream::Told;
use fiord_model::{CallKind, FileName, OpenFlags, own};
use fiord_plan::{EngineDescriptor, EngineName, Engines, Queueing};
use fiord_trace::Entry;

const ENGINES: Engines =
    Engines(&[&EngineDescriptor::of(EngineName::Sync, "for tests", Queueing::Synchronous)]);

/// A call: when it began, how long it took, its thread, its file, which, and its range.
type Call = (u64, u64, u32, u32, CallKind, u64, u64);

/// The job file of these calls, in the order of their times.
fn modelled(calls: &[Call]) -> JobFile {
    of_measured(&measured(calls).without_small().0)
}

fn of_measured(measured: &Measurement) -> JobFile {
    let files: Vec<FileName> = (0..64).map(|file| FileName::Path(format!("/data/{file}").into())).collect();
    let recorded = fiord_model::Recorded::default();
    job_file(measured, &Origin { name: "t", files: &files, is_blktrace: false, recorded: Some(&recorded) })
}

fn measured(calls: &[Call]) -> Measurement {
    let mut measured = Measurement::default();
    for (at_ns, duration_ns, thread, file, call, offset_bytes, length_bytes) in calls.iter().copied() {
        let kind = call.entry_kind();
        let entry = Entry { at_ns, file, kind, offset_bytes, length_bytes };
        let call = Some((call, OpenFlags::default()));
        measured.add(&entry, &Told { process: Some(thread), in_flight: None, call, duration_ns });
    }
    measured
}

/// An option of each section that has it.
fn values(model: &JobFile, option: &str) -> Vec<String> {
    let options = model.sections.iter().flat_map(|section| &section.options);
    options.filter(|one| one.name == option).map(|one| one.value.clone()).collect()
}

/// Writes that follow each other, with a pause of the program after each.
fn log(writes: u64, takes_ns: u64, every_ns: u64) -> Vec<Call> {
    let write = |number| (number * every_ns, takes_ns, 7, 0, CallKind::Write, number * 200, 200);
    (0..writes).map(write).collect()
}

#[test]
fn a_program_that_computes_between_quick_calls_has_its_rate() {
    let rates = |takes_ns| values(&modelled(&log(50_000, takes_ns, 12_500)), "rate_iops");
    // 50,000 writes in the time between the first and the last.
    assert_eq!(rates(4_000), ["80002"]);
    assert!(rates(12_000).is_empty(), "it is in its calls nearly all the time");
}

#[test]
fn time_in_calls_is_not_thought_beside_them() {
    // Bursts of writes, each with a sync of 20 ms after it, and 20 ms until the next.
    let thought = |sync_ns: u64| {
        let mut calls = Vec::new();
        for burst in 0..100 {
            let at_ns = burst * 41_000_000;
            let write =
                |number| (at_ns + number * 10_000, 10_000, 7, 0, CallKind::Write, burst * 100 + number, 1);
            calls.extend((0..100).map(write));
            calls.push((at_ns + 1_000_000, sync_ns, 7, 0, CallKind::Fsync, 0, 0));
        }
        let us = values(&modelled(&calls), "thinktime")[0].parse::<u64>().unwrap();
        us / 1000
    };
    assert!((18..=21).contains(&thought(20_000_000)), "{} ms", thought(20_000_000));
    assert!((36..=41).contains(&thought(1)), "{} ms", thought(1));
}

#[test]
fn there_are_as_many_syncs_as_were_seen_where_they_come_unevenly() {
    // Most come after two writes, and every third after five.
    let mut calls = Vec::new();
    let mut at_ns = 0;
    for commit in 0..999 {
        for _ in 0..if commit % 3 == 0 { 5 } else { 2 } {
            calls.push((at_ns, 1000, 7, 0, CallKind::Pwrite, at_ns, 4096));
            at_ns += 100_000;
        }
        calls.push((at_ns, 90_000, 7, 0, CallKind::Fdatasync, 0, 0));
    }
    assert_eq!(values(&modelled(&calls), "fdatasync"), ["3"]);
}

#[test]
fn syncs_are_not_left_out_with_small_files_nor_with_threads_that_only_sync() {
    let mut calls = log(100_000, 4_000, 12_500);
    // Small files, each synchronized once by the thread that wrote it, and the log by another one.
    for file in 1..21 {
        let at_ns = u64::from(file) * 50_000_000;
        calls.push((at_ns, 1000, 8, file, CallKind::Write, 0, 10));
        calls.push((at_ns + 1, 1000, 8, file, CallKind::Fsync, 0, 0));
        calls.push((at_ns + 2, 1000, 9, 0, CallKind::Fdatasync, 0, 0));
    }
    // One that is not synchronized hardly counts.
    calls.push((1_100_000_000, 1000, 8, 30, CallKind::Write, 0, 10));
    calls.sort_unstable_by_key(|call| call.0);
    let model = modelled(&calls);
    assert_eq!(values(&model, "filename").len(), 21, "{}", model.text());
    assert_eq!(values(&model, "fsync").len() + values(&model, "end_fsync").len(), 20);
    assert_eq!(values(&model, "fdatasync"), ["5000"]);
}

#[test]
fn small_files_are_synchronized_as_often_as_was_seen() {
    // As RocksDB does it: a log in pieces, of which each is sent to the disk, and small files that are synchronized once.
    let mut calls = Vec::new();
    let mut at_ns = 0;
    for file in 0..12 {
        let writes = 1 + u64::from(file) % 4;
        for write in 0..writes {
            at_ns += 1_000_000;
            calls.push((at_ns, 1000, 7, file, CallKind::Write, write * 4096, 4096));
            if write + 1 == writes {
                calls.push((at_ns + 2000, 1000, 7, file, CallKind::SyncFileRange, 0, 4096));
                calls.push((at_ns + 4000, 1000, 7, file, CallKind::Fdatasync, 0, 0));
            }
        }
    }
    let model = modelled(&calls);
    let made = own::measure(&model, ENGINES, 1000).expect("a job file that can be planned");
    let syncs: u64 = made.streams().iter().flat_map(|one| &one.syncs).map(|one| one.count).sum();
    // Of a file that is written once a job can only make one.
    assert_eq!(syncs, 24 - 3, "{}", model.text());
}

#[test]
fn a_file_that_is_replaced_is_synchronized_each_time() {
    // A database that is opened twice.
    let write = |at_ns| (at_ns, 1000, 7, 0, CallKind::Write, 0, 36);
    let sync = |at_ns| (at_ns, 1000, 7, 0, CallKind::Fsync, 0, 0);
    let model = modelled(&[write(0), sync(1), write(2_000_000), sync(2_000_001)]);
    let made = own::measure(&model, ENGINES, 1000).expect("a job file that can be planned");
    assert_eq!(made.streams()[0].syncs[0].count, 2, "{}", model.text());
}

#[test]
fn sizes_that_are_drawn_do_not_make_more_synchronizations() {
    // A head and a page for each commit.
    let mut calls = Vec::new();
    let mut offset_bytes = 0;
    for commit in 0..200 {
        for length_bytes in [24, 4096] {
            let at_ns = commit * 2_000_000 + length_bytes;
            calls.push((at_ns, 1000, 7, 0, CallKind::Write, offset_bytes, length_bytes));
            offset_bytes += length_bytes;
        }
        calls.push((commit * 2_000_000 + 9000, 1000, 7, 0, CallKind::Fdatasync, 0, 0));
    }
    let model = modelled(&calls);
    let made = own::measure(&model, ENGINES, 2000).expect("a job file that can be planned");
    let stream = &made.streams()[0];
    assert_eq!((stream.ios(), stream.syncs[1].count), (400, 199), "{}", model.text());
    let bytes = stream.tracks[1].bytes as f64;
    assert!((bytes / offset_bytes as f64 - 1.0).abs() < 0.2, "{bytes} of {offset_bytes}");
}

#[test]
fn pauses_of_files_that_pass_beside_each_other_are_not_added_up() {
    // Each file in bursts of ten, and none waits for another.
    let mut calls = Vec::new();
    for burst in 0..20_u64 {
        for file in 0..20 {
            let at_ns = burst * 100_000_000 + u64::from(file) * 1_000_000;
            let write = |number| {
                (at_ns + number * 1000, 100, 7, file, CallKind::Write, (burst * 10 + number) * 4096, 4096)
            };
            calls.extend((0..10).map(write));
        }
    }
    calls.sort_unstable_by_key(|call| call.0);
    let model = of_measured(&measured(&calls).compact());
    let [us, ios] =
        ["thinktime", "thinktime_blocks"].map(|option| values(&model, option)[0].parse::<f64>().unwrap());
    let seconds = us / 1e6 * (20.0 * 20.0 * 10.0 / ios);
    assert!((1.5..2.5).contains(&seconds), "{seconds} s of 2 s\n{}", model.text());
}
