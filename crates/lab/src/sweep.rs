//! `sweep`: one job at several values of its options, and where the gain ends.
//!
//! Invariant: a step is the user's job with the swept options set and nothing else changed; every row is one run's.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use fiord_options::{Section, Setting, Spec};
use fiord_report::RunReport;
use fiord_report::table::{Cell, Column, Table};
use fiord_stats::job::DIRECTIONS;

use crate::chart::{self, Chart};
use crate::figures::{self, Figures, utilisation_percent};
use crate::ranges::Value;
use crate::study::{Findings, Ran, Step, Study};
use crate::svg;

mod curve;
mod sentence;

use curve::Curve;

/// Most runs of one sweep.
pub const RUNS_MAX: usize = 10_000;

/// What the values of an option count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Bytes.
    Bytes,
    /// Something else, or nothing: words.
    Other,
}

/// A swept option.
#[derive(Clone, Debug)]
pub struct Key {
    /// The option.
    pub spec: &'static Spec,
    /// What its values count.
    pub counted: Counted,
    /// The values, in the order they are run.
    pub values: Vec<Value>,
}

impl Key {
    /// The option's name.
    pub fn name(&self) -> &'static str {
        self.spec.name
    }

    /// What people call the option.
    fn title(&self) -> &'static str {
        match self.name() {
            "rw" => "RW",
            "bs" => "BlockSize",
            "numjobs" => "Threads",
            "iodepth" => "Depth",
            other => other,
        }
    }

    /// What stands below a chart.
    fn axis_title(&self) -> String {
        match self.counted {
            Counted::Bytes => format!("{} (bytes)", self.title()),
            _ => self.title().to_string(),
        }
    }

    /// Whether a curve can be drawn over its values.
    fn is_axis(&self) -> bool {
        self.values.len() > 1 && self.values.iter().all(|value| value.number.is_some())
    }

    /// A value: people are shown it as typed, programs the number it stands for.
    fn cell(&self, value: usize) -> Cell {
        let Value { text, number } = &self.values[value];
        match number {
            Some(number) => Cell::Said(text.clone(), *number),
            None => Cell::Text(text.clone()),
        }
    }
}

/// The job that is run at each point.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// Its sections; none sets a swept option.
    pub sections: Vec<Section>,
}

impl Job {
    /// What a section does where `rw` is not swept: as typed, or the default.
    fn rw(section: &Section) -> &str {
        let typed = section.settings().rfind(|setting| setting.spec.name == "rw");
        typed.and_then(|setting| setting.value.as_deref()).unwrap_or("read")
    }

    /// The jobs a report tells of, as people call them. Of sections in a group that is reported as one
    /// (`group_reporting`), the report has the first alone: its row is that of all of them.
    fn parts(&self, report: &RunReport) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for section in &self.sections {
            let name = &section.name;
            let is_told = self.sections.len() == 1 || report.jobs.iter().any(|job| job.name == *name);
            let known = parts.iter().position(|part| part.name == *name);
            if is_told && known.is_none() {
                let (name, title, rw) = (name.clone(), name.clone(), Job::rw(section).to_string());
                parts.push(Part { name, title, rw });
            } else if let Some(part) = match known {
                Some(known) => parts.get_mut(known),
                None => parts.last_mut(),
            } {
                part.takes_in(name, Job::rw(section));
            }
        }
        parts
    }

    /// What a part of a run did, direction by direction.
    fn done(&self, part: &Part, report: &RunReport) -> Vec<Done> {
        let figures = |direction| match self.sections.len() {
            1 => Figures::of(report, direction),
            _ => Figures::of_job(report, &part.name, direction),
        };
        let of = |direction| Some((direction, figures(direction)?));
        let directions: Vec<(usize, Figures)> = (0..DIRECTIONS.len()).filter_map(of).collect();
        let is_mixed = directions.len() > 1;
        let row = |(direction, figures)| Done {
            job: part.title.clone(),
            rw: part.rw.clone(),
            direction,
            is_mixed,
            figures,
        };
        directions.into_iter().map(row).collect()
    }
}

/// One or several sections that have rows together.
struct Part {
    /// What the report calls it.
    name: String,
    /// What people are told: every section's name.
    title: String,
    /// What its sections do, each way once.
    rw: String,
}

impl Part {
    fn takes_in(&mut self, name: &str, rw: &str) {
        for (list, word) in [(&mut self.title, name), (&mut self.rw, rw)] {
            if !list.split(", ").any(|known| known == word) {
                *list = format!("{list}, {word}");
            }
        }
    }
}

/// What people are shown beside the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pictures {
    /// Whether the terminal shows colours.
    pub colour: bool,
    /// Where the chart goes as SVG.
    pub plot: Option<PathBuf>,
}

/// The study.
pub struct Sweep {
    keys: Vec<Key>,
    job: Job,
    pictures: Pictures,
    heading: Vec<(&'static str, String)>,
    /// For each step that is measured, which value of each key it has.
    points: Vec<Vec<usize>>,
    steps: Vec<Step>,
}

/// What one run measured.
#[derive(Clone, Debug)]
struct Measured {
    point: Vec<usize>,
    /// What each job did in each direction in which it did something.
    rows: Vec<Done>,
    /// All jobs and directions together.
    total: Figures,
    error_bytes_per_s: f64,
    util_percent: Option<f64>,
}

/// What a job did in one direction.
#[derive(Clone, Debug)]
struct Done {
    /// The job's name.
    job: String,
    /// What it does, where that is not swept.
    rw: String,
    /// Index into [`DIRECTIONS`].
    direction: usize,
    /// Whether it went other ways, too.
    is_mixed: bool,
    figures: Figures,
}

impl Sweep {
    /// The cross product of the keys' values, the last key's changing fastest. `time` tells how long sections
    /// run.
    ///
    /// # Errors
    /// When there are more than [`RUNS_MAX`] runs.
    pub fn new(
        keys: Vec<Key>,
        job: Job,
        pictures: Pictures,
        time: &dyn Fn(&[Section]) -> Duration,
    ) -> Result<Sweep, String> {
        let runs = keys.iter().try_fold(1usize, |runs, key| runs.checked_mul(key.values.len()));
        if runs.is_none_or(|runs| runs > RUNS_MAX) {
            return Err(format!("these are more than {RUNS_MAX} runs; sweep over fewer values"));
        }
        let mut points = vec![Vec::new()];
        for key in &keys {
            let longer = |point: &Vec<usize>| {
                let point = point.clone();
                (0..key.values.len()).map(move |value| [point.as_slice(), &[value]].concat())
            };
            points = points.iter().flat_map(longer).collect();
        }
        let steps = points.iter().map(|point| step(&keys, &job, point, time)).collect();
        Ok(Sweep { keys, job, pictures, heading: Vec::new(), points, steps })
    }

    /// With a step before all others that makes ready for them.
    #[must_use]
    pub fn prepared_by(mut self, step: Step) -> Sweep {
        self.steps.insert(0, step);
        self
    }

    /// With lines that people are told before it begins.
    #[must_use]
    pub fn headed(mut self, heading: Vec<(&'static str, String)>) -> Sweep {
        self.heading = heading;
        self
    }

    fn measured(&self, ran: &[Ran]) -> Vec<Measured> {
        let preparing = self.steps.len() - self.points.len();
        let of = |run: &Ran| {
            Some(Measured {
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
            })
        };
        ran.iter().filter_map(of).collect()
    }

    /// The option the curves are drawn over: of those with numbers the one with most values, the last of equals.
    fn axis(&self) -> Option<usize> {
        let axes = (0..self.keys.len()).filter(|key| self.keys[*key].is_axis());
        axes.max_by_key(|key| self.keys[*key].values.len())
    }

    /// The rows for programs.
    fn table(&self, measured: &[Measured]) -> Table {
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
        self.keys.iter().any(|key| key.name() == "rw")
    }

    /// The keys in the order of the columns: `rw` leads.
    fn columns(&self) -> impl Iterator<Item = &Key> {
        let is_rw = |key: &&Key| key.name() == "rw";
        self.keys.iter().filter(is_rw).chain(self.keys.iter().filter(move |key| !is_rw(key)))
    }

    fn cells(&self, run: &Measured) -> impl Iterator<Item = Cell> {
        let at = |key: &Key| self.keys.iter().position(|known| known.name() == key.name()).unwrap_or(0);
        self.columns().map(move |key| key.cell(run.point[at(key)]))
    }

    /// The rows for people, in the columns people print who write such a sweep by hand. The runs at a knee are marked.
    fn text(&self, measured: &[Measured], curves: &[Curve], style: &Style, width: usize) -> String {
        let keys = self.columns().filter(|key| key.name() != "rw");
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

    fn shown(&self, run: &Measured, done: &Done, style: &Style, is_knee: bool) -> Vec<Cell> {
        let Done { job, rw, direction, is_mixed, figures } = done;
        let text = |key: usize| self.keys[key].values[run.point[key]].text.clone();
        let rw = self.keys.iter().position(|key| key.name() == "rw").map_or(rw.clone(), text);
        let letter = DIRECTIONS[*direction][..1].to_uppercase();
        let rw = if *is_mixed { format!("{rw} {letter}") } else { rw };
        let mut cells: Vec<Cell> =
            self.has_several_jobs().then(|| Cell::Text(job.clone())).into_iter().collect();
        cells.push(Cell::Text(rw));
        let swept = |key: &usize| self.keys[*key].name() != "rw";
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

/// The figures for programs, behind the swept options.
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

/// The figures for people.
const SHOWN: [Column; 6] = [
    Column::new("iops", "IOPS"),
    Column::new("mib_per_s", "BW(MiB/s)"),
    Column::new("mean", "AvgLat(ms)"),
    Column::new("p99", "p99(ms)"),
    Column::new("util", "Util(%)"),
    Column::new("knee", ""),
];

fn figure_cells(done: &Done, run: &Measured) -> [Cell; 11] {
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

fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

/// How the figures of a sweep are shown: in its table, and by the same cells in its sentence.
#[derive(Clone, Copy, Debug)]
struct Style {
    /// Decimals of MiB/s.
    mib_decimals: usize,
    /// Decimals of milliseconds.
    ms_decimals: usize,
    /// Whether a run has several rows, so that figures of whole runs are none of the table's.
    is_summed: bool,
}

/// Throughput below this is shown to hundredths.
const LOW_MIB_PER_S: f64 = 10.0;

impl Style {
    /// Decimals that leave two figures of the shortest mean, and of the lowest throughput.
    fn of(measured: &[Measured]) -> Style {
        let rows = || measured.iter().flat_map(|run| &run.rows).map(|done| &done.figures);
        let ms_decimals = match rows().map(|figures| figures.mean_ns).min() {
            Some(0..10_000) => 4,
            Some(10_000..10_000_000) => 3,
            _ => 1,
        };
        let is_low = rows().any(|figures| figures.mib_per_s() < LOW_MIB_PER_S);
        let is_summed = measured.iter().any(|run| run.rows.len() > 1);
        Style { mib_decimals: if is_low { 2 } else { 1 }, ms_decimals, is_summed }
    }

    fn throughput(&self, bytes_per_s: f64) -> Cell {
        Cell::Number(mib(bytes_per_s), self.mib_decimals)
    }

    fn latency(&self, ns: u64) -> Cell {
        Cell::Number(ns as f64 / 1e6, self.ms_decimals)
    }
}

fn step(keys: &[Key], job: &Job, point: &[usize], time: &dyn Fn(&[Section]) -> Duration) -> Step {
    let swept = || keys.iter().zip(point).map(|(key, value)| (key, key.values[*value].text.as_str()));
    let names: Vec<String> = swept().map(|(key, text)| format!("{}={text}", key.name())).collect();
    let mut sections = job.sections.clone();
    for section in &mut sections {
        section.own.extend(swept().map(|(key, text)| Setting::new(key.spec, text)));
    }
    let time = time(&sections);
    Step::measure(names.join(" "), sections, time)
}

impl Study for Sweep {
    fn name(&self) -> &'static str {
        "sweep"
    }

    fn purpose(&self) -> String {
        let list = |key: &Key| {
            let texts: Vec<&str> = key.values.iter().map(|value| value.text.as_str()).collect();
            format!("{}={}", key.name(), texts.join(","))
        };
        let lists: Vec<String> = self.keys.iter().map(list).collect();
        let runs = if self.points.len() == 1 { "run" } else { "runs" };
        format!("{} {runs} over {}", self.points.len(), lists.join(" x "))
    }

    fn heading(&self) -> Vec<(&'static str, String)> {
        self.heading.clone()
    }

    fn is_of_users_options(&self) -> bool {
        true
    }

    fn steps(&self) -> &[Step] {
        &self.steps
    }

    fn findings(&self, ran: &[Ran], width: usize) -> Findings {
        let measured = self.measured(ran);
        let curves = self.axis().map_or(Vec::new(), |axis| curve::of(&self.keys, axis, &measured));
        let style = Style::of(&measured);
        let axis = self.axis().filter(|_| curves.iter().any(|curve| curve.runs.len() > 1));
        let chart = axis.map(|axis| Chart {
            axis: self.keys[axis].axis_title(),
            lines: curves.iter().map(Curve::line).collect(),
        });
        let text = |colour| self.page(&measured, &curves, &style, chart.as_ref(), width, colour);
        let plot = self.pictures.plot.iter().zip(&chart);
        Findings {
            conclusion: sentence::conclusion(&self.keys, self.axis(), &curves, &measured, &style),
            table: self.table(&measured),
            tables: vec![("knees", sentence::knees(&curves, &style))],
            files: plot.map(|(path, chart)| (path.clone(), svg::draw(chart))).collect(),
            text: text(false),
            coloured: self.pictures.colour.then(|| text(true)),
            ..Findings::default()
        }
    }
}

impl Sweep {
    /// The table, the chart, and what is to be known of knees.
    fn page(
        &self,
        measured: &[Measured],
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
        if curves.len() > sentence::CURVES_TOLD {
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
