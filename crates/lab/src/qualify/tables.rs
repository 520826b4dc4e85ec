//! What a qualification shows: tables for programs and readers, and sentences.
//!
//! Invariant: rows have the figures of a steady window, and nothing if a test did not become steady. Rates and means are
//! the means of its rounds; percentiles are of all their I/Os together.

use std::collections::BTreeSet;

use super::figures::{Figures, mean_of};
use super::phase::{End, Measure, Point, SATURATION_FILLS};
use super::progress::{PhaseRuns, figure};
use super::settings::Test;
use super::states;
use super::window::{EXCURSION_MAX, SLOPE_MAX, WINDOW_ROUNDS, Window};
use crate::figures::whole_run;
use crate::step::StepResult;
use crate::study::counted;
use fiord_report::table::{Cell, Column, Table, shown_bytes, wrapped};
use fiord_report::{Code, energy};
use fiord_stats::{Capped, Gather};

/// Whether a test ended without becoming steady.
pub(super) fn is_not_steady(runs: &PhaseRuns<'_>) -> bool {
    matches!(runs.phase.end, End::Steady { .. }) && runs.is_over && !runs.is_steady()
}

/// Whether a test went on until its drift was confirmed to be small, and it was not.
pub(super) fn is_unconfirmed(runs: &PhaseRuns<'_>) -> bool {
    matches!(runs.phase.end, End::Steady { confirmed: true, .. }) && runs.is_over && !runs.is_confirmed()
}

/// Whether a test became steady.
fn is_steady(runs: &PhaseRuns<'_>) -> bool {
    matches!(runs.phase.end, End::Steady { .. }) && runs.is_over && runs.is_steady()
}

fn is_saturation(runs: &PhaseRuns<'_>) -> bool {
    runs.phase.test == Test::WriteSaturation
}

/// The measurements that are followed from round to round, with their numbers.
fn followed<'r>(runs: &PhaseRuns<'r>) -> impl Iterator<Item = (usize, &'r Point)> {
    let all = is_saturation(runs) || runs.is_state();
    runs.phase.points.iter().enumerate().filter(move |(_, point)| all || point.is_tracked)
}

/// The runs that figures in the rows are made of, with what they measure.
pub(super) fn in_steady_windows<'r>(runs: &PhaseRuns<'r>) -> Vec<(&'r Point, &'r StepResult)> {
    let rounds = if is_steady(runs) { runs.window_rounds() } else { &[] };
    let measured = |round: &&'r [StepResult]| runs.phase.points.iter().zip(round.iter());
    rounds.iter().flat_map(measured).filter(|(point, _)| !point.is_between).collect()
}

/// A row for each measurement of each steady test.
pub(super) fn rows(all: &[PhaseRuns<'_>]) -> Table {
    let mut rounds = all.iter().flat_map(PhaseRuns::whole_rounds).flat_map(|round| round.iter());
    let power = match rounds.any(|run| energy::power(&run.report).is_some()) {
        true => [("watts", "WATTS"), ("iops_per_watt", "IOPS/WATT"), ("bytes_per_joule", "BYTES/JOULE")]
            .as_slice(),
        false => &[],
    };
    let columns = [
        Column::new("test", "TEST"),
        Column::new("read_percent", "READS %"),
        Column::new("block_bytes", "BLOCK"),
        Column::new("iops", "IOPS"),
        Column::new("mib_per_s", "MiB/s"),
        Column::new("mean_ns", "MEAN"),
        Column::new("p99_ns", "P99"),
        Column::new("p999_ns", "P99.9"),
        Column::new("p9999_ns", "P99.99"),
        Column::new("max_ns", "MAX"),
    ];
    let power = power.iter().map(|(key, header)| Column::new(key, header));
    let mut table = Table::new(columns.into_iter().chain(power));
    for runs in all.iter().filter(|runs| matches!(runs.phase.end, End::Steady { .. }) && runs.is_over) {
        for (number, point) in runs.phase.points.iter().enumerate().filter(|(_, point)| !point.is_between) {
            let mut row = vec![
                Cell::Text(runs.phase.test.word().to_string()),
                Cell::Count(u64::from(point.reads_percent)),
                Cell::Bytes(point.block_bytes),
            ];
            if is_steady(runs) {
                let figures = Figures::of(runs.window_rounds(), number);
                row.extend(figures.cells());
                row.extend([
                    number_or_none(figures.watts, 2),
                    number_or_none(figures.ios_per_joule, 1),
                    number_or_none(figures.bytes_per_joule, 0),
                ]);
            }
            // Without columns for power, also less.
            row.resize(table.columns.len(), Cell::None);
            table.rows.push(row);
        }
    }
    table
}

/// A row for each figure that has to become steady, or is followed to the saturation.
pub(super) fn tests(all: &[PhaseRuns<'_>]) -> Table {
    let keys = [
        "test",
        "read_percent",
        "block_bytes",
        "measure",
        "steady",
        "rounds",
        "window_from",
        "window_to",
        "mean",
        "excursion_percent",
        "slope_percent",
        "drift_low_percent",
        "drift_high_percent",
        "drift_confirmed",
        "preconditioning_mib_per_s",
        "kept_run",
        "written_since_bytes",
        "written_since_counted_by",
        "unrecorded_bytes",
        "not_kept_because",
        "interrupted_before_round",
    ];
    let mut table = Table::new(keys.map(|key| Column::new(key, "")));
    for runs in all.iter().filter(|runs| !runs.is_state()) {
        let (rounds, judged) = (runs.whole_rounds().len(), runs.judged_rounds().len());
        let preconditioning = runs.precondition.map(|run| Cell::Number(figure(run, Measure::MibPerS), 1));
        for (number, point) in followed(runs) {
            let window = runs.window(number);
            let percent = |of: fn(&Window) -> f64| {
                window.as_ref().map_or(Cell::None, |window| Cell::Number(100.0 * of(window), 2))
            };
            table.rows.push(vec![
                Cell::Text(runs.phase.test.word().to_string()),
                Cell::Count(u64::from(point.reads_percent)),
                Cell::Bytes(point.block_bytes),
                Cell::Text(unit(runs.phase.measure).to_string()),
                if runs.is_over && !is_saturation(runs) { Cell::Flag(runs.is_steady()) } else { Cell::None },
                Cell::Count(rounds as u64),
                Cell::count(window.map(|_| (judged + 1 - WINDOW_ROUNDS) as u64)),
                Cell::count(window.map(|_| judged as u64)),
                window.map_or(Cell::None, |window| Cell::Number(window.mean, 1)),
                percent(|window| window.excursion),
                percent(|window| window.slope),
                percent(|window| window.slope - window.slope_reach),
                percent(|window| window.slope + window.slope_reach),
                window.map_or(Cell::None, |window| Cell::Flag(window.is_confirmed())),
                preconditioning.clone().unwrap_or(Cell::None),
                Cell::count(runs.phase.has_kept().map(|kept| kept.run.unsigned_abs())),
                Cell::count(runs.phase.has_kept().map(|kept| kept.written_since_bytes)),
                Cell::text(runs.phase.has_kept().map(|kept| kept.counted_by.word())),
                Cell::count(runs.phase.has_kept().map(|kept| kept.unrecorded_bytes)),
                Cell::text(runs.phase.kept.as_ref().and_then(|(_, kept)| kept.as_ref().err())),
                Cell::count((runs.continuous_from > 0).then_some(runs.continuous_from as u64 + 1)),
            ]);
        }
    }
    table
}

fn number_or_none(number: Option<f64>, decimals: usize) -> Cell {
    number.map_or(Cell::None, |number| Cell::Number(number, decimals))
}

/// The key of a figure.
fn unit(measure: Measure) -> &'static str {
    match measure {
        Measure::Iops => "iops",
        Measure::MibPerS => "mib_per_s",
        Measure::MeanNs => "mean_ns",
    }
}

/// The highest temperature of the device during a run, in degrees Celsius.
fn temperature(run: &StepResult) -> Option<i32> {
    let tested = run.report.devices.iter().filter(|device| device.holds_files);
    tested.flat_map(|device| &device.samples).filter_map(|sample| sample.temperature_celsius).max()
}

/// The findings of runs that say that something was slowed down by its temperature or too hot, each once.
fn overheated(runs: &[StepResult]) -> Option<String> {
    let codes = runs.iter().flat_map(|run| &run.report.findings).map(|finding| finding.code);
    let is_hot = |code: &Code| matches!(code, Code::DeviceOverheated | Code::CpuOverheated);
    let words: BTreeSet<&str> = codes.filter(is_hot).map(Code::name).gather();
    (!words.is_empty()).then(|| words.into_iter().collect::<Vec<_>>().join(" and "))
}

/// The temperatures of the device and the power of the machine by round, and in which rounds something was too hot; nothing of
/// what is not known.
fn heat(runs: &PhaseRuns<'_>) -> Vec<String> {
    let rounds = runs.whole_rounds();
    let line = |what: &str, of: &dyn Fn(&[StepResult]) -> Option<String>| {
        let shown: Vec<Option<String>> = rounds.iter().map(|round| of(round)).collect();
        let is_known = shown.iter().any(Option::is_some);
        let shown = shown.into_iter().map(|shown| shown.unwrap_or("-".to_string()));
        is_known.then(|| format!("{what} by round: {}", shown.collect::<Vec<_>>().join(", ")))
    };
    let hottest = |round: &[StepResult]| Some(round.iter().filter_map(temperature).max()?.to_string());
    let watts = |round: &[StepResult]| {
        let power = round.iter().filter_map(|run| energy::power(&run.report));
        Some(format!("{:.1}", mean_of(power.map(|(watts, _)| watts))?))
    };
    let lines = [line("degrees Celsius", &hottest), line("watts", &watts)];
    let mut lines: Vec<String> = lines.into_iter().flatten().collect();
    let hot = (1..).zip(rounds).filter_map(|(round, runs)| Some(format!("{round} ({})", overheated(runs)?)));
    let hot: Vec<String> = hot.collect();
    lines.extend((!hot.is_empty()).then(|| format!("too hot in rounds: {}", hot.join(", "))));
    lines
}

/// A row for each figure of each round that has to become steady, and for each round of the write saturation.
pub(super) fn rounds(all: &[PhaseRuns<'_>]) -> Table {
    let keys = [
        "test",
        "state",
        "read_percent",
        "block_bytes",
        "round",
        "measure",
        "value",
        "in_window",
        "max_ns",
        "temperature_celsius",
        "overheated",
        "watts",
        "written_bytes",
    ];
    let mut table = Table::new(keys.map(|key| Column::new(key, "")));
    for runs in all {
        for (number, point) in followed(runs) {
            let mut written_bytes = 0;
            for (round, results) in runs.whole_rounds().iter().enumerate() {
                let whole = whole_run(&results[number].report);
                written_bytes += whole.bytes;
                let judged = runs.judged_rounds().len();
                let is_in_window = is_steady(runs) && (judged - WINDOW_ROUNDS..judged).contains(&round);
                table.rows.push(vec![
                    Cell::Text(runs.phase.test.word().to_string()),
                    Cell::text(runs.is_state().then_some(&runs.phase.name)),
                    Cell::Count(u64::from(point.reads_percent)),
                    Cell::Bytes(point.block_bytes),
                    Cell::Count(round as u64 + 1),
                    Cell::Text(unit(runs.phase.measure).to_string()),
                    Cell::Number(figure(&results[number], runs.phase.measure), 1),
                    Cell::Flag(is_in_window),
                    Cell::Latency(whole.completion.running.max),
                    number_or_none(temperature(&results[number]).map(f64::from), 0),
                    Cell::text(overheated(&results[number..=number])),
                    number_or_none(energy::power(&results[number].report).map(|(watts, _)| watts), 2),
                    Cell::bytes(is_saturation(runs).then_some(written_bytes)),
                ]);
            }
        }
    }
    table
}

/// Tables for readers: of each test what the specification asks for.
pub(super) fn text(all: &[PhaseRuns<'_>], width: usize) -> String {
    let mut parts = Vec::new();
    for (number, runs) in all.iter().enumerate() {
        if runs.is_state() {
            let is_last = all.get(number + 1).is_none_or(|next| next.phase.test != runs.phase.test);
            parts.extend(is_last.then(|| states::text(all, runs.phase.test.word(), width)));
            continue;
        }
        let mut part = wrapped(&verdict(runs), width).join("\n") + "\n";
        let lines = unconfirmed(runs).into_iter().chain(convergence(runs));
        part.extend(lines.flat_map(|line| wrapped(&line, width)).map(|line| line + "\n"));
        if is_saturation(runs) {
            part += &saturation(runs).text(width);
        } else if is_steady(runs) {
            part += &match runs.phase.test {
                Test::Iops => {
                    by_mix(runs, |figures| Cell::Count(u64::capped(figures.iops.round()))).text(width)
                }
                Test::Latency => {
                    let of = |percent| {
                        by_mix(runs, move |figures| Cell::Latency(figures.latency.percentiles(&[percent])[0]))
                    };
                    let mean = by_mix(runs, |figures| Cell::Latency(u64::capped(figures.mean_ns.round())));
                    let max = by_mix(runs, |figures| Cell::Latency(figures.latency.running.max));
                    [("mean", mean), ("p99.9", of(99.9)), ("max", max)]
                        .map(|(what, table)| format!("{what}\n{}", table.text(width)))
                        .concat()
                }
                // Its states follow.
                Test::IdleRecovery => String::new(),
                Test::Throughput | Test::CrossStimulus | Test::WriteSaturation => {
                    by_mix(runs, |figures| Cell::Number(figures.mib_per_s, 1)).text(width)
                }
            };
        }
        parts.push(part);
    }
    parts.join("\n")
}

/// The shares of reads and writes, and the block size: `65/35 4KiB`.
fn mix(point: &Point) -> String {
    let reads = point.reads_percent;
    format!("{reads}/{} {}", 100 - reads, shown_bytes(point.block_bytes))
}

/// The figures that have to become steady, round by round.
fn convergence(runs: &PhaseRuns<'_>) -> Vec<String> {
    let shown = |value: f64| match runs.phase.measure {
        Measure::MeanNs => Cell::Latency(u64::capped(value.round())).shown(),
        Measure::Iops | Measure::MibPerS => format!("{value:.0}"),
    };
    let line = |number: usize| {
        let values: Vec<String> = runs.series(number).into_iter().map(shown).collect();
        format!("{} by round: {}", mix(&runs.phase.points[number]), values.join(", "))
    };
    let tracked = runs.tracked().filter(|_| !runs.whole_rounds().is_empty());
    tracked.map(line).chain(heat(runs)).collect()
}

/// The headings of columns by shares of reads and writes.
const MIXES: [(u32, &str); 7] =
    [(100, "100/0"), (95, "95/5"), (65, "65/35"), (50, "50/50"), (35, "35/65"), (5, "5/95"), (0, "0/100")];

/// A figure by block sizes (lines) and shares of reads and writes (columns).
fn by_mix(runs: &PhaseRuns<'_>, cell: impl Fn(&Figures) -> Cell) -> Table {
    let points = &runs.phase.points;
    let mixes: Vec<(u32, &'static str)> = MIXES
        .into_iter()
        .filter(|(reads, _)| points.iter().any(|point| point.reads_percent == *reads))
        .collect();
    let columns = mixes.iter().map(|(_, title)| Column::new(title, title));
    let mut table = Table::new([Column::new("block_bytes", "BLOCK")].into_iter().chain(columns));
    let mut blocks: Vec<u64> = points.iter().map(|point| point.block_bytes).collect();
    blocks.sort_unstable();
    blocks.dedup();
    for block in blocks {
        let of = |reads: u32| {
            let is = |point: &Point| (point.reads_percent, point.block_bytes) == (reads, block);
            let number = points.iter().position(is)?;
            Some(cell(&Figures::of(runs.window_rounds(), number)))
        };
        let cells = mixes.iter().map(|(reads, _)| of(*reads).unwrap_or(Cell::None));
        table.rows.push([Cell::Bytes(block)].into_iter().chain(cells).collect());
    }
    table
}

/// The first round, and those in which the capacity was written once, twice and so on.
fn saturation(runs: &PhaseRuns<'_>) -> Table {
    let mut table = Table::new([
        Column::new("written", "WRITTEN"),
        Column::new("iops", "IOPS"),
        Column::new("max", "MAX"),
    ]);
    let End::Written { bytes: most, .. } = runs.phase.end else { return table };
    let capacity = most / SATURATION_FILLS;
    let mut written = 0;
    for (number, round) in runs.whole_rounds().iter().enumerate() {
        let whole = whole_run(&round[0].report);
        let before = written / capacity.max(1);
        written += whole.bytes;
        let is_last = number + 1 == runs.whole_rounds().len();
        if number == 0 || written / capacity.max(1) > before || is_last {
            table.rows.push(vec![
                Cell::Bytes(written),
                Cell::Count(u64::capped(figure(&round[0], Measure::Iops).round())),
                Cell::Latency(whole.completion.running.max),
            ]);
        }
    }
    table
}

/// How a test ended, in one sentence.
fn verdict(runs: &PhaseRuns<'_>) -> String {
    let name = &runs.phase.name;
    let rounds = counted(runs.whole_rounds().len(), "round");
    if is_saturation(runs) {
        let written = shown_bytes(runs.moved_bytes);
        return format!(
            "{name}: {written} written in {rounds}{}.",
            if runs.is_over { "" } else { ", not complete" }
        );
    }
    if !runs.is_over {
        return format!("{name}: not complete, after {rounds}.");
    }
    let judged = |number: usize| {
        let what = mix(&runs.phase.points[number]);
        match runs.window(number) {
            Some(window) => format!(
                "{what}: excursion {:.1} %, slope {:+.1} %",
                100.0 * window.excursion,
                100.0 * window.slope
            ),
            None => format!("{what}: fewer than {WINDOW_ROUNDS} rounds"),
        }
    };
    let rounds = if runs.is_steady() { counted(runs.judged_rounds().len(), "round") } else { rounds };
    let why: Vec<String> = runs.tracked().map(judged).collect();
    let limits = format!("at most {:.0} % and {:.0} %", 100.0 * EXCURSION_MAX, 100.0 * SLOPE_MAX);
    let how = if runs.is_steady() { "steady" } else { "not steady" };
    format!("{name}: {how} after {rounds} ({}; {limits}).", why.join("; "))
}

/// That a test is steady by the specification, and may drift by more than that allows.
fn unconfirmed(runs: &PhaseRuns<'_>) -> Option<String> {
    if !is_steady(runs) || runs.is_confirmed() {
        return None;
    }
    let windows =
        runs.tracked().filter_map(|number| Some((&runs.phase.points[number], runs.window(number)?)));
    let drifts: Vec<String> = windows
        .filter(|(_, window)| !window.is_confirmed())
        .map(|(point, window)| {
            let [drift, reach] = [window.slope, window.slope_reach].map(|share| 100.0 * share);
            format!("{}: {drift:+.1} % ± {reach:.1} %", mix(point))
        })
        .collect();
    let next = match is_unconfirmed(runs) {
        true => format!("nor was one within {}", counted(runs.whole_rounds().len(), "round")),
        false => "--confirmed goes on until one is".to_string(),
    };
    Some(format!(
        "Steady by the specification; a drift of at most {:.0} % is not confirmed ({}; with a confidence of 95 %): {next}.",
        100.0 * SLOPE_MAX,
        drifts.join("; ")
    ))
}

/// The main figure of each test, in a sentence each.
pub(super) fn conclusion(all: &[PhaseRuns<'_>]) -> String {
    let mut sentences = Vec::new();
    for of_test in all.chunk_by(|one, next| next.is_state() && one.phase.test == next.phase.test) {
        let (steady, states): (Vec<_>, Vec<_>) =
            of_test.iter().filter(|runs| runs.is_over).partition(|runs| !runs.is_state());
        sentences.extend(steady.into_iter().map(sentence));
        let figures: Vec<String> = states.into_iter().map(states::sentence).collect();
        sentences.extend(
            (!figures.is_empty())
                .then(|| format!("{}: {}.", of_test[0].phase.test.word(), figures.join(", "))),
        );
    }
    sentences.join(" ")
}

/// The main figure of a test that is over.
fn sentence(runs: &PhaseRuns<'_>) -> String {
    let rounds = counted(runs.whole_rounds().len(), "round");
    let name = &runs.phase.name;
    if is_saturation(runs) {
        let series = |round: Option<&&[StepResult]>| {
            round.map_or(0, |round| u64::capped(figure(&round[0], Measure::Iops).round()))
        };
        let (first, last) = (series(runs.whole_rounds().first()), series(runs.whole_rounds().last()));
        return format!("{name}: from {first} to {last} IOPS.");
    }
    if !runs.is_steady() {
        return format!("{name}: not steady after {rounds}.");
    }
    let figures: Vec<String> = runs
        .tracked()
        .map(|number| {
            let point = &runs.phase.points[number];
            let figures = Figures::of(runs.window_rounds(), number);
            let what = if point.reads_percent == 0 { "writes" } else { "reads" };
            let block = shown_bytes(point.block_bytes);
            match runs.phase.measure {
                Measure::Iops => format!("{block} {what} {} IOPS", figures.iops.round()),
                Measure::MibPerS => format!("{what} {:.1} MiB/s", figures.mib_per_s),
                Measure::MeanNs => {
                    format!(
                        "{block} {what} {} on average",
                        Cell::Latency(u64::capped(figures.mean_ns.round())).shown()
                    )
                }
            }
        })
        .collect();
    let but = if is_unconfirmed(runs) { ", not confirmed" } else { "" };
    format!("{name}: {} in steady state{but}.", figures.join(", "))
}
