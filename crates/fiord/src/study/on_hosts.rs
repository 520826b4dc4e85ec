//! A study on hosts, from its options to its exit status: each host carries it out at the same time, run by run from one
//! start, and has a result of its own.
//!
//! Invariant: the verdict is the worst of all hosts; a host without a result leaves it undecided, unless another fails.

use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;

use fiord_fleet::render::{started, starts_of};
use fiord_fleet::{Host, HostRun, Starts};
use fiord_lab::Verdict;
use fiord_remote::Finished;
use fiord_report::json::Writer;
use fiord_report::path::visible_lines;
use fiord_report::table::{Cell, Column, Table};
use fiord_session::run::environment;
use fiord_store::{Conclusion, Headline};
use fiord_wire::{ControllerSettings, Prepare, Sent, StudyReport};

use super::options::Options;
use crate::arguments::{self, CommandError, Form};
use crate::config;
use crate::hosts::{Progress, counted, grouped_problems, lines_of_fates, received, status_of};
use crate::keep::StudyKeeper;
use crate::layout::{WIDTH, width};
use crate::output::say;
use crate::status;

/// The skew of starts within which a study's runs are taken for concurrent, in nanoseconds.
const ACCEPTED_SKEW_NS: u64 = 10_000_000;

/// Runs the study of this command line on the hosts that it names.
pub(super) fn carry_out(name: &str, options: &Options) -> Result<ExitCode, CommandError> {
    let machine = environment::machine()?;
    let reached = options.reach.hosts(options.hosts.clone(), &machine)?;
    let hosts = reached.hosts.clone();
    let words = std::env::args_os().skip(1).map(OsStringExt::into_vec).collect();
    let study = options.sources.command(config::with_trust(words));
    if let Some(setting) = hosts.iter().find_map(|host| host.settings.first()) {
        let why = "a study takes no options of jobs from a list of hosts; leave it out";
        return Err(format!("{}: {}: {why}", setting.place, setting.spelling).into());
    }
    let settings =
        ControllerSettings { allow_missing: options.allow_missing as usize, ..ControllerSettings::default() };
    let job = options.reach.job(&hosts, settings, |host| Prepare {
        run: format!("{name}-{}-{}", std::process::id(), host.name),
        study: Some(study.clone()),
        ..Prepare::default()
    })?;
    let purpose = format!("on {}", counted(hosts.len()));
    let tag = options.tag.as_deref();
    let begin = || StudyKeeper::begin(name, &purpose, None, "", &machine, tag);
    let keeper = if options.no_history { None } else { begin() };
    let mut progress = Progress::of(&hosts, true);
    let finished = fiord_remote::run(job, &mut progress);
    progress.clear();
    let found = Found::of(name, hosts, &finished);
    grouped_problems(finished.controller.remotes()).iter().for_each(|line| say(line));
    lines_of_fates(found.runs.iter().map(|run| (&run.host, &run.fate))).iter().for_each(|line| say(line));
    found.print(options.forms.chosen())?;
    let status = found.status(&finished, options);
    if let Some(keeper) = keeper {
        let headline = Headline::default();
        let (json, text) = (found.json(), visible_lines(&found.text(WIDTH)));
        keeper.conclude(status, &Conclusion { json, text, headline });
    }
    Ok(ExitCode::from(status))
}

/// What all hosts have found.
pub(crate) struct Found {
    /// The study.
    pub name: String,
    /// The hosts.
    pub runs: Vec<HostRun>,
    /// Of each host.
    pub reports: Vec<Option<StudyReport>>,
}

impl Found {
    fn of(name: &str, hosts: Vec<Host>, finished: &Finished) -> Found {
        let (mut runs, mut reports) = (Vec::new(), Vec::new());
        for (host, remote) in hosts.into_iter().zip(finished.controller.remotes()) {
            let (fate, report) = received(remote, StudyReport::decode);
            let (stages, clock) = (remote.stages().to_vec(), remote.clock());
            runs.push(HostRun { host, fate, stages, clock, ..HostRun::default() });
            reports.push(report);
        }
        Found { name: name.to_string(), runs, reports }
    }

    /// Prints it, if any host has found something.
    pub(crate) fn print(&self, form: Form) -> Result<(), CommandError> {
        if self.reports.iter().all(Option::is_none) {
            return Ok(());
        }
        match form {
            Form::Json => arguments::print(self.json())?,
            Form::Csv => arguments::print(self.table().csv())?,
            Form::Markdown => arguments::print_text(&self.table().markdown())?,
            Form::Text => arguments::print(visible_lines(&self.text(width())))?,
        };
        Ok(())
    }

    fn starts(&self) -> Option<Starts> {
        let told = self.runs.iter().zip(&self.reports).filter(|(_, report)| report.is_some());
        Starts::of(told.map(|(run, _)| run), ACCEPTED_SKEW_NS)
    }

    /// The worst verdict; `None` of a study that gives none.
    fn verdict(&self) -> Option<Verdict> {
        let verdicts: Vec<Option<Verdict>> = self.reports.iter().map(|one| verdict(one.as_ref()?)).collect();
        let worst = verdicts.iter().flatten().max().copied()?;
        Some(if verdicts.contains(&None) { worst.max(Verdict::Undecided) } else { worst })
    }

    /// `FAIL: the worst of 3 hosts, that of b`; `None` of a study that gives no verdict.
    fn conclusion(&self) -> Option<String> {
        let worst = self.verdict()?;
        let is_worst =
            |report: &Option<StudyReport>| report.as_ref().map_or(Some(Verdict::Undecided), verdict);
        let hosts = self.runs.iter().zip(&self.reports).filter(|(_, report)| is_worst(report) == Some(worst));
        let names: Vec<&str> = hosts.map(|(run, _)| run.host.name.as_str()).collect();
        Some(match names.len() == self.runs.len() {
            true => format!("{} on {}", worst.word(), counted(names.len())),
            false => format!(
                "{}: the worst of {}, that of {}",
                worst.word(),
                counted(self.runs.len()),
                names.join(", ")
            ),
        })
    }

    fn status(&self, finished: &Finished, options: &Options) -> u8 {
        let reports = || self.reports.iter().flatten();
        let fates = self.runs.iter().map(|run| &run.fate);
        match status_of(finished, fates, options.allow_missing, reports().next().is_some()) {
            status::SUCCESS => {}
            status => return status,
        }
        // What a host accepts (`--strict`, `--undecided`) is in its own status.
        let rank = |report: &&StudyReport| {
            (report.status != status::SUCCESS, status::is_certain(report.status), verdict(report))
        };
        let worst = reports().max_by_key(rank);
        worst.map_or(status::FAILED, |report| report.status)
    }

    /// Every host, in the order of the list.
    fn table(&self) -> Table {
        let mut table = Table::new([
            Column::new("host", "HOST"),
            Column::new("fate", "FATE"),
            Column::new("verdict", "VERDICT"),
            Column::new("conclusion", "CONCLUSION"),
            Column::new("cause", "CAUSE"),
        ]);
        for (run, report) in self.runs.iter().zip(&self.reports) {
            let report = report.as_ref();
            table.rows.push(vec![
                Cell::Text(run.host.name.clone()),
                Cell::Text(run.fate.word().to_string()),
                Cell::text(report.and_then(|report| report.verdict.clone())),
                Cell::text(report.map(|report| report.conclusion.clone())),
                Cell::text(run.fate.cause()),
            ]);
        }
        table
    }

    /// The result of each host, then how they started, their verdicts and the worst.
    fn text(&self, width: usize) -> String {
        let mut text = String::new();
        for (run, report) in self.runs.iter().zip(&self.reports) {
            if let Some(report) = report {
                text += &format!("<{}> {}\n", run.host.name, report.text);
            }
        }
        text += "Hosts:\n";
        if let Some(sentence) = started(self.starts()) {
            text += &format!("  {sentence}\n");
        }
        let keys: &[&str] = match self.verdict() {
            Some(_) => &["host", "fate", "verdict"],
            None => &["host", "fate"],
        };
        for line in self.table().select(keys).text(width.saturating_sub(2)).lines() {
            text += &format!("  {line}\n");
        }
        text + &self.conclusion().map_or_else(String::new, |conclusion| format!("\n{conclusion}\n"))
    }

    fn json(&self) -> String {
        let rows = self.table();
        Writer::document(|json| {
            json.string("study", &self.name);
            Cell::text(self.verdict().map(Verdict::word)).write(json, "verdict");
            Cell::text(self.conclusion()).write(json, "conclusion");
            if let Some(starts) = self.starts() {
                json.object("starts", |json| starts_of(json, &starts));
            }
            json.list("hosts", |json| {
                for (report, row) in self.reports.iter().zip(&rows.rows) {
                    json.item(|json| {
                        rows.columns.iter().zip(row).for_each(|(column, cell)| cell.write(json, column.key));
                        match report.as_ref().filter(|report| fiord_import::is_json(&report.json)) {
                            Some(report) => json.embedded("document", &report.json),
                            None => json.null("document"),
                        }
                    });
                }
            });
        })
    }
}

/// The verdict of a host; `None` of a study that gives none.
fn verdict(report: &StudyReport) -> Option<Verdict> {
    let all = [Verdict::Pass, Verdict::Marginal, Verdict::Fail, Verdict::Undecided];
    let word = report.verdict.as_ref()?;
    all.into_iter().find(|verdict| verdict.word() == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(verdicts: &[Option<&str>]) -> Found {
        let report = |word: &Option<&str>| {
            word.map(|word| StudyReport { verdict: Some(word.to_string()), ..StudyReport::default() })
        };
        Found {
            name: "check".to_string(),
            runs: (0..verdicts.len())
                .map(|number| HostRun { host: Host::of(&format!("host {number}")), ..HostRun::default() })
                .collect(),
            reports: verdicts.iter().map(report).collect(),
        }
    }

    #[test]
    fn the_verdict_is_the_worst_and_never_better_than_what_is_known() {
        let verdict = |words: &[Option<&str>]| found(words).verdict().map(Verdict::word);
        assert_eq!(verdict(&[Some("PASS"), Some("PASS")]), Some("PASS"));
        assert_eq!(verdict(&[Some("PASS"), Some("FAIL"), Some("MARGINAL")]), Some("FAIL"));
        assert_eq!(verdict(&[Some("PASS"), None]), Some("CANNOT TELL"));
        assert_eq!(verdict(&[Some("MARGINAL"), Some("CANNOT TELL")]), Some("CANNOT TELL"));
        assert_eq!(verdict(&[Some("CANNOT TELL"), Some("FAIL"), None]), Some("FAIL"));
        assert_eq!(verdict(&[None, None]), None);
        let conclusion = |words: &[Option<&str>]| found(words).conclusion().unwrap();
        assert_eq!(conclusion(&[Some("PASS"), Some("PASS")]), "PASS on 2 hosts");
        let one_fails = conclusion(&[Some("PASS"), Some("FAIL"), Some("PASS")]);
        assert_eq!(one_fails, "FAIL: the worst of 3 hosts, that of host 1");
    }

    #[test]
    fn every_key_is_documented() {
        let page = include_str!("../../../../docs/json.md");
        let section = page.split("\n## ").find(|section| section.starts_with("Studies on hosts\n")).unwrap();
        let columns = found(&[]).table().columns;
        let of_hosts = columns.iter().map(|column| column.key).chain(["document"]);
        let keys = of_hosts.map(|key| format!("hosts[].{key}"));
        for key in keys.chain(["study", "verdict", "conclusion", "starts"].map(str::to_string)) {
            assert!(section.contains(&format!("| `{key}` |")), "{key}");
        }
    }

    #[test]
    fn what_a_host_sends_leaves_the_document_well_formed() {
        let mut found = found(&[Some("PASS"), None]);
        for json in ["{\"a\" : 1}", "{\"a\"", "", "{}}"] {
            found.reports[0] = Some(StudyReport { json: json.to_string(), ..StudyReport::default() });
            assert!(fiord_import::is_json(&found.json()), "{json}");
        }
    }
}
