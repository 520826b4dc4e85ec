//! The output of a study: heading, result, JSON.
//!
//! Invariant: values in, text out; colours never carry information of their own.

use fiord_compare::{NamedRun, Outcome, Side, study_runs};
use fiord_lab::rounds::without_round;
use fiord_lab::{StepResult, Study, StudyResult, StudyTarget, Verdict};
use fiord_plan::EngineName;
use fiord_report::Finding;
use fiord_report::json::{Writer, findings};
use fiord_report::path::{self, visible_lines};
use fiord_report::table::{Cell, Column, Table};
use fiord_report::time::iso;
use fiord_session::study::io_modes::IoModes;
use fiord_store::RunFacts;

use crate::layout::{duration, folded, labelled, painted};

/// The heading: what the study does, on what targets, and how long it takes.
pub(super) fn opening(study: &dyn Study, targets: &[&StudyTarget], modes: &IoModes, width: usize) -> String {
    let fills = study.steps().iter().any(|step| step.prepares);
    let after = if fills { " after its file is filled" } else { "" };
    let about = if study.outline().is_time_at_most { "at most" } else { "about" };
    let title =
        format!("fiord {}: {}, {about} {}{after}", study.name(), study.purpose(), duration(study.time()));
    let mut heading: Vec<_> =
        targets.iter().flat_map(|target| target.heading(&modes.describe(target))).collect();
    heading.extend(study.outline().heading.iter().cloned());
    visible_lines(&(folded(&title, width, 0) + &labelled(&heading, width) + "\n"))
}

/// The table, the charts, the conclusion and the findings.
pub(super) fn closing(result: &StudyResult, findings: &[Finding], width: usize, coloured: bool) -> String {
    let mut text = match result.coloured.as_ref().filter(|_| coloured) {
        Some(text) => painted(text, coloured),
        None => painted(&visible_lines(&result.text), coloured),
    };
    if !result.conclusion.is_empty() {
        text += "\n";
        text += &visible_lines(&folded(&result.conclusion, width, 0));
    }
    if !findings.is_empty() {
        text += "\nFindings:\n";
    }
    for finding in findings {
        text += &visible_lines(&folded(&format!("    {}", on_one_line(finding)), width, 4));
    }
    text
}

/// The table, and below it the conclusion and the findings.
pub(super) fn markdown(result: &StudyResult, findings: &[Finding]) -> String {
    let mut text = result.shown.as_ref().unwrap_or(&result.table).markdown();
    if !result.conclusion.is_empty() {
        text += &format!("\n{}\n", result.conclusion);
    }
    if !findings.is_empty() {
        text += "\n";
    }
    for finding in findings {
        text += &format!("- {}\n", on_one_line(finding));
    }
    visible_lines(&text)
}

/// A finding and its remedy, without line feeds.
fn on_one_line(finding: &Finding) -> String {
    finding.text(0).replace('\n', "; ")
}

/// A study that is over.
pub(super) struct StudyDocument<'s> {
    pub study: &'s dyn Study,
    pub targets: &'s [&'s StudyTarget],
    /// How its runs do I/O.
    pub modes: &'s IoModes,
    pub result: &'s StudyResult,
    pub findings: &'s [Finding],
    /// What was known when it started.
    pub facts: RunFacts,
    /// The runs that were measured, and the names of their steps.
    pub ran: &'s [StepResult],
    pub names: Vec<String>,
    /// What became of the conditions of `--fail-if`.
    pub outcomes: &'s [Outcome],
    /// Why it is incomplete, if it is.
    pub why_early: Option<&'s str>,
}

impl StudyDocument<'_> {
    /// Its runs, from which another result is compared with it.
    fn runs(&self) -> Table {
        study_runs::table(&side(self.ran, &self.names).runs)
    }

    /// What became of each condition.
    fn conditions(&self) -> Table {
        let mut table = Table::new(["condition", "decision", "why"].map(|key| Column::new(key, "")));
        table.rows.extend(self.outcomes.iter().map(|Outcome { condition, decision, why }| {
            [condition.as_str(), decision.word(), why].map(|text| Cell::Text(text.to_string())).to_vec()
        }));
        table
    }

    /// The devices below the files of all runs.
    fn devices(&self) -> Table {
        let keys = ["name", "type", "transport", "size_bytes", "model", "rotational", "scheduler"];
        let mut table = Table::new(keys.map(|key| Column::new(key, "")));
        for device in self.ran.iter().flat_map(|run| &run.report.devices).map(|used| &used.device) {
            let cells = vec![
                Cell::Text(device.name.clone()),
                Cell::Text(device.kind.clone()),
                Cell::text(device.transport.clone()),
                Cell::Bytes(device.size_bytes),
                Cell::text(device.model.clone()),
                Cell::Flag(device.queue.rotational),
                Cell::text(device.queue.scheduler.clone()),
            ];
            if !table.rows.contains(&cells) {
                table.rows.push(cells);
            }
        }
        table
    }
}

/// The runs as a result of their own.
pub(super) fn side(ran: &[StepResult], names: &[String]) -> Side {
    let of = |(run, name): (&StepResult, &String)| NamedRun::of_run(without_round(name), &run.report).ok();
    Side {
        name: "this study".to_string(),
        runs: ran.iter().zip(names).filter_map(of).collect(),
        ..Side::default()
    }
}

/// The study as one document.
pub(super) fn json(document: &StudyDocument<'_>) -> String {
    let StudyDocument { study, targets, modes, result, findings, facts, why_early: why, .. } = document;
    Writer::document(|json| {
        json.string("study", study.name());
        json.string("fiord_version", &facts.fiord_version);
        json.string("host", &facts.host);
        optional(json, "kernel", facts.kernel.as_deref());
        json.string("started", &iso(facts.started_ms, facts.utc_offset_s));
        json.string("command", &facts.command);
        optional(json, "tag", facts.tag.as_deref());
        json.boolean("complete", why.is_none());
        optional(json, "error", *why);
        match targets {
            [target] => json.object("target", |json| write_target(json, target, modes)),
            _ => json.null("target"),
        }
        document.devices().write_json(json, "devices");
        modes.jobs.write_json(json, "jobs");
        result.table.write_json(json, "rows");
        for (key, table) in &result.tables {
            table.write_json(json, key);
        }
        for (key, cell) in &result.facts {
            cell.write(json, key);
        }
        optional(json, "verdict", result.verdict.map(Verdict::word));
        optional(json, "conclusion", Some(result.conclusion.as_str()).filter(|text| !text.is_empty()));
        document.conditions().write_json(json, "conditions");
        findings::write(json, findings);
        document.runs().write_json(json, study_runs::KEY);
    })
}

fn write_target(json: &mut Writer, target: &StudyTarget, modes: &IoModes) {
    let StudyTarget {
        path,
        file,
        writable,
        size_bytes,
        free_bytes: _,
        direct,
        in_memory,
        engine: _,
        file_system,
        devices,
        findings: _,
        identity,
        block_bytes: _,
        zone_bytes: _,
        device_bytes: _,
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
    optional(json, "overwritten", identity.as_deref());
    json.strings("remarks", remarks);
}

fn optional(json: &mut Writer, key: &str, text: Option<&str>) {
    match text {
        Some(text) => json.string(key, text),
        None => json.null(key),
    }
}
