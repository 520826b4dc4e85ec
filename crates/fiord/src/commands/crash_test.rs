//! `fiord crash-test`: whether synced writes survive a power cut.
//!
//! Invariant: writes only to its own file, or to a device named with `--overwrite` that is not in use. The journal is
//! on disk before the writes that it announces.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use fiord_report::json::Writer;
use fiord_report::path::shown;
use fiord_report::table::{self, Cell, Column, Table, shown_bytes};
use fiord_session::claims;
use fiord_stats::Capped;
use fiord_sys::errno::error_text;
use fiord_sys::file::{self, Advice};
use fiord_sys::stat::{self, DeviceNumber, InodeKind};
use fiord_sys::sysfs::Sysfs;
use fiord_sys::{clock, signal};
use fiord_worker::TargetOpener;

use super::parse;
use crate::arguments::{self, CommandError, Invocation};
use crate::crash::block::{self, Loss};
use crate::crash::journal::{Journal, Writes};
use crate::output::{Output, remark};
use crate::output_file::OutputFile;
use crate::subcommand::Subcommands;
use crate::{layout, status};

/// The file that is written in a directory.
const DATA: &str = "fiord-crash-test.data";

/// The unit of writes.
const BLOCK_BYTES: u64 = 4096;

/// Maximum number of losses in text output.
const LINES_MAX: usize = 50;

/// Tests whether synced writes survive a power cut: `run` writes until the power
/// is cut; after the restart, `check` reports whether every block that was synced
/// before the cut is there. The journal has to survive the cut: put it on another
/// disk, or on another machine (`--journal - | ssh HOST 'cat > FILE'`).
#[derive(clap::Parser)]
#[command(name = "fiord crash-test", verbatim_doc_comment, after_help = EXAMPLES)]
pub(super) struct Options {
    #[command(subcommand)]
    phase: Phase,
}

const EXAMPLES: &str = "\
Examples:
  fiord crash-test run /mnt/new --journal - | ssh HOST 'cat > journal'
  fiord crash-test check /mnt/new --journal journal
";

#[derive(clap::Subcommand)]
enum Phase {
    /// Write and sync until the power is cut
    Run(RunOptions),
    /// Check after the restart whether every synced block is there
    Check(CheckOptions),
}

#[derive(clap::Args)]
struct RunOptions {
    /// Directory to write a file in, or a block device with --overwrite
    target: PathBuf,
    /// File for the journal, on another disk; - for standard output
    #[arg(long)]
    journal: PathBuf,
    /// Space to write to
    #[arg(long, default_value = "64M", value_parser = parse::size)]
    size: u64,
    /// Writes of 4 KiB between two syncs
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    per_sync: u64,
    /// Stop after this time instead of at the cut
    #[arg(long, value_parser = parse::positive_duration)]
    time: Option<Duration>,
    /// Stop after this many syncs
    #[arg(long)]
    syncs: Option<u64>,
    /// Allow a device as the target; its contents are destroyed
    #[arg(long)]
    overwrite: bool,
    /// Print what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON at the end (described in docs/json.md)
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct CheckOptions {
    /// The target that was written
    target: PathBuf,
    /// The journal of the run
    #[arg(long)]
    journal: PathBuf,
    /// Print JSON (described in docs/json.md)
    #[arg(long)]
    json: bool,
}

impl Invocation for Options {
    fn run(self, _: &Subcommands) -> Result<ExitCode, CommandError> {
        match &self.phase {
            Phase::Run(options) => write_all(options),
            Phase::Check(options) => check(options),
        }
    }
}

/// The file or device that is written.
fn target_of(target: &Path) -> PathBuf {
    if target.is_dir() { target.join(DATA) } else { target.to_path_buf() }
}

/// Checks the target before anything is written; returns the space to use.
fn usable(options: &RunOptions, path: &Path, opener: &TargetOpener) -> Result<u64, CommandError> {
    let why = match stat::stat(path) {
        Ok(found) if found.kind == InodeKind::Block => {
            opener.may_overwrite(path)?;
            return on_device(options, path, found.special);
        }
        Ok(_) if options.target.is_dir() => "left by an earlier test; check it, or remove it".to_string(),
        Ok(_) => "neither a directory nor a device: name the directory".to_string(),
        Err(_) if options.target.is_dir() => {
            on_other_disk(&options.target, &options.journal)?;
            return Ok(options.size);
        }
        Err(error) => format!("{}; name a directory, or a device with --overwrite", error_text(&error)),
    };
    Err(CommandError::from(format!("{}: {why}", shown(path))))
}

/// The space to use on a device that is not in use.
fn on_device(options: &RunOptions, path: &Path, number: DeviceNumber) -> Result<u64, CommandError> {
    if !options.overwrite {
        let what = "the contents of this device would be destroyed; --overwrite allows it";
        return Err(CommandError { why: format!("{}: {what}", shown(path)), status: status::REFUSED });
    }
    let bytes = Sysfs::default().block_device_of(number).and_then(|device| device.size_bytes());
    let bytes = bytes.map_err(|error| format!("{}: {}", shown(path), error_text(&error)))?;
    Ok(options.size.min(bytes))
}

/// A journal on the disk that loses power proves nothing.
fn on_other_disk(directory: &Path, journal: &Path) -> Result<(), String> {
    if journal == Path::new("-") {
        return Ok(());
    }
    let beside = journal.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev());
    match (device(directory), device(beside)) {
        (Ok(one), Ok(other)) if one == other => Err(format!(
            "the journal {} would be on the file system under test, and lost with it; name a file on another disk, \
             or - for standard output",
            shown(journal)
        )),
        _ => Ok(()),
    }
}

/// Where the journal goes.
enum Log {
    File(File),
    Stdout(Output),
}

impl Log {
    /// A new file, or standard output for `-`.
    fn open(journal: &Path, opener: &TargetOpener) -> Result<Log, CommandError> {
        if journal == Path::new("-") {
            return Ok(Log::Stdout(Output::stdout()));
        }
        Ok(Log::File(opener.create(journal, false)?))
    }

    /// Appends lines, and syncs them.
    fn add(&mut self, text: &str) -> io::Result<()> {
        match self {
            Log::File(file) => {
                file.write_all(text.as_bytes())?;
                file::fdatasync(file)
            }
            Log::Stdout(output) => output.append(text.as_bytes()),
        }
    }
}

/// Writes and syncs until the power is cut, or until the test is to stop.
fn write_all(options: &RunOptions) -> Result<ExitCode, CommandError> {
    if options.json && !options.dry_run && options.journal == Path::new("-") {
        return Err("--json and --journal=- both need standard output".to_string().into());
    }
    let path = target_of(&options.target);
    let opener = TargetOpener::default();
    claims::output("TARGET", &path).map_err(|why| CommandError {
        why: format!("{}: it {why}; {}", shown(&path), claims::REMEDY),
        status: status::REFUSED,
    })?;
    if options.journal != Path::new("-") {
        OutputFile::new("--journal", &options.journal, None)?;
    }
    let writes = writes_to(options, &path, &opener)?;
    if options.dry_run {
        let text = format!(
            "would write blocks of 4 KiB at random in the first {} of {}, with a sync after each {}\n",
            shown_bytes(writes.blocks * writes.block_bytes),
            shown(&path),
            options.per_sync
        );
        return arguments::print(if options.json { run_json(options, writes, &path, None) } else { text });
    }
    let target = Target { file: opener.overwrite(&path)?, path };
    let log = Log::open(&options.journal, &opener)?;
    // Without handlers the test still runs until it is killed.
    let _ = signal::record_stop_requests();
    target.lay_out(options, writes)?;
    let syncs = write_rounds(options, writes, &target, log)?;
    if options.json {
        arguments::print(run_json(options, writes, &target.path, Some(syncs)))?;
    } else {
        remark(&format!(
            "{syncs} syncs of {} writes each; cut the power, then run check\n",
            options.per_sync
        ));
    }
    Ok(ExitCode::from(signal::stop_requested().map_or(status::SUCCESS, status::of_signal)))
}

/// What was written, or in a dry run, without `syncs`, would be.
fn run_json(options: &RunOptions, writes: Writes, path: &Path, syncs: Option<u64>) -> String {
    Writer::document(|json| {
        json.string("target", &shown(path));
        json.string("journal", &shown(&options.journal));
        json.integer("size_bytes", writes.blocks * writes.block_bytes);
        json.integer("block_bytes", writes.block_bytes);
        json.integer("writes_per_sync", writes.per_sync);
        match syncs {
            Some(syncs) => json.integer("syncs", syncs),
            None => json.null("syncs"),
        }
        match signal::stop_requested() {
            Some(number) => json.string("ended_by", signal::name(number)),
            None => json.null("ended_by"),
        }
    })
}

/// The writes of this run, if its target may be written.
fn writes_to(options: &RunOptions, path: &Path, opener: &TargetOpener) -> Result<Writes, CommandError> {
    let bytes = usable(options, path, opener)?;
    let blocks = bytes / BLOCK_BYTES;
    if blocks == 0 {
        let bytes = shown_bytes(bytes);
        return Err(format!(
            "{}: {bytes} is less than one block of 4 KiB; give a larger --size",
            shown(path)
        )
        .into());
    }
    Ok(Writes { seed: clock::realtime_ns(), blocks, block_bytes: BLOCK_BYTES, per_sync: options.per_sync })
}

/// The file or device under test.
struct Target {
    file: File,
    path: PathBuf,
}

impl Target {
    fn failed(&self, what: &str, error: &io::Error) -> CommandError {
        CommandError::from(format!("{}: {what}: {}", shown(&self.path), error_text(error)))
    }

    /// Gives a file its full length, and syncs it: the test is about its data, and not about the file system's
    /// metadata.
    fn lay_out(&self, options: &RunOptions, writes: Writes) -> Result<(), CommandError> {
        if !self.file.metadata().is_ok_and(|found| found.is_file()) {
            return Ok(());
        }
        file::truncate(&self.file, writes.blocks * writes.block_bytes)
            .map_err(|error| self.failed("lay out", &error))?;
        file::fsync(&self.file).map_err(|error| self.failed("sync", &error))?;
        let directory = File::open(&options.target).and_then(|directory| directory.sync_all());
        directory.map_err(|error| self.failed("sync its directory", &error))
    }
}

/// Writes and syncs, round after round, each announced in the journal; the syncs that completed.
fn write_rounds(
    options: &RunOptions,
    writes: Writes,
    target: &Target,
    mut log: Log,
) -> Result<u64, CommandError> {
    let place = match &log {
        Log::Stdout(_) => "standard output".to_string(),
        Log::File(_) => shown(&options.journal),
    };
    let journal_failed = |error: io::Error| format!("{place}: no journal: {}", error_text(&error));
    log.add(&(writes.head() + "begin 1\n")).map_err(journal_failed)?;
    let since_ns = clock::monotonic_ns();
    let is_over = |syncs: u64| {
        let elapsed = Duration::from_nanos(clock::monotonic_ns() - since_ns);
        options.time.is_some_and(|time| elapsed >= time)
            || options.syncs.is_some_and(|most| syncs >= most)
            || signal::stop_requested().is_some()
    };
    let mut buffer = vec![0; usize::capped(writes.block_bytes)];
    let mut syncs = 0;
    while !is_over(syncs) {
        let round = syncs + 1;
        for (place, number) in writes.of_round(round) {
            block::fill(&mut buffer, writes.seed, place, number);
            let written = target.file.write_all_at(&buffer, place * writes.block_bytes);
            written.map_err(|error| target.failed("write", &error))?;
        }
        file::fdatasync(&target.file).map_err(|error| target.failed("sync", &error))?;
        log.add(&format!("synced {round}\nbegin {}\n", round + 1)).map_err(journal_failed)?;
        syncs = round;
    }
    Ok(syncs)
}

fn check(options: &CheckOptions) -> Result<ExitCode, CommandError> {
    let mut text = String::new();
    let read = File::open(&options.journal).and_then(|mut file| file.read_to_string(&mut text));
    read.map_err(|error| format!("{}: {}", shown(&options.journal), error_text(&error)))?;
    let journal = Journal::parse(&text).map_err(|why| format!("{}: {why}", shown(&options.journal)))?;
    let path = target_of(&options.target);
    let failed = |error: io::Error| format!("{}: {}", shown(&path), error_text(&error));
    let target = File::open(&path).map_err(failed)?;
    // Data is to be read from the disk and not from the page cache. If the cache cannot be dropped, the restart has
    // done so.
    let _ = file::advise(&target, Advice::DontNeed, 0, 0);
    let Writes { seed, block_bytes, .. } = journal.writes;
    let mut buffer = vec![0; usize::capped(block_bytes)];
    let expected = journal.expected();
    let mut losses = Vec::new();
    for (place, numbers) in &expected {
        let at = place * block_bytes;
        buffer.fill(0);
        // A file that became shorter has lost the blocks beyond its end.
        match target.read_exact_at(&mut buffer, at) {
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(failed(error).into()),
            Ok(()) | Err(_) => {}
        }
        if let Some(loss) = block::loss(&buffer, seed, *place, numbers) {
            losses.push((at, numbers[0], loss));
        }
    }
    let code = if losses.is_empty() { status::SUCCESS } else { status::LOST };
    let page = page(&journal, expected.len(), &losses, options.json);
    arguments::print(page)?;
    Ok(ExitCode::from(code))
}

/// The verdict, and what was lost.
fn page(journal: &Journal, blocks: usize, losses: &[(u64, u64, Loss)], json: bool) -> String {
    let mut lost = Table::new([
        Column::new("offset_bytes", "OFFSET"),
        Column::new("kind", "KIND"),
        Column::new("expected_write", "EXPECTED WRITE"),
        Column::new("found_write", "FOUND WRITE"),
        Column::new("found_offset_bytes", "FOUND OFFSET"),
    ]);
    let lines = if json { losses.len() } else { losses.len().min(LINES_MAX) };
    for (at, number, loss) in &losses[..lines] {
        let (write, place) = match loss {
            Loss::Stale(number) => (Some(*number), None),
            Loss::Misplaced(block) => (None, Some(block * journal.writes.block_bytes)),
            Loss::Zeroes | Loss::Torn | Loss::Other => (None, None),
        };
        lost.rows.push(vec![
            Cell::Count(*at),
            Cell::Text(loss.word().to_string()),
            Cell::Count(*number),
            Cell::count(write),
            Cell::count(place),
        ]);
    }
    if json {
        let mut result = Table::new([
            Column::new("syncs", "SYNCS"),
            Column::new("blocks", "BLOCKS"),
            Column::new("lost", "LOST"),
        ]);
        result.rows.push(vec![
            Cell::Count(journal.synced),
            Cell::Count(blocks as u64),
            Cell::Count(losses.len() as u64),
        ]);
        return table::json(&[("result", &result), ("losses", &lost)]);
    }
    let synced = format!("{} syncs, {blocks} blocks synced before the cut", journal.synced);
    if losses.is_empty() {
        return format!("{synced}: all are there\n");
    }
    let more = match losses.len() - lines {
        0 => String::new(),
        more => format!("and {more} more (--json lists all)\n"),
    };
    format!("{synced}: {} LOST\n\n{}{more}", losses.len(), lost.text(layout::width()))
}
