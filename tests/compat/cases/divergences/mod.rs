//! Rows of docs/divergences.md: what each program does with the same input, where they differ or the manual says otherwise.
//!
//! Invariant: a row's text and its case say the same.

mod operations;
mod parsing;
mod planning;
mod recording;
mod reporting;
mod row;
mod verification;

use fiord_compat::Case;
use row::Row;

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let tables = [
        parsing::ROWS,
        planning::ROWS,
        operations::ROWS,
        reporting::ROWS,
        verification::ROWS,
        recording::ROWS,
    ];
    tables.into_iter().flatten().map(Row::case).collect()
}
