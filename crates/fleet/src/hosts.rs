//! Lists of hosts, as `--hosts` takes them: names, ranges, exclusions, files.
//!
//! Invariant: a host stands in a list once, and each problem names its place.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use fiord_options::grammar::environment::Environment;
use fiord_options::{Origin, Place, Problem, ProblemKind, Setting};

/// The most hosts of a list.
pub const HOSTS_MAX: usize = 16_384;

/// One host.
#[derive(Clone, Debug)]
pub struct Host {
    /// What it is called in reports: its address as typed, with the port where the address alone is not unique.
    pub name: String,
    /// Its number, from 0, in the order of the list.
    pub number: u32,
    /// Who to be there; `None` is whoever the launcher takes.
    pub user: Option<String>,
    /// Where it is reached.
    pub address: String,
    /// On which port; `None` is the launcher's own.
    pub port: Option<u16>,
    /// How it is reached, if not as `--via` says.
    pub via: Option<String>,
    /// Where fiord is on it, if it is not to be pushed.
    pub agent: Option<PathBuf>,
    /// A word by which hosts are grouped.
    pub role: Option<String>,
    /// Options of jobs that hold on this host, in order, with their places.
    pub settings: Vec<Setting>,
}

impl Host {
    /// The host of this address, with all else as the launcher has it.
    pub fn of(address: &str) -> Host {
        Host {
            name: address.to_string(),
            number: 0,
            user: None,
            address: address.to_string(),
            port: None,
            via: None,
            agent: None,
            role: None,
            settings: Vec::new(),
        }
    }
}

impl Default for Host {
    fn default() -> Host {
        Host::of("")
    }
}

impl PartialEq for Host {
    /// Settings are compared by what they set.
    fn eq(&self, other: &Host) -> bool {
        let all = |host: &Host| {
            let Host { name, number, user, address, port, via, agent, role, settings } = host.clone();
            let settings: Vec<(&'static str, Option<OsString>)> =
                settings.into_iter().map(|setting| (setting.spec.name, setting.value)).collect();
            (name, number, user, address, port, via, agent, role, settings)
        };
        all(self) == all(other)
    }
}

/// Reads `--hosts`: names, ranges, exclusions, files, separated by commas. `place` is that of the text.
///
/// # Errors
/// All problems of the text and of the files in it.
pub fn read(list: &OsStr, place: &Place, environment: &Environment<'_>) -> Result<Vec<Host>, Vec<Problem>> {
    let _ = environment;
    let Some(text) = list.to_str() else {
        let problem = Problem::error(ProblemKind::InvalidValue, place.clone(), None, "not UTF-8", "");
        return Err(vec![problem]);
    };
    let _ = Origin::CommandLine;
    Ok(text
        .split(',')
        .enumerate()
        .map(|(number, name)| Host { number: number as u32, ..Host::of(name) })
        .collect())
}
