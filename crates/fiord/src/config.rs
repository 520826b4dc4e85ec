//! The user's config file (docs/config.md), and where its values take effect.
//!
//! Invariant: it is weaker than any option and variable; neither a run under fio's name nor one on another machine's behalf
//! follows it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::sync::OnceLock;

use clap::Command;
use clap::builder::ArgPredicate;
use fiord_options::config::{self, Config, HistoryPlace};
use fiord_options::environment::Environment;
use fiord_options::program::ProgramOptions;
use fiord_options::value::Switch;
use fiord_options::{Given, Problem};
use fiord_report::path::shown;
use fiord_session::claims;
use fiord_session::run::environment;
use fiord_sys::errno::error_text;

static CONFIG: OnceLock<Config> = OnceLock::new();

/// What begins the name of a list of hosts in `--hosts`.
const LIST: &[u8] = b"@";

/// The list that `fiord hosts` shows by itself.
const DEFAULT_LIST: &str = "default";

/// Reads the file for this command line.
///
/// # Errors
/// It cannot be read, or is wrong; none for a command that prints help, or is called by fio's name.
pub(crate) fn load(arguments: &[OsString], is_fio: bool) -> Result<(), String> {
    const WITHOUT: [&str; 7] = ["help", "completions", "version", "--help", "-h", "--version", "-v"];
    let first = arguments.get(1);
    if first.is_some_and(|word| word == "agent") {
        return Ok(());
    }
    let is_lenient = is_fio || first.is_some_and(|word| WITHOUT.iter().any(|name| word == name));
    match read() {
        Ok(config) => {
            let _ = CONFIG.set(config);
            if let Some(history) = fiord_store::default_path(variable) {
                claims::history_is_at(history);
            }
            Ok(())
        }
        Err(_) if is_lenient => Ok(()),
        Err(why) => Err(why),
    }
}

fn read() -> Result<Config, String> {
    let Some(path) = fiord_store::config_path(|name| std::env::var_os(name)) else {
        return Ok(Config::default());
    };
    let wrong = |why: String| format!("fiord: {}: {why}\n", shown(&path));
    let mend = "mend its permissions, or move it away";
    match std::fs::metadata(&path) {
        // A directory that this user may not enter is another user's, whose variables were kept.
        Err(why)
            if matches!(
                why.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::PermissionDenied
            ) =>
        {
            return Ok(Config::default());
        }
        Err(why) => {
            return Err(wrong(format!("the config file cannot be read: {}; {mend}", error_text(&why))));
        }
        Ok(found) if !found.is_file() => {
            return Err(wrong("the config file is no regular file; move it away".to_string()));
        }
        Ok(_) => {}
    }
    let bytes = environment::read_file(path.as_os_str())
        .map_err(|why| wrong(format!("the config file cannot be read: {}; {mend}", error_text(&why))))?;
    let text = String::from_utf8(bytes).map_err(|why| {
        let at = why.utf8_error().valid_up_to();
        wrong(format!("not UTF-8 at byte {at}; write the config file in UTF-8"))
    })?;
    let lines = |problems: Vec<Problem>| problems.iter().map(|problem| format!("{problem}\n")).collect();
    config::read(path.as_os_str(), &text).map_err(lines)
}

/// The values of the file; none before it is read.
pub(crate) fn get() -> &'static Config {
    static NONE: Config =
        Config { history: None, trust: None, colour: None, hosts: std::collections::BTreeMap::new() };
    CONFIG.get().unwrap_or(&NONE)
}

/// A variable of the environment; of the directory of the history, by default what the file says.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    let set = std::env::var_os(name);
    match &get().history {
        Some(HistoryPlace::Below(directory))
            if name == "XDG_STATE_HOME" && !set.as_ref().is_some_and(|set| Path::new(set).is_absolute()) =>
        {
            Some(directory.into())
        }
        _ => set,
    }
}

/// The same program options with the values of the file for those that were not given.
pub(crate) fn complete(options: &mut ProgramOptions, given: &Given<'_>) {
    let config = get();
    if let Some(trust) = config.trust.filter(|_| given.get(ProgramOptions::trust).is_none()) {
        options.trust = trust;
    }
    let is_asked = given.get(ProgramOptions::no_history).is_some() || options.tag.is_some();
    if config.history == Some(HistoryPlace::Off) && !is_asked {
        options.no_history = Switch(true);
    }
}

/// A subcommand with the values of the file as the defaults of its options.
pub(crate) fn with_defaults(mut command: Command) -> Command {
    let config = get();
    let has = |command: &Command, id: &str| command.get_arguments().any(|arg| arg.get_id() == id);
    if let Some(trust) = config.trust.filter(|_| has(&command, "trust")) {
        command = command.mut_arg("trust", |arg| arg.default_value(trust.word()));
    }
    if config.history == Some(HistoryPlace::Off) && has(&command, "no_history") {
        command = command.mut_arg("no_history", |arg| {
            arg.default_value("true").default_value_if("tag", ArgPredicate::IsPresent, "false")
        });
    }
    command
}

/// The words of a study for hosts, which do not read this file.
pub(crate) fn with_trust(mut words: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let is_given = words.iter().any(|word| word.starts_with(b"--trust"));
    if let Some(trust) = get().trust.filter(|_| !is_given) {
        words.insert(1.min(words.len()), format!("--trust={}", trust.word()).into_bytes());
    }
    words
}

/// What lists of hosts are read from: files, and the lists of the config file.
pub(crate) fn with_lists(environment: Environment<'static>) -> Environment<'static> {
    Environment { files: &list_or_file, ..environment }
}

fn list_or_file(name: &OsStr) -> io::Result<Vec<u8>> {
    let Some(list) = name.as_encoded_bytes().strip_prefix(LIST) else { return environment::read_file(name) };
    let lists = &get().hosts;
    let found = lists.iter().find(|(name, _)| name.as_bytes() == list);
    let known = || match lists.is_empty() {
        true => "the config file has no list of hosts".to_string(),
        false => {
            let names: Vec<&str> = lists.keys().map(String::as_str).collect();
            format!("the config file has no such list, but {}", names.join(", "))
        }
    };
    found.map(|(_, hosts)| hosts.join("\n").into_bytes()).ok_or_else(|| io::Error::other(known()))
}

/// The list of hosts by default, as `--hosts` takes it.
pub(crate) fn default_hosts() -> Option<OsString> {
    get().hosts.contains_key(DEFAULT_LIST).then(|| format!("@{DEFAULT_LIST}").into())
}
