//! Paths in fiord's own directories: the history, what is kept beside it, and the config file.
//!
//! Invariant: the path is absolute, as the XDG base directory specification requires: a relative one counts as unset.

use std::ffi::OsString;
use std::path::PathBuf;

/// `$XDG_STATE_HOME/fiord/history.db`, by default below `~/.local/state`; `None` if neither `XDG_STATE_HOME` nor `HOME`
/// is set.
pub fn default_path(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    state_path(variable, "history.db")
}

/// A file of this name beside it.
pub fn state_path(variable: impl Fn(&str) -> Option<OsString>, name: &str) -> Option<PathBuf> {
    below(variable, "XDG_STATE_HOME", ".local/state", name)
}

/// `$XDG_CONFIG_HOME/fiord/config.toml`, by default below `~/.config`.
pub fn config_path(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    below(variable, "XDG_CONFIG_HOME", ".config", "config.toml")
}

fn below(
    variable: impl Fn(&str) -> Option<OsString>,
    of: &str,
    default: &str,
    name: &str,
) -> Option<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let directory = absolute(of).or_else(|| Some(absolute("HOME")?.join(default)))?;
    Some(directory.join("fiord").join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_state_home_counts_as_unset() {
        let of = |state: &'static str, home: &'static str| {
            default_path(move |name| Some(if name == "HOME" { home } else { state }.into()))
        };
        assert_eq!(of("/s", "/h"), Some("/s/fiord/history.db".into()));
        assert_eq!(of("s", "/h"), Some("/h/.local/state/fiord/history.db".into()));
        assert_eq!(of("", ""), None);
        assert_eq!(default_path(|_| None), None);
        let home = |name: &str| (name == "HOME").then(|| "/h".into());
        assert_eq!(config_path(home), Some("/h/.config/fiord/config.toml".into()));
    }
}
