//! Lines of dots and marks on a grid of characters; a character holds two by four dots of braille.
//!
//! Invariant: nothing is drawn outside the grid.

use fiord_stats::Capped;

/// The empty braille character; each dot is one bit more.
const BLANK: u32 = 0x2800;

/// The bit of each dot of a character, by row and column.
const DOTS: [[u32; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

/// A grid of characters.
pub(super) struct Canvas {
    columns: usize,
    rows: usize,
    cells: Vec<BrailleCell>,
}

#[derive(Clone, Copy, Default)]
struct BrailleCell {
    dots: u32,
    mark: Option<char>,
    /// The line drawn here last.
    line: usize,
}

impl Canvas {
    pub(super) fn new(columns: usize, rows: usize) -> Canvas {
        Canvas { columns, rows, cells: vec![BrailleCell::default(); columns * rows] }
    }

    /// A straight line between two points, whose coordinates go from 0 to 1, to the right and upwards.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), line: usize) {
        let (from, to) = (self.dot(from), self.dot(to));
        let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1)).max(1);
        for step in 0..=steps {
            let along = |from: usize, to: usize| {
                let share = step as f64 / steps as f64;
                usize::capped((from as f64 + (to as f64 - from as f64) * share).round())
            };
            self.set(along(from.0, to.0), along(from.1, to.1), line);
        }
    }

    /// A mark at a point, over anything drawn there before.
    pub(super) fn mark(&mut self, at: (f64, f64), mark: char, line: usize) {
        let (x, y) = self.dot(at);
        if let Some(cell) = self.cells.get_mut(y / 4 * self.columns + x / 2) {
            *cell = BrailleCell { mark: Some(mark), line, ..*cell };
        }
    }

    /// Nearest dot, counted from the left and from the top. Marks fill a character.
    fn dot(&self, (x, y): (f64, f64)) -> (usize, usize) {
        let column = usize::capped((x * self.columns.saturating_sub(1) as f64).round());
        (2 * column, self.dot_row(y))
    }

    fn dot_row(&self, y: f64) -> usize {
        usize::capped(((1.0 - y) * (4 * self.rows).saturating_sub(1) as f64).round())
    }

    /// The row, from the top, in which this height is drawn.
    pub(super) fn row_of(&self, y: f64) -> usize {
        self.dot_row(y) / 4
    }

    fn set(&mut self, x: usize, y: usize, line: usize) {
        if let Some(cell) = self.cells.get_mut(y / 4 * self.columns + x / 2) {
            cell.dots |= DOTS[y % 4][x % 2];
            cell.line = line;
        }
    }

    /// A row as text, each line in its colour if colours are given.
    pub(super) fn row(&self, row: usize, colours: Option<&[u8]>) -> String {
        let cells = &self.cells[row * self.columns..(row + 1) * self.columns];
        let text = |cell: &BrailleCell| {
            let dots = match cell.dots {
                0 => ' ',
                dots => char::from_u32(BLANK | dots).unwrap_or(' '),
            };
            let shown = cell.mark.unwrap_or(dots);
            match colours {
                Some(colours) if shown != ' ' => {
                    painted(&shown.to_string(), colours[cell.line % colours.len()])
                }
                _ => shown.to_string(),
            }
        };
        cells.iter().map(text).collect()
    }
}

/// Text in a colour of ANSI terminals.
pub(super) fn painted(text: &str, colour: u8) -> String {
    format!("\x1b[{colour}m{text}\x1b[0m")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagonal_goes_from_corner_to_corner() {
        let mut canvas = Canvas::new(4, 2);
        canvas.line((0.0, 0.0), (1.0, 1.0), 0);
        canvas.mark((1.0, 1.0), '●', 0);
        assert_eq!(canvas.row(0, None).chars().next_back(), Some('●'));
        assert_ne!(canvas.row(1, None).chars().next(), Some(' '));
        assert_eq!(canvas.row(0, None).chars().next(), Some(' '));
    }
}
