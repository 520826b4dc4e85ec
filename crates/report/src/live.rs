//! The line that is redrawn while a run lasts.
//!
//! Invariant: a line contains no line feed and no carriage return; the caller decides how it is redrawn.

use std::fmt::Write;

use crate::number::Units;

/// The state of a run in progress.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveLine {
    /// Jobs doing I/O.
    pub running: u32,
    /// Files they have open.
    pub open_files: u32,
    /// Sum of the running jobs' `rate_min` and `rate`, in bytes per second; `None` if none is limited.
    pub rate_range: Option<(u64, u64)>,
    /// Sum of the running jobs' `rate_iops_min` and `rate_iops`; `None` when none is limited.
    pub iops_range: Option<(u64, u64)>,
    /// Progress since the last line; `None` before there is any.
    pub progress: Option<LiveProgress>,
    /// How figures are shortened.
    pub units: Units,
}

/// Progress and speed of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveProgress {
    /// One letter for each job, in order: `P` set up, `/` ramping, `R` `r` `W` `w` `M` `m` `D` `d` running, `F` syncing,
    /// `f` finishing, `E` ended, `_` gone, `X` failed, `K` killed…
    pub states: Vec<char>,
    /// Share done, 0 to 100; `None` if unknown.
    pub done_percent: Option<f64>,
    /// Bytes per second read, written and trimmed.
    pub rates: [u64; 3],
    /// Reads, writes and trims per second.
    pub iops: [u64; 3],
    /// Seconds to go.
    pub left_s: u64,
}

/// `Jobs: 2 (f=2): [R(1),W(1)][45.0%][r=10.0MiB/s,w=9.9MiB/s][r=2560,w=2534 IOPS][eta 00m:05s]`.
pub fn line(live: &LiveLine) -> String {
    let units = &live.units;
    let mut line = format!("Jobs: {} (f={})", live.running, live.open_files);
    if let Some((min, max)) = live.rate_range {
        let _ = write!(line, ", {}-{}", units.rate(min), units.rate(max));
    }
    if let Some((min, max)) = live.iops_range {
        let _ = write!(line, ", {}-{} IOPS", units.count(min), units.count(max));
    }
    if let Some(progress) = &live.progress {
        let _ = write!(line, ": [{}]", condensed(&progress.states));
        line += &done(progress, units);
    }
    line
}

/// The end of that line: `[45.0%][r=10.0MiB/s,w=9.9MiB/s][r=2560,w=2534 IOPS][eta 00m:05s]`.
pub fn done(progress: &LiveProgress, units: &Units) -> String {
    let mut line = match progress.done_percent {
        Some(percent) => format!("[{percent:.1}%]"),
        None => "[-.-%]".to_string(),
    };
    if progress.rates.iter().any(|rate| *rate > 0) {
        let _ = write!(line, "[{}]", directions(progress, |i| units.rate(progress.rates[i])));
        let _ = write!(line, "[{} IOPS]", directions(progress, |i| units.count(progress.iops[i])));
    }
    let _ = write!(line, "[eta {}]", left(progress.left_s));
    line
}

/// `R(1),W(10)`: equal letters in a row are counted.
fn condensed(states: &[char]) -> String {
    let runs: Vec<String> =
        states.chunk_by(|a, b| a == b).map(|run| format!("{}({})", run[0], run.len())).collect();
    runs.join(",")
}

/// `r=…,w=…`: those directions that moved data.
fn directions(progress: &LiveProgress, text: impl Fn(usize) -> String) -> String {
    let moving = ["r", "w", "t"].iter().enumerate().filter(|(i, _)| progress.rates[*i] > 0);
    moving.map(|(i, name)| format!("{name}={}", text(i))).collect::<Vec<_>>().join(",")
}

/// `00m:05s`, with hours and days when there are any.
fn left(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    let mut text = String::new();
    if days > 0 {
        let _ = write!(text, "{days:02}d:");
    }
    if days > 0 || hours > 0 {
        let _ = write!(text, "{hours:02}h:");
    }
    let _ = write!(text, "{minutes:02}m:{:02}s", seconds % 60);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_in_fios_order() {
        let live = LiveLine {
            running: 5,
            open_files: 5,
            rate_range: Some((0, 2_107_392)),
            iops_range: Some((10, 20)),
            progress: Some(LiveProgress {
                states: "__dmmmm".chars().collect(),
                done_percent: Some(100.0 / 3.0),
                rates: [405_504, 1_003_520, 724_992],
                iops: [42, 245, 177],
                left_s: 8,
            }),
            units: Units::default(),
        };
        assert_eq!(
            line(&live),
            "Jobs: 5 (f=5), 0B/s-2058KiB/s, 10-20 IOPS: [_(2),d(1),m(4)][33.3%][r=396KiB/s,w=980KiB/s,t=708KiB/s]\
             [r=42,w=245,t=177 IOPS][eta 00m:08s]"
        );
    }

    #[test]
    fn a_line_without_progress() {
        assert_eq!(line(&LiveLine { running: 1, open_files: 1, ..LiveLine::default() }), "Jobs: 1 (f=1)");
        let progress = Some(LiveProgress { states: vec!['P'], ..LiveProgress::default() });
        assert_eq!(
            line(&LiveLine { progress, ..LiveLine::default() }),
            "Jobs: 0 (f=0): [P(1)][-.-%][eta 00m:00s]"
        );
    }

    #[test]
    fn hours_and_days_precede_minutes() {
        assert_eq!(left(65), "01m:05s");
        assert_eq!(left(3_723), "01h:02m:03s");
        assert_eq!(left(4_294_967_294), "49710d:06h:28m:14s");
    }
}
