//! The config file: what a user wants of every command, of where runs are recorded and how results are shown.
//!
//! Invariant: no key changes what is measured, and none names anything that is run.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::Problem;
use crate::cli::sort_by_place;
use crate::toml::{Keys, Source};
use crate::value::Trust;

/// A key of the file, as its documentation and its errors say it.
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// A line of the file.
    pub example: &'static str,
    /// What it does.
    pub text: &'static str,
    /// What is stronger than it.
    pub stronger: &'static str,
}

/// All keys.
pub const KEYS: [Key; 4] = [
    Key {
        name: "history",
        example: "history = \"/data\"",
        text: "An absolute path: runs are recorded in `fiord/history.db` below it; `\"off\"`: they are not recorded. `--tag` records a run all the same",
        stronger: "`--no-history`, `--tag`; for the place `XDG_STATE_HOME`",
    },
    Key {
        name: "trust",
        example: "trust = \"strict\"",
        text: "`\"off\"`, `\"on\"` or `\"strict\"`: whether findings are looked for, which are a part of reports, and exit status 3 if one voids the figures",
        stronger: "`--trust`",
    },
    Key {
        name: "colour",
        example: "colour = false",
        text: "`false`: nothing is printed in colour; `true`: colours on terminals, as without the key",
        stronger: "`NO_COLOR`, `TERM=dumb`",
    },
    Key {
        name: "hosts",
        example: "hosts.lab = [\"db[1-12]\", \"^db7\"]",
        text: "Lists of names and ranges, by name: `--hosts=@lab` stands for the hosts of `hosts.lab`. `fiord hosts` without a list shows those of `hosts.default`",
        stronger: "no run is on hosts without `--hosts`",
    },
];

/// The values of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Whether and where runs are recorded.
    pub history: Option<HistoryPlace>,
    /// Whether findings are looked for.
    pub trust: Option<Trust>,
    /// Whether a terminal may be coloured.
    pub colour: Option<bool>,
    /// Lists of hosts: names and ranges.
    pub hosts: BTreeMap<String, Vec<String>>,
}

/// Where runs are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryPlace {
    /// Nowhere.
    Off,
    /// In `fiord/history.db` below this directory.
    Below(PathBuf),
}

/// Reads the file; `path` is how errors call it.
///
/// # Errors
/// All of its errors, in the order of their places.
pub fn read(path: &OsStr, text: &str) -> Result<Config, Vec<Problem>> {
    let mut source = Source::new(path, text);
    let Some(table) = source.parse("texts are in quotes: trust = \"strict\"") else {
        return Err(source.problems);
    };
    let keys = Keys { table: table.get_ref(), span: 0..0 };
    source.only(&keys, &KEYS.map(|key| key.name), "the config file");
    let config = Config {
        history: history(&mut source, &keys),
        trust: trust(&mut source, &keys),
        colour: source.boolean(&keys, "colour"),
        hosts: hosts(&mut source, &keys),
    };
    sort_by_place(&mut source.problems);
    if source.problems.is_empty() { Ok(config) } else { Err(source.problems) }
}

fn history<'f>(source: &mut Source<'f>, keys: &Keys<'f>) -> Option<HistoryPlace> {
    let (text, span) = source.string(keys, "history")?;
    match text {
        "off" => Some(HistoryPlace::Off),
        _ if Path::new(text).is_absolute() && !text.contains('\0') => Some(HistoryPlace::Below(text.into())),
        _ => {
            let remedy = "write the whole path from / on, or \"off\"";
            source.error(span.start, format!("history {text:?} is no absolute path"), remedy);
            None
        }
    }
}

fn trust<'f>(source: &mut Source<'f>, keys: &Keys<'f>) -> Option<Trust> {
    let (text, span) = source.string(keys, "trust")?;
    let trust = Trust::from_word(text);
    if trust.is_none() {
        source.error(span.start, format!("trust {text:?} is no value of it"), "write off, on or strict");
    }
    trust
}

fn hosts<'f>(source: &mut Source<'f>, keys: &Keys<'f>) -> BTreeMap<String, Vec<String>> {
    let mut lists = BTreeMap::new();
    for ((name, span), value) in source.entries(keys, "hosts") {
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        if !is_name {
            source.error(
                span.start,
                format!("{name:?} cannot name a list of hosts"),
                "use letters, digits, - and _",
            );
        }
        let mut list = Vec::new();
        for (host, span) in source.as_texts(value, name) {
            // Files say how hosts are reached, by commands; and so do sections, which begin with a bracket.
            let is_plain = !host.starts_with(['[', '@', '#', ';'])
                && !host.contains(|c: char| "/,".contains(c) || c.is_control() || c.is_whitespace());
            if !is_plain {
                let remedy =
                    "write one such as \"db1\", \"db[1-12]\" or \"^db7\" each; files are named by --hosts";
                source.error(span.start, format!("{host:?} is neither a name of hosts nor a range"), remedy);
            }
            list.push(host.to_string());
        }
        lists.insert(name.to_string(), list);
    }
    lists
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Config, String> {
        let lines = |problems: Vec<Problem>| {
            let line = |problem: &Problem| problem.to_string().replace("\n  ", "; ") + "\n";
            problems.iter().map(line).collect()
        };
        read(OsStr::new("/c/config.toml"), text).map_err(lines)
    }

    #[test]
    fn each_key_is_read_as_its_example_says() {
        let text: String = KEYS.iter().map(|key| format!("{}\n", key.example)).collect();
        let expected = Config {
            history: Some(HistoryPlace::Below("/data".into())),
            trust: Some(Trust::Strict),
            colour: Some(false),
            hosts: [("lab".to_string(), vec!["db[1-12]".to_string(), "^db7".to_string()])].into(),
        };
        assert_eq!(of(&text), Ok(expected));
        assert_eq!(of(""), Ok(Config::default()));
        assert_eq!(of("history = \"off\"").unwrap().history, Some(HistoryPlace::Off));
        assert_eq!(of("[hosts]\na = \"db1\"").unwrap().hosts["a"], ["db1"]);
    }

    #[test]
    fn an_error_has_its_place_what_is_wrong_and_what_to_write() {
        for (text, error) in [
            (
                "color = true",
                "/c/config.toml:1:1: error: the config file has no key \"color\"; did you mean \"colour\"?",
            ),
            (
                "iodepth = 4",
                "1:1: error: the config file has no key \"iodepth\"; allowed: history, trust, colour, hosts",
            ),
            ("\n trust = \"yes\"", "2:10: error: trust \"yes\" is no value of it; write off, on or strict"),
            ("trust = true", "1:9: error: trust is true or false, not a text; write it in quotes"),
            ("colour = \"no\"", "1:10: error: colour is a text, not true or false; write colour = false"),
            ("history = \"data\"", "1:11: error: history \"data\" is no absolute path; write the whole path"),
            ("hosts = \"a\"", "hosts is a text, not a table; write [hosts]"),
            ("[hosts]\na = [\"/etc/hosts\"]", "2:6: error: \"/etc/hosts\" is neither"),
            ("[hosts]\na = [\"[x]\\nvia=sh\"]", "2:6: error: "),
            ("[hosts]\n\"a b\" = \"x\"", "2:1: error: \"a b\" cannot name a list of hosts"),
            ("trust", "1:6: error: not TOML"),
        ] {
            let found = of(text).unwrap_err();
            assert!(found.contains(error), "{text}: {found}");
        }
        assert_eq!(of("a = 1\nb = 2").unwrap_err().lines().count(), 2);
    }
}
