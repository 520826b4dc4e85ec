//! Agents by Slurm's `srun`: a task on each node of an allocation that is there.
//!
//! Invariant: nothing is allocated here; the task may use every processor that the allocation has on its node.

use std::env;
use std::ffi::OsString;

use fiord_fleet::Host;

use crate::ssh;

/// What `--via` says for it.
pub const VIA: &str = "slurm";

/// The nodes of the allocation, as a list of hosts.
///
/// # Errors
/// There is no allocation.
pub fn nodes() -> Result<OsString, String> {
    let why =
        "--via=slurm works in an allocation, and SLURM_JOB_NODELIST is not set: run it by salloc or sbatch";
    env::var_os("SLURM_JOB_NODELIST").ok_or_else(|| why.to_string())
}

/// Whether there is an allocation: without one `srun` would make one for each host.
pub(crate) fn is_allocated() -> bool {
    ["SLURM_JOB_ID", "SLURM_JOBID"].iter().any(|name| env::var_os(name).is_some())
}

/// Whether this process is a task whose output Slurm passes on up to the last end of a line: what is behind it waits, so that
/// each write has to have one after it.
pub(crate) fn holds_lines_back() -> bool {
    env::var_os("SLURM_STEP_ID").is_some()
}

/// The words that start the task. It looks for the program, and receives it, as by ssh.
pub(crate) fn command(settings: &ssh::Settings, host: &Host) -> Vec<OsString> {
    let node = format!("--nodelist={}", host.address);
    // Not `--exact`, which leaves a task one processor; not `--unbuffered`, which loses what is printed.
    let fixed = ["srun", "--quiet", "--overlap", "--nodes=1", "--ntasks=1", "--cpu-bind=none", "--mpi=none"];
    let script = ssh::script(settings, host);
    fixed.into_iter().chain([node.as_str(), "sh", "-c", &script]).map(OsString::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_one_word_and_the_script_another() {
        let words = command(&ssh::Settings::default(), &Host::of("n1 --jobid=7"));
        assert_eq!(words.iter().filter(|word| *word == "--nodelist=n1 --jobid=7").count(), 1);
        assert_eq!((words.len(), &words[words.len() - 2]), (11, &OsString::from("-c")));
    }
}
