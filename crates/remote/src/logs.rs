//! The logs of all hosts, as files of this machine.
//!
//! Invariant: their names are made here, of the sections and the host's name, and checked before any host starts; nothing is
//! opened before bytes come. They are written by a thread of its own, so that a slow disk keeps no host waiting for an
//! answer, and never held as a whole: a host sends no more than it has credit for.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fiord_fleet::HostLogs;
use fiord_options::environment::KeywordValues;
use fiord_options::value::EngineName;
use fiord_options::{Place, Problem, ProblemKind, Resolver, Section, without_repeats};
use fiord_plan::{LogKind, log_path};
use fiord_report::path::shown;
use fiord_session::claims;
use fiord_session::run::logs::WrittenLog;
use fiord_stats::Capped;
use fiord_sys::channel::{Receiver, RecvTimeoutError, Sender, channel};
use fiord_sys::errno::error_text;
use fiord_sys::signal;
use fiord_sys::spawn::spawn;
use fiord_wire::message::{Log, LogPiece, Logs, Told};
use fiord_wire::{Prepare, Sections};
use fiord_worker::TargetOpener;

use crate::keywords::{self, HostKeywords};

const STACK_BYTES: usize = 256 << 10;

/// How often it is looked whether the user has lost patience.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What names of logs are made of, of one host.
struct Source {
    sections: Sections,
    name: String,
    number: u32,
    hosts: u32,
}

/// What the thread that writes is told.
enum ToWrite {
    /// The logs of the host of this number, in their order.
    Planned(usize, Vec<WrittenLog>),
    Piece(usize, LogPiece),
}

/// What it has done.
pub(crate) struct Wrote {
    /// The number of the host.
    pub(crate) host: usize,
    /// Bytes that are written, or thrown away.
    pub(crate) bytes: u64,
    /// The log that could not be written, and may be ended.
    pub(crate) failed: Option<u32>,
}

/// The thread that writes, and its channels.
struct Writer {
    to_write: Sender<ToWrite>,
    wrote: Receiver<Wrote>,
    /// Has a byte for each that it wrote.
    woken: UnixStream,
    /// What became of the logs of each host, in the end.
    ended: Receiver<Vec<HostLogs>>,
}

/// The logs of all hosts.
pub(crate) struct LogFiles {
    sources: Vec<Source>,
    /// The paths of the logs of each host.
    paths: Vec<BTreeSet<PathBuf>>,
    /// What the names are checked by before any host starts.
    checks: (TargetOpener, claims::Outputs),
    writer: Option<Writer>,
}

impl LogFiles {
    /// Of hosts that are to run this.
    pub(crate) fn of(prepared: &[Prepare]) -> LogFiles {
        let source = |prepare: &Prepare| {
            let Prepare { sections, name, number, hosts, .. } = prepare.clone();
            Source { sections, name, number, hosts }
        };
        let paths = prepared.iter().map(|_| BTreeSet::new()).collect();
        LogFiles {
            sources: prepared.iter().map(source).collect(),
            paths,
            checks: Default::default(),
            writer: None,
        }
    }

    /// Readable when `wrote` has something new.
    pub(crate) fn woken(&self) -> Option<BorrowedFd<'_>> {
        self.writer.as_ref().map(|writer| writer.woken.as_fd())
    }

    /// What was written since the last call.
    pub(crate) fn wrote(&mut self) -> Vec<Wrote> {
        let Some(writer) = &mut self.writer else { return Vec::new() };
        let mut bytes = [0; 4096];
        while writer.woken.read(&mut bytes).is_ok_and(|count| count == bytes.len()) {}
        std::iter::from_fn(|| writer.wrote.try_recv().ok()).collect()
    }

    /// The host of this number will send these.
    ///
    /// # Errors
    /// Why they cannot, or must not, be written here.
    pub(crate) fn plan(&mut self, number: usize, logs: &Logs) -> Result<(), Vec<Told>> {
        let told = |text: String| vec![Told { text, is_unsafe: false }];
        let Some(source) = self.sources.get(number) else { return Ok(()) };
        let planned = source.paths(logs).map_err(told)?;
        let (mut files, mut problems, mut is_unsafe) = (BTreeSet::new(), Vec::new(), false);
        let mut written = Vec::new();
        for PlannedLog { path, place, kind } in planned {
            let is_new = files.insert(path.clone());
            if is_new && let Err(why) = check(&path, &source.name, &mut self.checks) {
                is_unsafe |= why.is_unsafe;
                problems.push(why.problem(&path, place, kind));
            }
            written.push(WrittenLog::new(&path, false, !is_new));
        }
        if !problems.is_empty() {
            let problems = without_repeats(problems);
            return Err(problems.iter().map(|one| Told { text: one.to_string(), is_unsafe }).collect());
        }
        self.paths[number] = files;
        let writer = self.writer().map_err(told)?;
        // If it panicked, what became of the logs says so.
        let _ = writer.to_write.send(ToWrite::Planned(number, written));
        Ok(())
    }

    /// Writes a piece of a log of this host.
    pub(crate) fn write(&mut self, number: usize, piece: LogPiece) {
        if let Some(writer) = &self.writer {
            let _ = writer.to_write.send(ToWrite::Piece(number, piece));
        }
    }

    /// Writes what is left; what became of the logs of each host.
    pub(crate) fn finish(self) -> Vec<HostLogs> {
        let LogFiles { paths, writer, .. } = self;
        let Some(Writer { to_write, wrote, woken, ended }) = writer else {
            return paths.iter().map(|_| HostLogs::default()).collect();
        };
        drop(to_write);
        let why = loop {
            match ended.recv_timeout(LOOK_EVERY) {
                Ok(logs) => return logs,
                Err(RecvTimeoutError::Disconnected) => break "writing it has failed",
                Err(RecvTimeoutError::Timeout) if signal::is_stop_urgent() => break "given up",
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        drop((wrote, woken));
        let unwritten = |paths: BTreeSet<PathBuf>| HostLogs {
            files: u32::capped(paths.len()),
            incomplete: paths.iter().map(|path| (shown(path), why.to_string())).collect(),
        };
        paths.into_iter().map(unwritten).collect()
    }

    /// The thread that writes, which is started for the first logs.
    fn writer(&mut self) -> Result<&Writer, String> {
        if self.writer.is_none() {
            let failed = |error: io::Error| format!("logs cannot be written: {}", error_text(&error));
            let (to_write, received) = channel();
            let (tells, wrote) = channel();
            let (tells_end, ended) = channel();
            let (woken, wakes) = UnixStream::pair().map_err(failed)?;
            woken.set_nonblocking(true).map_err(failed)?;
            wakes.set_nonblocking(true).map_err(failed)?;
            let hosts = self.sources.len();
            let write = move || {
                signal::leave_to_other_threads();
                // If nobody listens any more, nobody needs to know.
                let _ = tells_end.send(write_all(hosts, &received, &tells, &wakes));
            };
            spawn("fiord-logs", STACK_BYTES, write).map_err(failed)?;
            self.writer = Some(Writer { to_write, wrote, woken, ended });
        }
        self.writer.as_ref().ok_or_else(String::new)
    }
}

/// Where a log is written, and what requests it.
struct PlannedLog {
    path: PathBuf,
    place: Place,
    kind: LogKind,
}

impl Source {
    /// The logs that the host tells of, in their order.
    fn paths(&self, logs: &Logs) -> Result<Vec<PlannedLog>, String> {
        let (cpus, memory_mib, page_bytes) = logs.keywords;
        let keywords = HostKeywords {
            machine: KeywordValues { cpus, memory_mib, page_bytes },
            name: self.name.clone(),
            number: self.number,
            hosts: self.hosts,
        };
        let mut sections = self.sections.read()?;
        // Those that cannot be computed are problems of the host's plan.
        let _ = keywords::expand(&mut sections, &keywords);
        let mut resolver = Resolver::new(EngineName::ALL);
        let options: Vec<_> = sections.iter().map(|section| resolver.job(section).0).collect();
        let planned = |log: &Log| {
            let at = log.section as usize;
            let (section, options) = (sections.get(at)?, options.get(at)?);
            let kind = *LogKind::ALL.get(usize::from(log.kind))?;
            let path = log_path(section, options, (log.clone, log.job), kind)?;
            let place = place_of(section, kind);
            Some(PlannedLog { path: of_host(&path, &self.name), place, kind })
        };
        let unknown = || "it tells of a log that no job requests; use the same fiord there".to_string();
        logs.list.iter().map(|log| planned(log).ok_or_else(unknown)).collect()
    }
}

/// Where a log is requested.
fn place_of(section: &Section, kind: LogKind) -> Place {
    section.last(kind.option()).map_or_else(|| section.place.clone(), |setting| setting.value_place.clone())
}

/// The log of a host: fio's `PATH.HOST`. The host's name makes no directory, and nothing that a terminal interprets.
fn of_host(path: &Path, name: &str) -> PathBuf {
    let is_plain = |letter: char| letter.is_alphanumeric() || "._-:%@+,[]".contains(letter);
    let name: String = name.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    let mut file = OsString::from(path);
    file.push(".");
    file.push(name);
    PathBuf::from(file)
}

/// Why a log cannot be written.
struct Unwritable {
    /// What is wrong, after the path or the directory.
    message: String,
    remedy: String,
    is_unsafe: bool,
}

impl Unwritable {
    fn problem(self, path: &Path, place: Place, kind: LogKind) -> Problem {
        let kind_of_problem = if self.is_unsafe { ProblemKind::InUse } else { ProblemKind::InvalidValue };
        Problem::error(kind_of_problem, place, kind.option(), self.message, self.remedy).of_path(path)
    }
}

/// Checks whether a log may be written here. Changes nothing but the table of what this command writes.
fn check(
    path: &Path,
    host: &str,
    (opener, claims): &mut (TargetOpener, claims::Outputs),
) -> Result<(), Unwritable> {
    let refused = |message: String, remedy: &str, is_unsafe| {
        Err(Unwritable { message, remedy: remedy.to_string(), is_unsafe })
    };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !directory.is_dir() {
        let message =
            format!("there is no directory {} here, where logs of hosts are written", shown(directory));
        return refused(message, "make it, or name another prefix", false);
    }
    if path.is_dir() {
        return refused(format!("{} is a directory", shown(path)), "name another prefix", false);
    }
    if TargetOpener::is_link_to_file(path) {
        let message = format!("{} is a symbolic link, and would be written through it", shown(path));
        return refused(message, "remove the link", true);
    }
    if let Err(failure) = opener.may_write(path) {
        return refused(format!("{}: {}", shown(path), failure.reason()), "name another prefix", true);
    }
    match claims.claim(&format!("the logs of {host}"), path) {
        Ok(()) => Ok(()),
        Err(why) => refused(format!("{} {why}", shown(path)), claims::REMEDY, true),
    }
}

/// The logs of one host while they are written.
#[derive(Default)]
struct Host {
    logs: Vec<WrittenLog>,
    /// Those that are whole.
    ended: BTreeSet<usize>,
    has_begun: bool,
}

/// Writes what comes, until nothing more can; what became of the logs of each host.
fn write_all(
    hosts: usize,
    received: &Receiver<ToWrite>,
    tells: &Sender<Wrote>,
    wakes: &UnixStream,
) -> Vec<HostLogs> {
    let opener = TargetOpener::default();
    let mut all: Vec<Host> = (0..hosts).map(|_| Host::default()).collect();
    while let Ok(next) = received.recv() {
        match next {
            ToWrite::Planned(number, logs) => all[number].logs = logs,
            ToWrite::Piece(number, piece) => {
                let has_failed = all[number].write(&opener, &piece);
                let failed = has_failed.then_some(piece.log);
                let wrote = Wrote { host: number, bytes: piece.bytes.len() as u64, failed };
                // What it is told when a byte is there already is found with that; at the end nobody listens.
                let _ = tells.send(wrote);
                let _ = (&mut &*wakes).write(&[0]);
            }
        }
    }
    all.into_iter().map(|host| host.finish(&opener)).collect()
}

impl Host {
    /// Writes a piece; whether it was the first one that could not be written.
    fn write(&mut self, opener: &TargetOpener, piece: &LogPiece) -> bool {
        let position = piece.log as usize;
        let Some(log) = self.logs.get_mut(position) else { return false };
        self.has_begun = true;
        let had_failed = log.failure().is_some();
        if !piece.bytes.is_empty() {
            log.append(opener, &piece.bytes);
        }
        if piece.is_last {
            self.ended.insert(position);
            log.close(opener);
        }
        !had_failed && log.failure().is_some()
    }

    /// Nothing more comes.
    fn finish(mut self, opener: &TargetOpener) -> HostLogs {
        if self.has_begun {
            // Those of which nothing came exist as well, so that no older file is taken for one of them.
            let open = |(position, _): &(usize, &mut WrittenLog)| !self.ended.contains(position);
            self.logs.iter_mut().enumerate().filter(open).for_each(|(_, log)| log.close(opener));
            self.logs.iter_mut().for_each(|log| log.append_shared(opener));
        }
        let mut files: BTreeMap<&Path, Option<String>> = BTreeMap::new();
        for (position, log) in self.logs.iter().enumerate() {
            let why = match log.failure() {
                Some(why) => Some(why.to_string()),
                None if self.ended.contains(&position) => None,
                None => Some("its end has not come".to_string()),
            };
            let known = files.entry(log.path()).or_default();
            *known = known.take().or(why);
        }
        let count = u32::capped(files.len());
        let incomplete = files.into_iter().filter_map(|(path, why)| Some((shown(path), why?)));
        HostLogs { files: count, incomplete: incomplete.collect() }
    }
}

#[cfg(test)]
mod tests {
    use fiord_options::job::Measure;

    use super::*;

    fn source(name: &str, sections: &[Section]) -> Source {
        Source { sections: Sections::of(sections, &[]), name: name.to_string(), number: 1, hosts: 2 }
    }

    fn told(list: &[Log]) -> Logs {
        Logs { keywords: (4, 1024, 4096), list: list.to_vec() }
    }

    #[test]
    fn names_are_made_here_of_prefix_kind_worker_and_host() {
        let with = |prefix: &str| Section::new("a/b").with([(Measure::write_bw_log, prefix)]);
        let names = |host: &str, prefix: &str, log: Log| {
            let planned = source(host, &[with(prefix)]).paths(&told(&[log]));
            planned.map(|logs| logs.iter().map(|log| shown(&log.path)).collect::<Vec<String>>().join(" "))
        };
        let log = Log { job: 2, ..Log::default() };
        assert_eq!(names("db3", "d/l", log).unwrap(), "d/l_bw.3.log.db3");
        assert_eq!(
            names("user@db3:22", "$hostname-$hostnum-$ncpus", log).unwrap(),
            "user@db3:22-1-4_bw.3.log.user@db3:22"
        );
        assert_eq!(names("../../etc/x\u{1b}\n", "l", log).unwrap(), "l_bw.3.log..._.._etc_x__");
        // The numbers of a host that tells anything.
        assert_eq!(names("h", "l", Log { job: u32::MAX, ..log }).unwrap(), "l_bw.4294967296.log.h");
        for wrong in [Log { section: 1, ..log }, Log { kind: 1, ..log }, Log { kind: 200, ..log }] {
            assert!(names("h", "l", wrong).is_err(), "{wrong:?}");
        }
        let bare = Section::new("a/b").with([(Measure::write_iops_log, "")]);
        let planned = source("h", &[bare]).paths(&told(&[Log { kind: 1, ..log }])).unwrap();
        assert!(planned[0].path.parent().is_none_or(|parent| parent.as_os_str().is_empty()));
    }

    #[test]
    fn logs_that_are_one_file_are_in_the_order_of_their_jobs_and_older_ones_are_replaced() {
        let directory = std::env::temp_dir().join(format!("fiord-logs-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let prefix = directory.join("l");
        let section = Section::new("a")
            .with([(Measure::write_bw_log, prefix.to_str().unwrap()), (Measure::per_job_logs, "0")]);
        let mut prepared = Prepare { name: "h".to_string(), ..Prepare::default() };
        prepared.sections = Sections::of(&[section], &[]);
        let path = directory.join("l_bw.log.h");
        std::fs::write(&path, "old").unwrap();
        let mut files = LogFiles::of(&[prepared.clone()]);
        files.plan(0, &told(&[Log::default(), Log { clone: 1, job: 1, ..Log::default() }])).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old", "nothing is opened before bytes come");
        let piece = |log: u32, text: &str| LogPiece { log, bytes: text.into(), is_last: text.is_empty() };
        for (log, text) in [(1, "2\n"), (0, "1\n"), (1, "2\n"), (0, ""), (1, "")] {
            files.write(0, piece(log, text));
        }
        assert_eq!(files.finish(), [HostLogs { files: 1, incomplete: Vec::new() }]);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n2\n2\n");
        // Of another run only the second came, and not its end.
        let mut files = LogFiles::of(&[prepared]);
        files.plan(0, &told(&[Log::default(), Log { clone: 1, job: 1, ..Log::default() }])).unwrap();
        files.write(0, piece(1, "2\n"));
        let logs = files.finish();
        assert_eq!((logs[0].files, logs[0].incomplete.len()), (1, 1), "{logs:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "2\n");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
