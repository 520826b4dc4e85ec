//! The output of a study: heading, result, JSON.
//!
//! Invariant: values in, text out; colours never carry information of their own.

use fiord_lab::{Study, StudyResult, StudyTarget};
use fiord_plan::EngineName;
use fiord_report::Finding;
use fiord_report::json::{Writer, findings};
use fiord_report::path;

use super::io_modes::IoModes;
use super::planned::PlannedSteps;
use crate::layout::{duration, folded, labelled, painted};

/// The heading: what the study does, on what targets, and how long it takes.
pub(super) fn opening(study: &dyn Study, targets: &[&StudyTarget], modes: &IoModes, width: usize) -> String {
    let fills = study.steps().iter().any(|step| step.prepares);
    let after = if fills { " after its file is filled" } else { "" };
    let title =
        format!("fiord {}: {}, about {}{after}", study.name(), study.purpose(), duration(study.time()));
    let mut heading: Vec<_> =
        targets.iter().flat_map(|target| target.heading(&modes.describe(target))).collect();
    heading.extend(study.outline().heading.iter().cloned());
    folded(&title, width, 0) + &labelled(&heading, width) + "\n"
}

/// The table, the charts, the conclusion and the findings.
pub(super) fn closing(result: &StudyResult, findings: &[Finding], width: usize, coloured: bool) -> String {
    let text = result.coloured.as_ref().filter(|_| coloured).unwrap_or(&result.text);
    let mut text = painted(text, coloured);
    if !result.conclusion.is_empty() {
        text += "\n";
        text += &folded(&result.conclusion, width, 0);
    }
    if !findings.is_empty() {
        text += "\nFindings:\n";
    }
    for finding in findings {
        text += &folded(&format!("    {}", on_one_line(finding)), width, 4);
    }
    text
}

/// The table, and the findings below it.
pub(super) fn markdown(result: &StudyResult, findings: &[Finding]) -> String {
    let mut text = result.shown.as_ref().unwrap_or(&result.table).markdown();
    if !findings.is_empty() {
        text += "\n";
    }
    for finding in findings {
        text += &format!("- {}\n", on_one_line(finding));
    }
    text
}

/// A finding and its remedy, without line feeds.
fn on_one_line(finding: &Finding) -> String {
    finding.text(0).replace('\n', "; ")
}

/// The study as one document; `why` is the reason if it is incomplete.
pub(super) fn json(
    study: &dyn Study,
    targets: &[&StudyTarget],
    planned: &PlannedSteps,
    result: &StudyResult,
    why: Option<&str>,
) -> String {
    Writer::document(|json| {
        json.string("study", study.name());
        json.boolean("complete", why.is_none());
        optional(json, "error", why);
        match targets {
            [target] => json.object("target", |json| write_target(json, target, &planned.modes)),
            _ => json.null("target"),
        }
        planned.modes.jobs.write_json(json, "jobs");
        result.table.write_json(json, "rows");
        for (key, table) in &result.tables {
            table.write_json(json, key);
        }
        for (key, cell) in &result.facts {
            cell.write(json, key);
        }
        optional(json, "conclusion", Some(result.conclusion.as_str()).filter(|text| !text.is_empty()));
        findings::write(json, &planned.messages.findings());
    })
}

fn write_target(json: &mut Writer, target: &StudyTarget, modes: &IoModes) {
    let StudyTarget {
        path,
        file,
        writable,
        size_bytes,
        direct,
        in_memory,
        engine: _,
        file_system,
        devices,
        findings: _,
        remarks,
    } = target;
    json.string("path", &path::text(path));
    json.string("file", &path::text(file));
    json.boolean("writable", *writable);
    json.integer("size_bytes", size_bytes);
    json.boolean("takes_direct", *direct);
    match modes.direct() {
        Some(direct) => json.boolean("direct", direct),
        None => json.null("direct"),
    }
    json.boolean("in_memory", *in_memory);
    optional(json, "engine", modes.engine().map(EngineName::word));
    optional(json, "file_system", file_system.as_deref());
    devices.write_json(json, "devices");
    json.strings("remarks", remarks);
}

fn optional(json: &mut Writer, key: &str, text: Option<&str>) {
    match text {
        Some(text) => json.string(key, text),
        None => json.null(key),
    }
}
