//! A run, two side by side, or studies and runs one after the other, as one page of HTML: values in, a page out.
//!
//! Invariant: pure, and the page refers to nothing outside itself. Every text of the run is escaped by the template; every
//! figure is that of the report it was made from, and has its exact value in a `data` element.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod axis;
mod chart;
mod environment;
mod figures;
mod heat;
mod hosts;
mod html;
mod over_time;
mod panels;
mod percentiles;
mod run_view;
pub mod several;
pub mod study_page;
mod summary;

pub use over_time::{JobOverTime, LoggedJob, LoggedValue, OverTime, Window};
pub use run_view::RunView;

/// The page of these runs: of one, or of two that are compared.
///
/// # Errors
/// The template cannot be rendered, which is a fault of this program.
pub fn render(runs: &[RunView]) -> Result<String, String> {
    html::render(runs)
}
