//! Whole pages: of an invented run with everything, of hostile names, of an hour.
//!
//! Invariant: a page is compared with the report that it was made from, not with what it was before.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

use fiord_device::{CounterSample, Device, DeviceUse};
use fiord_explain::{Checks, NotedFinding};
use fiord_import::{
    DirectionFigures, DirectionName, EnergyFigures, JobFigures, LatencyFigures, Percentile, ReadError, Report,
};
use fiord_page::{LoggedJob, LoggedValue, OverTime, RunView, render};
use fiord_stats::{JobTimeline, JobTotals, MachineWindow, ProcessorShares, Timeline, TimelineWindow};

const HOSTILE: &str = "<script>alert(1)</script>\"'&<img src=x onerror=y>";

fn latency(base_ns: u64) -> LatencyFigures {
    let percentile = |(index, percent): (usize, &f64)| Percentile { percent: *percent, ns: base_ns << index };
    LatencyFigures {
        min_ns: Some(base_ns / 2),
        max_ns: Some(base_ns << 7),
        mean_ns: Some(base_ns as f64 * 1.5),
        count: Some(100_000),
        percentiles: [1.0, 50.0, 90.0, 99.0, 99.9, 99.99].iter().enumerate().map(percentile).collect(),
        bins: vec![(base_ns, 50_000), (base_ns * 2, 49_000), (base_ns * 64, 1_000)],
        ..LatencyFigures::default()
    }
}

fn direction(name: DirectionName, ios: u64) -> DirectionFigures {
    DirectionFigures {
        name,
        ios: Some(ios),
        bytes: Some(ios * 4096),
        iops: Some(ios as f64 / 10.0),
        bandwidth: Some(ios * 4096 / 10),
        runtime_ms: Some(10_000),
        clat: Some(latency(50_000 + ios)),
        ..DirectionFigures::default()
    }
}

fn job(name: &str) -> JobFigures {
    JobFigures {
        name: name.to_string(),
        directions: vec![direction(DirectionName::Read, 70_001), direction(DirectionName::Write, 30_003)],
        options: vec![
            ("rw".to_string(), "randrw".to_string()),
            ("filename".to_string(), HOSTILE.to_string()),
        ],
        ..JobFigures::default()
    }
}

/// A timeline with these many seconds, every latency bin in use, and a stall.
fn timeline(seconds: u64) -> Timeline {
    let window = |second: u64| {
        let mut window = TimelineWindow { end_ms: second * 1000, ..TimelineWindow::default() };
        let is_stalled = (6..=7).contains(&second);
        for direction in &mut window.done.directions {
            direction.ios = if is_stalled { 3 } else { 5_000 + second * 37 % 1_000 };
            direction.bytes = direction.ios * 4096;
            direction.latency_ns = direction.ios * 90_000;
            for bin in 40..80 {
                direction.latencies.counts[bin] = (second * bin as u64 * 7919) % 1_000;
            }
        }
        let processors = ProcessorShares { user: 100, system: 250, io_wait: 100, steal: 10 };
        window.machine = MachineWindow { processors: Some(processors), temperature_celsius: Some(40) };
        window
    };
    Timeline { windows: (1..=seconds).map(window).collect(), jobs: Vec::new() }
}

/// The timeline with what each of these jobs did: reads and writes, all of them different.
fn timeline_of(jobs: &[&str], seconds: u64) -> Timeline {
    let job = |(number, name): (u64, &&str)| {
        let done = |second: u64| {
            let mut done = JobTotals::default();
            for (index, direction) in done.directions.iter_mut().take(2).enumerate() {
                direction.ios = 10_000 + (second * 7919 * (number + 1)) % 5_000 + index as u64;
                direction.bytes = direction.ios * 4096;
                direction.latency_ns = direction.ios * (70_000 + second % 777 * (number + 3));
            }
            done
        };
        JobTimeline { name: name.to_string(), windows: (1..=seconds).map(done).collect() }
    };
    Timeline { jobs: (0..).zip(jobs).map(job).collect(), ..timeline(seconds) }
}

fn device(name: &str, below: &[&str], seconds: u64) -> DeviceUse {
    let sample = |second: u64| {
        let mut sample = CounterSample { elapsed_ns: second * 1_000_000_000, ..CounterSample::default() };
        sample.temperature_celsius = below.is_empty().then_some(30 + second as i32 % 10);
        sample.counters.busy_ms = second * 900;
        sample.counters.in_queue_ms = second * 4_000;
        sample
    };
    DeviceUse {
        device: Device { name: name.to_string(), kind: "disk".to_string(), ..Device::default() },
        holds_files: !below.is_empty(),
        below: below.iter().map(ToString::to_string).collect(),
        elapsed_ns: seconds * 1_000_000_000,
        samples: (1..=seconds).map(sample).collect(),
        ..DeviceUse::default()
    }
}

fn run(name: &str, job_names: &[&str], seconds: u64) -> RunView {
    let finding = NotedFinding {
        code: "write-back-cache".to_string(),
        severity: "caution".to_string(),
        subject: HOSTILE.to_string(),
        sentence: "The disk has a volatile cache".to_string(),
        remedy: "Sync".to_string(),
    };
    RunView {
        name: name.to_string(),
        report: Report { jobs: job_names.iter().map(|name| job(name)).collect(), ..Report::default() },
        findings: vec![finding],
        checks: Checks::default(),
        over_time: Some(OverTime::of(&timeline(seconds))),
        devices: vec![device("vda1", &["vda"], seconds), device("vda", &[], seconds)],
        facts: vec![("Machine".to_string(), "host".to_string())],
        command: Some(format!("fiord {HOSTILE}")),
    }
}

/// The contents of all elements of this kind with this attribute: (attribute's value, text).
fn data(page: &str, key: &str) -> Vec<f64> {
    let mark = format!("data-key=\"{key}\" value=\"");
    page.split(&mark).skip(1).map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect()
}

#[test]
fn figures_are_those_of_the_report() {
    let view = run("run 1", &["a", "b"], 20);
    let page = render(std::slice::from_ref(&view)).unwrap();
    let directions: Vec<&DirectionFigures> =
        view.report.jobs.iter().flat_map(|job| &job.directions).collect();
    let latency = |direction: &DirectionFigures| direction.clat.clone().unwrap();
    type Figure = fn(&DirectionFigures, &LatencyFigures) -> f64;
    let figures: [(&str, Figure); 9] = [
        ("iops", |direction, _| direction.iops.unwrap()),
        ("bandwidth", |direction, _| direction.bandwidth.unwrap() as f64),
        ("mean", |_, latency| latency.mean_ns.unwrap()),
        ("p50", |_, latency| latency.percentile_ns(50.0).unwrap() as f64),
        ("p99", |_, latency| latency.percentile_ns(99.0).unwrap() as f64),
        ("p999", |_, latency| latency.percentile_ns(99.9).unwrap() as f64),
        ("max", |_, latency| latency.max_ns.unwrap() as f64),
        ("ios", |direction, _| direction.ios.unwrap() as f64),
        ("bytes", |direction, _| direction.bytes.unwrap() as f64),
    ];
    for (key, figure) in figures {
        let expected: Vec<f64> =
            directions.iter().map(|direction| figure(direction, &latency(direction))).collect();
        assert_eq!(data(&page, key), expected, "{key}");
    }
    // Every listed percentile of every job and direction.
    let table = page.split("id=\"percentile-table\"").nth(1).unwrap().split("</table>").next().unwrap();
    let values: Vec<f64> = table
        .split("<data value=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().parse().unwrap())
        .collect();
    let percents = latency(directions[0]).percentiles.len();
    let expected = (0..percents)
        .flat_map(|index| directions.iter().map(move |each| latency(each).percentiles[index].ns as f64));
    assert_eq!(values, expected.collect::<Vec<_>>());
}

/// Writes to memory of 80 us that are each followed by a sync of 100 times that.
#[test]
fn writes_that_are_each_synced_are_summed_up_with_their_syncs() {
    let mut view = run("run", &["wal"], 20);
    let synced = |view: &mut RunView, syncs: u64| {
        let job = &mut view.report.jobs[0];
        job.sync.ios = Some(syncs);
        job.sync.lat = Some(LatencyFigures { count: Some(syncs), ..latency(8_000_000) });
        render(std::slice::from_ref(view)).unwrap().replace(['\u{a0}', '\u{202f}'], " ")
    };
    let each = synced(&mut view, 30_003);
    // 80.003 us and 8 ms, doubled for each percentile that is listed before.
    assert!(each.contains("half took at most 16.2 ms with their syncs, 99 % at most 64.6 ms"), "{each}");
    assert!(each.contains("half took at most 240"), "reads as before: {each}");
    let some = synced(&mut view, 300);
    assert!(!some.contains("with their syncs") && some.contains("half took at most 160"), "{some}");
}

/// The jobs that `numjobs` makes are one section, and are told apart by their numbers.
#[test]
fn clones_are_numbered_and_one_section_of_the_job_file() {
    let mut view = run("run 1", &["mix", "mix", "b", "mix", "mix", "mix"], 20);
    let section = |page: &str| page.matches("[mix]\n").count();
    let page = render(std::slice::from_ref(&view)).unwrap();
    assert_eq!(section(&page), 5, "nothing says that they are clones");
    for job in &mut view.report.jobs {
        job.options.push(("numjobs".to_string(), "2".to_string()));
    }
    let page = render(&[view]).unwrap();
    assert_eq!(section(&page), 3, "two of two, and one of which the other is not reported");
    for name in ["mix (1) read", "mix (5) write", "mix (2): ", "b read"] {
        assert!(page.contains(name), "{name} is not in the page");
    }
}

/// What all hosts ran is one section, and what they ran otherwise says whose it is.
#[test]
fn the_job_file_of_hosts_has_what_they_share_once() {
    let mut view = run("run 1", &["a", "b", "a", "b", "a", "b"], 20);
    for (at, job) in view.report.jobs.iter_mut().enumerate() {
        job.host = Some(format!("db{}", at / 2 + 1));
        job.options = vec![("rw".to_string(), "read".to_string())];
    }
    let count = |page: &str, text: &str| page.matches(text).count();
    let page = render(std::slice::from_ref(&view)).unwrap();
    assert_eq!((count(&page, "[a]\n"), count(&page, "[b]\n"), count(&page, "# on")), (1, 1, 0));
    view.report.jobs[5].options.push(("filename".to_string(), "other".to_string()));
    let page = render(&[view]).unwrap();
    assert_eq!((count(&page, "[a]\n"), count(&page, "[b]\n")), (1, 2));
    assert!(page.contains("# on db1, db2\n[b]\nrw=read\n"), "{page}");
    assert!(page.contains("# on db3\n[b]\nrw=read\nfilename=other"), "{page}");
}

#[test]
fn names_cannot_add_elements() {
    let page = render(&[run(HOSTILE, &[HOSTILE, "b"], 20)]).unwrap();
    assert!(page.contains("&lt;script&gt;alert(1)"), "the name is shown");
    assert_eq!(page.matches("<script").count(), 1);
    assert_eq!(page.matches("<img").count(), 0);
    assert!(!page.contains("<script>alert"));
}

/// Neither a request nor a way to make one; an SVG within HTML needs no namespace.
#[test]
fn nothing_outside_the_page_is_referred_to() {
    let page = render(&[run("a", &["a"], 20), run("b", &["b"], 20)]).unwrap();
    for outside in ["http://", "https://", " src=\"", "url(", "@import", "<link", "<base", "xlink", "fetch("]
    {
        assert!(!page.contains(outside), "{outside}");
    }
    let references = page.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    assert!(references.clone().count() >= 6);
    for reference in references {
        let id = reference.strip_prefix('#').unwrap_or_else(|| panic!("{reference}"));
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
    }
    assert!(page.contains("default-src &#x27;none&#x27;") || page.contains("default-src 'none'"), "a policy");
}

/// The logs of jobs that read and write, a line each per second and direction.
fn logged(jobs: &[&str], seconds: u64) -> OverTime {
    let lines = |number: u64| {
        (1..=seconds).flat_map(move |second| {
            let value = 10_000 + (second * 7919 * (number + 1)) % 5_000;
            let values = [LoggedValue::Bandwidth(value), LoggedValue::Latency(value * 11)];
            values
                .into_iter()
                .flat_map(move |value| [0, 1].map(|direction| (second * 1000, direction, value)))
        })
    };
    let numbered = (0..).zip(jobs);
    let jobs =
        numbered.map(|(number, name)| LoggedJob { name: name.to_string(), lines: lines(number).collect() });
    OverTime::of_logs(&jobs.collect::<Vec<_>>()).unwrap()
}

#[test]
fn an_hour_of_a_run_stays_below_a_megabyte() {
    let jobs: Vec<String> = (0..16).map(|number| format!("job{number}")).collect();
    let jobs: Vec<&str> = jobs.iter().map(String::as_str).collect();
    let one = render(&[run("hour", &jobs, 3600)]).unwrap();
    assert!(one.len() < 1_000_000, "{} bytes", one.len());
    let logs = RunView { over_time: Some(logged(&jobs, 3600)), ..run("hour", &jobs, 3600) };
    let one = render(&[logs]).unwrap();
    assert!(one.contains("id=\"chart-bandwidth-jobs\"") && one.contains("id=\"chart-latency-jobs\""));
    assert!(one.len() < 1_000_000, "{} bytes with logs", one.len());
    // As recorded: of an hour, a window for each four seconds.
    let recorded =
        RunView { over_time: Some(OverTime::of(&timeline_of(&jobs, 900))), ..run("hour", &jobs, 3600) };
    let one = render(&[recorded]).unwrap();
    assert!(one.contains("id=\"chart-bandwidth-jobs\"") && one.contains("id=\"chart-latency-jobs\""));
    assert!(one.len() < 1_000_000, "{} bytes with jobs", one.len());
    let two = render(&[run("a", &jobs, 3600), run("b", &jobs, 3600)]).unwrap();
    assert!(two.len() < 2_000_000, "{} bytes", two.len());
}

#[test]
fn the_same_run_gives_the_same_page() {
    let view = || [run("run 1", &["a", "b"], 60)];
    assert_eq!(render(&view()).unwrap(), render(&view()).unwrap());
}

/// A table where a source told, with what it told.
#[test]
fn energy_is_shown_where_the_machine_told_it() {
    let mut view = run("run 1", &["a"], 20);
    assert!(!render(std::slice::from_ref(&view)).unwrap().contains("Table of energy"));
    view.report.energy = vec![EnergyFigures {
        source: "package-0".to_string(),
        joules: Some(105.25),
        watts: Some(10.5),
        idle_watts: None,
        iops_per_watt: Some(3125.5),
        bytes_per_joule: None,
    }];
    let page = render(&[view]).unwrap();
    for part in ["Table of energy", ">package-0<", "value=\"105.25\"", ">10.5\u{a0}W<", "value=\"3125.5\""] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn parts_without_figures_are_left_out() {
    let full = render(&[run("a", &["a"], 20)]).unwrap();
    for part in [
        "chart-latency-directions",
        "39\u{a0}°C",
        "Stalls, with less than",
        "heat0-w",
        "id=\"chart-devices\"",
        "class=\"stall\"",
        "vda1 → vda",
    ] {
        assert!(full.contains(part), "{part}");
    }
    let bare = RunView { report: Report { jobs: vec![job("a")], ..Report::default() }, ..RunView::default() };
    let page = render(&[bare]).unwrap();
    assert!(!page.contains("id=\"over-time\"") && !page.contains("<h3>Latency over time"));
    let empty = render(&[RunView::default()]).unwrap();
    assert!(empty.contains("No job did any I"));
}

/// Few jobs have a line for each direction, many one for both.
#[test]
fn recorded_jobs_have_charts_of_their_own() {
    let page = |names: &[&str]| {
        render(&[RunView { over_time: Some(OverTime::of(&timeline_of(names, 20))), ..run("r", names, 20) }])
            .unwrap()
    };
    let legend = |page: &str| {
        let chart = page.split("id=\"chart-bandwidth-jobs\"").nth(1).unwrap();
        chart.split("</figure>").next().unwrap().to_string()
    };
    let two = legend(&page(&["one", "two"]));
    assert!(
        ["one, read", "one, write", "two, read", "two, write"].iter().all(|name| two.contains(name)),
        "{two}"
    );
    let many = legend(&page(&["a", "b", "c", "d", "e", "f", "g"]));
    assert!(many.contains(">g<") && !many.contains("g, read"), "{many}");
    assert!(!page(&["alone"]).contains("chart-bandwidth-jobs"));
}

/// The titles of axes are words, as a reader says them: no keys, no abbreviations but the field's own, no units in
/// brackets.
#[test]
fn titles_of_axes_are_plain_words() {
    let page = render(&[run("a", &["a", "b"], 20)]).unwrap();
    let titles: Vec<&str> = page
        .split("class=\"axis-title\"")
        .skip(1)
        .map(|rest| rest.split_once('>').unwrap().1.split('<').next().unwrap())
        .collect();
    assert!(titles.len() > 10, "{titles:?}");
    for title in titles {
        let words: Vec<&str> = title.split(' ').collect();
        let is_word = |(index, word): (usize, &&str)| {
            let mut letters = word.chars();
            let first = letters
                .next()
                .is_some_and(|first| first.is_alphabetic() && (index > 0 || first.is_uppercase()));
            *word == "I/Os" || first && letters.all(|letter| letter.is_lowercase())
        };
        assert!(title.len() > 3 && words.iter().enumerate().all(is_word), "{title:?}");
    }
}

/// Identifiers are unique, as labels of pictures need.
#[test]
fn identifiers_are_unique() {
    let page = render(&[run("a", &["a"], 20), run("b", &["b"], 20)]).unwrap();
    let mut ids: Vec<&str> =
        page.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

#[test]
fn the_conclusion_is_no_better_than_what_was_checked() {
    let class = |view: &RunView| {
        let page = render(std::slice::from_ref(view)).unwrap();
        let (_, rest) = page.split_once("<section class=\"conclusion ").unwrap();
        rest.split('"').next().unwrap().to_string()
    };
    let made = vec!["depth".to_string()];
    let all = RunView {
        report: Report { jobs: vec![job("a")], ..Report::default() },
        checks: Checks { made: made.clone(), missing: Vec::new() },
        ..RunView::default()
    };
    assert_eq!(class(&all), "good");
    assert_eq!(class(&RunView { checks: Checks::default(), ..all.clone() }), "open", "nothing was checked");
    let missing = vec![("caches".to_string(), "no disks".to_string())];
    let some = RunView { checks: Checks { made, missing }, ..all.clone() };
    assert_eq!(class(&some), "open");
    let page = render(&[some]).unwrap();
    assert!(
        page.contains("what was checked: depth.") && page.contains("Not checked: caches (no disks)."),
        "{page}"
    );
    let mut damaged = all.clone();
    damaged.report.damage = vec![ReadError { line: 7, column: 3, problem: "the line ends".to_string() }];
    assert_eq!(class(&damaged), "open");
    assert!(render(&[damaged]).unwrap().contains("Line 7, column 3: the line ends."));
    let mut failed = all;
    failed.report.jobs[0].error = Some(5);
    assert_eq!(class(&failed), "void");
}

/// More jobs than a page can show are counted, and each of them is looked at once.
#[test]
fn jobs_beyond_a_thousand_are_counted() {
    let jobs: Vec<JobFigures> = (0..3000).map(|number| job(["a", "b", "c"][number % 3])).collect();
    let view = RunView { report: Report { jobs, ..Report::default() }, ..RunView::default() };
    let page = render(&[view]).unwrap();
    assert!(page.contains("2000 more jobs are not on this page"));
    assert!(page.contains("a (334)") && !page.contains("a (335)"));
}
