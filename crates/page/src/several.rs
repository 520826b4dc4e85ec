//! Studies and runs one after the other on one page, which does not compare them.
//!
//! Invariant: each part, finding and fact names what it is of; ids stay unique.

use fiord_explain::NotedFinding;
use fiord_stats::OrderBy;

use crate::run_view::RunView;
use crate::study_page::{StudyFinding, StudyPage, StudyPart, StudyTable};
use crate::summary;

/// The summary of a run, as a page beside others has it.
pub fn of_run(run: &RunView) -> StudyPage {
    let titles = ["Job", "Direction"].into_iter().chain(summary::COLUMNS.iter().map(|(_, title)| *title));
    let row = |row: summary::Row| {
        let figures = row.figures.into_iter();
        let figures = figures.map(|figure| (figure.text, figure.exact.parse().ok()));
        [(row.job, None), (row.direction.to_string(), None)].into_iter().chain(figures).collect()
    };
    let table = StudyTable {
        caption: "A row for each job and direction.".to_string(),
        columns: titles.map(str::to_string).collect(),
        rows: summary::rows(std::slice::from_ref(run)).into_iter().map(row).collect(),
        is_heat_map: false,
    };
    let part = StudyPart {
        id: "figures".to_string(),
        title: "Figures".to_string(),
        tables: vec![table],
        ..StudyPart::default()
    };
    StudyPage {
        study: "run".to_string(),
        title: run.name.clone(),
        conclusion: summary::sentences(run).join(" "),
        findings: run.findings.iter().map(finding).collect(),
        facts: run.facts.clone(),
        parts: vec![part],
        repeat: run.command.iter().map(|command| ("The command:".to_string(), command.clone())).collect(),
    }
}

fn finding(finding: &NotedFinding) -> StudyFinding {
    let NotedFinding { code, severity, subject, sentence, remedy } = finding.clone();
    StudyFinding { code, severity, subject, sentence, remedy }
}

/// All of them on one page, in this order.
pub fn joined(pages: Vec<StudyPage>) -> StudyPage {
    let titles: Vec<&str> = pages.iter().map(|page| page.title.as_str()).collect();
    let mut all = StudyPage { study: "report".to_string(), title: titles.join("; "), ..StudyPage::default() };
    let mut conclusions = Vec::new();
    for (number, page) in pages.into_iter().enumerate() {
        let StudyPage { title, conclusion, findings, facts, parts, repeat, .. } = page;
        let said = if conclusion.is_empty() { "nothing was concluded." } else { &conclusion };
        conclusions.push(format!("{title}: {said}"));
        let named = |name: String| if name.is_empty() { name } else { format!("{title}: {name}") };
        all.findings.extend(
            findings
                .into_iter()
                .map(|finding| StudyFinding { subject: named(finding.subject.clone()), ..finding }),
        );
        all.facts.extend(facts.into_iter().map(|(name, text)| (named(name), text)));
        all.repeat.extend(repeat.into_iter().map(|(name, text)| (named(name), text)));
        all.parts.extend(parts.into_iter().map(|mut part| {
            part.id = format!("of-{number}-{}", part.id);
            part.title = named(part.title);
            part.charts.iter_mut().for_each(|chart| chart.id = format!("of-{number}-{}", chart.id));
            part
        }));
    }
    all.findings.order_by_key(|finding| {
        ["void", "caution"].iter().position(|one| *one == finding.severity).unwrap_or(2)
    });
    all.conclusion = conclusions.join(" ");
    all
}
