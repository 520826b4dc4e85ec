//! docs/performance.md and its chart, made from the raw results that the page names.
//!
//! Invariant: the figures in the page are those of one raw file in the repository; the prose is written by hand.

use std::collections::BTreeSet;

use serde_json::Value;

use super::measure::median;
use super::{chart, result, table};
use crate::{marked, repo};

/// The page with its prose and figures.
pub const PAGE: &str = "docs/performance.md";
/// The chart it shows.
pub const CHART: &str = "docs/performance.svg";

const MARK: &str = "<!-- figures: written by `cargo x gen` from ";
const MARK_TAIL: &str = " -->\n";
const MARK_END: &str = "<!-- end of figures -->\n";

/// Path and expected text of the page and of the chart.
pub fn pages() -> Result<Vec<(&'static str, String)>, String> {
    let page = repo::read(PAGE).ok_or_else(|| format!("{PAGE}: not there"))?;
    let source = source(&page).ok_or_else(|| {
        format!(
            "{PAGE}: needs the lines\n{MARK}bench/runs/FILE.json{MARK_TAIL}{MARK_END}where the table belongs"
        )
    })?;
    let text = repo::read(source).ok_or_else(|| format!("{PAGE} names {source}, which does not exist"))?;
    let raw = serde_json::from_str(&text).map_err(|error| format!("{source}: {error}"))?;
    let lines = lines(&raw).map_err(|error| format!("{source}: {error}"))?;
    let start = format!("{MARK}{source}{MARK_TAIL}");
    let page = marked::replace(&page, &start, MARK_END, &figures(&raw, &lines))
        .map_err(|lacks| format!("{PAGE}: {lacks}"))?;
    Ok(vec![(PAGE, page), (CHART, chart::svg(&title(&raw), &lines))])
}

/// The raw file that a page names.
fn source(page: &str) -> Option<&str> {
    let (_, rest) = page.split_once(MARK)?;
    rest.split_once(MARK_TAIL).map(|(path, _)| path)
}

fn lines(raw: &Value) -> Result<Vec<result::Line>, String> {
    let rows = raw["rows"].as_array().ok_or("no rows")?;
    let lines: Result<Vec<Vec<result::Line>>, String> = rows.iter().map(result::lines).collect();
    Ok(lines?.concat())
}

fn title(raw: &Value) -> String {
    let text = |key: &str| raw["machine"][key].as_str().unwrap_or_default();
    format!("fiord against {}: times as good (log scale), {}", text("fio"), text("date"))
}

fn figures(raw: &Value, lines: &[result::Line]) -> String {
    let machine = |key: &str| match &raw["machine"][key] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let rows = || raw["rows"].as_array().into_iter().flatten();
    let loads: Vec<f64> = rows().filter_map(|row| row["load"].as_f64()).collect();
    let places: BTreeSet<&str> = rows().filter_map(|row| row["place"].as_str()).collect();
    let places: Vec<&str> = places.into_iter().collect();
    let load_max = loads.iter().copied().fold(0.0, f64::max);
    let effort = &raw["effort"];
    format!(
        "![How many times fewer costs fiord has than fio, one bar per row of the table]({})\n\n{}\n{}.\n\n\
         Measured on {}, {}, {} processors, {}; {} and {} of commit {}.\n\
         {} pairs of runs; rows without an end of their own ran for {} s.\n\
         Places: {}.\n\
         Load average before a row: {:.2} at the median, {load_max:.2} at most.\n",
        CHART.trim_start_matches("docs/"),
        table::markdown(lines),
        result::counts(lines),
        machine("date"),
        machine("cpu"),
        machine("cpu_count"),
        machine("kernel"),
        machine("fio"),
        machine("fiord"),
        machine("commit").chars().take(10).collect::<String>(),
        effort["pairs"],
        effort["seconds"],
        places.join(", "),
        median(loads),
    )
}

#[cfg(test)]
mod tests {
    use super::super::rows::Metric;
    use super::*;
    use serde_json::json;

    #[test]
    fn the_page_names_its_raw_file() {
        let page = format!("# a\n{MARK}bench/runs/x.json{MARK_TAIL}old\n{MARK_END}");
        assert_eq!(source(&page), Some("bench/runs/x.json"));
        assert_eq!(source("# a"), None);
    }

    #[test]
    fn the_figures_name_their_source() {
        let row = |load: f64| {
            let mut row = result::testing::row("a case", Metric::Iops, ">=1.3", &[(Some(1e6), 2e6)]);
            row["load"] = json!(load);
            row["place"] = json!("zram");
            row
        };
        let raw = json!({
            "machine": { "date": "2026-01-02", "cpu": "A CPU", "cpu_count": 2, "kernel": "Linux 6", "fio": "fio-3.33",
                         "fiord": "fiord 0.1.0", "commit": "0123456789abcdef" },
            "effort": { "pairs": 7, "seconds": 2 },
            "rows": [row(0.5), row(2.0), row(1.0)],
        });
        let lines = lines(&raw).unwrap();
        let text = figures(&raw, &lines);
        for what in [
            "| a case | 1.00M/s |",
            "3 held, 0 missed, 0 skipped.",
            "A CPU, 2 processors, Linux 6",
            "commit 0123456789.\n7 pairs",
            "1.00 at the median, 2.00 at most",
            "Places: zram.",
            "(performance.svg)",
        ] {
            assert!(text.contains(what), "{what}: {text}");
        }
        assert!(title(&raw).contains("fio-3.33"));
        assert!(super::lines(&json!({})).is_err());
    }
}
