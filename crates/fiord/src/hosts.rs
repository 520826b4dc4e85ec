//! What runs and studies on hosts have alike: what is shown meanwhile, what hosts could not do, and the exit status.
//!
//! Invariant: the status is 0 only if every host did all it was asked for, but for those that `--allow-missing` lets be.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fiord_fleet::{Fate, Host, alike};
use fiord_live::JobRow;
use fiord_remote::{Finished, Onlooker};
use fiord_report::columns;
use fiord_report::live::{self, LiveProgress};
use fiord_report::number::Units;
use fiord_stats::{Capped, OrderBy};
use fiord_sys::{clock, tty};
use fiord_wire::controller::Remote;
use fiord_wire::{Controller, Rates, Told};

use crate::output::say;
use crate::status;
use crate::status_line::StatusLine;

/// Interval between two drawings of the line.
const LINE_EVERY: Duration = Duration::from_millis(250);

/// The exit status of what was run with these fates. `has_figures`: whether any host measured something.
pub(crate) fn status_of<'a>(
    finished: &Finished,
    fates: impl Iterator<Item = &'a Fate> + Clone,
    allow_missing: u32,
    has_figures: bool,
) -> u8 {
    let absent = |fate: &&Fate| matches!(fate, Fate::Missing { .. } | Fate::Lost { .. });
    let has_failed = fates.clone().any(|fate| matches!(fate, Fate::Failed { .. }));
    let is_unsafe =
        finished.controller.remotes().iter().flat_map(Remote::problems).any(|told| told.is_unsafe);
    let is_too_few = fates.filter(absent).count() > allow_missing as usize;
    match finished.signal {
        Some(number) => status::of_signal(number),
        None if is_unsafe => status::REFUSED,
        None if has_failed || is_too_few || !has_figures => status::FAILED,
        None => status::SUCCESS,
    }
}

/// What a host sent of what it measured, if it did, and what became of the host: it is lost if that cannot be read.
pub(crate) fn received<T, E: std::fmt::Display>(
    remote: &Remote,
    decode: impl Fn(&[u8]) -> Result<T, E>,
) -> (Fate, Option<T>) {
    let fate = || remote.fate().cloned().unwrap_or_default();
    let bytes = remote.report();
    match decode(bytes) {
        _ if bytes.is_empty() => (fate(), None),
        Ok(sent) => (fate(), Some(sent)),
        Err(why) => (Fate::Lost { at_ms: 0, cause: format!("its report cannot be read: {why}") }, None),
    }
}

/// What is wrong with the jobs, each with how many hosts say so.
pub(crate) fn grouped_problems(remotes: &[Remote]) -> Vec<String> {
    let mut by_text: BTreeMap<&Told, usize> = BTreeMap::new();
    remotes.iter().flat_map(Remote::problems).for_each(|told| *by_text.entry(told).or_default() += 1);
    let line = |(told, count): (&Told, usize)| format!("fiord: {}: {}\n", counted(count), told.text);
    by_text.into_iter().map(line).collect()
}

pub(crate) fn counted(count: usize) -> String {
    if count == 1 { "1 host".to_string() } else { format!("{count} hosts") }
}

/// What became of each host that did not do what it was asked for.
pub(crate) fn lines_of_fates<'a>(hosts: impl Iterator<Item = (&'a Host, &'a Fate)>) -> Vec<String> {
    let line = |(name, fate): (String, &Fate)| {
        let when = match fate {
            Fate::Lost { at_ms, .. } => format!(" at {:.1} s", *at_ms as f64 / 1000.0),
            _ => String::new(),
        };
        let cause = fate.cause().unwrap_or_default().trim_end().trim_start_matches("fiord: ");
        format!("fiord: {name}: {}{when}: {cause}\n", fate.word())
    };
    alike(hosts.filter(|(_, fate)| fate.cause().is_some()).collect()).into_iter().map(line).collect()
}

/// How a run on hosts stands: what they do together, and each of them.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    /// What all do per second.
    pub rates: Rates,
    /// Seconds since the first of those that run started.
    pub elapsed_s: f64,
    /// Seconds until the last of them is done; `None` if that is not known.
    pub left_s: Option<f64>,
    /// Each host by its number, those that are silent or have failed first, then the slowest.
    pub rows: Vec<(usize, JobRow)>,
    /// How many of them are silent or have failed.
    pub troubled: usize,
}

impl Standing {
    /// At this time of the controller's clock.
    pub(crate) fn of(controller: &Controller, hosts: &[Host], now_ns: i64) -> Standing {
        let mut standing = Standing::default();
        let mut ranked = Vec::new();
        let (mut elapsed_ns, mut left_ns) = (0, Some(0));
        for (number, (remote, host)) in controller.remotes().iter().zip(hosts).enumerate() {
            let rates = remote.rates(now_ns);
            for direction in 0..3 {
                standing.rates.iops[direction] += rates.iops[direction];
                standing.rates.bytes_per_s[direction] += rates.bytes_per_s[direction];
            }
            if remote.is_running() {
                elapsed_ns = elapsed_ns.max(remote.started_ns().map_or(0, |started_ns| now_ns - started_ns));
                left_ns = left_ns.zip(remote.left_ns(now_ns)).map(|(most, left): (i64, i64)| most.max(left));
            }
            let (rank, state) = state(remote, now_ns);
            let row = JobRow {
                name: host.name.clone(),
                state,
                iops: rates.iops.iter().sum(),
                bytes_per_s: rates.bytes_per_s.iter().sum(),
                done: remote.progress().done_permille.map(|done| f64::from(done) / 1000.0),
                ..JobRow::default()
            };
            ranked.push((rank, number, row));
        }
        ranked.order_by(|(one, _, slow), (other, _, fast)| {
            one.cmp(other).then(slow.iops.total_cmp(&fast.iops))
        });
        standing.troubled = ranked.iter().filter(|(rank, ..)| *rank == 0).count();
        standing.elapsed_s = elapsed_ns as f64 / 1e9;
        standing.left_s = left_ns.map(|left_ns| left_ns as f64 / 1e9);
        standing.rows = ranked.into_iter().map(|(_, number, row)| (number, row)).collect();
        standing
    }

    /// Its figures as those of a run on one machine.
    fn live(&self) -> LiveProgress {
        let whole = |rates: [f64; 3]| rates.map(u64::capped);
        let done = |left_s: f64| self.elapsed_s * 100.0 / (self.elapsed_s + left_s).max(1e-9);
        LiveProgress {
            states: Vec::new(),
            done_percent: self.left_s.map(done),
            rates: whole(self.rates.bytes_per_s),
            iops: whole(self.rates.iops),
            left_s: self.left_s.map_or(0, |left_s| u64::capped(left_s.ceil())),
        }
    }
}

/// How urgently a host has to be looked at, and what it does in a word.
fn state(remote: &Remote, now_ns: i64) -> (u8, Cow<'static, str>) {
    match remote.fate() {
        Some(fate @ (Fate::Complete | Fate::Stopped)) => (3, fate.word().into()),
        Some(fate) => (0, fate.word().into()),
        None if remote.hello().is_some() && remote.is_silent(now_ns) => {
            (0, format!("silent {}s", remote.silent_ns(now_ns) / 1_000_000_000).into())
        }
        None if remote.doing() == "running" => (1, "running".into()),
        None => (2, remote.doing().into()),
    }
}

/// The line on a terminal, and what hosts say.
pub(crate) struct Progress<'h> {
    hosts: &'h [Host],
    line: StatusLine,
    /// Whether the line is wanted, and there is a terminal for it.
    has_line: bool,
    drawn: Option<Instant>,
}

impl<'h> Progress<'h> {
    /// Of these hosts. `has_line`: with a line, on a terminal.
    pub(crate) fn of(hosts: &'h [Host], has_line: bool) -> Progress<'h> {
        let has_line = has_line && tty::stderr_is_terminal();
        Progress { hosts, line: StatusLine::default(), has_line, drawn: None }
    }

    /// Removes the line.
    pub(crate) fn clear(&mut self) {
        self.line.clear();
        self.drawn = None;
    }

    /// What a host says, as it is printed.
    pub(crate) fn line_of(&self, number: usize, text: &str) -> String {
        let name = self.hosts.get(number).map_or("?", |host| host.name.as_str());
        format!("<{name}> {text}\n")
    }
}

impl Onlooker for Progress<'_> {
    fn look(&mut self, controller: &Controller) {
        if self.has_line && self.drawn.is_none_or(|drawn| drawn.elapsed() >= LINE_EVERY) {
            self.drawn = Some(Instant::now());
            self.line.draw(&progress(controller, self.hosts));
        }
    }

    fn said(&mut self, number: usize, line: &str) {
        self.clear();
        say(&self.line_of(number, line));
    }
}

/// `3 hosts: 3 running, c silent 6s [45.0%][r=10.0MiB/s][r=2560 IOPS][eta 00m:05s] slowest b 560 IOPS`.
fn progress(controller: &Controller, hosts: &[Host]) -> String {
    let remotes = controller.remotes();
    let mut doing: BTreeMap<&'static str, usize> = BTreeMap::new();
    remotes.iter().for_each(|remote| *doing.entry(remote.doing()).or_default() += 1);
    let mut parts: Vec<String> = doing.iter().map(|(word, count)| format!("{count} {word}")).collect();
    let laid_bytes: u64 = remotes.iter().map(Remote::laid_bytes).sum();
    let is_running = doing.contains_key("running");
    if laid_bytes > 0 && !is_running {
        parts.push(format!("{} MiB laid out", laid_bytes >> 20));
    }
    let standing = Standing::of(controller, hosts, i64::capped(clock::monotonic_ns()));
    let (troubled, slowest) = named(&standing);
    // First what has to be seen: the line may be cut.
    parts.extend(troubled);
    let mut text = format!("{}: {}", counted(hosts.len()), parts.join(", "));
    if is_running {
        text +=
            &format!(" {} {}", live::done(&standing.live(), &Units::default()), slowest.unwrap_or_default());
    }
    columns::cut(text.trim_end(), 200).to_string()
}

/// The hosts that are silent or have failed, a few of them, and the slowest of several that run.
fn named(standing: &Standing) -> (Vec<String>, Option<String>) {
    const NAMED_MAX: usize = 2;
    let (rows, troubled) = (&standing.rows, standing.troubled);
    let named = rows[..troubled.min(NAMED_MAX)].iter().map(|(_, row)| format!("{} {}", row.name, row.state));
    let more = (troubled > NAMED_MAX).then(|| format!("{} more", troubled - NAMED_MAX));
    let mut running = rows[troubled..].iter().map(|(_, row)| row).filter(|row| row.state == "running");
    let slowest = running.next().filter(|_| running.next().is_some());
    let slowest = slowest.map(|row| format!("slowest {} {:.0} IOPS", row.name, row.iops));
    (named.chain(more).collect(), slowest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_in_trouble_are_named_and_the_slowest_of_several() {
        let row = |name: &str, state: &'static str, iops: f64| {
            (0, JobRow { name: name.to_string(), state: state.into(), iops, ..JobRow::default() })
        };
        let of = |rows: &[(usize, JobRow)], troubled| {
            let (named, slowest) = named(&Standing { rows: rows.to_vec(), troubled, ..Standing::default() });
            (named.join(", "), slowest)
        };
        let rows = [
            row("d", "silent 6s", 0.0),
            row("a", "lost", 0.0),
            row("e", "lost", 0.0),
            row("c", "running", 560.4),
            row("b", "running", 2000.0),
        ];
        let slowest = Some("slowest c 560 IOPS".to_string());
        assert_eq!(of(&rows, 3), ("d silent 6s, a lost, 1 more".to_string(), slowest.clone()));
        assert_eq!(of(&rows[3..], 0), (String::new(), slowest));
        assert_eq!(of(&rows[4..], 0), (String::new(), None), "one is not slower than others");
    }
}
