//! Runs of the two programs of a pair, and the figures of each.
//!
//! Invariant: the two runs of a pair follow each other directly, in the same directory, with the same arguments. Which of
//! them comes first changes from pair to pair, so that what a run leaves behind favours neither program.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::one::{Cost, Run};
use super::peer::{self, Running};
use super::place::Places;
use super::rows::{Against, Location, Row, Work};

/// The programs compared.
pub struct Programs {
    pub fio: PathBuf,
    pub fiord: PathBuf,
    /// fio's peak tool, if it is installed.
    pub peak: Option<PathBuf>,
}

/// The extent of a measurement.
#[derive(Clone, Copy)]
pub struct Effort {
    /// Pairs of runs of each row.
    pub pairs: usize,
    /// Time of each run of a row that has no end of its own.
    pub seconds: u32,
}

/// The outcome of a row.
pub enum Outcome {
    /// The other's figures and fiord's, pair by pair; the other's are `None` if it refuses the work.
    Measured(Vec<[Option<Figures>; 2]>),
    Skipped(String),
    Failed(String),
}

/// The figures of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// As the program reports it.
    reported: Reported,
    cost: Cost,
    /// Share of one processor's time that the peer used during the run, if the row has one.
    peer_busy: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Reported {
    /// I/Os per second.
    iops: f64,
    /// Their number, which the peak tool does not report.
    ios: Option<u64>,
    /// The 99th percentile of completion latencies, of the slowest direction of any job, if it is reported.
    p99_ns: Option<f64>,
}

impl Figures {
    /// As stored in the raw results; the keys are those of `Metric`.
    pub fn to_json(self) -> Value {
        let mut document = self.cost.to_json();
        document["iops"] = self.reported.iops.into();
        document["ios"] = self.reported.ios.into();
        document["p99_ns"] = self.reported.p99_ns.into();
        if let Some(peer_busy) = self.peer_busy {
            document["peer_busy"] = peer_busy.into();
        }
        document
    }
}

/// Measures all pairs of a row, after one run of each program to warm caches.
pub fn row(row: &Row, programs: &Programs, places: &Places, effort: Effort) -> Outcome {
    let other = match row.against {
        Against::Fio => &programs.fio,
        Against::Peak(_) => match &programs.peak {
            Some(peak) => peak,
            None => return Outcome::Skipped("no PEAK=PATH to t/io_uring (not packaged)".to_string()),
        },
    };
    let device = match row.place {
        Location::Directory | Location::Memory | Location::FileSystem(_) => None,
        Location::Device => Some(places.device()),
        Location::Devices => Some(places.devices()),
    };
    let device = match device.transpose() {
        Ok(device) => device,
        Err(why) => return Outcome::Skipped(why.clone()),
    };
    let directory = match places.directory(row.place) {
        Ok(directory) => directory,
        Err(why) => return Outcome::Skipped(why.clone()),
    };
    let peer = match row.peer.map(|peer| peer.start(directory)).transpose() {
        Ok(peer) => peer,
        Err(why) => return Outcome::Skipped(why),
    };
    let peer = peer.as_ref();
    let side = |program, is_peak, seconds| Side {
        row,
        program,
        is_peak,
        device,
        peer,
        seconds,
        directory,
        output: &places.output,
    };
    let is_peak = row.against != Against::Fio;
    let warm_fiord = side(&programs.fiord, false, 1).run();
    let other_refuses = match side(other, is_peak, 1).run() {
        Err(why) if !row.stands_alone() => return Outcome::Failed(why),
        warm => warm.is_err(),
    };
    let run_other = || (!other_refuses).then(|| side(other, is_peak, effort.seconds).run()).transpose();
    let run_fiord = || side(&programs.fiord, false, effort.seconds).run().map(Some);
    let pairs: Result<_, String> =
        warm_fiord.and_then(|_| (0..effort.pairs).map(|number| pair(number, run_other, run_fiord)).collect());
    pairs.map_or_else(Outcome::Failed, Outcome::Measured)
}

/// The pair of this number, from 0: the other program's run, and fiord's, which is the first in every second pair.
fn pair<R>(
    number: usize,
    other: impl FnOnce() -> Result<R, String>,
    fiord: impl FnOnce() -> Result<R, String>,
) -> Result<[R; 2], String> {
    if number.is_multiple_of(2) {
        return Ok([other()?, fiord()?]);
    }
    let fiord = fiord()?;
    Ok([other()?, fiord])
}

/// One program with its arguments for a row.
struct Side<'a> {
    row: &'a Row,
    program: &'a Path,
    is_peak: bool,
    device: Option<&'a str>,
    peer: Option<&'a Running>,
    seconds: u32,
    directory: &'a Path,
    output: &'a Path,
}

impl Side<'_> {
    fn args(&self) -> Vec<String> {
        let Side { row, seconds, .. } = self;
        let line = match (&row.against, self.is_peak, row.work) {
            (Against::Peak(args), true, _) => format!("-r{seconds} {args}"),
            (_, _, Work::Timed) => {
                format!("--output-format=json --name=bench --time_based --runtime={seconds} {}", row.args)
            }
            (_, _, Work::Ios { .. }) => format!("--output-format=json --name=bench {}", row.args),
        };
        let (device, address) = (self.device.unwrap_or("DEVICE"), self.peer.map_or("", |peer| &peer.address));
        let filled = |word: &str| word.replace("DEVICE", device).replace(peer::PLACEHOLDER, address);
        line.split_whitespace().map(filled).collect()
    }

    fn run(&self) -> Result<Figures, String> {
        let args = self.args();
        let peer_cpu_s = || self.peer.and_then(Running::cpu_s);
        let before_s = peer_cpu_s();
        let variables = self.peer.map_or(&[][..], |peer| &peer.variables);
        let Side { program, directory, output, .. } = *self;
        let run = Run { program, args: &args, variables, directory, output };
        let (text, cost) = run.measure()?;
        let used_s = peer_cpu_s().zip(before_s).map(|(after_s, before_s)| after_s - before_s);
        let peer_busy = used_s.map(|used_s| used_s / cost.process_s);
        let failed = |why: &str| format!("{} {}: {why}", self.program.display(), args.join(" "));
        let reported = if self.is_peak { peak(&text) } else { totals(&text) };
        let reported = reported.ok_or_else(|| failed("its output contains no IOPS"))?;
        match self.row.work {
            Work::Ios { count, .. } if reported.ios != Some(count) => {
                Err(failed(&format!("{} I/Os were done instead of {count}", reported.ios.unwrap_or(0))))
            }
            _ => Ok(Figures { reported, cost, peer_busy }),
        }
    }
}

/// I/Os and their rate, summed over jobs and directions. fio prints warnings before the document.
fn totals(stdout: &str) -> Option<Reported> {
    let document: Value = serde_json::from_str(stdout.get(stdout.find('{')?..)?).ok()?;
    let jobs = document["jobs"].as_array()?;
    let mut sum = Reported { iops: 0.0, ios: Some(0), p99_ns: None };
    for side in jobs.iter().flat_map(|job| [&job["read"], &job["write"], &job["trim"]]) {
        sum.iops += side["iops"].as_f64()?;
        sum.ios = Some(sum.ios? + side["total_ios"].as_u64()?);
        if let Some(p99_ns) = side["clat_ns"]["percentile"]["99.000000"].as_f64() {
            sum.p99_ns = Some(sum.p99_ns.map_or(p99_ns, |highest| highest.max(p99_ns)));
        }
    }
    Some(sum)
}

/// The median of the rates that the peak tool prints each second: `IOPS=1.16M, BW=…`.
fn peak(stdout: &str) -> Option<Reported> {
    let rates: Vec<f64> = stdout
        .lines()
        .filter_map(|line| {
            let figure = line.trim().strip_prefix("IOPS=")?.split(',').next()?;
            let (digits, factor) = match figure.strip_suffix(['K', 'M']) {
                Some(digits) => (digits, if figure.ends_with('K') { 1e3 } else { 1e6 }),
                None => (figure, 1.0),
            };
            digits.parse::<f64>().ok().map(|digits| digits * factor)
        })
        .collect();
    (!rates.is_empty()).then(|| Reported { iops: median(rates), ios: None, p99_ns: None })
}

/// The middle one, or the mean of the two in the middle; 0 for no values.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        count if count % 2 == 1 => values[count / 2],
        count => f64::midpoint(values[count / 2 - 1], values[count / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_is_the_first_of_every_second_pair() {
        let turn = std::cell::Cell::new(0);
        let next = || Ok(turn.replace(turn.get() + 1));
        assert_eq!([0, 1, 2].map(|number| pair(number, next, next)), [Ok([0, 1]), Ok([3, 2]), Ok([4, 5])]);
        let failed = pair(1, next, || Err("it failed".to_string()));
        assert_eq!((failed, turn.get()), (Err("it failed".to_string()), 6), "the other is not run");
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(Vec::new()), 0.0);
    }

    #[test]
    fn totals_are_summed_over_jobs_and_directions() {
        let text = r#"fio: a warning
            {"jobs": [{"read": {"iops": 1.5, "total_ios": 3, "clat_ns": {"percentile": {"99.000000": 70}}}, "write": {"iops": 2, "total_ios": 4},
                       "trim": {"iops": 1, "total_ios": 2}},
                      {"read": {"iops": 4, "total_ios": 5}, "write": {"iops": 0, "total_ios": 0},
                       "trim": {"iops": 0, "total_ios": 0}}]}"#;
        assert_eq!(totals(text), Some(Reported { iops: 8.5, ios: Some(14), p99_ns: Some(70.0) }));
        assert_eq!(totals("{}"), None);
        assert_eq!(totals("nothing"), None);
    }

    #[test]
    fn the_peak_tools_rate_is_the_median_of_its_seconds() {
        let text = "submitter=0, tid=1\nIOPS=900K, BW=3.5GiB/s, IOS/call=16/16\nIOPS=1.20M, BW=4GiB/s\n\
                    IOPS=1.10M, BW=4GiB/s\nMaximum IOPS=1.20M\n";
        assert_eq!(peak(text), Some(Reported { iops: 1.1e6, ios: None, p99_ns: None }));
        assert_eq!(peak("no rate"), None);
    }
}
