//! What a study is read from: job files, check files and environment variables, of this machine or of a controller.
//!
//! Invariant: on a host of `--hosts` nothing is read but what its controller has sent.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use fiord_host::Machine;
use fiord_options::Problem;
use fiord_options::cli::{self, Parsed};
use fiord_options::environment::{Environment, KeywordValues};
use fiord_remote::keywords::{self, HostKeywords};
use fiord_session::run::environment;
use fiord_wire::StudyCommand;

/// Who reads.
#[derive(Debug)]
pub(super) enum Reader {
    /// A study on this machine.
    Alone,
    /// The controller of a study on hosts.
    Controller,
    /// One of the hosts, with these keywords.
    Host(HostKeywords),
}

/// What was read here for the hosts, or sent by their controller.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    files: RefCell<Vec<(OsString, Vec<u8>)>>,
    variables: RefCell<Vec<(OsString, OsString)>>,
}

impl Sources {
    /// What a controller has sent.
    pub(crate) fn sent(command: &StudyCommand) -> Sources {
        let name = |bytes: &Vec<u8>| OsString::from_vec(bytes.clone());
        let files = command.files.iter().map(|(path, text)| (name(path), text.clone()));
        let variables = command.variables.iter().map(|(variable, value)| (name(variable), name(value)));
        Sources { files: RefCell::new(files.collect()), variables: RefCell::new(variables.collect()) }
    }

    /// A command line with all that was read for it.
    pub(super) fn command(&self, words: Vec<Vec<u8>>) -> StudyCommand {
        let files =
            self.files.borrow().iter().map(|(path, text)| (path.as_bytes().to_vec(), text.clone())).collect();
        let bytes = |(variable, value): &(OsString, OsString)| {
            (variable.as_bytes().to_vec(), value.as_bytes().to_vec())
        };
        StudyCommand { words, files, variables: self.variables.borrow().iter().map(bytes).collect() }
    }

    /// The file of this name, if it was sent.
    pub(crate) fn file(&self, path: &OsStr) -> Option<Vec<u8>> {
        self.files.borrow().iter().find(|(name, _)| name == path).map(|(_, text)| text.clone())
    }

    /// Keeps a file that was read here.
    pub(crate) fn keep(&self, path: &OsStr, text: Vec<u8>) {
        self.files.borrow_mut().push((path.to_os_string(), text));
    }

    /// The value of a variable, if it was sent.
    fn variable(&self, name: &OsStr) -> Option<OsString> {
        self.variables.borrow().iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    /// Reads a command line of fio's, and its job files: on hosts those of the controller, with the keywords of the host.
    ///
    /// # Errors
    /// What is wrong with it, with places.
    pub(super) fn parsed<A: AsRef<OsStr>>(
        &self,
        arguments: &[A],
        machine: &Machine,
        reader: Reader,
    ) -> Result<Parsed, Vec<Problem>> {
        let here = environment::of(machine);
        let read = |name: &OsStr| {
            let text = environment::read_file(name)?;
            self.keep(name, text.clone());
            Ok(text)
        };
        let sent = |name: &OsStr| self.file(name).ok_or_else(|| io::ErrorKind::NotFound.into());
        let variable = |name: &OsStr| {
            let value = keywords::variable(name)?;
            self.variables.borrow_mut().push((name.to_os_string(), value.clone()));
            Some(value)
        };
        let sent_variable = |name: &OsStr| self.variable(name);
        let machine = here.keywords;
        let unknown = Environment { keywords: KeywordValues::UNKNOWN, ..here };
        let (environment, keywords) = match reader {
            Reader::Alone => return cli::read(arguments, &here),
            Reader::Controller => (
                Environment { files: &read, variables: &variable, ..unknown },
                HostKeywords::of_any_host(machine),
            ),
            Reader::Host(keywords) => (
                Environment { files: &sent, variables: &sent_variable, ..unknown },
                HostKeywords { machine, ..keywords },
            ),
        };
        let mut parsed = cli::read(arguments, &environment)?;
        keywords::expand(&mut parsed.sections, &keywords)?;
        Ok(parsed)
    }
}
