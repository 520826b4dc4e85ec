//! Jobs whose options are known: their operations, measured and modelled, give the options back.
//!
//! Invariant: a case is made of a seed alone, which a failure names; nothing is run.

use fiord_model::choose::{Origin, job_file};
use fiord_model::fidelity::{Fidelity, Figure, Verdict};
use fiord_model::jobfile::{Chosen, JobFile, Section};
use fiord_model::measure::Measurement;
use fiord_model::{FileName, own};
use fiord_plan::{EngineDescriptor, EngineName, Engines, Queueing};
use fiord_stats::Random;

const ENGINES: Engines = Engines(&[
    &EngineDescriptor::of(EngineName::Psync, "for tests", Queueing::Synchronous),
    &EngineDescriptor::of(EngineName::Libaio, "for tests", Queueing::Queued),
]);

/// A job of one section with these options.
fn job(options: &[(&'static str, String)]) -> JobFile {
    let chosen =
        |(name, value): &(&'static str, String)| Chosen { name, value: value.clone(), why: String::new() };
    let options = options.iter().map(chosen).collect();
    let section = Section { name: "job".to_string(), stream: 0, about: String::new(), options };
    JobFile { about: Vec::new(), global: Vec::new(), sections: vec![section] }
}

fn measured(job: &JobFile) -> Measurement {
    own::measure(job, ENGINES, 1_000_000).expect("a job that can be planned")
}

fn modelled(measured: &Measurement) -> JobFile {
    let files = [FileName::Path("/data/file".into())];
    job_file(measured, &Origin { name: "t", files: &files, is_blktrace: false, recorded: None })
}

fn pick<'a, T>(random: &mut Random, of: &'a [T]) -> &'a T {
    &of[random.below(of.len() as u64) as usize]
}

/// The options of a random job.
fn drawn(random: &mut Random) -> Vec<(&'static str, String)> {
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
        let options = drawn(&mut Random::new(seed));
        let measured = measured(&job(&options));
        let model = modelled(&measured);
        let section = &model.sections[0];
        let ios = measured.ios();
        for (name, was) in &options {
            let chosen = section.options.iter().find(|chosen| chosen.name == *name);
            let is = chosen.map_or("none", |chosen| chosen.value.as_str());
            if !name.ends_with("size") && !is_same(name, was, is, ios) {
                wrong.push(format!("seed {seed}: {name} {was} became {is}, of {options:?}"));
            }
        }
        let fidelity = Fidelity::of(&measured, &self::measured(&model), &["job".to_string()]);
        // Of so few I/Os chance may take a figure past its limit.
        if fidelity.figures.iter().map(Figure::verdict).any(|verdict| verdict == Verdict::Far) {
            wrong.push(format!("seed {seed}: {}, of {options:?}\n{}", fidelity.sentence(), model.text()));
        }
    }
    assert!(wrong.is_empty(), "{} of 200:\n{}", wrong.len(), wrong.join("\n"));
}
