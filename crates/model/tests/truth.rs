//! Jobs whose options are known: their operations, measured and modelled, give the options back.
//!
//! Invariant: a case is made of a seed alone, which a failure names; nothing is run.

use fiord_model::choose::{Origin, job_file};
use fiord_model::fidelity::{Fidelity, Figure, Verdict};
use fiord_model::jobfile::{Chosen, JobFile, Section};
use fiord_model::measure::Measurement;
use fiord_model::stream::Told;
use fiord_model::{CallKind, EntryKind, FileName, OpenFlags, Recorded, own};
use fiord_plan::{Action, EngineDescriptor, EngineName, Engines, Job, Queueing, SyncMode};
use fiord_stats::Random;
use fiord_trace::Entry;
use fiord_workload::Stream;

const ENGINES: Engines = Engines(&[
    &EngineDescriptor::of(EngineName::Psync, "for tests", Queueing::Synchronous),
    &EngineDescriptor::of(EngineName::Sync, "for tests", Queueing::Synchronous),
    &EngineDescriptor::of(EngineName::Vsync, "for tests", Queueing::Synchronous),
    &EngineDescriptor::of(EngineName::Pvsync, "for tests", Queueing::Synchronous),
    &EngineDescriptor::of(EngineName::Pvsync2, "for tests", Queueing::Synchronous),
    &EngineDescriptor::of(EngineName::Libaio, "for tests", Queueing::Queued),
]);

/// Engines, and what a recording tells of their calls.
const CALLS: [(&str, CallKind, CallKind); 5] = [
    ("psync", CallKind::Pread, CallKind::Pwrite),
    ("sync", CallKind::Read, CallKind::Write),
    ("vsync", CallKind::Readv, CallKind::Writev),
    ("pvsync", CallKind::Preadv, CallKind::Pwritev),
    ("pvsync2", CallKind::Preadv2, CallKind::Pwritev2),
];

/// Options that a model must not have where the job has none.
const NEVER_ADDED: [&str; 7] =
    ["sync", "fsync", "fdatasync", "sync_file_range", "end_fsync", "rwmixread", "random_distribution"];

/// What is recorded of a job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// By `write_iolog`.
    Iolog,
    /// By `fiord record`.
    Recording,
    /// Its block requests.
    Blktrace,
}

/// A job of one section with these options.
fn job(options: &[(&'static str, String)]) -> JobFile {
    let chosen =
        |(name, value): &(&'static str, String)| Chosen { name, value: value.clone(), why: String::new() };
    let options = options.iter().map(chosen).collect();
    let section = Section { name: "job".to_string(), stream: 0, about: String::new(), options };
    JobFile { about: Vec::new(), global: Vec::new(), sections: vec![section] }
}

/// What a recording of this form tells of an operation of a job.
fn told(form: Form, job: &Job, action: Action) -> Told {
    let is_sync = |mode: SyncMode, flag: OpenFlags| Some(flag).filter(|_| job.files.sync == mode);
    let flags = [
        Some(OpenFlags::DIRECT).filter(|_| job.files.direct),
        is_sync(SyncMode::Sync, OpenFlags::SYNC),
        is_sync(SyncMode::DataSync, OpenFlags::DSYNC),
    ];
    let flags = flags.into_iter().flatten().fold(OpenFlags::default(), OpenFlags::with);
    let name = job.engine.name().to_string();
    let (_, read, write) = CALLS.into_iter().find(|(engine, ..)| *engine == name).unwrap_or(CALLS[0]);
    let call = match action {
        Action::Read => read,
        Action::Write => write,
        Action::DataSync => CallKind::Fdatasync,
        _ => CallKind::Fsync,
    };
    match form {
        Form::Iolog => Told::default(),
        Form::Recording => Told { process: Some(1), call: Some((call, flags)), ..Told::default() },
        // A job issues the next request as soon as one of its depth is done.
        Form::Blktrace => {
            Told { process: Some(1), in_flight: Some(job.presentation.requested_iodepth), ..Told::default() }
        }
    }
}

/// The operations of a job, as they are recorded.
fn measured(job: &JobFile, form: Form) -> Measurement {
    let mut measured = Measurement::default();
    for job in own::planned(&job.text(), ENGINES).expect("a job that can be planned") {
        let mut stream = Stream::new(&job.access, &job.files, &job.limits).expect("a stream");
        let mut batch = Vec::new();
        while stream.fill(&mut batch, 64) > 0 {
            for op in batch.drain(..) {
                let kind = match op.action {
                    Action::Read => EntryKind::Read,
                    Action::Write => EntryKind::Write,
                    Action::DataSync => EntryKind::DataSync,
                    _ => EntryKind::Sync,
                };
                let (offset_bytes, length_bytes) = (op.offset_bytes, op.length_bytes);
                let entry = Entry { at_ns: 0, file: 0, kind, offset_bytes, length_bytes };
                measured.add(&entry, &told(form, &job, op.action));
            }
        }
    }
    measured
}

fn modelled(measured: &Measurement, form: Form) -> JobFile {
    let files = [FileName::Path("/data/file".into())];
    let recorded = Recorded::default();
    let recorded = Some(&recorded).filter(|_| form == Form::Recording);
    job_file(measured, &Origin { name: "t", files: &files, is_blktrace: form == Form::Blktrace, recorded })
}

fn pick<'a, T>(random: &mut Random, of: &'a [T]) -> &'a T {
    &of[random.below(of.len() as u64) as usize]
}

/// The options of a random job that a recording of this form tells.
fn drawn(random: &mut Random, form: Form) -> Vec<(&'static str, String)> {
    let rw = *pick(random, &["read", "write", "rw", "randread", "randwrite", "randrw"]);
    let mut options =
        vec![("rw", rw.to_string()), ("size", "64m".to_string()), ("io_size", "48m".to_string())];
    let has_sizes = random.below(3) == 0;
    match has_sizes {
        true => options.push(("bssplit", pick(random, &["4k/60:16k/40", "8k/25:64k/75"]).to_string())),
        false => options.push(("bs", pick(random, &["4k", "8k", "16k"]).to_string())),
    }
    if rw.ends_with("rw") {
        options.push(("rwmixread", pick(random, &["30", "50", "75", "90"]).to_string()));
    }
    if rw.ends_with("write") || rw.ends_with("rw") {
        match random.below(3) {
            0 => options.push(("fsync", pick(random, &["1", "4", "10"]).to_string())),
            1 => options.push(("fdatasync", pick(random, &["1", "8"]).to_string())),
            _ => {}
        }
    }
    if rw.starts_with("rand") {
        match random.below(4) {
            0 if !has_sizes => {
                options.push(("percentage_random", pick(random, &["20", "50", "80"]).to_string()));
            }
            1 => {
                let theta = 0.5 + random.below(11) as f64 / 10.0;
                // fio does not take 1.
                options.push(("random_distribution", format!("zipf:{:.2}", theta + 0.01)));
            }
            // The map of the blocks that are left would cut some short.
            _ if has_sizes => options.push(("norandommap", "1".to_string())),
            _ => {}
        }
    }
    match form {
        Form::Iolog => {}
        Form::Recording => {
            options.push(("ioengine", pick(random, &CALLS).0.to_string()));
            options.push(("direct", pick(random, &["0", "1"]).to_string()));
            let sync = pick(random, &["none", "sync", "dsync"]);
            options.extend((*sync != "none").then(|| ("sync", sync.to_string())));
        }
        Form::Blktrace => {
            options.push(("ioengine", "libaio".to_string()));
            options.push(("direct", "1".to_string()));
            options.push(("iodepth", pick(random, &["1", "4", "16", "32", "128"]).to_string()));
        }
    }
    options
}

/// Whether a value came back: exactly, or as near as its kind can.
fn is_same(name: &str, was: &str, is: &str, ios: u64) -> bool {
    let number =
        |text: &str| text.rsplit(':').next().and_then(|text| text.parse::<f64>().ok()).unwrap_or(f64::NAN);
    // What chance does to a share of so many I/Os, in percent: three deviations.
    let chance = 150.0 / (ios as f64).sqrt();
    match name {
        "rwmixread" => (number(was) - number(is)).abs() <= 1.0 + chance,
        "percentage_random" => {
            (number(was) - number(is.split(',').next().unwrap_or(is))).abs() <= 1.0 + chance
        }
        "random_distribution" => is.starts_with("zipf") && (number(was) - number(is)).abs() <= 0.05,
        "bssplit" => {
            let shares = |text: &str| -> Vec<(String, f64)> {
                let share = |one: &str| {
                    one.split_once('/').map(|(size, percent)| (size.to_string(), number(percent)))
                };
                text.split(':').filter_map(share).collect()
            };
            let (was, is) = (shares(was), shares(is.split(',').next().unwrap_or(is)));
            let same = |(left, right): (&(String, f64), &(String, f64))| {
                left.0 == right.0 && (left.1 - right.1).abs() <= 1.0 + 2.0 * chance
            };
            was.len() == is.len() && was.iter().zip(&is).all(same)
        }
        _ => was == is,
    }
}

#[test]
fn the_options_of_drawn_jobs_come_back() {
    let mut wrong = Vec::new();
    for seed in 0..200 {
        let form = [Form::Iolog, Form::Recording, Form::Blktrace][seed as usize % 3];
        let options = drawn(&mut Random::new(seed), form);
        let measured = measured(&job(&options), form);
        let model = modelled(&measured, form);
        let section = &model.sections[0];
        let ios = measured.ios();
        let value = |name: &str| {
            let chosen = section.options.iter().chain(&model.global).find(|chosen| chosen.name == name);
            chosen.map_or("none", |chosen| chosen.value.as_str())
        };
        for (name, was) in &options {
            let is = value(name);
            if !name.ends_with("size") && !is_same(name, was, is, ios) {
                wrong.push(format!("seed {seed}: {name} {was} became {is}, of {options:?}"));
            }
        }
        let is_added = |name: &&&str| value(name) != "none" && options.iter().all(|(one, _)| one != *name);
        if let Some(name) = NEVER_ADDED.iter().find(is_added) {
            wrong.push(format!("seed {seed}: {name} was not given, of {options:?}"));
        }
        // The drawn I/Os have a mix of their own, which the model has within a point.
        let reads = measured.streams().iter().map(|stream| stream.tracks[0].ios).sum::<u64>();
        let seen = reads as f64 * 100.0 / ios as f64;
        if let Ok(percent) = value("rwmixread").parse::<f64>()
            && (percent - seen).abs() > 1.0
        {
            wrong.push(format!("seed {seed}: rwmixread is {percent} of {seen:.1}"));
        }
        let fidelity = Fidelity::of(&measured, &self::measured(&model, form), &["job".to_string()]);
        // Of so few I/Os chance may take a figure past its limit.
        if fidelity.figures.iter().map(Figure::verdict).any(|verdict| verdict == Verdict::Far) {
            wrong.push(format!("seed {seed}: {}, of {options:?}\n{}", fidelity.sentence(), model.text()));
        }
    }
    assert!(wrong.is_empty(), "{} of 200:\n{}", wrong.len(), wrong.join("\n"));
}
