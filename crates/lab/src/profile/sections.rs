//! The page of a profile: its parts with their tables, pictures and charts.
//!
//! Invariant: tables are those of the text, and figures those of the JSON document.

use fiord_profile::{Second, flame};
use fiord_report::table::Table;

use super::variant::Variant;
use super::{picture, tables};

/// A part of the page.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Unique in the page.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// What it shows.
    pub note: String,
    /// Pictures in SVG, and the screens that they are for.
    pub pictures: Vec<(String, Screen)>,
    /// Charts of shares over time.
    pub charts: Vec<Shares>,
    /// Tables with their captions.
    pub tables: Vec<(String, Table)>,
}

/// The screens that a picture is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screen {
    /// All; on a narrow one it keeps its width and can be scrolled.
    All,
    /// Those that are not narrow.
    Wide,
    /// Narrow ones, such as a phone's.
    Narrow,
}

/// Shares of the time over time, as lines.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    /// Unique in the page.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What it shows.
    pub description: &'static str,
    /// Lines: a name, and its points in seconds and percent.
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
}

/// The parts of the page of these variants.
pub(super) fn of(variants: &[Variant], lacking: &[String]) -> Vec<Section> {
    if variants.is_empty() {
        return Vec::new();
    }
    let mut sections = vec![parts(variants, lacking), over_time(variants)];
    let requests = tables::requests(variants);
    if !requests.rows.is_empty() {
        sections.push(Section {
            id: "requests",
            title: "Requests",
            note: "From the tracepoints of the block layer: how long each request was in its queue, and at the device."
                .to_string(),
            tables: vec![("Requests of the typical run of each variant, of any program.".to_string(), requests)],
            ..Section::default()
        });
    }
    if variants.iter().any(|variant| variant.stacks.samples() > 0) {
        sections.push(flames(variants));
    }
    sections
}

fn parts(variants: &[Variant], lacking: &[String]) -> Section {
    let lacking: String = lacking.iter().map(|sentence| format!(" Not observed: {sentence}.")).collect();
    Section {
        id: "time",
        title: "Where the time goes",
        note: format!("The time of the jobs' threads, divided by their I/Os.{lacking}"),
        pictures: vec![
            (picture::bars(variants, &picture::WIDE), Screen::Wide),
            (picture::bars(variants, &picture::NARROW), Screen::Narrow),
        ],
        tables: vec![
            (
                "The time for each I/O, and what each figure comes from.".to_string(),
                tables::side_by_side(variants),
            ),
            ("The variants.".to_string(), tables::compared(variants)),
        ],
        ..Section::default()
    }
}

fn over_time(variants: &[Variant]) -> Section {
    let chart = |(number, variant): (usize, &Variant)| {
        let line = |name: &str, share: fn(&Second) -> Option<f64>| {
            let points = variant.windows.iter();
            let points =
                points.filter_map(|second| Some((second.until_s - second.length_s / 2.0, share(second)?)));
            (name.to_string(), points.collect::<Vec<_>>())
        };
        let lines = [
            line("programs", |second| Some(second.user_percent)),
            line("kernel", |second| Some(second.system_percent)),
            line("interrupts", |second| Some(second.interrupt_percent)),
            line("waiting for I/O", |second| Some(second.io_wait_percent)),
            line("stolen by the host", |second| Some(second.steal_percent)),
            line("disk busy", |second| second.busy_percent),
        ];
        Shares {
            id: format!("processors-{number}"),
            title: format!("Processors and disk: {}", variant.name),
            description: "Shares of the processors that the jobs may use, and of the time in which the disk was busy.",
            lines: lines.into_iter().filter(|(_, points)| !points.is_empty()).collect(),
        }
    };
    Section {
        id: "over-time",
        title: "Over time",
        charts: variants.iter().enumerate().map(chart).collect(),
        tables: variants
            .iter()
            .map(|variant| (format!("{}, window by window.", variant.name), tables::over_time(variant)))
            .collect(),
        ..Section::default()
    }
}

fn flames(variants: &[Variant]) -> Section {
    let sampled = || variants.iter().filter(|variant| variant.stacks.samples() > 0);
    let graph = |(number, variant): (usize, &Variant)| {
        (
            flame::graph(
                &format!("flame-{number}"),
                &format!("Flame graph: {}", variant.name),
                &variant.stacks,
            ),
            Screen::All,
        )
    };
    let mut pictures: Vec<(String, Screen)> = sampled().enumerate().map(graph).collect();
    let mut note = "Where the jobs' threads used their processors, sampled by perf. A box is a function, called by the one below \
                    it; its width is its share of the samples. Blue: file system and page cache; orange: block layer and \
                    drivers; green: sleeping and waking; grey: everything else. Time spent waiting is not in them."
        .to_string();
    if let [first, second] = sampled().collect::<Vec<_>>()[..] {
        // A function of one variant alone has no box in the picture of the other.
        for (id, of, against) in
            [("flame-difference", second, first), ("flame-difference-back", first, second)]
        {
            let title = format!("Difference: {} against {}", of.name, against.name);
            pictures.push((flame::difference(id, &title, &against.stacks, &of.stacks), Screen::All));
        }
        note += " In a difference, the boxes are those of the variant that is named first: orange, the darker the more, if \
                 its share there is larger than in the other one with the same callers, blue if it is smaller, grey if both \
                 are about the same.";
    }
    Section { id: "flames", title: "Flame graphs", note, pictures, ..Section::default() }
}
