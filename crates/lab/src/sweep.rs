//! `sweep`: one job at several values of its options, and where throughput stops rising.
//!
//! Invariant: a step is the user's job with the swept options set and nothing else changed; every row belongs to one
//! run; a run whose figures are void is in the table, and in no curve and no conclusion.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use fiord_options::job::Access;
use fiord_options::{Section, Setting};
use fiord_report::Code;
use fiord_report::repeats::Reported;
use fiord_report::table::{Cell, Column, Table};
use fiord_stats::job::DIRECTIONS;

use crate::chart::{self, Chart};
use crate::figures::{self, Figures, mib, utilisation_percent};
use crate::repeats;
use crate::rounds::Rounds;
use crate::steady;
use crate::step::{Step, StepResult};
use crate::step_runs::{self, StepRuns};
use crate::study::{Study, StudyOutline, StudyResult, counted};
use crate::svg;
use crate::trust;
use crate::verdict::Verdict;

mod curve;
mod job;
mod key;
mod measured;
mod sentence;

use curve::Curve;
use job::Done;
pub use job::SweptJob;
pub use key::{Counted, Key};
use measured::{Style, SweepRun};

/// Most runs of one sweep.
const RUNS_MAX: usize = 10_000;

/// What is shown besides the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pictures {
    /// Whether to use colours.
    pub colour: bool,
    /// Where to write the chart as SVG.
    pub plot: Option<PathBuf>,
}

/// The study.
pub struct Sweep {
    keys: Vec<Key>,
    job: SweptJob,
    pictures: Pictures,
    /// For each step that is measured, which value of each key it has.
    points: Vec<Vec<usize>>,
    outline: StudyOutline,
}

impl Sweep {
    /// The cross product of the keys' values, the last key's changing fastest. `time` returns how long sections
    /// run.
    ///
    /// # Errors
    /// There are more than 10,000 runs.
    pub fn new(
        keys: Vec<Key>,
        job: SweptJob,
        pictures: Pictures,
        time: &dyn Fn(&[Section]) -> Duration,
    ) -> Result<Sweep, String> {
        let points = points(&keys)?;
        let steps = points.iter().map(|point| step(&keys, &job, point, time)).collect();
        let outline = StudyOutline {
            is_of_users_options: true,
            percentile_max: 99.0,
            ..StudyOutline::of(steps, Rounds::ONE)
        };
        Ok(Sweep { keys, job, pictures, points, outline })
    }

    /// With a step before all others that prepares them.
    #[must_use]
    pub fn prepared_by(mut self, step: Step) -> Sweep {
        self.outline.steps.insert(0, step);
        self
    }

    /// With all its points run this often.
    #[must_use]
    pub fn repeated(mut self, rounds: Rounds) -> Sweep {
        self.outline.rounds = rounds;
        self
    }

    /// With these heading lines, printed before it starts.
    #[must_use]
    pub fn headed(mut self, heading: Vec<(&'static str, String)>) -> Sweep {
        self.outline.heading = heading;
        self
    }

    /// For each point its typical run.
    fn measured(&self, results: &[StepResult]) -> Vec<SweepRun> {
        step_runs::by_step(results).iter().filter_map(|step| self.of_step(step)).collect()
    }

    fn of_step(&self, step: &StepRuns<'_>) -> Option<SweepRun> {
        let run = self.of_run(step.typical()?)?;
        let half_width = step.throughput().and_then(|summary| summary.half_width);
        // Twice the error is the half of a 95 % interval.
        let error_bytes_per_s = half_width.map_or(run.error_bytes_per_s, |half| half / curve::ERRORS);
        Some(SweepRun { error_bytes_per_s, ..run })
    }

    fn of_run(&self, run: &StepResult) -> Option<SweepRun> {
        let preparing = self.outline.steps.len() - self.points.len();
        Some(SweepRun {
            point: self.points[run.step - preparing].clone(),
            rows: self
                .job
                .parts(&run.report)
                .iter()
                .flat_map(|part| self.job.done(part, &run.report))
                .collect(),
            total: Figures::of_all(&run.report)?,
            error_bytes_per_s: figures::bandwidth_error_bytes_per_s(&run.report),
            util_percent: utilisation_percent(&run.report),
            void: run.void_finding().map(trust::because),
            ignores_depth: run.report.findings.iter().any(|one| one.code == Code::SyncEngineDepth),
        })
    }

    /// The option the curves are drawn over: among those with numeric values, the one with most values, or the last of those.
    fn axis(&self) -> Option<usize> {
        let axes = (0..self.keys.len()).filter(|key| self.keys[*key].is_axis());
        axes.max_by_key(|key| self.keys[*key].values.len())
    }

    /// The rows for programs.
    fn table(&self, measured: &[SweepRun]) -> Table {
        let swept = self.columns().map(|key| Column::new(key.name(), key.title()));
        let rw = (!self.sweeps_rw()).then(|| Column::new("rw", "RW"));
        let named = [Column::new("job", "JOB")].into_iter().chain(rw);
        let mut table = Table::new(named.chain(swept).chain(FIGURES));
        for run in measured {
            for done in &run.rows {
                let rw = (!self.sweeps_rw()).then(|| Cell::Text(done.rw.clone()));
                let named = [Cell::Text(done.job.clone())].into_iter().chain(rw);
                let mut cells: Vec<Cell> = named.chain(self.cells(run)).collect();
                cells.extend(figure_cells(done, run));
                table.rows.push(cells);
            }
        }
        table
    }

    fn sweeps_rw(&self) -> bool {
        self.keys.iter().any(|key| key.spec == Access::rw)
    }

    /// The keys in the order of the columns: `rw` leads.
    fn columns(&self) -> impl Iterator<Item = &Key> {
        let is_rw = |key: &&Key| key.spec == Access::rw;
        self.keys.iter().filter(is_rw).chain(self.keys.iter().filter(move |key| !is_rw(key)))
    }

    fn cells(&self, run: &SweepRun) -> impl Iterator<Item = Cell> {
        let at = |key: &Key| self.keys.iter().position(|known| known.spec == key.spec).unwrap_or(0);
        self.columns().map(move |key| key.cell(run.point[at(key)]))
    }

    /// The rows for the text table, in the columns usual for sweeps written as shell scripts. Runs at a knee are marked.
    fn text(&self, measured: &[SweepRun], curves: &[Curve], style: &Style, width: usize) -> String {
        let keys = self.columns().filter(|key| key.spec != Access::rw);
        let columns = keys.map(|key| Column::new(key.name(), key.title()));
        let job = self.has_several_jobs().then(|| Column::new("job", "JOB"));
        let named = job.into_iter().chain([Column::new("rw", "RW")]);
        let mut table = Table::new(named.chain(columns).chain(SHOWN));
        for run in measured {
            let is_knee = curves.iter().any(|curve| curve.knee_run() == Some(&run.point));
            table.rows.extend(run.rows.iter().map(|done| self.shown(run, done, style, is_knee)));
        }
        if !table.rows.iter().flatten().any(|cell| *cell == Cell::Text(KNEE_MARK.to_string())) {
            table.columns.pop();
            table.rows.iter_mut().for_each(|row| drop(row.pop()));
        }
        table.text(width)
    }

    fn has_several_jobs(&self) -> bool {
        self.job.sections.len() > 1
    }

    fn shown(&self, run: &SweepRun, done: &Done, style: &Style, is_knee: bool) -> Vec<Cell> {
        let Done { job, rw, direction, is_mixed, figures } = done;
        let text = |key: usize| self.keys[key].values[run.point[key]].text.clone();
        let rw = self.keys.iter().position(|key| key.spec == Access::rw).map_or(rw.clone(), text);
        let letter = DIRECTIONS[*direction][..1].to_uppercase();
        let rw = if *is_mixed { format!("{rw} {letter}") } else { rw };
        let mut cells: Vec<Cell> =
            self.has_several_jobs().then(|| Cell::Text(job.clone())).into_iter().collect();
        cells.push(Cell::Text(rw));
        let swept = |key: &usize| self.keys[*key].spec != Access::rw;
        cells.extend((0..self.keys.len()).filter(swept).map(|key| self.keys[key].cell(run.point[key])));
        cells.extend([
            figures.iops_cell(),
            style.throughput(figures.bytes_per_s),
            style.latency(figures.mean_ns),
            style.latency(figures.p99_ns),
            run.util_percent.map_or(Cell::None, |percent| Cell::Number(percent, 1)),
            Cell::Text(if is_knee { KNEE_MARK } else { "" }.to_string()),
        ]);
        cells
    }
}

const KNEE_MARK: &str = "<- knee";

/// The figures for programs, after the swept options.
const FIGURES: [Column; 11] = [
    Column::new("direction", "DIRECTION"),
    Column::new("iops", "IOPS"),
    Column::new("mib_per_s", "BW(MiB/s)"),
    Column::new("mean_ns", "AvgLat"),
    Column::new("p50_ns", "P50"),
    Column::new("p99_ns", "P99"),
    Column::new("p99_9_ns", "P99.9"),
    Column::new("max_ns", "MAX"),
    Column::new("ios", "I/Os"),
    Column::new("util_percent", "Util(%)"),
    Column::new("run_error_mib_per_s", "Error(MiB/s)"),
];

/// The columns whose figures are compared over several rounds, and those of them in text.
const REPEATED: [&str; 5] = ["iops", "mib_per_s", "mean_ns", "p50_ns", "p99_ns"];
const REPEATED_SHOWN: [&str; 2] = ["mib_per_s", "p99_ns"];

/// The figures of the text table.
const SHOWN: [Column; 6] = [
    Column::new("iops", "IOPS"),
    Column::new("mib_per_s", "BW(MiB/s)"),
    Column::new("mean", "AvgLat(ms)"),
    Column::new("p99", "p99(ms)"),
    Column::new("util", "Util(%)"),
    Column::new("knee", ""),
];

fn figure_cells(done: &Done, run: &SweepRun) -> [Cell; 11] {
    let Done { direction, figures, .. } = done;
    [
        Cell::Text(DIRECTIONS[*direction].to_string()),
        Cell::Number(figures.iops, 0),
        Cell::Number(mib(figures.bytes_per_s), 1),
        Cell::Latency(figures.mean_ns),
        Cell::Latency(figures.p50_ns),
        Cell::Latency(figures.p99_ns),
        Cell::Latency(figures.p999_ns),
        Cell::Latency(figures.max_ns),
        Cell::Count(figures.ios),
        run.util_percent.map_or(Cell::None, |percent| Cell::Number(percent, 1)),
        Cell::Number(mib(run.error_bytes_per_s), 1),
    ]
}

/// The cross product of the keys' values, the last key's changing fastest: for each point, which value of each key it has.
pub(crate) fn points(keys: &[Key]) -> Result<Vec<Vec<usize>>, String> {
    let runs = keys.iter().try_fold(1usize, |runs, key| runs.checked_mul(key.values.len()));
    if runs.is_none_or(|runs| runs > RUNS_MAX) {
        return Err(format!("more than {RUNS_MAX} runs; sweep over fewer values"));
    }
    let mut points = vec![Vec::new()];
    for key in keys {
        let longer = |point: &Vec<usize>| {
            let point = point.clone();
            (0..key.values.len()).map(move |value| [point.as_slice(), &[value]].concat())
        };
        points = points.iter().flat_map(longer).collect();
    }
    Ok(points)
}

/// The run of a point: the job with these values of the keys.
pub(crate) fn step(
    keys: &[Key],
    job: &SweptJob,
    point: &[usize],
    time: &dyn Fn(&[Section]) -> Duration,
) -> Step {
    let swept = || keys.iter().zip(point).map(|(key, value)| (key, &key.values[*value]));
    let names: Vec<String> = swept().map(|(key, value)| format!("{}={}", key.name(), value.text)).collect();
    let mut sections = job.sections.clone();
    for section in &mut sections {
        section.own.extend(swept().map(|(key, value)| Setting::new(key.spec, &value.setting)));
    }
    let time = time(&sections);
    Step::measure(names.join(" "), sections, time)
}

impl Study for Sweep {
    fn name(&self) -> &'static str {
        "sweep"
    }

    fn purpose(&self) -> String {
        let runs = counted(self.points.len(), "run");
        format!("{runs} over {}{}", Key::list(&self.keys), self.outline.rounds.shown())
    }

    fn outline(&self) -> &StudyOutline {
        &self.outline
    }

    fn result(&self, results: &[StepResult], width: usize) -> StudyResult {
        let measured = self.measured(results);
        // Nothing is concluded from a run whose figures are void.
        let (sound, void): (Vec<SweepRun>, Vec<SweepRun>) =
            measured.iter().cloned().partition(|run| run.void.is_none());
        let curves = self.axis().map_or(Vec::new(), |axis| curve::of(&self.keys, axis, &sound));
        let style = Style::of(&measured);
        let chart = self.chart(&curves);
        let (plot, plot_note) = self.plot(chart.as_ref(), &measured, !void.is_empty());
        let text = |colour| self.page(&measured, &curves, &style, chart.as_ref(), width, colour);
        let (rounds, name) = (self.outline.rounds, |step: usize| self.outline.step_name(step));
        let basis = if rounds.max > 1 { repeats::basis(results, rounds, name) } else { String::new() };
        let figures = repeats::figures(results, &REPEATED, |run| {
            (name(run.step), self.table(self.of_run(run).as_slice()))
        });
        let result = StudyResult {
            verdict: (sound.is_empty() && !void.is_empty()).then_some(Verdict::Undecided),
            conclusion: match (sound.as_slice(), void.first().and_then(|run| run.void.as_ref())) {
                ([], Some(why)) => trust::cannot_tell(why),
                _ => {
                    let all = sentence::conclusion(&self.keys, self.axis(), &curves, &sound, &style);
                    all + &sentence::left_out(&self.keys, &void) + &basis
                }
            } + plot_note,
            table: self.table(&measured),
            tables: vec![("knees", sentence::knees(&curves, &style))],
            files: plot.into_iter().collect(),
            text: text(false),
            coloured: self.pictures.colour.then(|| text(true)),
            ..StudyResult::default()
        };
        let result = repeats::beside(result, &figures, &REPEATED_SHOWN, Reported::Median, width);
        steady::beside(result, &step_runs::typical(results), name, width)
    }
}

impl Sweep {
    /// The curves as a chart; `None` without two points of one of them.
    fn chart(&self, curves: &[Curve]) -> Option<Chart> {
        let axis = self.axis().filter(|_| curves.iter().any(|curve| curve.runs.len() > 1))?;
        Some(Chart {
            axis: self.keys[axis].axis_title(),
            lines: curves.iter().map(Curve::line).collect(),
            latency_title: None,
            mark_name: "knee",
        })
    }

    /// The plot that was asked for, and what is to be said about it. Where nothing is concluded, it shows what was measured.
    fn plot(
        &self,
        sound: Option<&Chart>,
        measured: &[SweepRun],
        is_any_void: bool,
    ) -> (Option<(PathBuf, String)>, &'static str) {
        let Some(path) = self.pictures.plot.as_ref().filter(|_| !measured.is_empty()) else {
            return (None, "");
        };
        let file = |chart: &Chart| Some((path.clone(), svg::draw(chart)));
        if let Some(chart) = sound {
            let left_out = " The plot leaves out runs whose figures are void.";
            return (file(chart), if is_any_void { left_out } else { "" });
        }
        let curves = self.axis().map_or(Vec::new(), |axis| curve::of(&self.keys, axis, measured));
        let mut lines = self.chart(&curves);
        lines.iter_mut().flat_map(|chart| &mut chart.lines).for_each(|line| line.knee = None);
        match &lines {
            Some(chart) => {
                (file(chart), " The plot shows what was measured, from which nothing is concluded.")
            }
            None => (None, " No plot is written: it needs an option with two numbers that were run."),
        }
    }

    /// The table, the chart, and notes about the knees.
    fn page(
        &self,
        measured: &[SweepRun],
        curves: &[Curve],
        style: &Style,
        chart: Option<&Chart>,
        width: usize,
        colour: bool,
    ) -> String {
        let mut text = self.text(measured, curves, style, width);
        let Some(chart) = chart else { return text };
        // Writing to a String cannot fail.
        let _ = write!(text, "\n{}", chart::terminal(chart, width, colour));
        if curves.len() > sentence::CURVES_DESCRIBED_MAX {
            let _ = write!(text, "\n{}", sentence::knees(curves, style).text(width));
        }
        if curves.iter().any(|curve| curve.found.is_some()) {
            let _ = write!(text, "\n{}", sentence::rule(width));
        }
        text
    }
}

#[cfg(test)]
mod tests;
