//! Tests of a qualification on devices whose figures are made up.

use std::time::Duration;

use fiord_report::Subject;

use super::kept::Counter;
use super::*;
use crate::several::Several;
use crate::testing::{direction, report, settings, target};

fn study(tests: &[Test]) -> Qualify {
    let settings = Settings {
        tests: tests.to_vec(),
        class: Class::Enterprise,
        time: Duration::from_secs(1),
        rounds_max: 25,
        confirmed: false,
        sprandom: None,
    };
    Qualify::new(target(), settings).unwrap()
}

/// Carries a study out from these results on a device that does so many I/Os in the second of each run; stops after so
/// many results.
fn carry_on(
    study: &Qualify,
    results: &mut Vec<StepResult>,
    most: usize,
    ios: impl Fn(&str, usize) -> u64,
) -> Vec<String> {
    let mut names = Vec::new();
    while results.len() < most {
        let number = results.len();
        let Some(step) = study.steps().get(number).cloned().or_else(|| study.next(results)) else { break };
        let of = Some(direction(ios(&step.name, number), 4096, 1000));
        let is_read = step.name.contains(" 100/0 ");
        results.push(StepResult {
            step: number,
            report: if is_read { report(of, None) } else { report(None, of) },
        });
        names.push(step.name);
    }
    names
}

#[test]
fn a_round_has_seven_mixes_of_eight_sizes_and_ends_when_it_is_steady() {
    let study = study(&[Test::Iops]);
    assert_eq!(study.steps().len(), 57);
    assert_eq!(study.steps()[1].name, "iops 100/0 1MiB");
    assert_eq!(
        settings(&study.steps()[0]),
        "[precondition] size=1073741824 direct=1 randrepeat=0 group_reporting=1 ioengine=io_uring stonewall=1 rw=write \
         bs=131072 iodepth=32 loops=2 refill_buffers=1 end_fsync=1"
    );
    assert!(
        settings(&study.steps()[10])
            .ends_with("rw=randrw bs=131072 iodepth=32 numjobs=4 norandommap=1 rwmixread=95")
    );
    let mut results = Vec::new();
    // The first two rounds are those of a fresh device.
    let names =
        carry_on(&study, &mut results, usize::MAX, |_, number| if number < 1 + 2 * 56 { 3000 } else { 1000 });
    assert_eq!(names.len(), 1 + 7 * 56);
    assert_eq!(names[57], "iops 100/0 1MiB, round 2");
    let result = study.result(&results, 80);
    assert_eq!(result.conclusion, "iops: 4KiB writes 1000 IOPS in steady state.");
    assert_eq!((result.table.rows.len(), result.verdict), (56, None));
    assert!(
        result.text.starts_with("iops: steady after 7 rounds (0/100 4KiB: excursion 0.0 %, slope +0.0 %;"),
        "{}",
        result.text
    );
    assert!(
        result.text.contains("0/100 4KiB by round: 3000, 3000, 1000, 1000, 1000, 1000, 1000\n"),
        "{}",
        result.text
    );
    assert!(result.text.lines().all(|line| line.chars().count() <= 80), "{}", result.text);
}

#[test]
fn what_never_becomes_steady_has_a_verdict_instead_of_figures() {
    let study = study(&[Test::Throughput]);
    let mut results = Vec::new();
    let drifting = |_: &str, number: usize| (100_000.0 * 0.98_f64.powi(number as i32)) as u64;
    let names = carry_on(&study, &mut results, usize::MAX, drifting);
    assert_eq!(names.len(), 2 * (1 + 2 * 25), "each block size has rounds of its own");
    assert_eq!(names[51], "throughput 1MiB: preconditioning");
    let result = study.result(&results, 80);
    assert_eq!(
        result.conclusion,
        "throughput 128KiB: not steady after 25 rounds. throughput 1MiB: not steady after 25 rounds."
    );
    assert_eq!(result.verdict, Some(Verdict::Undecided));
    assert!(result.table.rows.iter().all(|row| row[3] == Cell::None), "{:?}", result.table);
}

#[test]
fn temperatures_and_what_was_too_hot_are_beside_the_rounds() {
    let study = study(&[Test::Throughput]);
    let mut results = Vec::new();
    carry_on(&study, &mut results, 1 + 2 * 5, |_, _| 1000);
    assert!(!study.result(&results, 80).text.contains("Celsius"), "nothing of what is not known");
    for (number, run) in results.iter_mut().enumerate().skip(1) {
        run.report.devices = vec![Default::default()];
        run.report.devices[0].holds_files = true;
        run.report.devices[0].samples = vec![Default::default()];
        run.report.devices[0].samples[0].temperature_celsius =
            (number != 3 && number != 4).then_some(40 + number as i32);
    }
    for code in [Code::DeviceOverheated, Code::CpuOverheated] {
        results[5].report.findings.push(Finding::new(code, Subject::Run, "it was too hot", ""));
    }
    let result = study.result(&results, 80);
    assert!(!result.text.contains("watts") && !result.table.csv().contains("watts"), "{}", result.text);
    assert!(result.text.contains("degrees Celsius by round: 42, -, 46, 48, 50\n"), "{}", result.text);
    assert!(
        result.text.contains("too hot in rounds: 3 (cpu-overheated and device-overheated)\n"),
        "{}",
        result.text
    );
    let (_, rounds) = result.tables.iter().find(|(name, _)| *name == "rounds").unwrap();
    let column = rounds.columns.iter().position(|column| column.key == "overheated").unwrap();
    assert_eq!(rounds.rows.iter().filter(|row| row[column] != Cell::None).count(), 1);
}

#[test]
fn power_is_beside_the_rounds_and_in_the_rows_where_the_machine_tells_it() {
    let study = study(&[Test::Throughput]);
    let mut results = Vec::new();
    carry_on(&study, &mut results, 1 + 2 * 5, |_, _| 1000);
    // Reads take 10 W, writes 20 W, and one round is not known.
    for (number, run) in results.iter_mut().enumerate().skip(1).filter(|(number, _)| !(5..7).contains(number))
    {
        run.report.energy = vec![Default::default()];
        run.report.energy[0].energy_uj = if number % 2 == 1 { 10_000_000 } else { 20_000_000 };
        run.report.energy[0].elapsed_ns = 1_000_000_000;
        run.report.energy[0].idle_uw = (number < 9).then_some(5_000_000);
    }
    let result = study.result(&results, 80);
    assert!(result.text.contains("watts by round: 15.0, 15.0, -, 15.0, 15.0\n"), "{}", result.text);
    let column = result.table.columns.iter().position(|column| column.key == "watts").unwrap();
    let watts: Vec<&Cell> = result.table.rows.iter().map(|row| &row[column]).collect();
    assert_eq!(watts, [&Cell::Number(10.0, 2), &Cell::Number(20.0, 2)]);
    // Of reads 5 J above idle, of writes 15 J, in the rounds before which the machine was measured.
    let (ios, bytes) =
        (|row: usize| &result.table.rows[row][column + 1], |row: usize| &result.table.rows[row][column + 2]);
    let number = |cell: &Cell| match cell {
        Cell::Number(value, _) => *value,
        other => panic!("{other:?}"),
    };
    assert!((number(ios(0)) / number(ios(1)) - 3.0).abs() < 0.01, "{:?}", result.table.rows);
    assert!(number(bytes(0)) > number(ios(0)));
    assert!(result.table.csv().contains(",watts,iops_per_watt,bytes_per_joule\r\n"));
    let (_, rounds) = result.tables.iter().find(|(name, _)| *name == "rounds").unwrap();
    let column = rounds.columns.iter().position(|column| column.key == "watts").unwrap();
    let known = rounds.rows.iter().filter(|row| row[column] == Cell::Number(20.0, 2)).count();
    assert_eq!(known, 4, "{rounds:?}");
}

#[test]
fn what_is_kept_is_not_written_and_what_is_missing_is_said() {
    let kept = Kept {
        run: 12,
        date: "2026-11-28".to_string(),
        size_bytes: 1 << 30,
        written_since_bytes: 7 << 30,
        counted_by: Counter::Kernel,
        unrecorded_bytes: 0,
        unit_bytes: 1,
    };
    let found = [(128 << 10, Err("there were discards since run 3".to_string())), (1 << 20, Ok(kept))];
    let study = study(&[Test::Throughput, Test::Latency]);
    assert_eq!(study.precondition_blocks(), [128 << 10, 1 << 20]);
    let study = study.keeping(&found);
    assert_eq!(study.precondition_blocks(), [128 << 10]);
    let anew = self::study(&[Test::Throughput, Test::Latency]);
    assert_eq!((study.kept_runs(), anew.kept_runs()), (vec![(1 << 20, 12)], Vec::new()));
    let lines: Vec<String> =
        study.outline().heading.iter().map(|(name, text)| format!("{name}: {text}")).collect();
    assert!(lines.contains(&"Preconditioning: 128KiB: done: there were discards since run 3".to_string()));
    let kept = "Preconditioning: 1MiB: kept: run 12 of 2026-11-28 wrote 2 times 1GiB; 7GiB written since, all by runs of the history";
    assert!(lines.contains(&kept.to_string()), "{lines:?}");
    assert!(
        lines.iter().any(|line| line.starts_with("Not PTS: preconditioning with blocks of 1MiB is kept"))
    );
    let mut results = Vec::new();
    let names = carry_on(&study, &mut results, usize::MAX, |_, _| 1000);
    let written: Vec<&String> = names.iter().filter(|name| name.contains("preconditioning")).collect();
    assert_eq!(written, ["throughput 128KiB: preconditioning", "latency: preconditioning"]);
    assert_eq!(names.len(), 2 + 2 * 5 * 2 + 5 * 9);
}

#[test]
fn one_pass_of_sprandom_is_for_random_tests_on_flash() {
    let with = |tests: &[Test], target: StudyTarget| {
        Qualify::new(target, Settings { sprandom: Some(0.25), ..study(tests).settings })
    };
    let study = with(&[Test::Iops, Test::Throughput], target()).unwrap();
    assert_eq!(
        settings(&study.steps()[0]),
        "[precondition] size=1073741824 direct=1 randrepeat=0 group_reporting=1 ioengine=io_uring stonewall=1 rw=randwrite \
         bs=4096 iodepth=32 sprandom=1 spr_op=0.25 refill_buffers=1 end_fsync=1"
    );
    let throughput = study.phases[1].precondition.as_ref().unwrap();
    assert!(settings(throughput).contains("rw=write bs=131072"), "{}", settings(throughput));
    assert!(study.purpose().ends_with("25 rounds at most, sprandom with 0.25"), "{}", study.purpose());
    let lines: Vec<String> =
        study.outline().heading.iter().map(|(name, text)| format!("{name}: {text}")).collect();
    assert!(
        lines[1].contains("and 5.25GiB of preconditioning"),
        "once 1.25 and twice 2 times 1 GiB: {lines:?}"
    );
    let said = "Preconditioning: iops: one pass of random 4KiB writes over 1GiB, 1.25 times as much, in the order of sprandom";
    assert!(lines[2].starts_with(said), "{lines:?}");
    assert!(lines[3].starts_with("Not PTS: random tests begin after one pass of sprandom"), "{lines:?}");
    let refused = |tests: &[Test], target: StudyTarget| with(tests, target).err().unwrap_or_default();
    assert!(refused(&[Test::Throughput], target()).contains("add iops or latency"));
    let mut rotating = target();
    rotating.devices.rows[0][4] = Cell::Flag(true);
    assert!(refused(&[Test::Latency], rotating).contains("/data: sda is reported as rotating"));
}

#[test]
fn what_overwrites_at_random_is_left_out_by_name_where_zones_are_written_in_sequence() {
    let with = |tests: &[Test]| {
        let zoned = StudyTarget { zone_bytes: Some(256 << 20), ..target() };
        Qualify::new(zoned, study(tests).settings)
    };
    let all = with(&Test::ALL).unwrap();
    let phases: Vec<&str> = all.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(phases, ["write saturation", "iops", "throughput 128KiB", "throughput 1MiB", "latency"]);
    for step in all.clone().with_all_steps().steps() {
        let settings = settings(step);
        let overwrites = settings.contains("rw=randrw") || settings.contains("rw=randwrite");
        assert!(settings.contains(" zonemode=zbd "), "{settings}");
        assert_eq!(overwrites, step.name == "write saturation 0/100 128KiB", "{settings}");
        assert_eq!(overwrites, settings.contains(" job_max_open_zones=1"), "{settings}");
    }
    let heading = all.outline().heading.iter().find(|(name, _)| *name == "Left out").unwrap();
    let said = "saturation: random writes of 4KiB; iops: all mixes with writes; latency: all mixes with writes; cross-stimulus: all of \
                it; idle-recovery: all of it. The zones of /data (256MiB) are written in sequence only";
    assert_eq!(heading.1, said);
    let mut results = Vec::new();
    let names =
        carry_on(&with(&[Test::Iops, Test::Latency]).unwrap(), &mut results, usize::MAX, |_, number| {
            if number < 1 + 2 * 8 { 3000 } else { 1000 }
        });
    assert_eq!(names.len(), 1 + 7 * 8 + 1 + 5 * 3, "the first two rounds are not steady");
    let result = with(&[Test::Iops, Test::Latency]).unwrap().result(&results, 80);
    assert_eq!(
        result.conclusion,
        "iops: 4KiB reads 1000 IOPS in steady state. latency: 4KiB reads 1us on average in steady state."
    );
    let (_, left_out) = result.tables.iter().find(|(name, _)| *name == "left_out").unwrap();
    assert_eq!(left_out.rows.len(), 2);
    // What drifts is not steady by its reads either.
    let (drifting, mut results) = (with(&[Test::Iops]).unwrap(), Vec::new());
    carry_on(&drifting, &mut results, usize::MAX, |_, number| {
        (100_000.0 * 0.96_f64.powi(number as i32 / 8)) as u64
    });
    assert_eq!(drifting.result(&results, 80).conclusion, "iops: not steady after 25 rounds.");
    // What a dry run shows of it beside an ordinary device: all of one, then all of the other.
    let beside = [("/z", all), ("/o", study(&[Test::Iops]))];
    let boxed = |(name, study): (&str, Qualify)| (name.to_string(), Box::new(study.with_all_steps()) as _);
    let both = Several::new(beside.map(boxed).into()).unwrap();
    let names: Vec<&str> = both.steps().iter().map(|step| step.name.as_str()).collect();
    assert_eq!(
        (names.len(), names[0]),
        (1 + 9 + 6 + 4 + 57, "/z: write saturation 0/100 128KiB"),
        "{names:?}"
    );
    assert!(names[20..].iter().all(|name| name.starts_with("/o: iops")), "{names:?}");
    let refused = with(&[Test::CrossStimulus, Test::IdleRecovery]).err().unwrap();
    assert!(refused.starts_with("/data: ") && refused.contains("add iops"), "{refused}");
    let settings = Settings { sprandom: Some(0.25), ..study(&[Test::Iops]).settings };
    let zoned = StudyTarget { zone_bytes: Some(256 << 20), ..target() };
    assert!(Qualify::new(zoned, settings).err().unwrap().contains("written in sequence only"));
}

#[test]
fn the_time_of_rounds_has_two_ends_only_if_they_differ() {
    let time = |rounds_max| {
        let settings = Settings { rounds_max, ..study(&[Test::Latency]).settings };
        Qualify::new(target(), settings).unwrap().outline().heading[1].1.clone()
    };
    assert!(time(1).starts_with("9 s of rounds, and"), "{}", time(1));
    assert!(time(10).starts_with("45 s to 1 min 30 s of rounds, and"), "{}", time(10));
}

#[test]
fn a_round_that_was_interrupted_before_and_within_is_in_no_window() {
    for (breaks, first) in
        [(vec![1], Cell::None), (vec![1, 3], Cell::Count(2)), (vec![10, 12, 19], Cell::Count(3))]
    {
        let study = study(&[Test::Latency]).interrupted_before(breaks);
        let mut results = Vec::new();
        carry_on(&study, &mut results, usize::MAX, |_, _| 1000);
        let result = study.result(&results, 80);
        let (_, tests) = result.tables.iter().find(|(name, _)| *name == "tests").unwrap();
        assert_eq!(tests.rows[0].last(), Some(&first));
    }
}

#[test]
fn an_interrupted_run_completes_no_window() {
    let study = study(&[Test::Latency]);
    let mut results = Vec::new();
    carry_on(&study, &mut results, usize::MAX, |_, _| 1000);
    assert!(study.result(&results, 80).conclusion.contains("in steady state"));
    let last = results.last_mut().unwrap();
    last.report.findings.push(Finding::new(Code::Interrupted, Subject::Run, "it was ended", ""));
    let result = study.result(&results, 80);
    assert_eq!((result.conclusion.as_str(), result.verdict, result.table.rows.len()), ("", None, 0));
    assert!(result.text.starts_with("latency: not complete, after 4 rounds."), "{}", result.text);
}

/// The figures of a noisy device by round, that becomes even from this round on.
fn noisy_until(even_from: usize) -> impl Fn(&str, usize) -> u64 {
    move |_, number| {
        let round = number.saturating_sub(1) / 2;
        if round < even_from { [1040, 960, 960, 1040, 1000][round % 5] } else { 1000 }
    }
}

#[test]
fn what_is_steady_is_not_said_to_drift_little_before_that_is_confirmed() {
    let confirmed = |confirmed| {
        let settings = Settings { confirmed, class: Class::Client, ..study(&[Test::Throughput]).settings };
        Qualify::new(target(), settings).unwrap()
    };
    let of_window = |result: &StudyResult| {
        let (_, tests) = result.tables.iter().find(|(name, _)| *name == "tests").unwrap();
        [6, 7, 13].map(|column| tests.rows[0][column].clone())
    };
    for (asked, even_from, runs, window, is_confirmed) in [
        (false, 5, 5, [1, 5], false),
        (true, 5, 8, [4, 8], true),
        // By the specification the first window counts.
        (true, usize::MAX, 25, [1, 5], false),
    ] {
        let (study, mut results) = (confirmed(asked), Vec::new());
        carry_on(&study, &mut results, usize::MAX, noisy_until(even_from));
        assert_eq!(results.len(), 1 + 2 * runs);
        let result = study.result(&results, 300);
        let [from, to] = window.map(Cell::Count);
        assert_eq!(of_window(&result), [from, to, Cell::Flag(is_confirmed)]);
        let said =
            "Steady by the specification; a drift of at most 10 % is not confirmed (100/0 1MiB: +0.0 % ±";
        assert_eq!(result.text.contains(said), !is_confirmed, "{}", result.text);
        assert_eq!(result.verdict, (asked && !is_confirmed).then_some(Verdict::Undecided));
        assert_eq!(result.conclusion.contains("not confirmed"), asked && !is_confirmed);
        assert!(result.table.rows.iter().all(|row| row[5] != Cell::None), "figures of a steady window");
        assert!(result.text.starts_with(&format!("throughput 1MiB: steady after {} rounds", window[1])));
    }
}

#[test]
fn a_window_does_not_reach_over_an_interruption() {
    let whole = study(&[Test::Latency]);
    let mut results = Vec::new();
    carry_on(&whole, &mut results, 1 + 3 * 9 + 4, |_, _| 1000);
    let resumed = study(&[Test::Latency]).interrupted_before(vec![results.len()]);
    assert_eq!(
        resumed.name_after(&results, &[results.len()]).as_deref(),
        Some("latency 65/35 4KiB, round 4")
    );
    carry_on(&resumed, &mut results, usize::MAX, |_, _| 1000);
    assert_eq!(results.len(), 1 + 9 * 9, "the fourth round is in no window, and five follow");
    let between = study(&[Test::Latency]).interrupted_before(vec![1 + 3 * 9]);
    let mut results = results[..1 + 3 * 9].to_vec();
    carry_on(&between, &mut results, usize::MAX, |_, _| 1000);
    assert_eq!(results.len(), 1 + 8 * 9);
}

#[test]
fn the_saturation_comes_first_and_ends_when_four_times_the_capacity_is_written() {
    let study = study(&[Test::WriteSaturation, Test::Latency]);
    let mut results = Vec::new();
    let names = carry_on(&study, &mut results, usize::MAX, |_, _| 1 << 17);
    assert_eq!(names[8], "latency: preconditioning", "512 MiB in each round, of 4 GiB");
    let text = study.result(&results, 80).text;
    assert!(text.starts_with("write saturation: 4GiB written in 8 rounds.\n"), "{text}");
    assert_eq!(study.next(&results).map(|step| step.name), None);
}

#[test]
fn what_is_not_by_the_specification_is_said_before() {
    let heading = |study: &Qualify| {
        study.outline().heading.iter().map(|(name, text)| format!("{name}: {text}\n")).collect::<String>()
    };
    let text = heading(&study(&[Test::Iops]));
    assert!(text.contains("Purge: not done"), "{text}");
    assert!(text.contains("Not PTS: only 1GiB of 1TiB are used; each measurement takes 1 s"), "{text}");
    let read_only = StudyTarget { writable: false, ..target() };
    let settings = study(&[Test::Iops]).settings;
    assert!(Qualify::new(read_only, settings).is_err_and(|why| why.contains("--overwrite")));
}

/// The study of these tests on two devices, carried out to its end: its results, and the names of its runs.
fn on_two(one: impl Fn() -> Qualify) -> (Several, Vec<StepResult>, Vec<String>) {
    let of = |name: &str| (name.to_string(), Box::new(one().beside_others()) as Box<dyn Study>);
    let several = Several::new(vec![of("a"), of("b")]).unwrap();
    let (mut results, mut names): (Vec<StepResult>, Vec<String>) = Default::default();
    while let Some(step) = several.step(results.len(), &results) {
        let ios = if step.name.starts_with("a") { 1 << 17 } else { 1 << 18 };
        let of = Some(direction(ios, 4096, 1000));
        let is_read = step.name.contains(" 100/0 ");
        results.push(StepResult {
            step: step.repeats.unwrap(),
            report: if is_read { report(of, None) } else { report(None, of) },
        });
        names.push(step.name);
    }
    (several, results, names)
}

#[test]
fn a_test_ends_on_one_device_before_it_begins_on_the_next_and_windows_are_compared() {
    let (several, results, names) = on_two(|| study(&[Test::Throughput]));
    assert!(several.purpose().ends_with("; the same on 1GiB of /data, in turn"), "{}", several.purpose());
    let begin = |name: &str| [0, 11, 22, 33].map(|at| names[at].starts_with(name));
    assert_eq!([begin("a: "), begin("b: ")], [[true, false, true, false], [false, true, false, true]]);
    assert_eq!(
        [&names[11], &names[12], &names[22]],
        [
            "b: throughput 128KiB: preconditioning",
            "b: throughput 100/0 128KiB",
            "a: throughput 1MiB: preconditioning"
        ]
    );
    assert_eq!(names.len(), 2 * 2 * (1 + 5 * 2));
    let result = several.result(&results, 80);
    assert!(result.conclusion.starts_with("Of 4 rows, b is faster in 4"), "{}", result.conclusion);
    assert_eq!((result.table.rows.len(), result.verdict), (8, None));
}

#[test]
fn no_device_waits_for_another_before_it_is_prepared_anew() {
    let short = |tests: &[Test]| {
        let settings = Settings { rounds_max: 1, ..study(tests).settings };
        Qualify::new(target(), settings).unwrap()
    };
    let kept = || {
        let kept = Kept {
            run: 12,
            date: "2026-11-28".to_string(),
            size_bytes: 1 << 30,
            written_since_bytes: 0,
            counted_by: Counter::Kernel,
            unrecorded_bytes: 0,
            unit_bytes: 1,
        };
        let study = study(&[Test::Throughput, Test::Latency]);
        let blocks = study.precondition_blocks();
        study.keeping(&blocks.into_iter().map(|block| (block, Ok(kept.clone()))).collect::<Vec<_>>())
    };
    let saturation = || short(&[Test::WriteSaturation, Test::CrossStimulus]);
    let all: [(&dyn Fn() -> Qualify, usize); 4] = [
        (&kept, 1),
        (&saturation, 1),
        (&|| short(&[Test::IdleRecovery]), 1),
        (&|| short(&[Test::WriteSaturation, Test::Throughput, Test::IdleRecovery]), 3),
    ];
    for (one, visits) in all {
        let (_, _, names) = on_two(one);
        let mut turns: Vec<&str> = names.iter().map(|name| &name[..1]).collect();
        turns.dedup();
        assert_eq!(turns, ["a", "b"].repeat(visits), "{} runs", names.len());
        let alone: Vec<String> =
            names.iter().filter_map(|name| name.strip_prefix("b: ")).map(str::to_string).collect();
        let mut results = Vec::new();
        assert_eq!(alone, carry_on(&one(), &mut results, usize::MAX, |_, _| 1 << 18), "each as alone");
    }
}

#[test]
fn a_device_recovers_from_random_writes_and_its_states_are_not_judged() {
    let study = study(&[Test::CrossStimulus]);
    let mut results = Vec::new();
    let names = carry_on(&study, &mut results, usize::MAX, |_, number| match number {
        0..480 => 2000,
        480..840 => 500,
        840..900 => 1000,
        _ => 1800,
    });
    assert_eq!((names.len(), study.runs_max()), (1320, 1320));
    assert_eq!(
        [&names[0], &names[480], &names[841]],
        [
            "cross-stimulus sequential 0/100 1MiB",
            "cross-stimulus random 0/100 8KiB",
            "cross-stimulus sequential again 0/100 1MiB, round 2"
        ]
    );
    let result = study.result(&results, 80);
    assert_eq!(
        result.conclusion,
        "cross-stimulus: sequential 7.8 MiB/s, random 2.0 MiB/s, sequential again 6.6 MiB/s."
    );
    assert_eq!((result.verdict, result.table.rows.len()), (None, 0));
    let again = result.text.lines().last().unwrap();
    let cells: Vec<&str> = again.split_whitespace().collect();
    assert_eq!(cells[..9], ["sequential", "again", "480", "0", "1700", "6.6", "3.9", "7.0", "61"], "{again}");
    // The figures of a state are of runs that are not void.
    for run in &mut results[480..850] {
        run.report.findings.push(Finding::new(Code::DiskShared, Subject::Run, "others", ""));
    }
    let result = study.result(&results, 80);
    let expected = "random cannot be told, its runs are void, sequential again 6.7 MiB/s.";
    assert!(result.conclusion.ends_with(expected), "{}", result.conclusion);
    let (_, states) = result.tables.iter().find(|(name, _)| *name == "states").unwrap();
    assert_eq!((&states.rows[1][4], &states.rows[1][5]), (&Cell::Count(360), &Cell::None));
    assert_eq!((&states.rows[2][4], &states.rows[2][9]), (&Cell::Count(10), &Cell::Count(61)));
    results.truncate(500);
    assert!(study.result(&results, 80).conclusion.ends_with("sequential 7.8 MiB/s."), "only what is over");
}

#[test]
fn pauses_follow_once_writes_are_steady() {
    let study = study(&[Test::IdleRecovery]);
    let mut results = Vec::new();
    let faster =
        |name: &str, _: usize| if name.contains(" pauses") && !name.contains("after") { 2000 } else { 1000 };
    let names = carry_on(&study, &mut results, usize::MAX, faster);
    assert_eq!(names.len(), 2 * 5 + 5 * (360 + 30));
    assert_eq!(names[10], "idle-recovery pauses of 83 ms 0/100 4KiB");
    let step = &study.phases[3].points[0].step;
    assert!(settings(step).ends_with("runtime=83333us startdelay=166666us"), "{}", settings(step));
    assert!(settings(&study.phases[0].points[0].step).ends_with("runtime=29000000us"));
    let result = study.result(&results, 80);
    let steady = "idle-recovery: 4KiB writes 1000 IOPS in steady state. idle-recovery: pauses of 83 ms 2000 IOPS, after";
    assert!(result.conclusion.starts_with(steady), "{}", result.conclusion);
    assert_eq!(result.table.rows.len(), 1, "what is between the rounds has no row");
    assert_eq!(study.compared(&results).len(), 5);
    // All of it is one part: a device that waits for another would recover.
    assert!((0..names.len()).all(|count| study.part(&results[..count]) == Some(0)));
}
