//! The states of verification of hosts, as files of this machine.
//!
//! Invariant: their names are made here and begin with that of their host: `ADDRESS-JOB-NUMBER-verify.state`, as by fio's
//! client.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use fiord_plan::state_file_name;
use fiord_report::path::shown;
use fiord_sys::errno::error_text;
use fiord_wire::message::SavedState;
use fiord_worker::TargetOpener;

const SUFFIX: &[u8] = b"-verify.state";

/// Where the states of one host are.
#[derive(Clone, Debug, Default)]
pub struct StateFiles {
    /// Their directory; empty for the working directory.
    pub directory: PathBuf,
    /// What their names begin with.
    pub prefix: OsString,
    /// Whether the host loads those of earlier runs.
    pub are_loaded: bool,
    /// Whether jobs of the host save some.
    pub are_saved: bool,
}

impl StateFiles {
    /// Those of earlier runs, if they are loaded. One that cannot be read is as if it were not there: its job says so.
    pub(crate) fn load(&self) -> Vec<SavedState> {
        let begin = [self.prefix.as_bytes(), b"-"].concat();
        let directory = if self.directory.as_os_str().is_empty() { "." } else { "" };
        let entries = std::fs::read_dir(self.directory.join(directory)).into_iter().flatten().flatten();
        let state = |entry: std::fs::DirEntry| {
            let name = entry.file_name();
            let name = name.as_bytes().strip_prefix(&begin[..])?.strip_suffix(SUFFIX)?;
            let at = name.iter().rposition(|byte| *byte == b'-')?;
            let number = std::str::from_utf8(&name[at + 1..]).ok()?.parse().ok()?;
            let bytes = std::fs::read(entry.path()).ok()?;
            Some(SavedState { job: name[..at].to_vec(), number, bytes })
        };
        entries.filter(|_| self.are_loaded).filter_map(state).collect()
    }

    /// Saves one.
    pub(crate) fn save(&self, state: &SavedState) -> Result<(), String> {
        let name = state_file_name(&self.prefix, OsStr::from_bytes(&state.job), state.number);
        let path = self.directory.join(name);
        let unsaved = |why: String| format!("the state {} is not saved: {why}", shown(path.as_os_str()));
        let mut file =
            TargetOpener::default().create_named(&path, false).map_err(|why| unsaved(why.to_string()))?;
        file.write_all(&state.bytes).map_err(|error| unsaved(error_text(&error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_saved_is_loaded_and_stays_in_its_directory() {
        let directory = std::env::temp_dir().join(format!("fiord-states-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let files = StateFiles {
            directory: directory.clone(),
            prefix: "127.0.0.1".into(),
            are_loaded: true,
            are_saved: true,
        };
        let state = |job: &str| SavedState { job: job.into(), number: 3, bytes: vec![7; 9] };
        files.save(&state("../w-1")).unwrap();
        assert!(directory.join("127.0.0.1-...w-1-3-verify.state").exists());
        assert_eq!(files.load(), [state("...w-1")]);
        let other = StateFiles { prefix: "127.0.0".into(), ..files.clone() };
        assert_eq!(other.load(), [], "of another host");
        let missing = StateFiles { directory: directory.join("missing"), ..files };
        assert!(missing.save(&state("w")).unwrap_err().contains("127.0.0.1-w-3-verify.state is not saved"));
        assert_eq!(missing.load(), []);
        std::fs::remove_dir_all(directory).unwrap();
    }
}
