//! A study as one page of HTML: its conclusion and findings, pictures and tables, how to repeat it.
//!
//! Invariant: the template escapes every text; only pictures, style sheet and script are inserted as they are. Each figure of a
//! table has its exact value in a `data` element.

use minijinja::{Value, context};

use crate::axis::Axis;
use crate::chart::{Chart, Line};
use crate::figures;
use crate::heat::shade;
use crate::html::{SCRIPT, STYLE, chart_value, environment, policy};

const TEMPLATE: &str = include_str!("study.html");

/// A study to be shown.
#[derive(Clone, Debug, Default)]
pub struct StudyPage {
    /// The subcommand: `profile`.
    pub study: String,
    /// What was done.
    pub title: String,
    /// What it concluded; empty if nothing.
    pub conclusion: String,
    /// What a reader has to know, the worst first.
    pub findings: Vec<StudyFinding>,
    /// Lines of its heading: name and text.
    pub facts: Vec<(String, String)>,
    /// Its parts, in order.
    pub parts: Vec<StudyPart>,
    /// How to repeat it: a name for each text.
    pub repeat: Vec<(String, String)>,
}

/// A finding.
#[derive(Clone, Debug, Default)]
pub struct StudyFinding {
    /// Its code.
    pub code: String,
    /// `note`, `caution` or `void`.
    pub severity: String,
    /// What it is about.
    pub subject: String,
    /// What it says.
    pub sentence: String,
    /// What to do; empty if nothing can be done.
    pub remedy: String,
}

/// A part of the page.
#[derive(Clone, Debug, Default)]
pub struct StudyPart {
    /// Unique in the page, of letters, digits and hyphens.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// What it shows, in sentences.
    pub note: String,
    /// Pictures in SVG, without a style sheet of their own.
    pub pictures: Vec<(String, StudyScreen)>,
    /// Charts over time.
    pub charts: Vec<StudyChart>,
    /// Tables.
    pub tables: Vec<StudyTable>,
}

/// The screens that a picture is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StudyScreen {
    /// All; on a narrow one it keeps its width and can be scrolled.
    All,
    /// Those that are not narrow.
    Wide,
    /// Narrow ones, such as a phone's.
    Narrow,
}

/// What the axes of a chart show.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum StudyAxes {
    /// Shares in percent, over the seconds since the start.
    #[default]
    SharesOverTime,
    /// A figure of runs, against something that was chosen or counted.
    Against {
        /// Its name.
        title: String,
        /// How far apart its values are drawn.
        steps: StudySteps,
        /// Whether its values are bytes.
        in_bytes: bool,
        /// What the figure is.
        figure: StudyFigure,
    },
}

/// How far apart the values of an axis are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StudySteps {
    /// By their difference: they are counted.
    Even,
    /// By their ratio if they are far apart: they are the values of an option, which often double.
    ByRatio,
}

/// The figure of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StudyFigure {
    /// Bytes per second.
    BytesPerS,
    /// I/Os per second.
    Iops,
    /// A latency in nanoseconds.
    Latency,
}

/// Figures as lines.
#[derive(Clone, Debug, Default)]
pub struct StudyChart {
    /// Unique in the page.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What it shows, in a sentence.
    pub description: String,
    /// What it shows.
    pub axes: StudyAxes,
    /// Lines: a name, and its points.
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
    /// What is shaded on the x axis: from and to.
    pub bands: Vec<(f64, f64)>,
}

/// A table.
#[derive(Clone, Debug, Default)]
pub struct StudyTable {
    /// Its caption.
    pub caption: String,
    /// The titles of its columns.
    pub columns: Vec<String>,
    /// Its rows: what is shown, and the exact figure if it is one.
    pub rows: Vec<Vec<(String, Option<f64>)>>,
    /// Whether the figures behind the first column are of one kind, and shaded by how high they are.
    pub is_heat_map: bool,
}

/// The page of a study.
///
/// # Errors
/// The template cannot be rendered, which is a fault of this program.
pub fn render_study(page: &StudyPage) -> Result<String, String> {
    let mut environment = environment()?;
    environment.add_template("study.html", TEMPLATE).map_err(|why| why.to_string())?;
    let template = environment.get_template("study.html").map_err(|why| why.to_string())?;
    let mood = page.findings.iter().map(|finding| finding.severity.as_str()).find(|one| *one != "note");
    let pairs = |pairs: &[(String, String)]| -> Vec<Value> {
        pairs.iter().map(|(name, text)| context! { name => name, text => text }).collect()
    };
    let findings: Vec<Value> = page.findings.iter().map(finding).collect();
    let values = context! {
        title => page.title,
        subcommand => page.study,
        kind => page.study,
        policy => policy(),
        style => Value::from_safe_string(STYLE.to_string()),
        script => Value::from_safe_string(SCRIPT.to_string()),
        mood => mood.unwrap_or_default(),
        conclusion => page.conclusion,
        findings => findings,
        facts => pairs(&page.facts),
        parts => page.parts.iter().map(part).collect::<Vec<_>>(),
        repeat => pairs(&page.repeat),
    };
    template.render(values).map_err(|why| why.to_string())
}

fn finding(finding: &StudyFinding) -> Value {
    let StudyFinding { code, severity, subject, sentence, remedy } = finding;
    context! { code => code, severity => severity, subject => subject, sentence => sentence, remedy => remedy }
}

fn part(part: &StudyPart) -> Value {
    let pictures: Vec<Value> = part
        .pictures
        .iter()
        .map(|(svg, screen)| {
            let class = match screen {
                StudyScreen::All => "wide-picture",
                StudyScreen::Wide => "only-wide",
                StudyScreen::Narrow => "only-narrow",
            };
            context! { svg => Value::from_safe_string(svg.clone()), class => class }
        })
        .collect();
    context! {
        id => part.id,
        title => part.title,
        note => part.note,
        pictures => pictures,
        charts => part.charts.iter().map(|chart| chart_value(&drawn(chart))).collect::<Vec<_>>(),
        tables => part.tables.iter().map(table).collect::<Vec<_>>(),
    }
}

fn drawn(chart: &StudyChart) -> Chart {
    let line = |(name, points): &(String, Vec<(f64, f64)>)| Line {
        name: name.clone(),
        points: points.iter().map(|(at, figure)| (*at, Some(*figure))).collect(),
    };
    let points = || chart.lines.iter().flat_map(|(_, points)| points.iter().copied());
    let (xs, ys) = (points().map(|point| point.0), points().map(|point| point.1));
    let shares = Chart {
        id: chart.id.clone(),
        title: chart.title.clone(),
        description: chart.description.clone(),
        x_title: "Time since the start".to_string(),
        x: Axis::linear(0.0, xs.clone().fold(0.0, f64::max)),
        y: Axis::linear(0.0, 100.0),
        y_base: 1000.0,
        x_text: figures::seconds,
        y_text: |percent| format!("{percent:.0}\u{a0}%"),
        x_ticks: None,
        lines: chart.lines.iter().map(line).collect(),
        bands: chart.bands.clone(),
    };
    let StudyAxes::Against { title, steps, in_bytes, figure } = &chart.axes else { return shares };
    let (low, high) = (xs.clone().fold(f64::INFINITY, f64::min), xs.clone().fold(0.0, f64::max));
    let mut ticks: Vec<f64> = xs.clone().collect();
    ticks.sort_unstable_by(f64::total_cmp);
    ticks.dedup();
    let x_ticks = match steps {
        StudySteps::Even if *in_bytes => Some(Axis::linear(low.min(high), high).ticks(TICKS, 1024.0)),
        StudySteps::Even if ticks.len() > TICKS_MAX => None,
        _ => Some(ticks),
    };
    let against = Chart {
        x_title: title.clone(),
        x: if *steps == StudySteps::ByRatio && low > 0.0 && high / low >= DOUBLINGS_MIN {
            Axis::logarithmic(low, high)
        } else {
            Axis::linear(low.min(high), high)
        },
        x_text: if *in_bytes { figures::size } else { figures::count },
        x_ticks,
        ..shares
    };
    match figure {
        StudyFigure::BytesPerS => Chart {
            y: Axis::from_zero(ys, 1024.0),
            y_base: 1024.0,
            y_text: |bytes| format!("{}/s", figures::size(bytes)),
            ..against
        },
        StudyFigure::Iops => {
            let low = ys.clone().fold(f64::INFINITY, f64::min);
            let are_far_apart = low > 0.0 && ys.clone().fold(0.0, f64::max) / low >= FAR_APART;
            let y = if are_far_apart { Axis::decades(ys) } else { Axis::from_zero(ys, 1000.0) };
            Chart { y, y_text: figures::count, ..against }
        }
        StudyFigure::Latency => Chart { y: Axis::decades(ys), y_text: figures::time, ..against },
    }
}

/// From this ratio of the highest to the lowest value on, an axis of an option is logarithmic.
const DOUBLINGS_MIN: f64 = 4.0;

/// About how many sizes are labelled, and the most counted values of which each has a mark.
const TICKS: usize = 6;
const TICKS_MAX: usize = 40;

/// From this ratio on, the axis of rates is logarithmic, since the lowest would be at its foot.
const FAR_APART: f64 = 30.0;

fn table(table: &StudyTable) -> Value {
    let is_number =
        |column: usize| table.rows.iter().any(|row| row.get(column).is_some_and(|cell| cell.1.is_some()));
    let columns: Vec<Value> = table
        .columns
        .iter()
        .enumerate()
        .map(|(column, title)| context! { title => title, is_number => is_number(column) })
        .collect();
    let shades = table.is_heat_map.then(|| {
        let all = table.rows.iter().flat_map(|row| row.iter().skip(1)).filter_map(|(_, exact)| *exact);
        Axis::logarithmic(all.clone().fold(f64::INFINITY, f64::min), all.fold(0.0, f64::max))
    });
    let rows: Vec<Vec<Value>> = table
        .rows
        .iter()
        .map(|row| {
            let cells = row.iter().enumerate();
            let cell = |(column, (text, exact)): (usize, &(String, Option<f64>))| {
                let axis = shades.as_ref().filter(|_| column > 0);
                let shade = axis.zip(*exact).map(|(axis, figure)| shade(axis.share(figure)));
                let exact = exact.map(|figure| figure.to_string());
                context! { text => text, exact => exact, is_number => is_number(column), shade => shade }
            };
            cells.map(cell).collect()
        })
        .collect();
    context! { caption => table.caption, columns => columns, rows => rows }
}
