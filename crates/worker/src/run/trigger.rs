//! The trigger of a run (`--trigger-file`, `--trigger-timeout`): when it fires, and its command.
//!
//! Invariant: it fires once. Its command runs after all workers have ended, so that each has saved its state, and nothing is
//! synced between that and the command.

use std::ffi::{OsStr, OsString};

use fiord_plan::Trigger;
use fiord_plan::shown::shown;
use fiord_sys::errno::error_text;

use crate::files::target_opener::TargetOpener;
use crate::job::command;

/// The trigger of one run.
#[derive(Debug)]
pub struct TriggerWatch {
    /// `None`: it has fired, or there is none.
    armed: Option<Trigger>,
    /// The command to be run, after it has fired.
    command: Option<OsString>,
    has_fired: bool,
}

impl TriggerWatch {
    /// Armed with this trigger, if there is one.
    pub fn new(trigger: Option<&Trigger>) -> TriggerWatch {
        TriggerWatch { armed: trigger.cloned(), command: None, has_fired: false }
    }

    /// Whether it fires now, `elapsed_ns` after the start of the run, or because that `is_requested`. As in fio, its file is
    /// then removed.
    pub fn fires(&mut self, elapsed_ns: u64, is_requested: bool, opener: &TargetOpener) -> bool {
        let is_due = |trigger: &Trigger| {
            let by_time = trigger.after_ns.is_some_and(|after_ns| elapsed_ns >= after_ns);
            let file = trigger.file.as_ref().filter(|file| file.exists());
            // A file that cannot be removed has fired the trigger all the same.
            file.inspect(|file| opener.remove_trigger_file(file));
            by_time || is_requested || file.is_some()
        };
        let Some(trigger) = self.armed.take_if(|trigger| is_due(trigger)) else { return false };
        (self.command, self.has_fired) = (trigger.command, true);
        true
    }

    /// Whether it has fired.
    pub fn has_fired(&self) -> bool {
        self.has_fired
    }

    /// Leaves the command undone; returns a warning that says why, if there is one.
    pub(super) fn leave_command(&mut self, why: &str) -> Option<String> {
        let command = self.command.take()?;
        Some(format!("the trigger {} was not run: {why}", shown(&command)))
    }

    /// Runs the command, once; its output goes to standard error. Returns a warning if it failed.
    pub fn run_command(&mut self, is_cancelled: &dyn Fn() -> bool) -> Option<String> {
        let command: &OsStr = &self.command.take()?;
        match command::wait_for(command, None, is_cancelled) {
            Ok(status) if status.success() => None,
            Ok(status) => Some(format!("the trigger {} ended with {status}", shown(command))),
            Err(error) => {
                Some(format!("the trigger {} could not be run: {}", shown(command), error_text(&error)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_fires_once_at_its_time() {
        let trigger = Trigger { file: None, after_ns: Some(100), command: Some("exit 3".into()) };
        let mut watch = TriggerWatch::new(Some(&trigger));
        let opener = TargetOpener::default();
        assert!(!watch.fires(99, false, &opener) && !watch.has_fired());
        assert!(watch.fires(100, false, &opener) && watch.has_fired() && !watch.fires(101, true, &opener));
        let warning = watch.run_command(&|| false);
        assert!(warning.is_some_and(|text| text.contains("exit 3") && text.contains("status: 3")));
        assert_eq!(watch.run_command(&|| false), None, "it is run once");
    }

    #[test]
    fn a_run_without_a_trigger_never_fires() {
        assert!(!TriggerWatch::new(None).fires(u64::MAX, true, &TargetOpener::default()));
    }
}
