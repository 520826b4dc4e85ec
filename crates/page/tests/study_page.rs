//! The page of a study: hostile texts, pictures, figures.
//!
//! Invariant: nothing of a study becomes markup but its pictures.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

use fiord_page::study_page::{
    StudyChart, StudyFinding, StudyPage, StudyPart, StudyScreen, StudyTable, render_study,
};

const HOSTILE: &str = "<script>alert(1)</script>\"'&<img src=x onerror=y>";

fn page() -> StudyPage {
    let text = || HOSTILE.to_string();
    StudyPage {
        study: "profile".to_string(),
        title: text(),
        conclusion: text(),
        findings: vec![StudyFinding {
            code: "cached-io".to_string(),
            severity: "void".to_string(),
            subject: text(),
            sentence: text(),
            remedy: text(),
        }],
        facts: vec![("Job".to_string(), text()), (String::new(), text())],
        parts: vec![StudyPart {
            id: "time".to_string(),
            title: text(),
            note: text(),
            pictures: vec![("<svg id=\"own\"></svg>".to_string(), StudyScreen::All)],
            charts: vec![StudyChart {
                id: "processors-0".to_string(),
                title: text(),
                description: text(),
                lines: vec![(text(), vec![(0.5, 10.0), (1.5, 30.0)])],
                ..StudyChart::default()
            }],
            tables: vec![StudyTable {
                caption: text(),
                columns: vec![text(), "TIME".to_string()],
                rows: vec![
                    vec![(text(), None), ("12us".to_string(), Some(12_345.0))],
                    vec![(text(), None), ("-".to_string(), None)],
                ],
                is_heat_map: true,
            }],
        }],
        repeat: vec![("The command:".to_string(), text())],
    }
}

#[test]
fn texts_are_escaped_and_pictures_are_not() {
    let html = render_study(&page()).unwrap();
    assert!(!html.contains("<img") && !html.contains("<script>alert"), "{html}");
    assert!(html.contains("<svg id=\"own\"></svg>") && html.contains("class=\"scroll wide-picture\""));
    assert!(html.contains("<data value=\"12345\">12us</data><span class=\"strip b0\"></span>"), "{html}");
    assert!(html.contains("<section class=\"conclusion void\""), "{html}");
    // Two points at two seconds, in the chart and in its table.
    assert!(
        html.contains("id=\"chart-processors-0\"") && html.contains("<td class=\"number\">30\u{a0}%</td>"),
        "{html}"
    );
}

#[test]
fn a_study_that_measured_nothing_has_a_page() {
    let html = render_study(&StudyPage::default()).unwrap();
    assert!(html.contains("Nothing was measured.") && html.trim_end().ends_with("</html>"), "{html}");
}
