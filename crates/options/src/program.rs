//! Options of the command line that are about the program, not about a job.
//!
//! Invariant: nothing here changes what a job does to a disk, `--readonly` excepted.

use crate::spec::Scope;
use crate::table::options;
use crate::value::{Switch, Text};

options! {
    /// The program's options, resolved.
    pub struct ProgramOptions, scope Scope::Program;

    "Output" {
        /// Write the report to this file.
        output: Text;
        /// Print version information and exit.
        version: Switch = 0;
    }
}
