//! `fiord qualify`: what it refuses to overwrite, its rounds and verdicts, and how it goes on after an interruption.
//!
//! Invariant: nothing but the device or file that `--overwrite` identifies is written.

use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fiord_lab::qualify::window::{WINDOW_ROUNDS, Window};
use fiord_testing::{need, skip};
use serde_json::{Value, json};

use crate::common::schema::assert_documented;
use crate::common::study::fio_takes;
use crate::common::{
    Dir, LoopDevice, Mount, Ran, Running, TIMEOUT, assert_fits_terminal, finish, fiord, helper, in_one_line,
    root, signal, start, until,
};

/// Two short measurements a round.
const SHORT: &str = "--test throughput --class client --capacity 8M --time 20ms";

/// A directory with a file of random-looking bytes, and the path of that.
fn with_file() -> (Dir, String) {
    let dir = Dir::new();
    let bytes: Vec<u8> = (0..16_u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let path = dir.write("image", bytes).canonicalize().unwrap().display().to_string();
    (dir, path)
}

#[test]
fn nothing_is_overwritten_that_was_not_identified() {
    let (dir, path) = with_file();
    let before = dir.contents();
    let ran = dir.run(&format!("qualify {SHORT} image"));
    ran.assert_status(2);
    assert!(ran.stderr.contains(&format!("--overwrite=\"{path}\" overwrites this one (16MiB")), "{ran:?}");
    let ran = dir.run(&format!("qualify {SHORT} --overwrite /elsewhere image"));
    assert!(ran.assert_status(2).stderr.contains("--overwrite=/elsewhere is another device"), "{ran:?}");
    dir.run(&format!("qualify {SHORT} --overwrite {path} --repeat 3 image")).assert_status(1);
    dir.run(&format!("qualify {SHORT} --overwrite {path} --capacity 0% image")).assert_status(1);
    dir.run(&format!("qualify {SHORT} --overwrite {path} --resume image")).assert_status(1);
    let on_hosts = dir.run(&format!("qualify {SHORT} --overwrite {path} --hosts a --via false image"));
    assert!(on_hosts.assert_status(1).stderr.contains("run it on each host"), "{on_hosts:?}");
    let job_file = dir.run(&format!("qualify {SHORT} --overwrite {path} --dry-run image"));
    assert!(job_file.assert_success().stdout.contains("loops=2"), "{job_file:?}");
    if let Err(why) = fio_takes(&dir, &job_file.stdout) {
        assert!(!why.contains("parse"), "{why}");
    }
    assert_eq!(dir.contents(), before);
}

/// A loop device in a directory of its own, and what identifies it.
fn device() -> Result<(Dir, LoopDevice, String), String> {
    let dir = Dir::new();
    let device = LoopDevice::new(&dir, 16 << 20)?;
    // The kernel may remember the partitions of what this device was before.
    let _ = helper("partx", &["--delete", &device.path]);
    let name = device.path.trim_start_matches("/dev/").to_string();
    let identity = std::fs::read_to_string(format!("/sys/block/{name}/loop/backing_file"));
    let identity = identity.map_err(|error| error.to_string())?.trim().to_string();
    Ok((dir, device, identity))
}

#[test]
fn a_device_with_a_file_system_or_in_use_is_not_overwritten() {
    let (dir, device, identity) = need!(device());
    let line = format!("qualify {SHORT} --overwrite {identity} {}", device.path);
    let mount = need!(Mount::ext4(&dir, &device));
    let ran = dir.run(&line);
    assert!(ran.assert_status(2).stderr.contains("is mounted at"), "{ran:?}");
    dir.run(&format!("{line} --erase-signatures")).assert_status(2);
    drop(mount);
    device.until_free();
    let ran = dir.run(&line);
    assert!(ran.assert_status(2).stderr.contains("found on it: ext2/3/4 file system"), "{ran:?}");
    need!(helper("e2fsck", &["-n", "-f", &device.path]));
    let ran = dir.run(&format!("{line} --erase-signatures --rounds 1"));
    ran.assert_status(6);
    assert!(ran.stdout.contains("destroyed on it, as far as it was overwritten: ext2/3/4"), "{ran:?}");
}

#[test]
fn a_loop_device_is_qualified_and_no_other_is_touched() {
    let (dir, device, identity) = need!(device());
    let (_other, other, _) = need!(self::device());
    let untouched = std::fs::read(&other.path).unwrap();
    let ran = dir.run(&format!("qualify {SHORT} --rounds 6 --json --overwrite {identity} {}", device.path));
    let document = ran.json();
    assert_documented(&document, "qualify");
    assert_eq!(document["target"]["overwritten"], Value::from(identity));
    assert_eq!(
        (&document["device_bytes"], &document["target"]["size_bytes"]),
        (&(16 << 20).into(), &(8 << 20).into())
    );
    assert_judged_alike(&document, 6);
    assert_eq!(std::fs::read(&other.path).unwrap(), untouched);
    let after = std::fs::read(&device.path).unwrap();
    assert!(after[..8 << 20].iter().any(|byte| *byte != 0) && after[8 << 20..].iter().all(|byte| *byte == 0));
}

/// Has the oracle judge these series.
fn judged(questions: &Value) -> Result<Vec<Value>, String> {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/qualify_oracle.py");
    let oracle = Command::new("python3").arg(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut oracle = oracle.map_err(|error| format!("python3: {error}"))?;
    let mut stdin = oracle.stdin.take().ok_or("no standard input")?;
    stdin.write_all(questions.to_string().as_bytes()).map_err(|error| error.to_string())?;
    drop(stdin);
    let output = oracle.wait_with_output().map_err(|error| error.to_string())?;
    let answers: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    Ok(answers.as_array().cloned().unwrap_or_default())
}

/// Whether two figures are the same but for how they were rounded.
fn is_near(one: &Value, other: &Value) -> bool {
    let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
    (one - other).abs() <= 1e-3 + 1e-6 * one.abs()
}

/// Checks that the oracle says the same of every test of a document without interruptions, limited to so many rounds.
pub fn assert_judged_alike(document: &Value, most: usize) {
    let list = |list: &str| document[list].as_array().unwrap().iter();
    let tests: Vec<&Value> = list("tests").filter(|row| row["test"] != "saturation").collect();
    let key = |row: &Value| ["test", "read_percent", "block_bytes"].map(|key| row[key].clone());
    let series = |figure: &&Value| -> Vec<f64> {
        let own = list("rounds").filter(|row| key(row) == key(figure));
        own.map(|row| row["value"].as_f64().unwrap()).collect()
    };
    // The reads and writes of a block size of the throughput have to be steady together.
    let is_of_one = |one: &&Value, next: &&Value| {
        [&one["test"], &one["block_bytes"]] == [&next["test"], &next["block_bytes"]]
    };
    let together: Vec<&[&Value]> = tests.chunk_by(is_of_one).collect();
    let question =
        |tests: &&[&Value]| json!({"series": tests.iter().map(series).collect::<Vec<_>>(), "most": most});
    let answers = need!(judged(&together.iter().map(question).collect()));
    for (tests, answer) in together.iter().zip(&answers) {
        let rounds = &answer["rounds"];
        for (test, window) in tests.iter().zip(answer["windows"].as_array().unwrap()) {
            assert_eq!(test["steady"], Value::from(!rounds.is_null()), "{test}");
            assert_eq!(test["rounds"], if rounds.is_null() { Value::from(most) } else { rounds.clone() });
            let keys =
                ["mean", "excursion_percent", "slope_percent", "drift_low_percent", "drift_high_percent"];
            for (at, key) in keys.iter().enumerate() {
                assert!(is_near(&test[key], &window[at]), "{key}: {test} {window}");
            }
            let is_within = (3..5).all(|end| window[end].as_f64().unwrap().abs() <= 10.0);
            assert_eq!(test["drift_confirmed"], Value::from(is_within), "{test} {window}");
            assert_eq!(test["window_to"].as_u64().unwrap() - test["window_from"].as_u64().unwrap(), 4);
        }
        let is_own = |row: &&Value| {
            row["test"] == tests[0]["test"]
                && (row["test"] != "throughput" || row["block_bytes"] == tests[0]["block_bytes"])
        };
        assert!(
            list("rows").filter(is_own).all(|row| row["iops"].is_null() == rounds.is_null()),
            "{document}"
        );
    }
    let is_unsteady = answers.iter().any(|answer| answer["rounds"].is_null());
    assert_eq!(document["verdict"], if is_unsteady { Value::from("CANNOT TELL") } else { Value::Null });
}

#[test]
fn an_hour_on_memory_is_judged_alike() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/runs/2026-11-29-qualify-zram.json");
    let document: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let steady = document["tests"].as_array().unwrap().iter().map(|test| test["steady"].as_bool());
    assert_eq!(steady.flatten().filter(|is_steady| *is_steady).count(), 3);
    assert_judged_alike(&document, 10);
}

/// After how many rounds fiord's definition says that a series is steady, and the figures of the last window.
fn defined(series: &[f64], most: usize) -> (Option<usize>, Option<Window>) {
    let mut last = None;
    for count in WINDOW_ROUNDS..=series.len().min(most) {
        last = Window::last_of(&series[..count]);
        if last.is_some_and(|window| window.is_steady()) {
            return (Some(count), last);
        }
    }
    (None, last)
}

#[test]
fn the_definitions_agree_with_an_independent_implementation() {
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % 10_000) as f64 / 10_000.0
    };
    let mut all: Vec<Vec<f64>> = Vec::new();
    for kind in 0..400 {
        let (noise, drift) = (random() * 0.6, (random() - 0.5) * 0.2);
        let base = |round: usize| match kind % 4 {
            0 => 1000.0,
            1 => 1000.0 * (1.0 + drift).powi(round as i32),
            2 => 1000.0 + 3000.0 * (-(round as f64) / 4.0).exp(),
            _ => 1000.0 + 200.0 * drift * round as f64,
        };
        all.push((0..30).map(|round| base(round) * (1.0 + noise * (random() - 0.5))).collect());
    }
    // Exactly at the limits, and one that only falls.
    all.push(vec![100.0, 110.0, 90.0, 100.0, 100.0]);
    all.push((0..30).map(|round| 1000.0 * 0.96_f64.powi(round)).collect());
    let questions: Vec<Value> = all.iter().map(|series| json!({"series": [series], "most": 25})).collect();
    let answers = need!(judged(&Value::from(questions)));
    assert_eq!(answers.len(), all.len());
    let mut steady = 0;
    for (series, answer) in all.iter().zip(&answers) {
        let (rounds, window) = defined(series, 25);
        assert_eq!(answer["rounds"], rounds.map_or(Value::Null, Value::from), "{series:?}");
        let window = window.unwrap();
        let Window { mean, excursion, slope, slope_reach } = window;
        let shares = [excursion, slope, slope - slope_reach, slope + slope_reach].map(|share| 100.0 * share);
        for (at, ours) in [mean].into_iter().chain(shares).enumerate() {
            assert!(is_near(&Value::from(ours), &answer["windows"][0][at]), "{series:?} {answer}");
        }
        steady += usize::from(rounds.is_some());
    }
    assert!((50..350).contains(&steady), "{steady} of {} are steady", all.len());
    assert!(answers[401]["rounds"].is_null(), "what drifts is never steady");
}

/// With a history of this directory's own, in which the study has the number 1.
pub fn alone(dir: &Dir, line: &str) -> Command {
    let mut command = fiord(dir.path(), line);
    command.env("XDG_STATE_HOME", dir.join("state"));
    command
}

/// Whether the history has so many entries.
pub fn has_recorded(dir: &Dir, entries: usize) -> bool {
    finish(start(alone(dir, &format!("show {entries} --output-format=terse")))).stderr.is_empty()
}

/// Starts a study, and ends it by this signal once the history has so many entries.
fn end_at(dir: &Dir, line: &str, entries: usize, name: &str) -> Ran {
    let running = start(alone(dir, line));
    until("runs are recorded", || has_recorded(dir, entries));
    signal(running.0.id(), name);
    finish(running)
}

#[test]
fn a_killed_study_goes_on_where_it_was_and_its_windows_do_not_reach_back() {
    let (dir, path) = with_file();
    let line = format!("qualify {} --rounds 7 --overwrite {path} image", SHORT.replace("20ms", "300ms"));
    let ran = end_at(&dir, &line, 7, "KILL");
    assert!(!ran.stdout.contains("steady after"), "{ran:?}");
    let resumed = format!("{line} --resume --json");
    let entries = (7..).find(|entries| !has_recorded(&dir, *entries)).unwrap();
    let ran = end_at(&dir, &resumed, entries + 2, "INT");
    assert_eq!(ran.json()["complete"], Value::from(false), "an interruption leaves a report");
    let again = || finish(start(alone(&dir, &resumed)));
    let document = again().json();
    assert_documented(&document, "qualify");
    assert_eq!(document["complete"], Value::from(true));
    let test = &document["tests"][0];
    let first = test["interrupted_before_round"].as_u64().unwrap();
    assert!(first > 1 && test["window_from"].as_u64().unwrap() >= first, "{test}");
    assert!(again().assert_status(1).stderr.contains("is complete"), "nothing is left to do");
    let other = finish(start(alone(&dir, &resumed.replace("--rounds 7", "--rounds 8"))));
    assert!(other.assert_status(1).stderr.contains("no qualify with these options"), "{other:?}");
}

#[test]
fn several_devices_are_tested_one_after_the_other_and_compared() {
    let (dir, one, identity) = need!(device());
    let (_other, two, other) = need!(self::device());
    let line = format!("qualify {SHORT} --rounds 5 --json --overwrite {identity} {} {}", one.path, two.path);
    let refused = dir.run(&line);
    assert!(refused.assert_status(2).stderr.contains(&format!("{}: --overwrite=", two.path)), "{refused:?}");
    assert!(
        std::fs::read(&one.path).unwrap().iter().all(|byte| *byte == 0),
        "nothing is written if one is refused"
    );
    dir.run(&format!("{line} --overwrite {other} --resume")).assert_status(1);
    let document = dir.run(&format!("{line} --overwrite {other}")).json();
    assert_eq!(document["complete"], Value::from(true));
    assert_eq!(document["targets"].as_array().unwrap().len(), 2);
    let of: Vec<&str> =
        document["runs"].as_array().unwrap().iter().map(|run| run["of"].as_str().unwrap()).collect();
    // All runs of a device follow each other, its preconditioning included.
    let begins = |run: &str, device: &LoopDevice| run.starts_with(&format!("{}: ", device.path));
    assert_eq!(of.len(), 22);
    assert!(
        of[..11].iter().all(|run| begins(run, &one)) && of[11..].iter().all(|run| begins(run, &two)),
        "{of:?}"
    );
    dir.run(&format!("{line} {}", two.path)).assert_status(2);
}

#[test]
fn several_devices_go_on_where_they_were_killed() {
    let (dir, one, identity) = need!(device());
    let (_other, two, other) = need!(self::device());
    let (_third, three, third) = need!(self::device());
    let short = SHORT.replace("20ms", "300ms");
    let overwrite = format!("--overwrite {identity} --overwrite {other} --overwrite {third}");
    let line = format!("qualify {short} --rounds 5 --json {overwrite}");
    // The study, the first device to its end, and preconditioning and a round and a half of the second.
    let killed = end_at(&dir, &format!("{line} {} {}", one.path, two.path), 1 + 11 + 1 + 3, "KILL");
    assert!(killed.stdout.is_empty(), "{killed:?}");
    let resume = |devices: &[&LoopDevice]| {
        let paths: Vec<&str> = devices.iter().map(|device| device.path.as_str()).collect();
        finish(start(alone(&dir, &format!("{line} --resume {}", paths.join(" ")))))
    };
    let untouched = std::fs::read(&three.path).unwrap();
    for devices in [vec![&two, &one], vec![&one], vec![&one, &three], vec![&one, &two, &three]] {
        let refused = resume(&devices);
        assert!(refused.assert_status(1).stderr.contains("the history has no qualify"), "{refused:?}");
    }
    let document = resume(&[&one, &two]).json();
    assert_eq!(document["complete"], Value::from(true));
    assert_documented(&document, "qualify");
    let tests = document["tests"].as_array().unwrap();
    assert_eq!(tests.len(), 4, "reads and writes of both: {document}");
    for test in tests {
        if test["target"] == one.path.as_str() {
            assert!(test["interrupted_before_round"].is_null() && test["rounds"] == 5, "{test}");
            continue;
        }
        let first = test["interrupted_before_round"].as_u64().unwrap();
        assert!(first > 1 && test["window_from"].as_u64().unwrap() >= first, "{test}");
        assert_eq!(test["rounds"], 4 + first, "{test}");
    }
    assert!(resume(&[&one, &two]).assert_status(1).stderr.contains("is complete"));
    assert_eq!(std::fs::read(&three.path).unwrap(), untouched);
}

#[test]
fn the_rows_that_write_of_other_studies_overwrite_a_device_as_well() {
    let (dir, device, identity) = need!(device());
    for (study, rows) in [("quick", 7), ("matrix --rw randread,write", 6)] {
        let line = format!("{study} --time 400ms --size 8M --json {}", device.path);
        let read = dir.run(&line);
        assert!(!read.json()["target"]["writable"].as_bool().unwrap());
        dir.run(&format!("{line} --overwrite other")).assert_status(2);
        let all = dir.run(&format!("{line} --overwrite {identity}"));
        let document = all.assert_success().json();
        assert!(document["target"]["writable"].as_bool().unwrap(), "{document}");
        assert_eq!(document["rows"].as_array().unwrap().len(), rows, "{document}");
    }
    dir.run(&format!("matrix --overwrite {identity} .")).assert_status(1);
    let data = std::fs::read(&device.path).unwrap();
    assert!(data[8 << 20..].iter().all(|byte| *byte == 0), "only what --size says is written");
}

#[test]
fn a_sweep_writes_on_a_device_that_was_identified_and_within_its_size() {
    let (dir, device, identity) = need!(device());
    let (_other, other, _) = need!(self::device());
    let line = format!("sweep --rw randwrite --size 9M --over bs=4k,64k --time 400ms --json {}", device.path);
    let before = [&device, &other].map(|device| std::fs::read(&device.path).unwrap());
    let refused = |line: &str, status: i32, why: &str| {
        let ran = dir.run(line);
        assert!(ran.assert_status(status).stderr.contains(why), "{ran:?}");
        let now = [&device, &other].map(|device| std::fs::read(&device.path).unwrap());
        assert!(now == before, "{line}: something was written");
    };
    refused(&line, 2, "it is only read here, and would be written; --overwrite names");
    refused(&format!("{line} --overwrite elsewhere"), 2, "--overwrite=elsewhere is another device");
    let overwrite = format!("{line} --overwrite {identity}");
    refused(&format!("{overwrite} --offset 1M"), 2, "9MiB of it are to be overwritten");
    refused(&format!("{overwrite} --filename other"), 1, "filename names other files");
    refused(&format!("{overwrite} {}", other.path), 1, "a second device");
    refused(&overwrite.replace(&device.path, ""), 1, "name the device as well");
    refused(&format!("{overwrite} --hosts a --via false"), 1, "run it on each host");
    let read = dir.run(&line.replace("randwrite", "randread"));
    assert!(!read.assert_success().json()["target"]["writable"].as_bool().unwrap(), "{read:?}");
    let document = dir.run(&overwrite).assert_success().json();
    assert_eq!(document["target"]["overwritten"], Value::from(identity.clone()));
    assert_eq!(document["rows"].as_array().unwrap().len(), 2, "{document}");
    let data = std::fs::read(&device.path).unwrap();
    let is_written = |range: std::ops::Range<usize>| data[range].iter().any(|byte| *byte != 0);
    assert!((0..9).all(|mib| is_written(mib << 20..(mib + 1) << 20)) && !is_written(9 << 20..16 << 20));
    drop(need!(Mount::ext4(&dir, &device)));
    device.until_free();
    let ran = dir.run(&overwrite);
    assert!(ran.assert_status(2).stderr.contains("found on it: ext2/3/4 file system"), "{ran:?}");
    need!(helper("e2fsck", &["-n", "-f", &device.path]));
    dir.run(&format!("{overwrite} --erase-signatures")).assert_success();
    assert!(std::fs::read(&other.path).unwrap() == before[1]);
}

#[test]
fn preconditioning_is_kept_only_with_evidence() {
    let (dir, device, identity) = need!(device());
    let (_other, other, others) = need!(self::device());
    let overwrite = format!("--overwrite {identity} --overwrite {others}");
    let qualify = |more: &str, device: &LoopDevice| {
        let line = format!("qualify {SHORT} --rounds 1 {overwrite} {more} {}", device.path);
        let line = if more.contains("--capacity") { line.replacen("--capacity 8M", "", 1) } else { line };
        let ran = finish(start(alone(&dir, &line)));
        ran.assert_status(6);
        ran
    };
    let heading = |more: &str, device: &LoopDevice, what: &str| {
        let ran = qualify(&format!("--keep-preconditioning {more}"), device);
        assert!(in_one_line(&ran.stdout).contains(&format!("Preconditioning {what}")), "{what}: {ran:?}");
        ran
    };
    let none = "done: the history has no complete one of this device";
    heading("", &device, none);
    assert!(!qualify("", &device).stdout.contains("Preconditioning "), "the default is the specification's");
    // The second study's first run is the sixth entry.
    let kept = heading("", &device, "kept: run 6 of ");
    assert!(in_one_line(&kept.stdout).contains("wrote 2 times 8MiB; "), "{kept:?}");
    assert!(kept.stdout.contains("is kept, not repeated"), "{kept:?}");
    let document = qualify("--keep-preconditioning --json", &device).json();
    assert_documented(&document, "qualify");
    let test = &document["tests"][0];
    assert_eq!((&test["kept_run"], &test["preconditioning_mib_per_s"]), (&6.into(), &Value::Null));
    assert!(test["written_since_bytes"].as_u64().unwrap() > 0, "{test}");
    let runs = document["runs"].as_array().unwrap();
    assert!(runs.iter().all(|run| !run["of"].as_str().unwrap().contains("preconditioning")), "{runs:?}");
    // Other blocks, more of the device, another device.
    heading("--test latency", &device, &format!("128KiB: {none}"));
    heading("--capacity 12M", &device, none);
    heading("", &other, none);
    // What the device lost.
    heading("", &device, "kept: run ");
    let file = std::fs::File::options().write(true).open(&device.path).unwrap();
    file.write_all_at(&[0; 8192], 0).unwrap();
    file.sync_all().unwrap();
    drop(file);
    heading("", &device, "done: there are only zeros in 1 of 64 places");
    heading("", &device, "kept: run ");
    // What others wrote is not known to have left it as it was.
    let file = std::fs::File::options().write(true).open(&device.path).unwrap();
    file.write_all_at(&[1; 4096], 12 << 20).unwrap();
    file.sync_all().unwrap();
    drop(file);
    heading("", &device, "done: 4KiB were written since run ");
    heading("", &device, "kept: run ");
    need!(helper("blkdiscard", &["--force", &device.path]));
    heading("", &device, "done: there were discards since run ");
    heading("", &device, "kept: run ");
}

#[test]
fn a_killed_study_that_kept_its_preconditioning_goes_on_if_that_still_holds() {
    let (dir, device, identity) = need!(device());
    let short = SHORT.replace("20ms", "300ms");
    let line =
        |rounds: u32| format!("qualify {short} --overwrite {identity} {} --rounds {rounds}", device.path);
    let ran = |line: &str| finish(start(alone(&dir, line)));
    // A study has no figures that could be printed so.
    let is_free = |entry: &usize| !has_recorded(&dir, *entry) && !has_recorded(&dir, entry + 1);
    let next_entry = || (1..).find(is_free).unwrap();
    let (keeps, resumes) = (format!("{} --keep-preconditioning", line(6)), "--resume --json");
    // The study, its preconditioning, and a round and a half.
    let killed = || {
        let study = next_entry();
        ran(&line(1)).assert_status(6);
        let kept = study + 1;
        end_at(&dir, &keeps, next_entry() + 3, "KILL");
        kept
    };
    killed();
    need!(helper("blkdiscard", &["--force", &device.path]));
    let before = std::fs::read(&device.path).unwrap();
    let refused = ran(&format!("{keeps} {resumes}"));
    assert!(
        refused.assert_status(1).stderr.contains("run 2 still holds cannot be shown any more"),
        "{refused:?}"
    );
    assert!(refused.stderr.contains("there were discards since run 2; begin anew"), "{refused:?}");
    assert!(std::fs::read(&device.path).unwrap() == before, "something was written");
    let kept = killed();
    let without = ran(&format!("{} {resumes}", line(6)));
    assert!(without.assert_status(1).stderr.contains("no qualify with these options"), "{without:?}");
    let document = ran(&format!("{keeps} {resumes}")).json();
    assert_documented(&document, "qualify");
    assert_eq!(document["complete"], Value::from(true));
    let test = &document["tests"][0];
    assert_eq!((&test["kept_run"], &test["preconditioning_mib_per_s"]), (&kept.into(), &Value::Null));
    assert!(test["interrupted_before_round"].as_u64() > Some(1), "{test}");
    assert!(test["unrecorded_bytes"].as_u64() < test["written_since_bytes"].as_u64(), "{test}");
    let runs = document["runs"].as_array().unwrap();
    assert!(runs.iter().all(|run| !run["of"].as_str().unwrap().contains("preconditioning")), "{runs:?}");
    assert!(ran(&format!("{keeps} {resumes}")).assert_status(1).stderr.contains("is complete"));
}

#[test]
fn a_killed_study_of_several_devices_goes_on_with_what_each_of_them_kept() {
    let (dir, one, identity) = need!(device());
    let (_other, two, other) = need!(self::device());
    let short = SHORT.replace("20ms", "300ms");
    let overwrite = format!("--overwrite {identity} --overwrite {other} {} {}", one.path, two.path);
    let line = |rounds: u32| format!("qualify {short} {overwrite} --rounds {rounds}");
    // The study, and on each device its preconditioning and one round.
    finish(start(alone(&dir, &line(1)))).assert_status(6);
    let keeps = format!("{} --keep-preconditioning", line(5));
    // The next study, the first device to its end, and a round and a half of the second.
    let killed = end_at(&dir, &keeps, 7 + 1 + 10 + 3, "KILL");
    assert!(in_one_line(&killed.stdout).contains("kept: run 2 of "), "{killed:?}");
    let resume = || finish(start(alone(&dir, &format!("{keeps} --resume --json"))));
    let document = resume().json();
    assert_documented(&document, "qualify");
    assert_eq!(document["complete"], Value::from(true));
    for test in document["tests"].as_array().unwrap() {
        let is_first = test["target"] == one.path.as_str();
        assert_eq!(test["kept_run"], if is_first { 2 } else { 5 }, "{test}");
        assert_eq!(test["interrupted_before_round"].is_null(), is_first, "{test}");
        assert!(test["unrecorded_bytes"].as_u64() < test["written_since_bytes"].as_u64(), "{test}");
    }
    let runs = document["runs"].as_array().unwrap();
    assert!(runs.iter().all(|run| !run["of"].as_str().unwrap().contains("preconditioning")), "{runs:?}");
    assert!(resume().assert_status(1).stderr.contains("is complete"));
}

#[test]
fn one_pass_is_refused_on_what_is_reported_as_rotating() {
    let (dir, device, identity) = need!(device());
    let attribute = format!("/sys/block/{}/queue/rotational", device.path.trim_start_matches("/dev/"));
    let before = need!(std::fs::read_to_string(&attribute).map_err(|error| error.to_string()));
    need!(std::fs::write(&attribute, "1").map_err(|error| format!("{attribute}: {error}")));
    let line = format!("qualify {SHORT} --rounds 1 --overwrite {identity} {}", device.path);
    let refused =
        dir.run(&format!("{line} --test latency --sprandom=0.5").replacen("--test throughput", "", 1));
    let data = std::fs::read(&device.path).unwrap();
    let ran = dir.run(&line);
    std::fs::write(&attribute, before).unwrap();
    assert!(
        refused.assert_status(1).stderr.contains("is reported as rotating, which has no flash"),
        "{refused:?}"
    );
    assert!(data.iter().all(|byte| *byte == 0), "something was written");
    assert!(in_one_line(&ran.assert_status(6).stdout).contains("Rotating "), "{ran:?}");
}

/// What runs in each phase of a study of all tests, in order: the beginning of the name of its job. A round of which something
/// was measured before is that of the second job.
const PHASES: [&str; 12] = [
    "write-saturatio",
    "precondition",
    "iops-100/0-128K",
    "precondition",
    "throughput-0/10",
    "precondition",
    "latency-100/0-4",
    "cross-stimulus-",
    "idle-recovery-b",
    "idle-recovery-s",
    "idle-recovery-p",
    "idle-recovery-a",
];

/// Kills a study as soon as it has a thread whose name begins so; returns whether it had one before it ended.
fn is_killed_in(dir: &Dir, line: &str, phase: &str) -> bool {
    let running = alone(dir, line).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut running = Running(running.unwrap());
    let tasks = format!("/proc/{}/task", running.0.id());
    let is_at = || {
        let mut tasks = std::fs::read_dir(&tasks).into_iter().flatten().flatten();
        tasks.any(|task| {
            std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.starts_with(phase))
        })
    };
    // A round of the IOPS has 56 runs, which take minutes on a machine that has much else to do.
    let (mut is_seen, end) = (false, Instant::now() + 4 * TIMEOUT);
    while !is_seen && running.0.try_wait().unwrap().is_none() {
        assert!(Instant::now() < end, "waited in vain until {phase} begins");
        std::thread::park_timeout(Duration::from_millis(2));
        is_seen = is_at();
    }
    let _ = running.0.kill();
    is_seen && running.0.wait().unwrap().code().is_none()
}

/// Kills a study in all of its phases; returns in how many. One that begins and ends between two looks is missed.
fn killed_in_all(dir: &Dir, line: &str) -> usize {
    let is_killed = |(number, phase): &(usize, &str)| {
        let resumed = if *number == 0 { line.to_string() } else { format!("{line} --resume") };
        is_killed_in(dir, &resumed, phase)
    };
    PHASES.into_iter().enumerate().take_while(is_killed).count()
}

#[test]
fn a_study_goes_on_after_a_kill_in_each_phase_of_each_test_and_writes_to_no_other_device() {
    let (dir, device, identity) = need!(device());
    let others = [need!(self::device()), need!(self::device())];
    let bytes: Vec<u8> = (0..16_u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(&others[0].1.path, bytes).unwrap();
    let read = || others.each_ref().map(|(_, other, _)| std::fs::read(&other.path).unwrap());
    let before = read();
    let all = "saturation,iops,throughput,latency,cross-stimulus,idle-recovery";
    let line = SHORT.replace("throughput", all);
    let line = format!("qualify {line} --rounds 1 --trust=off --overwrite {identity} {}", device.path);
    // What is begun anew leaves the study before it where it was.
    let killed = (0..3).map(|_| killed_in_all(&dir, &line)).find(|count| *count == PHASES.len());
    assert_eq!(killed, Some(PHASES.len()));
    let resumed = format!("{line} --resume --json");
    let mut writing = start(alone(&dir, &resumed));
    writing.0.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    writing.0.kill().unwrap();
    assert_eq!(finish(writing).status, None, "the document is longer than a pipe holds");
    let document = finish(start(alone(&dir, &resumed))).assert_status(6).json();
    assert_documented(&document, "qualify");
    assert_eq!(document["complete"], Value::from(true));
    let tests = document["tests"].as_array().unwrap();
    let broken = tests.iter().filter(|test| test["interrupted_before_round"] == 2 && test["rounds"] == 2);
    let broken: Vec<&Value> = broken.map(|test| &test["test"]).collect();
    assert_eq!(broken, ["iops", "throughput", "throughput", "latency", "idle-recovery"], "{tests:?}");
    let runs = |state: &Value| state["runs"].as_u64().unwrap();
    let states: Vec<u64> = document["states"].as_array().unwrap().iter().map(runs).collect();
    assert_eq!(states, [19, 14, 19, 14, 1, 14, 1, 14, 1, 14, 1, 14, 1]);
    assert!(finish(start(alone(&dir, &resumed))).assert_status(1).stderr.contains("is complete"));
    assert!(read() == before, "another device was written");
    let data = std::fs::read(&device.path).unwrap();
    assert!(data[8 << 20..].iter().all(|byte| *byte == 0), "only what --capacity says is written");
}

#[test]
fn recovery_has_states_that_go_on_after_an_interruption() {
    let (dir, path) = with_file();
    let line = SHORT.replace("throughput", "cross-stimulus,idle-recovery");
    let line = format!("qualify {line} --rounds 1 --overwrite {path} image");
    let first = end_at(&dir, &line, 22, "INT");
    assert!(first.stdout.contains("sequential"), "{first:?}");
    let ran = finish(start(alone(&dir, &format!("{line} --resume --json"))));
    let document = ran.assert_status(6).json();
    assert_documented(&document, "qualify");
    let states = document["states"].as_array().unwrap();
    let runs: Vec<u64> = states.iter().map(|state| state["runs"].as_u64().unwrap()).collect();
    assert_eq!(runs, [19, 14, 19, 14, 1, 14, 1, 14, 1, 14, 1, 14, 1]);
    let broken: Vec<&Value> = states.iter().filter(|row| !row["interrupted_before_run"].is_null()).collect();
    assert_eq!((broken.len(), &broken[0]["test"]), (1, &Value::from("cross-stimulus")));
    let steady = document["tests"].as_array().unwrap();
    assert_eq!((steady.len(), &steady[0]["steady"]), (1, &Value::from(false)));
    assert!(document["rounds"].as_array().unwrap().iter().any(|row| row["state"] == "pauses of 1 ms"));
}

/// A study on a machine whose only power sensor is a battery with this power in microwatts, or without one.
fn with_power(dir: &Dir, power_uw: Option<u32>, line: &str) -> Ran {
    let battery = power_uw.map_or(String::new(), |power_uw| {
        format!(
            "cd /sys/class/power_supply && mkdir BAT0 && echo Battery >BAT0/type && echo Discharging >BAT0/status && \
             echo {power_uw} >BAT0/power_now && cd - >/dev/null && "
        )
    });
    let hide = "for class in powercap hwmon power_supply; do \
                test ! -d /sys/class/$class || mount -t tmpfs none /sys/class/$class || exit 9; done";
    let study = alone(dir, line);
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &format!("{hide}; {battery}exec \"$@\""), "sh"]);
    command.arg(study.get_program()).args(study.get_args()).current_dir(dir.path());
    command.envs(study.get_envs().filter_map(|(name, value)| Some((name, value?))));
    finish(start(command))
}

#[test]
fn power_is_shown_if_the_machine_tells_it_and_nothing_if_not() {
    need!(root());
    if !std::path::Path::new("/sys/class/power_supply").exists() {
        skip!("this kernel has no batteries");
    }
    if std::path::Path::new("/dev/ipmi0").exists() {
        skip!("this machine's management controller tells its power");
    }
    let dir = Dir::new();
    for power_uw in [Some(15_000_000), None] {
        let ran = |more: &str| {
            let ran = with_power(&dir, power_uw, &format!("qualify {SHORT} --trust=on --rounds 1 {more} ."));
            ran.assert_status(6);
            ran
        };
        let text = ran("").stdout;
        assert_eq!(text.contains("watts by round: 15.0"), power_uw.is_some(), "{text}");
        assert_eq!(text.contains("watts"), power_uw.is_some(), "{text}");
        let csv = ran("--csv").stdout;
        let columns = ",watts,iops_per_watt,bytes_per_joule";
        assert_eq!(csv.lines().next().unwrap().ends_with(columns), power_uw.is_some(), "{csv}");
        let document = ran("--json").json();
        assert_documented(&document, "qualify");
        let is_it = |watts: &Value| watts.as_f64().is_some_and(|watts| (watts - 15.0).abs() < 0.01);
        let rounds = document["rounds"].as_array().unwrap();
        assert!(
            rounds.len() == 2 && rounds.iter().all(|round| is_it(&round["watts"]) == power_uw.is_some()),
            "{rounds:?}"
        );
        let rows = document["rows"].as_array().unwrap();
        assert!(rows.iter().all(|row| row.get("watts").is_some() == power_uw.is_some()), "{rows:?}");
    }
}

#[test]
fn a_directory_is_tested_in_a_scratch_file() {
    let dir = Dir::new();
    let ran = dir.run(&format!("qualify {SHORT} --rounds 1 ."));
    assert_fits_terminal(&ran.assert_status(6).stdout);
    assert!(ran.stdout.contains("a file instead of a device"), "{ran:?}");
    assert!(dir.contents().is_empty());
}
