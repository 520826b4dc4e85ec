//! What fio and fiord record of a job, modelled by fiord: the options of the job come back, from either recording, and fio
//! takes the job file.
//!
//! Invariant: the jobs are drawn by a fixed seed, so that a case is the same in every run. fio's own draws are what they are:
//! shares are compared as far as so many I/Os tell them.

use std::path::Path;
use std::process::Command;

use fiord_compat::compare::{equal, success};
use fiord_compat::program::{Pair, Ran, finish};
use fiord_compat::verdict::Verdict;
use fiord_compat::{Case, case};
use serde_json::Value;

/// Jobs that are drawn.
const JOBS: u64 = 40;

/// The options of a job that must come back.
type Options = Vec<(&'static str, &'static str)>;

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let recorded = (0..JOBS).map(|number| {
        let options = drawn(number);
        let line: Vec<String> = options.iter().map(|(name, value)| format!("--{name}={value}")).collect();
        let args = format!(
            "--output-format=json --name=r --ioengine=null --filename=f --size=64m --io_size=48m --write_iolog=log {}",
            line.join(" ")
        );
        case(format!("models/{number}"), args).check(success).check(move |pair| comes_back(pair, &options))
    });
    recorded.collect()
}

/// The options of the job with this number.
fn drawn(number: u64) -> Options {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed;
    let mut pick = |of: &[&'static str]| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        of[(state >> 33) as usize % of.len()]
    };
    let rw = pick(&["read", "write", "rw", "randread", "randwrite", "randrw"]);
    let mut options = vec![("rw", rw), ("bs", pick(&["4k", "8k", "16k"]))];
    if rw.ends_with("rw") {
        options.push(("rwmixread", pick(&["30", "50", "75"])));
    } else if rw.ends_with("write") {
        // fio syncs once more after each read that comes before the next write.
        match pick(&["fsync", "fdatasync", "none"]) {
            "none" => {}
            call => options.push((call, pick(&["1", "4", "10"]))),
        }
    }
    if rw.starts_with("rand") {
        match pick(&["percentage_random", "random_distribution", "none"]) {
            "percentage_random" => options.push(("percentage_random", pick(&["20", "50", "80"]))),
            "random_distribution" => {
                options
                    .push(("random_distribution", pick(&["zipf:0.6", "zipf:0.9", "zipf:1.2", "zipf:1.4"])));
            }
            _ => {}
        }
    }
    options
}

fn comes_back(pair: &Pair, options: &Options) -> Verdict {
    for (name, recorder) in [("fio", &pair.fio), ("fiord", &pair.fiord)] {
        let modelled = modelled(pair, recorder, name)?;
        let document = modelled.json()?;
        for (option, was) in options {
            let is = value(document, option);
            if !is_same(option, was, is) {
                return Err(format!(
                    "of {name}'s recording: {option}={was} became {is:?}\n{}",
                    document["job_file"]
                ));
            }
        }
        equal(&format!("{name}: close ({})", document["sentence"]), &true.into(), &document["close"])?;
    }
    Ok(())
}

/// fiord's model of a recording, whose job file fio has parsed.
fn modelled(pair: &Pair, recorder: &Ran, name: &str) -> Result<Ran, String> {
    let run = |program: &Path, args: &[&str], step: &str| -> Result<Ran, String> {
        let mut command = Command::new(program);
        command.args(args).env("XDG_STATE_HOME", pair.beside("state")).current_dir(&recorder.dir);
        let ran = finish(command, "", &pair.beside(&format!("{step}-{name}")))?;
        equal("exit status", 0, ran.status).map_err(|why| format!("{args:?}: {why}\n{}", ran.output()))?;
        Ok(ran)
    };
    let modelled = run(&pair.fiord_itself, &["model", "log", "--json", "-o", "model.fio"], "model")?;
    run(Path::new("fio"), &["--parse-only", "model.fio"], "parse")?;
    Ok(modelled)
}

fn value<'a>(document: &'a Value, option: &str) -> Option<&'a str> {
    let options = document["sections"][0]["options"].as_array()?;
    options.iter().find(|one| one["name"] == option)?["value"].as_str()
}

/// Whether a value came back: exactly, or as near as thousands of I/Os tell.
fn is_same(option: &str, was: &str, is: Option<&str>) -> bool {
    let number = |text: &str| text.trim_start_matches("zipf:").split(',').next()?.parse::<f64>().ok();
    let difference = || Some((number(was)? - number(is?)?).abs());
    let near = |by: f64| difference().is_some_and(|difference| difference <= by);
    match option {
        "rwmixread" | "percentage_random" => near(3.0),
        "random_distribution" => is.is_some_and(|is| is.starts_with("zipf:")) && near(0.05),
        _ => is == Some(was),
    }
}
