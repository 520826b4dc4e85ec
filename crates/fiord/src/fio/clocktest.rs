//! `--cpuclock-test`: whether the clock that jobs use is consistent across processors.
//!
//! Invariant: checks the clock that a job with `clocksource=cpu` gets here, or the operating system's if the
//! processor's cannot be used.

use fiord_sys::errno::error_text;
use std::process::ExitCode;

use fiord_sys::clock::cross_core::{self, CrossCore};
use fiord_sys::clock::{CounterClock, OsClock};

use crate::output::{Output, say};

const READINGS_PER_CPU: u64 = 1_000_000;

/// Checks the clock and prints the result; fails if the clock was seen to go backwards.
pub(super) fn run(output: &mut Output) -> ExitCode {
    let found = match CounterClock::shared() {
        Ok(clock) => {
            let rate_khz = clock.frequency_khz();
            output.write(&format!("cs: reliable_tsc: yes\ncs: {rate_khz} cycles per millisecond\n"));
            if let Some(step_ns) = clock.coarse_step_ns() {
                output.write(&step(clock.name(), step_ns));
            }
            cross_core::check(clock, READINGS_PER_CPU)
        }
        Err(refusal) => {
            output.write(&format!("cs: reliable_tsc: no: {refusal}\ncs: clock_gettime is used instead\n"));
            cross_core::check(OsClock, READINGS_PER_CPU)
        }
    };
    match found {
        Ok(found) => {
            output.write(&verdict(&found));
            if found.backward_steps == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) }
        }
        Err(error) => {
            say(&format!("fiord: the clock could not be checked: {}\n", error_text(&error)));
            ExitCode::from(1)
        }
    }
}

/// A line about a counter whose steps are long enough to matter.
fn step(counter: &str, step_ns: f64) -> String {
    format!("cs: the {counter} counts in steps of {step_ns:.0} ns: no latency is known better\n")
}

fn verdict(found: &CrossCore) -> String {
    let CrossCore { cpus, readings, backward_steps, backward_ns_max } = found;
    let seen = format!("cs: {cpus} CPUs, {readings} readings\n");
    match backward_steps {
        0 => format!("{seen}cs: Pass!\n"),
        _ => format!(
            "{seen}cs: {backward_steps} readings went back, by up to {backward_ns_max} ns\ncs: Failed\n"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_that_of_the_counter_at_hand() {
        assert_eq!(
            step("generic timer", 41.67),
            "cs: the generic timer counts in steps of 42 ns: no latency is known better\n"
        );
    }

    #[test]
    fn the_last_line_is_the_verdict() {
        let well = CrossCore { cpus: 2, readings: 10, backward_steps: 0, backward_ns_max: 0 };
        assert_eq!(verdict(&well), "cs: 2 CPUs, 10 readings\ncs: Pass!\n");
        let ill = CrossCore { backward_steps: 3, backward_ns_max: 40, ..well };
        assert!(verdict(&ill).ends_with("cs: 3 readings went back, by up to 40 ns\ncs: Failed\n"));
    }
}
