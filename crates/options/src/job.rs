//! Job options: their declarations, and the resolving of a section into typed values.
//!
//! Invariant: `resolve` reports every problem of a section, not the first.

use crate::engine::IoUring;
use crate::place::Problem;
use crate::section::{Section, Setting};
use crate::spec::Scope;
use crate::table::{Applied, OptionSet, options};
use crate::value::{Flag, KbBase, Text};

options! {
    /// The options of one job, resolved: what the section says, what it inherits, and defaults for the rest.
    pub struct JobOptions, scope Scope::Job, with { io_uring: IoUring };

    "Job description" {
        /// Name of the job.
        name: Text;
        /// Free text about the job.
        description: Text;
    }

    "Engine" {
        /// The I/O engine.
        ioengine: Text = "psync";
        /// Run the job as a thread.
        thread: Flag = 0;
        /// Drop the page cache.
        #[pending("not yet")]
        invalidate: Flag = 1;
    }
}

/// What was given, before resolving: each setting with its spelling, text and place.
#[derive(Debug, Clone, Default)]
pub struct Given {
    settings: Vec<Setting>,
}

impl Given {
    /// The setting in force for the option of this canonical name: the last one given.
    pub fn get(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().rev().find(|setting| setting.spec.name == name)
    }

    /// Every setting, inherited ones first, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Setting> {
        self.settings.iter()
    }
}

/// Resolves a section: applies what it inherits, then its own settings, on top of the defaults.
pub fn resolve(section: &Section) -> (JobOptions, Given, Vec<Problem>) {
    let settings: Vec<Setting> = section.global.iter().chain(&section.own).cloned().collect();
    let mut job = JobOptions::default();
    let mut problems = Vec::new();
    for setting in &settings {
        match job.apply(setting, KbBase::default()) {
            Some(Ok(Applied::Set | Applied::Neutral | Applied::NotRead)) | None => {}
            Some(Err(why)) => {
                problems.push(Problem::error(setting.value_place.clone(), setting.spec.name, why, ""))
            }
        }
    }
    (job, Given { settings }, problems)
}
