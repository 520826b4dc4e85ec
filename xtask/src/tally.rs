//! The results of tests, as `cargo x ci` counts them.
//!
//! Invariant: a test that was skipped is not counted as passed.

use std::ops::AddAssign;

use fiord_testing::Skip;

/// The lines of a panic that tell what is wrong: its place, and the two sides of a comparison.
const MESSAGE_LINES_MAX: usize = 4;

/// How many checks passed, failed and were skipped.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        let Counts { passed, failed, skipped } = other;
        self.passed += passed;
        self.failed += failed;
        self.skipped += skipped;
    }
}

/// The results of a stage's tests.
#[derive(Debug, Default)]
pub struct Tally {
    pub counts: Counts,
    /// `NAME: REASON` for each that was skipped.
    pub reasons: Vec<String>,
    /// The names of those that failed.
    pub failed: Vec<String>,
    /// What the test programs reported of them, line by line.
    pub failures: Vec<String>,
    /// The names of those that failed beside others and passed alone.
    pub unsteady: Vec<String>,
}

impl Tally {
    /// One test that was skipped.
    pub fn skipped(why: String) -> Tally {
        let counts = Counts { skipped: 1, ..Counts::default() };
        Tally { counts, reasons: vec![why], ..Tally::default() }
    }

    /// The tests of both.
    pub fn with(mut self, other: Tally) -> Tally {
        let Tally { counts, reasons, failed, failures, unsteady } = other;
        self.counts += counts;
        self.reasons.extend(reasons);
        self.failed.extend(failed);
        self.failures.extend(failures);
        self.unsteady.extend(unsteady);
        self
    }

    /// Counts one of the tests that failed as it ended when it ran alone.
    pub fn failed_only_beside_others(&mut self, name: &str, alone: Tally) {
        self.failed.retain(|failed| failed != name);
        self.unsteady.push(name.to_string());
        self.reasons.extend(alone.reasons);
        match alone.counts.passed {
            0 => self.counts.skipped += 1,
            _ => self.counts.passed += 1,
        }
        self.counts.failed -= 1;
    }

    /// What a test program reported of a test that failed: where it panicked, and the first words of its message.
    pub fn message_of(&self, name: &str) -> String {
        let begin = format!("---- {name} ");
        let lines = self.failures.iter().skip_while(|line| !line.starts_with(&begin)).skip(1);
        let own = lines.take_while(|line| !line.starts_with("---- ") && *line != "failures:");
        let own: Vec<&str> = own.map(String::as_str).collect();
        let panic = own.iter().position(|line| line.contains("panicked at")).unwrap_or(0);
        own[panic..].iter().take(MESSAGE_LINES_MAX).copied().collect::<Vec<_>>().join(" ")
    }

    /// Counts from summaries and skips: libtest counts a test that skipped itself as passed, libtest-mimic as ignored.
    pub fn of(summaries: Counts, skips: &[Skip]) -> Tally {
        let Counts { passed, failed, skipped: ignored } = summaries;
        let skipped = ignored.max(skips.len() as u64);
        let passed = (passed + ignored).saturating_sub(skipped);
        let reasons = skips.iter().map(|Skip { program, test, why }| {
            // Cargo adds a hash to the name of a test program.
            let program = program.rsplit_once('-').map_or(program.as_str(), |(name, _)| name);
            format!("{program}: {test}: {why}")
        });
        let counts = Counts { passed, failed, skipped };
        Tally { counts, reasons: reasons.collect(), ..Tally::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_recorded_a_skip_is_not_counted_as_passed() {
        let skip = |test: &str| Skip {
            program: "it-0123abcd".to_string(),
            test: test.to_string(),
            why: "no loop device".to_string(),
        };
        let counts = |passed, skipped| Counts { passed, failed: 1, skipped };
        let libtest = Tally::of(counts(5, 0), &[skip("a"), skip("b")]);
        assert_eq!(libtest.counts, counts(3, 2));
        assert_eq!(libtest.reasons, ["it: a: no loop device", "it: b: no loop device"]);
        let mimic = Tally::of(counts(3, 2), &[skip("a"), skip("b")]);
        assert_eq!(mimic.counts, counts(3, 2));
        assert_eq!(Tally::of(counts(3, 2), &[]).counts, counts(3, 2), "ignored without a record");
    }
}
