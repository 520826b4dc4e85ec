//! A history that several processes use, some of which are killed.
//!
//! Invariant: whatever happens, the database is sound and contains a run completely or not at all.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

#[path = "../../report/tests/fixture/mod.rs"]
mod fixture;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use fiord_report::{RunReport, Written};
use fiord_store::{
    Cause, Conclusion, Draft, Filter, Headline, History, KeptRun, Printed, Retention, RunFacts, RunKind,
    RunSelector, Source, StudyIdentity,
};
use rusqlite::Connection;

/// A place for a history, removed on drop.
struct TempHistory(PathBuf);

impl TempHistory {
    fn new() -> TempHistory {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("store-{}-{number}", std::process::id());
        TempHistory(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
    }

    fn file(&self) -> PathBuf {
        self.0.join("fiord/history.db")
    }

    /// Size of the database and its log.
    fn bytes(&self) -> u64 {
        let files = fs::read_dir(self.0.join("fiord")).unwrap().map(Result::unwrap);
        let counted = files.filter(|file| !file.file_name().to_string_lossy().ends_with("-shm"));
        counted.map(|file| file.metadata().unwrap().len()).sum()
    }

    fn history(&self) -> History {
        History::open(&self.file()).unwrap()
    }
}

impl Drop for TempHistory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn facts(title: &str) -> RunFacts {
    RunFacts {
        kind: RunKind::Fio,
        parent: None,
        title: title.to_owned(),
        command: "fiord --name='a b'".to_owned(),
        targets: vec!["/mnt/a\nb".to_owned(), "/mnt/a/f".to_owned()],
        host: "vole".to_owned(),
        fiord_version: "0.1.0".to_owned(),
        started_ms: 1_795_223_812_738,
        utc_offset_s: -3_600,
        elapsed_ms: 250,
        exit_status: Some(0),
        tag: None,
        kernel: Some("6.12.1-amd64".to_owned()),
    }
}

/// A run with these facts.
fn run(facts: RunFacts) -> Draft<'static> {
    Draft {
        facts,
        printed: Some(Printed { headings: "starting\n", report: fixed() }),
        heading: None,
        summary: None,
    }
}

/// A study that has begun.
fn study(title: &str) -> Draft<'static> {
    let facts = RunFacts { kind: RunKind::Sweep, elapsed_ms: 0, exit_status: None, ..facts(title) };
    Draft { facts, printed: None, heading: Some("depths on /mnt\n"), summary: None }
}

fn fixed() -> &'static RunReport {
    static REPORT: std::sync::LazyLock<RunReport> = std::sync::LazyLock::new(fixture::run);
    &REPORT
}

fn ids(history: &History, filter: &Filter) -> Vec<i64> {
    history.list(filter).unwrap().iter().map(|entry| entry.id).collect()
}

#[test]
fn a_run_is_read_back_as_it_was_recorded() {
    let place = TempHistory::new();
    let id = place.history().keep(&run(facts("mix"))).unwrap();
    let stored = place.history().load(RunSelector::Id(id)).unwrap().unwrap();
    assert_eq!(stored.printed, Some(("starting\n".to_owned(), fixture::run())));
    assert_eq!(stored.summary, None);
    assert_eq!(stored.entry.facts, facts("mix"));
    assert_eq!((stored.entry.headline.clone(), stored.heading), (fiord_store::Headline::of(fixed()), None));
    assert_eq!(place.history().list(&Filter::default()).unwrap(), [stored.entry]);
}

#[test]
fn runs_are_found_by_number_age_target_and_study() {
    let place = TempHistory::new();
    let mut history = place.history();
    let first = history.keep(&run(facts("first"))).unwrap();
    let study = history.keep(&study("sweep")).unwrap();
    let part = history.keep(&run(RunFacts { parent: Some(study), ..facts("part") })).unwrap();
    let other = RunFacts { targets: vec!["/mnt/ab".to_owned()], ..facts("other") };
    let other = history.keep(&run(other)).unwrap();

    let title = |which| history.load(which).unwrap().map(|stored| stored.entry.facts.title);
    assert_eq!(title(RunSelector::Id(part)).as_deref(), Some("part"));
    assert_eq!(title(RunSelector::Last(0)).as_deref(), Some("other"));
    assert_eq!(title(RunSelector::Last(1)).as_deref(), Some("sweep"));
    assert_eq!(title(RunSelector::Last(9)), None);
    assert_eq!(title(RunSelector::Id(99)), None);

    let of = |filter: Filter| ids(&history, &filter);
    assert_eq!(of(Filter::default()), [other, study, first]);
    assert_eq!(of(Filter { limit: Some(2), ..Filter::default() }), [other, study]);
    assert_eq!(of(Filter { parent: Some(study), ..Filter::default() }), [part]);
    for (target, found) in [("/mnt/a", &[study, first][..]), ("/mnt/ab", &[other]), ("/mnt/a/f/g", &[])] {
        assert_eq!(of(Filter { target: Some(target.to_owned()), ..Filter::default() }), found, "{target}");
    }
}

#[test]
fn what_later_runs_have_written_is_known_without_their_reports() {
    let place = TempHistory::new();
    let mut history = place.history();
    let mut report = fixture::run();
    report.boot_id = Some("boot".to_owned());
    report.devices = vec![Default::default(); 2];
    for (used, (name, to_sectors)) in report.devices.iter_mut().zip([("sda", 200), ("sdb", 100)]) {
        used.device.name = name.to_owned();
        (used.start.write_sectors, used.end.write_sectors) = (100, to_sectors);
    }
    let printed = Some(Printed { headings: "", report: &report });
    let [first, second] = ["first", "second"].map(|title| {
        let draft = Draft { facts: facts(title), printed, heading: None, summary: None };
        history.keep(&draft).unwrap()
    });
    let (boot_id, device) = (Some("boot".to_owned()), "sda".to_owned());
    let expected = Written { boot_id, device, from_sectors: 100, to_sectors: 200 };
    assert_eq!(history.written_after(first).unwrap(), std::slice::from_ref(&expected), "not to sdb");
    assert_eq!(history.written_after(second).unwrap(), []);
    let copy = TempHistory::new();
    copy.history().import(&[Source::History(&place.file())]).unwrap();
    assert_eq!(copy.history().written_after(0).unwrap(), [expected.clone(), expected]);
    Connection::open(place.file()).unwrap().execute_batch("DROP TABLE written").unwrap();
    let copy = TempHistory::new();
    copy.history().import(&[Source::History(&place.file())]).unwrap();
    assert_eq!(copy.history().written_after(0).unwrap(), [], "the other history began without the table");
    drop(history);
    let mut history = place.history();
    history.remove(&[first, second]).unwrap();
    assert_eq!(history.written_after(0).unwrap(), []);
}

#[test]
fn what_a_study_is_about_is_read_back_and_deleted_with_it() {
    let place = TempHistory::new();
    let mut history = place.history();
    let [one, other] = ["one", "other"].map(|title| history.keep(&study(title)).unwrap());
    let kept = |target, block_bytes, run| KeptRun { target, block_bytes, run };
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let about = StudyIdentity {
        devices: vec![words(&["wwn", "serial"]), words(&["of 1MiB, in turn"])],
        kept: vec![kept(1, 1 << 20, 7), kept(0, 1 << 20, 5), kept(0, 1 << 17, 3)],
    };
    history.identify(one, &about).unwrap();
    let expected = StudyIdentity {
        devices: vec![words(&["serial", "wwn"]), words(&["of 1MiB, in turn"])],
        kept: vec![kept(0, 1 << 17, 3), kept(0, 1 << 20, 5), kept(1, 1 << 20, 7)],
    };
    assert_eq!(place.history().identity(one).unwrap(), expected);
    assert_eq!(history.identity(other).unwrap(), StudyIdentity::default());
    assert!(history.identify(99, &about).is_err(), "of no study");
    // A history may have begun without the table.
    drop(history);
    Connection::open(place.file()).unwrap().execute_batch("DROP TABLE device").unwrap();
    let mut history = place.history();
    assert_eq!(history.identity(one).unwrap(), StudyIdentity { devices: Vec::new(), ..expected });
    history.remove(&[one]).unwrap();
    assert_eq!(history.identity(one).unwrap(), StudyIdentity::default());
}

#[test]
fn a_damaged_number_of_a_target_is_an_error() {
    let place = TempHistory::new();
    let mut history = place.history();
    let one = history.keep(&study("one")).unwrap();
    let about = StudyIdentity { devices: vec![vec!["wwn".to_owned()]], kept: Vec::new() };
    history.identify(one, &about).unwrap();
    for target in [-1, i64::MAX] {
        let file = Connection::open(place.file()).unwrap();
        file.execute("UPDATE device SET target = ?1", [target]).unwrap();
        assert!(history.identity(one).is_err(), "{target}");
    }
}

#[test]
fn a_time_beyond_what_the_database_holds_is_its_last_one() {
    let place = TempHistory::new();
    let mut history = place.history();
    let late =
        history.keep(&run(RunFacts { started_ms: u64::MAX, elapsed_ms: u64::MAX, ..facts("late") })).unwrap();
    assert_eq!(history.expired(Retention::Age { ms: 1 }, 1 << 40).unwrap(), [0; 0]);
    let read = history.load(RunSelector::Id(late)).unwrap().unwrap().entry.facts;
    assert_eq!((read.started_ms, read.elapsed_ms), (i64::MAX as u64, i64::MAX as u64));
}

#[test]
fn a_study_is_concluded_when_it_ends() {
    let place = TempHistory::new();
    let mut history = place.history();
    let id = history.keep(&study("sweep")).unwrap();
    let begun = history.load(RunSelector::Id(id)).unwrap().unwrap();
    assert_eq!((begun.entry.facts.exit_status, begun.summary, begun.printed), (None, None, None));
    assert_eq!(
        (begun.heading.as_deref(), begun.entry.headline),
        (Some("depths on /mnt\n"), Headline::default())
    );
    history.add_targets(id, &["/mnt/a/f".to_owned(), "/srv".to_owned()]).unwrap();
    assert_eq!(ids(&history, &Filter { target: Some("/srv".to_owned()), ..Filter::default() }), [id]);
    let headline = Headline {
        latency_p99_ns: Some(5),
        latency_of: Some("p99 of fdatasync".to_owned()),
        ..Headline::default()
    };
    let summary = Conclusion { json: "{}".to_owned(), text: "flat\n".to_owned(), headline: headline.clone() };
    history.conclude(id, 7, 1, &summary).unwrap();
    let ended = history.load(RunSelector::Id(id)).unwrap().unwrap();
    assert_eq!((ended.entry.facts.exit_status, ended.entry.facts.elapsed_ms), (Some(1), 7));
    assert_eq!((ended.summary, ended.entry.headline), (Some(summary), headline));
}

#[test]
fn deleted_runs_are_gone_with_their_parts_and_their_numbers() {
    let place = TempHistory::new();
    let mut history = place.history();
    let study = history.keep(&study("sweep")).unwrap();
    for _ in 0..50 {
        history.keep(&run(RunFacts { parent: Some(study), ..facts("part") })).unwrap();
    }
    let old = history.keep(&run(RunFacts { started_ms: 10, ..facts("old") })).unwrap();
    let size_before = place.bytes();

    assert_eq!(history.remove(&[study, 999]).unwrap(), [999]);
    assert_eq!(ids(&history, &Filter::default()), [old, study], "all or nothing");
    assert_eq!(history.remove(&[study, study + 1, study]).unwrap(), [0; 0]);
    assert_eq!(ids(&history, &Filter::default()), [old]);
    assert_eq!(ids(&history, &Filter { parent: Some(study), ..Filter::default() }), [0; 0]);
    assert!(place.bytes() < size_before / 4, "the space is returned");

    assert_eq!(history.remove_before(10).unwrap(), 0);
    assert_eq!(history.remove_before(u64::MAX).unwrap(), 1);
    let next = history.keep(&run(facts("next"))).unwrap();
    assert!(next > old, "a number is not reused");
    assert_sound(&place, 1);
}

/// Asserts that the database is sound, and has exactly this many complete runs.
#[track_caller]
fn assert_sound(place: &TempHistory, runs: i64) {
    let database = Connection::open(place.file()).unwrap();
    let text: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(text, "ok");
    let count = |sql: &str| database.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM run"), runs);
    assert_eq!(count("SELECT count(*) FROM report"), runs);
    assert_eq!(count("SELECT count(*) FROM target"), 2 * runs);
    assert_eq!(count("SELECT count(*) FROM pragma_foreign_key_check"), 0);
}

/// Starts a process that records this many runs in the history of `place`, which it opens for each, and prints a line
/// for each.
fn start_writer(place: &TempHistory, count: u32) -> Child {
    let mut command = fiord_testing::this_program();
    command.args(["--exact", "writer", "--nocapture"]).stdout(Stdio::piped());
    command.env("WRITE_TO", place.file()).env("WRITE_COUNT", count.to_string()).spawn().unwrap()
}

/// Not a test: the process that `start_writer` starts.
#[test]
fn writer() {
    let Some(path) = std::env::var_os("WRITE_TO") else { return };
    let count: u32 = std::env::var("WRITE_COUNT").unwrap().parse().unwrap();
    for _ in 0..count {
        History::open(Path::new(&path)).unwrap().keep(&run(facts("writer"))).unwrap();
        std::io::stdout().write_all(b"\nkept\n").unwrap();
    }
}

#[test]
fn all_runs_of_concurrent_processes_are_recorded() {
    let place = TempHistory::new();
    let writers: Vec<Child> = (0..8).map(|_| start_writer(&place, 25)).collect();
    for mut writer in writers {
        let said = BufReader::new(writer.stdout.take().unwrap()).lines();
        assert_eq!(said.filter(|line| line.as_deref().unwrap() == "kept").count(), 25);
        assert!(writer.wait().unwrap().success());
    }
    assert_sound(&place, 200);
}

#[test]
fn a_killed_process_leaves_only_complete_runs() {
    let place = TempHistory::new();
    let mut kept = 0;
    for round in 0..20 {
        let mut writer = start_writer(&place, 1000);
        let said = BufReader::new(writer.stdout.take().unwrap()).lines();
        // Killed at a different point each time: after a few runs, in the middle of the next one.
        let heard = said.filter(|line| line.as_deref().unwrap() == "kept").take(1 + round % 5).count();
        assert_eq!(heard, 1 + round % 5);
        (0..round * 97).for_each(|_| std::hint::spin_loop());
        writer.kill().unwrap();
        writer.wait().unwrap();
        let now = place.history().list(&Filter::default()).unwrap().len();
        assert!(now >= kept + heard, "{now} runs, {kept} before, {heard} heard of");
        kept = now;
        assert_sound(&place, i64::try_from(kept).unwrap());
    }
}

#[test]
fn a_database_that_is_not_a_history_is_refused_and_unchanged() {
    let place = TempHistory::new();
    fs::create_dir_all(place.file().parent().unwrap()).unwrap();
    let contents = b"not a database, and longer than its header is".repeat(100);
    fs::write(place.file(), &contents).unwrap();
    let error = History::open(&place.file()).unwrap_err();
    assert!(error.to_string().contains("move the file away"), "{error}");
    assert_eq!(fs::read(place.file()).unwrap(), contents);

    fs::remove_file(place.file()).unwrap();
    Connection::open(place.file()).unwrap().execute_batch("CREATE TABLE theirs (x INTEGER)").unwrap();
    let contents = fs::read(place.file()).unwrap();
    assert!(matches!(History::open(&place.file()).unwrap_err().cause, Cause::Foreign));
    assert_eq!(fs::read(place.file()).unwrap(), contents);
}

#[test]
fn another_schema_is_refused_with_both_numbers_and_unchanged() {
    let place = TempHistory::new();
    place.history().keep(&run(facts("kept"))).unwrap();
    let set = |number: i64| {
        let connection = Connection::open(place.file()).unwrap();
        connection.pragma_update(None, "user_version", number).unwrap();
    };
    for number in [0, 4, i64::from(i32::MAX)] {
        set(number);
        let error = History::open(&place.file()).unwrap_err();
        assert!(matches!(error.cause, Cause::OtherSchema { found, known: 1 } if found == number), "{error}");
        let (text, file) = (error.to_string(), place.file());
        assert!(text.starts_with(&format!("{}: another version of fiord", file.display())), "{text}");
        assert!(
            text.contains(&format!("(schema {number}, this one reads 1); use that fiord, or move")),
            "{text}"
        );
        assert!(History::open_existing(&file).is_err());
    }
    set(1);
    assert_eq!(place.history().load(RunSelector::Last(0)).unwrap().unwrap().entry.facts, facts("kept"));
}

#[test]
fn a_report_of_another_format_is_refused_and_its_run_is_still_listed() {
    let place = TempHistory::new();
    let mut history = place.history();
    let id = history.keep(&run(facts("kept"))).unwrap();
    let change = "UPDATE report SET body = CAST(x'13' || substr(body, 2) AS BLOB)";
    Connection::open(place.file()).unwrap().execute_batch(change).unwrap();
    let error = history.load(RunSelector::Id(id)).unwrap_err();
    assert!(matches!(error.cause, Cause::OtherReport { found: 19, known: 5 }), "{error}");
    let remedy = "use that fiord, or delete the run with fiord history rm";
    assert!(error.to_string().ends_with(remedy), "{error}");
    assert_eq!(ids(&history, &Filter::default()), [id]);
    assert_eq!(history.remove(&[id]).unwrap(), [0; 0]);
}

#[test]
fn a_history_is_created_only_to_record_a_run() {
    let place = TempHistory::new();
    assert!(History::open_existing(&place.file()).unwrap().is_none());
    assert!(!place.0.exists());
    drop(place.history());
    assert!(History::open_existing(&place.file()).unwrap().is_some());
    let blocked = place.file().join("below/history.db");
    let error = History::open(&blocked).unwrap_err();
    assert!(error.to_string().contains("XDG_STATE_HOME"), "{error}");
}

#[test]
fn the_write_ahead_log_is_emptied_now_and_then() {
    let place = TempHistory::new();
    let log = place.0.join("fiord/history.db-wal");
    let lengths: Vec<u64> = (0..200)
        .map(|_| {
            place.history().keep(&run(facts("one"))).unwrap();
            fs::metadata(&log).unwrap().len()
        })
        .collect();
    let (longest, emptied) =
        (lengths.iter().max().unwrap(), lengths.iter().filter(|length| **length == 0).count());
    assert!(*longest <= 1 << 20 && emptied > 0 && emptied < 50, "{lengths:?}");
    assert_sound(&place, 200);
}

#[test]
fn the_write_ahead_log_is_on() {
    let place = TempHistory::new();
    drop(place.history());
    let database = Connection::open(place.file()).unwrap();
    let mode: String = database.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

#[test]
fn a_policy_deletes_what_is_older_or_more_and_spares_what_is_still_needed() {
    const DAY_MS: u64 = 86_400_000;
    let place = TempHistory::new();
    let mut history = place.history();
    let at = |day: u64, title: &str| RunFacts { started_ms: day * DAY_MS, ..facts(title) };
    let named = |day, tag: &str| run(RunFacts { tag: Some(tag.to_owned()), ..at(day, tag) });
    let [abandoned, active] = [9, 38].map(|last_part| {
        let facts = RunFacts { exit_status: None, ..at(1, "never ended") };
        let id = history.keep(&Draft { facts, ..study("") }).unwrap();
        history.keep(&run(RunFacts { parent: Some(id), ..at(last_part, "part") })).unwrap();
        id
    });
    let [first_tagged, tagged] = [2, 3].map(|day| history.keep(&named(day, "before")).unwrap());
    let plain: Vec<i64> = (4..=40).map(|day| history.keep(&run(at(day, "plain"))).unwrap()).collect();

    let now_ms = 40 * DAY_MS;
    let month = Retention::Age { ms: 30 * DAY_MS };
    let expired = history.expired(month, now_ms).unwrap();
    let expected: Vec<i64> = [abandoned, first_tagged].into_iter().chain(plain[..6].to_vec()).collect();
    assert_eq!(expired, expected, "oldest first; none is deleted yet");
    assert_eq!(history.retention().unwrap(), None);
    assert_eq!(history.retain(Some(month), now_ms).unwrap(), 8);
    assert_eq!(history.retention().unwrap(), Some(month));
    assert_eq!(ids(&history, &Filter { parent: Some(abandoned), ..Filter::default() }), [0; 0]);
    assert_eq!(ids(&history, &Filter { parent: Some(active), ..Filter::default() }), [active + 1]);

    // What is stored later deletes by the time of its end, but never itself.
    history.keep(&run(at(41, "next"))).unwrap();
    assert!(!ids(&history, &Filter::default()).contains(&plain[6]));
    assert_eq!(history.retain(Some(Retention::Runs(1)), now_ms).unwrap(), 29);
    let last = history.keep(&run(at(0, "by a clock that was set back"))).unwrap();
    assert_eq!(ids(&history, &Filter::default()), [last, tagged, active]);

    assert_eq!(history.retain(None, now_ms).unwrap(), 0);
    for _ in 0..3 {
        history.keep(&run(facts("kept"))).unwrap();
    }
    assert_eq!((history.retention().unwrap(), ids(&history, &Filter::default()).len()), (None, 6));
}

#[test]
fn a_history_with_a_policy_keeps_the_schema_that_older_versions_read() {
    let place = TempHistory::new();
    let tables = || {
        let database = Connection::open(place.file()).unwrap();
        let version: i64 = database.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        let count = "SELECT count(*) FROM sqlite_schema WHERE type = 'table'";
        (version, database.query_row(count, [], |row| row.get::<_, i64>(0)).unwrap())
    };
    place.history().keep(&run(facts("one"))).unwrap();
    let before = tables();
    place.history().retain(Some(Retention::Runs(3)), 0).unwrap();
    assert_eq!(tables(), (before.0, before.1 + 1));
    place.history().retain(None, 0).unwrap();
    assert_eq!(tables(), before);
}

#[test]
fn a_run_is_stored_even_if_nothing_can_be_deleted() {
    let place = TempHistory::new();
    let mut history = place.history();
    history.retain(Some(Retention::Runs(1)), 0).unwrap();
    let refuses = "CREATE TRIGGER refuses BEFORE DELETE ON run BEGIN SELECT RAISE(ABORT, 'no'); END";
    Connection::open(place.file()).unwrap().execute_batch(refuses).unwrap();
    for _ in 0..5 {
        history.keep(&run(facts("one"))).unwrap();
    }
    assert_eq!(ids(&history, &Filter::default()).len(), 5);
    assert!(history.retain(Some(Retention::Runs(1)), 0).is_err());
    Connection::open(place.file()).unwrap().execute_batch("DROP TRIGGER refuses").unwrap();
    history.keep(&run(facts("one"))).unwrap();
    assert_eq!(ids(&history, &Filter::default()).len(), 1, "a later run makes up for it");
}

#[test]
fn a_history_with_a_policy_does_not_grow_and_returns_its_space() {
    let place = TempHistory::new();
    for _ in 0..200 {
        place.history().keep(&run(facts("one"))).unwrap();
    }
    let many = place.bytes();
    place.history().retain(Some(Retention::Runs(5)), 0).unwrap();
    let few = place.bytes();
    assert!(few < many / 8, "{few} of {many} bytes");
    let sizes: Vec<u64> = (0..200)
        .map(|_| {
            place.history().keep(&run(facts("one"))).unwrap();
            place.bytes()
        })
        .collect();
    // The log is emptied at 1 MiB.
    assert!(sizes.iter().all(|size| *size < 2 * few + (1 << 20) + (1 << 17)), "{few}: {sizes:?}");
    assert_sound(&place, 5);
}

#[test]
fn concurrent_and_killed_processes_leave_a_sound_history_that_keeps_its_policy() {
    let place = TempHistory::new();
    place.history().retain(Some(Retention::Runs(7)), 0).unwrap();
    for round in 0..10 {
        let mut writers: Vec<Child> = (0..3).map(|_| start_writer(&place, 1000)).collect();
        let said = BufReader::new(writers[0].stdout.take().unwrap()).lines();
        said.filter(|line| line.as_deref().unwrap() == "kept").take(2 + round).for_each(drop);
        (0..round * 97).for_each(|_| std::hint::spin_loop());
        writers.iter_mut().for_each(|writer| writer.kill().unwrap());
        for writer in &mut writers {
            writer.wait().unwrap();
        }
        let runs = place.history().list(&Filter::default()).unwrap().len();
        assert!(runs >= 7.min(2 + round), "{runs} runs");
        assert_sound(&place, i64::try_from(runs).unwrap());
    }
    place.history().keep(&run(facts("last"))).unwrap();
    assert_sound(&place, 7);
}
