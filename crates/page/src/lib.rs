//! A run, or two side by side, as one page of HTML: values in, a page out.
//!
//! Invariant: pure, and the page refers to nothing outside itself. Every text of the run is escaped by the template; every
//! figure is that of the report it was made from, and has its exact value in a `data` element.

mod axis;
mod chart;
mod environment;
mod figures;
mod heat;
mod html;
mod over_time;
mod panels;
mod percentiles;
mod summary;

use fiord_device::DeviceUse;
use fiord_explain::NotedFinding;
use fiord_import::Report;

pub use over_time::{LoggedValue, OverTime, Window};

/// What a page shows of one run.
#[derive(Clone, Debug, Default)]
pub struct RunView {
    /// What it is called: `run 12`, or a file's name.
    pub name: String,
    /// The report, as its JSON says.
    pub report: Report,
    /// Its findings, the worst first.
    pub findings: Vec<NotedFinding>,
    /// What it did over time, if that is known.
    pub over_time: Option<OverTime>,
    /// The devices below its files; empty if they are not known.
    pub devices: Vec<DeviceUse>,
    /// Facts about where and when it ran: (name, text).
    pub facts: Vec<(String, String)>,
    /// The command that ran it, if it is known.
    pub command: Option<String>,
}

/// The page of these runs: of one, or of two that are compared.
///
/// # Errors
/// The template cannot be rendered, which is a fault of this program.
pub fn render(runs: &[RunView]) -> Result<String, String> {
    html::render(runs)
}
