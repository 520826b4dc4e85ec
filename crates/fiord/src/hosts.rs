//! What runs and studies on hosts have alike: what is shown meanwhile, what hosts could not do, and the exit status.
//!
//! Invariant: the status is 0 only if every host did all it was asked for, but for those that `--allow-missing` lets be.

use std::collections::BTreeMap;

use fiord_fleet::{Fate, Host, alike};
use fiord_remote::Finished;
use fiord_report::columns;
use fiord_stats::Capped;
use fiord_sys::{clock, tty};
use fiord_wire::controller::{Remote, SILENT_NS};
use fiord_wire::{Controller, Told};

use crate::output::say;
use crate::status;
use crate::status_line::StatusLine;

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

/// The line on a terminal, and what hosts say.
pub(crate) struct Progress<'h> {
    hosts: &'h [Host],
    line: StatusLine,
}

impl<'h> Progress<'h> {
    /// Of these hosts.
    pub(crate) fn of(hosts: &'h [Host]) -> Progress<'h> {
        Progress { hosts, line: StatusLine::default() }
    }

    /// Removes the line.
    pub(crate) fn clear(&mut self) {
        self.line.clear();
    }

    /// Draws the line anew, or prints what a host says.
    pub(crate) fn show(&mut self, controller: &Controller, said: Option<(usize, &str)>) {
        if let Some((number, text)) = said {
            self.line.clear();
            let name = self.hosts.get(number).map_or("?", |host| host.name.as_str());
            return say(&format!("<{name}> {text}\n"));
        }
        if tty::stderr_is_terminal() {
            self.line.draw(&progress(controller, self.hosts));
        }
    }
}

fn progress(controller: &Controller, hosts: &[Host]) -> String {
    let now_ns = i64::capped(clock::monotonic_ns());
    let remotes = controller.remotes();
    let mut doing: BTreeMap<&'static str, usize> = BTreeMap::new();
    remotes.iter().for_each(|remote| *doing.entry(remote.doing()).or_default() += 1);
    let mut parts: Vec<String> = doing.iter().map(|(word, count)| format!("{count} {word}")).collect();
    let bytes: u64 = remotes.iter().flat_map(|remote| remote.progress().bytes).sum();
    let laid_bytes: u64 = remotes.iter().map(Remote::laid_bytes).sum();
    match (bytes, laid_bytes) {
        (0, 0) => {}
        (0, laid_bytes) => parts.push(format!("{} MiB laid out", laid_bytes >> 20)),
        (bytes, _) => parts.push(format!("{} MiB", bytes >> 20)),
    }
    let silent = |(remote, host): (&Remote, &Host)| {
        let silent_ns = remote.silent_ns(now_ns);
        let is_silent = remote.fate().is_none() && remote.hello().is_some() && silent_ns > SILENT_NS;
        is_silent.then(|| format!("{}: silent {} s", host.name, silent_ns / 1_000_000_000))
    };
    parts.extend(remotes.iter().zip(hosts).filter_map(silent).take(3));
    let text = format!("{}: {}", counted(hosts.len()), parts.join(", "));
    columns::cut(&text, 200).to_string()
}
