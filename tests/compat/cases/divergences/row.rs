//! A row of docs/divergences.md as a case: what is seen of each program.
//!
//! Invariant: the page describes Debian's fio 3.33, so what is expected of fio is compared with that version alone.

use std::fs;
use std::path::Path;
use std::process::Command;

use fiord_compat::compare::equal;
use fiord_compat::program::finish;
use fiord_compat::verdict::Verdict;
use fiord_compat::{Case, Pair, Ran, case, versions};

/// What is seen of a run.
pub enum Seen {
    /// Exit status 0.
    Accepted,
    /// Any other exit status.
    Refused,
    /// Text on standard output or standard error.
    Prints(&'static str),
    /// No such text on either.
    Omits(&'static str),
    /// The names of the jobs in the JSON document.
    Jobs(&'static [&'static str]),
    /// A value of the first job in the JSON document: its place, as a JSON pointer, and its JSON text; `null` if it is not
    /// there.
    Job(&'static str, &'static str),
    /// A file that is left, and its size.
    File(&'static str, u64),
    /// A file that is not there.
    NoFile(&'static str),
    /// What is true of the run, and the check of it.
    Is(&'static str, fn(&Ran) -> Result<bool, String>),
}

/// A file that is there before the run.
pub enum Given {
    /// With this text.
    Text(&'static str, &'static str),
    /// With this many bytes, none of them zero.
    Bytes(&'static str, u64),
}

/// A case that shows a row.
pub struct Row {
    /// The part of the case's name behind `divergences/`.
    pub name: &'static str,
    /// `{device}` is a loop device of 1 MiB.
    pub args: &'static str,
    /// The arguments of a second run of each program in its directory, if any: then it is the second that is seen.
    pub then: &'static str,
    /// What is there before the run.
    pub files: &'static [Given],
    /// What is seen of fio.
    pub fio: &'static [Seen],
    /// What is seen of fiord.
    pub fiord: &'static [Seen],
}

/// The bytes of a file that a run left.
pub fn bytes(ran: &Ran, name: &str) -> Result<Vec<u8>, String> {
    fs::read(ran.dir.join(name)).map_err(|error| format!("{name}: {error}"))
}

/// What a row leaves out.
pub const ROW: Row = Row { name: "", args: "", then: "", files: &[], fio: &[], fiord: &[] };

impl Seen {
    fn check(&self, ran: &Ran) -> Verdict {
        let printed = |text: &str| ran.stdout.contains(text) || ran.stderr.contains(text);
        match *self {
            Seen::Accepted => equal("exit status", 0, ran.status),
            Seen::Refused => equal("exit status is not 0", true, ran.status != 0),
            Seen::Prints(text) => equal(&format!("prints {text:?}"), true, printed(text)),
            Seen::Omits(text) => equal(&format!("prints {text:?}"), false, printed(text)),
            Seen::Jobs(names) => {
                let found = ran.jobs()?.iter().map(|job| job["jobname"].as_str().unwrap_or_default());
                equal("jobs", names.to_vec(), found.collect())
            }
            Seen::Job(place, text) => {
                let job = ran.jobs()?.first().ok_or("no job")?;
                let found = job.pointer(place).map_or_else(|| "null".to_string(), ToString::to_string);
                equal(place, text, &found)
            }
            Seen::File(name, size) => {
                let found = ran.files()?.into_iter().find(|file| file.0 == name);
                equal("file", Some((name.to_string(), size)), found)
            }
            Seen::NoFile(name) => equal(name, false, ran.files()?.iter().any(|file| file.0 == name)),
            Seen::Is(what, check) => equal(what, true, check(ran)?),
        }
        .map_err(|why| why.replace("fio has", "expected").replace("fiord ", "found "))
    }
}

/// The first that is not seen of a run of `program`.
fn expect(program: &str, seen: &[Seen], ran: &Ran) -> Verdict {
    seen.iter().try_for_each(|seen| seen.check(ran).map_err(|why| format!("of {program}: {why}")))
}

impl Row {
    /// The case: both programs are run, and what is seen of each is compared with the row.
    pub fn case(&'static self) -> Case {
        let mut case = case(format!("divergences/{}", self.name), self.args)
            .env("COMPAT_COUNT", "2")
            .env("COMPAT_KEY", "size");
        for file in self.files {
            case = match *file {
                Given::Text(path, text) => case.text(path, text),
                Given::Bytes(path, size) => case.bytes(path, size),
            };
        }
        if self.args.contains("{device}") {
            case = case.on_loop_device(1 << 20);
        }
        case.premise(|pair: &Pair| {
            if self.then.is_empty() {
                return self.expect_of_fio(pair, &pair.fio);
            }
            let mut again = self.again(&pair.programs.0, &pair.fio)?;
            again.notes_before_json = true;
            self.expect_of_fio(pair, &again)
        })
        .check(|pair: &Pair| {
            if self.then.is_empty() {
                return expect("fiord", self.fiord, &pair.fiord);
            }
            equal("exit statuses of the first runs", (0, 0), (pair.fio.status, pair.fiord.status))?;
            expect("fiord", self.fiord, &self.again(&pair.programs.1, &pair.fiord)?)
        })
    }

    fn expect_of_fio(&self, pair: &Pair, fio: &Ran) -> Verdict {
        match versions::ON_THE_PAGE.holds(pair.oracle) {
            true => expect("fio", self.fio, fio),
            false => Ok(()),
        }
    }

    /// The second run, in the directory of the first.
    fn again(&self, program: &Path, first: &Ran) -> Result<Ran, String> {
        let mut command = Command::new(program);
        command.args(case("", self.then).args).current_dir(&first.dir);
        finish(command, "", &first.dir)
    }
}
