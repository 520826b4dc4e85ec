//! The other screen of the terminal, as a buffer of which only what changed is written.
//!
//! Invariant: shown on standard error; one write per frame, so that a frame is never half drawn over a slow line.

use std::fmt::Write;
use std::io;
use std::sync::Once;

use fiord_report::columns::width;
use fiord_sys::tty;
use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier};

use crate::output;

/// The size of a terminal that does not report one.
const SIZE: (u16, u16) = (80, 24);

/// The screen and what is on it.
pub(crate) struct Screen {
    shown: Buffer,
}

impl Screen {
    pub(crate) fn open() -> Screen {
        restore_before_panics();
        tty::open_screen();
        Screen { shown: Buffer::empty(area()) }
    }

    /// Whether the terminal has another size than the frame on it.
    pub(crate) fn is_resized(&self) -> bool {
        self.shown.area != area()
    }

    /// Shows what this draws into the whole area.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(Rect, &mut Buffer)) {
        let mut text = String::new();
        if self.is_resized() {
            self.shown = Buffer::empty(area());
            text += "\u{1b}[0m\u{1b}[2J";
        }
        let mut next = Buffer::empty(self.shown.area);
        draw(next.area, &mut next);
        changes(&self.shown.diff(&next), &mut text);
        self.shown = next;
        if !text.is_empty() && tty::has_screen() {
            output::draw(&text);
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        tty::close_screen();
    }
}

/// The message of a panic belongs on the screen that stays.
fn restore_before_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            tty::restore();
            print(panic);
        }));
    });
}

fn area() -> Rect {
    let (columns, rows) = tty::size(io::stderr()).unwrap_or(SIZE);
    Rect::new(0, 0, columns, rows)
}

/// Appends what changes these cells on a terminal.
fn changes(cells: &[(u16, u16, &Cell)], text: &mut String) {
    let mut next = None;
    let mut look = None;
    for (column, row, cell) in cells {
        if next != Some((*column, *row)) {
            let _ = write!(text, "\u{1b}[{};{}H", row + 1, column + 1);
        }
        let wanted = (cell.modifier, cell.fg);
        if look != Some(wanted) {
            text.push_str(&style(cell));
            look = Some(wanted);
        }
        text.push_str(cell.symbol());
        // Where the cursor is after a wide character is not relied on.
        next = (width(cell.symbol()) == 1).then_some((column + 1, *row));
    }
    if look.is_some() {
        text.push_str("\u{1b}[0m");
    }
}

/// The sequence for the look of a cell. The view uses bold, reversed, and a few colours.
fn style(cell: &Cell) -> String {
    let mut style = "\u{1b}[0".to_string();
    if cell.modifier.contains(Modifier::BOLD) {
        style += ";1";
    }
    if cell.modifier.contains(Modifier::REVERSED) {
        style += ";7";
    }
    match cell.fg {
        Color::Red => style += ";31",
        Color::Yellow => style += ";33",
        Color::Indexed(number) => {
            let _ = write!(style, ";38;5;{number}");
        }
        _ => {}
    }
    style + "m"
}

#[cfg(test)]
mod tests {
    use ratatui_core::style::Style;

    use super::*;

    #[test]
    fn only_what_changed_is_written() {
        let area = Rect::new(0, 0, 10, 2);
        let (before, mut after) = (Buffer::empty(area), Buffer::empty(area));
        after.set_string(2, 1, "ab", Style::new());
        after.set_string(6, 1, "▓", Style::new().fg(Color::Indexed(36)));
        let mut text = String::new();
        changes(&before.diff(&after), &mut text);
        assert_eq!(text, "\u{1b}[2;3H\u{1b}[0mab\u{1b}[2;7H\u{1b}[0;38;5;36m▓\u{1b}[0m");
        let mut text = String::new();
        changes(&after.diff(&after.clone()), &mut text);
        assert_eq!(text, "");
    }
}
