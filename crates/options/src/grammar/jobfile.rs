//! Job files: bytes to blocks of settings, one block per `[section]`.
//!
//! Invariant: every line is either understood or reported as a problem, and reading does not stop at a problem.

use fiord_errno::error_text;
use fiord_stats::OrderBy;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;

use super::environment::Environment;
use super::expand;
use super::lookup;
use crate::bytes::{find, is_blank, trim};
use crate::place::{Origin, Place};
use crate::problem::{Problem, ProblemKind};
use crate::section::Setting;
use crate::shown::shown;
use crate::table::job::{Files, General, Process, Queue};
use crate::table::{Scope, Spec};
use crate::value::NamedEngine;
use crate::value::{Takes, ValueKind};

/// The lines under one header, with included files spliced in.
#[derive(Debug, Clone)]
pub struct Block {
    /// The name in the header; `None` for `[global]`.
    pub name: Option<OsString>,
    /// The place of the name.
    pub place: Place,
    /// The settings, in the order fio applies them (see `application_order`).
    pub settings: Vec<Setting>,
}

/// Reads one job file. `wanted` names the sections to read (all when empty); the contents of others are not checked.
/// `inherited` are the globals in force before the file. Problems are added to `problems`. Lists of hosts have the same
/// grammar.
pub fn read(
    name: &OsStr,
    text: &[u8],
    wanted: &[OsString],
    inherited: &[Setting],
    environment: &Environment<'_>,
    problems: &mut Vec<Problem>,
) -> Vec<Block> {
    let mut lines = Lines {
        environment,
        wanted,
        blocks: Vec::new(),
        open: Vec::new(),
        includes: 0,
        strays: None,
        problems,
    };
    lines.file(name, text);
    lines.report_strays();
    let blocks = std::mem::take(&mut lines.blocks);
    let mut inherited_engine = lookup::engine_of(inherited.iter());
    let mut read = Vec::new();
    for block in blocks.into_iter().filter(|block| block.wanted) {
        let settings = settings(block.lines, &inherited_engine, environment, problems);
        if block.name.is_none() && settings.iter().any(|setting| setting.spec == Queue::ioengine) {
            inherited_engine = lookup::engine_of(settings.iter());
        }
        read.push(Block { name: block.name, place: block.place, settings });
    }
    read
}

/// A line that sets something, without comment and surrounding blanks.
struct Line {
    text: OsString,
    /// The comment behind it, from its `;` or `#` on.
    comment: Vec<u8>,
    place: Place,
}

/// A header and the lines under it.
struct LineBlock {
    name: Option<OsString>,
    place: Place,
    wanted: bool,
    lines: Vec<Line>,
}

/// Files within files.
const INCLUDE_DEPTH_MAX: usize = 16;

/// Maximum number of includes in one job file, so that a few files that include each other twice do not become
/// millions.
const INCLUDES_MAX: usize = 1000;

/// Sorts lines into blocks.
struct Lines<'a> {
    environment: &'a Environment<'a>,
    wanted: &'a [OsString],
    blocks: Vec<LineBlock>,
    /// The files being read: the job file, then those included from one another.
    open: Vec<OsString>,
    /// Files included so far.
    includes: usize,
    /// The first line before any header, and the number of such lines.
    strays: Option<(Line, usize)>,
    problems: &'a mut Vec<Problem>,
}

impl Lines<'_> {
    fn syntax(&mut self, place: &Place, message: impl Into<String>, remedy: impl Into<String>) {
        self.problems.push(Problem::error(ProblemKind::Syntax, place.clone(), None, message, remedy));
    }

    fn file(&mut self, name: &OsStr, text: &[u8]) {
        let source = Origin::File(Arc::from(name));
        self.open.push(name.to_os_string());
        let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
        for (index, bytes) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = u32::try_from(index + 1).unwrap_or(u32::MAX);
            if let Some(column) = bytes.iter().position(|byte| *byte == 0) {
                let place = Place { source, line, column: column_at(column) };
                self.syntax(
                    &place,
                    "a job file must not contain a NUL byte",
                    "a job file is text; is this the right file?",
                );
                break;
            }
            let (start, content, comment) = strip(bytes);
            if content.is_empty() {
                continue;
            }
            let place = Place { source: source.clone(), line, column: column_at(start) };
            let comment = comment.to_vec();
            self.line(Line { text: OsString::from_vec(content.to_vec()), comment, place });
        }
        self.open.pop();
    }

    fn line(&mut self, line: Line) {
        if let Some(inner) = line.text.as_bytes().strip_prefix(b"[") {
            if self.open.len() > 1 {
                let place = line.place.clone();
                self.syntax(&place, "an included file cannot begin a section", "keep options only in it");
            } else {
                self.header(inner, &line.place);
            }
            return;
        }
        let Some(block) = self.blocks.last() else {
            match &mut self.strays {
                Some((_, count)) => *count += 1,
                None => self.strays = Some((line, 1)),
            }
            return;
        };
        if !block.wanted {
            return;
        }
        match included(&line.text) {
            Some(path) => self.include(path, &line.place),
            None => {
                if let Some(block) = self.blocks.last_mut() {
                    block.lines.push(line);
                }
            }
        }
    }

    /// Begins a section. As in fio, the name is the text between the `[` and the last character of the line, whatever
    /// that is.
    fn header(&mut self, inner: &[u8], bracket: &Place) {
        let mut name = inner.to_vec();
        let place = Place { column: bracket.column.saturating_add(1), ..bracket.clone() };
        let last = name.pop();
        let title = inner.split(|byte| *byte == b']').next().unwrap_or_default().trim_ascii();
        let is_global = title == b"global";
        let name = OsString::from_vec(name);
        if last.is_none() {
            self.syntax(bracket, "this section has no name", "write [name]");
        } else if last != Some(b']') {
            let message = if is_global {
                "this header does not end with \"]\"".to_string()
            } else {
                format!("this header does not end with \"]\", so the section is called \"{}\"", shown(&name))
            };
            let remedy = "write [name] and nothing after it; a ; or # in a name begins a comment";
            self.problems.push(
                Problem::error(ProblemKind::Syntax, bracket.clone(), None, message, remedy).as_warning(),
            );
        } else if name.as_bytes().starts_with(b"global") && !is_global {
            let message =
                format!("section \"{}\" is a job here; fio takes it for a [global] section", shown(&name));
            self.problems.push(
                Problem::error(
                    ProblemKind::ReadDifferently,
                    place.clone(),
                    None,
                    message,
                    "choose another name for the job",
                )
                .as_warning(),
            );
        }
        let wanted = is_global || self.wanted.is_empty() || self.wanted.contains(&name);
        let name = (!is_global).then_some(name);
        self.blocks.push(LineBlock { name, place, wanted: wanted && last.is_some(), lines: Vec::new() });
    }

    fn include(&mut self, path: &OsStr, place: &Place) {
        if path.is_empty() {
            return self.syntax(place, "include names no file", "write \"include FILE\"");
        }
        self.includes += 1;
        if self.open.len() > INCLUDE_DEPTH_MAX || self.includes > INCLUDES_MAX {
            // Reported once: an endless chain of includes would repeat it endlessly.
            if self.includes <= INCLUDES_MAX + 1 {
                let message = format!("cannot include {}: too many files include one another", shown(path));
                self.syntax(place, message, "take the include out of one of them");
            }
            self.includes = INCLUDES_MAX + 1;
            return;
        }
        let includer = self.open.last().map(OsString::as_os_str).unwrap_or_default();
        match read_included(path, includer, self.environment) {
            Ok((name, _)) if self.open.contains(&name) => {
                self.syntax(place, format!("{} includes itself", shown(name)), "take this include out");
            }
            Ok((name, text)) => self.file(&name, &text),
            Err(error) => {
                let remedy = if find(path.as_bytes(), b"${").is_some() {
                    "variables are not replaced in the name of an included file"
                } else {
                    "it is looked for in the current directory, then beside the file that includes it"
                };
                let message =
                    format!("cannot read the included file {}: {}", shown(path), error_text(&error));
                self.problems.push(Problem::error(
                    ProblemKind::Unreadable,
                    place.clone(),
                    None,
                    message,
                    remedy,
                ));
            }
        }
    }

    fn report_strays(&mut self) {
        if let Some((first, count)) = self.strays.take() {
            let others = match count {
                1 => "is".to_string(),
                2 => "and one more line are".to_string(),
                _ => format!("and {} more lines are", count - 1),
            };
            let message = format!("\"{}\" {others} before the first [section]", shown(&first.text));
            self.syntax(&first.place, message, "put [global] or a job's [name] above it");
        }
    }
}

/// The column of a byte of the line.
fn column_at(byte: usize) -> u32 {
    u32::try_from(byte + 1).unwrap_or(u32::MAX)
}

/// The part of a line before any comment, where it begins, and the comment: a `;` or `#` begins a comment anywhere, even
/// within quotes and after a backslash. A comment that is separated by a blank begins with that blank.
pub fn strip(line: &[u8]) -> (usize, &[u8], &[u8]) {
    let end = line.iter().position(|byte| matches!(byte, b';' | b'#')).unwrap_or(line.len());
    let content = trim(&line[..end]);
    // Nothing but blanks stands before it.
    let start = line[..end].iter().take_while(|byte| is_blank(**byte)).count();
    (start, content, &line[start + content.len()..])
}

/// Whether a comment is more likely the rest of a text: nothing sets it apart from the text before it, or it begins
/// within quotes.
fn is_cut(value: &[u8], comment: &[u8]) -> bool {
    let is_odd = |text: &[u8]| text.iter().filter(|byte| **byte == b'"').count() % 2 == 1;
    let in_quotes = is_odd(value) && is_odd(comment);
    let attached = comment.len() > 1 && !is_blank(comment[0]) && !is_blank(comment[1]);
    !trim(comment).is_empty() && (attached || in_quotes)
}

/// The file name of an `include FILE` line.
fn included(line: &OsStr) -> Option<&OsStr> {
    let rest = line.as_bytes().strip_prefix(b"include")?;
    let separated = matches!(rest.first(), None | Some(b' ' | b'\t' | b'='));
    separated.then(|| OsStr::from_bytes(rest.strip_prefix(b"=").unwrap_or(rest).trim_ascii()))
}

/// Reads an included file: by its name as it stands, then beside the file that includes it.
fn read_included(
    path: &OsStr,
    includer: &OsStr,
    environment: &Environment<'_>,
) -> std::io::Result<(OsString, Vec<u8>)> {
    let first = match (environment.files)(path) {
        Ok(text) => return Ok((path.to_os_string(), text)),
        Err(error) => error,
    };
    let beside = Path::new(includer).parent().map(|folder| folder.join(path));
    match beside.as_deref().map(Path::as_os_str) {
        Some(beside) if beside != path => match (environment.files)(beside) {
            Ok(text) => Ok((beside.to_os_string(), text)),
            Err(_) => Err(first),
        },
        _ => Err(first),
    }
}

/// `name=value` with its variables replaced, not yet looked up.
struct Assignment {
    /// As it is shown, so that what is not UTF-8 is the name of nothing.
    name: String,
    value: Option<OsString>,
    comment: Vec<u8>,
    place: Place,
    value_place: Place,
    unset: Vec<String>,
}

/// Splits a line at its first `=`. Blanks before the `=` are dropped; those after it belong to the value.
fn assignment(line: Line, environment: &Environment<'_>) -> Assignment {
    let expanded = expand::variables(&line.text, environment.variables);
    let equals_of = |text: &[u8]| text.iter().position(|byte| *byte == b'=');
    let typed = line.text.as_bytes();
    let column_of_value = equals_of(typed).map_or(0, |equals| {
        let blanks = typed[equals + 1..].iter().take_while(|byte| is_blank(**byte)).count();
        (equals + 1 + blanks).min(typed.len() - 1)
    });
    let column = line.place.column.saturating_add(u32::try_from(column_of_value).unwrap_or(0));
    let value_place = Place { column, ..line.place.clone() };
    let text = expanded.text.as_bytes();
    let (name, value) = match equals_of(text) {
        Some(equals) => (text[..equals].trim_ascii_end(), Some(OsStr::from_bytes(&text[equals + 1..]))),
        None => (text, None),
    };
    let (name, value) = (shown(OsStr::from_bytes(name)), value.map(OsStr::to_os_string));
    Assignment { name, value, comment: line.comment, place: line.place, value_place, unset: expanded.unset }
}

/// Looks up the options of a block. The last `ioengine` of the block, wherever it is, determines which engine options
/// are accepted.
fn settings(
    lines: Vec<Line>,
    inherited_engine: &NamedEngine,
    environment: &Environment<'_>,
    problems: &mut Vec<Problem>,
) -> Vec<Setting> {
    let assignments: Vec<Assignment> = lines.into_iter().map(|line| assignment(line, environment)).collect();
    let own_engine =
        assignments.iter().rev().find(|given| Queue::ioengine.names().any(|name| name == given.name));
    let engine = match own_engine.and_then(|given| given.value.as_deref()?.to_str()) {
        Some(value) => NamedEngine::of(value.trim()),
        None => inherited_engine.clone(),
    };
    let mut settings = Vec::new();
    for given in assignments {
        match setting(given, &engine, environment, problems) {
            Ok(setting) => settings.push(setting),
            Err(problem) => problems.push(problem),
        }
    }
    settings.order_by_key(|setting| application_order(setting.spec));
    settings
}

fn setting(
    given: Assignment,
    engine: &NamedEngine,
    environment: &Environment<'_>,
    problems: &mut Vec<Problem>,
) -> Result<Setting, Problem> {
    let unset = given.unset.join(", ");
    if given.name.is_empty() && !unset.is_empty() {
        let message =
            format!("nothing is left of this line, because the environment variable {unset} is not set");
        return Err(Problem::error(
            ProblemKind::UnsetVariable,
            given.place,
            None,
            message,
            format!("set it: {unset}=... fiord ..."),
        ));
    }
    let spec = lookup::in_job_file(&given.name, engine, &given.place)?;
    let value = lookup::with_keywords(spec, given.value, &environment.keywords, &given.value_place)?;
    if !unset.is_empty() {
        let empty = value.as_deref().is_some_and(|value| value.as_bytes().trim_ascii().is_empty());
        if empty && (spec.takes == Takes::Value || spec.check(value.as_deref()).is_err()) {
            let message = format!("the value is empty, because the environment variable {unset} is not set");
            let remedy = format!("set it: {unset}=... fiord ...");
            return Err(Problem::error(ProblemKind::UnsetVariable, given.value_place, spec, message, remedy));
        }
        let message = format!("the environment variable {unset} is not set, and is replaced by nothing");
        problems.push(
            Problem::error(ProblemKind::UnsetVariable, given.value_place.clone(), spec, message, "")
                .as_warning(),
        );
    }
    if spec.takes == Takes::Value && value.as_deref().unwrap_or_default().is_empty() {
        return Err(lookup::value_missing(spec, &given.place));
    }
    if spec.kind == ValueKind::Text
        && let Some(value) = value.as_deref()
        && is_cut(value.as_bytes(), &given.comment)
    {
        let rest = shown(OsStr::from_bytes(trim(&given.comment)));
        let message = format!(
            "the value ends before \"{rest}\": a ; or # begins a comment, in quotes and after \\ too"
        );
        let remedy = "choose a value without it, or put a blank before a comment";
        let place = given.value_place.clone();
        problems.push(Problem::error(ProblemKind::ValueCut, place, spec, message, remedy).as_warning());
    }
    let place = given.place;
    let value_place = if value.is_some() { given.value_place } else { place.clone() };
    Ok(Setting { spec, spelling: given.name, value, place, value_place })
}

/// The order in which fio applies the settings of one block, as printed by `--showcmd`: options that change how others
/// are read, most options, the file's name, and the engine's options. Within a rank, the order is that of the file.
pub(crate) fn application_order(spec: &Spec) -> u8 {
    const FIRST: [&Spec; 4] =
        [General::kb_base, General::unit_base, Process::cpus_allowed_policy, Files::lockfile];
    match spec.scope {
        Scope::Engine(_) => 3,
        _ if spec.is_one_of(&FIRST) => 0,
        _ if spec.is_one_of(&[Files::filename, Files::filename_format]) => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::testing::{
        ENGINES, KEYWORDS, read_text, read_with, sections, settings, shown, texts,
    };
    use proptest::prelude::*;

    /// Each right-hand side is what `fio --parse-only --showcmd` 3.33 printed of the left-hand side.
    #[test]
    fn files_are_read_as_fio_reads_them() {
        for (text, expected) in [
            ("[a]\ndescription=x ; y\n", "fio --name=a --description=\"x\""),
            ("[a]\ndescription=x\\#y\n", "fio --name=a --description=\"x\\\""),
            ("[a]\ndescription=\"x ; y\"\n", "fio --name=a --description=\"\"x\""),
            ("[a]\nfilename=/tmp/a\\:b:c\n", "fio --name=a --filename=/tmp/a\\:b:c"),
            ("[a]\r\nbs=4k\r\nrw=read\r\n", "fio --name=a --bs=4k --rw=read"),
            ("[a]\nbs=4k", "fio --name=a --bs=4k"),
            ("[a b,c]\nbs=4k\n", "fio --name=a b,c --bs=4k"),
            ("[a]\nbs=4k\n[a]\nrw=read", "fio --name=a --bs=4k --name=a --rw=read"),
            ("[a]\nthread\ngroup_reporting\n", "fio --name=a --thread --group_reporting"),
            ("[a]\n  thread  \n\t bs=4k\t\n", "fio --name=a --thread --bs=4k"),
            ("[a]\n\x0cbs=4k\x0b\n", "fio --name=a --bs=4k"),
            ("  [a] \nbs=4k\n", "fio --name=a --bs=4k"),
            ("[a] ; comment\nbs=4k\n", "fio --name=a --bs=4k"),
            ("[a];x\nbs=4k\n", "fio --name=a --bs=4k"),
            ("[ a ]\nbs=4k\n", "fio --name= a  --bs=4k"),
            ("[]\nbs=4k\n", "fio --name= --bs=4k"),
            ("[Global]\nbs=4k\n[b]\n", "fio --name=Global --bs=4k --name=b"),
            ("[a]\nrw  =read\n", "fio --name=a --rw=read"),
            ("[a]\nsize = 1g\nbs = /x y\n", "fio --name=a --size= 1g --bs= /x y"),
            ("[a]\nbs=4k rw=read\n", "fio --name=a --bs=4k rw=read"),
            ("[a]\nfilename=a=b\n", "fio --name=a --filename=a=b"),
            ("[a]\nblocksize=4k\nreadwrite=read\n", "fio --name=a --bs=4k --rw=read"),
            ("[a]\nname=zz\nbs=4k\n", "fio --name=a --name=zz --bs=4k"),
            ("[a]\n;x\n#y\n ; z\n\n\t\nbs=4k\n", "fio --name=a --bs=4k"),
            ("[a]\nthread;\n", "fio --name=a --thread"),
            ("[a]\n[b]\n[c]", "fio --name=a --name=b --name=c"),
            ("[global]\n[a]\n", "fio --name=a"),
            ("[global]\nbs=4k\n", "fio --bs=4k"),
            ("[global ]\nbs=4k\n[j]\n", "fio --bs=4k --name=j"),
            ("[a]\nsize=100%%\n", "fio --name=a --size=100%%"),
            ("[a]\ndescription=a${V}${V}b${NOPE}\n", "fio --name=a --description=\"avvvvb\""),
            ("[a]\nb${NOPE}s=${B}k\n", "fio --name=a --bs=4k"),
            ("[a]\n${EQUALS}\n", "fio --name=a --bs=4k"),
            ("[${V}]\nbs=4k\n", "fio --name=${V} --bs=4k"),
            ("[a]\nwrite_bw_log=${NOPE}\n", "fio --name=a --write_bw_log="),
            ("[a]\nnumjobs=2*$ncpus\n", "fio --name=a --numjobs=4"),
            ("[a]\ndescription=x $ncpus y\n", "fio --name=a --description=\"x 2 y\""),
            ("[a]\nfilename_format=$jobname.$jobnum\n", "fio --name=a --filename_format=$jobname.$jobnum"),
        ] {
            assert_eq!(shown(text), expected.trim_end(), "{text:?}");
        }
    }

    /// fio drops the last character of the line from the section's name; fiord does the same, with a warning.
    #[test]
    fn headers_without_their_bracket_get_fios_name_and_a_warning() {
        for (text, expected) in [
            ("[a]x\nbs=4k\n", "fio --name=a] --bs=4k"),
            ("[abc\nbs=4k\n", "fio --name=ab --bs=4k"),
            ("[a#b]\nbs=4k\n", "fio --name= --bs=4k"),
            ("[a]xyz\n", "fio --name=a]xy"),
            ("[global]x\nbs=4k\n[j]\n", "fio --bs=4k --name=j"),
        ] {
            assert_eq!(shown(text), expected, "{text:?}");
            let warnings = read_text(text).map(|parsed| texts(&parsed.warnings)).unwrap_or_default();
            assert!(
                warnings.contains("j.fio:1:1: warning: this header does not end"),
                "{text:?}: {warnings}"
            );
        }
        assert_eq!(shown("[a]]\n[[a]]\n"), "fio --name=a] --name=[a]");
    }

    #[test]
    fn a_comment_that_begins_within_a_text_is_a_warning_and_one_behind_it_is_not() {
        let warnings = |line: &str| {
            let parsed = read_text(&format!("[a]\n{line}\n")).expect(line);
            texts(&parsed.warnings)
        };
        for line in [
            "filename=/d/a#1",
            "filename=/d/a;b",
            "exec_prerun=\"x ; y\"",
            "exec_prerun=x\\;y",
            "description=a#b c",
        ] {
            let warnings = warnings(line);
            assert!(
                warnings.contains("warning: ") && warnings.contains("the value ends before \""),
                "{line}: {warnings}"
            );
        }
        for line in [
            "filename=/d/a ;b",
            "filename=/d/a #b",
            "filename=/d/a;",
            "filename=/d/a; comment",
            "description=\"a\" ; b",
            "bs=4k#small",
            "thread#x",
        ] {
            assert_eq!(warnings(line), "", "{line}");
        }
    }

    #[test]
    fn repeated_globals_accumulate() {
        let text = "[global]\nbs=4k\n[a]\nrw=read\n[global]\nsize=1m\n[b]\n[global]\nbs=8k\n[c]\n";
        let expected = ["a [bs=4k] rw=read", "b [bs=4k size=1m] ", "c [bs=4k size=1m bs=8k] "];
        assert_eq!(sections(&["j.fio"], &[("j.fio", text)]), expected);
    }

    #[test]
    fn settings_are_applied_in_fios_order() {
        let text = "[a]\nhipri\nfilename=f\nioengine=io_uring\nsize=1\nunit_base=8\nloops=1\nkb_base=1000\n";
        let expected = "fio --name=a --unit_base=8 --kb_base=1000 --ioengine=io_uring --size=1 --loops=1 \
                        --filename=f --hipri";
        assert_eq!(shown(text), expected);
    }

    #[test]
    fn engine_options_need_their_engine_in_the_section_or_the_globals() {
        for accepted in [
            "[global]\nhipri\nioengine=io_uring\n[j]\n",
            "[global]\nioengine=io_uring\n[global]\nhipri\n[j]\n",
            "[global]\nioengine=io_uring\n[j]\nhipri\n",
            "[global]\nioengine=io_uring\nhipri\n[j]\nioengine=null\n",
        ] {
            assert!(read_text(accepted).is_ok(), "{accepted:?}");
        }
        for refused in [
            "[global]\nhipri\n[j]\nioengine=io_uring\n",
            "[j]\nioengine=io_uring\nhipri\nioengine=null\n",
            "[global]\nioengine=io_uring\n[j]\nioengine=null\nhipri\n",
        ] {
            assert!(shown(refused).contains("\"hipri\" is an option of another engine"), "{refused:?}");
        }
    }

    #[test]
    fn all_problems_are_collected_each_with_its_place() {
        let text = "bs=4k\nrw=read\n[a]\niodpeth=4\n  bs\n[\nfoo bar\n[b]\nsize=\n= 4k\n";
        let expected = "\
j.fio:1:1: error: \"bs=4k\" and one more line are before the first [section]
  put [global] or a job's [name] above it
j.fio:4:1: error: no option is called \"iodpeth\"
  did you mean \"iodepth\"?
j.fio:5:3: error: bs: needs a value";
        let message = shown(text);
        assert!(message.starts_with(expected), "{message}");
        assert!(message.contains("j.fio:9:1: error: size: needs a value"), "{message}");
        assert!(message.contains("j.fio:10:1: error: no option is called \"\""), "{message}");
    }

    #[test]
    fn places_count_lines_and_bytes_from_one() {
        let parsed =
            read_text("\n[ä]\n\t bs =  4k ; four\n").map(|parsed| parsed.sections).unwrap_or_default();
        let section = &parsed[0];
        assert_eq!((section.place.line, section.place.column), (2, 2));
        assert_eq!((section.own[0].place.line, section.own[0].place.column), (3, 3));
        assert_eq!((section.own[0].value_place.line, section.own[0].value_place.column), (3, 9));
        assert_eq!(section.own[0].spelling, "bs");
        assert_eq!(section.own[0].value.as_deref(), Some(OsStr::new("  4k")));
    }

    #[test]
    fn undefined_variables_are_named() {
        let parsed = read_text("[a]\ndescription=${NOPE}x\n").unwrap();
        assert!(
            texts(&parsed.warnings)
                .contains("j.fio:2:13: warning: description: the environment variable NOPE")
        );
        let message = shown("[a]\nfilename=${NOPE}\n");
        assert!(message.starts_with("j.fio:2:10: error: filename: the value is empty, because"), "{message}");
        assert!(shown("[a]\n${NOPE}\n").contains("nothing is left of this line"));
        assert!(shown("[a]\n${NOPE}=1\n").contains("nothing is left of this line"));
    }

    #[test]
    fn sums_are_for_numbers() {
        let message = shown("[a]\nsize=8*$mb_memory*1024k\n");
        assert!(message.starts_with("j.fio:2:6: error: size: cannot compute \"8*1000*1024k\""), "{message}");
        assert_eq!(shown("[a]\ndescription=50/50 on $ncpus\n"), "fio --name=a --description=\"50/50 on 2\"");
        assert_eq!(shown("[a]\ncpus_allowed=0-$ncpus\n"), "fio --name=a --cpus_allowed=0-2");
        assert_eq!(shown("[a]\nbsrange=1k-$pagesize\n"), "fio --name=a --bsrange=1k-4096");
    }

    #[test]
    fn included_files_are_spliced_in() {
        let files = [
            (
                "d/j.fio",
                "[global]\nbs=1k\ninclude g.inc ; twice\n[j]\ninclude=g.inc\n\tinclude\td/h.inc\niodepth=2",
            ),
            ("d/g.inc", "rw=write\r\ninclude h.inc"),
            ("d/h.inc", "size=1m\n"),
        ];
        let expected = ["j [bs=1k rw=write size=1m] rw=write size=1m size=1m iodepth=2"];
        assert_eq!(sections(&["d/j.fio"], &files), expected);
        let parsed = read_with(&["d/j.fio"], &files).unwrap();
        assert_eq!(parsed.sections[0].own[1].place.to_string(), "d/h.inc:1:1");
    }

    #[test]
    fn the_current_directory_comes_before_that_of_the_job_file() {
        let files = [("d/j.fio", "[j]\ninclude g.inc\n"), ("d/g.inc", "bs=1k"), ("g.inc", "bs=2k")];
        assert_eq!(sections(&["d/j.fio"], &files), ["j [] bs=2k"]);
    }

    // divergence: a file that includes itself
    #[test]
    fn includes_that_cannot_be_read_are_errors() {
        let message = shown("[a]\ninclude nope.inc\n");
        assert!(message.contains("j.fio:2:1: error: cannot read the included file nope.inc"), "{message}");
        assert!(shown("[a]\ninclude ${F}.inc\n").contains("variables are not replaced"));
        assert!(shown("[a]\ninclude\n").contains("include names no file"));
        let endless = [("j.fio", "[a]\ninclude g.inc\n"), ("g.inc", "bs=4k\ninclude g.inc\n")];
        assert!(sections(&["j.fio"], &endless)[0].starts_with("g.inc:2:1: error: g.inc includes itself"));
        let nested = [("j.fio", "[a]\ninclude g.inc\n"), ("g.inc", "[b]\n")];
        assert!(sections(&["j.fio"], &nested)[0].contains("g.inc:1:1: error: an included file cannot begin"));
    }

    #[test]
    fn files_that_include_one_another_end() {
        let includes = |name: &OsStr| {
            let name = name.display();
            Ok(format!("include {name}a\ninclude {name}b\n").into_bytes())
        };
        let environment =
            Environment { files: &includes, variables: &|_| None, keywords: KEYWORDS, engines: &ENGINES };
        let mut problems = Vec::new();
        read(OsStr::new("j.fio"), b"[a]\ninclude x\n", &[], &[], &environment, &mut problems);
        assert_eq!(problems.len(), 1);
        assert!(texts(&problems).contains("too many files include one another"));
    }

    #[test]
    fn sections_that_were_not_requested_are_not_checked() {
        let text = "[global]\nbs=4k\n[a]\nnonsense\ninclude nope\n[b]\nrw=read\n";
        assert_eq!(sections(&["--section=b", "j.fio"], &[("j.fio", text)]), ["b [bs=4k] rw=read"]);
    }

    #[test]
    fn names_that_only_begin_with_global_are_jobs() {
        let parsed = read_text("[global_x]\nbs=4k\n[a]\n").unwrap();
        assert_eq!(parsed.sections.len(), 2);
        assert!(texts(&parsed.warnings).contains("fio takes it for a [global] section"));
    }

    #[test]
    fn bytes_that_are_no_option_are_refused_where_they_stand() {
        let environment = Environment {
            files: &|_| Ok(Vec::new()),
            variables: &|_| None,
            keywords: KEYWORDS,
            engines: &ENGINES,
        };
        let read_bytes = |bytes: &[u8]| {
            let mut problems = Vec::new();
            let blocks = read(OsStr::new("j.fio"), bytes, &[], &[], &environment, &mut problems);
            (blocks.iter().map(|block| settings(&block.settings)).collect::<Vec<_>>(), texts(&problems))
        };
        let (blocks, problems) = read_bytes(b"[a]\nbs=4k\0x\nrw=read\n");
        assert!(
            problems.starts_with("j.fio:2:6: error: a job file must not contain a NUL byte"),
            "{problems}"
        );
        assert_eq!(blocks, [""]);
        let (blocks, problems) = read_bytes(b"[a]\nbs\xFF=4k\nrw=read ; \xE4\n");
        assert!(problems.starts_with(r#"j.fio:2:1: error: no option is called "bs\xff""#), "{problems}");
        assert_eq!(blocks, ["rw=read"]);
        assert_eq!(read_bytes(b"\xEF\xBB\xBF[a]\nbs=4k").0, ["bs=4k"]);
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_places_lie_within_the_text(
            bytes in proptest::collection::vec(
                prop_oneof![
                    Just(b"[".to_vec()), Just(b"]".to_vec()), Just(b"=".to_vec()), Just(b"\n".to_vec()),
                    Just(b"[global]\n".to_vec()), Just(b"[a]\n".to_vec()), Just(b"include x".to_vec()),
                    Just(b"include=\n".to_vec()), Just(b"bs=4k".to_vec()), Just(b"${".to_vec()),
                    Just(b"${V}".to_vec()), Just(b"}".to_vec()), Just(b"$ncpus*".to_vec()),
                    Just(b" ".to_vec()), Just(b"#".to_vec()), Just("ä".as_bytes().to_vec()),
                    any::<u8>().prop_map(|byte| vec![byte]),
                ],
                0..60,
            )
        ) {
            let text = bytes.concat();
            let copy = text.clone();
            let files = |_: &OsStr| Ok(copy.clone());
            let environment = Environment { files: &files, variables: &|_| None, keywords: KEYWORDS, engines: &ENGINES };
            let mut problems = Vec::new();
            let blocks = read(OsStr::new("j.fio"), &text, &[], &[], &environment, &mut problems);
            let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
            let given = blocks.iter().flat_map(|block| &block.settings);
            let places = given.flat_map(|setting| [&setting.place, &setting.value_place]);
            for place in places.chain(problems.iter().map(|problem| &problem.place)) {
                let line = lines.get(place.line as usize - 1);
                prop_assert!(line.is_some_and(|line| (place.column as usize) <= line.len()), "{place}");
            }
        }
    }
}
