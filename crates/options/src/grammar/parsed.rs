//! What a command line and its job files say.
//!
//! Invariant: settings are as typed, in order, each with its place.

use super::jobfile::Block;
use crate::place::Place;
use crate::problem::Problem;
use crate::section::{Section, Setting};

/// Everything on the command line and in its job files.
#[derive(Debug, Clone, Default)]
pub struct Parsed {
    /// Options of the program, as typed, in order.
    pub program: Vec<Setting>,
    /// The jobs: those of the command line, then those of the job files.
    pub sections: Vec<Section>,
    /// Indices into `sections` of the first section of the second and each later job file: fio lets these wait for
    /// all jobs before them, as if they began with `stonewall`.
    pub waiting: Vec<usize>,
    /// The global options JSON echoes: those in force at the end. `name=global` is among them if typed.
    pub globals: Vec<Setting>,
    /// The job files as they were read, for `--showcmd`.
    pub files: Vec<JobFile>,
    /// The profile whose jobs `sections` has, if one was asked for.
    pub profile: Option<Setting>,
    /// Warnings, in order of place.
    pub warnings: Vec<Problem>,
}

/// One job file, for `--showcmd`.
#[derive(Debug, Clone)]
pub struct JobFile {
    /// Where it is named.
    pub place: Place,
    /// The globals that the command line gave before it.
    pub inherited: Vec<Setting>,
    /// Its sections in order, `[global]` ones among them.
    pub blocks: Vec<Block>,
}

impl JobFile {
    /// The global options in force at its end.
    pub(super) fn globals(&self) -> Vec<Setting> {
        let own = self.blocks.iter().filter(|block| block.name.is_none()).flat_map(|block| &block.settings);
        self.inherited.iter().chain(own).cloned().collect()
    }
}
