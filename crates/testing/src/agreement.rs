//! Comparing a figure of fiord with that of an application on the same file system.
//!
//! Invariant: both report their own figures, measured one after the other.

use std::fs;

/// How far apart the two may be.
pub const FACTOR: f64 = 2.0;
/// How often both are measured until they agree: a temporary disturbance affects only one of the two.
const COMPARISONS: usize = 3;
/// Above this share of stalled time, in percent, a machine is too busy to compare on.
const PRESSURE_MAX: f64 = 20.0;

/// The same figure of both, in one unit.
#[derive(Debug)]
pub struct Figures {
    /// The application's.
    pub theirs: f64,
    /// That of fiord.
    pub fiord: f64,
    /// The least that the application's can be told from 0.
    pub theirs_least: f64,
    /// What is shown of them.
    pub text: String,
}

impl Figures {
    /// How many times one is the other; 1 if both are below what the application can tell.
    fn ratio(&self) -> f64 {
        match self.theirs <= self.theirs_least && self.fiord <= self.theirs_least {
            true => 1.0,
            false => (self.theirs / self.fiord).max(self.fiord / self.theirs),
        }
    }
}

/// Asserts that both are within the factor in one of a few comparisons.
///
/// # Errors
/// Why this machine cannot tell.
///
/// # Panics
/// If they are further apart.
#[track_caller]
#[allow(clippy::panic, reason = "a test that fails")]
pub fn assert_agree(mut measure: impl FnMut() -> Figures) -> Result<(), String> {
    let idle = idle();
    let mut all: Vec<Figures> = Vec::new();
    while all.len() < COMPARISONS && all.iter().all(|figures| figures.ratio() > FACTOR) {
        all.push(measure());
    }
    let text: String = all.iter().map(|figures| figures.text.clone() + "; ").collect();
    if all.iter().all(|figures| figures.ratio() > FACTOR) {
        idle.and_then(|()| steady(&all)).map_err(|why| format!("{why} ({})", text.trim_end_matches("; ")))?;
        panic!("more than {FACTOR} times apart:\n{text}");
    }
    #[allow(clippy::print_stdout, reason = "shown with --nocapture")]
    {
        println!("{text}");
    }
    Ok(())
}

/// Checks that neither processors nor disks are under pressure, if the kernel reports it.
fn idle() -> Result<(), String> {
    for resource in ["cpu", "io"] {
        let Ok(text) = fs::read_to_string(format!("/proc/pressure/{resource}")) else { continue };
        let share = text.split_once("avg10=").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
        if let Some(share) = share.filter(|share: &f64| *share > PRESSURE_MAX) {
            return Err(format!(
                "the machine is busy: {resource} pressure {share} %, {PRESSURE_MAX} at most"
            ));
        }
    }
    Ok(())
}

/// Checks that fiord's figures of the same disk are stable.
fn steady(all: &[Figures]) -> Result<(), String> {
    let ours = || all.iter().map(|figures| figures.fiord);
    let spread = ours().fold(0.0, f64::max) / ours().fold(f64::INFINITY, f64::min);
    match spread <= FACTOR {
        true => Ok(()),
        false => Err(format!("the machine is busy: fiord's own figures differ {spread:.1} times")),
    }
}
