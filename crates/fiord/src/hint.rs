//! What was probably meant by a word that one of fiord's own commands does not know.
//!
//! Invariant: one place for all commands; a hint can be typed as it is, but for the words in capitals.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use fiord_options::suggest;

/// Words of other programs, by the command that does not know them, with what does the same here; `#` is any number.
const MEANT: [(&str, &[&str], &str); 9] = [
    ("fiord", &["run", "bench", "benchmark", "exec", "start", "test"], "fiord JOBFILE"),
    ("fiord", &["parse", "lint", "validate"], "fiord --parse-only JOBFILE"),
    ("fiord", &["list", "ls", "log", "runs"], "fiord history"),
    ("fiord", &["disks", "lsblk", "info"], "fiord devices"),
    ("fiord", &["diff"], "fiord compare"),
    ("fiord", &["html", "page", "web"], "fiord report"),
    ("fiord capacity", &["--p#"], "--bound=p#=TIME"),
    ("fiord check", &["postgres", "postgresql", "mysql", "mariadb", "mongodb"], "oltp"),
    ("fiord check", &["kubernetes", "k8s", "consul"], "etcd"),
];

/// What does the same as a word of other programs.
pub(crate) fn meant(command: &str, typed: &str) -> Option<String> {
    let number = typed.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let pattern = match number.parse::<f64>() {
        Ok(_) => format!("{}#", &typed[..typed.len() - number.len()]),
        Err(_) => String::new(),
    };
    let is_meant = |word: &&str| *word == typed || *word == pattern;
    let found = MEANT.iter().find(|(known, words, _)| *known == command && words.iter().any(&is_meant));
    found.map(|(_, _, meant)| meant.replace('#', number))
}

/// The option that was meant: by its first letter, or by a name that is nearly the same. Names that differ in their numbers
/// are different names.
fn option(command: &Command, typed: &str) -> Option<String> {
    let name = typed.split('=').next()?;
    let all = || std::iter::once(command).chain(command.get_subcommands()).flat_map(Command::get_arguments);
    let longs = || all().filter(|option| !option.is_hide_set()).filter_map(clap::Arg::get_long);
    let digits = |name: &str| name.chars().filter(char::is_ascii_digit).collect::<String>();
    let near = match (name.strip_prefix("--"), name.strip_prefix('-')) {
        (Some(long), _) => suggest::nearest(long, longs().filter(|known| digits(known) == digits(long))),
        (None, Some(short)) => longs().find(|known| known.starts_with(short)),
        (None, None) => None,
    };
    meant(command.get_name(), name).or_else(|| near.map(|long| format!("--{long}")))
}

/// Puts what was meant into an error of clap's, in place of its own guesses.
pub(crate) fn improve(wrong: &mut clap::Error, command: &Command) {
    let text = |kind| match wrong.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let (suggested, hint) = match wrong.kind() {
        ErrorKind::UnknownArgument => {
            let typed = text(ContextKind::InvalidArg);
            (ContextKind::SuggestedArg, typed.and_then(|typed| option(command, &typed)))
        }
        ErrorKind::InvalidValue => {
            let typed = text(ContextKind::InvalidValue);
            let Some(hint) = typed.and_then(|typed| meant(command.get_name(), &typed)) else { return };
            (ContextKind::SuggestedValue, Some(hint))
        }
        _ => return,
    };
    // "To pass '-t' as a value" is never what was meant: an option with that name is.
    wrong.remove(ContextKind::Suggested);
    wrong.remove(suggested);
    if let Some(hint) = hint {
        wrong.insert(suggested, ContextValue::String(hint));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_other_programs_are_known() {
        assert_eq!(meant("fiord", "run").as_deref(), Some("fiord JOBFILE"));
        assert_eq!(meant("fiord capacity", "--p95").as_deref(), Some("--bound=p95=TIME"));
        assert_eq!(meant("fiord capacity", "--p99.99").as_deref(), Some("--bound=p99.99=TIME"));
        for unknown in
            [("fiord", "randread.fio"), ("fiord quick", "run"), ("fiord capacity", "--p"), ("fiord", "")]
        {
            assert_eq!(meant(unknown.0, unknown.1), None, "{unknown:?}");
        }
    }

    #[test]
    fn an_option_is_meant_by_its_letter_or_by_a_slip_but_not_by_another_number() {
        let arg = |name: &'static str| clap::Arg::new(name).long(name);
        let command = Command::new("fiord x").args([arg("time"), arg("trust"), arg("p99")]);
        let meant = |typed: &str| option(&command, typed);
        assert_eq!(meant("-t").as_deref(), Some("--time"));
        assert_eq!(meant("--tme=3").as_deref(), Some("--time"));
        assert_eq!([meant("--p95"), meant("-x"), meant("--colour"), meant("word")], [const { None }; 4]);
    }
}
