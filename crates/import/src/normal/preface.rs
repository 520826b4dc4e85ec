//! What is printed before the reports of a run: a heading for each section, the version, messages.
//!
//! Invariant: a job has a heading only if it is that of its own section, or all that it may be of say the same.

use std::collections::HashMap;

use crate::model::{DirectionName, Heading, JobFigures, Message};
use crate::place::{NumberedLine, ReadError, pairs};

/// What was printed before the reports of a run, of which there are several with `status-interval`.
#[derive(Debug, Default)]
pub(super) struct Preface {
    pub version: Option<String>,
    pub messages: Vec<Message>,
    /// Damaged lines.
    pub damage: Vec<ReadError>,
    /// Whether a report has followed it: the next heading is that of another run.
    pub is_used: bool,
    headings: Vec<Heading>,
    /// Clients that announced themselves (`hostname=vm, be=0, …`).
    pub clients: usize,
    /// The hosts of lines that have nothing but a host since the last block of a job.
    pub announced: Vec<String>,
}

/// Whether a line announces the jobs of a run: the heading of a section, or the version.
pub(super) fn announces_run(line: NumberedLine<'_>) -> bool {
    version(line.text).is_some() || line.text.contains(": (g=") || is_client(line.text)
}

/// `hostname=vm, be=0, 64-bit, os=Linux, arch=x86-64, fio=fio-3.42, flags=1`.
fn is_client(text: &str) -> bool {
    text.starts_with("hostname=") && text.contains(", be=")
}

/// The host of a line that has nothing else, which stands before what the host reports: `<db1> `.
pub(super) fn host_alone(text: &str) -> Option<&str> {
    // The status line stands before it where that ends without a line feed.
    let (_, host) = text.trim_end().strip_suffix('>')?.rsplit_once('<')?;
    (!host.is_empty() && !host.contains([' ', ':'])).then_some(host)
}

/// `fio-3.42`; `fio 1.57` before there were hyphens.
fn version(text: &str) -> Option<String> {
    let is_number = |text: &&str| text.starts_with(|first: char| first.is_ascii_digit());
    let number =
        text.strip_prefix("fio-").or_else(|| text.strip_prefix("fio ").filter(is_number))?.trim_end();
    (!number.contains(' ')).then(|| format!("fio-{number}"))
}

/// A message of the program.
pub(super) fn message(line: NumberedLine<'_>) -> Option<Message> {
    let text = line.text;
    let is_one =
        text.starts_with("fio: ") || text.starts_with("verify: ") || text.contains(": verify failed ");
    is_one.then(|| Message { text: text.to_string(), line: line.number })
}

impl Preface {
    /// Takes a line that announces jobs.
    pub fn line(&mut self, line: NumberedLine<'_>) {
        if let Some(version) = version(line.text) {
            self.version = Some(version);
        } else if is_client(line.text) {
            self.clients += 1;
            let fio = line.text.split(", ").find_map(|part| part.strip_prefix("fio="));
            self.version = fio.and_then(version).or(self.version.take());
        } else if let Some((name, rest)) = line.text.split_once(": (g=") {
            self.headings.push(Heading {
                name: without_host(name).to_string(),
                line: line.number,
                ..Heading::default()
            });
            if let Some(heading) = self.headings.last_mut()
                && let Err(why) = settings(heading, line, rest)
            {
                self.damage.push(why);
            }
        }
    }

    /// Gives each job the heading of its section.
    pub fn give_headings(&self, jobs: &mut [JobFigures]) {
        let mut of_name: HashMap<(&str, Option<u32>), Vec<&Heading>> = HashMap::new();
        let mut of_group: HashMap<Option<u32>, Vec<&Heading>> = HashMap::new();
        for heading in &self.headings {
            of_name.entry((&heading.name, heading.group_id)).or_default().push(heading);
            of_group.entry(heading.group_id).or_default().push(heading);
        }
        let mut count: HashMap<(String, Option<u32>), usize> = HashMap::new();
        let key = |job: &JobFigures| (job.name.clone(), job.group_id);
        for job in jobs.iter() {
            *count.entry(key(job)).or_default() += 1;
        }
        let mut seen: HashMap<(String, Option<u32>), usize> = HashMap::new();
        for job in jobs {
            let at = seen.entry(key(job)).or_default();
            // Several that are reported as one have the name of the first of them.
            let all = match job.member_count.unwrap_or(1) {
                0 | 1 => of_name.get(&(job.name.as_str(), job.group_id)),
                _ => of_group.get(&job.group_id),
            };
            let all: &[&Heading] = all.map_or(&[], Vec::as_slice);
            // Jobs are reported in the order of their sections.
            let in_order = count.get(&key(job)) == Some(&all.len()) && job.member_count == Some(1);
            job.heading = match all {
                all if are_alike(all) => all.first().copied().cloned(),
                all if in_order => all.get(*at).copied().cloned(),
                all => {
                    let fits: Vec<&Heading> = all.iter().copied().filter(|of| fits(of, job)).collect();
                    fits.first().copied().filter(|_| are_alike(&fits)).cloned()
                }
            };
            *at += 1;
        }
    }
}

/// Whether these say the same of their jobs.
fn are_alike(headings: &[&Heading]) -> bool {
    headings.windows(2).all(|pair| pair[0].is_like(pair[1]))
}

/// Whether the jobs of a section do what this one did: reads, writes or trims.
fn fits(heading: &Heading, job: &JobFigures) -> bool {
    let Some(rw) = &heading.rw else { return false };
    let is_mix = rw.ends_with("rw") || rw == "readwrite";
    let does = |name: DirectionName| match name {
        DirectionName::Read => is_mix || rw.ends_with("read"),
        DirectionName::Write => is_mix || rw.ends_with("write"),
        DirectionName::Trim => rw.contains("trim"),
        DirectionName::Mixed => true,
    };
    job.directions.iter().filter(|of| of.is_active()).all(|of| does(of.name))
}

/// `0): rw=randread, bs=(R) 4096B-4096B, …, ioengine=psync, iodepth=1`.
fn settings(heading: &mut Heading, line: NumberedLine<'_>, rest: &str) -> Result<(), ReadError> {
    let (group, settings) = rest.split_once("):").unwrap_or((rest, ""));
    heading.group_id = Some(line.figure(group, "group", |text| text.parse().ok())?);
    for (key, value) in pairs(settings) {
        match key {
            "rw" => heading.rw = Some(value.to_string()),
            "ioengine" => heading.ioengine = Some(value.to_string()),
            "iodepth" => heading.iodepth = Some(line.figure(value, key, |text| text.parse().ok())?),
            _ => {}
        }
    }
    Ok(())
}

/// A client of a server prints the host before each line.
pub(super) fn without_host(text: &str) -> &str {
    match text.strip_prefix('<').and_then(|rest| rest.split_once("> ")) {
        Some((_, rest)) => rest,
        None => text,
    }
}
