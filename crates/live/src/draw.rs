//! A model as characters on a screen.
//!
//! Invariant: fits any size. What does not fit is cut at the right, and of lists at the end, with a word about how much is
//! left out; the line of keys stays.

use fiord_report::Severity;
use fiord_report::columns::{cut, left_aligned, right_aligned, shortened, width};
use fiord_report::path::text;
use fiord_report::table::Cell;
use fiord_stats::Capped;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Constraint, Layout, Rect};
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};
use ratatui_core::widgets::Widget;

use crate::heat::character;
use crate::model::{Cpu, DeviceRow, DirectionRow, JobRow, Model};

/// Colours of the shades, dark to light in steps of equal lightness that colour-blind readers distinguish.
const SHADE_COLOURS: [u8; 5] = [60, 61, 36, 77, 227];

/// Columns of a label at the left.
const LABEL: usize = 9;

/// Lines of lists that are shown before the map takes the rest.
const JOBS_MIN: usize = 3;
const DEVICES_MIN: usize = 3;
const FINDINGS_MIN: usize = 2;

/// Lines of the map that are kept before lists take more.
const HEAT_MIN: usize = 5;

const KEYS: &str = "q or l: back to the progress line, the run goes on   Ctrl-C: end the run";

/// Draws the model into the whole area.
pub fn draw(model: &Model, area: Rect, buffer: &mut Buffer) {
    let lists = [model.jobs.len(), model.devices.len(), model.findings.len()];
    let lines = Lines::of(area.height as usize, model.directions.len(), lists);
    let heights = [1, lines.directions, lines.heat, lines.jobs, lines.devices, lines.cpu, lines.findings, 1];
    let areas = Layout::vertical(heights.map(|lines| Constraint::Length(u16::capped(lines)))).split(area);
    let columns = area.width as usize;
    put(areas[0], buffer, vec![bar(ends(&model.title, &model.progress, columns))]);
    put(areas[1], buffer, directions(&model.directions));
    put(areas[2], buffer, heat(model, columns, lines.heat));
    put(areas[3], buffer, list(jobs_heading(model.are_hosts), &model.jobs, lines.jobs, job));
    put(areas[4], buffer, list(devices_heading(), &model.devices, lines.devices, device));
    put(areas[5], buffer, model.cpu.iter().map(|cpu| Line::raw(processors(cpu))).collect());
    put(areas[6], buffer, findings(model, lines.findings, usize::from(area.width)));
    put(areas[7], buffer, vec![bar(left_aligned(KEYS, columns))]);
}

/// How many lines each part has.
struct Lines {
    directions: usize,
    heat: usize,
    jobs: usize,
    devices: usize,
    cpu: usize,
    findings: usize,
}

impl Lines {
    fn of(height: usize, directions: usize, [jobs, devices, findings]: [usize; 3]) -> Lines {
        let headed = |lines: usize| if lines == 0 { 0 } else { lines + 1 };
        let mut left = height.saturating_sub(2);
        let mut take = |wanted: usize| {
            let taken = wanted.min(left);
            left -= taken;
            taken
        };
        let directions = take(1 + directions.max(1));
        let cpu = take(1);
        let mut parts = [
            take(headed(jobs.min(JOBS_MIN))),
            take(headed(devices.min(DEVICES_MIN))),
            take(headed(findings.min(FINDINGS_MIN))),
        ];
        let mut heat = take(1 + HEAT_MIN);
        // What is left goes to the map, but lists that are cut have half of it.
        let all = [headed(jobs), headed(devices), headed(findings)];
        let mut for_lists = take(usize::MAX);
        heat += for_lists.div_ceil(2);
        for_lists /= 2;
        for (part, all) in parts.iter_mut().zip(all) {
            let more = all.saturating_sub(*part).min(for_lists);
            *part += more;
            for_lists -= more;
        }
        Lines {
            directions,
            heat: heat + for_lists,
            jobs: parts[0],
            devices: parts[1],
            cpu,
            findings: parts[2],
        }
    }
}

/// The first or the last line.
pub(crate) fn bar(text: String) -> Line<'static> {
    Line::styled(text, Style::new().add_modifier(Modifier::REVERSED))
}

pub(crate) fn put(area: Rect, buffer: &mut Buffer, lines: Vec<Line<'_>>) {
    for (line, row) in lines.into_iter().zip(area.rows()) {
        line.render(row, buffer);
    }
}

/// Two texts at both ends of a line; the left one is cut.
pub(crate) fn ends(left: &str, right: &str, columns: usize) -> String {
    let left = format!(" {}", text(left));
    let room = columns.saturating_sub(width(right) + 2);
    format!("{} {right} ", left_aligned(cut(&left, room), room))
}

pub(crate) fn heading(text: String) -> Line<'static> {
    Line::styled(text, Style::new().add_modifier(Modifier::BOLD))
}

fn directions(rows: &[DirectionRow]) -> Vec<Line<'static>> {
    let titles = ["IOPS", "MiB/s", "MEAN", "P50", "P99", "P99.9", "MAX"];
    let line = |label: &str, cells: Vec<String>| {
        let cells = cells.iter().map(|cell| right_aligned(cell, 9));
        left_aligned(label, LABEL) + &cells.collect::<String>()
    };
    let of = |row: &DirectionRow| {
        let mut cells = vec![count(row.iops), mib(row.bytes_per_s), latency(row.mean_ns)];
        cells.extend((0..4).map(|index| latency(row.percentiles_ns.map(|values| values[index]))));
        Line::raw(line(row.name, cells))
    };
    let mut lines = vec![heading(line("LAST 1 s", titles.map(str::to_string).to_vec()))];
    lines.extend(rows.iter().map(of));
    if rows.is_empty() {
        lines.push(Line::raw("no I/O in the last second"));
    }
    lines
}

fn heat(model: &Model, columns: usize, height: usize) -> Vec<Line<'static>> {
    if height == 0 {
        return Vec::new();
    }
    let legend = "· ≥1 I/O  ░ 1%  ▒ 5%  ▓ 20%  █ 50%";
    let title = ends_of_heading("LATENCY, 1 s PER COLUMN, NEWEST AT THE RIGHT", legend, columns);
    let mut lines = vec![heading(title)];
    let map_columns = columns.saturating_sub(LABEL);
    for row in model.heat.rows(map_columns, height - 1) {
        let blank = map_columns.saturating_sub(row.shades.len());
        let mut spans = vec![Span::raw(right_aligned(&Cell::Latency(row.from_ns).shown(), LABEL - 1) + " ")];
        spans.push(Span::raw(" ".repeat(blank)));
        // Equal neighbours are one span.
        for run in row.shades.chunk_by(|one, next| one == next) {
            let letter = run[0].map_or(' ', character);
            let style = match run[0] {
                Some(shade) if model.is_coloured => Style::new().fg(Color::Indexed(SHADE_COLOURS[shade])),
                _ => Style::new(),
            };
            spans.push(Span::styled(letter.to_string().repeat(run.len()), style));
        }
        lines.push(Line::from(spans));
    }
    if lines.len() == 1 {
        lines.push(Line::raw(
            "no latencies yet: they are counted once a second, if the job records percentiles",
        ));
    }
    lines
}

fn ends_of_heading(left: &str, right: &str, columns: usize) -> String {
    match columns.checked_sub(width(left) + width(right)) {
        Some(room) if room > 0 => format!("{left}{:room$}{right}", ""),
        _ => left.to_string(),
    }
}

/// A heading and as many rows as fit; if not all do, the last line says how many are left out.
pub(crate) fn list<T>(
    title: String,
    rows: &[T],
    lines: usize,
    of: impl Fn(&T) -> String,
) -> Vec<Line<'static>> {
    if lines == 0 {
        return Vec::new();
    }
    let room = lines - 1;
    let shown = if rows.len() > room { room.saturating_sub(1) } else { rows.len() };
    let mut list = vec![heading(title)];
    list.extend(rows[..shown].iter().map(|row| Line::raw(of(row))));
    if shown < rows.len() && room > 0 {
        list.push(Line::raw(format!("and {} more", rows.len() - shown)));
    }
    list
}

fn jobs_heading(are_hosts: bool) -> String {
    let one = if are_hosts { "HOST, SLOWEST FIRST" } else { "JOB" };
    format!("{one:<26} {:<10}{:>9}{:>9}{:>9}{:>9}", "STATE", "IOPS", "MiB/s", "P99", "DONE")
}

fn job(row: &JobRow) -> String {
    let done = row.done.map_or("-".to_string(), |share| format!("{:.0}%", share * 100.0));
    let name = text(&row.name);
    format!(
        "{} {:<10}{:>9}{:>9}{:>9}{done:>9}",
        left_aligned(cut(&name, 26), 26),
        row.state,
        count(row.iops),
        mib(row.bytes_per_s),
        latency(row.p99_ns)
    )
}

fn devices_heading() -> String {
    let titles = ["r/s", "rMiB/s", "r_await", "w/s", "wMiB/s", "w_await", "aqu-sz", "%util"];
    format!("{:<14}", "DEVICE") + &titles.map(|title| format!("{title:>8}")).concat()
}

fn device(row: &DeviceRow) -> String {
    let side = |index: usize| {
        let (ios, bytes) = (row.ios_per_s[index], row.bytes_per_s[index]);
        format!("{:>8}{:>8}{:>8.2}", count(ios), mib(bytes), row.await_ms[index])
    };
    let name = text(&row.name);
    let (queue, util) = (row.queue_length, row.util_percent);
    format!("{}{}{}{queue:>8.2}{util:>8.1}", left_aligned(cut(&name, 14), 14), side(0), side(1))
}

fn processors(cpu: &Cpu) -> String {
    let Cpu { count, user, system, io_wait, steal, idle, own } = cpu;
    format!(
        "CPU x{count}: user {user:.1}%  system {system:.1}%  iowait {io_wait:.1}%  steal {steal:.1}%  idle {idle:.1}%  \
         fiord {own:.0}%"
    )
}

fn findings(model: &Model, lines: usize, columns: usize) -> Vec<Line<'static>> {
    let title = format!("FINDINGS SO FAR: {}", model.findings.len());
    let mut list = list(title, &model.findings, lines, |(_, sentence)| shortened(sentence, columns));
    if model.is_coloured {
        for (line, (severity, _)) in list.iter_mut().skip(1).zip(&model.findings) {
            line.style = match severity {
                Severity::Void => Style::new().fg(Color::Red),
                Severity::Caution => Style::new().fg(Color::Yellow),
                Severity::Note => Style::new(),
            };
        }
    }
    list
}

/// Four digits at most: `9.53`, `953`, `95.3k`, `9.53M`.
fn count(value: f64) -> String {
    let (scaled, unit) = match value {
        v if v >= 999_500_000.0 => (v / 1e9, "G"),
        v if v >= 999_500.0 => (v / 1e6, "M"),
        v if v >= 9_999.5 => (v / 1e3, "k"),
        v => return format!("{v:.0}"),
    };
    format!(
        "{scaled:.*}{unit}",
        if scaled < 9.995 {
            2
        } else if scaled < 99.95 {
            1
        } else {
            0
        }
    )
}

fn mib(bytes_per_s: f64) -> String {
    format!("{:.1}", bytes_per_s / f64::from(1 << 20))
}

fn latency(ns: Option<u64>) -> String {
    ns.map_or(Cell::None, Cell::Latency).shown()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_three_digits_and_a_unit() {
        for (value, shown) in [
            (0.0, "0"),
            (9_999.0, "9999"),
            (10_000.0, "10.0k"),
            (953_400.0, "953k"),
            (999_600.0, "1.00M"),
            (31_430_000.0, "31.4M"),
        ] {
            assert_eq!(count(value), shown);
        }
    }

    #[test]
    fn all_lines_of_a_screen_are_used_and_no_more() {
        for height in 0..80 {
            for (directions, lists) in [(0, [0, 0, 0]), (1, [1, 2, 0]), (3, [90, 9, 9]), (2, [4, 4, 4])] {
                let lines = Lines::of(height, directions, lists);
                let Lines { directions, heat, jobs, devices, cpu, findings } = lines;
                let sum = directions + heat + jobs + devices + cpu + findings;
                assert_eq!(sum, height.saturating_sub(2), "{height} {lists:?}");
                assert!(jobs <= lists[0] + 1 && devices <= lists[1] + 1 && findings <= lists[2] + 1);
            }
        }
    }
}
