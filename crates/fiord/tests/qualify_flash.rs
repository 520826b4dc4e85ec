//! `fiord qualify` on a loop device that behaves like an SSD: its way to the steady state, drift, and interruptions.
//!
//! Invariant: what is expected of the device is what the model below it counted, never how long something took.

use fiord_testing::need;
use serde_json::Value;

use crate::common::flash::{Costs, PAGE_BYTES};
use crate::common::flash_device::Flash;
use crate::common::schema::assert_documented;
use crate::common::{Dir, LoopDevice, Ran, assert_fits_terminal, finish, in_one_line, signal, start, until};
use crate::qualify::{alone, assert_judged_alike, has_recorded};

const BYTES: u64 = 32 << 20;
const COSTS: Costs = Costs { read_ns: 1_000, program_ns: 10_000, erase_ns: 100_000, grow_after_pages: None };

/// Two short measurements a round, after 16 MiB of preconditioning.
const SHORT: &str = "--test throughput --class client --capacity 8M --time 50ms";
const PRECONDITIONING_PAGES: u64 = (16 << 20) / PAGE_BYTES;

/// A second loop device with these bytes, which no test here names.
fn other(dir: &Dir) -> Result<(LoopDevice, Vec<u8>), String> {
    let bytes: Vec<u8> = (0..8_u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let device = LoopDevice::over(&dir.write("other", &bytes))?;
    Ok((device, bytes))
}

/// Rows of a list of a study that are of this test.
fn of_test<'d>(document: &'d Value, list: &str, test: &str) -> Vec<&'d Value> {
    document[list].as_array().unwrap().iter().filter(|row| row["test"] == test).collect()
}

/// What a page cost on average in the first and in the last round of the saturation, by the model.
fn saturation_ns(document: &Value, write_ns: &[u64]) -> [f64; 2] {
    let rounds = of_test(document, "rounds", "saturation");
    let end = |round: usize| (rounds[round]["written_bytes"].as_u64().unwrap() / PAGE_BYTES) as usize;
    let last = rounds.len() - 1;
    [0..end(0), end(last - 1)..end(last)].map(|of_round| {
        let of_round = &write_ns[of_round];
        of_round.iter().sum::<u64>() as f64 / of_round.len() as f64
    })
}

#[test]
fn an_ssd_falls_to_its_steady_state_and_is_judged_by_the_definitions() {
    let dir = Dir::new();
    let flash = need!(Flash::new(&dir, BYTES, COSTS));
    let (other, before) = need!(other(&dir));
    let line = "qualify --test saturation,iops --class client --capacity 100% --time 8ms --rounds 5 --json";
    let ran = dir.run(&format!("{line} --overwrite {} {}", flash.identity, flash.device.path));
    let document = ran.json();
    assert_documented(&document, "qualify");
    assert_judged_alike(&document, 5);
    let [fresh, saturated] = saturation_ns(&document, &flash.model().write_ns);
    assert!(fresh < 1.1 * COSTS.program_ns as f64 && saturated > 2.0 * fresh, "{fresh} {saturated}");
    let last = of_test(&document, "rounds", "saturation").last().unwrap()["written_bytes"].as_u64();
    assert!(last >= Some(4 * BYTES), "{last:?}");
    assert!(std::fs::read(&other.path).unwrap() == before, "another device was written");
}

#[test]
fn a_device_that_drifts_is_never_steady() {
    let most = 8;
    let drifts = || {
        let dir = Dir::new();
        // As much as is in flight.
        let costs = Costs { program_ns: 20_000, grow_after_pages: Some(8192), ..COSTS };
        let flash = Flash::new(&dir, BYTES, costs)?;
        let line = format!("qualify {SHORT} --rounds {most} --json --overwrite {}", flash.identity);
        Ok(dir.run(&format!("{line} {}", flash.device.path)))
    };
    // A machine that is busy at first makes the fall smaller.
    let is_steady = |ran: &Result<Ran, String>| ran.as_ref().is_ok_and(|ran| ran.status != Some(6));
    let ran = need!(std::iter::repeat_with(drifts).take(3).find(|ran| !is_steady(ran)).unwrap());
    let document = ran.json();
    assert_judged_alike(&document, most);
    let conclusion = format!("throughput 1MiB: not steady after {most} rounds.");
    assert_eq!((&document["conclusion"], &document["verdict"]), (&conclusion.into(), &"CANNOT TELL".into()));
    let figures = ["iops", "mib_per_s", "mean_ns", "p99_ns", "p999_ns", "p9999_ns", "max_ns"];
    let rows = document["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| figures.iter().all(|figure| row[figure].is_null())), "{document}");
}

/// Kills a study on a fresh device while it waits for the first request after so many written pages, and has it go on;
/// returns how many entries the history had before, and the document.
fn killed_at(pages: u64) -> Result<(usize, Value), String> {
    let dir = Dir::new();
    let flash = Flash::new(&dir, BYTES, COSTS)?;
    let (other, before) = other(&dir)?;
    flash.hold_at(Some(pages));
    let line = format!("qualify {SHORT} --rounds 7 --overwrite {} {}", flash.identity, flash.device.path);
    let running = start(alone(&dir, &line));
    until("a request is held", || flash.is_held());
    signal(running.0.id(), "KILL");
    flash.hold_at(None);
    assert_eq!(finish(running).status, None);
    let entries = (1..).find(|entries| !has_recorded(&dir, entries + 1)).unwrap();
    let document = finish(start(alone(&dir, &format!("{line} --resume --json")))).json();
    assert_documented(&document, "qualify");
    assert_eq!(document["complete"], Value::from(true), "{document}");
    assert!(std::fs::read(&other.path).unwrap() == before, "another device was written");
    Ok((entries, document))
}

#[test]
fn a_study_goes_on_after_it_was_killed_in_any_phase() {
    // A round writes what is in flight, 8192 pages, and at most 20 MiB more: its time is at least that of the model.
    let (first, later) = (PRECONDITIONING_PAGES + 1, PRECONDITIONING_PAGES + 8192 + 5 * 1024 + 1);
    for (pages, least) in [(PRECONDITIONING_PAGES / 2, 1), (first, 3), (later, 5)] {
        let (entries, document) = need!(killed_at(pages));
        assert!(entries == least || pages == later && entries > least && entries % 2 == 1, "{entries}");
        // The study, its preconditioning, and two measurements of each round before, with the reads of the one that was killed.
        let counts_from = (entries > 1).then_some(entries as u64 / 2 + 1);
        for test in document["tests"].as_array().unwrap() {
            assert_eq!(test["interrupted_before_round"], counts_from.map_or(Value::Null, Value::from));
            assert!(test["window_from"].as_u64() >= counts_from.or(Some(1)), "{test}");
        }
        let in_window = |row: &&Value| row["in_window"] == true;
        let mut windows = document["rounds"].as_array().unwrap().iter().filter(in_window);
        assert!(windows.all(|row| row["round"].as_u64() >= counts_from), "{document}");
    }
}

#[test]
fn one_pass_of_sprandom_precedes_random_tests_and_is_said() {
    let dir = Dir::new();
    let flash = need!(Flash::new(&dir, BYTES, COSTS));
    let (path, device) = (&flash.identity, &flash.device.path);
    let short = SHORT.replace("throughput", "latency").replace("50ms", "2ms");
    let line = format!("qualify {short} --rounds 1 --overwrite {path} {device} --sprandom");
    let refused = dir.run(&line);
    let said = "8MiB of 32MiB are used, and the flash of all the rest is to spare; write --sprandom=3.60";
    assert!(refused.assert_status(1).stderr.contains(said), "{refused:?}");
    dir.run(&format!("{line}=x")).assert_status(1);
    dir.run(&format!("{line}=0")).assert_status(1);
    dir.run(&format!("{line} --keep-preconditioning")).assert_status(1);
    let refused = dir.run(&format!("{}=7%", line.replace("latency", "throughput")));
    assert!(refused.assert_status(1).stderr.contains("add iops or latency to --test"), "{refused:?}");
    let job_file = dir.run(&format!("{line}=25% --dry-run")).assert_success().stdout.clone();
    assert!(job_file.contains("sprandom=1") && job_file.contains("spr_op=0.25"), "{job_file}");
    let ran = dir.run(&format!("{line}=25%"));
    assert_fits_terminal(&ran.assert_status(6).stdout);
    let text = in_one_line(&ran.stdout);
    assert!(
        text.contains("Preconditioning latency: one pass of random 4KiB writes over 8MiB, 1.25 times"),
        "{text}"
    );
    assert!(text.contains("Not PTS random tests begin after one pass of sprandom"), "{text}");
    let document = dir.run(&format!("{line}=25% --json")).json();
    assert_documented(&document, "qualify");
    assert_eq!(document["sprandom_spare_share"], 0.25);
}
