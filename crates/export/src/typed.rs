//! A table whose columns have types.
//!
//! Invariant: each cell is of the kind of its column, or nothing.

use fiord_report::table::{Cell, Column, Table};

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Words that few rows differ in, by which rows are selected: a label in time series.
    Label,
    /// Words.
    Text,
    /// Several words.
    Texts,
    /// A whole number.
    Count,
    /// A number.
    Number,
    /// Milliseconds since 1970: when it happened.
    Time,
}

impl Kind {
    /// Whether a column of this kind may have this cell.
    pub fn has(self, cell: &Cell) -> bool {
        match (self, cell) {
            (_, Cell::None) => true,
            (Kind::Label | Kind::Text, Cell::Text(_)) | (Kind::Texts, Cell::List(_)) => true,
            (Kind::Count | Kind::Time, cell) => count(cell).is_some(),
            (Kind::Number, cell) => cell.figure().is_some(),
            _ => false,
        }
    }
}

/// The whole number of a cell.
pub(crate) fn count(cell: &Cell) -> Option<i64> {
    match cell {
        Cell::Count(count) | Cell::Bytes(count) | Cell::Latency(count) => {
            Some(i64::try_from(*count).unwrap_or(i64::MAX))
        }
        _ => None,
    }
}

/// A table, and the kind of each of its columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TypedTable {
    /// The table.
    pub table: Table,
    /// The kinds of its columns.
    pub kinds: Vec<Kind>,
}

impl TypedTable {
    /// A table without rows.
    pub fn new(columns: impl IntoIterator<Item = (Column, Kind)>) -> TypedTable {
        let (columns, kinds): (Vec<Column>, Vec<Kind>) = columns.into_iter().unzip();
        TypedTable { table: Table::new(columns), kinds }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// The key of a column whose kind its cell does not have.
    pub fn push(&mut self, row: Vec<Cell>) -> Result<(), String> {
        let mut columns = self.table.columns.iter().zip(&self.kinds).zip(&row);
        if let Some(((column, kind), cell)) = columns.find(|((_, kind), cell)| !kind.has(cell)) {
            return Err(format!("{}: {cell:?} is no {kind:?}", column.key));
        }
        if row.len() != self.kinds.len() {
            return Err(format!("{} cells for {} columns", row.len(), self.kinds.len()));
        }
        self.table.rows.push(row);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_kinds_of_the_columns() {
        let columns = [(Column::new("name", "NAME"), Kind::Label), (Column::new("ios", "IOS"), Kind::Count)];
        let mut table = TypedTable::new(columns);
        assert_eq!(table.push(vec![Cell::Text("a".to_string()), Cell::Latency(3)]), Ok(()));
        assert_eq!(table.push(vec![Cell::None, Cell::None]), Ok(()));
        let wrong = table.push(vec![Cell::None, Cell::Number(0.5, 1)]).unwrap_err();
        assert_eq!(wrong, "ios: Number(0.5, 1) is no Count");
        assert_eq!(table.push(vec![Cell::None]).unwrap_err(), "1 cells for 2 columns");
        assert_eq!(table.table.rows.len(), 2);
    }
}
