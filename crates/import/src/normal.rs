//! Reads normal text, line by line.
//!
//! Invariant: a line that belongs to a report and has a figure that cannot be read is an error; any other line is
//! skipped, since programs print status lines and messages between reports.

mod job;
mod response;

use crate::model::{
    DirectionFigures, DirectionName, DiskFigures, GroupFigures, Heading, JobFigures, Message, RateFigures,
    Report, ReportFormat, ReportedFinding,
};
use crate::number::{self, Prefixes};
use crate::place::{NumberedLine, ReadError, pairs};
use job::JobReader;
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
    Findings,
    /// One that this reader has no use for.
    Other,
}

/// Reads the reports of a text.
#[derive(Debug, Default)]
pub(crate) struct NormalReader {
    section: Section,
    /// What was printed before the first job.
    preface: Report,
    /// The report that is being read.
    current: Option<Report>,
    job: JobReader,
    responses: ResponseReader,
}

impl NormalReader {
    /// Takes a line. Returns the report that ended before it, if one did.
    pub fn line(&mut self, line: NumberedLine<'_>) -> Result<Option<Report>, ReadError> {
        let text = line.text.trim();
        if let Some((name, rest)) = line.text.split_once(": (groupid=") {
            let ended =
                if matches!(self.section, Section::Before | Section::Job) { None } else { self.end() };
            self.begin_job(line, name, rest)?;
            return Ok(ended);
        }
        if self.of_preface(line)? {
            return Ok(None);
        }
        if let Some(rest) = text.strip_prefix("Run status group ") {
            let number = rest.split(' ').next().unwrap_or_default();
            let group_id = line.figure(number, "group", |text| text.parse().ok())?;
            self.enter(Section::Group, |report| {
                report.groups.push(GroupFigures { group_id, directions: Vec::new() });
            });
        } else if text.starts_with("Disk stats") {
            self.enter(Section::Disks, |_| ());
        } else if text.starts_with("Response latency,") {
            self.enter(Section::Responses, |_| ());
            self.responses = ResponseReader::default();
        } else if text.starts_with("Replay lateness,") || text == "CPU idleness:" || text == "Repeats:" {
            self.enter(Section::Other, |_| ());
        } else if text == "Findings:" {
            self.enter(Section::Findings, |_| ());
        } else if let Some(report) = &mut self.current {
            match self.section {
                Section::Before | Section::Other => {}
                Section::Job => {
                    let jobs = &mut report.jobs;
                    jobs.last_mut().map_or(Ok(()), |of| self.job.line(of, line))?;
                }
                Section::Group => rate(report, line)?,
                Section::Disks => disk(report, line)?,
                Section::Responses => self.responses.line(report, line)?,
                Section::Findings => finding(report, line),
            }
        }
        Ok(None)
    }

    /// The report that was being read.
    pub fn end(&mut self) -> Option<Report> {
        self.section = Section::Before;
        self.current.take()
    }

    fn enter(&mut self, section: Section, change: impl FnOnce(&mut Report)) {
        if let Some(report) = &mut self.current {
            self.section = section;
            change(report);
        }
    }

    /// Lines that precede reports: headings, the version, messages.
    fn of_preface(&mut self, line: NumberedLine<'_>) -> Result<bool, ReadError> {
        let text = line.text;
        if text.starts_with("fio: ") || text.starts_with("verify: ") || text.contains(": verify failed ") {
            let message = Message { text: text.to_string(), line: line.number };
            self.preface.messages.push(message.clone());
            if let Some(report) = &mut self.current {
                report.messages.push(message);
            }
            return Ok(true);
        }
        if self.section != Section::Before {
            return Ok(false);
        }
        if text.starts_with("fio-") && !text.contains(' ') {
            self.preface.version = Some(text.to_string());
            return Ok(true);
        }
        let Some((name, rest)) = text.split_once(": (g=") else { return Ok(false) };
        self.preface.headings.push(heading(line, name, rest)?);
        Ok(true)
    }

    fn begin_job(&mut self, line: NumberedLine<'_>, name: &str, rest: &str) -> Result<(), ReadError> {
        let (job, date) = job_heading(line, name, rest)?;
        let preface = &self.preface;
        let report = self.current.get_or_insert_with(|| Report {
            format: ReportFormat::Normal,
            line: line.number,
            date,
            ..preface.clone()
        });
        report.jobs.push(job);
        self.section = Section::Job;
        self.job = JobReader::default();
        Ok(())
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

/// `name: (g=0): rw=randread, bs=(R) 4096B-4096B, …, ioengine=psync, iodepth=1`.
fn heading(line: NumberedLine<'_>, name: &str, rest: &str) -> Result<Heading, ReadError> {
    let (group, settings) = rest.split_once("):").unwrap_or((rest, ""));
    let mut found = Heading { name: without_host(name).to_string(), line: line.number, ..Heading::default() };
    found.group_id = Some(line.figure(group, "group", |text| text.parse().ok())?);
    for (key, value) in pairs(settings) {
        match key {
            "rw" => found.rw = Some(value.to_string()),
            "ioengine" => found.ioengine = Some(value.to_string()),
            "iodepth" => found.iodepth = Some(line.figure(value, key, |text| text.parse().ok())?),
            _ => {}
        }
    }
    Ok(found)
}

/// A client of a server prints the host before each line.
fn without_host(text: &str) -> &str {
    match text.strip_prefix('<').and_then(|rest| rest.split_once("> ")) {
        Some((_, rest)) => rest,
        None => text,
    }
}

/// `0, jobs=2): err= 5 (file:…, error=…): pid=16955: Sat Nov 21 01:16:52 2026`, and the date in it.
fn job_heading(
    line: NumberedLine<'_>,
    name: &str,
    rest: &str,
) -> Result<(JobFigures, Option<String>), ReadError> {
    let cut = |what: &str| line.error(rest, format!("the heading of a job ends before its {what}"));
    let (group, rest) = rest.split_once(", jobs=").ok_or_else(|| cut("number of jobs"))?;
    let (members, rest) = rest.split_once("): err=").ok_or_else(|| cut("error number"))?;
    let (error, rest) = rest.split_once(": pid=").ok_or_else(|| cut("pid"))?;
    let (errno, text) = match error.split_once('(') {
        Some((errno, text)) => (errno, Some(text.strip_suffix(')').unwrap_or(text).to_string())),
        None => (error, None),
    };
    let date = rest.split_once(": ").map(|(_, date)| date.trim().to_string());
    let job = JobFigures {
        name: without_host(name).to_string(),
        line: Some(line.number),
        group_id: Some(line.figure(group, "group", |text| text.parse().ok())?),
        member_count: Some(line.figure(members, "number of jobs", |text| text.parse().ok())?),
        error: Some(line.figure(errno, "error number", |text| text.parse().ok())?),
        error_text: text,
        ..JobFigures::default()
    };
    Ok((job, date))
}

/// `   READ: bw=434MiB/s (455MB/s), 434MiB/s-434MiB/s (…), io=22.1MiB (23.2MB), run=51-51msec`, in fio 2
/// `   READ: io=8192KB, aggrb=9MB/s, minb=9MB/s, maxb=9MB/s, mint=51msec, maxt=51msec`.
fn rate(report: &mut Report, line: NumberedLine<'_>) -> Result<(), ReadError> {
    let Some((name, rest)) = line.text.split_once(": ") else { return Ok(()) };
    let Some(name) = DirectionName::from_name(name.trim()) else { return Ok(()) };
    let prefixes = if rest.contains("aggrb=") { Prefixes::Binary } else { Prefixes::Precise };
    let bytes =
        |text| line.figure(first_word(text), "bytes", |text| number::bytes(text, prefixes)).map(|b| b as u64);
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
    if let Some(group) = report.groups.last_mut() {
        group.directions.push(found);
    }
    Ok(())
}

/// `  vda: ios=0/0, sectors=0/0, merge=0/0, ticks=0/0, in_queue=0, util=0.00%`.
fn disk(report: &mut Report, line: NumberedLine<'_>) -> Result<(), ReadError> {
    let Some((name, rest)) = line.text.split_once(": ios=") else { return Ok(()) };
    let mut found =
        DiskFigures { name: name.trim().to_string(), line: Some(line.number), ..DiskFigures::default() };
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
    report.disks.push(found);
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
