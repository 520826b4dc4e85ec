//! Studies made of runs: which jobs to run, and what their reports say when put side by side.
//!
//! Invariant: pure. A study is given a site and answers settings and paths, never text that is read again; it is given
//! reports and answers a table and a sentence. Who runs the jobs is not known here, so every study can be tested on
//! made-up reports.

pub mod bars;
pub mod chart;
pub mod check;
pub mod figures;
pub mod knee;
pub mod matrix;
pub mod quick;
pub mod ranges;
pub mod site;
pub mod study;
pub mod svg;
pub mod sweep;

#[cfg(test)]
mod testing;

pub use bars::Bars;
pub use check::Verdict;
pub use figures::Figures;
pub use site::Site;
pub use study::{Findings, Ran, Step, Study};
