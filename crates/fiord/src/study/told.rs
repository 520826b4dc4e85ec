//! What there is to say beside a study's figures: of options as they were typed, of plans, of what jobs met.
//!
//! Invariant: nothing is said twice and nothing is lost: on a terminal it is said at once, and it is in the report
//! wherever nobody could see that.

use fiord_options::Problem;
use fiord_report::Warning;

use crate::assemble;
use crate::output::remark;

/// All that was said.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub warnings: Vec<Warning>,
}

impl Told {
    /// Says what is odd about options, with the place in what was typed.
    pub(super) fn problems<'p>(&mut self, problems: impl IntoIterator<Item = &'p Problem>) {
        for problem in problems {
            let new = assemble::warning(problem);
            if self.is_new(&new) {
                remark(&format!("{problem}\n\n"));
                self.warnings.push(new);
            }
        }
    }

    /// Says what jobs met.
    pub(super) fn remarks(&mut self, remarks: &[Warning]) {
        for warning in remarks {
            if self.is_new(warning) {
                let Warning { code, place, message } = warning;
                remark(&format!("{place}: {code}: {message}\n"));
                self.warnings.push(warning.clone());
            }
        }
    }

    /// The place may be another: the same is said of each of a sweep's runs.
    fn is_new(&self, warning: &Warning) -> bool {
        let same = |said: &Warning| said.code == warning.code && said.message == warning.message;
        !self.warnings.iter().any(same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_run_gives_rise_to_is_said_once() {
        let warning = |place: &str, message: &str| Warning {
            code: "fsync".to_string(),
            place: place.to_string(),
            message: message.to_string(),
        };
        let mut told = Told::default();
        told.remarks(&[warning("job a", "late"), warning("job b", "late"), warning("job b", "later")]);
        assert_eq!(told.warnings, [warning("job a", "late"), warning("job b", "later")]);
    }
}
