//! Reads normal text, line by line.
//!
//! Invariant: a line that belongs to a report and has a figure that cannot be read is named in the report, and costs that
//! line alone; any other line is skipped, since programs print status lines and messages between reports.

mod counts;
mod job;
mod preface;
mod response;

use crate::clients;
use crate::model::{
    DirectionFigures, DirectionName, DiskFigures, GroupFigures, JobFigures, RateFigures, Report,
    ReportFormat, ReportedFinding,
};
use crate::number::{self, Prefixes};
use crate::place::{NumberedLine, ReadError, pairs};
use fiord_stats::Capped;
use job::JobReader;
use preface::{Preface, without_host};
use response::ResponseReader;

/// Which part of a report the next line belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Section {
    #[default]
    Before,
    Job,
    Group,
    Disks,
    Responses,
    Counts,
    Findings,
    /// One that this reader has no use for.
    Other,
}

/// Reads the reports of a text.
#[derive(Debug, Default)]
pub(crate) struct NormalReader {
    section: Section,
    /// What was printed before the first job.
    preface: Preface,
    /// The report that is being read.
    current: Option<Report>,
    /// The last line, from 1.
    last: u32,
    /// Hosts whose jobs the report has, the one being read included: each has its jobs, then its groups and disks.
    hosts: usize,
    /// The host whose jobs are being read.
    host: Option<String>,
    job: JobReader,
    responses: ResponseReader,
}

impl NormalReader {
    /// Takes a line. Returns the report that ended before it, if one did.
    pub fn line(&mut self, line: NumberedLine<'_>) -> Option<Report> {
        self.last = line.number;
        if let Some(host) = preface::host_alone(line.text) {
            self.preface.announced.push(host.to_string());
            return None;
        }
        if let Some((name, rest)) = line.text.split_once(": (groupid=") {
            let ended = if self.goes_on(name) { None } else { self.end() };
            self.next_host(name);
            self.begin_job(line, name, rest);
            return ended;
        }
        if let Some(message) = preface::message(line) {
            // It is of this report, and of the next ones, until other jobs are announced.
            if let Some(report) = &mut self.current {
                report.messages.push(message.clone());
            }
            self.preface.messages.push(message);
            return None;
        }
        if preface::announces_run(line) && (self.section == Section::Before || !line.text.starts_with(' ')) {
            let ended = self.end();
            if self.preface.is_used {
                self.preface = Preface::default();
            }
            self.preface.line(line);
            return ended;
        }
        if let Err(why) = self.of_report(line)
            && let Some(report) = &mut self.current
        {
            report.damage.push(why);
        }
        None
    }

    /// Whether a job of this name is of the report that is being read.
    fn goes_on(&self, name: &str) -> bool {
        let has_sum = |report: &Report| report.jobs.last().is_some_and(|job| job.name == clients::ALL);
        if self.current.as_ref().is_some_and(has_sum) {
            return false;
        }
        let of_same_host = matches!(self.section, Section::Before | Section::Job);
        let of_next_host = match self.preface.clients {
            0 => !self.preface.announced.is_empty(),
            clients => self.hosts < clients,
        };
        of_same_host || of_next_host || (name == clients::ALL && self.hosts > 1)
    }

    /// A job of this name is about to be read: if it is the first of a host, of which one.
    fn next_host(&mut self, name: &str) {
        let is_first = self.current.is_none() || !matches!(self.section, Section::Before | Section::Job);
        if name == clients::ALL && self.hosts > 1 {
            self.host = None;
        } else if is_first {
            self.hosts += 1;
            let announced = std::mem::take(&mut self.preface.announced);
            // Of several that were announced at once, the first to be reported may be any.
            self.host = match announced.as_slice() {
                [one] => Some(one.clone()),
                [] if self.preface.clients < 2 => None,
                _ => Some(format!("client {}", self.hosts)),
            };
            let report = self.current.as_ref();
            let known = clients::host_and_port(self.host.clone(), None);
            if known.is_some() && report.is_some_and(|report| report.jobs.iter().any(|job| job.host == known))
            {
                self.host = self.host.take().map(|host| format!("{host} ({})", self.hosts));
            }
        }
    }

    /// A line of a report.
    fn of_report(&mut self, line: NumberedLine<'_>) -> Result<(), ReadError> {
        let text = line.text.trim();
        let Some(report) = &mut self.current else { return Ok(()) };
        if let Some(rest) = text.strip_prefix("Run status group ") {
            self.section = Section::Group;
            report.groups.push(GroupFigures::default());
            let number = rest.split(' ').next().unwrap_or_default();
            let group_id = line.figure(number, "group", |text| text.parse().ok())?;
            if let Some(group) = report.groups.last_mut() {
                group.group_id = group_id;
            }
        } else if text.starts_with("Disk stats") {
            self.section = Section::Disks;
        } else if text.starts_with("Response latency,") {
            self.section = Section::Responses;
            self.responses = ResponseReader::default();
        } else if text.starts_with("Replay lateness,")
            || ["CPU idleness:", "Energy:", "Repeats:"].contains(&text)
        {
            self.section = Section::Other;
        } else if text == "Counts:" {
            self.section = Section::Counts;
        } else if text == "Findings:" {
            self.section = Section::Findings;
        } else {
            match self.section {
                Section::Before | Section::Other => {}
                Section::Job => {
                    report.jobs.last_mut().map_or(Ok(()), |of| self.job.line(of, line))?;
                }
                Section::Group => rate(report, line)?,
                Section::Disks => disk(report, line)?,
                Section::Responses => self.responses.line(report, line)?,
                Section::Counts => counts::line(report, line)?,
                Section::Findings => finding(report, line),
            }
        }
        Ok(())
    }

    /// The report that was being read.
    pub fn end(&mut self) -> Option<Report> {
        self.section = Section::Before;
        self.hosts = 0;
        let mut report = self.current.take()?;
        self.preface.give_headings(&mut report.jobs);
        clients::settle(&mut report);
        without_rounded_percentiles(&mut report);
        if report.groups.is_empty() {
            let problem = "the report ends before \"Run status group\": what followed is missing".to_string();
            report.damage.push(ReadError { line: self.last, column: 1, problem });
        }
        Some(report)
    }

    fn begin_job(&mut self, line: NumberedLine<'_>, name: &str, rest: &str) {
        let mut job = JobFigures {
            name: without_host(name).to_string(),
            host: clients::host_and_port(self.host.clone(), None),
            line: Some(line.number),
            ..JobFigures::default()
        };
        let read = job_heading(&mut job, line, rest);
        let preface = &mut self.preface;
        preface.is_used = true;
        let report = self.current.get_or_insert_with(|| Report {
            format: ReportFormat::Normal,
            line: line.number,
            version: preface.version.clone(),
            messages: preface.messages.clone(),
            damage: preface.damage.clone(),
            ..Report::default()
        });
        match read {
            Ok(date) => report.date = report.date.take().or(date),
            Err(why) => report.damage.push(why),
        }
        report.jobs.push(job);
        self.section = Section::Job;
        self.job = JobReader::default();
    }
}

/// The sum over all clients names its percentiles without decimals, so that four of them are called 100. Those remain whose
/// names are those of the jobs, once.
fn without_rounded_percentiles(report: &mut Report) {
    let Some(all) = &mut report.all_hosts else { return };
    let latencies = |of: &mut DirectionFigures| [of.slat.take(), of.clat.take(), of.lat.take()];
    let known: Vec<f64> = report
        .jobs
        .iter()
        .flat_map(|job| &job.directions)
        .flat_map(|of| [&of.slat, &of.clat, &of.lat])
        .flatten()
        .flat_map(|latency| latency.percentiles.iter().map(|each| each.percent))
        .collect();
    for direction in &mut all.directions {
        let [slat, clat, lat] = latencies(direction).map(|latency| {
            let mut latency = latency?;
            let percents: Vec<f64> = latency.percentiles.iter().map(|each| each.percent).collect();
            let is_once = |percent: f64| percents.iter().filter(|other| **other == percent).count() == 1;
            latency.percentiles.retain(|each| known.contains(&each.percent) && is_once(each.percent));
            Some(latency)
        });
        (direction.slat, direction.clat, direction.lat) = (slat, clat, lat);
    }
}

/// A single line, as if it stood in the block of a job, below a direction.
pub(crate) fn single(text: &str) -> Result<JobFigures, ReadError> {
    let line = NumberedLine { number: 1, text };
    let mut job = JobFigures::default();
    job.directions.push(DirectionFigures::default());
    JobReader::default().line(&mut job, line)?;
    Ok(job)
}

/// `0, jobs=2): err= 5 (file:…, error=…): pid=16955: Sat Nov 21 01:16:52 2026`; returns the date in it.
fn job_heading(
    job: &mut JobFigures,
    line: NumberedLine<'_>,
    rest: &str,
) -> Result<Option<String>, ReadError> {
    let cut = |what: &str| line.error(rest, format!("the heading of a job ends before its {what}"));
    let (group, rest) = rest.split_once(", jobs=").ok_or_else(|| cut("number of jobs"))?;
    job.group_id = Some(line.figure(group, "group", |text| text.parse().ok())?);
    let (members, rest) = rest.split_once("): err=").ok_or_else(|| cut("error number"))?;
    job.member_count = Some(line.figure(members, "number of jobs", |text| text.parse().ok())?);
    let (error, rest) = rest.split_once(": pid=").ok_or_else(|| cut("pid"))?;
    let (errno, text) = match error.split_once('(') {
        Some((errno, text)) => (errno, Some(text.strip_suffix(')').unwrap_or(text).to_string())),
        None => (error, None),
    };
    job.error = Some(line.figure(errno, "error number", |text| text.parse().ok())?);
    job.error_text = text;
    Ok(rest.split_once(": ").map(|(_, date)| date.trim().to_string()))
}

/// `   READ: bw=434MiB/s (455MB/s), 434MiB/s-434MiB/s (…), io=22.1MiB (23.2MB), run=51-51msec`, in fio 2
/// `   READ: io=8192KB, aggrb=9MB/s, minb=9MB/s, maxb=9MB/s, mint=51msec, maxt=51msec`.
fn rate(report: &mut Report, line: NumberedLine<'_>) -> Result<(), ReadError> {
    let Some((name, rest)) = line.text.split_once(": ") else { return Ok(()) };
    let Some(name) = DirectionName::from_name(name.trim()) else { return Ok(()) };
    let prefixes = if rest.contains("aggrb=") { Prefixes::Binary } else { Prefixes::Precise };
    let bytes =
        |text| line.figure(first_word(text), "bytes", |text| number::bytes(text, prefixes)).map(u64::capped);
    let ms = |text: &'_ str| -> Option<u64> { text.trim().trim_end_matches("msec").parse().ok() };
    let mut found = RateFigures { name, line: line.number, ..RateFigures::default() };
    for part in rest.split(", ") {
        match part.split_once('=') {
            Some(("bw" | "aggrb", value)) => found.bandwidth = Some(bytes(value)?),
            Some(("minb", value)) => found.bandwidth_min = Some(bytes(value)?),
            Some(("maxb", value)) => found.bandwidth_max = Some(bytes(value)?),
            Some(("io", value)) => found.bytes = Some(bytes(value)?),
            Some(("mint", value)) => found.runtime_ms_min = Some(line.figure(value, "mint", ms)?),
            Some(("maxt", value)) => found.runtime_ms_max = Some(line.figure(value, "maxt", ms)?),
            Some(("run", value)) => {
                let (min, max) = value.split_once('-').ok_or_else(|| line.error(value, "run: no range"))?;
                found.runtime_ms_min = Some(line.figure(min, "run", ms)?);
                found.runtime_ms_max = Some(line.figure(max, "run", ms)?);
            }
            Some(_) => {}
            None => {
                // The slowest and the fastest job, then both in the other base.
                if let Some((min, max)) = first_word(part).split_once('-') {
                    found.bandwidth_min = Some(bytes(min)?);
                    found.bandwidth_max = Some(bytes(max)?);
                }
            }
        }
    }
    // fio 1 counts these two in powers of 1000: the slowest job cannot exceed the sum.
    if prefixes == Prefixes::Binary && found.bandwidth_min > found.bandwidth {
        let decimal = |bytes: Option<u64>| bytes.map(|bytes| bytes / 1024 * 1000);
        (found.bandwidth_min, found.bandwidth_max) =
            (decimal(found.bandwidth_min), decimal(found.bandwidth_max));
    }
    if let Some(group) = report.groups.last_mut() {
        group.directions.push(found);
    }
    Ok(())
}

/// `  vda: ios=0/0, sectors=0/0, merge=0/0, ticks=0/0, in_queue=0, util=0.00%`.
fn disk(report: &mut Report, line: NumberedLine<'_>) -> Result<(), ReadError> {
    let Some((name, rest)) = line.text.split_once(": ios=") else { return Ok(()) };
    // Even if its line is damaged it is one of the disks, so that their sums are not taken for whole.
    report.disks.push(DiskFigures {
        name: name.trim().to_string(),
        line: Some(line.number),
        ..DiskFigures::default()
    });
    let Some(found) = report.disks.last_mut() else { return Ok(()) };
    let both = |value: &str| -> Result<[Option<u64>; 2], ReadError> {
        let whole = |text: Option<&str>| text.unwrap_or_default().trim().parse::<u64>().ok();
        let mut parts = value.split('/');
        match (whole(parts.next()), whole(parts.next())) {
            (Some(read), Some(written)) => Ok([Some(read), Some(written)]),
            _ => Err(line.error(value, format!("{value:?} is not a pair of counts"))),
        }
    };
    // The place of the value of `ios` is where the name ends.
    let (ios, rest) = rest.split_once(", ").unwrap_or((rest, ""));
    found.ios = both(ios)?;
    for (key, value) in pairs(rest) {
        match key {
            "sectors" => found.sectors = both(value)?,
            "merge" => found.merges = both(value)?,
            "ticks" => found.ticks_ms = both(value)?,
            "in_queue" => found.in_queue_ms = Some(line.figure(value, key, number::whole)?),
            "util" => found.util_percent = Some(line.figure(value, key, number::percent)?),
            "aggrios" => found.is_stacked = true,
            _ => {}
        }
    }
    Ok(())
}

/// `  void: job a: ended-in-ramp: the sentence`, and the remedy below it.
fn finding(report: &mut Report, line: NumberedLine<'_>) {
    let indent = line.text.len() - line.text.trim_start().len();
    let text = line.text.trim();
    if indent > 2 {
        if let Some(last) = report.findings.last_mut() {
            let separator = if last.remedy.is_empty() { "" } else { "\n" };
            last.remedy = format!("{}{separator}{text}", last.remedy);
        }
        return;
    }
    let mut parts = text.splitn(4, ": ").map(str::to_string);
    if let (Some(severity), Some(subject), Some(code), Some(sentence)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    {
        let remedy = String::new();
        report.findings.push(ReportedFinding { code, severity, subject, sentence, remedy });
    }
}

fn first_word(text: &str) -> &str {
    text.trim_start().split(' ').next().unwrap_or_default()
}
