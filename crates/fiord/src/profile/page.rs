//! The page of a profile.
//!
//! Invariant: every figure is one of the study's tables.

use std::ffi::OsString;

use fiord_lab::profile::{PageSection, Profile, Screen, Shares};
use fiord_lab::{StepResult, Study, StudyResult};
use fiord_options::{masked, write};
use fiord_page::study_page::{
    StudyChart, StudyFinding, StudyPage, StudyPart, StudyScreen, StudyTable, render_study,
};
use fiord_report::Finding;
use fiord_report::path::{shown, visible_lines};
use fiord_report::table::Table;

/// The page as HTML.
pub(super) fn of(
    study: &Profile,
    results: &[StepResult],
    result: &StudyResult,
    findings: &[Finding],
) -> Result<String, String> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let command: Vec<String> = masked::of_arguments(&arguments).iter().map(shown).collect();
    let mut repeat = vec![("The command:".to_string(), command.join(" "))];
    for step in study.steps() {
        let text = write::job_file(&step.sections)?;
        repeat.push((format!("The job file of {}:", step.name), String::from_utf8_lossy(&text).into_owned()));
    }
    let purpose = study.purpose();
    let (first, rest) = purpose.split_at(purpose.chars().next().map_or(0, char::len_utf8));
    let page = render_study(&StudyPage {
        study: study.name().to_string(),
        title: format!("{}{rest}", first.to_uppercase()),
        conclusion: result.conclusion.clone(),
        findings: findings.iter().map(finding).collect(),
        facts: study
            .outline()
            .heading
            .iter()
            .map(|(name, text)| ((*name).to_string(), text.clone()))
            .collect(),
        parts: study.sections(results).into_iter().map(part).collect(),
        repeat,
    })?;
    Ok(visible_lines(&page))
}

fn finding(finding: &Finding) -> StudyFinding {
    StudyFinding {
        code: finding.code.name().to_string(),
        severity: finding.severity().name().to_string(),
        subject: finding.subject.to_string(),
        sentence: finding.sentence.clone(),
        remedy: finding.remedy.to_string(),
    }
}

fn part(section: PageSection) -> StudyPart {
    let PageSection { id, title, note, pictures, charts, tables } = section;
    let screen = |screen| match screen {
        Screen::All => StudyScreen::All,
        Screen::Wide => StudyScreen::Wide,
        Screen::Narrow => StudyScreen::Narrow,
    };
    StudyPart {
        id: id.to_string(),
        title: title.to_string(),
        note,
        pictures: pictures.into_iter().map(|(svg, of)| (svg, screen(of))).collect(),
        charts: charts.into_iter().map(chart).collect(),
        tables: tables.iter().map(|(caption, of)| table(caption, of)).collect(),
    }
}

fn chart(shares: Shares) -> StudyChart {
    let Shares { id, title, description, lines } = shares;
    StudyChart { id, title, description: description.to_string(), lines, ..StudyChart::default() }
}

fn table(caption: &str, table: &Table) -> StudyTable {
    StudyTable {
        caption: caption.to_string(),
        columns: table.columns.iter().map(|column| column.title.to_string()).collect(),
        rows: table
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| (cell.shown(), cell.figure())).collect())
            .collect(),
        is_heat_map: false,
    }
}
