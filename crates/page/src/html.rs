//! The page: its template filled with the values of the runs.
//!
//! Invariant: the template escapes every text; only the pictures, the style sheet and the script, which are made here, are
//! inserted as they are. The page's policy allows exactly that style sheet and that script, and no request.

use fiord_checksum::Checksum;
use fiord_explain::FINDINGS_MAX;
use fiord_import::EnergyFigures;
use minijinja::{Environment, Value, context};

use crate::chart::{BIG, Chart, Frame, LINES_MAX, NARROW, WIDE};
use crate::environment;
use crate::figures::{self, Figure};
use crate::heat::{HeatMap, SHADES};
use crate::hosts::HostsMap;
use crate::panels;
use crate::percentiles::{self, PercentileChart};
use crate::run_view::{RunView, letter, prefix};
use crate::summary;

const TEMPLATE: &str = include_str!("page.html");
/// The templates that pages share: what stands around each page, a list of findings, a chart, the figures of one.
const SHARED: [(&str, &str); 4] = [
    ("frame.html", include_str!("frame.html")),
    ("findings.html", include_str!("findings.html")),
    ("chart.html", include_str!("chart.html")),
    ("series.html", include_str!("series.html")),
];
pub(crate) const STYLE: &str = include_str!("page.css");
pub(crate) const SCRIPT: &str = include_str!("page.js");

/// Where templates are rendered, with the parts that pages share. Names that end in .html are escaped.
pub(crate) fn environment() -> Result<Environment<'static>, String> {
    let mut environment = Environment::new();
    for (name, template) in SHARED {
        environment.add_template(name, template).map_err(|why| why.to_string())?;
    }
    Ok(environment)
}

/// The page of these runs.
pub(crate) fn render(runs: &[RunView]) -> Result<String, String> {
    let mut environment = environment()?;
    environment.add_template("page.html", TEMPLATE).map_err(|why| why.to_string())?;
    let template = environment.get_template("page.html").map_err(|why| why.to_string())?;
    let curves = percentiles::curves(runs);
    let percentiles = percentiles::chart(&curves);
    let numbered = || runs.iter().enumerate();
    let of_hosts = numbered().filter_map(|(number, run)| hosts_map(runs, number, run));
    let latencies = numbered().filter_map(|(number, run)| heat_map(runs, number, run));
    let heat: Vec<Value> = of_hosts.chain(latencies).collect();
    let charts = panels::all(runs);
    let stalls: Vec<Value> = runs.iter().enumerate().map(|(number, run)| stalls(runs, number, run)).collect();
    let values = context! {
        title => title(runs),
        subcommand => "report",
        kind => if runs.len() > 1 { "two runs" } else { "report" },
        policy => policy(),
        style => Value::from_safe_string(STYLE.to_string()),
        script => Value::from_safe_string(SCRIPT.to_string()),
        compares => runs.len() > 1,
        runs => runs.iter().enumerate().map(|(number, run)| run_value(runs, number, run)).collect::<Vec<_>>(),
        columns => summary::COLUMNS.map(|(_, title)| title).to_vec(),
        rows => summary::rows(runs).iter().map(row).collect::<Vec<_>>(),
        percentiles => percentiles.as_ref().map(percentile_value),
        curves_left_out => curves.len().saturating_sub(LINES_MAX),
        heat => heat,
        charts => charts.iter().map(chart_value).collect::<Vec<_>>(),
        stalls => stalls.into_iter().filter(|text| !text.is_none()).collect::<Vec<_>>(),
        is_averaged => runs.iter().any(|run| run.over_time.as_ref().is_some_and(|over| over.is_averaged)),
    };
    template.render(values).map_err(|why| why.to_string())
}

fn title(runs: &[RunView]) -> String {
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    names.join(" and ")
}

/// What the page may load: nothing but its own style sheet and script.
pub(crate) fn policy() -> String {
    let hash = |text: &str| format!("'sha256-{}'", base64(Checksum::Sha256.of(text.as_bytes()).as_bytes()));
    format!(
        "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let word = group
            .iter()
            .enumerate()
            .fold(0u32, |word, (index, byte)| word | u32::from(*byte) << (16 - 8 * index));
        for digit in 0..4 {
            let is_padding = digit > group.len();
            let index = (word >> (18 - 6 * digit) & 63) as usize;
            text.push(if is_padding { '=' } else { char::from(DIGITS[index]) });
        }
    }
    text
}

fn figure(figure: &Figure) -> Value {
    context! { text => figure.text, exact => figure.exact }
}

fn row(row: &summary::Row) -> Value {
    let named = summary::COLUMNS.iter().zip(&row.figures);
    let figures: Vec<Value> = named
        .map(|((key, _), figure)| context! { key => key, text => figure.text, exact => figure.exact })
        .collect();
    context! { run => row.run, job => row.job, direction => row.direction, figures => figures }
}

fn run_value(runs: &[RunView], number: usize, run: &RunView) -> Value {
    let (mood, verdict) = summary::verdict(run);
    let findings: Vec<Value> = run
        .findings
        .iter()
        .take(FINDINGS_MAX)
        .map(|finding| {
            context! {
                code => finding.code, severity => finding.severity, subject => finding.subject,
                sentence => finding.sentence, remedy => finding.remedy,
            }
        })
        .collect();
    let jobs: Vec<Value> = summary::jobs(run)
        .iter()
        .map(|(name, rows)| {
            let rows: Vec<Value> = rows
                .iter()
                .map(|(label, value)| context! { label => label, figure => figure(value) })
                .collect();
            context! { name => name, rows => rows }
        })
        .collect();
    context! {
        letter => if runs.len() > 1 { letter(number).to_string() } else { String::new() },
        name => run.name,
        sentences => summary::sentences(run),
        mood => mood,
        verdict => verdict,
        reading => fiord_explain::reading(&run.report.others, &run.report.damage),
        jobs_left_out => run.jobs_left_out(),
        findings_left_out => run.findings.len().saturating_sub(FINDINGS_MAX),
        findings => findings,
        jobs => jobs,
        facts => run.facts.iter().map(|(name, text)| context! { name => name, text => text }).collect::<Vec<_>>(),
        chain => environment::chain(run),
        devices => environment::devices(run).iter().map(device).collect::<Vec<_>>(),
        energy => run.report.energy.iter().map(energy).collect::<Vec<_>>(),
        job_file => summary::job_file(run),
        command => run.command,
        has_over_time => run.over_time.is_some(),
    }
}

fn device(row: &environment::DeviceRow) -> Value {
    context! {
        name => row.name, below => row.below, what => row.what, queue => row.queue,
        read => figure(&row.read), written => figure(&row.written), busy => figure(&row.busy),
    }
}

fn energy(used: &EnergyFigures) -> Value {
    let figures = environment::energy(used);
    context! { source => used.source, figures => figures.iter().map(figure).collect::<Vec<_>>() }
}

/// The pictures of a chart for both widths, with the ends of their areas.
fn pictures(
    wide: &Frame,
    draw: impl Fn(&Frame) -> String,
    area: impl Fn(&Frame) -> (f64, f64),
) -> Vec<Value> {
    let picture = |class: &str, frame: &Frame| {
        let (left, right) = area(frame);
        let area = format!("{left:.4} {right:.4}");
        context! { class => class, svg => Value::from_safe_string(draw(frame)), area => area }
    };
    vec![picture("wide", wide), picture("narrow", &NARROW)]
}

fn legend(chart: &Chart) -> Vec<Value> {
    let entry = |(name, number): (String, usize)| {
        let dashes = if number >= crate::chart::COLOURS { " dashed" } else { "" };
        context! { name => name, number => number, class => format!("s{}{dashes}", number % crate::chart::COLOURS) }
    };
    chart.legend().into_iter().map(entry).collect()
}

fn table_rows(rows: &[(String, String, Vec<String>)]) -> Vec<Value> {
    rows.iter().map(|(x, at, cells)| context! { x => x, at => at, cells => cells }).collect()
}

pub(crate) fn chart_value(chart: &Chart) -> Value {
    let names: Vec<String> = chart.legend().into_iter().map(|(name, _)| name).collect();
    context! {
        id => chart.id,
        title => chart.title,
        description => chart.description,
        pictures => pictures(&WIDE, |frame| chart.draw(frame), |frame| chart.area(frame)),
        legend => legend(chart),
        x_title => chart.x_title,
        names => names,
        rows => table_rows(&chart.rows()),
    }
}

fn percentile_value(percentiles: &PercentileChart) -> Value {
    let PercentileChart { chart, rows } = percentiles;
    let names: Vec<String> = chart.legend().into_iter().map(|(name, _)| name).collect();
    let rows: Vec<Value> = rows
        .iter()
        .map(|(x, at, cells)| context! { x => x, at => at, cells => cells.iter().map(figure).collect::<Vec<_>>() })
        .collect();
    context! {
        title => chart.title,
        description => chart.description,
        pictures => pictures(&BIG, |frame| chart.draw(frame), |frame| chart.area(frame)),
        legend => legend(chart),
        names => names,
        rows => rows,
    }
}

fn heat_map(runs: &[RunView], number: usize, run: &RunView) -> Option<Value> {
    let title = format!("{}Latency over time", prefix(runs, number));
    let map = HeatMap::new(format!("heat{number}"), title, run.over_time.as_ref()?)?;
    Some(context! {
        id => map.id,
        title => map.title,
        description => map.description(),
        pictures => pictures(&BIG, |frame| map.draw(frame), Frame::area),
        shades => (0..SHADES).collect::<Vec<_>>(),
        caption => "Upper bounds, within a quarter.",
        names => ["50 %", "90 %", "99 %", "99.9 %", "longest", "I/Os"].to_vec(),
        rows => table_rows(&map.rows()),
    })
}

fn hosts_map(runs: &[RunView], number: usize, run: &RunView) -> Option<Value> {
    let title = format!("{}Hosts over time", prefix(runs, number));
    let map = HostsMap::new(format!("hosts{number}"), title, &run.report.hosts_over_time)?;
    Some(context! {
        id => map.id,
        title => map.title,
        description => map.description(),
        pictures => pictures(&BIG, |frame| map.draw(frame), |frame| map.frame(frame).area()),
        shades => (0..SHADES).collect::<Vec<_>>(),
        caption => "I/Os per second of each host.",
        names => map.names(),
        rows => table_rows(&map.rows()),
    })
}

/// Where a run stalled, in words.
fn stalls(runs: &[RunView], number: usize, run: &RunView) -> Value {
    let stalls = run.over_time.as_ref().map_or_else(Vec::new, |over| over.stalls());
    if stalls.is_empty() {
        return Value::from(());
    }
    let shown: Vec<String> = stalls
        .iter()
        .take(8)
        .map(|(from, to)| format!("{} to {}", figures::seconds(*from), figures::seconds(*to)))
        .collect();
    let more = stalls.len().saturating_sub(shown.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Value::from(format!(
        "{}Stalls, with less than a tenth of the usual rate: {}{more}.",
        prefix(runs, number),
        shown.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        for (plain, coded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }
}
