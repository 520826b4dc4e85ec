//! Where the history lies.
//!
//! Invariant: the path is absolute, as the XDG base directory specification asks: a relative one counts as unset.

use std::ffi::OsString;
use std::path::PathBuf;

/// `$XDG_STATE_HOME/fiord/history.db`, by default below `~/.local/state`; `None` where neither has a home.
pub fn default_path(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("fiord/history.db"))
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
    }
}
