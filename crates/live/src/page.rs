//! Tables as they are printed, and a text below them, on a screen.
//!
//! Invariant: fits any size. A row is one line, cut at the right; of tables and of the text the end is left out, visibly.

use fiord_report::columns::{cut, left_aligned};
use fiord_stats::Capped;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Constraint, Layout, Rect};
use ratatui_core::text::Line;

use crate::draw::{bar, ends, heading, list, put};

/// Lines of a table, its heading among them, that are kept before any has more.
const TABLE_MIN: usize = 4;

/// The part of the lines that the text may take from the tables.
const TEXT_PART: usize = 3;

/// What is on the screen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// What is shown.
    pub title: String,
    /// How long it has gone on and how long it will, in words.
    pub progress: String,
    /// The tables, each with its heading in its first line, the most important first.
    pub tables: Vec<String>,
    /// The text below them, its heading in the first line, and no line wider than the screen.
    pub text: String,
    /// The keys that do something, and what they do.
    pub keys: &'static str,
}

/// Draws the page into the whole area.
pub fn draw_page(page: &Page, area: Rect, buffer: &mut Buffer) {
    let columns = usize::from(area.width);
    let text: Vec<&str> = page.text.lines().collect();
    let tables: Vec<Vec<&str>> = page.tables.iter().map(|table| table.lines().collect()).collect();
    let mut heights = vec![1];
    heights.extend(heights_of(usize::from(area.height), text.len(), tables.iter().map(Vec::len)));
    let areas = Layout::vertical(heights.iter().map(|lines| Constraint::Length(u16::capped(*lines))));
    let areas = areas.split(area);
    let [first, tables_at @ .., text_at, _, last] = &areas[..] else { return };
    put(*first, buffer, vec![bar(ends(&page.title, &page.progress, columns))]);
    for (table, at) in tables.iter().zip(tables_at) {
        let Some((title, rows)) = table.split_first() else { continue };
        put(*at, buffer, list((*title).to_string(), rows, usize::from(at.height), |row| (*row).to_string()));
    }
    put(*text_at, buffer, beginning(&text, usize::from(text_at.height), columns));
    put(*last, buffer, vec![bar(left_aligned(page.keys, columns))]);
}

/// The lines of each table, of the text, of what stays empty, and of the keys.
fn heights_of(height: usize, text: usize, tables: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut left = height.saturating_sub(2);
    let mut take = |wanted: usize| {
        let taken = wanted.min(left);
        left -= taken;
        taken
    };
    let mut of_text = take(text.min(height / TEXT_PART));
    let tables: Vec<usize> = tables.collect();
    let mut heights: Vec<usize> = tables.iter().map(|all| take((*all).min(TABLE_MIN))).collect();
    for (lines, all) in heights.iter_mut().zip(&tables) {
        *lines += take(*all - *lines);
    }
    of_text += take(text - of_text);
    // An empty line between them, if there is room for all.
    let gaps = take(tables.len());
    if gaps == tables.len() {
        heights.iter_mut().for_each(|lines| *lines += 1);
    } else {
        of_text += gaps;
    }
    heights.extend([of_text, take(usize::MAX), 1]);
    heights
}

/// The first lines of a text, the last of them with an ellipsis if more follow.
fn beginning(text: &[&str], lines: usize, columns: usize) -> Vec<Line<'static>> {
    let shown = text.iter().take(lines).enumerate().map(|(index, line)| match index {
        0 => heading((*line).to_string()),
        _ if index + 1 == lines && lines < text.len() => {
            Line::raw(format!("{}…", cut(line, columns.saturating_sub(1))))
        }
        _ => Line::raw((*line).to_string()),
    });
    shown.collect()
}
