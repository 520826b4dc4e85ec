//! Profiles on synthetic reports and observations.
//!
//! Invariant: figures in sentences are those of the tables.

use fiord_options::job;
use fiord_profile::{DiskTotals, ProcessorTicks, Reading, RequestTimes, Stacks};
use fiord_report::{Finding, RunReport, Subject};
use fiord_stats::Usage;

use super::*;
use crate::ranges;
use crate::sweep::Counted;
use crate::testing::{direction, report};

fn profile(direct: &str) -> Profile {
    let values = ranges::values(std::ffi::OsStr::new(direct), None).unwrap();
    let key = Key { spec: job::Access::direct, counted: Counted::Other, values };
    let job = SweptJob { sections: vec![Section::new("profile")] };
    Profile::new(vec![key], &job, Rounds { min: 2, max: 2 }, &|_| Duration::from_secs(1)).unwrap()
}

/// A run of one thread for a second: that many writes, and its CPU times in milliseconds.
fn ran(step: usize, ios: u64, user_ms: u64, system_ms: u64) -> StepResult {
    let mut report = report(None, Some(direction(ios, 4096, 1000)));
    report.jobs[0].stats.usage = Usage {
        user_us: user_ms * 1000,
        system_us: system_ms * 1000,
        context_switches: 2 * ios,
        elapsed_ms: 1000,
        ..Usage::default()
    };
    StepResult { step, report }
}

/// What was observed of a run whose disks took so long, and wrote so much.
fn seen(requests_ms: u64, write_bytes: u64) -> Observation {
    let end = Reading {
        at_ns: 1_000_000_000,
        ticks: ProcessorTicks { user: 10, system: 80, idle: 110, ..ProcessorTicks::default() },
        ios: 1000,
        disks: Some(DiskTotals { write_bytes, busy_ms: requests_ms, requests_ms, ..DiskTotals::default() }),
        ..Reading::default()
    };
    let start = Reading { disks: Some(DiskTotals::default()), ..Reading::default() };
    Observation { readings: vec![start, end], processor_wait_ns: Some(50_000_000), ..Observation::default() }
}

/// Two rounds of buffered and direct writes.
fn measured() -> (Profile, Vec<StepResult>) {
    let profile = profile("0,1");
    let results =
        [ran(0, 100_000, 50, 900), ran(1, 1000, 10, 40), ran(0, 100_000, 50, 900), ran(1, 1000, 10, 40)];
    for result in &results {
        profile.observe(if result.step == 0 { seen(5000, 0) } else { seen(850, 4_096_000) });
    }
    (profile, results.to_vec())
}

#[test]
fn each_variant_says_where_its_time_goes_and_how_it_differs() {
    let (profile, results) = measured();
    let result = profile.result(&results, 80);
    let expected = "direct=0: a thread spends 10us on an I/O: 90 % in the kernel's code (system calls, page cache, file \
                    system). direct=1: a thread spends 1ms on an I/O: 85 % waiting for the block layer's queue and the \
                    device. direct=1 takes 100.0 times as long as direct=0; the largest difference is time waiting for \
                    the block layer's queue and the device, +850us. direct=0: of 781MiB written, 0 % had reached the \
                    disk at the end; its speed is that of the page cache.";
    assert!(result.conclusion.starts_with(expected), "{}", result.conclusion);
    assert!(result.conclusion.ends_with(" This is based on 2 runs of each, too few to know their spread."));
    assert_eq!(result.verdict, None);
}

#[test]
fn parts_of_every_variant_add_up_and_text_fits() {
    let (profile, results) = measured();
    for count in 1..=results.len() {
        let result = profile.result(&results[..count], 80);
        let percent = |run: &str, key: &str| {
            let of = |row: &&Vec<Cell>| row[0] == Cell::Text(run.to_string());
            let rows = result.table.rows.iter().filter(of);
            let rows = rows.filter(|row| (row[1] == Cell::Text("all".to_string())) == (key == "all"));
            rows.filter_map(|row| row[4].figure()).sum::<f64>()
        };
        for run in ["direct=0", "direct=1"].iter().take(count) {
            assert!((percent(run, "parts") - percent(run, "all")).abs() < 0.01, "{run}");
        }
        assert!(result.text.lines().all(|line| line.chars().count() <= 80), "{}", result.text);
    }
    let text = profile.result(&results, 80).text;
    assert!(text.contains("direct=0  100000") && text.contains("waiting: processor"), "{text}");
    assert!(text.contains("x 100"), "{text}");
    assert!(profile.result(&[], 80).conclusion.is_empty());
}

#[test]
fn nothing_is_concluded_from_void_figures_but_the_cache_is_what_is_shown() {
    let (profile, mut results) = measured();
    let of = |code, sentence: &str| Finding::new(code, Subject::Run, sentence, "");
    let with = |results: &mut Vec<StepResult>, finding: Finding| {
        results
            .iter_mut()
            .for_each(|run| run.report = RunReport { findings: vec![finding.clone()], ..run.report.clone() });
    };
    with(&mut results, of(Code::NotYetWritten, "data is not on the disk"));
    assert!(profile.result(&results, 80).conclusion.starts_with("direct=0: a thread"));
    let mut results = measured().1;
    results[1].report.findings = vec![of(Code::CpuContended, "processors were busy")];
    let result = profile.result(&results, 80);
    assert!(
        result.conclusion.starts_with("CANNOT TELL, because processors were busy"),
        "{}",
        result.conclusion
    );
    assert_eq!(result.verdict, Some(Verdict::Undecided));
}

#[test]
fn what_was_not_observed_is_named_once() {
    let profile = profile("0,1");
    let lacking = vec!["requests: no permission".to_string()];
    for _ in 0..2 {
        profile.observe(Observation { lacking: lacking.clone(), ..seen(850, 0) });
    }
    let result = profile.result(&[ran(0, 10, 1, 1), ran(1, 10, 1, 1)], 80);
    assert_eq!(result.text.matches("Not observed: requests: no permission.").count(), 1);
    assert_eq!(result.facts, [("lacking", Cell::List(lacking))]);
}

#[test]
fn variants_that_cannot_be_shown_side_by_side_are_refused() {
    let values = ranges::values(std::ffi::OsStr::new("1,2,3,4,5,6,7"), None).unwrap();
    let key = Key { spec: job::Queue::iodepth, counted: Counted::Other, values };
    let job = SweptJob { sections: vec![Section::new("profile")] };
    let refused = Profile::new(vec![key], &job, Rounds::ONE, &|_| Duration::ZERO).err().unwrap();
    assert!(refused.starts_with("7 variants; at most 6"), "{refused}");
    let alone = Profile::new(Vec::new(), &job, Rounds::ONE, &|_| Duration::from_secs(2)).unwrap();
    assert_eq!(
        (alone.steps()[0].name.as_str(), alone.purpose().as_str()),
        ("the job", "where the time of a job goes")
    );
}

#[test]
fn changes_are_percentages_or_factors() {
    assert_eq!(tables::change(100.0, 150.0), Cell::Formatted("+50 %".to_string(), 50.0));
    assert_eq!(tables::change(100.0, 25.0), Cell::Formatted("-75 %".to_string(), -75.0));
    assert_eq!(tables::change(100.0, 3520.0).shown(), "x 35");
    assert_eq!(tables::change(0.0, 20.0), Cell::None);
}

/// What was observed with tracepoints and samples: half of the time requests were in the queue, for a third at the device.
fn traced() -> Observation {
    let requests = RequestTimes {
        queue_ns: vec![1000, 3000],
        device_ns: vec![10_000, 20_000],
        queue_mean: 0.5,
        device_mean: 0.3,
        window_ns: 1_000_000_000,
    };
    let mut stacks = Stacks::default();
    for (function, count) in [("copy_page_from_iter", 60), ("blk_mq_submit_bio", 20), ("fdget", 20)] {
        let stack = ["entry_SYSCALL_64", "vfs_write", function].map(str::to_string);
        stacks.counts.insert(stack.to_vec(), count);
    }
    Observation { requests: Some(requests), stacks: Some(stacks), ..seen(850, 0) }
}

#[test]
fn tracepoints_and_samples_divide_what_counters_do_not() {
    let profile = profile("0,1");
    profile.observe(traced());
    profile.observe(traced());
    let results = [ran(0, 1000, 50, 100), ran(1, 1000, 50, 100)];
    let result = profile.result(&results, 80);
    let part = |key: &str| {
        let row = result.table.rows.iter().find(|row| row[1] == Cell::Text(key.to_string())).unwrap();
        (row[4].figure().unwrap(), row[6].shown())
    };
    let of = |ms: f64, source: &str| (ms, source.to_string());
    assert_eq!(part("system_call"), of(20.0, "perf"));
    assert_eq!((part("file_system"), part("block_code")), (of(60.0, "perf"), of(20.0, "perf")));
    assert_eq!((part("queue"), part("device")), (of(500.0, "tracepoints"), of(300.0, "tracepoints")));
    assert_eq!(part("other"), of(0.0, "the rest"));
    assert!(
        result.text.contains("REQUESTS  QUEUE") && result.text.lines().all(|line| line.chars().count() <= 80)
    );
    assert!(
        result.conclusion.contains("50 % waiting in the queue of the block layer"),
        "{}",
        result.conclusion
    );
    let sections = profile.sections(&results);
    let ids: Vec<&str> = sections.iter().map(|section| section.id).collect();
    assert_eq!(ids, ["time", "over-time", "requests", "flames"]);
    assert_eq!(sections[3].pictures.len(), 4, "one for each, and the difference in both directions");
    // One for wide screens, one for narrow ones.
    let screens: Vec<Screen> = sections[0].pictures.iter().map(|(_, screen)| *screen).collect();
    assert_eq!(screens, [Screen::Wide, Screen::Narrow]);
    assert!(sections[0].pictures.iter().all(|(svg, _)| svg.contains("waiting: device: 30.0 %")));
    assert!(profile.sections(&[]).is_empty());
}
